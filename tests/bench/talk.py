"""What a long conversation costs; run as a program it measures one of these inside this interpreter and
prints milliseconds.

    python3 tests/bench/talk.py save FOLDER       one save of the session in FOLDER, besides fsync
    python3 tests/bench/talk.py step COUNT        CPU from a tool's end to the next request, with COUNT
    messages before it
"""

from __future__ import annotations

import json
import os
import sys
import time

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from mm.conversation import history, store

SESSION_ID = "20260916-101530-4f2a9c1e"
MESSAGES, CALLS = 2000, 500


def conversation(count: int) -> list:
    """`count` messages, a quarter of them tool calls with their results, about 700 bytes each."""
    messages = []
    while len(messages) < count:
        ref = "call_%d" % (len(messages) // 4 + 1)
        messages.append(history.user_message("Question %d: what does this do? " % len(messages)
                                             + "word " * 60))
        call = {"ref": ref, "name": "bash", "arguments": json.dumps({"command": "grep -rn name src | head -n "
                                                                                "40"})}
        messages.append(history.assistant_message("I look. " * 20, "Thinking. " * 20, [call]))
        messages.append(history.tool_message(ref, "bash", "src/file.py:10: def name(self):\n" * 40,
                                             status="completed"))
        messages.append(history.assistant_message("It does this. " * 40))
    return messages[:count]


def write_session(folder: str) -> None:
    """A session of MESSAGES with CALLS, in the sessions folder of `folder`."""
    store.create(os.path.join(folder, ".mm", "sessions"), SESSION_ID, folder).save(conversation(MESSAGES), {},
                                                                                   "bench", "bench")


def save(folder: str) -> float:
    """Milliseconds of one save after one more turn, less what fsync takes."""
    kept, saved = store.open(os.path.join(folder, ".mm", "sessions"), SESSION_ID)
    messages = saved.messages + conversation(4)
    sync, waited = os.fsync, []

    def timed_sync(descriptor):
        begin = time.perf_counter()
        sync(descriptor)
        waited.append(time.perf_counter() - begin)

    os.fsync = timed_sync
    begin = time.perf_counter()
    kept.save(messages, {}, "bench", "bench")
    took = time.perf_counter() - begin
    os.fsync = sync
    return 1000 * (took - sum(waited))


def step(count: int) -> float:
    """Milliseconds of CPU in the turn's thread between the end of a tool and the request that carries its
    result.
    """
    from mm.config import config
    from mm.cancel import Cancel
    from mm.engine.process import Process
    from mm.engine.turn import run_turn
    from mm.events import ToolEnded
    from tests import support
    from tests.fakes.model_server import ModelServer

    marks = []

    class Watch:
        """Front end and tap at once."""

        def emit(self, event):
            if type(event) is ToolEnded:
                marks.append(time.thread_time())

        def request(self, body):
            marks.append(time.thread_time())

        def data(self, line):
            pass

    call = {"call": {"name": "bash", "arguments": {"command": "true"}}}
    folder = support.scratch_folder()
    with ModelServer([call], [call], [{"text": "done"}]) as server:
        settings = config.load(folder, {"HOME": folder}, None,
                               {"model.url": server.url, "model.name": "bench"})
        watch = Watch()
        process = Process(settings.replace(model_context_window=10_000_000), tap=watch)
        session = process.new_session(folder)
        session.messages = conversation(count)
        run_turn(process, session, "go", watch, Cancel())
    # request, tool's end, request, tool's end, request: the second step, when all that is made once has been
    # made.
    return 1000 * (marks[4] - marks[3])


if __name__ == "__main__":
    print(save(sys.argv[2]) if sys.argv[1] == "save" else step(int(sys.argv[2])))
