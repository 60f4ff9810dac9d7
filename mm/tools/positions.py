"""Where something is in a text, as people, Python and language servers count it. Pure.

A model says which line and which name; it cannot count columns. A server counts lines from 0 and columns in
the units of its encoding: UTF-16 code units, or characters ("utf-32"). Here a place is (line, column), both
from 0, the column in characters.
"""

from __future__ import annotations

import re
from bisect import bisect_right

# How many lines above and below the one that the model gave are searched.
NEAR = 3

# As the protocol has it; str.splitlines() knows many more.
_LINE_END = re.compile("\r\n|\n|\r")
# What separates the parts of a qualified name.
_PARTS = re.compile(r"\.|::|->|#")
_CALL = re.compile(r"\(.*\)\s*$", re.DOTALL)


class Lines:
    """A text in lines, as the protocol cuts it; `starts` are their offsets."""

    def __init__(self, text: str):
        self.text = text
        self.starts, self._ends = [0], []
        for match in _LINE_END.finditer(text):
            self._ends.append(match.start())
            self.starts.append(match.end())
        self._ends.append(len(text))
        self._encoded = None, b""  # the line that was asked about last: very many edits may be in one line

    def __len__(self):
        return len(self.starts)

    def line(self, index: int) -> str:
        """The line without its end, "" if there is none."""
        return self.text[self.starts[index]:self._ends[index]] if 0 <= index < len(self.starts) else ""

    def whole(self, start: int, end: int) -> str:
        """All of the lines that two offsets lie on and between."""
        return self.text[self.starts[self.place(start)[0]]:self._ends[self.place(end)[0]]]

    def place(self, offset: int) -> tuple:
        """The (line, column) of an offset."""
        line = bisect_right(self.starts, offset) - 1
        return line, offset - self.starts[line]

    def offset(self, position, encoding: str) -> int:
        """The offset of a server's position. What is after the end of a line is its end, after the last line
        the end of the text, as the protocol has it."""
        line, units = _numbers(position)
        if line >= len(self.starts):
            return len(self.text)
        if encoding != "utf-32":
            if self._encoded[0] != line:
                self._encoded = line, self.line(line).encode("utf-16-le", "surrogatepass")
            units = len(self._encoded[1][:2 * units].decode("utf-16-le", "ignore"))
        return min(self.starts[line] + units, self._ends[line])


def units_of(line: str, column: int, encoding: str) -> int:
    """The units before a column."""
    if encoding != "utf-32" and not line.isascii():
        return len(line[:column].encode("utf-16-le", "surrogatepass")) // 2
    return column


def _numbers(position) -> tuple:
    """A server's position as two numbers; 0 for what is not a number."""
    values = (position.get("line"), position.get("character")) if isinstance(position, dict) else (0, 0)
    return tuple(value if isinstance(value, int) and value > 0 else 0 for value in values)


def is_position(position) -> bool:
    """Whether a server's position names a place: two numbers from 0."""
    values = (position.get("line"), position.get("character")) if isinstance(position, dict) else (None,)
    return all(isinstance(value, int) and value >= 0 for value in values)


def start_line(a_range) -> int:
    """The line, from 0, in which a server's range begins."""
    return _numbers(a_range.get("start") if isinstance(a_range, dict) else None)[0]


def occurrences(lines: Lines, symbol: str, near=None) -> tuple:
    """(places, elsewhere): where the model may mean the name, best first, and the lines, from 0, that have it
    at all.

    Of a qualified name (`A.b`, `A::b`) the last part. `near` is a line, from 0: its places, or else those of
    the nearest of the lines around it. Without it all places; of a qualified name those where it stands as it
    was given come first, then those after the first place of its owner.
    """
    name, whole = last_part(symbol), _CALL.sub("", symbol).strip()
    offsets = [match.start() for match in word(name).finditer(lines.text)]
    if name != whole:
        given = {match.end() - len(name) for match in word(whole).finditer(lines.text)}
        owner = word(_PARTS.split(whole)[-2]).search(lines.text) if len(_PARTS.split(whole)) > 1 else None
        begin = owner.end() if owner else 0
        offsets.sort(key=lambda offset: (offset not in given, offset < begin))  # stable
    places = [lines.place(offset) for offset in offsets]
    elsewhere = sorted({line for line, _ in places})
    if near is None:
        return places, elsewhere
    nearest = min((abs(line - near) for line in elsewhere), default=None)
    if nearest is None or nearest > NEAR:
        return [], elsewhere
    return [place for place in places if abs(place[0] - near) == nearest], elsewhere


def last_part(symbol: str) -> str:
    """`b` of `A.b`, `A::b` and `A.b()`."""
    plain = _CALL.sub("", symbol).strip()
    return _PARTS.split(plain)[-1] or plain


def word(name: str):
    """A pattern for the name as a whole word."""
    before = r"(?<!\w)" if re.match(r"\w", name) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", name) else ""
    return re.compile(before + re.escape(name) + after)
