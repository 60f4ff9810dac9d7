"""What the user types: a message at the prompt, or a line in a dialog. Read by the main thread alone.

With readline there are editing, history and completion, and a paste that the terminal marks (bracketed paste)
is one message. Otherwise, what can be read right after a line is taken for the rest of a paste.
"""

from __future__ import annotations

import os
import sys

from mm.config import places
from mm.fronts.typed import as_typed

try:
    import readline
except ImportError:
    readline = None

# The other library of that name, which macOS has.
LIBEDIT = readline and "EditLine" in str(readline._READLINE_LIBRARY_VERSION)
PROMPT, MORE = "> ", "… "
QUOTES = '"""'
PASTED = 0.03  # seconds in which the next piece of a paste comes
PIECE = 1 << 16
MOST_ENTRIES = 1000  # of the history


class Keyboard:
    """`screen` and `interrupts` (desk.Interrupts) are the chat's; `complete(text, line)` returns what `text`,
    the word before the cursor in `line`, may become."""

    def __init__(self, screen, interrupts, complete):
        self._screen, self._interrupts = screen, interrupts
        self._history = None  # the file of earlier messages
        self._matches = []
        self._asked = ""  # the prompt, while a line is read
        self._complete = complete
        sys.stdin.reconfigure(errors="surrogateescape")
        if readline:
            self._set_up()

    def _set_up(self) -> None:
        readline.set_auto_history(False)
        readline.set_completer(self._next_match)
        readline.set_completer_delims(" \t\n")
        if LIBEDIT:
            readline.parse_and_bind("bind ^I rl_complete")
        else:
            readline.parse_and_bind("tab: complete")
            readline.parse_and_bind("set enable-bracketed-paste on")
        self._open_history(places.state_folder(os.environ))

    def _open_history(self, folder) -> None:
        """Earlier messages, in a file that only the user can read; a chat without them is still a chat."""
        if not folder:
            return
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            path = os.path.join(folder, "history")
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.read_history_file(path)
            readline.set_history_length(MOST_ENTRIES)
            self._history = path
        except OSError:
            pass

    def message(self) -> str:
        """The next message. Raises EOFError at its end, KeyboardInterrupt."""
        text = self._paste(self._read(self._prompt(PROMPT)))
        if text.lstrip().startswith(QUOTES):
            text = self._quoted(text.lstrip()[len(QUOTES):])
        text = as_typed(text)
        self._remember(text)
        return text

    def line(self, prompt: str) -> str:
        """One line in a dialog, with what was pasted after it. Raises EOFError, KeyboardInterrupt."""
        return as_typed(self._paste(self._read(prompt)))

    def redraw(self) -> None:
        """Shows the prompt and what was typed so far again, while a line is read; readline itself believes
        that it is there."""
        if readline and self._asked:
            self._screen.text(self._asked + readline.get_line_buffer())

    def _quoted(self, text: str) -> str:
        """A message between three quotes, which may have several lines."""
        while not text.rstrip().endswith(QUOTES):
            text += "\n" + self._paste(self._read(MORE))
        return text.rstrip()[:-len(QUOTES)].strip("\n")

    def _read(self, prompt: str) -> str:
        with self._screen.typing():
            self._asked = prompt.replace("\001", "").replace("\002", "")
            try:
                with self._interrupts.welcome():
                    return input(prompt)
            except OSError:  # the terminal is gone
                raise EOFError from None
            finally:
                self._asked = ""

    def _prompt(self, prompt: str) -> str:
        """In bold; readline has to know that the colours take no room, and libedit does not."""
        if not (readline and self._screen.colored) or LIBEDIT:
            return prompt
        return "\001\x1b[1m\002%s\001\x1b[0m\002" % prompt

    def _paste(self, line: str) -> str:
        """The line and what was pasted with it."""
        rest = pasted()
        if not rest:
            return line
        pasted_text = rest.decode(sys.stdin.encoding or "utf-8", "surrogateescape")
        text = line + "\n" + pasted_text.replace("\r\n", "\n").replace("\r", "\n")
        self._screen.line("(%d lines pasted)" % (text.rstrip("\n").count("\n") + 1), "2")
        return text.rstrip("\n")

    def _remember(self, text: str) -> None:
        if not readline or not text.strip() or text.startswith(" "):
            return
        try:
            readline.add_history(text)
            if self._history and LIBEDIT:
                readline.write_history_file(self._history)
            elif self._history:
                readline.append_history_file(1, self._history)
        except (OSError, UnicodeEncodeError):
            pass  # the disk is full; this locale cannot write it

    def _next_match(self, text: str, number: int):
        """The completer as readline calls it: for the word `text`, with 0, 1, 2, … until it returns None."""
        if number == 0:
            self._matches = self._complete(text, readline.get_line_buffer()[:readline.get_endidx()])
        return self._matches[number] if number < len(self._matches) else None


def discard_typed() -> None:
    """What was typed before the user could see the question does not answer it."""
    try:
        import termios

        termios.tcflush(0, termios.TCIFLUSH)
    except (ImportError, OSError, ValueError):
        pass  # Windows; no terminal


def pasted() -> bytes:
    """What can be read already, without waiting for more: the rest of a paste, or b""."""
    try:
        import select
        import termios
        import tty
    except ImportError:
        return b""  # Windows

    def ready(seconds: float) -> bool:
        return bool(select.select([0], [], [], seconds)[0])

    if not ready(0):
        return b""
    usual, pieces = termios.tcgetattr(0), []
    tty.setcbreak(0, termios.TCSANOW)  # for lines of any length, which have been shown already
    try:
        while ready(PASTED):
            pieces.append(os.read(0, PIECE))
            if not pieces[-1]:
                break
    finally:
        termios.tcsetattr(0, termios.TCSANOW, usual)
    return b"".join(pieces)
