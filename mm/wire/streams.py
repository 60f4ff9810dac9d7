"""Reading and writing file descriptors for a Peer, whole, even if a descriptor is non-blocking.

mm never makes its own descriptors non-blocking, but whoever started it may share them and do so.
"""

from __future__ import annotations

import os

# The size of a pipe on Linux: never more comes at once.
READ_SIZE = 64 * 1024


class Reader:
    """A function that waits for bytes and returns them, b"" at the end; OSError as os.read raises it."""

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._signals = None

    def __call__(self) -> bytes:
        while True:
            if self._signals is not None:
                self._wait_for_signals_too()
            try:
                return os.read(self._descriptor, READ_SIZE)
            except BlockingIOError:
                _wait([self._descriptor], [])

    def wake_on_signals(self) -> None:
        """From now on a signal ends the wait for bytes at any moment. On the main thread, where handlers run.

        Otherwise a signal that arrives between the interpreter's last look for signals and the system's read
        is noticed only when the next bytes come. On a busy machine that happens once in a few hundred times.
        """
        if self._signals is None and os.name != "nt":  # sockets alone would do there
            import signal

            self._signals, ours = os.pipe()
            os.set_blocking(self._signals, False)
            os.set_blocking(ours, False)
            signal.set_wakeup_fd(ours, warn_on_full_buffer=False)

    def _wait_for_signals_too(self) -> None:
        """Waits until there are bytes; the handler of a signal runs in here and may raise."""
        while True:
            ready = _wait([self._descriptor, self._signals], [])
            if self._descriptor in ready:
                return
            os.read(self._signals, READ_SIZE)


def write_to(descriptor: int):
    """A function of bytes that returns when all are written; OSError as os.write raises it."""

    def write(data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(descriptor, rest):]
            except BlockingIOError:
                _wait([], [descriptor])

    return write


def _wait(readable: list, writable: list) -> list:
    """Waits until one of them can be read or written; returns those that can be read."""
    import select

    return select.select(readable, writable, [])[0]
