"""The messages that the user typed, kept for the next chat: one a line, readable by the user alone."""

from __future__ import annotations

import os

from mm.config import places

NAME = "history"
MOST = 1000  # entries that are kept; the file may have twice as many before it is shortened
LONGEST = 10_000  # characters; a longer one is a paste, and nobody looks for it again


class History:
    """The file `history` in the user's state folder; without one, or if it cannot be
    written, nothing is kept."""

    def __init__(self, environ=os.environ):
        folder = places.state_folder(environ)
        self._path = os.path.join(folder, NAME) if folder else None

    def load(self) -> list:
        """The entries, the oldest first."""
        if not self._path:
            return []
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            return []
        if len(lines) > 2 * MOST:
            self._shorten(lines[-MOST:])
        return [_unescaped(line) for line in lines[-MOST:]]

    def add(self, text: str) -> None:
        if not self._path or len(text) > LONGEST:
            return
        try:
            os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
            self._write(self._path, [_escaped(text)], os.O_APPEND)
        except OSError:
            pass  # a chat without a history is still a chat

    def _shorten(self, lines: list) -> None:
        """Another chat may do the same at the same time: the last one wins."""
        temporary = "%s.%d" % (self._path, os.getpid())
        try:
            self._write(temporary, lines, os.O_TRUNC)
            os.replace(temporary, self._path)
        except OSError:
            pass

    @staticmethod
    def _write(path: str, lines: list, flag: int) -> None:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | flag, 0o600), "w", encoding="utf-8",
                  errors="replace") as file:
            file.write("".join(line + "\n" for line in lines))


def _escaped(text: str) -> str:
    """`text` on one line."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _unescaped(line: str) -> str:
    parts = line.split("\\\\")
    return "\\".join(part.replace("\\n", "\n").replace("\\r", "\r") for part in parts)
