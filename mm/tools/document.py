"""Document: a text in lines, of any size. Pure.

Line ends: a model writes \\n. A Document knows the file's own ones; it speaks of its text with \\n ends, `flat`, and gives
back the text itself for any part of that.

Texts are large and calls can be cancelled: there is no list of all lines. What has to go through the whole text does so
in pieces, and calls `check` between them, which raises something to break off.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from itertools import accumulate

# So many characters are worked on between two calls of `check`.
PIECE = 64 * 1024


def unchecked() -> None:
    """The check of those whom nobody interrupts."""


class Document:
    """A text in lines. A bare \\r ends lines only where there is no \\n at all.

    `flat` is the text with \\n ends, `newline` its most frequent end, `count` the number of lines; what follows the last
    line end is no line. `mixed` says that there are both \\n and \\r\\n.
    """

    def __init__(self, text: str, check=unchecked):
        check()
        self.text, self.check = text, check
        self.flat, self.newline, self.mixed = text, "\n", False
        if "\r" in text:
            self._find_line_ends()
        self.count = self.flat.count("\n") + (not self.ends and self.flat != "")
        self._feeds = None  # of a mixed text: the offsets of all line ends in flat, and of those that are two characters

    def _find_line_ends(self):
        feeds, pairs = self.text.count("\n"), self.text.count("\r\n")
        if pairs or not feeds:
            self.flat = _replaced(self.text, "\r\n" if pairs else "\r", "\n", self.check)
        if not feeds:
            self.newline = "\r"
        elif pairs * 2 > feeds:
            self.newline = "\r\n"
        self.mixed = 0 < pairs < feeds

    @property
    def ends(self) -> bool:
        """Whether the last line has a line end."""
        return self.flat.endswith("\n")

    def pieces(self):
        """All lines in their order, in lists of a good many."""
        if not self.flat:
            return
        position, last = 0, len(self.flat) - self.ends
        while position <= last:
            self.check()
            stop = self.flat.find("\n", position + PIECE, last)
            stop = last if stop < 0 else stop
            yield self.flat[position:stop].split("\n")
            position = stop + 1

    def lines(self, first: int, after: int) -> list:
        """The lines of these indexes, from 0."""
        after = min(after, self.count)
        if first >= after:
            return []
        start = self._start_of(first, 0)
        lines = self.flat[start:self._start_of(after - first, start)].split("\n")
        return lines[:after - first]

    def picked(self, indexes):
        """The lines of these ascending indexes."""
        line = position = 0
        for index in indexes:
            position = self._start_of(index - line, position)
            line = index
            end = self.flat.find("\n", position)
            yield self.flat[position:] if end < 0 else self.flat[position:end]

    def _start_of(self, line, position):
        """The offset in flat of the line that is so many after the one that begins at `position`."""
        while True:
            self.check()
            passed = self.flat.count("\n", position, position + PIECE)
            if passed >= line or position + PIECE >= len(self.flat):
                break
            line -= passed
            position += PIECE
        for _ in range(min(line, passed)):
            position = self.flat.index("\n", position) + 1
        return position if line <= passed else len(self.flat)

    def starts(self) -> list:
        """The offsets in flat of all lines, and where one more would begin."""
        starts = [0]
        for lines in self.pieces():
            begin = starts.pop()
            lengths = [len(line) + 1 for line in lines]
            lengths[0] += begin
            starts.append(begin)
            starts += accumulate(lengths)
        return starts

    def lines_at(self, offsets):
        """The indexes of the lines that hold the ascending offsets of `flat`."""
        position = line = 0
        for offset in offsets:
            line += self.flat.count("\n", position, offset)
            position = offset
            yield min(line, max(self.count - 1, 0))

    def line_at(self, offset: int) -> int:
        """The index of the line that holds the offset of `flat`."""
        return next(self.lines_at([offset]))

    def cut(self, start: int, end: int) -> str:
        """The text itself between two offsets of `flat`."""
        if not self.mixed:
            return _replaced(self.flat[start:end], "\n", self.newline, self.check)
        _, pairs = self._line_ends()
        return self.text[start + bisect_left(pairs, start):end + bisect_left(pairs, end)]

    def lines_and_ends(self, start: int, end: int) -> tuple:
        """What is between two offsets of `flat`, as lines and the line end behind each, none behind the last."""
        lines = self.flat[start:end].split("\n")
        if not self.mixed:
            return lines, [self.newline] * (len(lines) - 1) + [""]
        raw = self.cut(start, end).split("\n")
        return lines, ["\r\n" if line.endswith("\r") else "\n" for line in raw[:-1]] + [""]

    def ending_near(self, offset: int) -> str:
        """The line end that a new line takes at an offset of `flat`: the line's own, or the one before, or the usual."""
        if not self.mixed:
            return self.newline
        feeds, pairs = self._line_ends()
        feed = feeds[min(bisect_left(feeds, offset), len(feeds) - 1)]
        index = bisect_left(pairs, feed)
        return "\r\n" if index < len(pairs) and pairs[index] == feed else "\n"

    def _line_ends(self):
        if self._feeds is None:
            feeds = [offset - 1 for offset in self.starts()[1:]]
            pairs = []
            for match in re.finditer("\r\n", self.text):
                pairs.append(match.start() - len(pairs))
                if not len(pairs) % 4096:
                    self.check()
            self._feeds = (feeds if self.ends else feeds[:-1]), pairs
        return self._feeds


def flatten(text: str) -> str:
    """`text` with \\n line ends."""
    return text.replace("\r\n", "\n")


def with_newlines(text: str, newline: str) -> str:
    """`text` with every line end as `newline`."""
    text = flatten(text)
    return text if newline == "\n" else text.replace("\n", newline)


def places(text: str, part: str, check, shared: int = 0) -> array:
    """The offsets of `part` in `text`, which share at most so many characters with the one before."""
    found, position, step = array("q"), 0, max(4 * PIECE, 4 * len(part))
    while position + len(part) <= len(text):
        check()
        following = position + step
        stop = following + len(part) - 1
        start = text.find(part, position, stop)
        while start >= 0:
            found.append(start)
            position = start + len(part) - shared
            start = text.find(part, position, stop)
        position = max(position, following)
    return found


def _replaced(text, old, new, check):
    """str.replace in pieces, for line ends."""
    if old == new:
        return text
    done, position = [], 0
    while position < len(text):
        check()
        stop = position + 16 * PIECE
        stop += text[stop - 1:stop + 1] == "\r\n"  # a pair stays together
        done.append(text[position:stop].replace(old, new))
        position = stop
    return "".join(done)
