"""What lies below a folder: a bounded walk, without links and what is not the user's own work."""

from __future__ import annotations

import os
from collections import deque

_NOT_ENTERED = ("node_modules", "__pycache__", "venv", "site-packages")


def entries(folder: str, most: int, deep: int):
    """The os.DirEntry of everything below `folder`, nearest to the top first: `most` of them, `deep` levels
    deep.

    Hidden folders and those of installed packages are named but not entered. What cannot be read is left out.
    """
    folders, seen = deque([(folder, 0)]), 0
    while folders and seen < most:
        path, depth = folders.popleft()
        try:
            with os.scandir(path) as found:
                for entry in found:
                    seen += 1
                    if seen > most:
                        break
                    yield entry
                    if depth < deep and _is_entered(entry):
                        folders.append((entry.path, depth + 1))
        except OSError:
            continue


def _is_entered(entry) -> bool:
    if entry.name.startswith(".") or entry.name in _NOT_ENTERED:
        return False
    return entry.is_dir(follow_symlinks=False)
