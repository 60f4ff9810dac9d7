"""JSON as text: written for a client, and read strictly. Pure.

Python reads more than JSON is: NaN, Infinity, and numbers that become infinite. It refuses a number of some
thousand digits in its own way, and older Pythons need seconds for one. What a file, a program or a client
sends is read by the decoders made here, which raise ValueError for all of that.
"""

from __future__ import annotations

import json

MAX_DIGITS = 300

TOO_DEEP = "it is nested too deeply"

# A made encoder: json.dumps makes one each time that its arguments are not the defaults.
encode = json.JSONEncoder(ensure_ascii=False).encode


def encoded_size(value) -> int:
    """Bytes of the value's JSON."""
    return len(encode(value).encode("utf-8", "replace"))


def decoder(**more) -> json.JSONDecoder:
    """A strict decoder; `more` is as for json.JSONDecoder. Its decode() may raise RecursionError."""
    return json.JSONDecoder(**dict({"parse_constant": _refuse, "parse_float": finite, "parse_int": _whole},
                                   **more))


def read(text: str, using: json.JSONDecoder | None = None):
    """The value of the text. Raises ValueError: json.JSONDecodeError if that has a place in the text."""
    try:
        return (using or _decoder).decode(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def is_deeper(value, levels: int) -> bool:
    """Whether lists and objects are nested in more than `levels` levels. Takes no recursion itself."""
    level = [value]
    for _ in range(levels):
        level = [child for node in level if isinstance(node, (dict, list))
                 for child in (node.values() if isinstance(node, dict) else node)
                 if isinstance(child, (dict, list))]
        if not level:
            return False
    return True


def _refuse(constant):
    raise ValueError("%s is not JSON" % constant)


def finite(digits: str) -> float:
    """The number. Raises ValueError if it is beyond a float's range."""
    number = float(digits)
    if number - number != 0:
        raise ValueError("a number is too large")
    return number


def _whole(digits):
    if len(digits) > MAX_DIGITS:
        raise ValueError("a number has more than %d digits" % MAX_DIGITS)
    return int(digits)


_decoder = decoder()
