"""One file's change, small enough to be shown and kept. Pure."""

from __future__ import annotations

from mm.json_text import encoded_size
from mm.events import Diff

# Bytes of JSON that one side of a diff may have.
SIDE_LIMIT = 16 * 1024
# Lines kept around the changed region of a larger one.
CONTEXT = 3
NOT_SHOWN = "… [%d more line(s) not shown]"


def capped(diff: Diff) -> Diff:
    """The diff itself or, if a side is too large, its changed region: the same lines of both sides."""
    old, new = diff.old, diff.new
    if max(encoded_size(new), encoded_size(old or "")) > SIDE_LIMIT:
        old, new = changed_region(old, new)
    return Diff(diff.path, old, new)


def changed_region(old: str | None, new: str) -> tuple:
    """(old, new) of the lines that differ with some context, each side cut at SIDE_LIMIT; old may be None."""
    if old is None:
        return None, _cut(new)
    before, after = old.splitlines(True), new.splitlines(True)
    shortest = min(len(before), len(after))
    start = 0
    while start < shortest and before[start] == after[start]:
        start += 1
    end = 0
    while end < shortest - start and before[-1 - end] == after[-1 - end]:
        end += 1
    start, end = max(0, start - CONTEXT), max(0, end - CONTEXT)
    return tuple(_cut("".join(lines[start:len(lines) - end])) for lines in (before, after))


def _cut(text: str) -> str:
    """As much of the text's beginning as fits, followed by `…` and how much is not shown."""
    if encoded_size(text) <= SIDE_LIMIT:
        return text
    keep = min(len(text), SIDE_LIMIT)
    while encoded_size(text[:keep]) > SIDE_LIMIT - 64:
        keep = keep * 9 // 10
    return text[:keep] + NOT_SHOWN % (text[keep:].rstrip("\n").count("\n") + 1)
