"""One configuration file -> a JSON object. The file may come with a hostile repository: nothing here waits, and size,
depth and numbers are bounded. Every error is one line with the file's name, and repeats nothing of the file but keys.
"""

from __future__ import annotations

import json

from mm.errors import UserError

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32
MAX_DIGITS = 20


def shown(text: str, limit: int = 200) -> str:
    """`text` as it may stand in a message: one line, nothing that a terminal would obey, cut at `limit` characters."""
    if len(text) > limit:
        text = text[:limit] + "…"
    return text if text.isprintable() else json.dumps(text)[1:-1]


def failure(source: str, text: str) -> UserError:
    """A configuration error: exit code 2."""
    return UserError("%s: %s" % (shown(source, 4096), text), exit_code=2)


def read(path: str) -> bytes | None:
    """The file's bytes, or None where there is no such file. Raises UserError for anything that is no readable file."""
    from mm import regular_file

    try:
        data = regular_file.read(path, MAX_BYTES + 1)
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
        document = json.loads(text, object_pairs_hook=_object, parse_int=_whole_number, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise failure(source, "line %d, column %d: %s" % (error.lineno, error.colno, error.msg)) from None
    except _Refused as error:
        raise failure(source, str(error)) from None
    except RecursionError:
        raise failure(source, _TOO_DEEP) from None
    if not isinstance(document, dict):
        raise failure(source, "holds no JSON object: allowed is {…}")
    if _depth_exceeds(document, MAX_DEPTH):
        raise failure(source, _TOO_DEEP)
    return document


_TOO_DEEP = "is nested deeper than %d levels" % MAX_DEPTH


class _Refused(Exception):
    """JSON that Python reads and mm does not."""


def _object(pairs):
    result = dict(pairs)
    if len(result) < len(pairs):
        seen = set()
        for name, _ in pairs:
            if name in seen:
                raise _Refused('the key "%s" is there twice' % shown(name, 80))
            seen.add(name)
    return result


def _whole_number(digits):
    # Python 3.9 needs seconds for a number of a million digits, and later ones raise for it.
    if len(digits) > MAX_DIGITS:
        raise _Refused("a number has more than %d digits" % MAX_DIGITS)
    return int(digits)


def _no_constant(name):
    raise _Refused("%s is no JSON number" % name)


def _depth_exceeds(document, limit):
    level = [document]
    for _ in range(limit):
        level = [child for node in level if isinstance(node, (dict, list))
                 for child in (node.values() if isinstance(node, dict) else node)]
        if not level:
            return False
    return True
