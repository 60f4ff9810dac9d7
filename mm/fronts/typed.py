"""What a user typed or piped in, as text: whatever this locale takes the bytes for, UTF-8 is UTF-8 and
nothing is lost."""

from __future__ import annotations

import os
import stat

from mm import log
from mm.text import fence

SILENT_STDIN = 3.0  # seconds to wait for the first byte of a pipe that may have nothing to say


def decoded(data: bytes) -> str:
    """UTF-8 if it is that; else every byte is a character, as Western European systems had them."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def as_typed(text: str) -> str:
    """`text`, which Python has decoded as the locale has it (an argument, a line of stdin)."""
    try:
        data = os.fsencode(text)
    except UnicodeEncodeError:  # it was no such text
        return text
    if not text.isascii() and not _holds_bytes(text):
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return text  # the locale is right
    return decoded(data)


def _holds_bytes(text: str) -> bool:
    """Whether the locale could not decode some of it."""
    return any("\udc80" <= character <= "\udcff" for character in text)


def with_stdin(question: str, stdin) -> str:
    """The question, followed by what was piped into stdin in a fence."""
    given = piped(stdin)
    if not given.strip():
        return question
    return "%s\n\n%s" % (question, fence(given.rstrip("\n"))) if question else given


def piped(stdin) -> str:
    """What is piped in, whole; "" for a terminal, the null device and a pipe that stays silent."""
    try:
        descriptor = stdin.fileno()
        mode = os.fstat(descriptor).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or none at all
        return ""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return ""
    if not stat.S_ISREG(mode) and _stays_silent(descriptor):
        log.line("mm: nothing came on stdin for %d seconds: going on without it" % SILENT_STDIN)
        return ""
    return decoded(stdin.buffer.read())


def _stays_silent(descriptor: int) -> bool:
    if os.name == "nt":  # select works on sockets alone there
        return False
    import select

    return not select.select([descriptor], [], [], SILENT_STDIN)[0]
