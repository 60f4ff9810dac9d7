"""The signals of a terminal: ^C interrupts a wait and nothing else, what ends mm ends it in order, and ^Z
stops it with the terminal as the shell wants it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

# The terminal closes, the system ends, ^\.
ENDING = ("SIGHUP", "SIGTERM", "SIGQUIT")
NOTICED = 0.05  # seconds in which a signal is noticed, unless it came at the wrong moment


class Interrupts:
    """A Ctrl-C is a KeyboardInterrupt only while the main thread waits for something: at any other time it
    would leave things half done. One that comes at another time is raised at the next wait."""

    def __init__(self):
        self._may_come = self._waits = False

    def heed(self) -> None:
        signal.signal(signal.SIGINT, self._take)

    def _take(self, _number, _frame) -> None:
        if self._may_come:
            raise KeyboardInterrupt
        self._waits = True

    @contextlib.contextmanager
    def welcome(self):
        """The main thread waits here."""
        try:
            self._may_come = True
            if self._waits:
                raise KeyboardInterrupt
            yield
        finally:
            self._waits = False
            self._may_come = False


def heed(redraw) -> None:
    """From now on; `redraw()` shows what was typed so far again, after a stop."""
    for name in ENDING:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _end)
    if hasattr(signal, "SIGTSTP"):
        _make_readline_notice()
        usual = _attributes()
        signal.signal(signal.SIGTSTP, lambda number, frame: _stop(usual, redraw))


def _make_readline_notice() -> None:
    """Python's readline misses a signal that comes just before it begins to wait. So each signal is followed
    by one that ends the wait: SIGWINCH, which readline handles itself and which does nothing without
    readline."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    main = threading.main_thread().ident

    def wake() -> None:
        while os.read(read, 64):
            time.sleep(NOTICED)
            signal.pthread_kill(main, signal.SIGWINCH)

    threading.Thread(target=wake, name="signals", daemon=True).start()


def _end(number, _frame) -> None:
    """Leaves whatever the main thread does, also a read of the keyboard."""
    raise SystemExit(128 + number)


def _stop(usual, redraw) -> None:
    """Stops with the terminal's usual attributes, and goes on with those that it had: readline has some of
    its own."""
    own, handler = _attributes(), signal.getsignal(signal.SIGTSTP)
    _set(usual)
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, handler)
    _set(own)
    redraw()


def _attributes():
    import termios

    try:
        return termios.tcgetattr(0)
    except (termios.error, OSError):
        return None


def _set(attributes) -> None:
    import termios

    try:
        if attributes:
            termios.tcsetattr(0, termios.TCSANOW, attributes)
    except (termios.error, OSError):
        pass
