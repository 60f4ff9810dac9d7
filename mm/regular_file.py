"""Opening files that may be hostile: only regular ones, and never waiting.

A FIFO that nobody writes to would block its reader for ever, and a device may act on being opened.
"""

from __future__ import annotations

import os
from stat import S_ISREG


class NotRegular(OSError):
    """There is something of that name, but no regular file."""


def descriptor_of(path: str) -> int:
    """A descriptor for reading `path`, the caller's to close. Raises OSError, NotRegular for what is no regular file."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    if S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotRegular("is not a regular file")


def read(path: str, limit: int) -> bytes:
    """The first `limit` bytes of the file. Raises OSError, NotRegular."""
    with open(descriptor_of(path), "rb") as file:
        return file.read(limit)
