"""Where a path that the model gave leads."""

from __future__ import annotations

import errno
import os
import sys
from collections import namedtuple

from mm import spelling
from mm.tools.tool import ToolError

# `given` is what the model wrote. `real` is the file after all links, which is the one that is opened.
# `location` is the absolute path that people are shown: as they know their folder, but `real` if a link below
# it leads elsewhere, which `linked` says.
Place = namedtuple("Place", "given real location linked")

# Linux takes no longer path, and more folders inside each other are a mistake.
MOST_BYTES = 4096
MOST_FOLDERS = 500


def resolve(folder: str, tool_name: str, path: str) -> Place:
    """The Place of `path`, which may be relative to `folder`, `~` or absolute. Raises ToolError."""
    if not path.strip():
        raise ToolError(f"[{tool_name}: the path is empty]")
    if "\0" in path:
        raise ToolError(f"[{tool_name}: the path holds a NUL character]")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        encoding = sys.getfilesystemencoding()
        why = f"{path} cannot be the name of a file here: the locale is {encoding}"
        raise ToolError(f"[{tool_name}: {why}]") from None
    if len(path.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise ToolError(f"[{tool_name}: the path is longer than {MOST_BYTES} bytes]")
    absolute = _absolute(folder, path)
    if absolute.count(os.sep) > MOST_FOLDERS:
        raise ToolError(f"[{tool_name}: the path goes through more than {MOST_FOLDERS} folders]")
    try:
        return _followed(folder, path, absolute)
    except RecursionError:  # a chain of links of that length
        raise ToolError(f"[{tool_name}: {path}: {os.strerror(errno.ELOOP)}]") from None


def _absolute(folder, path):
    return spelling.on_disk(os.path.join(folder, os.path.expanduser(path)))


def _followed(folder, path, absolute):
    if path.startswith("@") and not os.path.lexists(absolute):  # as people write it in a prompt
        plain = _absolute(folder, path[1:])
        absolute = plain if os.path.lexists(plain) else absolute
    real, normal = os.path.realpath(absolute), os.path.normpath(absolute)
    linked = real != _without_links(folder, normal)
    return Place(path, real, real if linked else normal, linked)


def _without_links(folder, path):
    """What `path` would really be if there were no links but those on the way to the session's folder."""
    start = folder.rstrip(os.sep) + os.sep
    if path != folder and not path.startswith(start):
        return path
    return os.path.normpath(os.path.join(os.path.realpath(folder), path[len(start):]))
