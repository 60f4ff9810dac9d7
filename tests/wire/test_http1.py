"""HTTP/1.1 as a client: what servers send, cut everywhere, and what is not an answer."""

from __future__ import annotations

import unittest

from mm.wire.http1 import Cut, NotHttp, Response, request

OK = b"HTTP/1.1 200 OK\r\n"
LINES = b"data: {}\n\ndata: [DONE]\n\n"


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(
        b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + end


class Pieces:
    """A socket that receives these pieces, then the end."""

    def __init__(self, *pieces: bytes):
        self._pieces = list(pieces)

    def recv(self, size: int) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def read(*pieces: bytes) -> tuple:
    """(status, body) of an answer in pieces."""
    response, body = Response(Pieces(*pieces)), b""
    while True:
        data = response.read()
        if not data:
            return response.status, body
        body += data


def cuts(answer: bytes):
    yield [answer]
    yield [answer[at:at + 1] for at in range(len(answer))]
    for at in range(1, len(answer)):
        yield [answer[:at], answer[at:]]


# (what it is, the answer, its body)
WHOLE = [
    ("chunks", chunked(LINES, b"x" * 300), LINES + b"x" * 300),
    ("no chunk", chunked(), b""),
    ("extensions, capitals, zeros", OK + b"transfer-encoding: "
                                         b"Chunked\r\n\r\n00A;a=b\r\n0123456789\r\n0;c\r\n\r\n",
     b"0123456789"),
    ("trailers", chunked(b"a", end=b"0\r\nX: y\r\nZ: 1\r\n\r\n"), b"a"),
    ("line ends of one character", chunked(b"a\n").replace(b"\r", b""), b"a\n"),
    ("a length", OK + b"Content-Length: 3\r\n\r\nabc", b"abc"),
    ("a length of nothing", OK + b"Content-Length: 0\r\n\r\n", b""),
    ("more than the length", OK + b"Content-Length: 3\r\n\r\nabcdef", b"abc"),
    ("neither", b"HTTP/1.0 200 OK\r\n\r\nabc", b"abc"),
    ("a length that is none", OK + b"Content-Length: many\r\n\r\nabc", b"abc"),
    ("an answer that is announced", b"HTTP/1.1 100 Continue\r\n\r\n" + chunked(b"a"), b"a"),
    ("no reason", b"HTTP/1.1 200\r\n\r\nabc", b"abc"),
    ("a header over two lines", OK + b"A: b\r\n c\r\nContent-Length: 1\r\n\r\na", b"a"),
    ("no content", b"HTTP/1.1 204 No\r\n\r\nabc", b""),
]

CUT = [b"", b"HTTP/1.1 200 OK\r\nContent-", chunked(b"abc")[:-2], chunked(b"abc")[:-8],
       OK + b"Content-Length: 9\r\n\r\nabc", chunked(end=b"xyz\r\n"), chunked(end=b"3\r\nabcdef\r\n"),
       chunked(end=b"-1\r\n"), chunked(end=b"1" * 20000)]
NOT_HTTP = [b"SSH-2.0-OpenSSH\r\n", b"<html>", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/2 200\r\n\r\n", b"\r\n\r\n",
            OK + b"a: b\r\n" * 20000]


class Answers(unittest.TestCase):
    def test_whole_in_each_cut(self):
        for what, answer, body in WHOLE:
            for pieces in cuts(answer):
                with self.subTest(what, pieces=pieces):
                    self.assertEqual(body, read(*pieces)[1])

    def test_cut(self):
        for answer in CUT:
            with self.subTest(answer[:60]):
                self.assertRaises(Cut, read, answer)

    def test_not_http(self):
        for answer in NOT_HTTP:
            with self.subTest(answer[:60]):
                self.assertRaises(NotHttp, read, *[answer[at:at + 65536]
                                                   for at in range(0, len(answer), 65536)])

    def test_data_does_not_wait_for_the_next_line(self):
        response = Response(Pieces(chunked(b"abc", end=b"")[:-1]))
        self.assertEqual(b"abc", response.read())

    def test_headers(self):
        response = Response(Pieces(OK + b"A: 1\r\na: 2\r\nB:\xe9\r\n\r\n"))
        self.assertEqual(("1", "\xe9", ""), (response.header("a"), response.header("B"),
                                             response.header("C")))

    def test_a_request(self):
        self.assertEqual(request("GET", "h", "/a", {}, None), b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                                                              b"Accept-Encoding: identity\r\n\r\n")
        self.assertTrue(request("POST", "h", "/", {"X": "y"}, b"ab").endswith(b"Content-Length: 2\r\nX: "
                                                                              b"y\r\n\r\nab"))


if __name__ == "__main__":
    unittest.main()
