"""The loop detectors: a model that makes the same calls with the same results, or writes the same text, again
and again.

    CallLoops    calls: first a nudge in the result, then the call is not run, then the turn ends
    TextLoops    an answer or reasoning as it streams

Pure. A user's message starts everything anew: make new ones for each turn.
"""

from __future__ import annotations

import json
import re
from collections import namedtuple

from mm.model.text_calls.lines import Lines

NUDGE = ("[you have made this same call %d times with the same result. Do something else, or tell the user "
         "what blocks you.]")
NOT_RUN = "[not run: the same call gave the same result %d times]"
STOPPED = "🔁 stopped: %s repeated with the same result. Tell me how to go on."
REPEATED_LINE = "🔁 the answer repeated itself and was cut"
LOG_LINE = "[acp] loop detected: %s"

# The most calls that make one cycle.
LONGEST_CYCLE = 4
# A call of this many seconds or more is a deliberate wait, and counts as this part of a call.
WAIT, WAIT_COUNTS = 2.0, 0.25
# From `repeats` on the result holds a nudge; with this many more results the next call is not run.
MORE_BEFORE_REFUSAL = 1
# This many calls that were not run end the turn. In a row they come before the eighth repeat would.
NOT_RUN_LIMIT = 3

# A call: what it asked (a hash of name and arguments), that with its result, how much it counts, and 1 if it
# ran, else 0.
_Call = namedtuple("_Call", "asked signature counts ran")

# What differs from run to run in mm's notes about the same output: the number of a log, the process group.
_NOTE = re.compile(r"^\[.*\]$", re.MULTILINE)
_PASSING = re.compile(r"\S*bash-\d+\.log|process group \d+|kill -- -\d+")


class CallLoops:
    """The calls of one turn. `repeats`: how many equal results in a row, or rounds of a cycle, are a loop.

    A *repeat* is a call with the same name, arguments and result as before. A job that is polled and moves on
    is not a repeat, and neither is an edit that differs.
    """

    def __init__(self, repeats: int):
        self._repeats = repeats
        self._calls = []
        self._not_run = 0

    def before(self, name: str, arguments) -> str | None:
        """None if the call may run, else the result it gets instead. `arguments`: any JSON value."""
        asked = _asked(name, arguments)
        for length in range(1, LONGEST_CYCLE + 1):
            counts, ran = self._going_round(length)
            full = (self._repeats + MORE_BEFORE_REFUSAL) * length
            if counts >= full and self._calls[-length].asked == asked:
                # It counts as what it would have been: the model is still going round.
                self._calls.append(self._calls[-length]._replace(counts=1, ran=0))
                self._not_run += 1
                return NOT_RUN % (ran // length)
        return None

    def after(self, name: str, arguments, output: str, seconds: float) -> str | None:
        """Takes a call that gave `output` after `seconds`; returns the nudge for its result, or None."""
        asked = _asked(name, arguments)
        signature = asked, hash(_NOTE.sub(_without_passing, output))
        self._calls.append(_Call(asked, signature, WAIT_COUNTS if seconds >= WAIT else 1, 1))
        for length in range(1, LONGEST_CYCLE + 1):
            counts, ran = self._going_round(length)
            if counts >= self._repeats * length:
                return NUDGE % (ran // length)
        return None

    def stopped(self) -> bool:
        """Whether the turn has to end: the nudge and the refusals did not help."""
        return self._not_run >= NOT_RUN_LIMIT

    def _going_round(self, length: int) -> tuple:
        """The last calls that go round in a cycle of `length`: how much they count, and how many of them ran.

        Each of them equals the one a round earlier; the first round belongs to them.
        """
        calls, first = self._calls, len(self._calls)
        while first > length and calls[first - 1].signature == calls[first - 1 - length].signature:
            first -= 1
        cycle = calls[max(first - length, 0):]
        return sum(call.counts for call in cycle), sum(call.ran for call in cycle)


def _asked(name: str, arguments) -> int:
    return hash((name, json.dumps(arguments, sort_keys=True, separators=(",", ":"), default=str)))


def _without_passing(note) -> str:
    return _PASSING.sub("", note.group())


# How often a text is looked at, and how much of its end must be one repeated block; in characters.
CHECK_EVERY = 200
LONGEST_BLOCK = 200
LEAST_TIMES = 6
LEAST_REPETITION = 400
# What a check needs of the end: the longest block as often as it must repeat, and what came since the last
# check.
_KEPT = LONGEST_BLOCK * LEAST_TIMES + CHECK_EVERY

# What an answer may repeat: a row of a table, a rule under a heading or between parts.
_RULED = re.compile(r"\s*(?:\|.*|[-=_*~+:\u2500-\u257f\s]*)")


class TextLoops:
    """One streamed text. `prose`: an answer, which may repeat code, table rows and rules; else reasoning."""

    def __init__(self, prose: bool):
        self._prose = prose
        self._pieces, self._size = [], 0
        self._end = ""  # of what was looked at
        self._lines = Lines()  # knows whether a fence is open

    def feed(self, piece: str) -> int | None:
        """None, or how many characters to drop from the end of all that was fed; one block stays."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size < CHECK_EVERY:
            return None
        text = "".join(self._pieces)
        position = 0
        while len(text) - position >= CHECK_EVERY:
            step = text[position:position + CHECK_EVERY]
            position += CHECK_EVERY
            self._end = (self._end + step)[-_KEPT:]
            self._lines.add(step)
            repeated = self._repeated()
            if repeated:
                self._pieces, self._size = [text[position:]], len(text) - position
                return repeated + self._size
        self._pieces, self._size = [text[position:]], len(text) - position
        return None

    def _repeated(self) -> int | None:
        if self._prose and self._lines.fence:
            return None
        length = block_length(self._end)
        if not length or (self._prose and self._is_ruled(length)):
            return None
        start = len(self._end) - LEAST_REPETITION + length
        while start > length and self._end[start - 1] == self._end[start - 1 - length]:
            start -= 1
        return len(self._end) - start

    def _is_ruled(self, length: int) -> bool:
        """Whether all lines that the last block touches are rows of a table or rules."""
        start = self._end.rfind("\n", 0, len(self._end) - length) + 1
        if not start and len(self._end) == _KEPT:
            return False  # no table row is that long
        return all(_RULED.fullmatch(line) for line in self._end[start:].split("\n"))


def block_length(text: str) -> int:
    """The length of the shortest block that the end of `text` repeats; 0 if none, or blanks alone."""
    if not text[-LEAST_REPETITION:].strip():
        return 0
    for length in range(1, LONGEST_BLOCK + 1):
        needed = max(LEAST_REPETITION, length * LEAST_TIMES)
        if needed > len(text):
            return 0
        if text[-1] == text[-1 - length] and text[-needed:-length] == text[length - needed:]:
            return length
    return 0
