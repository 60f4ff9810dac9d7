"""The lines of a text that streams in, as far as they decide what may begin in them: fences, and line
beginnings (pure).
"""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)", re.DOTALL)
_LONGEST_LINE = 200
_MOST_INDENT = 3  # more of it is code to markdown


class Lines:
    """Follows the lines of a text. `fence` is what opened the fence that is open, "" outside of one."""

    __slots__ = ("fence", "_line")

    def __init__(self):
        self.begin()

    def begin(self, space: str = "") -> None:
        """A text begins here, with this whitespace; what was open before it does not count."""
        self.fence, self._line = "", space.rpartition("\n")[2]

    @property
    def decided(self) -> bool:
        """Whether the rest of the line is of no interest."""
        return self._line is None

    @property
    def starts(self) -> bool:
        """Whether nothing but a little indentation stands in the line so far."""
        return self._line is not None and len(self._line) <= _MOST_INDENT and not self._line.strip()

    def add(self, text: str) -> None:
        """Goes on with `text`. Whitespace that begins with a line's end may be added twice."""
        first, *others = text.split("\n")
        self._extend(first)
        for line in others:
            self._end()
            self._line = ""
            self._extend(line)

    def _extend(self, text: str) -> None:
        if self._line is None or not text:
            return
        self._line += text
        begin = self._line.lstrip(" \r")
        if len(self._line) > _LONGEST_LINE:
            self._end()
            self._line = None
        elif begin and begin[0] not in "`~":
            self._line = None

    def _end(self) -> None:
        found = _FENCE.match(self._line or "")
        if not found:
            return
        marks, info = found.groups()
        if self.fence:
            if marks.startswith(self.fence) and not info.strip():
                self.fence = ""
        elif marks[0] == "~" or "`" not in info:
            self.fence = marks
