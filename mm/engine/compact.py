"""Keeping a conversation inside the model's window: when to shorten it, the request for the summary, and what became of it.

    Compactor.forced       /compact
    Compactor.check        before each model call of a turn
    Compactor.overflowed   after a model call that the server refused because the prompt was too long

The session's messages change in one place, `_adopt`, at the end of all work and only for the better: a failure, a cancel and a
bug leave them as they were. What they become is decided in conversation.compaction.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections import namedtuple

from mm import log
from mm.conversation import compaction, estimate
from mm.engine import loops, request
from mm.engine.second_tries import REFUSED_AS_TOO_LONG, SecondTries
from mm.errors import UserError
from mm.events import Text, Thought
from mm.model import chat

COMPRESSED = "🗜️ compressed %d messages → 1 summary + %d kept (%d tokens, %.1fs)"
NOTHING = "🗜️ nothing to compact: %d message(s), no turn older than the last %d"
CLEARED = "🗜️ left out %d old tool output(s) (%d tokens)"
FAILED = "[compact: failed, history kept: %s]"

# Explanations of a failure, besides the server's own words.
NO_SUMMARY = "the model wrote no summary"
TOOL_CALL = "the model called a tool instead of writing a summary"
TOO_LONG = "the summary is too long"
CUT = "the summary was cut at the server's length limit"
THOUGHT_TOO_LONG = "the model thought for too long"
REPEATED = "the model repeated itself"
NOTHING_LEFT = "there is nothing that could be left out"

# Automatic attempts of one turn that may fail.
FAILURES = 2
# A compaction aims below the limit by this factor, so that the next call does not need the next one.
AIM = 0.75
# After a refusal, where the window is still unknown: what the server took to be too much must shrink to this part.
AFTER_REFUSAL = 0.6
# An answer that is empty is taken for a prompt that was too long when it had at least this part of the window; or so many
# tokens, which fill the smallest window that servers give a model by default.
SUSPICIOUS, SUSPICIOUS_TOKENS = 0.5, 2000
# How long a summary is asked for: a word for so many tokens of the window, and no longer than there is room for behind the
# conversation; where there is room for too few words, a transcript is sent instead.
WINDOW_A_WORD, TOKENS_A_WORD, INSTRUCTION_TOKENS, LEAST_WORDS = 8, 1.5, 250, 100
# With these the server is not asked a second time for the same summary.
_HOPELESS = ("url", "header", "name", "refused", "unreachable", "tls", "redirect", "wrong_url", "timeout", "proxy", "auth",
             "model_not_found", "model_not_loaded")

# What became of an attempt. `line`: for the log, and for /compact the answer. `changed`: whether the history did. `stop`:
# None, or the line with which the turn has to end.
Outcome = namedtuple("Outcome", "line changed stop")
Outcome.__new__.__defaults__ = (False, None)


class _Failed(Exception):
    """No summary came of it; the explanation in one line."""


class Compactor:
    """Shortens one session's history; one for each turn and each /compact, whose failures it counts.

    The session is prepared. `tries` are the turn's SecondTries. The server's counts of a request for a summary belong to the
    session's totals, but its meter must not take them for a report: that request was another one. All methods raise Cancelled;
    the history is unchanged then.
    """

    def __init__(self, process, session, front, cancel, tries=None):
        self._process, self._session, self._front, self._cancel = process, session, front, cancel
        self._meter = session.prepared.meter
        self._tries = tries or SecondTries()
        self._failures = 0

    def forced(self) -> Outcome:
        """What /compact does: all turns but the last K become a summary, whatever there is room for."""
        messages = self._session.messages
        keep = self._process.config.context_keep_last_turns
        plan = compaction.split(messages, keep)
        if plan is None:
            return Outcome(NOTHING % (len(messages), keep))
        try:
            return self._summarise(plan, forced=True)
        except (_Failed, UserError) as problem:
            return Outcome(FAILED % problem)

    def check(self):
        """Shortens the history when it has outgrown its part of the window; None when there is nothing to tell.

        An attempt may fail twice in a turn; then the turn may go on while the next request still fits.
        """
        window, used = self._process.model.window.size, self._meter.used(self._session.messages)
        if not window or used <= estimate.limit(self._process.config, window):
            return None
        outcome = None
        if self._failures < FAILURES:
            outcome = self._shorten(used, estimate.limit(self._process.config, window), window)
            if outcome.changed or self._failures < FAILURES:
                return outcome
        if used <= window - estimate.reserve(self._process.config, window):
            return outcome
        return Outcome(outcome.line if outcome else "", stop=REFUSED_AS_TOO_LONG.end % (used, window))

    def overflowed(self, problem):
        """Shortens the history after a model call that failed with `problem`, once a turn.

        None where the problem is another one. Otherwise the call can be made again if the outcome has no `stop`.
        """
        session = self._session
        overflow = self._process.model.window.learn(problem, self._process.model.server(self._cancel))
        if not (overflow or self._is_suspicious(problem)):
            return None
        if not session.messages or session.messages[-1]["role"] == "assistant":
            return None  # it broke off while it answered: what is there stays, the next turn finds the window known
        window, meter = self._process.model.window.size, self._meter
        if overflow:
            meter.refused(session.messages, overflow.prompt or max(window, meter.used(session.messages)))
        used = max(overflow.prompt if overflow else 0, meter.used(session.messages))
        outcome = Outcome("")
        if self._tries.take(REFUSED_AS_TOO_LONG):
            aim = round(AFTER_REFUSAL * used)
            limit = min(aim, estimate.limit(self._process.config, window)) if window else aim
            outcome = self._shorten(used, limit, window or used, refused=True)
        if outcome.changed:
            return outcome
        if not overflow:
            return None  # it was a guess: what the server said, or that it said nothing, tells more
        return Outcome(outcome.line, stop=REFUSED_AS_TOO_LONG.end % (used, window or "?"))

    def _is_suspicious(self, problem) -> bool:
        """Some servers answer a prompt that is too long with nothing at all."""
        if getattr(problem, "kind", None) != "empty":
            return False
        window, used = self._process.model.window.size, self._meter.used(self._session.messages)
        return used >= (SUSPICIOUS * window if window else SUSPICIOUS_TOKENS)

    def _shorten(self, used: int, limit: int, window: int, refused: bool = False) -> Outcome:
        """Steps A, B and C: old outputs are left out, and if that is not enough, a summary is made.

        The summary is asked for with the outputs still in place, as the server has read them.
        """
        messages, meter = self._session.messages, self._meter
        cleared = compaction.clear_outputs(messages)
        freed = meter.estimate(messages) - meter.estimate(cleared)
        if freed < compaction.WORTH_CLEARING * window:
            cleared, freed = messages, 0
        if freed and used - freed <= limit:
            return self._clear(cleared)
        try:
            return self._summarise(self._chosen(cleared, AIM * limit, window), refused=refused)
        except (_Failed, UserError) as problem:
            if freed:
                log.line(FAILED % problem)
                return self._clear(cleared)
            self._failures += 1
            return Outcome(FAILED % problem)

    def _chosen(self, cleared: list, aim: float, window: int):
        """The Plan that keeps most among those that fit, else the one that keeps least. What it keeps is taken from `cleared`."""
        keep = self._process.config.context_keep_last_turns
        allowed = min(2 * compaction.SUMMARY_WORDS, compaction.LARGEST_SUMMARY * window)
        chosen = None
        for whole, plan in zip(compaction.plans(self._session.messages, keep), compaction.plans(cleared, keep)):
            chosen = compaction.Plan(whole.summarised, plan.kept)
            if self._meter.estimate(plan.kept) + allowed <= aim:
                break
        if chosen is None:
            raise _Failed(NOTHING_LEFT)
        return chosen

    def _clear(self, cleared: list) -> Outcome:
        count = sum(new is not old for new, old in zip(cleared, self._session.messages))
        self._adopt(cleared)
        return Outcome(CLEARED % (count, self._meter.estimate(cleared)), changed=True)

    def _summarise(self, plan, forced: bool = False, refused: bool = False) -> Outcome:
        """Asks for the summary and puts it into the place of what it stands for. Raises _Failed, UserError, Cancelled."""
        session, begin = self._session, time.monotonic()
        before, kept = len(session.messages), len(plan.kept)
        session.prepared.hooks.run("preCompact", self._cancel, messages=before, forced=forced)
        text = self._ask(plan, refused)
        steps = session.seen.plan.text() if session.seen.plan and not session.seen.plan.is_finished() else ""
        shorter = [compaction.summary_message(text, plan.summarised, steps)] + plan.kept
        if self._size(shorter) > compaction.SHRUNK * self._size(session.messages):
            raise _Failed(compaction.NOT_SMALLER)
        self._adopt(shorter)
        session.seen.skills_read.clear()  # their texts are among what was summarised, or may be
        session.prepared.instructions.forget()
        return Outcome(COMPRESSED % (before - kept, kept, self._meter.estimate(shorter), time.monotonic() - begin), changed=True)

    def _size(self, messages: list) -> float:
        """Tokens of the messages alone: what every request begins with cannot shrink."""
        return self._meter.estimate(messages) - self._meter.estimate([])

    def _ask(self, plan, refused: bool) -> str:
        """The summary, asked for behind the conversation as the server has read it, or else in a request of its own."""
        session, window = self._session, self._process.model.window.size
        used = self._meter.used(session.messages)
        words = min(compaction.SUMMARY_WORDS, window // WINDOW_A_WORD) if window else compaction.SUMMARY_WORDS
        left = int((window - used - INSTRUCTION_TOKENS) / TOKENS_A_WORD) if window else words
        if not refused and left >= min(words, LEAST_WORDS):
            text = compaction.instructions(compaction.has_summary(session.messages), min(words, left))
            try:
                return self._answer(compaction.request(session.prepared.system, session.messages, text), session.prepared.wire_tools)
            except (_Failed, UserError) as problem:
                if getattr(problem, "kind", None) in _HOPELESS:
                    raise
                log.line("compact: %s; asking once more, with a transcript" % problem)
        text = compaction.instructions(compaction.has_summary(plan.summarised), words)
        room = window - estimate.reserve(self._process.config, window) if window else AFTER_REFUSAL * used
        room = min(room, AFTER_REFUSAL * used) if refused else room
        return self._answer(compaction.transcript_request(plan.summarised, text, int(room / self._meter.ratio)), [])

    def _answer(self, messages: list, tools: list) -> str:
        """One request, answered in words. Raises _Failed, UserError, Cancelled."""
        process, session, front = self._process, self._session, self._front
        summary = _Summary(process, self._meter.ratio, functools.partial(request.count, process, session, front))
        pieces = chat.complete(process.model.server(self._cancel), messages, tools, self._cancel, process.tap,
                               request.listener(session, front), process.model.learned)
        with contextlib.closing(pieces):
            for piece in pieces:
                summary.take(piece)
        return summary.text()

    def _adopt(self, messages: list) -> None:
        """The one place where the history changes."""
        self._cancel.check()
        self._session.messages[:] = messages
        self._meter.forget()


class _Summary:
    """A summary while it streams in: one that cannot become one is given up at once, some models never come to an end."""

    def __init__(self, process, ratio: float, count):
        self._most_thought, self._window, self._loops = process.config.model_max_reasoning, process.model.window.size, loops.TextLoops(prose=True)
        self._ratio, self._count = ratio, count
        self._texts, self._tokens, self._thought = [], 0.0, 0
        self._called, self._finish = False, None

    def take(self, piece) -> None:
        """Takes a piece of the answer. Raises _Failed."""
        kind = type(piece)
        if kind is Text:
            self._texts.append(piece.text)
            self._tokens += self._ratio * estimate.tokens(piece.text)
            if self._loops.feed(piece.text):
                raise _Failed(REPEATED)
            if self._window and self._tokens > compaction.LARGEST_SUMMARY * self._window:
                raise _Failed(TOO_LONG)
        elif kind is Thought:
            self._thought += len(piece.text)
            if self._most_thought and self._thought > self._most_thought:
                raise _Failed(THOUGHT_TOO_LONG)
        elif kind is chat.Misread:
            self._texts, self._tokens = [], 0.0
        elif kind is chat.ToolCall:
            self._called = True
        elif kind is chat.Usage:
            self._count(piece)
        elif kind is chat.Finish:
            self._finish = piece.reason

    def text(self) -> str:
        """The summary, when the answer is over. Raises _Failed."""
        text = compaction.cleaned("".join(self._texts))
        for failed, explanation in ((self._called, TOOL_CALL), (not text, NO_SUMMARY), (self._finish == "length", CUT)):
            if failed:
                raise _Failed(explanation)
        return text
