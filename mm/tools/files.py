"""Opening, decoding and replacing files, alike for all file tools.

A file is replaced in one step (mm.replacing); other names of the old one (hard links) keep the old bytes.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections import namedtuple

from mm import replacing, safe_files
from mm.text import one_line, replace_surrogates, size
from mm.tools.document import unchecked
from mm.tools.tool import ToolError  # noqa: F401 (also part of what this room offers)

# The largest file that is read, in bytes.
SIZE_LIMIT = 50 * 1024 * 1024
# A NUL within so many bytes from the start makes a file binary.
BINARY_PROBE = 8 * 1024
# At most so many names of a directory are listed.
LISTED = 200
# So many bytes are hashed between two calls of a check.
_DIGESTED = 4 * 1024 * 1024

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

# A file's text as it stands, with its own line ends, and what it takes to make bytes of it again.
Decoded = namedtuple("Decoded", "text encoding bom")


def title(tool_name, place) -> str:
    """What the call is called: the path as given, and the file behind it where links lead elsewhere."""
    line = f"{tool_name}: {one_line(place.given)}"
    return f"{line} -> {one_line(place.real)}" if place.linked else line


def read(tool_name, place) -> bytes | None:
    """The file's bytes, None if there is no such file. Raises ToolError for what is no file to read."""
    try:
        status = os.stat(place.real)  # first, because a device may act on being opened
        if stat.S_ISDIR(status.st_mode):
            raise ToolError(f"[{tool_name}: {place.given} is a directory]")
        if not stat.S_ISREG(status.st_mode):
            raise safe_files.NotRegular()
        if status.st_size > SIZE_LIMIT:
            raise _too_large(tool_name, place, status.st_size)
        data = safe_files.read(place.real, SIZE_LIMIT + 1)
    except FileNotFoundError:
        return None
    except safe_files.NotRegular:
        raise ToolError(f"[{tool_name}: {place.given} is not a regular file]") from None
    except OSError as error:
        raise failure(tool_name, place, error) from None
    if len(data) > SIZE_LIMIT:
        raise _too_large(tool_name, place, len(data))
    return data


def _too_large(tool_name, place, count):
    return ToolError(f"[{tool_name}: {place.given} is {size(count)}; use bash with sed -n or grep]")


def failure(tool_name, place, error: OSError) -> ToolError:
    """The system's refusal as the model reads it."""
    return ToolError(f"[{tool_name}: {place.given}: {error.strerror or error}]")


def decode(tool_name, place, data: bytes, use: str) -> Decoded:
    """The text in `data`; ToolError where it is binary, ending in "use bash to <use>"."""
    for bom, encoding in _BOMS:
        if data.startswith(bom) and not data.startswith(codecs.BOM_UTF32_LE):
            try:
                return Decoded(data[len(bom):].decode(encoding), encoding, bom)
            except UnicodeDecodeError:
                break
    if b"\0" in data[:BINARY_PROBE]:
        import mimetypes
        kind = mimetypes.guess_type(place.given)[0]
        kind = f"{kind}, " if kind else ""
        raise ToolError(f"[{tool_name}: {place.given} is binary ({kind}{size(len(data))}); use bash to {use}]")
    try:
        return Decoded(data.decode("utf-8"), "utf-8", b"")
    except UnicodeDecodeError:
        return Decoded(data.decode("latin-1"), "latin-1", b"")


def encode(tool_name, place, text: str, like: Decoded) -> bytes:
    """`text` in the encoding of the file that it goes to. Raises ToolError where that cannot hold it."""
    try:
        return like.bom + text.encode(like.encoding)
    except UnicodeEncodeError as error:
        character = text[error.start]
        raise ToolError(f"[{tool_name}: {place.given} is {like.encoding} and cannot hold {character!r}]") from None


def digest(data: bytes, check=unchecked) -> str:
    import hashlib  # loads a library of its own, 1 ms
    found, view = hashlib.sha256(), memoryview(data)
    for start in range(0, len(data), _DIGESTED):
        check()
        found.update(view[start:start + _DIGESTED])
    return found.hexdigest()


def unchanged(tool_name, place, data: bytes | None) -> None:
    """Raises ToolError unless the file still holds `data` (None: does not exist), reached by the same links."""
    if os.path.realpath(place.real) != place.real or read(tool_name, place) != data:
        raise ToolError(f"[{tool_name}: {place.given} changed while waiting for permission. Read it again.]")


def check_writable(tool_name, place) -> None:
    """Raises ToolError where the file could not be replaced or made, as far as can be told before."""
    if os.path.exists(place.real) and not os.access(place.real, os.W_OK):
        raise ToolError(f"[{tool_name}: {place.given} is read-only]")
    folder = os.path.dirname(place.real)
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise ToolError(f"[{tool_name}: {folder} is not a directory]")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ToolError(f"[{tool_name}: {place.given}: no permission to write in {folder}]")


def replace(tool_name, place, data: bytes) -> None:
    """Puts `data` in the file's place in one step, its mode kept; parents are made. Raises ToolError."""
    try:
        _make_folders(os.path.dirname(place.real))
        replacing.replace(place.real, data)
    except OSError as error:
        raise failure(tool_name, place, error) from None


def _make_folders(folder):
    """os.makedirs, which calls itself for each folder and fails where there are many."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for folder in reversed(missing):
        try:
            os.mkdir(folder)
        except FileExistsError:  # somebody else was as quick; if it is no folder, what comes next says so
            pass


def listing(place, check=unchecked) -> str:
    """The names in a directory, `/` after those of directories. Raises OSError."""
    names = []
    with os.scandir(place.real) as entries:
        for entry in entries:
            check()
            names.append(entry.name + "/" if entry.is_dir() else entry.name)
    names.sort()
    if not names:
        return f"[{place.given} is an empty directory]"
    more = [f"[… {len(names) - LISTED} more]"] if len(names) > LISTED else []
    return replace_surrogates("\n".join(names[:LISTED] + more))
