"""Keeping a conversation inside the model's window: when it is shortened, and what became of that.

    Compactor.forced       /compact
    Compactor.check        before each model request of a turn
    Compactor.overflowed   after a request that the server refused because it was too long

The session's messages change in one place, `_adopt`, after all else has gone well: a failure, a cancel and a
bug leave them as they were. What they become is decided in conversation.compaction, the summary is asked for
in engine.summary.
"""

from __future__ import annotations

import time
from collections import namedtuple

from mm import log
from mm.conversation import compaction, estimate
from mm.engine import summary
from mm.engine.second_tries import REFUSED_AS_TOO_LONG, SecondTries
from mm.errors import UserError

COMPRESSED = "🗜️ compressed %d messages → 1 summary + %d kept (%d tokens, %.1fs)"
NOTHING = "🗜️ nothing to compact: %d message(s), no turn older than the last %d"
CLEARED = "🗜️ left out %d old tool output(s) (%d tokens)"
FAILED = "[compact: failed, history kept: %s]"
NOTHING_LEFT = "there is nothing that could be left out"

# Automatic attempts of one turn that may fail.
FAILURES = 2
# A compaction aims below the limit by this factor, so that the next request does not need the next one.
AIM = 0.75
# An empty answer is taken for a request that was too long if the conversation had this part of the window, or
# this many tokens if the window is unknown: so many fill the smallest window that servers give a model by
# default.
SUSPICIOUS, SUSPICIOUS_TOKENS = 0.5, 2000

# What became of an attempt. `line`: for the log, and the answer to /compact. `changed`: whether the history
# did. `stop`: None, or the line with which the turn has to end.
Outcome = namedtuple("Outcome", "line changed stop", defaults=(False, None))


class Compactor:
    """Shortens the history of one session, which is prepared. Made for one turn, whose SecondTries are
    `tries`, or for one /compact. All methods raise Cancelled; then the history is unchanged."""

    def __init__(self, process, session, front, cancel, tries=None):
        self._process, self._session, self._front, self._cancel = process, session, front, cancel
        self._meter = session.prepared.meter
        self._tries = tries or SecondTries()
        self._failures = 0

    def forced(self) -> Outcome:
        """What /compact does: all turns but the last K become a summary, however much room there is."""
        messages = self._session.messages
        keep = self._process.config.context_keep_last_turns
        cut = compaction.split(messages, keep)
        if cut is None:
            return Outcome(NOTHING % (len(messages), keep))
        try:
            return self._summarise(cut, forced=True)
        except (summary.SummaryFailed, UserError) as problem:
            return Outcome(FAILED % problem)

    def check(self):
        """Shortens a history that has outgrown its part of the window; None if there is nothing to report.

        After two failures in a turn it may go on while the next request still fits.
        """
        config, window = self._process.config, self._process.model.window.size
        used = self._meter.used(self._session.messages)
        if not window or used <= estimate.limit(config, window):
            return None
        outcome = None
        if self._failures < FAILURES:
            outcome = self._shorten(used, estimate.limit(config, window), window)
            if outcome.changed or self._failures < FAILURES:
                return outcome
        if used <= window - estimate.reserve(config, window):
            return outcome
        return Outcome(outcome.line if outcome else "", stop=REFUSED_AS_TOO_LONG.end % (used, window))

    def overflowed(self, problem):
        """Shortens the history after a request that failed with `problem`, once a turn.

        None if the request was not too long. Otherwise it can be made again, if the outcome has no `stop`.
        """
        session, model, meter = self._session, self._process.model, self._meter
        overflow = model.window.learn(problem, model.server(self._cancel))
        if not (overflow or self._is_suspicious(problem)):
            return None
        if not session.messages or session.messages[-1]["role"] == "assistant":
            return None  # it broke off during the answer, which stays; the next turn knows the window
        window = model.window.size
        if overflow:
            meter.refused(session.messages, overflow.prompt or max(window, meter.used(session.messages)))
        used = max(overflow.prompt if overflow else 0, meter.used(session.messages))
        outcome = Outcome("")
        if self._tries.take(REFUSED_AS_TOO_LONG):
            limit = round(summary.AFTER_REFUSAL * used)
            if window:
                limit = min(limit, estimate.limit(self._process.config, window))
            outcome = self._shorten(used, limit, window or used, refused=True)
        if outcome.changed:
            return outcome
        if not overflow:
            return None  # it was a guess: the server's own words say more
        return Outcome(outcome.line, stop=REFUSED_AS_TOO_LONG.end % (used, window or "?"))

    def _is_suspicious(self, problem) -> bool:
        """Some servers answer a request that is too long with nothing at all."""
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
        except (summary.SummaryFailed, UserError) as problem:
            if freed:
                log.line(FAILED % problem)
                return self._clear(cleared)
            self._failures += 1
            return Outcome(FAILED % problem)

    def _chosen(self, cleared: list, aim: float, window: int):
        """The Cut that keeps most and fits, else the one that keeps least, made of `cleared`."""
        keep = self._process.config.context_keep_last_turns
        allowed = min(2 * compaction.SUMMARY_WORDS, compaction.LARGEST_SUMMARY * window)
        chosen = None
        for whole, cut in zip(compaction.cuts(self._session.messages, keep), compaction.cuts(cleared, keep)):
            chosen = compaction.Cut(whole.summarised, cut.kept)
            if self._meter.estimate(cut.kept) + allowed <= aim:
                break
        if chosen is None:
            raise summary.SummaryFailed(NOTHING_LEFT)
        return chosen

    def _clear(self, cleared: list) -> Outcome:
        left_out = sum(new is not old for new, old in zip(cleared, self._session.messages))
        self._adopt(cleared)
        return Outcome(CLEARED % (left_out, self._meter.estimate(cleared)), changed=True)

    def _summarise(self, cut, forced: bool = False, refused: bool = False) -> Outcome:
        """Puts a summary in place of what it stands for. Raises SummaryFailed, UserError, Cancelled."""
        session, begin = self._session, time.monotonic()
        before, kept, plan = len(session.messages), len(cut.kept), session.seen.plan
        session.prepared.hooks.run("preCompact", self._cancel, messages=before, forced=forced)
        text = summary.ask(self._process, session, self._front, self._cancel, cut.summarised, refused)
        steps = plan.text() if plan and not plan.is_finished() else ""
        shorter = [compaction.summary_message(text, cut.summarised, steps)] + cut.kept
        if self._size(shorter) > compaction.SHRUNK * self._size(session.messages):
            raise summary.SummaryFailed(compaction.NOT_SMALLER)
        self._adopt(shorter)
        session.seen.skills_read.clear()  # their texts may be among what was summarised
        session.prepared.instructions.forget()
        tokens, seconds = self._meter.estimate(shorter), time.monotonic() - begin
        return Outcome(COMPRESSED % (before - kept, kept, tokens, seconds), changed=True)

    def _size(self, messages: list) -> float:
        """Tokens of the messages alone: what every request begins with cannot shrink."""
        return self._meter.estimate(messages) - self._meter.estimate([])

    def _adopt(self, messages: list) -> None:
        """The one place where the history changes."""
        self._cancel.check()
        self._session.messages[:] = messages
        self._meter.forget()
