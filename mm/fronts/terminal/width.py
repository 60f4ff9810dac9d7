"""How wide a text is on a terminal, and the part of it that fits. Pure."""

from __future__ import annotations


def width(text: str) -> int:
    """The number of columns that `text` takes: two for a wide character, none for a mark that joins the one
    before."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def cut(text: str, columns: int) -> str:
    """The beginning of `text` that fits into `columns`; `…` stands in place of the rest."""
    if width(text) <= columns:
        return text
    kept, left = [], columns - 1
    for character in text:
        left -= _columns(character)
        if left < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def _columns(character: str) -> int:
    import unicodedata

    if character < "\u0300":
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
