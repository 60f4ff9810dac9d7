"""The front matter of a SKILL.md: the part of YAML that such files use, read without a YAML library. Pure.

Between two lines `---` at the beginning of a file stand fields, `key: value`. A value is all that follows the first colon
and blank, so a colon in prose needs no quotes, which YAML proper would ask for and most authors forget. Understood are
texts over several lines, quoted ones, blocks (`>` and `|`), lists of `- item` and maps one level deep. What is none of
these is kept as text.
"""

from __future__ import annotations

import re

MARK = "---"

_KEY = re.compile(r"""(["']?)(\w[\w.-]*)\1:(?:[ \t]+(.*)|)$""")
_BLOCK = re.compile(r"([>|])[-+\d]{0,2}(?:[ \t]+#.*)?$")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_SINGLE = re.compile(r"'((?:[^']|'')*)'")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


class NotClosed(ValueError):
    """The front matter begins and does not end."""


def read(text: str) -> tuple:
    """(fields, body) of a file's text: each field a str, a list of str or a dict of str; None without front matter.

    A byte order mark and any kind of line end are fine. Raises NotClosed.
    """
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[0].rstrip() != MARK:
        return None, "\n".join(lines)
    for end in range(1, len(lines)):
        if lines[end].rstrip() == MARK:
            return _fields(lines[1:end]), "\n".join(lines[end + 1:]).lstrip("\n")
    raise NotClosed()


def _fields(lines):
    """The fields in the lines; those that begin none belong to the one before."""
    fields, key = {}, None
    for line in lines:
        begins = _KEY.match(line)
        if begins:
            key = begins[2]
            fields[key] = [(begins[3] or "").strip()]
        elif key is not None and not line.startswith("#"):
            fields[key].append(line)
    return {key: _value(first, rest) for key, (first, *rest) in fields.items()}


def _value(first, rest):
    block = _BLOCK.match(first)
    if block:
        return _block(rest, folded=block[1] == ">")
    rest = [line for line in rest if line.strip()]
    if not first and rest:
        if re.match(r"\s*-(\s|$)", rest[0]):
            return _items(rest)
        if rest[0][0] in " \t" and _KEY.match(rest[0].strip()):
            return _entries(rest)
    return _scalar(" ".join([first] + [line.strip() for line in rest]).strip())


def _block(lines, folded):
    """The text of a `|` block, or of a `>` block, in which a single line break is a blank and the first of several is none."""
    depth = next((len(line) - len(line.lstrip()) for line in lines if line.strip()), 0)
    text = "\n".join(line[depth:] if not line[:depth].strip() else line.lstrip() for line in lines).strip("\n")
    return re.sub(r"\n(\n*)", lambda found: found[1] or " ", text) if folded else text


def _items(lines):
    items = []
    for line in lines:
        item = line.strip()
        if item == "-" or item.startswith("- "):
            items.append(item[1:].strip())
        else:
            items[-1] += " " + item
    return [_scalar(item) for item in items]


def _entries(lines):
    entries, key = {}, None
    depth = len(lines[0]) - len(lines[0].lstrip())
    for line in lines:
        begins = _KEY.match(line.strip())
        if begins and len(line) - len(line.lstrip()) <= depth:
            key = begins[2]
            entries[key] = (begins[3] or "").strip()
        else:
            entries[key] = (entries[key] + " " + line.strip()).strip()
    return {key: _scalar(text) for key, text in entries.items()}


def _scalar(text):
    """The text without its quotes, what they guard undone; any other as it stands."""
    quoted = _DOUBLE.fullmatch(text)
    if quoted:
        return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _ESCAPED.get(found[2], found[2]), quoted[1])
    quoted = _SINGLE.fullmatch(text)
    return quoted[1].replace("''", "'") if quoted else text
