"""One chat completion: the request, and the answer as it streams.

`complete` is a generator. Text and reasoning leave it in the same read that brought them; the tool calls
follow when the stream is over, because only then they are whole. An answer is complete when the server has
given a finish reason or has sent [DONE]: the end of the body alone proves nothing, a connection that is cut
may look just like it.
"""

from __future__ import annotations

import contextlib
import json

from mm import log
from mm.cancel import Cancel
from mm.model import http, probe, refusal, retries, sse
from mm.model.answer import ENDLESS, Answer, Finish, Misread, ToolCall, Usage, joined  # noqa: F401 (offered)
from mm.model.learned import Learned
from mm.model.http import ModelError, Server
from mm.model.waits import ANSWER, FIRST_LOGGED, Listener, Wait

# Seconds within which the usage and [DONE] may follow the finish reason; some proxies never hang up.
_AFTER_FINISH = 10

# What `model.extra` cannot set.
_OWN_FIELDS = ("model", "messages", "tools", "stream")


def complete(server: Server, messages: list, tools: list, cancel: Cancel, tap=None, listener=Listener(),
             learned=None):
    """Yields events.Text, events.Thought, Misread, ToolCall, Usage and, last, exactly one Finish.

    `messages` and `tools` are dicts as they go over the wire. `tap`, for the transcript recorder, may be an
    object with `request(body_dict)`, `data(line)` for each event of the stream and `status(code, body)` for a
    refusal. `listener` is told what is waited for; `learned` is what earlier requests to this server have
    shown. What fails before the first event is tried again if that may help.
    Raises ModelError, a line for the user, or Cancelled. Closing the generator drops the connection.
    """
    learned = learned or Learned()
    attempts = retries.Attempts(server, cancel, listener, learned)
    while True:
        body = attempts.fixed(request_body(attempts.server, messages, tools))
        answer = Answer(body.get("tools") or ())
        with contextlib.closing(_answered(answer, attempts.server, body, cancel, tap, listener)) as events:
            try:
                first = next(events)
            except ModelError as error:
                attempts.failed(error, body)
                continue
            attempts.succeeded()
            try:
                yield first
                yield from events
            finally:  # an answer that is cut off has reasoning that is kept too
                learned.reasoning_field = answer.reasoning_field or learned.reasoning_field
            return


def _answered(answer: Answer, server: Server, body: dict, cancel: Cancel, tap, listener: Listener):
    """One try: the events of the answer."""
    decoder = sse.Decoder(tap.data if tap else None)
    wait = Wait(ANSWER, listener, FIRST_LOGGED)
    waiting, said = True, False
    with _ask(server, body, cancel, tap, lambda: wait.report(wait.age)) as exchange:
        try:
            for chunk in _chunks(exchange, decoder, answer, wait):
                events = answer.take(chunk)
                if waiting:
                    waiting = not (events or answer.has_begun)
                    wait.take_progress(chunk.get("prompt_progress"))
                    if not waiting:
                        exchange.stop_ticking()
                for event in events:
                    said = True
                    yield event
                if answer.error is not None:
                    raise _failed(server, exchange.status, answer, cancel)
            if decoder.dropped:
                log.line("the model server sent %d event(s) that are not JSON objects" % decoder.dropped)
            _check(server, exchange, answer, decoder)
        except ModelError:
            if said:  # what was held back belongs to it
                for event in answer.broken():
                    yield event
            raise
    for event in answer.end():
        yield event


def _chunks(exchange: http.Exchange, decoder: sse.Decoder, answer: Answer, wait: Wait):
    """The stream's objects, until [DONE], the end of the body, or soon after the finish."""
    data = b"."
    while data and not (decoder.done or decoder.endless):
        if answer.finish:
            exchange.hurry(_AFTER_FINISH)
        try:
            data = exchange.read()
        except ModelError:
            if not answer.finish:
                raise
            return
        for chunk in decoder.feed(data) if data else decoder.end():
            yield chunk
        if decoder.progress:
            wait.take_progress(decoder.progress)
            decoder.progress = None


def request_body(server: Server, messages: list, tools: list) -> dict:
    """The request; its beginning stays the same from call to call, because servers keep what they read."""
    body = {}
    if server.model:
        body["model"] = server.model
    body["messages"] = messages
    body["stream"] = True
    body["stream_options"] = {"include_usage": True}
    if server.product == "llama.cpp":  # others may refuse what they do not know
        body["return_progress"] = True
    if tools:  # an empty list is refused by some
        body["tools"] = tools
    if server.temperature is not None:
        body["temperature"] = server.temperature
    if server.max_tokens is not None:
        body["max_tokens"] = server.max_tokens
    body.update((name, value) for name, value in (server.extra or {}).items() if name not in _OWN_FIELDS)
    return body


def encode(body: dict) -> bytes:
    """The request's bytes. Half a surrogate pair becomes U+FFFD, because it is not UTF-8."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return joined(text).encode("utf-8")


def _ask(server: Server, body: dict, cancel: Cancel, tap, tick) -> http.Exchange:
    """The exchange of an accepted request."""
    if tap:
        tap.request(body)
    exchange = http.send(server, "/chat/completions", encode(body), cancel, tick=tick)
    if 200 <= exchange.status < 300:
        return exchange
    from mm.model import failures

    with exchange:
        said = exchange.read_text(refusal.MAX_BODY, http.REFUSAL_SECONDS)
    if tap:
        tap.status(exchange.status, said)
    raise _error(server, failures.of_body(exchange.status, said), cancel,
                 retry_after=retries.seconds_in(exchange.header("Retry-After")))


def _error(server: Server, found: failures.Failure, cancel: Cancel, **more) -> ModelError:
    """The error; if the model is not on the server, with the names of those that are."""
    if found.kind == "model_not_found":
        asked = found._replace(numbers={"model": server.model or found.numbers.get("model", "")})
        return http.error_of(server, asked, models=_models(server, cancel), **more)
    return http.error_of(server, found, **more)


def _models(server: Server, cancel: Cancel) -> list:
    from mm.model import find

    try:
        return find.names_in(probe.ask(server, "/models", cancel).value) or []
    except ModelError:
        return []


def _failed(server: Server, status: int, answer: Answer, cancel: Cancel) -> ModelError:
    """For an error in place of the answer, or of the rest of it."""
    from mm.model import failures

    found = failures.of_value(answer.error, status)
    if found.kind == "unreadable_call" and answer.broke_off_text(found.words):
        found = found._replace(kind="unreadable_answer")
    return _error(server, found, cancel, where=_where(answer))


def _where(answer: Answer) -> str:
    return " in the middle of its answer" if answer.has_begun else ""


# What an answer without a word may mean. Some servers send [DONE] alone when the next request comes in.
_NO_WORD = "its log may say why; often the prompt does not fit its context window"
_INTERRUPTED = "it gave no reason; another request may have interrupted it"


def _check(server: Server, exchange: http.Exchange, answer: Answer, decoder: sse.Decoder) -> None:
    """Raises the ModelError of an answer that is not complete though its body is."""
    status = exchange.status
    if answer.finish or answer.whole or decoder.done and answer.has_begun:
        return
    if decoder.endless:
        raise http.failure(server, "server_crash", ENDLESS, status, where=_where(answer))
    if exchange.cut and not decoder.done:
        raise exchange.cut
    if answer.has_begun:
        raise http.failure(server, "dropped", where="in the middle of its answer", status=status)
    if decoder.beginning and not answer.started and not decoder.done:
        raise http.failure(server, "wrong_url", refusal.words_of_body(decoder.beginning) or "a web page",
                           status)
    raise http.failure(server, "empty", _INTERRUPTED if decoder.done else _NO_WORD, status)
