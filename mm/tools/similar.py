"""Names like one that does not exist, for the model that guessed a path. Only the file system is asked."""

from __future__ import annotations

import os

from mm import walk
from mm.cancel import Cancel
from mm.text import replace_surrogates

# At most this many names are offered; this many are compared, a few at a time.
OFFERED = 3
_COMPARED, _AT_ONCE = 5000, 100
# The search below the session's folder: entries, and levels.
_ENTRIES, _DEPTH = 20_000, 12


def missing(tool_name: str, place, cwd: str, cancel: Cancel) -> str:
    """`[read_file: … does not exist. Similar: …]` for a file that is not there. Raises Cancelled."""
    found = similar(place, cwd, cancel)
    hint = f". Similar: {', '.join(found)}" if found else ""
    return replace_surrogates(f"[{tool_name}: {place.given} does not exist{hint}]")


def similar(place, cwd: str, cancel: Cancel) -> list:
    """Up to three paths with names like the one asked for, relative to `cwd` if they are below it."""
    wanted = os.path.basename(place.real).lower()
    paths = {}  # name in small letters -> paths
    for path in _candidates(os.path.dirname(place.real), os.path.realpath(cwd)):
        cancel.check()
        known = paths.setdefault(os.path.basename(path).lower(), [])
        if len(known) < OFFERED and path not in known:
            known.append(path)
    names = [name for name in paths if abs(len(name) - len(wanted)) <= len(wanted)][:_COMPARED]
    close = [wanted] if wanted in paths else []
    close += [name for name in _close(wanted, names, cancel) if name != wanted]
    return [path for name in close for path in paths[name]][:OFFERED]


def _candidates(folder, cwd):
    """What is in the missing file's folder, in alphabetical order, then the files below `cwd`."""
    below = cwd.rstrip(os.sep) + os.sep
    for entry in sorted(walk.entries(folder, _ENTRIES, 0), key=lambda entry: entry.name):
        yield entry.path[len(below):] if entry.path.startswith(below) else entry.path
    for entry in walk.entries(cwd, _ENTRIES, _DEPTH):
        if not entry.is_dir(follow_symlinks=False):
            yield entry.path[len(below):]


def _close(wanted, names, cancel):
    """difflib.get_close_matches, a few names at a time."""
    import difflib
    best = []
    for first in range(0, len(names), _AT_ONCE):
        cancel.check()
        best = difflib.get_close_matches(wanted, best + names[first:first + _AT_ONCE], OFFERED)
    return best
