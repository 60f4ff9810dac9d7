"""The terminal as it is written to: the answer as it streams, whole lines, and the line that says what mm
waits for.

All output of the process goes through one Screen, under one lock. The status line is drawn by a thread of its
own while nothing else is written, and is gone before anything else is. If it cannot be rewritten (TERM=dumb,
no terminal), there is none.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time

from mm.fronts.lines import Colors
from mm.text import clean

# Seconds of silence before the status line comes: at the beginning of a line, and in the middle of one.
PATIENCE, LONG_PATIENCE = 0.3, 2.0
REDRAWN = 0.1
SIGNS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
USUAL_COLUMNS = 80


class Screen:
    """`stream`: the terminal, or what stands in for it. Thread-safe. `lost`: the terminal is gone."""

    def __init__(self, stream, color: str = "auto"):
        self._descriptor, self._encoding = stream.fileno(), stream.encoding or "utf-8"
        self.colored = bool(Colors(stream, color).bold)
        self.is_terminal = stream.isatty()
        self.rewrites = self.is_terminal and os.environ.get("TERM", "dumb") != "dumb"
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._thread = None
        self._status = None  # a function of the columns there are, while mm waits
        self._drawn = False
        self._quiet_since = 0.0
        self._column = 0  # of the cursor in its line
        self._held = None  # lines that wait while the user types
        self.lost = False

    @property
    def columns(self) -> int:
        try:
            return os.get_terminal_size(self._descriptor).columns or USUAL_COLUMNS
        except OSError:
            return USUAL_COLUMNS

    def text(self, text: str, style: str = "") -> None:
        """Writes at the cursor, without what a terminal would obey."""
        text = clean(text)
        if not text:
            return
        with self._lock:
            self._erase()
            self._write(self._styled(text, style))
            before, _, last = text.rpartition("\n")
            self._column = width(last) + (0 if before or text[:1] == "\n" else self._column)
            self._quiet_since = time.monotonic()

    def line(self, text: str, style: str = "") -> None:
        """Writes a line of its own; later, while the user types."""
        with self._lock:
            if self._held is not None:
                self._held.append((text, style))
                return
            self.fresh()
            self.text(text, style)
            self.text("\n")

    def fresh(self) -> None:
        """Goes to the beginning of a line."""
        with self._lock:
            self._erase()
            if self._column:
                self.text("\n")

    def echoed(self, text: str) -> None:
        """The terminal itself has shown what the user typed."""
        with self._lock:
            if self._drawn:  # it goes with the line that it stands in
                self.text(text)
            else:
                self._column += width(text)

    @contextlib.contextmanager
    def typing(self):
        """While the user types nothing else is written."""
        with self._lock:
            self._erase()
            status, self._status, self._held = self._status, None, []
        try:
            yield
        finally:
            with self._lock:
                held, self._held, self._column = self._held, None, 0
                for text, style in held:
                    self.line(text, style)
                self.waiting(status)

    def waiting(self, status) -> None:
        """From now on the line that `status(columns)` returns is shown whenever nothing is written for a
        moment; None: no more."""
        with self._lock:
            self._erase()
            self._status, self._quiet_since = status, time.monotonic()
            if status and self.rewrites and not self._thread:
                self._thread = threading.Thread(target=self._redraw, name="status line", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _redraw(self) -> None:
        turn = 0
        while True:
            with self._lock:
                while self._status is None:
                    self._changed.wait()
                turn += 1
                self._draw(SIGNS[turn % len(SIGNS)])
            time.sleep(REDRAWN)

    def _draw(self, sign: str) -> None:
        columns = self.columns
        patience = LONG_PATIENCE if self._column else PATIENCE
        if time.monotonic() - self._quiet_since < patience or self._column and self._column % columns == 0:
            return  # at the right margin terminals differ about the line that the cursor is in
        line = self._styled(cut("%s %s" % (sign, self._status(columns - 3)), columns - 1), "2")
        self._write("%s%s" % ("\r\x1b[K" if self._drawn or not self._column else "\n", line))
        self._drawn = True

    def _erase(self) -> None:
        """Takes the status line away, and goes back to where the text ends."""
        if self._drawn:
            self._drawn = False
            back = "\x1b[A\r\x1b[%dC" % (self._column % self.columns) if self._column else ""
            self._write("\r\x1b[K" + back)

    def _styled(self, text: str, style: str) -> str:
        if not (style and self.colored):
            return text
        ending = "\n" if text.endswith("\n") else ""
        return "\x1b[%sm%s\x1b[0m%s" % (style, text[:len(text) - len(ending)], ending)

    def _write(self, text: str) -> None:
        data = memoryview(text.encode(self._encoding, "replace"))
        while data and not self.lost:
            try:
                data = data[os.write(self._descriptor, data):]
            except BlockingIOError:  # whoever shares the terminal made it non-blocking
                time.sleep(0.01)
            except OSError:
                self.lost = True


def width(text: str) -> int:
    """The number of columns that `text` takes: two for a wide character, none for a mark that joins the one
    before."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def cut(text: str, columns: int) -> str:
    """The beginning of `text` that fits into `columns`; `…` stands in place of the rest."""
    if width(text) <= columns:
        return text
    kept, left = [], columns - 1
    for character in text:
        left -= _columns(character)
        if left < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def _columns(character: str) -> int:
    import unicodedata

    if character < "\u0300":
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
