"""The signals of a terminal: what ends mm ends it in order, and ^Z stops it with the terminal as the shell
wants it."""

from __future__ import annotations

import os
import signal
import threading
import time

# The terminal closes, the system ends, ^\.
ENDING = ("SIGHUP", "SIGTERM", "SIGQUIT")
NOTICED = 0.05  # seconds in which a signal is noticed, unless it came at the wrong moment


def heed(redraw) -> None:
    """From now on; `redraw()` shows what was typed so far again, after a stop."""
    for name in ENDING:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _end)
    if hasattr(signal, "SIGTSTP"):
        import termios

        _make_readline_notice()
        usual = termios.tcgetattr(0)
        signal.signal(signal.SIGTSTP, lambda number, frame: _stop(usual, redraw))


def _end(number, _frame) -> None:
    """Leaves whatever the main thread does, also a read of the keyboard."""
    raise SystemExit(128 + number)


def _stop(usual, redraw) -> None:
    """Stops with the terminal's usual attributes, and goes on with those that it had: readline has some of
    its own."""
    import termios

    own, handler = termios.tcgetattr(0), signal.getsignal(signal.SIGTSTP)
    termios.tcsetattr(0, termios.TCSANOW, usual)
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, handler)
    termios.tcsetattr(0, termios.TCSANOW, own)
    redraw()


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
