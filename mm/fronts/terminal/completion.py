"""What Tab makes of a word: /commands at the beginning of a line, $skills and @paths anywhere."""

from __future__ import annotations

import os


def completions(word: str, line: str, commands, skills, cwd: str) -> list:
    """What `word`, at the end of `line`, may become. `commands` and `skills` are names."""
    if word.startswith("/") and line.strip() == word:
        return ["/%s " % name for name in sorted({*commands, *skills}) if name.startswith(word[1:])]
    if word.startswith("$"):
        return ["$%s " % name for name in sorted(skills) if name.startswith(word[1:])]
    if word.startswith("@"):
        return ["@" + path for path in _paths(word[1:], cwd)]
    return []


def _paths(begun: str, cwd: str) -> list:
    folder, name = os.path.split(begun)
    try:
        with os.scandir(os.path.join(cwd, os.path.expanduser(folder))) as entries:
            found = [(entry.name, entry.is_dir()) for entry in entries
                     if entry.name.startswith(name) and (name or not entry.name.startswith("."))]
    except OSError:
        return []
    return [os.path.join(folder, each) + ("/" if is_folder else " ") for each, is_folder in sorted(found)
            if not set(each) & set(" \t\n\"")]
