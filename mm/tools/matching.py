"""Finding the text that a model wants replaced, and replacing it without touching anything else. Pure.

Models copy text with other blanks and signs than the file has. These ways of finding it are tried, each only
if the one before found nothing, and nothing looser, because a similar place is often the wrong one:

    EXACT       as it is
    LOOKALIKE   with straight quotes, hyphens and plain blanks for typographic ones, on either side
    TRAILING    whole lines that are equal but for blanks at their ends
    BLANKS      whole lines that are equal with every run of blanks as one; empty lines around do not count
    NUMBERED    as BLANKS, without a column of line numbers before every line

What is found is given in terms of \\n line ends (mm.tools.document). What is replaced is spliced into the
file's text, and a line that the change leaves as it was keeps its bytes.
"""

from __future__ import annotations

import re
from collections import Counter, namedtuple

from mm.tools.document import Document, flatten

EXACT, LOOKALIKE, TRAILING, BLANKS, NUMBERED = "exact", "lookalike", "trailing", "blanks", "numbered"

# Where `old` was found: the level, the spans as (start, end) offsets in Document.flat, the lines of `old` and
# `new` as they compare with the lines of a span (without what the level ignores around them), and whether the
# indentation of `new` is that of `old` and has to become the file's.
Match = namedtuple("Match", "level spans old new reindents", defaults=(False,))

# One change as it came out: line numbers from 1 in the new text; `last` is `first` - 1 if lines were only
# removed.
Change = namedtuple("Change", "first last")

# One typographic sign each, and what keyboards and models have for it.
_PLAIN = str.maketrans({sign: plain for plain, signs in (
    ('"', "\u201c\u201d\u201e\u201f\u2033"), ("'", "\u2018\u2019\u201a\u201b\u2032"),
    ("-", "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"),
    (" ", "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"),
) for sign in signs})

# Similar text is looked for only in files with fewer lines than this, and in this many characters of a line.
_COMPARABLE_LINES, _COMPARABLE_CHARACTERS = 5000, 300
# At most this many places vote: a line may be in all of them.
_VOTES = 200_000
# Two texts are compared word by word only if they have at most this many.
_WORDS = 4000

_AROUND, _BEGINNING = 2, 20

_NUMBER = re.compile(r"[ \t]*(\d{1,7})(?:\t|[ \t]*[|→]|:)")


def find(document: Document, old: str, new: str) -> Match | None:
    """Where `old` is: all places at the first level that has any. `old` must not be empty."""
    old, new = flatten(old), flatten(new)
    starts = _places(document.flat, old)
    if starts:
        return Match(EXACT, [(start, start + len(old)) for start in starts], old.split("\n"), new.split("\n"))
    return _find_lookalikes(document, old, new) or _find_lines(document, old, new)


def _find_lookalikes(document, old, new):
    if document.flat.isascii() and old.isascii():
        return None
    spans = [(start, start + len(old)) for start in _places(plain(document.flat), plain(old))]
    if not spans:
        return None
    own = document.flat[slice(*spans[0])]
    return Match(LOOKALIKE, spans, own.split("\n"), _keep_own(old, own, new).split("\n"))


def _find_lines(document, old, new):
    removes = not new and old.endswith("\n")
    old, new = _whole_lines(old), [] if removes else _whole_lines(new)
    compared = {}  # the file's lines as a level compares them
    for level, key, old, new, reindents in _attempts(old, new):
        if key not in compared:
            compared[key] = "\n%s\n" % "\n".join(map(key, document.lines))
        lines = _line_places(compared[key], [key(line) for line in old])
        if lines:
            spans = [_line_span(document, line, line + len(old), removes) for line in lines]
            return Match(level, spans, old, new, reindents)
    return None


def _places(text, part, shared=0):
    """The offsets of `part` in `text`. Two places that follow each other may share `shared` characters."""
    found, start = [], text.find(part)
    while start >= 0:
        found.append(start)
        start = text.find(part, start + len(part) - shared)
    return found


def _line_places(text, wanted):
    """The indexes of the lines at which `wanted` begins."""
    line = position = 0
    found = []
    for place in _places(text, "\n%s\n" % "\n".join(wanted), 1):
        line += text.count("\n", position, place)
        position = place
        found.append(line)
    return found


def _line_span(document, first, after, with_end):
    """The offsets of whole lines, without the end of the last one unless they are to go altogether."""
    start, end = document.starts()[first], document.starts()[after] - 1
    if with_end and end < len(document.flat):
        end += 1
    elif with_end and first:  # the last line of a file without a final line end: the one before it goes
        start -= 1
    return start, end


def _attempts(old, new):
    if not any(map(str.strip, old)):
        return  # blank lines are everywhere
    yield (TRAILING, str.rstrip, old, new, False)
    yield (BLANKS, _collapse, *_without_margins(old, new), True)
    unnumbered, marked = _without_numbers(old), _without_numbers(new, False)
    if unnumbered and marked:
        yield (NUMBERED, _collapse, *_without_margins(unnumbered, marked), True)
    elif unnumbered and not any(_NUMBER.match(line) for line in new):
        # `new` is already written as it should be in the file.
        yield (NUMBERED, _collapse, *_without_margins(unnumbered, new), False)


def _whole_lines(text):
    return (text[:-1] if text.endswith("\n") else text).split("\n")


def _collapse(line):
    return " ".join(line.split())


def _without_margins(old, new):
    """Both without the empty lines around `old`; from `new` no more are taken than from `old`."""
    old, new = list(old), list(new)
    for end in (0, -1):
        while not old[end].strip():
            del old[end]
            if new and not new[end].strip():
                del new[end]
    return old, new


def _without_numbers(lines, counting=True):
    """The lines without a column of numbers, or None if a filled line has no number or nothing else is left.

    `counting`: the numbers must go up by one, which a list of other things with numbers before them rarely
    does.
    """
    found = [_NUMBER.match(line) for line in lines if line.strip()]
    if not found or not all(found):
        return None
    numbers = [int(match.group(1)) for match in found]
    if counting and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    rest = [_NUMBER.sub("", line, count=1) for line in lines]
    return rest if any(map(str.strip, rest)) else None


def plain(text: str) -> str:
    """`text` with a plain sign for each typographic one; of the same length."""
    return text if text.isascii() else text.translate(_PLAIN)


def difference(document: Document, first: int, old: str) -> str:
    """The first sign from that line on that only looks like one of `old`: `line 12 has U+201C where you sent
    "`.

    "" if there is none. `old` begins at the line `first`, an index.
    """
    for index, sent in enumerate(old.split("\n"), first):
        own = document.lines[index] if 0 <= index < len(document.lines) else ""
        alike = {plain(sign): sign for sign in dict.fromkeys(sent)}
        for sign in dict.fromkeys(own):
            yours = alike.get(plain(sign), sign)
            if sign not in sent and yours != sign:
                return f"line {index + 1} has U+{ord(sign):04X} where you sent {'a blank' if yours == ' ' else yours}"
    return ""


def _keep_own(old, own, new):
    """`new` with the signs of `own` in place of those of `old`, as far as the change leaves them alone."""
    words, mine, others = (re.findall(r"\w+|\W", text) for text in (old, own, new))
    if max(len(words), len(others)) > _WORDS:
        return new
    kept = []
    for tag, i1, i2, j1, j2 in _edits(words, others):
        kept += mine[i1:i2] if tag == "equal" else others[j1:j2]
    return "".join(kept)


def replace(document: Document, match: Match) -> tuple:
    """The text with all spans replaced, and the Changes."""
    edits = _edits(match.old, match.new)
    first, last = _changed(edits)
    pieces, changes, position = [], [], 0
    above = 0  # the lines before this place, as they come out
    for start, end in match.spans:
        above += document.flat.count("\n", position, start)
        changes.append(Change(above + first + 1, above + last))
        above += max(len(match.new) - 1, 0)
        pieces += [document.cut(position, start), _replacement(document, match, edits, start, end)]
        position = end
    pieces.append(document.cut(position, len(document.flat)))
    return "".join(pieces), changes


def _edits(old, new):
    """How one list comes out of the other, as difflib's opcodes. Only what differs is searched."""
    import difflib  # 2 ms, for edits alone

    shortest = min(len(old), len(new))
    before = next((at for at in range(shortest) if old[at] != new[at]), shortest)
    after = next((at for at in range(shortest - before) if old[-1 - at] != new[-1 - at]), shortest - before)
    middle_old, middle_new = old[before:len(old) - after], new[before:len(new) - after]
    matcher = difflib.SequenceMatcher(None, middle_old, middle_new)
    edits = [("equal", 0, before, 0, before)]
    edits += [(tag, i1 + before, i2 + before, j1 + before, j2 + before)
              for tag, i1, i2, j1, j2 in matcher.get_opcodes()]
    edits.append(("equal", len(old) - after, len(old), len(new) - after, len(new)))
    return edits


def _changed(edits):
    """Which lines (from, to) of those that come in a span's place are new."""
    new = [(j1, j2) for tag, _, _, j1, j2 in edits if tag != "equal"]
    return (new[0][0], new[-1][1]) if new else (edits[-1][4], 0)


def _replacement(document, match, edits, start, end):
    """What comes in a span's place. Lines in both `old` and `new` stay the file's own."""
    if not match.new:
        return ""
    own, ends = document.flat[start:end].split("\n"), document.ends_within(start, end) + [""]
    usual = document.ending_near(start)
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
    """Turns a line indented as `old` is into one indented as the file is, by the lines that are in both.

    An indentation that `old` has becomes what it is in the file. Any other is taken from the closest that
    `old` has, and the rest of it is turned from spaces to tabs or back if the file needs that.
    """

    def __init__(self, old, own, new):
        self._table = {}
        for old_line, own_line in zip(old, own):
            if old_line.strip():
                self._table.setdefault(_indent(old_line), _indent(own_line))
        self._same = all(source == target for source, target in self._table.items())
        # How many spaces one tab is.
        self._unit = min((len(_indent(line)) for line in old + new if line.startswith(" ")), default=4)
        for source, target in self._table.items():
            spaces, tabs = (target, source) if "\t" in source else (source, target)
            if spaces and not spaces.strip(" ") and tabs and not tabs.strip("\t"):
                self._unit = max(len(spaces) // len(tabs), 1)

    def __call__(self, line):
        indent, text = _indent(line), line.lstrip(" \t")
        if not text or self._same:
            return line
        shorter = [source for source in self._table if indent.startswith(source)]
        if shorter:
            closest = max(shorter, key=len)
            return self._table[closest] + self._turned(indent[len(closest):]) + text
        closest = min(self._table, key=len)
        if not closest.startswith(indent):
            return line
        target, surplus = self._table[closest], self._turned(closest[len(indent):])
        return (target[:-len(surplus)] if target.endswith(surplus) else "") + text

    def _turned(self, blanks):
        kinds = set("".join(self._table.values()))
        if kinds == {"\t"}:
            tabs, spaces = divmod(len(blanks.expandtabs(self._unit)), self._unit)
            return "\t" * tabs + " " * spaces
        return blanks.expandtabs(self._unit) if kinds == {" "} else blanks


def _indent(line):
    return line[:len(line) - len(line.lstrip(" \t"))]


def nearest(document: Document, old: str) -> tuple:
    """(first, after, at): the lines of the file that are most like `old`, and the one at which it would
    begin.

    Without any that are like it, the beginning of the file, and None.
    """
    sought, keys = ([_collapse(plain(line)) for line in lines] for lines in (_whole_lines(old), document.lines))
    at = _best_offset(keys, sought)
    if at is None and len(keys) < _COMPARABLE_LINES:
        at = _by_longest_line(keys, sought)
    if at is None:
        return 0, min(_BEGINNING, len(keys)), None
    return max(at - _AROUND, 0), min(at + len(sought) + _AROUND, len(keys)), at


def _best_offset(keys, sought):
    """Where most of the lines are in their place, by votes, the rarest first. A lone bracket has no vote."""
    places = {key: [] for key in sought if sum(map(str.isalnum, key)) > 2}
    for index, key in enumerate(keys):
        if key in places:
            places[key].append(index)
    votes, cast = Counter(), 0
    for index, key in sorted(enumerate(sought), key=lambda voter: len(places.get(voter[1], ()))):
        if key in places and cast < _VOTES:
            votes.update(place - index for place in places[key])
            cast += len(places[key])
    most = max(votes.values(), default=0)
    return min((offset for offset, count in votes.items() if count == most), default=None)


def _by_longest_line(keys, sought):
    """Where the line is that is most like the longest one sought."""
    import difflib

    longest = max(sought, key=len)
    lines = [key[:_COMPARABLE_CHARACTERS] for key in keys]
    close = difflib.get_close_matches(longest[:_COMPARABLE_CHARACTERS], lines, 1)
    return lines.index(close[0]) - sought.index(longest) if close else None
