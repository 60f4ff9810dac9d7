"""The folder of this process for outputs that are too long to show.

The folder is made when the first log is. A log that no result names is removed by whoever made it; the folder goes at
exit when it is empty, because the model may read a named log later and the user still later. What earlier processes
left is removed after a week. A folder is known as ours by its name and by the file `pid` in it, and only files with our
names are removed: anything else in it stays, and so does the folder then.
"""

from __future__ import annotations

import atexit
import itertools
import os
import re
import tempfile
import threading
import time

PREFIX = "mm-"
KEPT_DAYS = 7
_PID = "pid"
_LOG = re.compile(r"bash-\d+\.log")

_lock = threading.Lock()
_folder = None
_numbers = itertools.count(1)


def folder() -> str:
    """The folder, made on first use. Raises OSError."""
    global _folder
    with _lock:
        if _folder is None:
            atexit.register(close)
            threading.Thread(target=remove_stale, args=(tempfile.gettempdir(),), name="old logs", daemon=True).start()
        if _folder is None or not os.path.isdir(_folder):  # systems clean their folder for temporary files
            made = tempfile.mkdtemp(prefix=PREFIX)
            with open(os.path.join(made, _PID), "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
            _folder = made
        return _folder


def new_log() -> tuple:
    """A new log, as (path, binary file open for writing). Raises OSError."""
    path = os.path.join(folder(), f"bash-{next(_numbers)}.log")
    return path, open(path, "xb", buffering=0)


def close() -> None:
    """Removes the folder if no log is left in it; for the end of the process."""
    with _lock:
        if _folder is not None and os.path.isdir(_folder) and os.listdir(_folder) == [_PID]:
            _remove(_folder, [_PID])


def remove_stale(parent: str) -> None:
    """Removes the folders of processes that are gone, when nothing was put in them for a week."""
    oldest = time.time() - KEPT_DAYS * 24 * 3600
    try:
        with os.scandir(parent) as entries:
            found = [entry.path for entry in entries if entry.name.startswith(PREFIX)
                     and entry.is_dir(follow_symlinks=False) and _is_old(entry.stat(follow_symlinks=False), oldest)]
    except OSError:
        return
    for path in found:
        try:
            if not _is_ours(path):
                continue
            names = os.listdir(path)
        except OSError:
            continue  # another user's, or another mm was faster
        _remove(path, [name for name in names if _LOG.fullmatch(name)] + [_PID])


def _is_old(status, oldest):
    mine = os.name == "nt" or status.st_uid == os.getuid()
    return mine and status.st_mtime < oldest


def _is_ours(path):
    """Whether a process that is gone made the folder for its logs."""
    try:
        with open(os.path.join(path, _PID), encoding="ascii") as file:
            pid = int(file.read())
    except ValueError:
        return False
    if os.name == "nt":
        return True  # os.kill would end the process; the age has to do
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _remove(path, names):
    try:
        for name in names:
            os.remove(os.path.join(path, name))
        os.rmdir(path)
    except OSError:
        pass  # something else is in there, or another mm was faster
