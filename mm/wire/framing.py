"""Messages on a byte stream: one a line, or each after a Content-Length header. Pure.

A framer takes the bytes as they were read, wherever they were cut, and returns the complete messages; `size`
is how many bytes it holds of an incomplete one. The work is linear in the bytes, however long a message is:
pieces are kept in a list, and only the new one is searched.
"""

from __future__ import annotations

import json
import re
from collections import namedtuple

# How a peer's stream is cut: `framer()` makes a framer, `encode(obj)` the bytes of one message.
Framing = namedtuple("Framing", "framer encode")

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)
_encode_text = json.encoder.encode_basestring  # what JSONEncoder comes to for a text, without its way there


def encode_line(message) -> bytes:
    """One message and its line end: compact JSON, UTF-8.

    UTF-8 has no lone surrogates and JSON no infinities: U+FFFD and null stand for them.
    """
    return _to_json(message) + b"\n"


def encode_string(text: str) -> bytes:
    """A JSON string with its quotes, for lines that are put together by hand."""
    return _to_utf8(_encode_text(text))


def encode_header(message) -> bytes:
    """One message after its Content-Length header, as language servers want it."""
    body = _to_json(message)
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _to_json(message) -> bytes:
    try:
        text = _encoder.encode(message)
    except ValueError:
        text = _encoder.encode(_finite(message))
    return _to_utf8(text)


def _to_utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # By way of UTF-16, two halves that came in separate pieces become one character again.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")


def _finite(value):
    """A copy with None in the place of NaN and the infinities."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value


class TooLong(Exception):
    """The other side has sent more of one message than a message may have."""


class LineFramer:
    """Cuts at \\n; a \\r before it belongs to the line end. Blank lines are skipped. No limit on the length.
    """

    def __init__(self):
        self._pieces = []
        self.size = 0

    def feed(self, data: bytes) -> list:
        if b"\n" not in data:
            self._pieces.append(data)
            self.size += len(data)
            return []
        lines = data.split(b"\n")
        self._pieces.append(lines[0])
        lines[0] = b"".join(self._pieces)
        self._pieces = [lines.pop()]
        self.size = len(self._pieces[0])
        return _without_blanks(lines)

    def rest(self) -> list:
        """At the end of the stream: the last line, if its line end is missing."""
        last, self._pieces = b"".join(self._pieces), []
        return _without_blanks([last])


def _without_blanks(lines: list) -> list:
    return [line[:-1] if line.endswith(b"\r") else line for line in lines if line and not line.isspace()]


_LONGEST_HEADER = 64 * 1024
_HEADER_END = re.compile(rb"\r?\n\r?\n")
_CONTENT_LENGTH = re.compile(rb"(?im)^content-length[ \t]*:[ \t]*(\d{1,15})[ \t]*\r?$")


class HeaderFramer:
    """Cuts by Content-Length; other header fields are ignored. A header block without a length is skipped."""

    def __init__(self):
        self._pieces = []
        self.size = 0
        self._wanted = 0  # bytes without which nothing new can come out

    def feed(self, data: bytes) -> list:
        self._pieces.append(data)
        self.size += len(data)
        if self.size < self._wanted:
            return []
        buffer, start, messages = b"".join(self._pieces), 0, []
        self._wanted = 0
        while True:
            header = _HEADER_END.search(buffer, start)
            if header is None:
                if len(buffer) - start > _LONGEST_HEADER:
                    start = len(buffer)  # this is not a header at all
                break
            length = _CONTENT_LENGTH.search(buffer[start:header.end()])
            end = header.end() + (int(length.group(1)) if length else 0)
            if end > len(buffer):
                self._wanted = end - start
                break
            if length:
                messages.append(buffer[header.end():end])
            start = end
        self._pieces = [buffer[start:]]
        self.size = len(buffer) - start
        return messages

    def rest(self) -> list:
        """At the end of the stream: nothing, because a message that was cut is not a message."""
        return []


LINES = Framing(LineFramer, encode_line)
HEADERS = Framing(HeaderFramer, encode_header)
