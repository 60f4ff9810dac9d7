"""The model's summary of the older part of a conversation: how it is asked for, and when it is given up.

First it is asked for after the very messages that the server has read, so that the server has only the
instructions to read. If that cannot fit, or failed, it is asked for once more with a transcript.
"""

from __future__ import annotations

import contextlib

from mm import log
from mm.conversation import compaction, estimate
from mm.engine import loops, request
from mm.errors import UserError
from mm.events import Text, Thought
from mm.model import chat

# Why there is none, besides the server's own words.
NO_SUMMARY = "the model wrote no summary"
TOOL_CALL = "the model called a tool instead of writing a summary"
TOO_LONG = "the summary is too long"
CUT = "the summary was cut at the server's length limit"
THOUGHT_TOO_LONG = "the model thought for too long"
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
    summary = _Summary(process, session.prepared.meter.ratio)
    pieces = chat.complete(process.model.server(cancel), messages, tools, cancel, process.tap,
                           request.listener(session, front), process.model.learned)
    with contextlib.closing(pieces):
        for piece in pieces:
            if type(piece) is chat.Usage:
                request.count(process, session, front, piece)
            else:
                summary.take(piece)
    return summary.text()


class _Summary:
    """A summary as it streams in. One that will not do is given up at once."""

    def __init__(self, process, ratio: float):
        self._most_thought, self._window = process.config.model_max_reasoning, process.model.window.size
        self._loops, self._ratio = loops.TextLoops(prose=True), ratio
        self._texts, self._tokens, self._thought = [], 0.0, 0
        self._called, self._finish = False, None

    def take(self, piece) -> None:
        """Takes a piece of the answer. Raises SummaryFailed."""
        kind = type(piece)
        if kind is Text:
            self._texts.append(piece.text)
            self._tokens += self._ratio * estimate.tokens(piece.text)
            if self._loops.feed(piece.text):
                raise SummaryFailed(REPEATED)
            if self._window and self._tokens > compaction.LARGEST_SUMMARY * self._window:
                raise SummaryFailed(TOO_LONG)
        elif kind is Thought:
            self._thought += len(piece.text)
            if self._most_thought and self._thought > self._most_thought:
                raise SummaryFailed(THOUGHT_TOO_LONG)
        elif kind is chat.Misread:
            self._texts, self._tokens = [], 0.0
        elif kind is chat.ToolCall:
            self._called = True
        elif kind is chat.Finish:
            self._finish = piece.reason

    def text(self) -> str:
        """The whole summary. Raises SummaryFailed."""
        text = compaction.cleaned("".join(self._texts))
        for failed, why in ((self._called, TOOL_CALL), (not text, NO_SUMMARY),
                            (self._finish == "length", CUT)):
            if failed:
                raise SummaryFailed(why)
        return text
