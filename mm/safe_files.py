"""Files that come with a repository, which may be hostile: where links may lead, and how a file is opened.

`AGENTS.md -> ../../.ssh/id_rsa` would send a private key to the model server, and a link in the place of the
sessions' folder would have mm write anywhere. So a file that mm opens without being asked (instructions,
skills, configuration, sessions) is left out when a link leads it out of the folder that it belongs to, and
the user is informed once.

Only regular files are opened, and never waiting: a FIFO that nobody writes to would block its reader for
ever, and a device may act on being opened.
"""

from __future__ import annotations

import os
from stat import S_ISREG


def folders_up_from(cwd: str) -> list:
    """`cwd` and its parents up to the git root; `cwd` alone outside of a repository."""
    folders, folder = [], cwd
    while True:
        folders.append(folder)
        if os.path.exists(os.path.join(folder, ".git")):
            return folders
        parent = os.path.dirname(folder)
        if parent == folder:
            return [cwd]
        folder = parent


def is_inside(folder: str, path: str) -> bool:
    """Whether `path`, taken from `folder`, is inside of it, links resolved. It need not exist."""
    return path[:1] != "~" and _within(os.path.realpath(os.path.join(folder, path)), os.path.realpath(folder))


def names_inside(folder: str, path: str) -> bool:
    """Whether `path`, taken from `folder`, is written as one inside of it; links are not looked at."""
    folder = os.path.abspath(folder)
    return path[:1] != "~" and _within(os.path.normpath(os.path.join(folder, path)), folder)


def _within(path, folder):
    path, folder = os.path.normcase(path), os.path.normcase(folder)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


class NotRegular(OSError):
    """There is something of that name, but it is not a regular file."""


def descriptor_of(path: str) -> int:
    """A descriptor for reading `path`, the caller's to close. Raises OSError, NotRegular."""
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"):  # not every system has all of them
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags)
    if S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotRegular("is not a regular file")


def read(path: str, limit: int) -> bytes:
    """The first `limit` bytes of the file. Raises OSError, NotRegular."""
    with open(descriptor_of(path), "rb") as file:
        return file.read(limit)
