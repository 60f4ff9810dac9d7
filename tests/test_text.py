"""mm.text: cleaning, cutting, fencing."""

from __future__ import annotations

import time
import unittest

from mm import text

CLEANED = [
    ("plain\n", "plain\n"),
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b[38;5;208;1mfancy\x1b[K", "fancy"),
    ("\x1b[?25lhidden cursor\x1b[?25h", "hidden cursor"),
    ("\x1b]0;title\x07after", "after"),
    ("\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1b]0;never ended\nnext", "0;never ended\nnext"),
    ("\x1bP1$r0m\x1b\\dcs", "dcs"),
    ("\x1b(Bcharset\x1b)0", "charset"),
    ("\x1b7save\x1b8\x1bM\x1b=", "save"),
    ("cut off \x1b[3", "cut off "),
    ("cut off \x1b]0;ti", "cut off "),
    ("cut off \x1b", "cut off "),
    ("crlf\r\nlines\r\n", "crlf\nlines\n"),
    ("10%\r50%\r100%\n", "100%\n"),
    ("10%\r50%\r", "50%"),
    ("done\r\r\n", "done\n"),
    ("a\nb\rc\nd", "a\nc\nd"),
    ("bell\x07 back\x08space\x0b\x0c\x00\x7f\ttab", "bell backspace\ttab"),
    ("c1 \x9b31m\x85", "c1 31m"),
    ("lone \ud800 surrogate", "lone \ufffd surrogate"),
    ("ünïcödé 💡", "ünïcödé 💡"),
    ("[brackets] \\x1b are text", "[brackets] \\x1b are text"),
]

ONE_LINE = [
    ("ls -la", "ls -la"),
    ("  ls  \n", "ls"),
    ("\n\n  first\nsecond", "first…"),
    ("x" * 120, "x" * 120),
    ("x" * 121, "x" * 120 + "…"),
    ("a\tb\x1b[0m\x00", "a b [0m"),
    ("", ""),
]

SIZES = [(0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1.0 KB"), (58061, "56.7 KB"), (1024 * 1024 - 1, "1.0 MB"),
         (64 << 20, "64.0 MB"), (int(2.3 * (1 << 30)), "2.3 GB"), (5 << 40, "5.0 TB")]

FENCES = [("x", "```\nx\n```"), ("x\n", "```\nx\n```"), ("a ``` b", "````\na ``` b\n````"), ("`````", "``````\n`````\n``````"), ("", "```\n\n```")]


class Tables(unittest.TestCase):
    def check(self, function, table):
        for given, expected in table:
            with self.subTest(given=given):
                self.assertEqual(function(given), expected)

    def test_terminal_output_is_cleaned(self):
        self.check(text.clean_terminal, CLEANED)

    def test_titles_are_one_line(self):
        self.check(text.one_line, ONE_LINE)

    def test_sizes(self):
        self.check(text.size, SIZES)

    def test_fences_are_longer_than_what_they_hold(self):
        self.check(text.fence, FENCES)

    def test_notes_are_told_from_output(self):
        self.check(text.is_note, [("[no output]", True), ("[a]\n[b]", False), ("a\n\n[exit code 1]", False), ("", False)])

    def test_cleaning_takes_linear_time(self):
        # A quadratic expression takes minutes for these.
        for hard in ("x" * 1000000 + "\n\r", "\r" * 300000 + "x", "\x1b]" * 200000, "\x1b[" + "1;" * 300000 + "\n",
                     "\x1bP" * 200000, "\x1b" * 500000):
            started = time.monotonic()
            text.clean_terminal(hard)
            self.assertLess(time.monotonic() - started, 5)


class Cutting(unittest.TestCase):
    def test_what_fits_is_whole(self):
        self.assertEqual(text.head_and_tail("a\nb\nc", 5, 3), (["a", "b", "c"], []))

    def test_one_line_too_many(self):
        self.assertEqual(text.head_and_tail("a\nb\nc\nd", 100, 3), (["a"], ["c", "d"]))

    def test_one_character_too_many(self):
        lines = "\n".join("0123456789" for _ in range(30))
        head, tail = text.head_and_tail(lines, len(lines) - 1, 600)
        self.assertEqual((len(head), len(tail)), (9, 19))

    def test_a_third_before_and_two_thirds_after(self):
        head, tail = text.head_and_tail("\n".join(map(str, range(1000))), 30000, 600)
        self.assertEqual((head[0], head[-1], tail[0], tail[-1]), ("0", "199", "600", "999"))

    def test_long_lines_are_cut_in_the_middle(self):
        (line,), tail = text.head_and_tail("a" * 3000 + "b" * 3000, 30000, 600)
        self.assertEqual(line, "a" * 1000 + "… [+4000 chars] …" + "b" * 1000)

    def test_two_ends_are_never_taken_for_the_whole(self):
        self.assertEqual(text.head_and_tail("a", 300, 30, "z"), (["a"], ["z"]))

    def test_a_cut_line_says_what_is_missing(self):
        self.assertEqual(text.cut_line("x" * 7321), "x" * 2000 + "… [+5321 chars]")
        self.assertEqual(text.cut_line("x" * 2000), "x" * 2000)
