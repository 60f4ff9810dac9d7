"""One answer, put together from the chunks of its stream (pure).

All that servers do not agree on is known here: the fields of reasoning, how a tool call is cut into pieces
and which of them belong together, where the counts are. tests/data/model-streams holds a sample of each.
"""

from __future__ import annotations

from collections import namedtuple

from mm.events import Text, Thought
from mm.model import call_arguments, refusal
from mm.model.fields import REASONING_FIELDS
from mm.model.text_calls.held import Misread  # noqa: F401 (offered here)
from mm.model.text_calls.openers import CALLS, HARMONY
from mm.model.text_calls.reader import Reader, recovered

# One call: `arguments` is the text as it was streamed, or a dict if the server sent an object.
ToolCall = namedtuple("ToolCall", "name arguments")

# Token counts; None if the server did not report one.
Usage = namedtuple("Usage", "input output cached thought")

# The end of a complete answer: "stop", "length", "tool_calls", … in the server's words, or None.
Finish = namedtuple("Finish", "reason")

# The most characters and calls of an answer: one with more does not end.
MOST, MOST_CALLS = 32 * 1024 * 1024, 1000
ENDLESS = "an answer without an end"

# The finish reasons of an answer that was cut off.
_CUT = ("length", "content_filter")


class Answer:
    """One answer, put together from its chunks (pure).

    `tools`: those of the request, as they went over the wire. Calls of them that the model wrote as text are
    found too, if there is no other.
    """

    def __init__(self, tools=()):
        self.started = False  # whether there was any object at all
        self.finish = None  # the finish reason
        self.whole = False  # it came in one piece, not as a stream
        self.error = None  # what the server put into `error` instead of going on
        self.said = False  # whether there was any text or reasoning
        self.reasoning_field = ""  # the one of REASONING_FIELDS that it uses
        self._size = 0
        self._calls = []
        self._legacy = None  # the call in `function_call`, which some send beside `tool_calls` and some alone
        self._usage = {}
        self._timings = {}
        self._tools, self._reader = tools, Reader(tools)
        self._thoughts = []  # the reasoning that came apart from the text
        self._halves = {Text: "", Thought: ""}  # the first half of a surrogate pair that was cut in two

    def take(self, chunk: dict) -> list:
        """The Text, Thought and Misread in one chunk."""
        events = []
        self.started = True
        if chunk.get("error") or chunk.get("object") == "error":
            self.error = chunk.get("error") or chunk
            return events
        if chunk.get("usage"):
            self._count(chunk["usage"])
        if isinstance(chunk.get("timings"), dict):
            self._timings = chunk["timings"]
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict) or choice.get("index"):
                continue  # only one choice was asked for
            delta = choice.get("delta")
            if not delta and choice.get("message"):
                delta = choice["message"]
                self.whole = True
            if delta and isinstance(delta, dict):
                self._take_delta(delta, events)
            reason = choice.get("finish_reason")
            if reason and isinstance(reason, str):
                self.finish = reason
            if choice.get("usage"):
                self._count(choice["usage"])
        if self._size > MOST or len(self._calls) > MOST_CALLS:
            self.error = ENDLESS
        return events

    @property
    def has_begun(self) -> bool:
        """Whether there is anything in it that a user or a tool would see."""
        return self.said or bool(self._named_calls())

    def broke_off_text(self, words: str) -> bool:
        """Whether an answer that its server could not read, as its `words` say, had text and no call yet."""
        calls = self._calls or self._legacy or any(opener in words for opener in (*CALLS, *HARMONY))
        return self._reader.spoke and not calls

    def end(self) -> list:
        """What only the end completes: waiting text, half characters, the calls, the usage, the Finish."""
        events = []
        self._say_halves(events)
        calls = [slot.call() for slot in self._named_calls()]
        leaked = self._reader.end(events, not calls, self.finish == "length")
        if not (calls or leaked or self._reader.spoke or self.finish in _CUT):
            leaked = recovered("".join(self._thoughts or self._reader.thoughts), self._tools)
        events += calls or [ToolCall(*call) for call in leaked]
        usage = self._total()
        if usage:
            events.append(usage)
        events.append(Finish(self.finish))
        return events

    def broken(self) -> list:
        """What was waiting to be said, when the answer ends before it is complete. Its calls are dropped."""
        events = []
        self._say_halves(events)
        self._reader.broken(events)
        return events

    def _say_halves(self, events: list) -> None:
        """Half characters whose other half never came."""
        for kind in (Thought, Text):
            if self._halves[kind]:
                self._halves[kind] = ""
                self._pass_on(kind, "\ufffd", events)

    def _take_delta(self, delta: dict, events: list) -> None:
        for field in REASONING_FIELDS:
            thought = delta.get(field)
            if thought and isinstance(thought, str):
                self.reasoning_field = self.reasoning_field or field
                self._say(Thought, thought, events)
                break
        content = delta.get("content")
        if content:
            if isinstance(content, str):
                self._say(Text, content, events)
            elif isinstance(content, list):
                for kind, text in _parts(content):
                    self._say(kind, text, events)
        calls = delta.get("tool_calls")
        if calls and isinstance(calls, list):
            for call in calls:
                if isinstance(call, dict):
                    self._take_call(call)
        legacy = delta.get("function_call")
        if legacy and isinstance(legacy, dict):
            self._legacy = self._legacy or _Slot(None)
            self._legacy.take("", legacy)

    def _say(self, kind, text: str, events: list) -> None:
        self._size += len(text)
        if not text.isascii() or self._halves[kind]:
            text = joined(self._halves[kind] + text, keep_half=True)
            self._halves[kind] = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
            text = text[:-1] if self._halves[kind] else text
            if not text:
                return
        self.said = True
        self._pass_on(kind, text, events)

    def _pass_on(self, kind, text: str, events: list) -> None:
        if kind is Text:
            self._reader.feed(text, events)
        else:
            self._reader.reasoned = True
            self._thoughts.append(text)
            events.append(Thought(text))

    def _take_call(self, call: dict) -> None:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        ident = call.get("id")
        ident = ident if isinstance(ident, str) else "" if ident is None else str(ident)
        index = call.get("index")
        index = index if isinstance(index, int) else None
        slot = self._slot(index, ident)
        if slot is None or slot.is_followed_by(ident, function):
            slot = _Slot(index)
            self._calls.append(slot)
        self._size += slot.take(ident, function)

    def _slot(self, index, ident: str):
        """The call that this piece may go on with: indexes repeat, are missing, or do not begin at 0."""
        newest_first = reversed(self._calls)
        if index is not None:
            return next((slot for slot in newest_first if slot.index == index), None)
        same = next((slot for slot in newest_first if ident and slot.ident == ident), None)
        return same or (self._calls[-1] if self._calls else None)

    def _named_calls(self) -> list:
        slots = self._calls or ([self._legacy] if self._legacy else [])
        return [slot for slot in slots if slot.name]

    def _count(self, usage) -> None:
        if isinstance(usage, dict):
            self._usage = usage

    def _total(self) -> Usage | None:
        """The counts; llama.cpp's timings have the whole prompt if the usage has only what was not cached."""
        usage, timings = self._usage, self._timings
        cache, prompt = _number(timings.get("cache_n")), _number(timings.get("prompt_n"))
        timed = (cache or 0) + prompt if prompt is not None else None
        counted = _number(usage.get("prompt_tokens"))
        output = _number(usage.get("completion_tokens"))
        cached = _number(_inner(usage, "prompt_tokens_details", "cached_tokens"))
        total = Usage(
            max(counted or 0, timed or 0) or None,  # 0 is what servers send that do not know
            _number(timings.get("predicted_n")) if output is None else output,
            cache if cached is None else cached,
            _number(_inner(usage, "completion_tokens_details", "reasoning_tokens")))
        return total if any(count is not None for count in total) else None


class _Slot:
    """One tool call while its pieces come in."""

    __slots__ = ("index", "ident", "name", "_pieces", "_object", "_scanned", "_brackets")

    def __init__(self, index):
        self.index = index
        self.ident = self.name = ""
        self._pieces = []
        self._object = None
        self._scanned, self._brackets = 0, call_arguments.Brackets()

    def take(self, ident: str, function: dict) -> int:
        """Names and ids count once, because some servers repeat them. Returns how many characters came."""
        self.ident = self.ident or ident
        name = function.get("name")
        if not self.name and isinstance(name, str):
            self.name = name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            self._pieces.append(arguments)
            return len(arguments)
        if isinstance(arguments, dict):
            self._object = arguments
        elif arguments is not None:
            # a list or a number: its reader says what is wrong
            self._pieces.append(refusal.json_of(arguments))
        return 0

    def call(self) -> ToolCall:
        arguments = joined("".join(self._pieces)) if self._object is None else self._object
        return ToolCall(call_arguments.clean_name(self.name), arguments)

    def is_followed_by(self, ident: str, function: dict) -> bool:
        """Whether a piece with this id and content begins the next call, though it came in this one's place.

        An id alone does not decide: some servers make a new one for every piece. Nor does a name:
        llama_cpp.server repeats both, also in the piece that ends the arguments, which is empty or a line
        end.
        """
        name, arguments = function.get("name"), function.get("arguments")
        if not name or not self.name:
            return False
        if ident != self.ident and ident and self.ident or name != self.name:
            return True
        says_nothing = arguments is None or isinstance(arguments, str) and not arguments.strip()
        return self._is_complete() and not (ident and says_nothing)

    def _is_complete(self) -> bool:
        """Whether the arguments are a whole JSON value; looks at each character once."""
        while self._scanned < len(self._pieces) and not (self._brackets.done or self._brackets.wrong):
            self._brackets.feed(self._pieces[self._scanned])
            self._scanned += 1
        return self._object is not None or self._brackets.done


def _parts(content: list):
    """The pieces of a content that is a list: texts, and reasoning as Mistral's models send it."""
    for part in content:
        if isinstance(part, str):
            yield Text, part
        elif isinstance(part, dict):
            for field, kind in (("text", Text), ("thinking", Thought)):
                value = part.get(field)
                if value and isinstance(value, str):
                    yield kind, value
                elif value and isinstance(value, list):
                    for _, text in _parts(value):
                        yield kind, text


def joined(text: str, keep_half: bool = False) -> str:
    """Surrogate halves in a row made one character; lone ones become U+FFFD, or stay at the end."""
    half = text[-1:] if keep_half and "\ud800" <= text[-1:] <= "\udbff" else ""
    text = text[:-1] if half else text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") + half


def _number(value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _inner(value: dict, name: str, field: str):
    inner = value.get(name)
    return inner.get(field) if isinstance(inner, dict) else None
