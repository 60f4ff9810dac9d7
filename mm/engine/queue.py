"""One turn at a time, first come, first served; a turn that waits can be cancelled.

A ticket is drawn by the thread that reads the prompts, so the order of the line is the order of arrival. The
turn's own thread waits for it and gives it back.
"""

from __future__ import annotations

import contextlib
import threading

from mm.cancel import Cancel


class TurnQueue:
    """The line of a process."""

    def __init__(self):
        self.lock = threading.Lock()
        self.line = []

    def ticket(self) -> Ticket:
        """The next place in the line."""
        with self.lock:
            self.line.append(Ticket(self))
            self.line[0].called.set()
            return self.line[-1]


class Ticket:
    """A place in the line; use as `with ticket.turn(cancel):`, or `leave()` it."""

    def __init__(self, queue: TurnQueue):
        self._queue = queue
        self.called = threading.Event()

    @contextlib.contextmanager
    def turn(self, cancel: Cancel):
        """Waits until it is this ticket's turn, and gives the place up at the end. Raises Cancelled."""
        try:
            cancel.wait(self.called)
            yield
        finally:
            self.leave()

    def leave(self) -> None:
        with self._queue.lock:
            if self in self._queue.line:
                self._queue.line.remove(self)
            if self._queue.line:
                self._queue.line[0].called.set()
