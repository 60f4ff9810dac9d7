"""Waiting for a model server, as the user sees it: what it is about and how long it has taken.

The front end hears of it every second, the log when it begins (if that is news) and at growing intervals.
"""

from __future__ import annotations

import threading
import time
from collections import namedtuple

from mm import log

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
# `waiting(doing, seconds)`, from any thread, what the wait is about. `logged`: whether waits are logged, too.
Listener = namedtuple("Listener", "log notice waiting logged")
Listener.__new__.__defaults__ = (log.line, log.line, _nothing, True)


class Wait:
    """One wait, perhaps in several parts with a Clock each. `first`: the seconds after which it is logged."""

    def __init__(self, what: tuple, listener: Listener, first: float = 0):
        self._doing, self._line = what
        self._listener = listener
        self._read = None  # the part of the prompt that the server has read, in percent
        self.next = first  # the age of the wait, in seconds, at which it is logged next

    def take_progress(self, progress) -> None:
        """How far a server is with reading the prompt: {"processed", "total"} in tokens, as llama.cpp reports
        it.
        """
        done, total = (progress.get("processed"), progress.get("total")) if isinstance(progress,
                                                                                       dict) else (None, None)
        counts = isinstance(done, int) and isinstance(total, int) and 0 <= done <= total > 0
        self._read = 100 * done // total if counts else None

    def report(self, seconds: float) -> None:
        known = self._read is not None
        self._listener.waiting(READING % self._read if known else self._doing, seconds)
        if seconds >= self.next and self._listener.logged:
            age = " (%d s%s)" % (seconds, READ % self._read if known else "") if seconds >= 1 else ""
            self._listener.log(self._line % age)
            self.next = max(FIRST_LOGGED, 2 * seconds)


class Clock(threading.Thread):
    """Reports a wait from its own thread, and nothing once stop() has returned."""

    def __init__(self, wait: Wait, since: float, every: float = 1):
        super().__init__(name="waiting", daemon=True)
        self._wait, self._since, self._every = wait, since, every
        self._over = threading.Event()
        self._reporting = threading.Lock()

    def __enter__(self) -> Clock:
        if self._wait.next <= self._age():
            self._wait.report(self._age())
        self.start()
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def stop(self) -> None:
        with self._reporting:
            self._over.set()

    def run(self) -> None:
        while not self._over.wait(self._every):
            with self._reporting:
                if not self._over.is_set():
                    self._wait.report(self._age())

    def _age(self) -> float:
        return time.monotonic() - self._since
