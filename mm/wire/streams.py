"""Reading and writing file descriptors for a Peer: all of it, also where the descriptor is non-blocking.

mm never makes its own descriptors non-blocking, but whoever started it may share them and do so.
"""

from __future__ import annotations

import os

# A pipe's size on Linux: more than that never comes at once.
READ_SIZE = 64 * 1024


def read_from(descriptor: int):
    """A function that waits for bytes and returns them, b"" at the end; OSError as os.read raises it."""

    def read() -> bytes:
        while True:
            try:
                return os.read(descriptor, READ_SIZE)
            except BlockingIOError:
                _wait([descriptor], [])

    return read


def write_to(descriptor: int):
    """A function of bytes that returns when all are written; OSError as os.write raises it."""

    def write(data: bytes) -> None:
        written = _write_some(descriptor, data)
        if written < len(data):
            rest = memoryview(data)[written:]
            while rest:
                rest = rest[_write_some(descriptor, rest):]

    return write


def _write_some(descriptor: int, data) -> int:
    while True:
        try:
            return os.write(descriptor, data)
        except BlockingIOError:
            _wait([], [descriptor])


def _wait(readable: list, writable: list) -> None:
    import select

    select.select(readable, writable, [])
