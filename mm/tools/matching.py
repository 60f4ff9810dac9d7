"""Finding the text that a model wants replaced, and replacing it without touching anything else. Pure.

Models copy text with other blanks than the file has. Four ways of finding it are tried, each only when the one before
found nothing, and nothing looser, because a similar place is often the wrong one:

    1  exactly
    2  whole lines that are equal but for blanks at their ends
    3  whole lines that are equal with every run of blanks as one; empty lines around the text do not count
    4  as 3, without the column of line numbers that stands before every line

What is found is said in terms of \\n line ends (see mm.tools.document); what is replaced is spliced into the file's text, and
a line that the change leaves as it was keeps its bytes. Whatever takes long calls the document's check meanwhile.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, namedtuple
from collections.abc import Sequence
from itertools import islice

from mm.tools.document import PIECE, Document, flatten, places

EXACT, TRAILING, BLANKS, NUMBERED = 1, 2, 3, 4

# Where `old` was found: the level, the spans as (start, end) offsets in Document.flat, the lines of `old` and `new` as
# they compare with the lines of a span (without what the level ignores around them), and whether the indentation of
# `new` is that of `old` and has to become the file's.
Match = namedtuple("Match", "level spans old new reindents")

# One change as it came out: line numbers from 1 in the new text; `last` is `first` - 1 where lines were only removed.
Change = namedtuple("Change", "first last")

# Nearest text is looked for by similarity only in files below so many lines: it takes a second at 20,000.
_COMPARABLE_LINES = 5000
# What is compared of a line then, and from where on two are alike.
_COMPARABLE_CHARACTERS = 300
_LIKE = 0.6
# So many places vote at most, where lines stand in hundreds of thousands of them.
_VOTES = 200000
# From so many lines on, those that are everywhere are no help in comparing `old` and `new`.
_FREQUENT_COUNT = 1000
# So many replacements are made between two calls of the document's check.
_AT_ONCE = 4096

_AROUND = 2
_BEGINNING = 20

_INDENT = re.compile(r"[ \t]*")
_NUMBER = re.compile(r"[ \t]*(\d{1,7})(?:\t|[ \t]*[|→]|:)")


def find(document: Document, old: str, new: str) -> Match | None:
    """Where `old` stands: all places at the first level that has any. `old` must not be empty."""
    old, new = flatten(old), flatten(new)
    spans = _Spans(places(document.flat, old, document.check), len(old))
    if spans:
        return Match(EXACT, spans, old.split("\n"), new.split("\n"), False)
    removes = not new and old.endswith("\n")
    old, new = _whole_lines(old), [] if removes else _whole_lines(new)
    texts = {}  # the lines as a level compares them
    for level, key, old, new, reindents in _attempts(old, new):
        if key not in texts:
            texts[key] = _compared(document, key)
        lines = _line_places(texts[key], [key(line) for line in old], document.check)
        if lines:
            starts = document.starts()
            spans = [_line_span(document, starts, line, line + len(old), removes) for line in lines]
            return Match(level, spans, old, new, reindents)
    return None


class _Spans(Sequence):
    """Spans of one length, of which there may be a million."""

    def __init__(self, starts, length):
        self._starts, self._length = starts, length

    def __len__(self):
        return len(self._starts)

    def __getitem__(self, index):
        return self._starts[index], self._starts[index] + self._length

    def __iter__(self):
        return ((start, start + self._length) for start in self._starts)


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


def _whole_lines(text):
    return (text[:-1] if text.endswith("\n") else text).split("\n")


def _collapse(line):
    return " ".join(line.split())


def _compared(document, key):
    """The text of all lines as `key` gives them, each between two \\n."""
    pieces = ["\n".join(_keys(document, key, lines)) for lines in document.pieces()]
    return "\n" + "".join(piece + "\n" for piece in pieces)


def _keys(document, key, lines):
    if key is _collapse and max(map(len, lines)) > PIECE:
        return [_collapse_long(line, document.check) for line in lines]
    return map(key, lines)


def _collapse_long(line, check):
    """_collapse, in pieces."""
    done = []
    for position in range(0, len(line), PIECE):
        check()
        piece = line[position:position + PIECE]
        words = _collapse(piece)
        if words:
            apart = done and (piece[0].isspace() or line[position - 1].isspace())
            done += [" ", words] if apart else [words]
    return "".join(done)


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


def _line_places(text, wanted, check):
    """The indexes of the lines at which `wanted` begins."""
    line = position = 0
    found = []
    for place in places(text, "\n%s\n" % "\n".join(wanted), check, 1):
        line += text.count("\n", position, place)
        position = place
        found.append(line)
    return found


def _line_span(document, starts, first, after, with_end):
    """The offsets of whole lines, without the end of the last one unless they are to go altogether."""
    start, end = starts[first], starts[after] - 1
    if with_end and end < len(document.flat):
        end += 1
    elif with_end and first:  # the last line of a file without a final line end: the one before it goes
        start -= 1
    return start, end


def replace(document: Document, match: Match) -> tuple:
    """The text with all spans replaced, and the Changes."""
    edits = _edits(match.old, match.new)
    same = _same_everywhere(document, match)
    changes = _Changes(*_changed(edits))
    pieces, flat, position = [], document.flat, 0
    above = 0  # the lines before this place, as they come out
    spans, made = iter(match.spans), {}
    for _ in range(0, len(match.spans), _AT_ONCE):
        document.check()
        begin = position
        for start, end in islice(spans, _AT_ONCE):
            above += flat.count("\n", position, start)
            changes.add(above)
            above += max(len(match.new) - 1, 0)
            if same is None:
                pieces += [document.cut(position, start), _replacement(document, match, edits, start, end, made)]
            position = end
        if same is not None:  # the pieces between are not worth the time, and this finds the same places
            pieces.append(document.cut(begin, position).replace(*same))
    pieces.append(document.cut(position, len(flat)))
    return "".join(pieces), changes


class _Changes(Sequence):
    """The Changes of like replacements, of which there may be a million."""

    def __init__(self, first, last):
        self._above = array("q")  # the number of lines before each, as they come out
        self._first, self._last = first, last
        self.add = self._above.append

    def __len__(self):
        return len(self._above)

    def __getitem__(self, index):
        above = self._above[index]
        return Change(above + self._first + 1, above + self._last)


def _edits(old, new):
    """How `new` comes out of `old`, as difflib's opcodes; what both begin and end with is not searched."""
    import difflib  # 2 ms, for edits alone
    shortest = min(len(old), len(new))
    before = after = 0
    while before < shortest and old[before] == new[before]:
        before += 1
    while after < shortest - before and old[-1 - after] == new[-1 - after]:
        after += 1
    middle_old, middle_new = old[before:len(old) - after], new[before:len(new) - after]
    matcher = difflib.SequenceMatcher(None, middle_old, middle_new, len(middle_new) > _FREQUENT_COUNT)
    edits = [("equal", 0, before, 0, before)]
    edits += [(tag, i1 + before, i2 + before, j1 + before, j2 + before) for tag, i1, i2, j1, j2 in matcher.get_opcodes()]
    edits.append(("equal", len(old) - after, len(old), len(new) - after, len(new)))
    return edits


def _changed(edits):
    """Which lines (from, to) of those that come in a span's place are new."""
    new = [(j1, j2) for tag, _, _, j1, j2 in edits if tag != "equal"]
    return (new[0][0], new[-1][1]) if new else (edits[-1][4], 0)


def _same_everywhere(document, match):
    """(old, new) as they stand in the text, for str.replace; None where that depends on the place."""
    if match.level != EXACT or document.mixed and max(len(match.old), len(match.new)) > 1:
        return None
    if "\r" in document.text and any("\r" in line for line in match.old):
        return None  # it could be found in a line end
    return document.newline.join(match.old), document.newline.join(match.new)


def _replacement(document, match, edits, start, end, made):
    """What comes in a span's place; `made` keeps what has been made, by what it depends on.

    Lines that are the same in `old` and `new` stay the file's own, with their blanks and line ends.
    """
    if not match.new:
        return ""
    depends = document.cut(start, end), document.ending_near(start)
    if depends not in made:
        made[depends] = _made(match, edits, *document.lines_and_ends(start, end), depends[1])
    return made[depends]


def _made(match, edits, own, ends, usual):
    reindent = _Indents(match.old, own, match.new) if match.reindents else None
    lines = []
    for tag, i1, i2, j1, j2 in edits:
        if tag == "equal":
            lines += zip(own[i1:i2], ends[i1:i2])
            continue
        for j in range(j1, j2):
            line = reindent(match.new[j]) if reindent else match.new[j]
            lines.append((line, ends[min(i1 + j - j1, i2 - 1)] if i1 < i2 else usual))
    return "".join([line + (end or usual) for line, end in lines[:-1]] + [lines[-1][0]])


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
    wanted = _whole_lines(flatten(old))
    found = _best_offset(document, wanted)
    if found is None and document.count < _COMPARABLE_LINES:
        found = _by_longest_line(document, wanted)
    if found is None:
        return 0, min(_BEGINNING, document.count)
    return max(found - _AROUND, 0), min(found + len(wanted) + _AROUND, document.count)


def _best_offset(document, wanted):
    """Where most lines of `wanted` stand in their place, by votes, the rarest lines first. A lone bracket has no vote."""
    keys = [_collapse(line) for line in wanted]
    standing = {key: [] for key in keys if sum(map(str.isalnum, key)) > 2}
    if not standing:
        return None
    above = 0
    for lines in document.pieces():
        for index, key in enumerate(_keys(document, _collapse, lines), above):
            known = standing.get(key)
            if known is not None and len(known) < _VOTES:
                known.append(index)
        above += len(lines)
    votes, cast = Counter(), 0
    voters = [(standing[key], index) for index, key in enumerate(keys) if key in standing]
    for known, index in sorted(voters, key=lambda voter: len(voter[0])):
        document.check()
        if cast < _VOTES:
            votes.update(place - index for place in known)
            cast += len(known)
    most = max(votes.values(), default=0)
    return min((offset for offset, count in votes.items() if count == most), default=None)


def _by_longest_line(document, wanted):
    """Where the line stands that is most like the longest of `wanted`; as difflib.get_close_matches has it."""
    import difflib
    longest = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    matcher = difflib.SequenceMatcher()
    matcher.set_seq2(_collapse(wanted[longest])[:_COMPARABLE_CHARACTERS])
    best, found, index = (_LIKE, ""), None, 0
    for lines in document.pieces():
        for key in _keys(document, _collapse, lines):
            document.check()
            key = key[:_COMPARABLE_CHARACTERS]
            matcher.set_seq1(key)
            if matcher.real_quick_ratio() >= _LIKE and matcher.quick_ratio() >= _LIKE:
                score = matcher.ratio(), key
                if score > best:
                    best, found = score, index
            index += 1
    return found - longest if found is not None else None
