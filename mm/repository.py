"""The folders of the repository that a session works in."""

from __future__ import annotations

import os


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
