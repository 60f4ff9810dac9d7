"""Whether a path stays inside of a folder: the one rule for what a repository brings and mm reads or writes unasked.

`AGENTS.md -> ../../.ssh/id_rsa` would send a private key to the model server, and a link in the place of the sessions'
folder would have mm write anywhere. So a file that mm opens without being asked (instructions, skills, configuration,
sessions) is left out when a link leads it out of the folder that it belongs to, and the user is told once.
"""

from __future__ import annotations

import os


def is_inside(folder: str, path: str) -> bool:
    """Whether `path`, taken from `folder`, is inside of it or the folder itself, links resolved. It need not exist."""
    return path[:1] != "~" and _within(os.path.realpath(os.path.join(folder, path)), os.path.realpath(folder))


def names_inside(folder: str, path: str) -> bool:
    """Whether `path`, taken from `folder`, is written as one inside of it; links are not looked at."""
    folder = os.path.abspath(folder)
    return path[:1] != "~" and _within(os.path.normpath(os.path.join(folder, path)), folder)


def _within(path, folder):
    path, folder = os.path.normcase(path), os.path.normcase(folder)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
