"""One configuration file -> a JSON object. The file may come with a hostile repository: nothing here waits,
and size, depth and numbers are bounded. Every error is one line with the file's name, and repeats nothing of
the file but keys.
"""

from __future__ import annotations

import json

from mm import json_text
from mm.errors import UserError

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32


def shown(text: str, limit: int = 200) -> str:
    """`text` as it may stand in a message: one printable line of at most `limit` characters."""
    if len(text) > limit:
        text = text[:limit] + "…"
    return text if text.isprintable() else json.dumps(text)[1:-1]


def failure(source: str, text: str) -> UserError:
    """A configuration error: exit code 2."""
    return UserError("%s: %s" % (shown(source, 4096), text), exit_code=2)


def read(path: str) -> bytes | None:
    """The file's bytes, None if there is no such file. Raises UserError if it cannot be read."""
    from mm import safe_files

    try:
        data = safe_files.read(path, MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise failure(path, error.strerror or str(error)) from None
    if len(data) > MAX_BYTES:
        raise failure(path, "is larger than %d KiB" % (MAX_BYTES // 1024))
    return data


def parse(data: bytes, source: str) -> dict:
    """The JSON object in `data`. Raises UserError, with line and column where the JSON is broken."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise failure(source, "line %d is not UTF-8" % (data.count(b"\n", 0, error.start) + 1)) from None
    try:
        document = json_text.read(text, _decoder)
    except json.JSONDecodeError as error:
        raise failure(source, "line %d, column %d: %s%s"
                      % (error.lineno, error.colno, error.msg, _hint(error))) from None
    except ValueError as error:
        raise failure(source, str(error)) from None
    if not isinstance(document, dict):
        raise failure(source, "is not a JSON object: allowed is {…}")
    if json_text.is_deeper(document, MAX_DEPTH):
        raise failure(source, "it is nested deeper than %d levels" % MAX_DEPTH)
    return document


def _hint(error):
    """What other programs read and JSON does not have."""
    before, after = error.doc[:error.pos].rstrip(), error.doc[error.pos:].lstrip()
    if after[:2] in ("//", "/*") or after[:1] == "#":
        return "; JSON has no comments"
    if before[-1:] == "," and after[:1] in ("}", "]") or after[:1] == "," and after[1:].lstrip()[:1] in ("}",
                                                                                                         "]"):
        return "; JSON has no comma before a closing bracket"
    return "; JSON wants double quotes" if after[:1] == "'" else ""


def _number(digits):
    """1.0 and 1e3 are whole numbers, as they are for the JSON Schema."""
    number = json_text.finite(digits)
    return int(number) if number.is_integer() and abs(number) < 2 ** 53 else number


def _object(pairs):
    result = dict(pairs)
    if len(result) < len(pairs):
        seen = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError('the key "%s" is there twice' % shown(name, 80))
            seen.add(name)
    return result


_decoder = json_text.decoder(object_pairs_hook=_object, parse_float=_number)
