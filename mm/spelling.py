"""Paths as they are spelt on disk.

`é` can be one character or two (`e` and an accent), and both look the same. Tools on macOS write names in the
second form; people and models type the first; to Linux they are two names. A path that does not exist as it
is written means the only one that differs in nothing but that.
"""

from __future__ import annotations

import os


def on_disk(path: str) -> str:
    """`path`, absolute, with each part as it is on disk: as written if that exists, else the only name that
    has the same Unicode normal form (NFC). From the first part that has neither, it stays as written.
    """
    if path.isascii() or os.path.lexists(path):
        return path
    found, parts = os.path.splitdrive(path)[0] + os.sep, path.split(os.sep)[1:]
    for position, part in enumerate(parts):
        name = part if os.path.lexists(os.path.join(found, part)) else _only_twin(found, part)
        if name is None:
            return os.path.join(found, *parts[position:])
        found = os.path.join(found, name)
    return found


def _only_twin(folder, name):
    """The one name in `folder` that has the normal form of `name`, or None."""
    from unicodedata import normalize

    if name.isascii():
        return None
    wanted = normalize("NFC", name)
    try:
        names = [each for each in os.listdir(folder) if not each.isascii()]
    except OSError:
        return None
    twins = [each for each in names if normalize("NFC", each) == wanted]
    return twins[0] if len(twins) == 1 else None
