"""Bytes to messages and back, as tables; and that a long line takes linear time."""

from __future__ import annotations

import json
import time
import unittest

from mm.wire import framing


def fed(framer, *pieces) -> list:
    return [message for piece in pieces for message in framer.feed(piece)] + framer.rest()


LINES = (
    # name, pieces read, lines
    ("nothing", (), []),
    ("one line", (b'{"a":1}\n',), [b'{"a":1}']),
    ("two in one read", (b"1\n2\n",), [b"1", b"2"]),
    ("one in three reads", (b"1", b"2", b"3\n"), [b"123"]),
    ("cut at the line end", (b"1", b"\n", b"2\n"), [b"1", b"2"]),
    ("end of one and start of the next in one read", (b"1", b"2\n3", b"4\n"), [b"12", b"34"]),
    ("Windows line ends", (b"1\r\n2\r", b"\n"), [b"1", b"2"]),
    ("only the last \\r belongs to the line end", (b"1\r\r\n",), [b"1\r"]),
    ("blank lines", (b"\n\n1\n \t\n\r\n2\n\n",), [b"1", b"2"]),
    ("the last line end missing", (b"1\n2",), [b"1", b"2"]),
    ("blanks at the end", (b"1\n  ",), [b"1"]),
    ("a character cut in two", (b"\xc3", b"\xa9\n"), [b"\xc3\xa9"]),
    ("other line separators are no line ends", ("1\x0b\x0c\x1c\x85\u2028\n".encode(),),
     ["1\x0b\x0c\x1c\x85\u2028".encode()]),
    ("NUL and invalid UTF-8 pass", (b"\x00\xff\n",), [b"\x00\xff"]),
)

HEADERS = (
    ("one message", (b"Content-Length: 2\r\n\r\n{}",), [b"{}"]),
    ("two in one read", (b"Content-Length: 2\r\n\r\n{}Content-Length: 1\r\n\r\n1",), [b"{}", b"1"]),
    ("byte by byte", tuple(bytes([byte]) for byte in b"Content-Length: 2\r\n\r\n{}Content-Length: 1\r\n\r\n1"),
     [b"{}", b"1"]),
    ("other fields, any case", (b"Content-Type: x; charset=utf-8\r\ncontent-length:2 \r\n\r\n{}",), [b"{}"]),
    ("a length of thousands of digits is none", (b"Content-Length: " + b"9" * 5000
                                                 + b"\r\n\r\nContent-Length: 2\r\n\r\n{}",), [b"{}"]),
    ("bare line ends", (b"Content-Length: 2\n\n{}",), [b"{}"]),
    ("the length is in bytes", ("Content-Length: 2\r\n\r\né".encode(),), ["é".encode()]),
    ("an empty message", (b"Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n1",), [b"", b"1"]),
    ("a block without a length", (b"hello\r\n\r\nContent-Length: 1\r\n\r\n1",), [b"1"]),
    ("a length inside the body is none", (b"Content-Length: 21\r\n\r\nContent-Length: "
                                          b"9\r\n\r\nContent-Length: 1\r\n\r\n1",),
     [b"Content-Length: 9\r\n\r\n", b"1"]),
    ("cut short", (b"Content-Length: 5\r\n\r\n{}",), []),
    ("garbage without an end is not kept", (b"x" * 70_000, b"Content-Length: 1\r\n\r\n1"), [b"1"]),
)

STRINGS = (
    # name, text, what a reader must get
    ("plain", "a\"\\\n", "a\"\\\n"),
    ("not ASCII", "é😀\u2028", "é😀\u2028"),
    ("a lone high surrogate", "a\ud83db", "a\ufffdb"),
    ("a lone low surrogate", "a\ude00b", "a\ufffdb"),
    ("at the end", "a\ud83d", "a\ufffd"),
    ("two halves are one character", "\ud83d\ude00", "😀"),
    ("halves the wrong way round", "\ude00\ud83d", "\ufffd\ufffd"),
    ("NUL", "\0", "\0"),
)


class Lines(unittest.TestCase):
    def test_are_cut_at_line_ends_however_they_arrive(self):
        for name, pieces, lines in LINES:
            with self.subTest(name):
                self.assertEqual(fed(framing.LineFramer(), *pieces), lines)

    def test_thirty_megabytes_in_small_reads_take_linear_time(self):
        piece, count = b"x" * 65536, 480
        framer = framing.LineFramer()
        started = time.process_time()
        for _ in range(count):
            self.assertEqual(framer.feed(piece), [])
        lines = framer.feed(b"\n1\n")
        # Half a gigabyte would have to be moved for each of the reads in quadratic time: many seconds.
        self.assertLess(time.process_time() - started, 1)
        self.assertEqual([len(line) for line in lines], [len(piece) * count, 1])


class Headers(unittest.TestCase):
    def test_messages_are_cut_by_their_length(self):
        for name, pieces, messages in HEADERS:
            with self.subTest(name):
                self.assertEqual(fed(framing.HeaderFramer(), *pieces), messages)

    def test_a_long_message_takes_linear_time(self):
        piece, count = b"x" * 65536, 480
        framer = framing.HeaderFramer()
        framer.feed(b"Content-Length: %d\r\n\r\n" % (len(piece) * count))
        started = time.process_time()
        messages = [message for _ in range(count) for message in framer.feed(piece)]
        self.assertLess(time.process_time() - started, 1)
        self.assertEqual([len(message) for message in messages], [len(piece) * count])


class Encoding(unittest.TestCase):
    def test_strings_reach_the_reader_without_surrogates(self):
        for name, text, read in STRINGS:
            with self.subTest(name):
                self.assertEqual(framing.encode_line([text]), b"[" + framing.encode_string(text) + b"]\n")
                self.assertEqual(json.loads(framing.encode_line({text: text}).decode("utf-8")), {read: read})

    def test_a_message_is_one_compact_line_of_utf8(self):
        self.assertEqual(framing.encode_line({"a": [1, "é\n"], "b": None}),
                         '{"a":[1,"é\\n"],"b":null}\n'.encode())

    def test_what_json_has_no_word_for_becomes_null(self):
        value = {"a": [float("nan"), 1.5, (float("inf"),)], "b": -float("inf"), "c": True}
        self.assertEqual(framing.encode_line(value), b'{"a":[null,1.5,[null]],"b":null,"c":true}\n')

    def test_what_is_not_json_is_a_bug(self):
        self.assertRaises(TypeError, framing.encode_line, {"a": object()})

    def test_header_framing_counts_bytes(self):
        self.assertEqual(framing.encode_header("é"), 'Content-Length: 4\r\n\r\n"é"'.encode())


if __name__ == "__main__":
    unittest.main()
