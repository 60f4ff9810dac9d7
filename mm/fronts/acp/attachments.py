"""The blocks of a prompt -> the text the model reads, with the files that the user pointed at named behind it.

Clients write links in their own ways: percent-encoded or not, with `#L10:20` or `?symbol=` behind the path, with schemes
of their own. The rule throughout: the path as written wins when it exists.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from mm import spelling
from mm.fronts.mentions import attachments, mentioned_paths

_FILE_LINK = re.compile(r"file://(?:localhost)?(?=/)", re.IGNORECASE)
_LINES = re.compile(r"#L(\d+)(?:[:-]L?(\d+))?$")


def flatten(blocks: list, cwd: str):
    """(text, attached, ignored): the prompt's text, the absolute paths of its `@path`s, the kinds of blocks left out.

    `blocks`: the prompt's content blocks, dicts with a "type". `cwd`: the session's folder, absolute.
    """
    parts, ignored = [], []
    for block in blocks:
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            parts.append(block["text"])
        elif kind == "resource_link" and isinstance(block.get("uri"), str):
            parts.append("\n[attached file: %s]" % link_path(block["uri"]))
        elif str(kind) not in ignored:
            ignored.append(str(kind))
    text = "".join(parts)
    attached = mentioned_paths("".join(block["text"] for block in blocks if _is_text(block)), cwd)
    return text + attachments(attached), attached, ignored


def link_path(uri: str) -> str:
    """What a link's uri is shown as: the path of a `file://`, with the lines it points at; any other uri as it is."""
    scheme = _FILE_LINK.match(uri)
    if not scheme:
        return uri
    path = uri[scheme.end():]
    if _existing(path):
        return _existing(path)
    lines = _LINES.search(path)
    shown = ""
    if lines:
        path = path[:lines.start()]
        first, last = lines.groups()
        shown = " lines %s-%s" % (first, last) if last else " line %s" % first
    found = _existing(path)
    if not found:
        path = path.partition("?")[0]
        found = _existing(path)
    return (found or path) + shown


def _existing(path: str):
    """The path if it exists as written, else its percent-decoded form if that exists, else None."""
    for candidate in map(spelling.on_disk, (path, unquote(path))):
        if os.path.lexists(candidate):
            return candidate
    return None


def _is_text(block: dict) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)
