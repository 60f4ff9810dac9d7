"""Waiting for a model server, as the user sees it: what it is about and how long it has taken.

The front end hears of it every second, the log when it begins (if that is news) and at growing intervals.
"""

from __future__ import annotations

import time
from collections import namedtuple

from mm import log
from mm.cancel import Cancel, Deadline

# How often a wait is reported, in seconds.
EVERY = 1
# Seconds after which a wait is first logged; it is logged again each time it has taken twice as long.
FIRST_LOGGED = 10

# What a wait is about, and its line in the log. `%s`: how long it has taken, in brackets.
LOADING = "the model is loading", "the model is still loading%s…"
BUSY = "the server is busy", "the server is busy; waiting%s…"
ANSWER = "waiting for the model", "waiting for the model%s…"
# How a front end shows it in a line of its own: what it is about, seconds.
SHOWN = "⏳ %s (%d s)"
READING, READ = "reading the prompt, %d %%", ", %d %% of the prompt read"


def _nothing(doing: str, seconds: float) -> None:
    pass


# Who hears of a request: `log(line)`; `notice(line)`, what the user should read below the answer;
# `waiting(doing, seconds)`, what the wait is about. `logged`: whether waits are logged, too.
Listener = namedtuple("Listener", "log notice waiting logged")
Listener.__new__.__defaults__ = (log.line, log.line, _nothing, True)


class Wait:
    """One wait, from now on. `first`: the seconds after which it is logged."""

    def __init__(self, what: tuple, listener: Listener, first: float = 0):
        self._doing, self._line = what
        self._listener = listener
        self._read = None  # the part of the prompt that the server has read, in percent
        self._since = time.monotonic()
        self._next = first  # the age of the wait, in seconds, at which it is logged next

    @property
    def age(self) -> float:
        return time.monotonic() - self._since

    def take_progress(self, progress) -> None:
        """How far a server is with reading the prompt: {"processed", "total"} in tokens, as llama.cpp reports
        it.
        """
        done, total = (progress.get("processed"), progress.get("total")) if isinstance(progress,
                                                                                       dict) else (None, None)
        counts = isinstance(done, int) and isinstance(total, int) and 0 <= done <= total > 0
        self._read = 100 * done // total if counts else None

    def report(self, seconds: float) -> None:
        """The wait has taken so long."""
        known = self._read is not None
        self._listener.waiting(READING % self._read if known else self._doing, seconds)
        if seconds >= self._next and self._listener.logged:
            age = " (%d s%s)" % (seconds, READ % self._read if known else "") if seconds >= 1 else ""
            self._listener.log(self._line % age)
            self._next = max(FIRST_LOGGED, 2 * seconds)

    def pause(self, seconds: float, cancel: Cancel) -> None:
        """A part of the wait that takes `seconds`. Raises Cancelled."""
        deadline = Deadline(seconds)
        self.report(self.age)
        while deadline.left() > 0:
            cancel.sleep(min(EVERY, max(0, deadline.left())))
            if deadline.left() > 0:
                self.report(self.age)
