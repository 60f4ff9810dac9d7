"""The folder of this process for outputs that are too long to show, and what becomes of older ones.

The folder is made with the first log. A log that no result names is removed by whoever made it. The folder
goes at exit if it is empty; otherwise it stays, because the user may read a named log later. With each new
log, what processes have left that are gone is tidied up: their logs are removed after a week, and the oldest
logs of all, this process's own included, as long as all logs together take more than TOTAL.

A folder is known as mm's by its name and by the file `pid` in it, which its process keeps locked while it
lives. Only files with mm's names are removed. If anything else is in a folder, it stays, and so does the
folder.
"""

from __future__ import annotations

import atexit
import itertools
import os
import re
import tempfile
import threading
import time

from mm import replacing

PREFIX = "mm-"
KEPT_DAYS = 7
# All logs together, in bytes; one log takes 64 MB at most.
TOTAL = 512 * 1024 * 1024
_PID = "pid"
_LOG = re.compile(r"bash-\d+\.log")

_lock = threading.Lock()
_tidying = threading.Lock()
_folder = None
_numbers = itertools.count(1)


def folder() -> str:
    """The folder, made on first use. Raises OSError."""
    global _folder
    with _lock:
        if _folder is None:
            atexit.register(close)
        if _folder is None or not os.path.isdir(_folder):  # systems clean their folder for temporary files
            _folder = _new_folder()
        return _folder


def _new_folder():
    made = tempfile.mkdtemp(prefix=PREFIX)
    # Stays open, because it is locked.
    mark = os.open(os.path.join(made, _PID), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.write(mark, b"%d" % os.getpid())
        replacing.lock(mark)
    except OSError:
        pass  # a full disk, or one without locks: the folder will look abandoned
    return made


def new_log() -> tuple:
    """A new log, as (path, binary file open for writing). Raises OSError."""
    path = os.path.join(folder(), f"bash-{next(_numbers)}.log")
    log = open(path, "xb", buffering=0)
    threading.Thread(target=tidy, args=(tempfile.gettempdir(), _folder), name="old logs", daemon=True).start()
    return path, log


def close() -> None:
    """Removes the folder if no log is left in it; for the end of the process."""
    with _lock:
        if _folder is not None and os.path.isdir(_folder) and os.listdir(_folder) == [_PID]:
            _remove(_folder, [_PID])


def tidy(parent: str, own: str | None = None, total: int = TOTAL) -> None:
    """Removes old folders of processes that are gone, below `parent`, and the oldest logs above `total`.

    `own` is the folder of this process, whose logs count, too; `total` is in bytes.
    """
    with _tidying:
        try:
            _tidy(parent, own, total)
        except OSError:
            pass  # another mm was faster


def _tidy(parent, own, total):
    oldest = time.time() - KEPT_DAYS * 24 * 3600
    logs = []
    for path, changed in _folders(parent):
        if path != own and not _is_abandoned(path):
            continue
        found = _logs_in(path)
        if path != own and changed < oldest:
            _remove(path, [os.path.basename(log) for _, _, log in found] + [_PID])
        else:
            logs += found
    _remove_above(sorted(logs), total, own)


def _folders(parent):
    """(path, when something was last put in it) of each folder of this user that has a name like mm's."""
    with os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                if os.name == "nt" or status.st_uid == os.getuid():
                    yield entry.path, status.st_mtime


def _is_abandoned(path):
    """Whether a process that is gone made the folder for its logs."""
    try:
        with open(os.path.join(path, _PID), "r+b") as file:
            replacing.lock(file.fileno())
            return file.read(20).isdigit()
    except OSError:
        return False  # it has no such file, or its process lives


def _logs_in(path):
    """(when it was last written, bytes, path) of each log in a folder."""
    found = []
    with os.scandir(path) as entries:
        for entry in entries:
            if _LOG.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                found.append((status.st_mtime, status.st_size, entry.path))
    return found


def _remove_above(logs, total, own):
    """Removes the first of the logs until those that are left take at most `total` bytes."""
    left = sum(size for _, size, _ in logs)
    for _, size, path in logs[:-1]:
        if left <= total:
            break
        replacing.discard(path)
        left -= size
        folder = os.path.dirname(path)
        if folder != own and os.listdir(folder) == [_PID]:
            _remove(folder, [_PID])


def _remove(path, names):
    try:
        for name in names:
            os.remove(os.path.join(path, name))
        os.rmdir(path)
    except OSError:
        pass  # something else is in there, or another mm was faster
