"""What a session tells its user beside the answers: what waits for trust, was left out or was not sent."""

from __future__ import annotations

import threading


class Notices:
    """Lines from anywhere in mm for the front end, which shows them after the first answer. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._added = set()
        self._waiting = []

    def add(self, line: str, logged: bool = False) -> None:
        """Leaves a line for the front end. A line that this session has added before is ignored.

        `logged`: the log has it too, so that a user who reads the log need not get it again.
        """
        with self._lock:
            if line not in self._added:
                self._added.add(line)
                self._waiting.append((line, logged))

    def take(self, logged: bool = True) -> list:
        """The lines since the last call; without `logged`, only those that the log does not have."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        return [line for line, is_logged in waiting if logged or not is_logged]
