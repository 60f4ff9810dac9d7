"""Workspace: what a session's tools know of its folder: where paths lead and which files the model has seen.

One per session. A session runs one call at a time, so nothing here is locked.
"""

from __future__ import annotations

import errno
import os
import sys
from collections import namedtuple

from mm import spelling
from mm.cancel import Cancel
from mm.tools.tool import ToolError

# Where a path that the model gave leads. `given` is what it wrote; `real` the file behind all links, which is the one
# that is opened; `location` the absolute path that people are shown: as they know their folder, but `real` where a link
# below it leads elsewhere, which `linked` says.
Place = namedtuple("Place", "given real location linked")

# A known model window limits what one result may show to this part of it, at so many characters a token.
_WINDOW_PART = 10
_CHARS_PER_TOKEN = 4
_LEAST_SHOWN = 1000
# What a path may have; Linux takes no more bytes, and so many folders in one another are a mistake.
_PATH_BYTES = 4096
_PATH_FOLDERS = 500


class Workspace:
    """A session's folder, with what was shown of its files.

    `window` is the model's context in tokens, 0 while unknown; it lowers the output limits.
    `seen` maps real paths to the sha256 of the bytes that the model knows whole: read to the end or written by it.
    `cancel` is that of the turn that runs, `front` its front end (mm.events), None where nobody can be asked, and `ref` its
    running call: the turn sets them.
    `failed_edits` maps real paths to the number of edits that failed there in a row.
    `plan` is the tool plan's Plan, None where there is none.
    `skills_read` holds the names of the skills whose text stands in the conversation; whoever removes it from there
    clears them.
    """

    def __init__(self, cwd: str, config, window: int = 0):
        self.cwd = os.path.abspath(cwd)
        self.config = config
        self.window = window
        self.cancel = Cancel()
        self.front = self.ref = None
        self.seen = {}
        self.failed_edits = {}
        self.plan = None
        self.skills_read = set()
        self._closing = []
        self._parts = {}  # real path -> (sha256, set of line numbers shown so far), for files seen in part

    def on_close(self, close) -> None:
        """`close()` is called when the session ends or forgets: programs that a tool keeps running end then."""
        self._closing.append(close)

    def close(self) -> None:
        while self._closing:
            self._closing.pop()()

    def shown_limit(self, limit: int) -> int:
        """How many characters of `limit` a result may have in this model's window."""
        if not self.window:
            return limit
        return max(min(limit, self.window * _CHARS_PER_TOKEN // _WINDOW_PART), _LEAST_SHOWN)

    def resolve(self, tool_name: str, path: str) -> Place:
        """Where `path` leads: relative to the session's folder, `~` or absolute. Raises ToolError."""
        if not path.strip():
            raise ToolError(f"[{tool_name}: the path is empty]")
        if "\0" in path:
            raise ToolError(f"[{tool_name}: the path holds a NUL character]")
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            encoding = sys.getfilesystemencoding()
            raise ToolError(f"[{tool_name}: {path} cannot be the name of a file here: the locale is {encoding}]") from None
        if len(path.encode("utf-8", "surrogatepass")) > _PATH_BYTES:
            raise ToolError(f"[{tool_name}: the path is longer than {_PATH_BYTES} bytes]")
        absolute = self._absolute(path)
        if absolute.count(os.sep) > _PATH_FOLDERS:
            raise ToolError(f"[{tool_name}: the path goes through more than {_PATH_FOLDERS} folders]")
        try:
            return self._followed(path, absolute)
        except RecursionError:  # a chain of links of that length
            raise ToolError(f"[{tool_name}: {path}: {os.strerror(errno.ELOOP)}]") from None

    def _followed(self, path, absolute):
        if path.startswith("@") and not os.path.lexists(absolute) and os.path.lexists(self._absolute(path[1:])):
            absolute = self._absolute(path[1:])  # as people write it in a prompt
        real = os.path.realpath(absolute)
        normal = os.path.normpath(absolute)
        linked = real != self._without_links(normal)
        return Place(path, real, real if linked else normal, linked)

    def _absolute(self, path):
        return spelling.on_disk(os.path.join(self.cwd, os.path.expanduser(path)))

    def _without_links(self, path):
        """What `path` would really be if there were no links but those on the way to the session's folder."""
        folder = self.cwd.rstrip(os.sep) + os.sep
        if path != self.cwd and not path.startswith(folder):
            return path
        return os.path.normpath(os.path.join(os.path.realpath(self.cwd), path[len(folder):]))

    def saw_lines(self, real: str, digest: str, lines, total: int) -> None:
        """The model was shown the `lines` (numbers from 1, whole ones only) of a file of `total` lines."""
        known, shown = self._parts.get(real, (digest, set()))
        if self.seen.get(real) == digest:
            return
        shown = shown | set(lines) if known == digest else set(lines)
        if len(shown) < total:
            self.seen.pop(real, None)
            self._parts[real] = (digest, shown)
        else:
            self.saw_whole(real, digest)

    def saw_whole(self, real: str, digest: str) -> None:
        """The model knows every byte of the file: it was shown all of it or wrote it."""
        self._parts.pop(real, None)
        self.seen[real] = digest

    def edited(self, real: str, before: str, after: str) -> None:
        """An edit made the file `after` from `before`; the model knows as much of it as it did."""
        if self.seen.get(real) == before:
            self.seen[real] = after
        else:
            self.seen.pop(real, None)
            self._parts[real] = (after, set())

    def last_known(self, real: str) -> str | None:
        """The sha256 of the file as the model last saw it, whole or in part; None if never."""
        part = self._parts.get(real)
        return part[0] if part else self.seen.get(real)
