"""Opening, decoding and replacing files, alike for all file tools.

A file is replaced in one step (mm.replacing); other names of the old one (hard links) keep the old bytes.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections import namedtuple

from mm import replacing, safe_files
from mm.text import one_line, replace_surrogates, size
from mm.tools.tool import ToolError

# The largest file that is read, in bytes.
SIZE_LIMIT = 50 * 1024 * 1024
# A NUL within this many bytes from the start makes a file binary.
BINARY_PROBE = 8 * 1024
# At most this many names of a directory are listed.
LISTED = 200
# The longer ones first: UTF-32's begins as UTF-16's does.
_BOMS = ((codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF8, "utf-8"),
         (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# A coding line as in Python and Emacs, or the charset of XML, CSS and HTML, within this many bytes.
_DECLARED, _DECLARED_WITHIN = re.compile(rb"""(?:coding|charset)["']?[ \t]*[:= ][ \t]*["']?([-\w.]+)"""), 1024

# A file's text as it stands, with its own line ends, and what it takes to make bytes of it again. `known` is
# false if nothing says what the encoding is: the text is then read as Latin-1, which has a letter for each
# byte.
Decoded = namedtuple("Decoded", "text encoding bom known", defaults=(b"", True))


def title(tool_name, place) -> str:
    """The title of a call: the path as given, and the file that it leads to if that is another one."""
    line = f"{tool_name}: {one_line(place.given)}"
    return f"{line} -> {one_line(place.real)}" if place.linked else line


def read(tool_name, place) -> bytes | None:
    """The file's bytes, None if there is no such file. Raises ToolError if it cannot be read as a file."""
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
    """The text in `data`. Raises ToolError if it is binary, which ends in "use bash to <use>"."""
    for bom, encoding in _BOMS:
        text = _decoded(data[len(bom):], encoding) if data.startswith(bom) else None
        if text is not None:
            return Decoded(text, encoding, bom)
    if b"\0" in data[:BINARY_PROBE]:
        import mimetypes

        what = ", ".join(filter(None, (mimetypes.guess_type(place.given)[0], size(len(data)))))
        raise ToolError(f"[{tool_name}: {place.given} is binary ({what}); use bash to {use}]")
    declared = _DECLARED.search(data, 0, _DECLARED_WITHIN)
    for encoding in ("utf-8", declared and declared.group(1).decode("ascii", "replace").lower()):
        text = _decoded(data, encoding) if encoding else None
        if text is not None:
            return Decoded(text, encoding)
    return Decoded(data.decode("latin-1"), "latin-1", known=False)


def _decoded(data, encoding):
    """The text, None unless it is the very one that gives these bytes again."""
    try:
        text = data.decode(encoding)
        return text if text.encode(encoding) == data else None
    except (UnicodeError, LookupError):  # not a text encoding, or none at all
        return None


def note(place, decoded: Decoded) -> str:
    """The line above a text that is not in Unicode; "" if there is nothing to say."""
    if not decoded.known:
        return (f"[the encoding of {place.given} is unknown: read as Latin-1, "
                f"so letters other than ASCII may be wrong. In bash: {_convert(place)}]\n")
    return f"[decoded as {decoded.encoding}]\n" if not decoded.bom and decoded.encoding != "utf-8" else ""


def _convert(place):
    import shlex

    return f"iconv -f <encoding> -t UTF-8 {shlex.quote(place.given)}"


def encode(tool_name, place, text: str, like: Decoded) -> bytes:
    """`text` in the encoding of the file that it goes to. Raises ToolError if that cannot hold it."""
    try:
        return like.bom + text.encode(like.encoding)
    except UnicodeEncodeError as error:
        character = text[error.start]
        problem = f"{place.given} is {like.encoding} and cannot hold {character!r}"
        if not like.known:
            problem = (f"the encoding of {place.given} is unknown, so {character!r} cannot be written. "
                       f"Convert it first, in bash: {_convert(place)}")
        raise ToolError(f"[{tool_name}: {problem}]") from None


def digest(data: bytes) -> str:
    import hashlib  # loads a library of its own, 1 ms

    return hashlib.sha256(data).hexdigest()


def unchanged(tool_name, place, data: bytes | None) -> None:
    """Raises ToolError unless the file, reached by the same links, still holds `data`; None: no file."""
    if os.path.realpath(place.real) != place.real or read(tool_name, place) != data:
        raise ToolError(f"[{tool_name}: {place.given} changed while waiting for permission. Read it again.]")


def check_writable(tool_name, place) -> None:
    """Raises ToolError if the file could not be replaced or made, as far as that is known beforehand."""
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
    """os.makedirs, which fails for very deep folders because it calls itself for each of them."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for folder in reversed(missing):
        try:
            os.mkdir(folder)
        except FileExistsError:  # another process made it; if it is not a folder, the next step fails
            pass


def listing(place) -> str:
    """The names in a directory, `/` after those of directories. Raises OSError."""
    names = []
    with os.scandir(place.real) as entries:
        for entry in entries:
            names.append(entry.name + "/" if entry.is_dir() else entry.name)
    names.sort()
    if not names:
        return f"[{place.given} is an empty directory]"
    more = [f"[… {len(names) - LISTED} more]"] if len(names) > LISTED else []
    return replace_surrogates("\n".join(names[:LISTED] + more))
