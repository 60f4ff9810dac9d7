"""Cancel: the one way anything in mm is interrupted.

A Cancel is made when a prompt arrives and lives until the prompt is answered. Whatever waits for something
slow (a model's bytes, a command, a dialog, a place in the queue) registers a callback that ends that wait;
`cancel()` runs the callbacks on the thread that cancels. A callback must not block: it sets an event, shuts a
socket or signals a process group.
"""

from __future__ import annotations

import threading
import time


class Cancelled(Exception):
    """The turn was cancelled; ends it wherever it is."""


class Cancel:
    """An event with callbacks. Thread-safe; only the first call of `cancel()` counts."""

    def __init__(self):
        self._lock = threading.Lock()
        self._callbacks = {}
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            callbacks, self._callbacks = list(self._callbacks.values()), {}
        for callback in callbacks:
            callback()

    def check(self) -> None:
        """Raises Cancelled if cancel() has been called."""
        if self._cancelled:
            raise Cancelled()

    def on_cancel(self, callback) -> _Registration:
        """Runs `callback()` once on the cancel, or immediately if it has already happened.

        Returns a context manager. Leaving it forgets the callback, but does not wait for one that is running.
        """
        registration = _Registration(self)
        with self._lock:
            if not self._cancelled:
                self._callbacks[registration] = callback
                return registration
        callback()
        return registration

    def wait(self, event: threading.Event, timeout: float | None = None) -> bool:
        """Waits for `event`, for `timeout` seconds, or for the cancel, which raises Cancelled.

        Returns whether the event was set. The event must belong to this wait alone, because the cancel sets
        it too.
        """
        with self.on_cancel(event.set):
            happened = event.wait(timeout)
        self.check()
        return happened

    def sleep(self, seconds: float) -> None:
        """Waits that long. Raises Cancelled as soon as the cancel comes."""
        self.wait(threading.Event(), seconds)

    def _forget(self, registration: _Registration) -> None:
        with self._lock:
            self._callbacks.pop(registration, None)


class Deadline:
    """The moment that is `seconds` from now."""

    __slots__ = ("_at",)

    def __init__(self, seconds: float):
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """The seconds until that moment; 0 or less once it has passed."""
        return self._at - time.monotonic()


class _Registration:
    """A callback in a Cancel; leaving the `with` block or `forget()` removes it."""

    __slots__ = ("_cancel",)

    def __init__(self, cancel: Cancel):
        self._cancel = cancel

    def forget(self) -> None:
        self._cancel._forget(self)

    def __enter__(self) -> _Registration:
        return self

    def __exit__(self, *_) -> None:
        self.forget()
