"""A question to the user of the terminal that mm runs in, even if stdin and stdout are pipes."""

from __future__ import annotations

import contextlib
import os

PATH = "/dev/tty"
LOOK_UP = 0.1  # seconds between two looks at the cancel


@contextlib.contextmanager
def reader(screen, cancel):
    """`read(prompt)`, which returns a line, or None if there is no terminal or mm runs in its background.

    It raises EOFError at the end of the input and Cancelled.
    """
    descriptor = _open()
    try:
        yield (lambda prompt: _read(descriptor, prompt, screen, cancel)) if descriptor is not None else None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _open():
    try:
        descriptor = os.open(PATH, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    if os.tcgetpgrp(descriptor) == os.getpgrp():
        return descriptor
    os.close(descriptor)  # a read would stop a program in the background
    return None


def _read(descriptor: int, prompt: str, screen, cancel) -> str:
    import select

    from mm.fronts.typed import decoded

    with screen.typing():
        os.write(descriptor, prompt.encode())
        line = b""
        while not line.endswith(b"\n"):
            cancel.check()
            if select.select([descriptor], [], [], LOOK_UP)[0]:
                piece = os.read(descriptor, 1 << 12)
                if not piece:
                    raise EOFError
                line += piece
        return decoded(line).rstrip("\n")
