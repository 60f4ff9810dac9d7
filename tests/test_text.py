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
    ("a\tb\x1b[0m\x00", "a b\\x1b[0m\\x00"),
    ("ls \u202egpj.x", "ls \\u202egpj.x"),
    ("true\u2028rm -r x", "true\\u2028rm -r x"),
    ("a" + " " * 1000 + "b", "a[1000 blanks]b"),
    ("", ""),
]

VISIBLE = [
    ("", ""),
    ("plain\n\ttext, ünïcödé, 中文, 💡, ⚠️", "plain\n\ttext, ünïcödé, 中文, 💡, ⚠️"),
    ("\u202a\u202e\u2066\u2069", "\\u202a\\u202e\\u2066\\u2069"),
    ("a\u200bb\u200fc\u061cd\u00ade", "a\\u200bb\\u200fc\\u061cd\\xade"),
    ("\u2028\u2029\ufeff", "\\u2028\\u2029\\ufeff"),
    ("x\U000e0041\U000e007f", "x\\U000e0041\\U000e007f"),
    ("\x1b[31m\r\x00\x9b", "\\x1b[31m\\r\\x00\\x9b".replace("\\r", "\\x0d")),
    ("lone \ud800", "lone \\ud800"),
    ("\u3164\u2800\u115f", "\\u3164\\u2800\\u115f"),
    ("a" + " " * 80 + "b", "a" + " " * 80 + "b"),
    ("a" + " \t\u3000" * 27 + "b", "a[81 blanks]b"),
    ("a" + "\n" * 11 + "b", "a" + "\n" * 11 + "b"),
    ("a" + "\n  " * 500 + "\nb", "a\n[500 empty lines]\nb"),
    ("a" + "\n" + " " * 90 + "\nb", "a\n[90 blanks]\nb"),
    ("e" + "\u0301" * 8, "e" + "\u0301" * 8),
    ("é中" + "\u0301" * 300 + "x", "é中[300 combining marks]x"),
]

# Pieces of one text -> what is shown after each of them, and at the end.
STREAMS = [
    (["plain", " text\n", "💡"], ["plain", " text\n", "💡", ""]),
    (["a\x1b[31mb", "c"], ["ab", "c", ""]),
    (["a\x1b", "[3", "1", "mb\x1b[0m"], ["a", "", "", "b", ""]),
    (["\x1b]0;ti", "tle", "\x07x"], ["", "", "x", ""]),
    (["\x1b]8;;http://h\x1b", "\\x"], ["", "x", ""]),
    (["\x1bPq", "#0\x1b", "\\x"], ["", "", "x", ""]),
    (["end \x1b[3"], ["end ", ""]),
    (["a\x00\x9b\rb", "\x1b\nc"], ["ab", "\nc", ""]),
    (["\x1b]0;" + "x" * 5000, "y"], ["", "y", ""]),
]

SIZES = [(0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1.0 KB"), (58061, "56.7 KB"),
         (1024 * 1024 - 1, "1.0 MB"), (64 << 20, "64.0 MB"), (int(2.3 * (1 << 30)), "2.3 GB"),
         (5 << 40, "5.0 TB")]

FENCES = [("x", "```\nx\n```"), ("x\n", "```\nx\n```"), ("a ``` b", "````\na ``` b\n````"),
          ("`````", "``````\n`````\n``````"), ("", "```\n\n```")]


class Tables(unittest.TestCase):
    def check(self, function, table):
        for given, expected in table:
            with self.subTest(given=given):
                self.assertEqual(function(given), expected)

    def test_terminal_output_is_cleaned(self):
        self.check(text.clean_terminal, CLEANED)

    def test_what_is_unseen_is_made_visible(self):
        self.check(text.visible, VISIBLE)

    def test_a_stream_is_cleaned_across_pieces(self):
        for pieces, shown in STREAMS:
            with self.subTest(pieces=pieces):
                cleaner = text.Cleaner()
                self.assertEqual([cleaner.feed(piece) for piece in pieces] + [cleaner.rest()], shown)

    def test_any_split_gives_clean_text(self):
        whole = "a\x1b[1;31mb\x1b]0;title\x07c\x1b]8;;u\x1b\\d\x1b(Be\x1bMf\n\x1b[?1000hg"
        self.assertEqual(text.clean(whole), "abcdef\ng")
        for first in range(len(whole)):
            for second in range(first, len(whole)):
                cleaner = text.Cleaner()
                pieces = whole[:first], whole[first:second], whole[second:]
                self.assertEqual("".join([cleaner.feed(piece) for piece in pieces] + [cleaner.rest()]),
                                 "abcdef\ng", pieces)

    def test_titles_are_one_line(self):
        self.check(text.one_line, ONE_LINE)

    def test_a_literal_line_is_no_markup(self):
        self.check(text.literal, [("⚠️ plain * line: mm --trust", "⚠️ plain * line: mm --trust"),
                                  ("![x](http://h) `a` <b>", "!\\[x\\](http://h) \\`a\\` \\<b\\>"), ("", "")])

    def test_sizes(self):
        self.check(text.size, SIZES)

    def test_fences_are_longer_than_what_they_hold(self):
        self.check(text.fence, FENCES)

    def test_cleaning_takes_linear_time(self):
        # A quadratic expression takes minutes for these.
        for hard in ("x" * 1000000 + "\n\r", "\r" * 300000 + "x", "\x1b]" * 200000,
                     "\x1b[" + "1;" * 300000 + "\n", "\x1bP" * 200000, "\x1b" * 500000):
            started = time.process_time()
            text.clean_terminal(hard)
            text.visible(hard)
            text.visible("\n " * 500000 + "x")
            text.Cleaner().feed(hard)
            self.assertLess(time.process_time() - started, 5)


class Embedded(unittest.TestCase):
    def test_nothing_is_left_that_an_editor_would_load(self):
        for given, expected in (
                ("![x](https://h.example/p)", "!\\[x](https://h.example/p)"),
                ("[![x](p)](l)", "[!\\[x](p)](l)"), ("![x]\n![x][1]", "!\\[x]\n!\\[x][1]"),
                ("<img src=x><IMG\nsrc=x>", "&lt;img src=x>&lt;IMG\nsrc=x>"),
                ("\\![x](p) \\<img>", "\\!\\[x](p) \\&lt;img>"),
                ("a < b, <p>, [a](https://h.example), wow!", "a < b, <p>, [a](https://h.example), wow!")):
            self.assertEqual(text.without_images(given), expected)
            self.assertEqual(text.without_images(expected), expected)


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
