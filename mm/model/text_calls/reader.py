"""The text of an answer while it streams in: what leaks into it is told from what is meant for the user (pure).

Text that cannot begin anything leaves with the read that brought it. Where something may begin, a few characters wait until
that is decided. Once the opener of a call stands, everything waits until the call is complete or disproved. Behind a complete
call everything waits for the end: it is a call only if nothing follows the last one; if it is none, or far too much comes
behind it, all of it is sent as it came, in order. Each character takes part in at most one attempt to read a call, so the
work is linear.

What comes out does not depend on how the text was cut.
"""

from __future__ import annotations

import re
from collections import namedtuple

from mm.events import Text, Thought
from mm.model.text_calls.lines import Lines
from mm.model.text_calls.openers import (AT_LINE, AT_LINE_PREFIXES, HARMONY, HARMONY_ENDS, HEADERS, IN_LINE, IN_LINE_PREFIXES, LONE_ENDS,
                              LONGEST, START_PREFIXES, THINK, prefixes)

# All that this answer has said as Text until now was reasoning: its beginning was left to the model's template.
Misread = namedtuple("Misread", "")

# Waits at most, of whitespace that may stand before an opener.
_MOST_SPACE = 32

# So much behind a complete call is an answer that goes on, and one that may have to be stopped: it waits no longer.
_MOST_BEHIND = 4096

# A model that goes on with the result of its own call has made it up, and what it calls next comes of that.
_INVENTED = re.compile(r"<tool_response|<\|tool_response|\[TOOL_RESULTS\]")

# The header of gpt-oss's next message stands right at the end of its reasoning.
_HEADER_IN_LINE = re.compile(r"(?=assistant(?:commentary|analysis)? to=)")

# A line's end with the whitespace behind it, or a bracket. It begins with a set because the search is quicker then.
_POINT = re.compile(r"[<\[\r\n](?:(?<=[\r\n])\s*)?")
_SPACE = re.compile(r"\s*")

# What ends reasoning, and the beginnings of it.
_Ends = namedtuple("_Ends", "pattern prefixes kept")


def _ends(*literals: str, kept: tuple = ()) -> _Ends:
    return _Ends(re.compile("|".join(map(re.escape, literals + kept))), prefixes(literals + kept), kept)


_THINK_ENDS = {opener: _ends(closer) for opener, closer in THINK.items()}
_HARMONY_THOUGHT_ENDS = _ends(*HARMONY_ENDS, kept=HARMONY)

# A call, or several, that stand complete: what came before it and would be dropped with it, the markup, and what it says.
_Found = namedtuple("_Found", "gap raw calls")


class Reader:
    """Reads the text of one answer."""

    def __init__(self, tools=()):
        self.spoke = False  # whether there was any text that is no call and no thought
        self.reasoned = False  # whether the server tells the reasoning apart by itself
        self.thoughts = []  # the reasoning that was found
        self._tools, self._source = tools, None  # what a call is read from, once there may be one
        self._rest = ""  # not decided yet
        self._plain = False  # in the middle of a line, with nothing to wait for
        self._ends = None  # what ends the reasoning that is being read
        self._starts = True  # nothing but whitespace since the beginning, or since a thought or a call
        self._drops_space = False  # and that whitespace belongs to the markup
        self._lines = Lines()
        self._before = ""  # the character before
        self._harmony = self._thought = self._bare_tried = False
        self._spoken_of = False  # whether headers of gpt-oss are, in quotes
        self._attempt = None  # the call that is being read
        self._gap, self._raw = "", []  # what stood before it, and its text so far
        self._pending = None  # from the first complete call on, all that would have been said: Text, Thought and _Found
        self._behind = 0  # how much of that stands behind the last call
        self._calls = bool(tools)  # whether there may be calls
        self._texts, self._events = [], []
        self._said = []  # the text that has left
        self._cut = False  # whether a call that is not complete at the end is one that was cut

    def feed(self, text: str, events: list) -> None:
        """Appends to `events` the Text, Thought and Misread that this piece brings."""
        if self._plain and not _POINT.search(text):
            self._before = text[-1:]
            self._said.append(text)
            events.append(Text(text))
            return
        self._read(text, events)

    def end(self, events: list, recover: bool = True, cut: bool = False) -> list:
        """Appends what was still waiting; returns the calls: [(name, arguments)].

        Without `recover` they stay text. With `cut`, the answer was cut for its length: the call that it ends in, if it
        has named a known tool, is returned with its text instead of arguments.
        """
        self._cut = cut
        self._read("", events, ended=True)
        calls = self._recovered() if recover else []
        self._release(bool(calls))
        self._flush()
        return calls

    def broken(self, events: list) -> None:
        """The answer ends here and is not complete: appends what was waiting, without calls."""
        self._cut = True
        self._read("", events, ended=True)
        self._pending = [item for item in self._pending or () if not isinstance(item, _Found)]
        self.end(events, recover=False)

    def _release(self, called: bool) -> None:
        """Says what is pending: the text between the calls where they are made, else all of it as it came."""
        items, self._pending = self._pending or [], None
        between = ""
        for item in items:
            if isinstance(item, Thought):
                self._think(item.text)
            elif not called:
                self._emit(item.text if isinstance(item, Text) else item.gap + item.raw)
            elif isinstance(item, Text):
                between += item.text
            elif between:
                self._emit("\n" + between.strip() if between.strip() else "")
                between = ""

    def _recovered(self) -> list:
        """The calls among what is pending, if they are to be made."""
        calls, behind = [], ""
        for item in self._pending or ():
            if isinstance(item, _Found):
                if _INVENTED.search(behind):
                    return []
                calls += item.calls
                behind = ""
            elif isinstance(item, Text):
                behind += item.text
        return calls if not behind.strip() else []

    def _read(self, text: str, events: list, ended: bool = False) -> None:
        text, self._rest, at = self._rest + text, "", 0
        self._events = events
        while at is not None and (at < len(text) or ended and self._attempt):
            step = self._read_call if self._attempt else self._read_thought if self._ends else self._read_text
            at = step(text, at, ended)
        self._flush()
        self._plain = not (self._rest or self._ends or self._attempt or self._starts or self._pending) and self._lines.decided

    # Each of these returns where the next one goes on, or None when more text is needed; then `_rest` holds what is left.

    def _read_text(self, text: str, at: int, ended: bool):
        while at < len(text):
            if self._starts:
                end = _SPACE.match(text, at).end()
            else:
                found = _POINT.search(text, at)
                if not found:
                    self._say(text[at:])
                    return len(text)
                self._say(text[at:found.start()])
                at = found.start()
                end = at if text[at] in "<[" else found.end()
            at = self._shortened(text, at, end)
            if end == len(text) and not ended:
                break
            if self._starts:
                self._lines.begin(text[at:end])
            else:
                self._lines.add(text[at:end])
            opener = self._opener(text, end, ended, at == end)
            if opener is None:
                break
            if opener is not False:
                return self._open(opener, text[at:end], end)
            self._space(text[at:end])
            at = end
            if end < len(text):
                self._starts = self._drops_space = False
                self._say(text[end])
                at = end + 1
        self._rest = text[at:]
        return None

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

    def _opener(self, text: str, at: int, ended: bool, in_line: bool):
        """The opener that stands at `at`; False where there is none, None where that is not decided."""
        before = self._before if in_line and not self._starts else ""
        if self._lines.fence or before == "`":
            return False
        starts_line = self._lines.starts
        fresh = self._starts and not (self.spoke or self._pending or self._bare_tried)
        if fresh and text.startswith(HEADERS, at):
            return next(header for header in HEADERS if text.startswith(header, at))
        openers = AT_LINE if starts_line else IN_LINE
        if text.startswith(openers, at):
            opener = next(opener for opener in openers if text.startswith(opener, at))
            if opener in THINK:
                self._thought = True  # or it is spoken of, and so is its end
                return opener if starts_line else False
            if opener in LONE_ENDS:
                return self._lone_end(opener, before, text[at + len(opener):at + len(opener) + 1], ended)
            if opener in HARMONY_ENDS:
                return opener if self._harmony else False
            if opener in HARMONY:
                self._spoken_of = self._spoken_of or bool(before) and before in "\"'("
                return opener if self._harmony or starts_line or not self._spoken_of else False
            return opener if self._calls else False
        beginnings = START_PREFIXES if fresh else AT_LINE_PREFIXES if starts_line else IN_LINE_PREFIXES
        if not ended and len(text) - at <= LONGEST and text[at:] in beginnings:
            return None
        return "" if fresh and self._calls and text[at:at + 1] in ("{", "[", "`") else False

    def _lone_end(self, tag: str, before: str, behind: str, ended: bool):
        """The end of reasoning whose beginning the template had written, as `_opener` returns it: not where it is spoken of."""
        if self._thought or self.reasoned and not self._starts or before and before in "\"'(":
            return False
        if before != " ":
            return tag
        return None if not behind and not ended else False if behind and behind in " .,;:)!?" else tag

    def _open(self, opener: str, gap: str, at: int) -> int:
        if opener in THINK:
            self._leave_gap(gap)
            self._begin_thought(_THINK_ENDS[opener])
        elif opener in LONE_ENDS:
            self._misread()
        elif opener in HARMONY_ENDS:
            self._space(gap)
            self._starts = self._drops_space = True
        else:
            self._attempt, self._gap, self._raw = self._reading(opener), gap, [opener]
        return at + len(opener)

    def _reading(self, opener: str):
        from mm.model.text_calls import formats, scanner

        self._source = self._source or scanner.Source(scanner.Tools(self._tools))
        self._source.name = ""
        return formats.read(self._source, opener)

    def _read_call(self, text: str, at: int, ended: bool):
        from mm.model.text_calls.scanner import Disproved

        source = self._source
        source.text, source.at, source.ended = text, at, ended
        found = None
        try:
            next(self._attempt)
        except StopIteration as end:
            found = end.value
        except Disproved:
            pass
        else:
            self._raw.append(text[at:source.at])
            self._rest = text[source.at:]
            return None
        raw = "".join(self._raw) + text[at:source.at]
        self._attempt = None
        if isinstance(found, list):
            self._pend(_Found(self._gap, raw, found))
        elif isinstance(found, tuple):
            self._take_messages(found, raw)
        elif found:
            self._harmony = True
            self._leave_gap(self._gap)
            if found is Thought:
                self._begin_thought(_HARMONY_THOUGHT_ENDS)
            else:
                self._starts = self._drops_space = True
        elif self._cut and source.name:
            raw += text[source.at:]
            self._pend(_Found(self._gap, raw, [(source.name, raw)]))
            return len(text)
        else:
            self._bare_tried = True
            self._space(self._gap)
            if raw:
                self._starts = self._drops_space = False
                self._say(raw)
        return source.at

    def _take_messages(self, found, raw: str) -> None:
        """Says the messages of gpt-oss that came without their tokens, found as mm.model.text_calls.headless.Messages."""
        gap = self._gap
        if found.said or found.calls is None:
            self._leave_gap(gap)
            gap = ""
        for kind, text in found.said:
            if kind is Thought:
                self._think(text)
            else:
                self._say(text)
        if found.calls is None:
            self._starts = self._drops_space = True
        else:
            self._pend(_Found(gap, raw[found.length:], found.calls))

    def _pend(self, found: _Found) -> None:
        self._flush()
        self._pending = self._pending or []
        self._pending.append(found)
        self._behind = 0
        self._starts, self._drops_space = True, False
        self._lines.begin()

    def _wait(self, item) -> None:
        self._pending.append(item)
        self._behind += len(item.text)
        if self._behind > _MOST_BEHIND:
            self._calls = False
            self._release(False)

    def _begin_thought(self, ends: _Ends) -> None:
        self._ends, self._starts, self._thought = ends, True, True

    def _read_thought(self, text: str, at: int, ended: bool):
        if self._starts:
            at = _SPACE.match(text, at).end()
            if at == len(text):
                return at
        self._starts = False
        found = self._ends.pattern.search(text, at)
        end = found.start() if found else self._undecided(text, at, ended)
        said = max(at + len(text[at:end].rstrip()), end - _MOST_SPACE)
        if found or said < end:
            line_end = text.find("\n", said, end)
            said = end if line_end < 0 else line_end
        self._think(text[at:said])
        if found:
            self._starts = self._drops_space = True
            self._lines.begin()
            kept, self._ends = found.group() in self._ends.kept, None
            return end if kept else found.end()
        self._rest = "" if ended else text[said:]
        return None

    def _undecided(self, text: str, at: int, ended: bool) -> int:
        """Where the beginning of an end of the reasoning may stand, at the end of the text."""
        if not ended:
            for sign in "<[":
                begin = text.rfind(sign, max(at, len(text) - LONGEST))
                if begin >= 0 and text[begin:] in self._ends.prefixes:
                    return begin
        return len(text)

    def _misread(self) -> None:
        """What was said until now, or waits to be said, was reasoning."""
        self._thought = True
        texts, self._texts = "".join(self._texts), []
        if self._said:
            self._events.append(Misread())
            self.thoughts += self._said
            self._said = []
        items, self._pending = self._pending or [], None
        for item in items:
            texts += item.gap + item.raw if isinstance(item, _Found) else item.text
        self._think(texts)
        self.spoke = False
        self._starts = self._drops_space = True
        self._lines.begin()

    def _space(self, text: str) -> None:
        """Says whitespace whose lines are known already, unless it belongs to the markup before it."""
        if text and not (self._starts and self._drops_space):
            self._before = text[-1]
            self._emit(text)

    def _leave_gap(self, gap: str) -> None:
        """Says the whitespace before what is neither text nor a call, where there is text before it."""
        if not self._starts:
            self._space(gap)

    def _say(self, text: str) -> None:
        if text:
            self._before = text[-1]
            self._lines.add(text)
            self._emit(text)

    def _emit(self, text: str) -> None:
        if not text:
            return
        if self._pending is not None:
            self._wait(Text(text))
        else:
            self.spoke = self.spoke or not text.isspace()
            self._texts.append(text)

    def _think(self, text: str) -> None:
        if not text:
            return
        if self._pending is not None:
            self._wait(Thought(text))
            return
        self._flush()
        self.thoughts.append(text)
        self._events.append(Thought(text))

    def _flush(self) -> None:
        if self._texts:
            self._said.append("".join(self._texts))
            self._events.append(Text(self._said[-1]))
            self._texts = []


def recovered(text: str, tools) -> list:
    """The calls in a text that is complete, by the same rules."""
    reader = Reader(tools)
    reader.feed(_HEADER_IN_LINE.sub("\n", text), [])
    return reader.end([])
