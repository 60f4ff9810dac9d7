"""Framing: each case is a body and the objects in it, whatever the pieces it comes in."""

from __future__ import annotations

import json
import time
import unittest

from mm.model.sse import LONGEST, Decoder
from tests.model import streams

A, B = {"a": 1}, {"b": [2]}
NO_WORDS = {"error": "an error without a description"}

CASES = [
    ("an event", b'data: {"a":1}\n\n', [A]),
    ("no space, more space", b'data:{"a":1}\n\ndata:   {"b":[2]}  \n\n', [A, B]),
    ("\\r\\n", b'data: {"a":1}\r\n\r\ndata: {"b":[2]}\r\n\r\n', [A, B]),
    ("no blank lines", b'data: {"a":1}\ndata: {"b":[2]}\n', [A, B]),
    ("no newline at the end", b'data: {"a":1}', [A]),
    ("a byte order mark", b'\xef\xbb\xbfdata: {"a":1}\n\n', [A]),
    ("comments", b': ping\n\n:\n\ndata: {"a":1}\n: 1/2\n\n', [A]),
    ("other fields", b'retry: 3\nid: 1\nevent: message\nfoo: bar\nfoo\ndata: {"a":1}\n\n', [A]),
    ("one event on three lines", b'data: {\ndata: "a":\ndata: 1}\n\n', [A]),
    ("lines that end like an object and are none", b'data: {"b":[{"x":{}\ndata: }]}\n\n',
     [{"b": [{"x": {}}]}]),
    ("an unfinished event before a blank line", b'data: {"x":\n\ndata: {"a":1}\n\n', [A]),
    ("an unfinished event before another", b'data: {"x":\ndata: {"choices":[]}\n\n', [{"choices": []}]),
    ("no object", b'data: null\n\ndata: [1]\n\ndata: hello\n\ndata: {"a":1}\n\n', [A]),
    ("text behind an object", b'data: {"a":1} x\n\ndata: {"b":[2]}\n\n', [B]),
    ("empty data", b'data\n\ndata:\n\ndata: \n\ndata: {"a":1}\n\n', [A]),
    ("nothing counts after [DONE]", b'data: {"a":1}\n\ndata: [DONE]\n\ndata: {"b":[2]}\n\n', [A]),
    ("[DONE] without a space", b'data:[DONE]\ndata: {"a":1}\n\n', []),
    ("an event named error", b'event: error\ndata: {"message":"m"}\n\ndata: {"a":1}\n\n',
     [{"error": {"message": "m"}}, A]),
    ("an event named error with an error in it", b'event: error\ndata: {"error":"m"}\n\n', [{"error": "m"}]),
    ("an event named error and nothing else", b'event: error\n\n', [NO_WORDS]),
    ("the same at the end", b'event: error', [NO_WORDS]),
    ("a field named error", b'error: {"message":"m"}\n\n', [{"error": {"message": "m"}}]),
    ("a field named error, text", b'error: no memory\n\n', [{"error": "no memory"}]),
    ("a field named error, empty", b'error:\n\n', [NO_WORDS]),
    ("a bare object in the stream", b'data: {"a":1}\n\n{"error":"m"}\n', [A, {"error": "m"}]),
    ("a whole answer", b' \n{"a":1}', [A]),
    ("a whole answer over several lines", b'{\n  "b": [\n    2\n  ]\n}\n', [B]),
    ("objects, one a line", b'{"a":1}\n{"b":[2]}\n', [A, B]),
    ("a whole answer that is cut", b'{"a":', []),
    ("characters that other splitters take for newlines",
     'data: {"x":"\u2028\u0085\u000b"}\n\n'.encode().replace(b"\x0b", b""), [{"x": "\u2028\u0085"}]),
    ("bytes that are no UTF-8", b'data: {"x":"\xff"}\n\n', [{"x": "\ufffd"}]),
    ("a surrogate by its escape", b'data: {"x":"\\ud83d"}\n\n', [{"x": "\ud83d"}]),
    ("nesting without end", b"data: " + b'{"a":' * 100_000 + b"\n\ndata: {\"a\":1}\n\n", [A]),
    ("nothing", b"", []),
    ("a page", b"<html>\n<body>data: no</body>\n", []),
]


class Framing(unittest.TestCase):
    def test_each_case_in_each_cut(self):
        for name, body, expected in CASES:
            for cut, pieces in streams.cuts(body) if len(body) < 1000 else [("whole", [body])]:
                with self.subTest(name, cut=cut):
                    decoder = Decoder()
                    found = [obj for piece in pieces for obj in decoder.feed(piece)] + decoder.end()
                    self.assertEqual(expected, found)
                    self.assertEqual(b"[DONE]" in body, decoder.done)

    def test_nothing_counts_after_done(self):
        decoder = Decoder()
        body = b'data: {"a": 1}\n\ndata: [DONE]\n\ndata: {"a": 2}'
        self.assertEqual([{"a": 1}], decoder.feed(body) + decoder.end())

    def test_the_tap_gets_equivalent_lines(self):
        for name, body, expected in CASES:
            with self.subTest(name):
                told = []
                decoder = Decoder(told.append)
                decoder.feed(body)
                decoder.end()
                again = Decoder()
                self.assertEqual(expected, again.feed("".join(f"{line}\n\n" for line in told).encode("utf-8",
                                                                                                     "replace")) + again.end())
                self.assertEqual(decoder.done, again.done)

    def test_events_come_with_the_bytes_that_complete_them(self):
        decoder = Decoder()
        self.assertEqual([], decoder.feed(b'data: {"a"'))
        self.assertEqual([A], decoder.feed(b':1}\ndata: {"b"'))
        self.assertEqual([B], decoder.feed(b":[2]}\n"))

    def test_what_has_no_end_is_not_kept(self):
        large = b"x" * 1_000_000
        for name, piece, endless in (("a line", large, True), ("data lines", b"data: " + large + b"\n", True),
                                     ("JSON", b"{" + large, True),
                                     ("events", b'data: {"a":"' + large + b'"}\n', False),
                                     ("comments", b":" + large + b"\n", False)):
            with self.subTest(name):
                decoder = Decoder()
                for _ in range(LONGEST // len(large) + 1):
                    decoder.feed(piece)
                self.assertEqual(endless, decoder.endless)
                self.assertEqual([], decoder.feed(b"\n") + decoder.end())

    def test_comments_before_the_first_event(self):
        for body, beginning, progress in ((b": ping\n\n:\n", "", None), (b": ping\n\nNo.\n", "No.\n", None),
                                          (b"\n: ping", "", None),
                                          (b": keepalive 1/9\n\n: keepalive 2/9\n\n", "",
                                           {"processed": 2, "total": 9})):
            for cut, pieces in streams.cuts(body):
                with self.subTest(body, cut=cut):
                    decoder = Decoder()
                    self.assertEqual([], [obj for piece in pieces for obj in decoder.feed(piece)]
                                     + decoder.end())
                    self.assertEqual((beginning, progress), (decoder.beginning, decoder.progress))

    def test_long_lines_and_events_take_linear_time(self):
        def seconds(body, size):
            best = float("inf")
            for _ in range(3):
                decoder = Decoder()
                start = time.process_time()
                found = [obj for at in range(0, len(body), size)
                         for obj in decoder.feed(body[at:at + size])] + decoder.end()
                best = min(best, time.process_time() - start)
                self.assertEqual(1, len(found))
            return best

        def line(size):
            return b'data: {"x":"' + b"y" * size + b'"}\n\n'

        def event(lines):
            return b"".join(b"data: " + each + b"\n"
                            for each in json.dumps({"x": [{}] * lines},
                                                   indent=1).encode().split(b"\n")) + b"\n"

        self.assertLess(seconds(line(4_000_000), 4096), 50 * seconds(line(400_000), 4096))
        self.assertLess(seconds(event(20_000), 65536), 50 * seconds(event(2_000), 65536))


if __name__ == "__main__":
    unittest.main()
