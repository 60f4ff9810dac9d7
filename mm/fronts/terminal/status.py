"""What the status line says: what mm waits for, how long, how many tokens, and the end of what is thought or
printed."""

from __future__ import annotations

import time

from mm.fronts.terminal.width import width

WAITING, THINKING, WRITING, RUNNING = "waiting for the model", "thinking", "writing", "running"


class Status:
    """Callable as mm.fronts.terminal.screen wants it. Told by the turn's thread, read by the one that draws.
    """

    def __init__(self):
        self._doing, self._since = WAITING, time.monotonic()
        self._tail = ""
        self._used = self._pieces = 0

    def begin(self, doing: str) -> None:
        """Another wait begins; the same one goes on."""
        if doing != self._doing:
            self._doing, self._since, self._tail = doing, time.monotonic(), ""

    def wait(self, doing: str, seconds: float) -> None:
        """The model server says what the wait is about, and how long it has taken."""
        self._doing, self._since = doing, time.monotonic() - seconds

    def tail(self, text: str) -> None:
        """What was thought or printed last."""
        self._tail = (self._tail + text)[-400:]

    def count(self, pieces: int) -> None:
        """The model has said so much more; a piece of a stream is about a token."""
        self._pieces += pieces

    def used(self, tokens: int) -> None:
        """The conversation takes so many tokens, by the server's count."""
        self._used, self._pieces = tokens, 0

    def __call__(self, columns: int) -> str:
        said = "%s %d s" % (self._doing, time.monotonic() - self._since)
        tokens = self._used + self._pieces
        if tokens:
            said += " · %s tokens" % (tokens if tokens < 1000 else "%.1fk" % (tokens / 1000))
        tail = " ".join(self._tail.split())
        room = columns - width(said) - 3
        if not tail or room < 10:
            return said
        while width(tail) > room:
            tail = tail[max(1, (len(tail) - room) // 2):]
        return "%s · %s" % (said, tail)
