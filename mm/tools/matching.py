"""Finding the text that a model wants replaced, and replacing it without touching anything else. Pure.

Models copy text with other blanks than the file has. Four ways of finding it are tried, each only when the one before
found nothing, and nothing looser, because a similar place is often the wrong one:

    1  exactly
    2  whole lines that are equal but for blanks at their ends
    3  whole lines that are equal with every run of blanks as one; empty lines around the text do not count
    4  as 3, without the column of line numbers that stands before every line

Line ends: a model writes \\n. A Document knows the file's own ones; what is found and said is in terms of \\n, what is
replaced is spliced into the file's text, and a line that the change leaves as it was keeps its bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, namedtuple

EXACT, TRAILING, BLANKS, NUMBERED = 1, 2, 3, 4

# Where `old` was found: the level, the spans as (start, end) offsets in Document.flat, the lines of `old` and `new` as
# they compare with the lines of a span (without what the level ignores around them), and whether the indentation of
# `new` is that of `old` and has to become the file's.
Match = namedtuple("Match", "level spans old new reindents")

# One change as it came out: line numbers from 1 in the new text; `last` is `first` - 1 where lines were only removed.
Change = namedtuple("Change", "first last")

# Nearest text is looked for by similarity only in files below so many lines: it takes a second at 20,000.
_COMPARABLE_LINES = 5000
_AROUND = 2
_BEGINNING = 20

_INDENT = re.compile(r"[ \t]*")
_NUMBER = re.compile(r"[ \t]*(\d{1,7})(?:\t|[ \t]*[|→]|:)")


class Document:
    """A text in lines: `lines` without and `endings` with their ends ("\\n", "\\r\\n", "\\r", "" at the end only).

    A bare \\r ends lines only where there is no \\n at all. `flat` is the text with \\n ends, `newline` the most
    frequent end.
    """

    def __init__(self, text: str):
        self.text = text
        if "\n" not in text and "\r" in text:
            self.lines = text.split("\r")
            self.endings = ["\r"] * len(self.lines)
        else:
            raw = text.split("\n")
            self.endings = ["\r\n" if line.endswith("\r") else "\n" for line in raw]
            self.endings[-1] = ""
            self.lines = [line[:-1] if end == "\r\n" else line for line, end in zip(raw, self.endings)]
        self.endings[-1] = ""
        if not self.lines[-1]:  # what follows the last line end is no line
            self.lines.pop()
            self.endings.pop()
        self.newline = max(("\n", "\r\n", "\r"), key=self.endings.count)
        self.flat = text
        if "\r" in text:
            self.flat = "".join(line + ("\n" if end else "") for line, end in zip(self.lines, self.endings))
        self.starts = []  # of the lines, in flat
        offset = 0
        for line in self.lines:
            self.starts.append(offset)
            offset += len(line) + 1
        self._doubled = [start + len(line) for start, line, end in zip(self.starts, self.lines, self.endings)
                         if end == "\r\n"]  # the offsets in flat of line ends that are two characters in text

    def line_at(self, offset: int) -> int:
        """The index of the line that holds the offset of `flat`."""
        return max(bisect_right(self.starts, offset) - 1, 0)

    def cut(self, start: int, end: int) -> str:
        """The text itself between two offsets of `flat`."""
        return self.text[start + bisect_left(self._doubled, start):end + bisect_left(self._doubled, end)]

    def ending_near(self, offset: int) -> str:
        """The line end that a new line takes at an offset of `flat`: the line's own, or the one before, or the usual."""
        index = self.line_at(offset)
        for line in (index, index - 1):
            if 0 <= line < len(self.endings) and self.endings[line]:
                return self.endings[line]
        return self.newline


def flatten(text: str) -> str:
    """`text` with \\n line ends."""
    return text.replace("\r\n", "\n")


def with_newlines(text: str, newline: str) -> str:
    """`text` with every line end as `newline`."""
    text = flatten(text)
    return text if newline == "\n" else text.replace("\n", newline)


def find(document: Document, old: str, new: str) -> Match | None:
    """Where `old` stands: all places at the first level that has any. `old` must not be empty."""
    old, new = flatten(old), flatten(new)
    spans = _occurrences(document.flat, old)
    if spans:
        return Match(EXACT, spans, old.split("\n"), new.split("\n"), False)
    removes = not new and old.endswith("\n")
    old, new = _whole_lines(old), [] if removes else _whole_lines(new)
    for level, key, old, new, reindents in _attempts(old, new):
        places = _line_places([key(line) for line in document.lines], [key(line) for line in old])
        if places:
            spans = [_line_span(document, place, place + len(old), removes) for place in places]
            return Match(level, spans, old, new, reindents)
    return None


def _attempts(old, new):
    if not any(map(str.strip, old)):
        return  # blank lines are everywhere
    yield (TRAILING, str.rstrip, old, new, False)
    yield (BLANKS, _collapse, *_without_margins(old, new), True)
    unnumbered, marked = _without_numbers(old), _without_numbers(new, False)
    if unnumbered and marked:
        yield (NUMBERED, _collapse, *_without_margins(unnumbered, marked), True)
    elif unnumbered and not any(_NUMBER.match(line) for line in new):
        yield (NUMBERED, _collapse, *_without_margins(unnumbered, new), False)  # written as it is to stand in the file


def _occurrences(text, part):
    spans = []
    start = text.find(part)
    while start >= 0:
        spans.append((start, start + len(part)))
        start = text.find(part, start + len(part))
    return spans


def _whole_lines(text):
    return (text[:-1] if text.endswith("\n") else text).split("\n")


def _collapse(line):
    return " ".join(line.split())


def _without_margins(old, new):
    """Both without the empty lines around `old`; from `new` no more are taken than from `old`."""
    filled = [index for index, line in enumerate(old) if line.strip()]
    before, after = filled[0], len(old) - 1 - filled[-1]
    first, last = 0, len(new)
    while first < min(before, last) and not new[first].strip():
        first += 1
    while last > max(len(new) - after, first) and not new[last - 1].strip():
        last -= 1
    return old[before:len(old) - after], new[first:last]


def _without_numbers(lines, counting=True):
    """The lines without the column of numbers that every filled one begins with; None where one has none, or nothing is left.

    `counting`: the numbers must go up by one, which a list of other things with numbers before them rarely does.
    """
    found = [_NUMBER.match(line) for line in lines if line.strip()]
    if not found or not all(found):
        return None
    numbers = [int(match.group(1)) for match in found]
    if counting and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    rest = [_NUMBER.sub("", line, count=1) for line in lines]
    return rest if any(map(str.strip, rest)) else None


def _line_places(keys, wanted):
    places, index, count = [], 0, len(wanted)
    while True:
        try:
            index = keys.index(wanted[0], index)
        except ValueError:
            return places
        if keys[index:index + count] == wanted:
            places.append(index)
            index += count
        else:
            index += 1


def _line_span(document, first, after, with_end):
    """The offsets of whole lines, without the end of the last one unless they are to go altogether."""
    start = document.starts[first]
    end = document.starts[after - 1] + len(document.lines[after - 1])
    if with_end and document.endings[after - 1]:
        end += 1
    elif with_end and first:  # the last line of a file without a final line end: the one before it goes
        start -= 1
    return start, end


def replace(document: Document, match: Match) -> tuple:
    """The text with all spans replaced, and the Changes."""
    pieces, changes = [], []
    position = shift = 0  # in flat; lines added before this place
    for start, end in match.spans:
        lines, first, last = _replacement(document, match, start, end)
        pieces += [document.cut(position, start), "".join(lines)]
        above = document.line_at(start) + shift
        changes.append(Change(above + first + 1, above + last))
        shift += max(len(lines) - 1, 0) - document.flat.count("\n", start, end)
        position = end
    pieces.append(document.cut(position, len(document.flat)))
    return "".join(pieces), changes


def _replacement(document, match, start, end):
    """What comes in a span's place, as lines with their ends, and which of these (from, to) are new.

    Lines that are the same in `old` and `new` stay the file's own, with their blanks and line ends.
    """
    if not match.new:
        return [], 0, 0
    index = document.line_at(start)
    own = document.flat[start:end].split("\n")
    ends = document.endings[index:index + len(own) - 1] + [""]
    usual = document.ending_near(start)
    reindent = _Indents(match.old, own, match.new) if match.reindents else None
    import difflib  # 2 ms, for edits alone
    lines, first, last = [], len(match.new), 0
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, match.old, match.new, False).get_opcodes():
        if tag == "equal":
            lines += zip(own[i1:i2], ends[i1:i2])
            continue
        first, last = min(first, j1), max(last, j2)
        for j in range(j1, j2):
            line = reindent(match.new[j]) if reindent else match.new[j]
            lines.append((line, ends[min(i1 + j - j1, i2 - 1)] if i1 < i2 else usual))
    return [line + (end or usual) for line, end in lines[:-1]] + [lines[-1][0]], first, last


class _Indents:
    """Turns a line indented as `old` is into one indented as the file is, by the lines that stand in both.

    An indentation that stands in `old` becomes what it is in the file. One that does not is taken from the closest that
    does, and the rest of it turned from spaces to tabs or back where the file needs that.
    """

    def __init__(self, old, own, new):
        self._table = {}
        for old_line, own_line in zip(old, own):
            if old_line.strip():
                self._table.setdefault(_indent(old_line), _indent(own_line))
        self._same = all(source == target for source, target in self._table.items())
        targets = "".join(self._table.values())
        self._tabs = "\t" in targets
        self._spaces = " " in targets
        self._unit = self._find_unit(old + new)

    def _find_unit(self, lines):
        """How many spaces stand for one tab between `old` and the file."""
        for source, target in self._table.items():
            spaces, tabs = (target, source) if "\t" in source else (source, target)
            if spaces and tabs and not spaces.strip(" ") and not tabs.strip("\t"):
                return max(len(spaces) // len(tabs), 1)
        steps = [len(_indent(line)) for line in lines if line.startswith(" ")]
        return min(steps, default=4)

    def __call__(self, line):
        indent, text = _indent(line), line.lstrip(" \t")
        if not text or self._same:
            return line
        if indent in self._table:
            return self._table[indent] + text
        known = [source for source in self._table if indent.startswith(source)]
        if known:
            closest = max(known, key=len)
            return self._table[closest] + self._turn(indent[len(closest):]) + text
        closest = min(self._table, key=len, default="")
        target = self._table.get(closest, "")
        surplus = self._turn(closest[len(indent):]) if closest.startswith(indent) else ""
        if surplus and target.endswith(surplus):
            return target[:-len(surplus)] + text
        return (indent if not surplus else "") + text

    def _turn(self, blanks):
        if self._tabs and not self._spaces:
            tabs, spaces = divmod(len(blanks.expandtabs(self._unit)), self._unit)
            return "\t" * tabs + " " * spaces
        if self._spaces and not self._tabs:
            return blanks.expandtabs(self._unit)
        return blanks


def _indent(line):
    return _INDENT.match(line).group()


def nearest(document: Document, old: str) -> tuple:
    """The lines of the file that are most like `old`, as (first, after) indexes; its beginning where none is like it."""
    lines, wanted = document.lines, _whole_lines(flatten(old))
    found = _best_offset(lines, wanted)
    if found is None and len(lines) < _COMPARABLE_LINES:
        found = _by_longest_line(lines, wanted)
    if found is None:
        return 0, min(_BEGINNING, len(lines))
    return max(found - _AROUND, 0), min(found + len(wanted) + _AROUND, len(lines))


def _best_offset(lines, wanted):
    """Where most lines of `wanted` stand in their place, by votes. A lone bracket has no vote."""
    places = {}
    for index, line in enumerate(lines):
        places.setdefault(_collapse(line), []).append(index)
    votes = Counter()
    for index, line in enumerate(wanted):
        key = _collapse(line)
        if sum(map(str.isalnum, key)) > 2:
            votes.update(place - index for place in places.get(key, ()))
    return max(votes, key=lambda offset: (votes[offset], -offset)) if votes else None


def _by_longest_line(lines, wanted):
    import difflib
    longest = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    keys = [_collapse(line) for line in lines]
    close = difflib.get_close_matches(_collapse(wanted[longest]), keys, 1)
    return keys.index(close[0]) - longest if close else None
