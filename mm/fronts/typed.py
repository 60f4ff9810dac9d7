"""What a user typed or piped in, as text: whatever this locale takes the bytes for, UTF-8 is UTF-8 and
nothing is lost."""

from __future__ import annotations

import os


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
