"""The front matter of a SKILL.md: the part of YAML that such files use, read without a YAML library. Pure.

Between two lines `---` at the beginning of a file stand fields, `key: value`. A value is all that follows the
first colon and blank, so a colon in prose needs no quotes, which YAML proper would ask for and most authors
forget. Understood are texts over several lines, quoted texts, blocks (`>` and `|`), lists of `- item`,
and comments. Anything else is kept as text: whatever a file holds, reading it raises nothing
but NotClosed.
"""

from __future__ import annotations

import re
from collections import namedtuple

from mm.text import replace_surrogates

MARK = "---"

# `fields` maps each name to a str or a list of str, and is None if there is no front matter;
# `line` is the number of the line that its first mark is on, 1 as a rule; `body` is the text after it.
Document = namedtuple("Document", "fields line body")

_SKIPPED = re.compile(r"[ \t]*(?:#[^\n]*|<!--.*?-->[ \t]*)?\n", re.DOTALL)
_KEY = re.compile(r"""(["']?)(\w[\w.-]*)\1:(?:[ \t]+(.*)|)$""")
_ITEM = re.compile(r"-(?:[ \t]+(.*)|)$")
_BLOCK = re.compile(r"([>|])[-+\d]{0,2}(?:[ \t]+#.*)?$")
_COMMENT = re.compile(r"(?:^|[ \t]+)#.*")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\s+#.*)?', re.DOTALL)
_SINGLE = re.compile(r"'((?:[^']|'')*)'(?:\s+#.*)?", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


class NotClosed(ValueError):
    """The front matter begins and does not end."""


def read(text: str) -> Document:
    """The parts of a file. A byte order mark and any kind of line end are accepted. Raises NotClosed."""
    line, head, body = _split(text)
    return Document(None if head is None else _fields(head), line, body)


def body(text: str) -> str:
    """The text after the front matter. Raises NotClosed."""
    return _split(text)[2]


def _split(text):
    """(the line of the first mark, the lines between the marks or None, the text after them)."""
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    before = _before(text)
    lines = text[len(before):].split("\n")
    if lines[0].rstrip() != MARK:
        return 1, None, text
    for end in range(1, len(lines)):
        if lines[end].rstrip() == MARK:
            return before.count("\n") + 1, lines[1:end], "\n".join(lines[end + 1:]).lstrip("\n")
    if before:
        return 1, None, text  # a title and a rule: no front matter at all
    raise NotClosed()


def _before(text):
    """The blank lines and the comments, `# …` and `<!-- … -->`, that the text begins with."""
    end = 0
    while True:
        found = _SKIPPED.match(text, end)
        if not found:
            return text[:end]
        end = found.end()


def _fields(lines):
    """The fields in the lines; a line that begins none belongs to the field before it."""
    fields, name = {}, None
    for line in lines:
        begins = _KEY.match(line)
        if begins:
            name = begins[2]
            fields[name] = [(begins[3] or "").strip()]
        elif name is not None and not line.startswith("#"):
            fields[name].append(line)
    return {name: _value(first, rest) for name, (first, *rest) in fields.items()}


def _value(first, rest):
    block = _BLOCK.match(first)
    if block:
        return _block(rest, folded=block[1] == ">")
    rest = [line for line in rest if _without_comment(line)]
    if rest and not _without_comment(first) and _ITEM.match(rest[0].strip()):
        return _items(rest)
    return _scalar([first] + rest)


def _block(lines, folded):
    """The text of a `|` block, or of a `>` block, in which a single line break is a blank."""
    depth = next((len(line) - len(line.lstrip()) for line in lines if line.strip()), 0)
    text = "\n".join(line[depth:] if not line[:depth].strip() else line.lstrip()
                     for line in lines).strip("\n")
    return replace_surrogates(re.sub(r"\n(\n*)", lambda found: found[1] or " ", text) if folded else text)


def _items(lines):
    """The texts of a list; a line that begins no item belongs to the item before it."""
    items = []
    for line in lines:
        begins = _ITEM.match(line.strip())
        if begins:
            items.append([begins[1] or ""])
        else:
            items[-1].append(line)
    return [_scalar(item) for item in items]


def _scalar(lines):
    """One text: without its quotes and with its escapes undone, or without its comments."""
    text = " ".join(filter(None, map(str.strip, lines)))
    quoted = _DOUBLE.fullmatch(text)
    if quoted:
        return replace_surrogates(_ESCAPE.sub(_unescaped, quoted[1]))
    quoted = _SINGLE.fullmatch(text)
    if quoted:
        return quoted[1].replace("''", "'")
    return " ".join(filter(None, map(_without_comment, lines)))


def _unescaped(found):
    return chr(int(found[1], 16)) if found[1] else _ESCAPED.get(found[2], found[2])


def _without_comment(line):
    return _COMMENT.sub("", line.strip()).rstrip()
