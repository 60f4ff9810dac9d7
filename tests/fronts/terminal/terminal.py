"""mm in a terminal of its own: a real pty, and what a person would see on it.

The screen understands what mm and readline write: text with wide characters, line ends, backspace, and the
sequences that move the cursor or clear. What has scrolled away stays above, so that a test can look at all of
it.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata
import warnings

from tests import support

_SEQUENCE = re.compile(r"\x1b\[([?>]?)([0-9;]*)([A-Za-z@])|\x1b[=>]|\x1b\][^\x07]*\x07|\x1b\([A-Z0-9]")


class Picture:
    """The lines of a terminal of `columns`; colours are left out."""

    def __init__(self, columns: int):
        self._columns = columns
        self._lines, self._row, self._column = [[]], 0, 0
        self._rest = ""

    def feed(self, text: str) -> None:
        text, place = self._rest + text, 0
        self._rest = ""
        while place < len(text):
            character = text[place]
            if character == "\x1b":
                found = _SEQUENCE.match(text, place)
                if not found:
                    self._rest = text[place:]
                    return
                self._move(found[2] or "", found[3] or "")
                place = found.end()
                continue
            place += 1
            self._put(character)

    def _put(self, character: str) -> None:
        if character == "\n":
            self._row += 1
        elif character == "\r":
            self._column = 0
        elif character == "\b":
            self._column = max(0, self._column - 1)
        elif character >= " ":
            wide = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if unicodedata.category(character) in ("Mn", "Me", "Cf"):
                wide = 0
            if self._column + wide > self._columns:
                self._row, self._column = self._row + 1, 0
            line = self._line()
            line[self._column:self._column + max(wide, 1)] = [character] + [""] * (wide - 1)
            self._column += wide

    def _line(self) -> list:
        while len(self._lines) <= self._row:
            self._lines.append([])
        line = self._lines[self._row]
        line += [" "] * (self._column - len(line))
        return line

    def _move(self, numbers: str, letter: str) -> None:
        count = int(numbers.split(";")[0] or 1) if numbers else 1
        if letter == "A":
            self._row = max(0, self._row - count)
        elif letter == "C":
            self._column += count
        elif letter == "D":
            self._column = max(0, self._column - count)
        elif letter == "K":
            del self._line()[self._column:]
        elif letter == "P":
            del self._line()[self._column:self._column + count]
        elif letter == "@":
            self._line()[self._column:self._column] = [" "] * count
        elif letter == "J":
            del self._line()[self._column:], self._lines[self._row + 1:]

    def text(self) -> str:
        return "\n".join("".join(line).rstrip() for line in self._lines).strip("\n")


class Terminal:
    """Runs mm with `arguments` in a pty of `columns`, by `command`, if given, or runs `argv`; a context
    manager that leaves no process behind."""

    def __init__(self, *arguments, columns: int = 80, cwd=None, env=None, command=(), argv=None):
        self.cwd = cwd or support.scratch_folder()
        self.picture, self.raw = Picture(columns), ""
        variables = dict({"TERM": "xterm", "HOME": support.scratch_folder()}, **(env or {}))
        variables = support.environment(**variables)
        argv = argv or [*command, *support.mm(*arguments)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fork in a process with threads; what follows is an exec
            self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                self._resize(0, columns)
                os.chdir(self.cwd)
                os.execvpe(argv[0], argv, variables)
            finally:
                os._exit(127)
        self.code = None
        plain = variables.get("NO_COLOR") or variables["TERM"] == "dumb"
        self.prompt = "> " if plain else "\x1b[1m> \x1b[0m"
        self._typed_at = 0

    @staticmethod
    def _resize(descriptor: int, columns: int) -> None:
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def resize(self, columns: int) -> None:
        self._resize(self.master, columns)
        self.picture._columns = columns

    # Typing

    def type(self, text: str) -> None:
        """What comes meanwhile is read, so that neither side waits for the other."""
        self._typed_at = len(self.raw)
        data = text.encode("utf-8", "surrogateescape")
        while data:
            readable, writable, _ = select.select([self.master], [self.master], [], support.DEADLINE)
            if readable:
                self._read()
            if writable:
                data = data[os.write(self.master, data[:1024]):]

    def enter(self, text: str) -> None:
        """Types a message and sends it."""
        self.type(text + "\r")

    # Seeing

    def wait_for(self, wanted) -> str:
        """Waits until the picture fits the pattern `wanted`, or until `wanted(picture)` is true; returns the
        picture."""
        fits = wanted if callable(wanted) else lambda picture: re.search(wanted, picture, re.MULTILINE)
        deadline = time.monotonic() + support.DEADLINE
        while not fits(self.picture.text()):
            left = deadline - time.monotonic()
            if left >= 0 and self._read(left):
                # a look at the whole picture for each piece of a large one would take long
                while self._read():
                    pass
            else:
                raise AssertionError("%r did not come; the screen:\n%s\n%r"
                                     % (wanted, self.picture.text(), self.raw[-500:]))
        return self.picture.text()

    def idle(self) -> str:
        """Waits until mm asks for a message again, after what was typed last; returns the picture."""
        return self.wait_for(lambda _: self.raw.endswith(self.prompt) and "\n" in self.raw[self._typed_at:])

    def _read(self, seconds: float = 0) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:  # nobody has the other side any more
            data = b""
        text = data.decode("utf-8", "replace")
        self.raw += text
        self.picture.feed(text)
        return bool(data)

    # Ending

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, timeout: float = support.DEADLINE) -> int:
        """Waits for mm's end; the exit code, or minus the signal."""
        deadline = time.monotonic() + timeout
        while self.code is None:
            self._read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
            elif time.monotonic() > deadline:
                raise AssertionError("mm did not end; the screen:\n" + self.picture.text())
        while self._read(0.05):
            pass
        return self.code

    def close(self) -> None:
        """The terminal is closed."""
        os.close(self.master)
        self.master = -1

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_) -> None:
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.master >= 0:
            os.close(self.master)
