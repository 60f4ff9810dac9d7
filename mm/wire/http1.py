"""HTTP/1.1 as a client needs it: one request on a connection of its own, and the answer as it comes.

Python's http.client reads the same, but takes more memory and more time to load than all else that a first
prompt needs. Knows no proxies, redirects or content encodings; whoever asks decides about them.
"""

from __future__ import annotations

import re

_READ_SIZE = 65536
# No head, and no line between two chunks, is longer.
_LONGEST_HEAD, _LONGEST_LINE = 65536, 16384

_STATUS_LINE = re.compile(rb"HTTP/1\.[01] +([1-5][0-9]{2})(?= |\r|\n|\Z)")
_CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]{1,15}(?=\s*(?:;|\Z))")
_DIGITS = re.compile(r"[0-9]{1,18}")


class NotHttp(Exception):
    """What came is not HTTP."""


class Cut(ConnectionError):
    """The connection ended before the answer did."""


def request(method: str, host: str, target: str, headers: dict, body: bytes | None) -> bytes:
    """The bytes of a request. `host` is the Host header. The caller has checked that no value has a line end.
    """
    lines = ["%s %s HTTP/1.1" % (method, target), "Host: " + host, "Connection: close"]
    if "Accept-Encoding" not in headers:
        lines.append("Accept-Encoding: identity")
    if body is not None:
        lines.append("Content-Length: %d" % len(body))
    lines += ["%s: %s" % pair for pair in headers.items()]
    return "\r\n".join(lines + ["", ""]).encode("latin-1") + (body or b"")


class Response:
    """The answer on a socket. `status` is there once it is made, which waits for the head.

    Raises NotHttp, Cut, and the OSErrors of the socket.
    """

    def __init__(self, sock):
        self._sock = sock
        self._buffer = b""  # what came with the head
        self._begun = b""  # the beginning of a line between two chunks
        self.status = 100
        while self.status < 200:  # "100 Continue" and the like stand before the answer
            self._read_head()
        self._left = None  # bytes of the body, or of its chunk, that are still to come; None: unknown
        self._after_chunk = self._trailers = self._ended = False
        self._chunked = self.header("Transfer-Encoding").lower().endswith("chunked")
        if self.status in (204, 304):
            self._ended = True
        elif self._chunked:
            self._left = 0
        elif _DIGITS.fullmatch(self.header("Content-Length").strip()):
            self._left = int(self.header("Content-Length"))
            self._ended = not self._left

    def header(self, name: str) -> str:
        """The first header of that name, "" if there is none."""
        return self._headers.get(name.lower(), "")

    def read(self) -> bytes:
        """What has come since, at least a byte; b"" at the end of the body."""
        while not self._ended:
            came = self._buffer or self._begun + self._receive()
            self._buffer = self._begun = b""
            data = self._unchunked(came) if self._chunked else self._counted(came)
            if data:
                return data
        return b""

    def _receive(self) -> bytes:
        data = self._sock.recv(_READ_SIZE)
        if not data and self._left is not None:
            raise Cut("the body is not complete")
        return data

    def _counted(self, came: bytes) -> bytes:
        if self._left is None:
            self._ended = not came
            return came
        data = came[:self._left]
        self._left -= len(data)
        self._ended = not self._left
        return data

    def _unchunked(self, came: bytes) -> bytes:
        """The data of the chunks in these bytes; the beginning of a line waits for the rest of it."""
        pieces, at = [], 0
        while at < len(came) and not self._ended:
            if self._left:
                pieces.append(came[at:at + self._left])
                at += len(pieces[-1])
                self._left -= len(pieces[-1])
                self._after_chunk = not self._left
                continue
            end = came.find(b"\n", at)
            if end < 0:
                self._begun = came[at:]
                if len(self._begun) > _LONGEST_LINE:
                    raise Cut("a line without an end")
                break
            self._line(came[at:end].strip())
            at = end + 1
        return b"".join(pieces)

    def _line(self, line: bytes) -> None:
        """A line between two chunks: the end of one, the size of the next, or a trailer."""
        if self._after_chunk and not line:
            self._after_chunk = False
        elif self._trailers:
            self._ended = not line
        else:
            size = _CHUNK_SIZE.match(line)
            if not size or self._after_chunk:
                raise Cut("not a chunk: %r" % line[:40])
            self._left = int(size.group(), 16)
            self._trailers = not self._left

    def _read_head(self) -> None:
        while b"\n\r\n" not in self._buffer and b"\n\n" not in self._buffer:
            if len(self._buffer) > _LONGEST_HEAD:
                raise NotHttp("a head without an end")
            if self._buffer and not b"HTTP/1.".startswith(self._buffer[:7]):
                raise NotHttp("no status line")
            data = self._sock.recv(_READ_SIZE)
            if not data:
                raise Cut("no answer")
            self._buffer += data
        head, self._buffer = re.split(rb"\n\r?\n", self._buffer, maxsplit=1)
        status = _STATUS_LINE.match(head)
        if not status:
            raise NotHttp("no status line")
        self.status, self._headers = int(status.group(1)), {}
        for line in re.sub(rb"\r?\n[ \t]+", b" ", head).split(b"\n")[1:]:
            name, _, value = line.decode("latin-1").partition(":")
            self._headers.setdefault(name.strip().lower(), value.strip())
