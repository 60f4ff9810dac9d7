"""One turn at a time, first come, first served; a turn that waits can be cancelled.

A ticket is drawn by the thread that reads the prompts, so the order of the line is the order of arrival. The
turn's own thread waits for it and gives it back.
"""

from __future__ import annotations

import threading
from collections import deque

from mm.cancel import Cancel


class TurnQueue:
    """The line of a process."""

    def __init__(self):
        self._lock = threading.Lock()
        self._line = deque()

    def ticket(self) -> Ticket:
        """The next place in the line."""
        ticket = Ticket(self)
        with self._lock:
            self._line.append(ticket)
            self._call_next()
        return ticket

    def _leave(self, ticket: Ticket) -> None:
        with self._lock:
            if ticket in self._line:
                self._line.remove(ticket)
            self._call_next()

    def _call_next(self) -> None:
        if self._line:
            self._line[0].called.set()


class Ticket:
    """A place in the line; use as `with ticket.turn(cancel):`, or `leave()` it."""

    def __init__(self, queue: TurnQueue):
        self._queue = queue
        self.called = threading.Event()

    def turn(self, cancel: Cancel) -> Ticket:
        """Waits until it is this ticket's turn. Raises Cancelled; the place is given up then."""
        try:
            cancel.wait(self.called)
        except BaseException:
            self.leave()
            raise
        return self

    def leave(self) -> None:
        self._queue._leave(self)

    def __enter__(self) -> Ticket:
        return self

    def __exit__(self, *_) -> None:
        self.leave()
