"""One chat completion: the request, and the answer as it streams.

`complete` is a generator. Text and reasoning leave it in the same read that brought them; the tool calls follow when the
stream is over, because only then they are whole. An answer is complete when the server has given a finish reason or has
sent [DONE]: the end of the body alone proves nothing, a connection that is cut may look just like it.

What the servers do not agree on is known in `Answer`, which is pure; the samples in tests/data/model-streams hold a case
for each.
"""

from __future__ import annotations

import json
import re
from collections import namedtuple

from mm.cancel import Cancel
from mm.events import Text, Thought
from mm.model import http, refusal, sse
from mm.model.http import ModelError, Server  # noqa: F401 (both are this room's, too)

# One call: `arguments` is the text as it was streamed, or a dict where the server sent an object.
ToolCall = namedtuple("ToolCall", "name arguments")

# Token counts; None where the server did not report one.
Usage = namedtuple("Usage", "input output cached thought")

# The end of a complete answer: "stop", "length", "tool_calls", … as the server calls it, None where it gave no reason.
Finish = namedtuple("Finish", "reason")

# What `model.extra` cannot set.
_OWN_FIELDS = ("model", "messages", "tools", "stream")

# Servers, by URL, that refused a request for its `stream_options`: they are not asked again.
_without_stream_options = set()

_REASONING = ("reasoning_content", "reasoning", "thinking")

_ENDS = re.compile(r'["\\{}\[\]]')


def complete(server: Server, messages: list, tools: list, cancel: Cancel, tap=None):
    """Yields events.Text, events.Thought, ToolCall, Usage and, last, exactly one Finish.

    `messages` and `tools` are dicts as they go over the wire. `tap`, for the transcript recorder, may be an object with
    `request(body_dict)`, `data(line)` for each raw line of the stream and `status(code, body)` for a refusal.
    Raises ModelError, a line for the user, or Cancelled. Closing the generator drops the connection.
    """
    with _ask(server, messages, tools, cancel, tap) as exchange:
        answer = Answer()
        decoder = sse.Decoder(tap.data if tap else None)
        cut = None
        while not (decoder.done or cut):
            try:
                data = exchange.read()
            except ModelError as error:
                if error.kind != "dropped":
                    raise
                cut = error
                data = b""
            for chunk in decoder.feed(data) if data else decoder.end():
                for event in answer.take(chunk):
                    yield event
                if answer.error is not None:
                    raise _failed(server, exchange.status, answer)
            if not data:
                break
        if not (answer.finish or answer.whole or decoder.done):
            raise cut or _incomplete(server, exchange.status, answer, decoder)
        ending = list(answer.end())
        if not answer.finish and not answer.said and not any(isinstance(event, ToolCall) for event in ending):
            raise _interrupted(server, exchange.status)
    for event in ending:
        yield event


def request_body(server: Server, messages: list, tools: list) -> dict:
    """The request as a dict. Its beginning stays the same from call to call: servers keep what they have read of it."""
    body = {}
    if server.model:
        body["model"] = server.model
    body["messages"] = messages
    body["stream"] = True
    if server.url not in _without_stream_options:
        body["stream_options"] = {"include_usage": True}
    if tools:  # an empty list is refused by some
        body["tools"] = tools
    if server.temperature is not None:
        body["temperature"] = server.temperature
    if server.max_tokens is not None:
        body["max_tokens"] = server.max_tokens
    body.update((name, value) for name, value in (server.extra or {}).items() if name not in _OWN_FIELDS)
    return body


def encode(body: dict) -> bytes:
    """The request's bytes. Half a surrogate pair becomes U+FFFD: it is no UTF-8, and servers refuse its escape."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return _joined(text).encode("utf-8")


def _ask(server: Server, messages: list, tools: list, cancel: Cancel, tap):
    """The exchange of an accepted request."""
    body = request_body(server, messages, tools)
    if tap:
        tap.request(body)
    exchange = http.send(server, "/chat/completions", encode(body), cancel)
    if 200 <= exchange.status < 300 and exchange.content_type != "text/html":
        return exchange
    with exchange:
        said = exchange.read_whole(refusal.MAX_BODY, http.REFUSAL_SECONDS)
    if tap:
        tap.status(exchange.status, said.decode("utf-8", "replace"))
    if exchange.status in (400, 422) and b"stream_options" in said and "stream_options" in body:
        if "stream_options" not in (server.extra or {}):
            _without_stream_options.add(server.url)
            return _ask(server, messages, tools, cancel, tap)
    raise _refused(server, exchange.status, said)


class Answer:
    """One answer, put together from its chunks (pure)."""

    def __init__(self):
        self.started = False  # whether there was any object at all
        self.finish = None  # the finish reason
        self.whole = False  # it came in one piece, not as a stream
        self.error = None  # what the server put into `error` instead of going on
        self.said = False  # whether there was any text or reasoning
        self._calls = []
        self._legacy = None  # the call in `function_call`, which some send beside `tool_calls` and some alone
        self._usage = {}
        self._timings = {}
        self._halves = {Text: "", Thought: ""}  # the first half of a surrogate pair that was cut in two

    def take(self, chunk: dict) -> list:
        """The Text and Thought in one chunk."""
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
                continue  # another choice than the first was not asked for
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
        return events

    def end(self) -> list:
        """What only the end completes: half characters, the calls, the usage, the Finish."""
        events = [kind("\ufffd") for kind in (Thought, Text) if self._halves[kind]]
        slots = [slot for slot in self._calls if slot.name] or ([self._legacy] if self._legacy else [])
        events += [ToolCall(_clean_name(slot.name), slot.arguments()) for slot in slots if slot.name]
        usage = self._total()
        if usage:
            events.append(usage)
        events.append(Finish(self.finish))
        return events

    def _take_delta(self, delta: dict, events: list) -> None:
        for field in _REASONING:  # some send the same reasoning in two of them
            thought = delta.get(field)
            if thought and isinstance(thought, str):
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
        # Calls and thoughts that leak into the text would be found here: all text passes.
        if not text.isascii() or self._halves[kind]:
            text = _joined(self._halves[kind] + text, keep_half=True)
            self._halves[kind] = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
            text = text[:-1] if self._halves[kind] else text
            if not text:
                return
        self.said = True
        events.append(kind(text))

    def _take_call(self, call: dict) -> None:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        ident = call.get("id")
        ident = ident if isinstance(ident, str) else "" if ident is None else str(ident)
        index = call.get("index")
        index = index if isinstance(index, int) else None
        slot = self._slot(index, ident)
        if slot is None or slot.is_followed_by(ident, function.get("name"), index):
            slot = _Slot(index)
            self._calls.append(slot)
        slot.take(ident, function)

    def _slot(self, index, ident: str):
        """The call that this piece may go on with: indexes repeat, are missing, or do not begin at 0."""
        newest_first = reversed(self._calls)
        if index is not None:
            return next((slot for slot in newest_first if slot.index == index), None)
        same = next((slot for slot in newest_first if ident and slot.ident == ident), None)
        return same or (self._calls[-1] if self._calls else None)

    def _count(self, usage) -> None:
        if isinstance(usage, dict):
            self._usage = usage

    def _total(self) -> Usage | None:
        """The counts. llama.cpp's timings tell the whole prompt where the usage counts only what was not cached."""
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

    __slots__ = ("index", "ident", "name", "_pieces", "_object", "_scanned", "_depth", "_in_string", "_escaped", "_closed")

    def __init__(self, index):
        self.index = index
        self.ident = self.name = ""
        self._pieces = []
        self._object = None
        self._scanned = self._depth = 0
        self._in_string = self._escaped = self._closed = False

    def take(self, ident: str, function: dict) -> None:
        """Names and ids count once: some servers repeat them in every piece."""
        self.ident = self.ident or ident
        name = function.get("name")
        if not self.name and isinstance(name, str):
            self.name = name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            self._pieces.append(arguments)
        elif isinstance(arguments, dict):
            self._object = arguments
        elif arguments is not None:
            self._pieces.append(json.dumps(arguments))  # a list or a number: whoever parses it says what is wrong

    def arguments(self):
        return self._object if self._object is not None else _joined("".join(self._pieces))

    def is_followed_by(self, ident: str, name, index) -> bool:
        """Whether a piece with this id and name begins the next call, though it came where this one's pieces do.

        An id alone does not tell: some servers make a new one for every piece.
        """
        if not name or not self.name:
            return False
        if ident and self.ident and ident != self.ident:
            return True
        return name != self.name or self._is_complete()

    def _is_complete(self) -> bool:
        """Whether the arguments are a whole JSON value. Looks at each character once, however often it is asked."""
        if self._object is not None:
            return True
        for piece in self._pieces[self._scanned:]:
            self._scan(piece)
        self._scanned = len(self._pieces)
        return self._closed and not self._depth and not self._in_string

    def _scan(self, piece: str) -> None:
        at = 0
        if self._escaped and piece:
            self._escaped, at = False, 1
        while True:
            found = _ENDS.search(piece, at)
            if not found:
                return
            sign, at = found.group(), found.end()
            if self._in_string:
                if sign == "\\":
                    self._escaped = at == len(piece)
                    at += 1
                elif sign == '"':
                    self._in_string = False
                    self._closed = True
            elif sign == '"':
                self._in_string = True
            elif sign in "{[":
                self._depth += 1
            elif sign in "}]":
                self._depth -= 1
                self._closed = True


def _clean_name(name: str) -> str:
    """Without what leaks of a model's own markup: `functions.bash<|channel|>commentary` is bash."""
    name = name.partition("<|")[0].strip()
    return name[len("functions."):] if name.startswith("functions.") else name


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


def _joined(text: str, keep_half: bool = False) -> str:
    """Surrogate halves that came one after the other made one character; lone ones become U+FFFD, or stay at the end."""
    half = text[-1:] if keep_half and "\ud800" <= text[-1:] <= "\udbff" else ""
    text = text[:-1] if half else text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") + half


def _number(value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _inner(value: dict, name: str, field: str):
    inner = value.get(name)
    return inner.get(field) if isinstance(inner, dict) else None


def _refused(server: Server, status: int, body: bytes) -> ModelError:
    """For a status that says no, and for a web page where the answer should be."""
    address = http.shown(server.url)
    words = refusal.one_line(refusal.words_of_body(body), http.secrets_of(server))
    said = f"{address} answered {status}" + (f": {words}" if words else " without a word")
    if 200 <= status < 300:
        return ModelError(f"{address} answers, but not as a model server ({words or 'a web page'}): does the URL end in"
                          " /v1?", "wrong_url", status)
    if status in (401, 403):
        said += " (set MM_API_KEY or model.apiKey)" if not server.api_key else " (is the API key right?)"
    elif status in (404, 405) and not body.lstrip().startswith(b"{"):
        said += " (does the URL end in /v1?)"
    return ModelError(said, "http", status)


def _failed(server: Server, status: int, answer: Answer) -> ModelError:
    """For an error in the place of the answer, or of the rest of it."""
    status = refusal.status_of_value(answer.error, status)
    words = refusal.one_line(refusal.words_of_value(answer.error), http.secrets_of(server)) or "no reason given"
    where = "failed in the middle of its answer" if answer.said else "answered with an error"
    return ModelError(f"{http.shown(server.url)} {where} ({status}): {words}", "error", status)


def _incomplete(server: Server, status: int, answer: Answer, decoder: sse.Decoder) -> ModelError:
    """For a body that ended well and an answer that did not."""
    address = http.shown(server.url)
    if answer.said or answer.end()[:-1]:
        return ModelError(f"{address} closed the connection in the middle of its answer", "dropped", status)
    if decoder.started and not answer.started:
        return ModelError(f"{address} answers, but not as a model server: does the URL end in /v1?", "wrong_url", status)
    return ModelError(f"{address} ended its answer ({status}) before the first word: its log may say why; often the"
                      " prompt does not fit its context window", "empty", status)


def _interrupted(server: Server, status: int) -> ModelError:
    """For [DONE] and nothing else: some servers drop an answer that way when the next request comes in."""
    return ModelError(f"{http.shown(server.url)} ended its answer ({status}) before the first word and gave no reason:"
                      " another request may have interrupted it", "empty", status)
