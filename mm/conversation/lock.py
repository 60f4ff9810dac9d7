"""A lock between processes: a file that one of them holds at a time. The system lets go of it when its holder dies.

Windows' part is written from the documentation and untested.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager
from stat import S_ISREG

# A holder needs it for as long as one write takes.
PATIENCE = 5.0  # seconds
_PAUSE = 0.01

BUSY = "another mm is writing it"
NOT_REGULAR = "its lock is not a regular file"


@contextmanager
def held(path: str):
    """Holds the lock `path`, which is made where it is not there and stays. Raises OSError, after PATIENCE too.

    Where the file system knows no locks there is none.
    """
    # The folder may be hostile: a link is not followed and a FIFO does not make us wait.
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, NOT_REGULAR, path)
        deadline = time.monotonic() + PATIENCE
        while not _taken(descriptor):
            if time.monotonic() > deadline:
                raise OSError(errno.EBUSY, BUSY, path)
            time.sleep(_PAUSE)
        try:
            yield
        finally:
            _let_go(descriptor)  # closing alone would not do while a child that is just being started has a copy
    finally:
        os.close(descriptor)


if os.name == "nt":
    import msvcrt

    def _taken(descriptor):
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _let_go(descriptor):
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _taken(descriptor):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # no locks on this file system
        return True

    def _let_go(descriptor):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        except OSError:
            pass  # there was none
