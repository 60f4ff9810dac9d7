"""What a session has to say to its user outside of the answer: what waits for trust, was left out or was not sent."""

from __future__ import annotations

import threading


class Notices:
    """Lines from anywhere in mm for the front end, which takes them after the first answer. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._added = set()
        self._waiting = []

    def add(self, line: str) -> None:
        """Leaves a line to be said; one that was added before is said no more in this session."""
        with self._lock:
            if line not in self._added:
                self._added.add(line)
                self._waiting.append(line)

    def take(self) -> list:
        """The lines since the last time."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        return waiting
