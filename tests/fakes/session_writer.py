"""A program that saves a session again and again, as mm does after each turn, until it is killed or told to stop.

    session_writer.py FOLDER ID NAME SAVES [LIMIT]

Creates the session, or opens it where it is there, writes `opened`, waits for a line on stdin or its end, and adds one
message of NAME before each save. Writes a line for each save that has ended: the number of messages kept, and the id they are kept under; `failed: …` where it could not be saved.
LIMIT is the size in bytes that no file may exceed, as on a full disk. NAME `ro-…` gives up the rights of root first.
"""

from __future__ import annotations

import os
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from mm.conversation import history, store  # noqa: E402


def main(folder, session_id, name, saves, limit=None):
    if name.startswith("ro-") and os.getuid() == 0:
        os.setuid(65534)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    try:
        kept, saved = store.open(folder, session_id)
        messages, usage = saved.messages, saved.usage
    except store.SessionError:
        kept, messages, usage = store.create(folder, session_id, "."), [], {}
    print("opened", flush=True)
    sys.stdin.readline()
    for number in range(int(saves)):
        messages.append(history.user_message("%s %d %s" % (name, number, "x" * 2000)))
        try:
            kept.save(messages, usage, None, "model")
            print(len(messages), kept.id, flush=True)
        except OSError as error:
            print("failed:", error.strerror, flush=True)


main(*sys.argv[1:])
