"""The model's summary of the older part of a conversation: how it is asked for, and when it is given up.

First it is asked for after the very messages that the server has read, so that the server has only the
instructions to read. If that cannot fit, or failed, it is asked for once more with a transcript.
"""

from __future__ import annotations

import contextlib

from mm import log
from mm.conversation import compaction, estimate
from mm.engine import request
from mm.engine.second_tries import REPEATED_TEXT, THOUGHT_TOO_LONG
from mm.errors import UserError
from mm.events import Text
from mm.model import chat

# Why there is none, besides the server's own words.
NO_SUMMARY = "the model wrote no summary"
TOOL_CALL = "the model called a tool instead of writing a summary"
TOO_LONG = "the summary is too long"
CUT = "the summary was cut at the server's length limit"
TOO_MUCH_THOUGHT = "the model thought for too long"
REPEATED = "the model repeated itself"

ONCE_MORE = "compact: %s; asking once more, with a transcript"

# The length that is asked for: one word for this many tokens of the window, and no more words than there is
# room for. If there is room for too few words, a transcript is sent instead.
WINDOW_A_WORD, TOKENS_A_WORD, INSTRUCTION_TOKENS, LEAST_WORDS = 8, 1.5, 250, 100
# After a refusal the request has to shrink to this part of what the server found too long.
AFTER_REFUSAL = 0.6
# After these kinds of errors the server is not asked a second time.
_HOPELESS = ("url", "header", "name", "refused", "unreachable", "tls", "redirect", "wrong_url", "timeout",
             "proxy", "auth", "model_not_found", "model_not_loaded")


class SummaryFailed(Exception):
    """There is no summary; the message says why in one line."""


def ask(process, session, front, cancel, summarised: list, refused: bool) -> str:
    """The summary of the messages `summarised`, which are the older part of the session's. `refused`: whether
    the server has refused the conversation as it is. Raises SummaryFailed, UserError, Cancelled."""
    prepared, window = session.prepared, process.model.window.size
    used = prepared.meter.used(session.messages)
    words = min(compaction.SUMMARY_WORDS, window // WINDOW_A_WORD) if window else compaction.SUMMARY_WORDS
    room = int((window - used - INSTRUCTION_TOKENS) / TOKENS_A_WORD) if window else words
    if not refused and room >= min(words, LEAST_WORDS):
        text = compaction.instructions(compaction.has_summary(session.messages), min(words, room))
        messages = compaction.request(prepared.system, session.messages, text)
        try:
            return _answer(process, session, front, cancel, messages, prepared.wire_tools)
        except (SummaryFailed, UserError) as problem:
            if getattr(problem, "kind", None) in _HOPELESS:
                raise
            log.line(ONCE_MORE % problem)
    text = compaction.instructions(compaction.has_summary(summarised), words)
    limit = window - estimate.reserve(process.config, window) if window else AFTER_REFUSAL * used
    limit = min(limit, AFTER_REFUSAL * used) if refused else limit
    messages = compaction.transcript_request(summarised, text, int(limit / prepared.meter.ratio))
    return _answer(process, session, front, cancel, messages, [])


def _answer(process, session, front, cancel, messages: list, tools: list) -> str:
    """What the model answers to one request. The server's counts belong to the session's totals, but not to
    its meter: this was another request than the conversation's."""
    window = process.model.window.size
    stream = request.Stream(_Limit(window, session.prepared.meter.ratio), process.config, True, window)
    pieces = chat.complete(process.model.server(cancel), messages, tools, cancel, process.tap,
                           request.listener(session, front), process.model.learned)
    with contextlib.closing(pieces):
        stream.read(pieces)
    if stream.usage:
        request.count(process, session, front, stream.usage)
    text = compaction.cleaned(stream.text)
    for failed, why in ((stream.again is REPEATED_TEXT, REPEATED), (stream.calls, TOOL_CALL),
                        (stream.again is THOUGHT_TOO_LONG, TOO_MUCH_THOUGHT), (not text, NO_SUMMARY),
                        (stream.finish == "length", CUT)):
        if failed:
            raise SummaryFailed(why)
    return text


class _Limit:
    """The front end of a summary: shows nothing, and gives up one that grows too long."""

    def __init__(self, window: int, ratio: float):
        self._left = compaction.LARGEST_SUMMARY * window / ratio if window else float("inf")

    def emit(self, event) -> None:
        if type(event) is Text:
            self._left -= estimate.tokens(event.text)
            if self._left < 0:
                raise SummaryFailed(TOO_LONG)
