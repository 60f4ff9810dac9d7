"""Placeholders: `<any>`, `<n>`, `<id>` and the like, in text as it is written and in values. Pure.

A placeholder is recognised in the line as it is written, before its JSON is read: `\\u003cany>` therefore is
the text "<any>" and not a placeholder. Inside a value a placeholder is its name between two private-use
characters, which no other text is expected to hold.
"""

from __future__ import annotations

import json
import re

_OPEN, _CLOSE = "\ue000", "\ue001"
_WRITTEN = re.compile(r"<(cwd|home|any|n|id\d*)>")
MARKED = re.compile(_OPEN + r"(\w+)" + _CLOSE)


def mark(name: str) -> str:
    """The placeholder as it stands in a value."""
    return _OPEN + name + _CLOSE


def marked(text: str) -> str:
    """Text as it is written, with its placeholders as they stand in values."""
    return _WRITTEN.sub(_OPEN + r"\1" + _CLOSE, text)


def unmark(text: str) -> str:
    return MARKED.sub(r"<\1>", text)


def escape(text: str) -> str:
    """JSON text in which nothing that looks like a placeholder is one."""
    return _WRITTEN.sub(lambda found: "\\u003c" + found.group(0)[1:], text)


def written(value) -> str:
    """The JSON text of a value, placeholders as they are written, and nothing else that looks like one. What
    cannot be seen is escaped: a transcript is read by people."""
    text = unmark(escape(json.dumps(value, ensure_ascii=False, separators=(",", ":"))))
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def fill(text: str, names: dict) -> str:
    """`text`, JSON that is to be sent, with the placeholders that `names` knows replaced, and the others
    left."""

    def known(found):
        value = names.get(found.group(1))
        return found.group(0) if value is None else json.dumps(value, ensure_ascii=False)[1:-1]

    return _WRITTEN.sub(known, text)
