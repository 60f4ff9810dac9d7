"""file: URIs and paths. Servers write the same file's URI in several ways; a path has one."""

from __future__ import annotations

import os
from urllib.parse import quote, unquote_to_bytes, urlsplit


def to_uri(path: str) -> str:
    """The URI of an absolute path."""
    if os.name == "nt":
        from urllib.request import pathname2url  # loads all of HTTP

        return "file:" + pathname2url(path)
    return "file://" + quote(os.fsencode(path))


def to_path(uri) -> str | None:
    """The absolute path that a URI names, None if it does not name a file on this machine."""
    if not isinstance(uri, str):
        return None
    try:
        parts, raw = urlsplit(uri), unquote_to_bytes(uri[len("file:"):].partition("?")[0].partition("#")[0])
    except ValueError:  # or a lone surrogate, which no path has
        return None
    if parts.scheme != "file" or (parts.netloc not in ("", "localhost") and os.name != "nt"):
        return None
    if os.name == "nt":
        from urllib.request import url2pathname

        return url2pathname(("//" + parts.netloc if parts.netloc else "") + parts.path)
    path = os.fsdecode(raw)
    path = path[path.index("/", 2):] if path.startswith("//") and "/" in path[2:] else path
    return os.path.normpath(path) if path.startswith("/") and "\0" not in path else None


def is_inside(path: str, folder: str) -> bool:
    """Whether an absolute path without links lies below the folder."""
    return os.path.normcase(path).startswith(os.path.normcase(folder).rstrip(os.sep) + os.sep)
