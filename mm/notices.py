"""What a session tells its user beside the answers: what waits for trust, was left out or was not sent."""

from __future__ import annotations

import threading


class Notices:
    """Lines from anywhere in mm for the front end, which shows them after the first answer. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._added = set()
        self._waiting = []

    def add(self, line: str) -> None:
        """Leaves a line for the front end. A line that this session has added before is ignored."""
        with self._lock:
            if line not in self._added:
                self._added.add(line)
                self._waiting.append(line)

    def take(self) -> list:
        """Returns the lines that were added since the last call."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        return waiting
