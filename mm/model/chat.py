"""One chat completion: the request, and the answer as it streams.

`complete` is a generator. Text and reasoning leave it in the same read that brought them; the tool calls follow when the
stream is over, because only then they are whole. An answer is complete when the server has given a finish reason or has
sent [DONE]: the end of the body alone proves nothing, a connection that is cut may look just like it.
"""

from __future__ import annotations

import json

from mm import log
from mm.cancel import Cancel
from mm.model import http, refusal, sse
from mm.model.answer import Answer, Finish, ToolCall, Usage, joined  # noqa: F401 (part of what this room offers)
from mm.model.http import ModelError, Server

# What `model.extra` cannot set.
_OWN_FIELDS = ("model", "messages", "tools", "stream")

# Servers, by URL, that refused a request for its `stream_options`: they are not asked again.
_without_stream_options = set()


def complete(server: Server, messages: list, tools: list, cancel: Cancel, tap=None):
    """Yields events.Text, events.Thought, ToolCall, Usage and, last, exactly one Finish.

    `messages` and `tools` are dicts as they go over the wire. `tap`, for the transcript recorder, may be an object with
    `request(body_dict)`, `data(line)` for each event of the stream and `status(code, body)` for a refusal.
    Raises ModelError, a line for the user, or Cancelled. Closing the generator drops the connection.
    """
    answer, decoder = Answer(), sse.Decoder(tap.data if tap else None)
    with _ask(server, messages, tools, cancel, tap) as exchange:
        for chunk in _chunks(exchange, decoder):
            for event in answer.take(chunk):
                yield event
            if answer.error is not None:
                raise _failed(server, exchange.status, answer)
        if decoder.dropped:
            log.line(f"the model server sent {decoder.dropped} event(s) that are no JSON objects")
        if not (answer.finish or answer.whole or decoder.done):
            raise exchange.cut or _incomplete(server, exchange.status, answer, decoder)
        if not (answer.finish or answer.has_begun):
            raise _interrupted(server, exchange.status)
    for event in answer.end():
        yield event


def _chunks(exchange: http.Exchange, decoder: sse.Decoder):
    """The stream's objects, all of one read before the next read. Ends with [DONE] or with the body."""
    data = b"."
    while data and not decoder.done:
        data = exchange.read()
        for chunk in decoder.feed(data) if data else decoder.end():
            yield chunk


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
        return joined(text).encode("utf-8")


def _ask(server: Server, messages: list, tools: list, cancel: Cancel, tap) -> http.Exchange:
    """The exchange of an accepted request."""
    body = request_body(server, messages, tools)
    if tap:
        tap.request(body)
    exchange = http.send(server, "/chat/completions", encode(body), cancel)
    if 200 <= exchange.status < 300:
        return exchange
    with exchange:
        said = exchange.read_text(refusal.MAX_BODY, http.REFUSAL_SECONDS)
    if tap:
        tap.status(exchange.status, said)
    if exchange.status in (400, 422) and "stream_options" in said and "stream_options" in body:
        if "stream_options" not in (server.extra or {}):
            _without_stream_options.add(server.url)
            return _ask(server, messages, tools, cancel, tap)
    raise _refused(server, exchange.status, said)


def _refused(server: Server, status: int, body: str) -> ModelError:
    """For a status that says no."""
    words = refusal.one_line(refusal.words_of_body(body), http.secrets_of(server))
    said = f"{http.shown(server.url)} answered {status}" + (f": {words}" if words else " without a word")
    if status in (401, 403):
        said += " (is the API key right?)" if server.api_key else " (set MM_API_KEY or model.apiKey)"
    elif status in (404, 405) and not body.lstrip().startswith("{"):
        said += " (does the URL end in /v1?)"
    return ModelError(said, "http", status)


def _failed(server: Server, status: int, answer: Answer) -> ModelError:
    """For an error in the place of the answer, or of the rest of it."""
    status = refusal.status_of_value(answer.error, status)
    words = refusal.one_line(refusal.words_of_value(answer.error), http.secrets_of(server)) or "no reason given"
    where = "failed in the middle of its answer" if answer.has_begun else "answered with an error"
    return ModelError(f"{http.shown(server.url)} {where} ({status}): {words}", "error", status)


def _incomplete(server: Server, status: int, answer: Answer, decoder: sse.Decoder) -> ModelError:
    """For a body that ended well and an answer that did not."""
    address = http.shown(server.url)
    if answer.has_begun:
        return ModelError(f"{address} closed the connection in the middle of its answer", "dropped", status)
    if decoder.beginning and not answer.started:
        words = refusal.one_line(refusal.words_of_body(decoder.beginning), http.secrets_of(server)) or "a web page"
        return ModelError(f"{address} answers, but not as a model server ({words}): does the URL end in /v1?", "wrong_url",
                          status)
    return ModelError(f"{address} ended its answer ({status}) before the first word: its log may say why; often the"
                      " prompt does not fit its context window", "empty", status)


def _interrupted(server: Server, status: int) -> ModelError:
    """For [DONE] and nothing else: some servers drop an answer that way when the next request comes in."""
    return ModelError(f"{http.shown(server.url)} ended its answer ({status}) before the first word and gave no reason:"
                      " another request may have interrupted it", "empty", status)
