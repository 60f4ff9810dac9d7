"""The files and folders that a user's text points at with `@path`, named after it for the model."""

from __future__ import annotations

import os
import re

from mm import spelling

# `@path` and `@"path with spaces"`, at the start of the text or after a blank or an opening bracket.
_MENTION = re.compile(r'(?:^|(?<=[\s(\[{<,;"\']))@(?:"([^"\n]+)"|([^\s"]+))')

# Signs that end a sentence rather than a name.
_PUNCTUATION = ".,;:!?)]}>'\"`"


def with_mentions(text: str, cwd: str) -> tuple:
    """(the text as it goes to the model, the absolute paths of its `@path`s)."""
    attached = mentioned_paths(text, cwd)
    return text + attachments(attached), attached


def attachments(paths: list) -> str:
    """What stands after the text for these paths."""
    return "".join("\n[attached %s: %s]" % ("directory" if os.path.isdir(path) else "file", path) for path in paths)


def mentioned_paths(text: str, cwd: str) -> list:
    """The absolute paths of the existing files and folders that `@path`s in the text name, each once, in
    order."""
    found = []
    for quoted, plain in _MENTION.findall(text):
        for name in _readings(quoted, plain):
            try:
                path = spelling.on_disk(os.path.normpath(os.path.join(cwd, os.path.expanduser(name))))
            except ValueError:
                continue  # what follows the `~` cannot be a user's name: a NUL, half a character
            if os.path.exists(path):
                if path not in found:
                    found.append(path)
                break
    return found


def _readings(quoted: str, plain: str):
    """The names that a mention may mean, the longest first: trailing punctuation belongs to the sentence."""
    if quoted:
        yield quoted
        return
    while plain:
        yield plain
        if plain[-1] not in _PUNCTUATION:
            return
        plain = plain[:-1]
