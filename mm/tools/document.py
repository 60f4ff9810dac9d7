"""Document: a text in lines. Pure.

Models write \\n line ends. A Document knows the file's own. It describes its text with \\n ends, `flat`, and
returns the text itself for any part of that.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate


class Document:
    """A text in lines. A bare \\r ends lines only if there is no \\n at all.

    `flat` is the text with \\n ends, `newline` its most frequent end, `lines` its lines; what follows the
    last line end is not a line. `ends` says whether the last line has a line end.
    """

    def __init__(self, text: str):
        self.text = text
        feeds, pairs = text.count("\n"), text.count("\r\n")
        self.newline = "\r\n" if pairs * 2 > feeds else "\n" if feeds or "\r" not in text else "\r"
        self.flat = text.replace("\r\n" if feeds else "\r", "\n")
        self.ends = self.flat.endswith("\n")
        self.lines = self.flat.split("\n")
        if self.ends or not self.flat:
            self.lines.pop()
        self._starts = self._pairs = None

    def starts(self) -> list:
        """The offsets in `flat` of all lines, and that of a line after the last."""
        if self._starts is None:
            self._starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        return self._starts

    def line_at(self, offset: int) -> int:
        """The index of the line that holds an offset of `flat`."""
        return max(min(bisect_right(self.starts(), offset) - 1, len(self.lines) - 1), 0)

    def cut(self, start: int, end: int) -> str:
        """The text itself between two offsets of `flat`."""
        return self.text[self._in_text(start):self._in_text(end)]

    def ends_within(self, start: int, end: int) -> list:
        """The line ends between two offsets of `flat`, as they are in the text."""
        feeds = (start + match.start() for match in re.finditer("\n", self.flat[start:end]))
        return [self.cut(feed, feed + 1) for feed in feeds]

    def ending_near(self, offset: int) -> str:
        """The line end for a new line at an offset of `flat`: the line's own, the one before, the usual."""
        feed = self.flat.find("\n", offset)
        if feed < 0:
            feed = self.flat.rfind("\n", 0, offset)
        return self.newline if feed < 0 else self.cut(feed, feed + 1)

    def _in_text(self, offset):
        if self._pairs is None:
            pairs = re.finditer("\r\n", self.text) if "\n" in self.text else ()
            self._pairs = [match.start() - index for index, match in enumerate(pairs)]
        return offset + bisect_left(self._pairs, offset)


def flatten(text: str) -> str:
    """`text` with \\n line ends."""
    return text.replace("\r\n", "\n")


def with_newlines(text: str, newline: str) -> str:
    """`text` with every line end as `newline`."""
    text = flatten(text)
    return text if newline == "\n" else text.replace("\n", newline)
