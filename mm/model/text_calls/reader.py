"""The text of an answer while it streams in: calls and reasoning are separated from what is meant for the
user (pure).

Text that cannot begin anything leaves with the read that brought it. Where something may begin, a few
characters wait until that is decided. Once a call has begun, everything waits until it is complete or
disproved; what follows it waits for the end (mm.model.text_calls.held). Each character takes part in at most
one attempt to read a call, so the work is linear. What comes out does not depend on how the text was cut.
"""

from __future__ import annotations

import re
from collections import namedtuple

from mm.events import Text, Thought
from mm.model.text_calls.held import Found, Held
from mm.model.text_calls.lines import Lines
from mm.model.text_calls.openers import (AT_LINE, AT_LINE_PREFIXES, HARMONY, HARMONY_ENDS, HEADERS, IN_LINE,
                                         IN_LINE_PREFIXES, LONE_ENDS, LONGEST, START_PREFIXES, THINK,
                                         prefixes)

# Whitespace that may stand before an opener: the most that waits.
_MOST_SPACE = 32

# A call of so many characters is looked at with each piece, so that what is not one leaves at once.
_SHORT = 256

# The header of gpt-oss's next message follows its reasoning without a line end.
_HEADER_IN_LINE = re.compile(r"(?=assistant(?:commentary|analysis)? to=)")

# A line's end with the whitespace after it, or a bracket. It begins with a set because that makes the search
# quicker.
_POINT = re.compile(r"[<\[\r\n](?:(?<=[\r\n])\s*)?")
_SPACE = re.compile(r"\s*")

# What ends reasoning, and the beginnings of it. `kept`: those that are not taken, because they begin the next
# message.
_Ends = namedtuple("_Ends", "pattern prefixes kept")


def _ends(*literals: str, kept: tuple = ()) -> _Ends:
    return _Ends(re.compile("|".join(map(re.escape, literals + kept))), prefixes(literals + kept), kept)


_THINK_ENDS = {opener: _ends(closer) for opener, closer in THINK.items()}
_HARMONY_THOUGHT_ENDS = _ends(*HARMONY_ENDS, kept=HARMONY)

# What may begin at a place: one of the openers, BARE if the whole answer may be a call in JSON, else one of
# the other two.
BARE, NOTHING, UNDECIDED = "", "nothing", "undecided"


class Reader:
    """Reads the text of one answer."""

    def __init__(self, tools=()):
        self.reasoned = False  # whether the server separates the reasoning itself
        self._held = Held()
        self._tools, self._source = tools, None  # what calls are read from, once there may be one
        self._step = self._read_text  # what reads on: _read_text, _read_thought or _read_call
        self._rest = ""  # not decided yet
        self._plain = False  # in the middle of a line, with nothing to wait for
        self._starts = True  # nothing but whitespace since the beginning, or since a thought or a call
        self._drops_space = False  # and that whitespace belongs to the markup
        self._lines = Lines()
        self._before = ""  # the character before
        self._ends = None  # what ends the reasoning in hand
        self._gap, self._pieces = "", []  # of the call in hand: what came before it, and its text so far
        self._size = self._next_try = 0  # the length of that text, and the one at which it is read again
        self._harmony = False  # whether there was a header of gpt-oss
        self._quoted_header = False  # whether one was quoted
        self._thought = False  # whether reasoning began or was written about
        self._bare_tried = False
        self._cut = False  # whether a call that is not complete at the end was cut

    @property
    def spoke(self) -> bool:
        """Whether there was any text besides calls and reasoning."""
        return self._held.spoke

    @property
    def thoughts(self) -> list:
        """The reasoning that was found, in pieces."""
        return self._held.thoughts

    def feed(self, text: str, events: list) -> None:
        """Appends to `events` the Text, Thought and Misread that this piece brings."""
        self._held.events = events
        if self._plain and not _POINT.search(text):
            self._before = text[-1:]
            self._held.say_at_once(text)
        else:
            self._read(text)

    def end(self, events: list, recover: bool = True, cut: bool = False) -> list:
        """Appends what was still waiting; returns the calls: [(name, arguments)].

        Without `recover` they stay text. With `cut`, the answer was cut for its length: the call that it ends
        in, if it has named a known tool, is returned with its text instead of arguments.
        """
        self._held.events, self._cut = events, cut
        self._read("", ended=True)
        calls = self._held.calls() if recover else []
        self._held.release(bool(calls))
        self._held.flush()
        return calls

    def broken(self, events: list) -> None:
        """The answer ends here and is not complete: appends what was waiting, without calls."""
        self._held.events, self._cut = events, True
        self._read("", ended=True)
        self._held.drop_calls()
        self._held.release(False)
        self._held.flush()

    def _read(self, text: str, ended: bool = False) -> None:
        text, self._rest, at = self._rest + text, "", 0
        while at is not None and (at < len(text) or ended and self._step == self._read_call):
            text, at = self._step(text, at, ended)
        self._held.flush()
        waits = self._rest or self._starts or self._held.waits or self._step != self._read_text
        self._plain = not waits and self._lines.decided

    # Each step returns the text and where the next one goes on in it, or None if more text is needed; then
    # `_rest` holds what is left.

    def _read_text(self, text: str, at: int, ended: bool):
        while at < len(text):
            if self._starts:
                end = _SPACE.match(text, at).end()
            else:
                found = _POINT.search(text, at)
                if not found:
                    self._say(text[at:])
                    return text, len(text)
                self._say(text[at:found.start()])
                at = found.start()
                end = at if text[at] in "<[" else found.end()
            at = self._shortened(text, at, end)
            if end == len(text) and not ended:
                break
            (self._lines.begin if self._starts else self._lines.add)(text[at:end])
            opener = self._opener(text, end, ended, at == end)
            if opener == UNDECIDED:
                break
            if opener != NOTHING:
                return text, self._open(opener, text[at:end], end)
            self._space(text[at:end])
            at = end
            if end < len(text):
                self._starts = self._drops_space = False
                self._say(text[end])
                at = end + 1
        self._rest = text[at:]
        return text, None

    def _shortened(self, text: str, at: int, end: int) -> int:
        """Says whitespace that is too long to wait; returns where the rest of it begins."""
        if end - at <= _MOST_SPACE:
            return at
        rest = end - _MOST_SPACE
        if self._starts:
            self._space(text[at:rest])
            return rest
        while rest < end and text[rest] not in "\r\n":
            rest += 1
        self._say(text[at:rest])
        return rest

    def _opener(self, text: str, at: int, ended: bool, in_line: bool) -> str:
        """The opener at `at`, BARE, NOTHING or UNDECIDED."""
        before = self._before if in_line and not self._starts else ""
        if self._lines.fence or before == "`":
            return NOTHING
        starts_line = self._lines.starts
        fresh = self._starts and not (self._held.spoke or self._held.waits or self._bare_tried)
        if fresh and text.startswith(HEADERS, at):
            return _first(HEADERS, text, at)
        openers = AT_LINE if starts_line else IN_LINE
        if text.startswith(openers, at):
            opener = _first(openers, text, at)
            if opener in LONE_ENDS:
                following = text[at + len(opener):at + len(opener) + 1]
                return self._lone_end(opener, before, following, ended)
            return opener if self._counts(opener, before, starts_line) else NOTHING
        beginnings = START_PREFIXES if fresh else AT_LINE_PREFIXES if starts_line else IN_LINE_PREFIXES
        if not ended and len(text) - at <= LONGEST and text[at:] in beginnings:
            return UNDECIDED
        return BARE if fresh and self._may_call() and text[at:at + 1] in ("{", "[", "`") else NOTHING

    def _counts(self, opener: str, before: str, starts_line: bool) -> bool:
        """Whether an opener means what it says here."""
        if opener in THINK:
            self._thought = True  # or it is written about, and so is its end
            return starts_line
        if opener in HARMONY_ENDS:
            return self._harmony
        if opener in HARMONY:
            self._quoted_header = self._quoted_header or _is_quote(before)
            return self._harmony or starts_line or not self._quoted_header
        return self._may_call()

    def _may_call(self) -> bool:
        return bool(self._tools) and not self._held.gave_up

    def _lone_end(self, tag: str, before: str, following: str, ended: bool) -> str:
        """The end of reasoning that the template began, as `_opener` returns it; NOTHING if only
        mentioned.
        """
        if self._thought or self.reasoned and not self._starts or _is_quote(before):
            return NOTHING
        if before != " ":
            return tag
        if not following and not ended:
            return UNDECIDED
        return NOTHING if following and following in " .,;:)!?" else tag

    def _open(self, opener: str, gap: str, at: int) -> int:
        if opener in THINK:
            self._leave_gap(gap)
            self._begin_thought(_THINK_ENDS[opener])
        elif opener in LONE_ENDS:
            self._thought = True
            self._held.take_back()
            self._begin_text()
        elif opener in HARMONY_ENDS:
            self._space(gap)
            self._starts = self._drops_space = True
        else:
            self._gap, self._pieces, self._size, self._next_try = gap, [opener], 0, 0
            self._step = self._read_call
        return at + len(opener)

    def _read_call(self, text: str, at: int, ended: bool):
        """Reads the call in hand, each time from its beginning: a long one only once it has grown by half."""
        from mm.model.text_calls import formats, scanner

        self._pieces.append(text[at:])
        self._size += len(self._pieces[-1])
        if self._size < self._next_try and not ended:
            return text, None
        opener, text = self._pieces[0], "".join(self._pieces[1:])
        self._pieces = [opener, text]
        source = self._source = self._source or scanner.Source(scanner.Tools(self._tools))
        source.begin(text, ended)
        try:
            found = formats.read(source, opener)
        except scanner.More:
            self._next_try = self._size + self._size // 2 if self._size > _SHORT else 0
            return text, None
        except scanner.Disproved:
            found = None
        self._step = self._read_text
        if found is None and self._cut and source.name:
            self._add_call(Found(self._gap, opener + text, [(source.name, opener + text)]))
            return text, len(text)
        self._take(found, opener + text[:source.at])
        return text, source.at

    def _take(self, found, raw: str) -> None:
        """What an attempt came to: calls, a header of gpt-oss (Thought, Text), Messages, or None for
        prose.
        """
        if found is None:
            self._bare_tried = True
            self._space(self._gap)
            if raw:
                self._starts = self._drops_space = False
                self._say(raw)
        elif isinstance(found, list):
            self._add_call(Found(self._gap, raw, found))
        elif isinstance(found, tuple):
            self._take_messages(found, raw)
        else:
            self._harmony = True
            self._leave_gap(self._gap)
            if found is Thought:
                self._begin_thought(_HARMONY_THOUGHT_ENDS)
            else:
                self._starts = self._drops_space = True

    def _take_messages(self, found, raw: str) -> None:
        """`found`: headless.Messages."""
        gap = self._gap
        if found.said or found.calls is None:
            self._leave_gap(gap)
            gap = ""
        for kind, text in found.said:
            if kind is Thought:
                self._held.think(text)
            else:
                self._say(text)
        if found.calls is None:
            self._starts = self._drops_space = True
        else:
            self._add_call(Found(gap, raw[found.length:], found.calls))

    def _add_call(self, found: Found) -> None:
        self._held.add_call(found)
        self._starts, self._drops_space = True, False
        self._lines.begin()

    def _begin_thought(self, ends: _Ends) -> None:
        self._ends, self._starts, self._thought = ends, True, True
        self._step = self._read_thought

    def _begin_text(self) -> None:
        """Text begins anew, after reasoning."""
        self._starts = self._drops_space = True
        self._lines.begin()

    def _read_thought(self, text: str, at: int, ended: bool):
        if self._starts:
            at = _SPACE.match(text, at).end()
            if at == len(text):
                return text, at
        self._starts = False
        found = self._ends.pattern.search(text, at)
        end = found.start() if found else self._undecided(text, at, ended)
        said = max(at + len(text[at:end].rstrip()), end - _MOST_SPACE)
        if found or said < end:
            line_end = text.find("\n", said, end)
            said = end if line_end < 0 else line_end
        self._held.think(text[at:said])
        if found:
            self._begin_text()
            self._step = self._read_text
            return text, end if found.group() in self._ends.kept else found.end()
        self._rest = "" if ended else text[said:]
        return text, None

    def _undecided(self, text: str, at: int, ended: bool) -> int:
        """Where, at the end of the text, an end of the reasoning may begin."""
        if not ended:
            for sign in "<[":
                begin = text.rfind(sign, max(at, len(text) - LONGEST))
                if begin >= 0 and text[begin:] in self._ends.prefixes:
                    return begin
        return len(text)

    def _space(self, text: str) -> None:
        """Says whitespace whose lines are known already, unless it belongs to the markup before it."""
        if text and not (self._starts and self._drops_space):
            self._before = text[-1]
            self._held.say(text)

    def _leave_gap(self, gap: str) -> None:
        """Says the whitespace before what is neither text nor a call, if there is text before it."""
        if not self._starts:
            self._space(gap)

    def _say(self, text: str) -> None:
        if text:
            self._before = text[-1]
            self._lines.add(text)
            self._held.say(text)


def _first(openers: tuple, text: str, at: int) -> str:
    return next(opener for opener in openers if text.startswith(opener, at))


def _is_quote(sign: str) -> bool:
    return bool(sign) and sign in "\"'("


def recovered(text: str, tools) -> list:
    """The calls in a text that is complete, by the same rules."""
    reader = Reader(tools)
    reader.feed(_HEADER_IN_LINE.sub("\n", text), [])
    return reader.end([])
