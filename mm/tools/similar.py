"""Names like one that does not exist, for the model that guessed a path."""

from __future__ import annotations

import os
import subprocess

from mm.cancel import Cancel
from mm.text import replace_surrogates
from mm.wire import child

# At most so many names are offered, and so many compared.
OFFERED = 3
_COMPARED, _AT_ONCE = 5000, 100
_GIT_SECONDS = 1


def missing(tool_name: str, place, cwd: str, cancel: Cancel) -> str:
    """The sentence for a file that is not there: `[read_file: … does not exist. Similar: …]`. Raises Cancelled."""
    found = similar(place, cwd, cancel)
    hint = f". Similar: {', '.join(found)}" if found else ""
    return replace_surrogates(f"[{tool_name}: {place.given} does not exist{hint}]")


def similar(place, cwd: str, cancel: Cancel) -> list:
    """Up to three paths, relative to `cwd` where they are below it, whose names are like the one asked for."""
    wanted = os.path.basename(place.real).lower()
    paths = {}  # name in small letters -> paths
    for path in _neighbours(place, cwd) + _tracked(cwd, cancel):
        cancel.check()
        known = paths.setdefault(os.path.basename(path).lower(), [])
        if len(known) < OFFERED and path not in known:
            known.append(path)
    names = [name for name in paths if abs(len(name) - len(wanted)) <= len(wanted)][:_COMPARED]
    close = [wanted] if wanted in paths else []
    close += [name for name in _close(wanted, names, cancel) if name != wanted]
    return [path for name in close for path in paths[name]][:OFFERED]


def _close(wanted, names, cancel):
    """difflib.get_close_matches, a few names at a time."""
    import difflib
    best = []
    for first in range(0, len(names), _AT_ONCE):
        cancel.check()
        best = difflib.get_close_matches(wanted, best + names[first:first + _AT_ONCE], OFFERED)
    return best


def _neighbours(place, cwd):
    folder = os.path.dirname(place.real)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    below = os.path.realpath(cwd).rstrip(os.sep) + os.sep
    paths = (os.path.join(folder, name) for name in names)
    return [path[len(below):] if path.startswith(below) else path for path in paths]


def _tracked(cwd, cancel):
    """What git knows below `cwd`. The program that a repository may name in core.fsmonitor is not run."""
    command = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z"]
    try:
        git = child.start(command, cwd=cwd, stdout=subprocess.PIPE)
    except OSError:
        return []
    try:
        with cancel.on_cancel(git.kill):
            listed = git.process.communicate(timeout=_GIT_SECONDS)[0]
        cancel.check()
    except subprocess.TimeoutExpired:
        return []
    finally:
        git.end()
    return [path for path in os.fsdecode(listed).split("\0") if path]
