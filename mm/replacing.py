"""Replacing a file in one step, and removing what a process left behind that was killed while it did so.

The new bytes go to a temporary file beside the old one, `.mm-<hex>`, down to the disk; then that file takes
the name of the old one. A reader, or a crash at any moment, finds the old bytes or the new ones, never a
mixture.

A temporary file could be anywhere, and nobody would look for it after a kill. So its path is noted first, in
a file in the user's state folder that stays locked until the write has ended. A note that nobody has locked
is that of a dead process: remove_remains(), at the start of a session, removes the file that it names.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import contextmanager

from mm.config import places

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None

_TEMPORARY = re.compile(r"\.mm-[0-9a-f]{16}")
_NOTES = "writing"
_LONGEST_NOTE = 64 * 1024
_TRIES, _PAUSE = 5, 0.05  # seconds


def replace(path: str, data: bytes, mode: int | None = None) -> os.stat_result:
    """Puts `data` in the place of `path`, whose folder must be there; returns the new file's status. Raises
    OSError.

    The new file has this `mode`. Without one it has the mode, and as far as that is allowed the owner and
    group, of the file that it replaces, and a new file what the umask leaves.
    """
    temporary = os.path.join(os.path.dirname(path), f".mm-{os.urandom(8).hex()}")
    with _noted(temporary):
        try:
            status = _write_new(temporary, data, 0o666 if mode is None else mode)
            if mode is None:
                _take_over(path, temporary)
            _rename(temporary, path)
        except BaseException:
            discard(temporary)
            raise
    return status


def discard(path: str) -> None:
    """Removes a file, if it can be removed."""
    try:
        os.unlink(path)
    except OSError:
        pass


def remove_remains(environ=os.environ) -> None:
    """Removes the temporary files of processes that were killed while they replaced a file."""
    folder = _notes_folder(environ)
    try:
        names = os.listdir(folder) if folder else ()
    except OSError:
        return  # nothing was ever noted
    for name in names:
        try:
            _remove_noted(os.path.join(folder, name))
        except OSError:
            pass  # its process lives, or another mm was faster


def _remove_noted(note):
    with open(os.open(note, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
        lock(file.fileno())
        path = os.fsdecode(file.read(_LONGEST_NOTE))
        if _TEMPORARY.fullmatch(os.path.basename(path)):
            try:
                os.unlink(path)
            except (FileNotFoundError, NotADirectoryError):
                pass
    os.unlink(note)


@contextmanager
def _noted(temporary):
    """Keeps a locked note of the path while the block runs, if the state folder can be written."""
    folder, note = _notes_folder(os.environ), None
    path = os.path.join(folder or "", os.path.basename(temporary)[1:])
    try:
        if folder:
            os.makedirs(folder, 0o700, exist_ok=True)
            note = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            lock(note)
            os.write(note, os.fsencode(os.path.abspath(temporary)))
    except OSError:
        pass  # the file is replaced all the same
    try:
        yield
    finally:
        if note is not None:
            os.close(note)
            discard(path)


def _notes_folder(environ):
    state = places.state_folder(environ)
    return os.path.join(state, _NOTES) if state else None


def lock(descriptor: int) -> None:
    """Locks an open file or folder for as long as it is open. There are no locks on Windows.

    Raises BlockingIOError if another process has locked it, any other OSError if its file system has no
    locks.
    """
    if fcntl:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write_new(path, data, mode):
    """Writes a new file down to the disk; returns its status."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    with open(descriptor, "wb", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view):]
        os.fsync(descriptor)
        return os.fstat(descriptor)


def _take_over(old, new):
    """Gives `new` the mode of `old`, and its owner and group as far as that is allowed."""
    try:
        status = os.stat(old)
    except FileNotFoundError:
        return
    mode = stat.S_IMODE(status.st_mode)
    mine = os.stat(new)
    for kept, wanted in (((mine.st_uid, -1), (status.st_uid, -1)), ((-1, mine.st_gid), (-1, status.st_gid))):
        if kept != wanted:
            try:
                os.chown(new, *wanted)
            except OSError:
                mode &= 0o777  # set-uid and set-gid would now speak for somebody else
    os.chmod(new, mode)


def _rename(old, new):
    for attempt in range(_TRIES):
        try:
            return os.replace(old, new)
        except PermissionError:  # on Windows whoever has the file open is in the way, such as a virus scanner
            if os.name != "nt" or attempt == _TRIES - 1:
                raise
            time.sleep(_PAUSE)
