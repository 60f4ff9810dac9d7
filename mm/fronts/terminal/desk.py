"""The chat's two threads: one does the work, and the main one waits for it, takes a Ctrl-C and alone reads
the keyboard. What the work wants to know of the user is put on the desk, where the main thread asks it."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time

from mm import log

LOOK_UP = 0.1  # seconds; a wait without a limit would not let a Ctrl-C through on every system
TWICE = 2.0  # seconds in which a second Ctrl-C means that the user wants to leave


class Leave(Exception):
    """The user wants to leave mm at once."""


class Interrupts:
    """A Ctrl-C is a KeyboardInterrupt only while the main thread waits for something: at any other time it
    would leave things half done. One that comes at another time is raised at the next wait."""

    def __init__(self):
        self._may_come = self._waits = False
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


class Desk:
    """Where work and keyboard meet. `interrupted()` is called when a Ctrl-C has cancelled the work."""

    def __init__(self, interrupts, interrupted):
        self._interrupts, self._interrupted = interrupts, interrupted
        self._inbox = queue.SimpleQueue()
        self._cancelled_at = -TWICE
        self._over = None

    def run(self, work, cancel) -> None:
        """Runs `work()` in a thread of its own until it is over. What it raises is a bug. Raises Leave."""
        self._over = over = threading.Event()

        def run() -> None:
            try:
                work()
            except Exception:
                log.traceback()
            over.set()
            self._inbox.put(None)

        threading.Thread(target=run, name="turn", daemon=True).start()
        while not over.is_set():
            try:
                self._attend()
            except KeyboardInterrupt:
                self.heed_interrupt()
                self._cancelled_at = time.monotonic()
                cancel.cancel()
                self._interrupted()

    def heed_interrupt(self) -> None:
        """Raises Leave if this Ctrl-C closely follows one that cancelled work."""
        if time.monotonic() - self._cancelled_at < TWICE:
            raise Leave

    def settle(self, seconds: float) -> None:
        """Gives cancelled work some time to end."""
        if self._over:
            self._over.wait(seconds)

    def ask(self, question, cancel):
        """What `question()` returns, which runs in the main thread. Raises Cancelled."""
        answered, answers = threading.Event(), []

        def put() -> None:
            try:
                if not cancel.cancelled:
                    answers.append(question())
            except Exception:
                log.traceback()
                cancel.cancel()
            answered.set()

        self._inbox.put(put)
        cancel.wait(answered)
        return answers[0]

    def _attend(self) -> None:
        try:
            with self._interrupts.welcome():
                question = self._inbox.get(timeout=LOOK_UP)
        except queue.Empty:
            return
        if question:
            question()
