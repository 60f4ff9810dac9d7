"""The content blocks of a prompt as the text that the model reads, with the files that the user pointed at.

Clients write links in different ways: percent-encoded or not, with `#L10:20` or `?symbol=` after the path,
with schemes of their own. One rule holds for all: if the path exists as written, it is taken as written.
"""

from __future__ import annotations

import os
import re
from collections import namedtuple

from mm import spelling
from mm.fronts.mentions import attachments, mentioned_paths
from mm.text import one_line, plural

_FILE_LINK = re.compile(r"file://(?:localhost)?(?=/)", re.IGNORECASE)
_LINES = re.compile(r"#L(\d+)(?:[:-]L?(\d+))?$")


# A prompt as the model reads it: its text, the absolute paths of its `@path`s, the types of the blocks that
# were ignored, and the line that tells the user what was not sent, or None.
Flattened = namedtuple("Flattened", "text attached ignored left_out")

LEFT_OUT = "%s %s not sent: mm reads text and files on disk."
NAMES_SHOWN, NAME_LENGTH = 5, 100


def flatten(blocks: list, cwd: str) -> Flattened:
    """`blocks` are dicts with a "type"; `cwd` is the absolute path of the session's folder."""
    parts, texts, ignored = [], [], []
    for block in blocks:
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
            parts.append(block["text"])
        elif kind == "resource_link" and isinstance(block.get("uri"), str):
            parts.append("\n[attached file: %s]" % link_path(block["uri"]))
        else:
            ignored.append(block)
    attached = mentioned_paths("".join(texts), cwd)
    parts.append(attachments(attached))
    kinds = list(dict.fromkeys(str(block.get("type")) for block in ignored))
    return Flattened("".join(parts), attached, kinds, _left_out(ignored, attached))


def _left_out(blocks: list, attached: list):
    """The line about blocks that are not sent, or None. A file that the text mentions is not missing."""
    counts, names = {}, []
    for block in blocks:
        resource = block.get("resource")
        uri = resource.get("uri") if block.get("type") == "resource" and isinstance(resource, dict) else None
        if isinstance(uri, str):
            path = link_path(uri)
            if path not in attached:
                names.append(one_line(path, NAME_LENGTH))
        else:
            noun = {"image": "image", "audio": "recording"}.get(str(block.get("type")), "unknown block")
            counts[noun] = counts.get(noun, 0) + 1
    if len(names) > NAMES_SHOWN:
        names[NAMES_SHOWN - 1:] = ["%d more files" % (len(names) - NAMES_SHOWN + 1)]
    parts = [plural(count, noun) for noun, count in counts.items()] + names
    if not parts:
        return None
    shown = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return LEFT_OUT % (shown, "was" if sum(counts.values()) + len(names) == 1 else "were")


def link_path(uri: str) -> str:
    """The text for a link's uri: the path and lines of a `file://`; any other uri as it is."""
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
    from urllib.parse import unquote  # a first prompt needs none of it

    for candidate in map(spelling.on_disk, (path, unquote(path))):
        if os.path.lexists(candidate):
            return candidate
    return None
