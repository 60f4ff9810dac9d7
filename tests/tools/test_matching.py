"""Levels of matching: each case is a file, what a model sent, and what the file must be afterwards."""

from __future__ import annotations

import time
import unittest

from mm.tools import matching
from mm.tools.matching import BLANKS, EXACT, LOOKALIKE, NUMBERED, TRAILING

TABBED = "if a:\n\tone()\n\tif b:\n\t\ttwo()\n\tthree()\nend\n"

# (what, level, file, old, new, the file afterwards)
REPLACED = [
    ("a word", EXACT, "one two three", "two", "2", "one 2 three"),
    ("a line", EXACT, "a\nb\nc\n", "b\n", "B\n", "a\nB\nc\n"),
    ("a line goes", EXACT, "a\nb\nc\n", "b\n", "", "a\nc\n"),
    ("lines are added", EXACT, "a\nc\n", "a\n", "a\nb\n", "a\nb\nc\n"),
    ("everything goes", EXACT, "a\nb\n", "a\nb\n", "", ""),
    ("the end without a final newline", EXACT, "a\nb", "b", "B", "a\nB"),
    ("a final newline is added", EXACT, "a\nb", "b", "b\n", "a\nb\n"),
    ("dollars and backslashes", EXACT, "price = x\n", "x", r"$1 \1 \g<0> $& \n",
     "price = $1 \\1 \\g<0> $& \\n\n"),
    ("regular expressions are text", EXACT, "a.*b\naxxb\n", "a.*b", "c", "c\naxxb\n"),
    ("unicode", EXACT, "grüße 💡\n", "ü", "ue", "grueße 💡\n"),
    ("other line breaks of Unicode are characters", EXACT, "a\u2028b\x0cc\x85d\n", "b", "B",
     "a\u2028B\x0cc\x85d\n"),
    ("across a line end", EXACT, "ab\ncd\n", "b\nc", "b c", "ab cd\n"),
    # line ends
    ("CRLF", EXACT, "a\r\nb\r\nc\r\n", "a\nb\n", "a\nB\nnew\n", "a\r\nB\r\nnew\r\nc\r\n"),
    ("CRLF in the call", EXACT, "a\nb\nc\n", "a\r\nb", "A\r\nB", "A\nB\nc\n"),
    ("CRLF on both sides", EXACT, "a\r\nb\r\n", "a\r\nb", "b\r\na", "b\r\na\r\n"),
    ("mixed: lines that stay keep theirs", EXACT, "a\nb\r\nc\nd\r\ne\n", "b\nc\nd", "b\nC\nd",
     "a\nb\r\nC\nd\r\ne\n"),
    ("mixed: a new line takes that of the line it replaces", EXACT, "a\nb\r\nc\n", "b\n", "x\ny\n",
     "a\nx\r\ny\r\nc\n"),
    ("mixed: a line is added between lines that stay", EXACT, "a\r\nb\nc\r\n", "a\nb\n", "a\nnew\nb\n",
     "a\r\nnew\r\nb\nc\r\n"),
    ("a line with CRLF goes", EXACT, "a\nb\r\nc\n", "b\n", "", "a\nc\n"),
    ("only the line end goes", EXACT, "a\r\nb\r\n", "a\nb", "ab", "ab\r\n"),
    ("the last line of CRLF without one", EXACT, "a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
    ("old Mac", EXACT, "a\rb\rc\r", "a\nb", "a\nB\nnew", "a\rB\rnew\rc\r"),
    ("a stray CR is a character", EXACT, "a\rb\nc\n", "a\rb", "ab", "ab\nc\n"),
    ("CRCRLF", EXACT, "a\r\r\nb\r\n", "b", "B", "a\r\r\nB\r\n"),
    # typographic signs
    ("quotes in the file", LOOKALIKE, "say \u201chello\u201d now\n", 'say "hello" now', 'say "goodbye" now',
     "say \u201cgoodbye\u201d now\n"),
    ("quotes in the call", LOOKALIKE, 'say "hello"\n', "say \u201chello\u201d", "say \u201cbye\u201d",
     'say "bye"\n'),
    ("a dash and a quote that go", LOOKALIKE, "a \u2014 it\u2019s b\n", "a - it's b", "a, b", "a, b\n"),
    ("a no-break space within a line", LOOKALIKE, "costs 10\u00a0\u20ac or 5\u00a0\u20ac\n", "10 \u20ac or 5",
     "10 \u20ac or 6", "costs 10\u00a0\u20ac or 6\u00a0\u20ac\n"),
    ("lines that stay keep theirs", LOOKALIKE, "\u201ca\u201d\r\nb\r\n\u201cc\u201d\r\n", '"a"\nb\n"c"',
     '"a"\nB\n"c" \u00bbd\u00ab', "\u201ca\u201d\r\nB\r\n\u201cc\u201d \u00bbd\u00ab\r\n"),
    ("what is new stays as sent", LOOKALIKE, "x \u2013 y\n", "x - y", "x - y - z", "x \u2013 y - z\n"),
    # trailing blanks
    ("blanks at the ends of the file's lines", TRAILING, "a  \nb\t\nc\n", "a\nb\n", "a\nB\n", "a  \nB\nc\n"),
    ("blanks at the ends of old", TRAILING, "a\nb\nc\n", "a  \nb ", "A\nb", "A\nb\nc\n"),
    ("old ends with a newline, the file does not", TRAILING, "a\nb", "b\n", "x\ny\n", "a\nx\ny"),
    ("the same with CRLF", TRAILING, "a\r\nb", "b\n", "x\ny\n", "a\r\nx\r\ny"),
    ("lines with blanks go", TRAILING, "a\nb \nc\n", "b\n", "", "a\nc\n"),
    ("the last line goes, which has no newline", TRAILING, "a\nb", "b\n", "", "a"),
    # blanks
    ("spaces for tabs", BLANKS, TABBED, "    if b:\n        two()\n", "    if b:\n        2()\n",
     TABBED.replace("two", "2")),
    ("spaces for tabs, deeper than all that was there", BLANKS, TABBED, "    if b:\n        two()",
     "    if b:\n        if c:\n            two()", "if a:\n\tone()\n\tif b:\n\t\tif "
                                                    "c:\n\t\t\ttwo()\n\tthree()\nend\n"),
    ("spaces for tabs, shallower", BLANKS, TABBED, "        two()\n    three()", "    two()\n3()",
     "if a:\n\tone()\n\tif b:\n\ttwo()\n3()\nend\n"),
    ("tabs for spaces", BLANKS, "if a:\n    b()\n    c()\n", "\tb()\n\tc()", "\tb()\n\tif d:\n\t\tc()",
     "if a:\n    b()\n    if d:\n        c()\n"),
    ("no indentation at all", BLANKS, "class A:\n    def f(self):\n        return 1\n",
     "def f(self):\n    return 1", "def f(self):\n    return 2", "class A:\n    def f(self):\n        return "
                                                                 "2\n"),
    ("too much indentation", BLANKS, "def f():\n  return 1\n", "    def f():\n      return 1",
     "    def f():\n      x = 1\n      return x", "def f():\n  x = 1\n  return x\n"),
    ("two spaces for four", BLANKS, "a:\n    b:\n        c\n", "a:\n  b:\n    c", "a:\n  b:\n    d",
     "a:\n    b:\n        d\n"),
    ("blanks within lines", BLANKS, "x  =  1\ny = 2\n", "x = 1", "x = 3", "x = 3\ny = 2\n"),
    ("empty lines around old", BLANKS, "a\n  b\nc\n", "\n\nb\n\n", "\n\nB\n\n", "a\n  B\nc\n"),
    ("CRLF and tabs", BLANKS, "if a:\r\n\tb\r\n\tc\r\n", "    b\n    c\n", "    b\n    d\n",
     "if a:\r\n\tb\r\n\td\r\n"),
    ("empty lines in new stay empty", BLANKS, "if a:\n\tb\n", "    b", "    b\n\n    c",
     "if a:\n\tb\n\n\tc\n"),
    # line numbers
    ("cat -n", NUMBERED, "a\n    b\nc\n", "     1\ta\n     2\t    b", "     1\ta\n     2\t    B",
     "a\n    B\nc\n"),
    ("arrows, new without", NUMBERED, "a:\n    b\nc\n", "1→a:\n2→    b", "a:\n    x\n    y",
     "a:\n    x\n    y\nc\n"),
    ("bars", NUMBERED, "a\n    b\nc\n", " 9 | a\n10 |     b\n11 | c", " 9 | a\n10 |     x\n11 | c",
     "a\n    x\nc\n"),
    ("grep -n", NUMBERED, "def f():\n    g()\n    h()\n", "2:    g()\n3:    h()", "2:    g()\n3:    i()",
     "def f():\n    g()\n    i()\n"),
    ("colons with a blank, new without numbers", NUMBERED, "if a:\n    b\n", "1: if a:\n2:     b",
     "if a:\n    c", "if a:\n    c\n"),
]

# (what, file, old)
NOT_FOUND = [
    ("a drifted interior", "def f():\n    a = 1\n    b = 2\n    return a\n",
     "def f():\n    a = 1\n    b = 3\n    return a\n"),
    ("the first and the last line are not enough", "start\none\ntwo\nend\n", "start\nuno\ndue\nend\n"),
    ("a line is missing", "a\nb\nc\n", "a\nc\n"),
    ("part of a line with other blanks", "call(a,  b)\n", "a, b"),
    ("another case", "Hello\n", "hello"),
    ("numbers that do not count up", "a\nb\n", "1: a\n7: b"),
    ("numbers on some lines", "a\nb\n", "1: a\nb"),
    ("only line numbers", "a\n\nb\n", "1\t\n2\t"),
    ("only blank lines", "a\n\n\n\nb\n", "\n \n\t\n"),
    ("words joined", "a b\n", "ab"),
    ("an empty file", "", "a"),
]

# (what, level, file, old, how often)
SEVERAL = [
    ("exactly", EXACT, "x = 1\ny = 1\n", "1", 2),
    ("not overlapping", EXACT, "aaaa", "aa", 2),
    ("at line ends", TRAILING, "a \nb\na \n", "a\n", 2),
    ("with other signs", LOOKALIKE, "\u2018a\u2019 'b' \u2018a\u2019\n", "'a'", 2),
    ("with other blanks", BLANKS, "\ta\nb\n\t\ta\n", "    a", 2),
]


class Levels(unittest.TestCase):
    def test_replaced(self):
        for what, level, text, old, new, expected in REPLACED:
            with self.subTest(what):
                document = matching.Document(text)
                match = matching.find(document, old, new)
                self.assertEqual((match.level, len(match.spans)), (level, 1))
                self.assertEqual(matching.replace(document, match)[0], expected)

    def test_not_found(self):
        for what, text, old in NOT_FOUND:
            with self.subTest(what):
                self.assertIsNone(matching.find(matching.Document(text), old, "new"))

    def test_several(self):
        for what, level, text, old, count in SEVERAL:
            with self.subTest(what):
                match = matching.find(matching.Document(text), old, "new")
                self.assertEqual((match.level, len(match.spans)), (level, count))

    def test_line_numbers_on_some_lines_only(self):
        self.assertIsNone(matching.find(matching.Document("a\nb\n"), "1\ta\n2\tb", "1\ta\nnew\n2\tb"))

    def test_all_occurrences_are_replaced(self):
        document = matching.Document("x\r\ny x\nx")
        match = matching.find(document, "x", "long\nx")
        text, changes = matching.replace(document, match)
        self.assertEqual(text, "long\r\nx\r\ny long\nx\nlong\nx")
        self.assertEqual([tuple(change) for change in changes], [(1, 1), (3, 3), (5, 5)])

    def test_changes_name_the_new_lines_only(self):
        for old, new, expected in [
            ("a\nb\nc\n", "a\nB\nc\n", (2, 2)), ("b\n", "x\ny\n", (2, 3)), ("b\n", "", (2, 1)),
            ("c", "c\nd\ne", (4, 5)), ("b", "B", (2, 2)),
        ]:
            document = matching.Document("a\nb\nc\n")
            change, = matching.replace(document, matching.find(document, old, new))[1]
            self.assertEqual(tuple(change), expected)

    def test_a_document_is_its_text(self):
        for text in ("", "\n", "a", "a\n", "a\r\nb\n\r\nc", "\r", "a\rb", "a\r\r\nb\r\n", "\n\n\r\n"):
            with self.subTest(text=text):
                document = matching.Document(text)
                ends = document.ends_within(0, len(document.flat)) + [""]
                self.assertEqual("".join(map("".join, zip(document.flat.split("\n"), ends))), text)
                self.assertEqual(document.cut(0, len(document.flat)), text)

    def test_a_long_file_takes_no_time(self):
        lines = [f"    value_{index} = compute({index % 7})" for index in range(20000)]
        document = matching.Document("\n".join(lines))
        started = time.monotonic()
        match = matching.find(document, "\n".join(line.strip() for line in lines[15000:15040]), "pass")
        self.assertEqual((match.level, document.line_at(match.spans[0][0])), (BLANKS, 15000))
        self.assertLess(time.monotonic() - started, 1)


class Nearest(unittest.TestCase):
    LINES = [f"line number {index}" for index in range(100)]

    def near(self, old, lines=None):
        return tuple(matching.nearest(matching.Document("\n".join(lines or self.LINES) + "\n"), old)[:2])

    def test_most_lines_in_their_place_win(self):
        self.assertEqual(self.near("line number 40\nsomething else\nline number 42\n"), (38, 45))

    def test_a_lone_bracket_is_no_anchor(self):
        lines = ["}", "}", "def wanted(a, b):", "    return a", "}"]
        self.assertEqual(self.near("def wanted(a, c):\n}", lines), (0, 5))
        self.assertEqual(self.near("}\n" * 3 + "completely different", self.LINES + ["}"]), (0, 20))

    def test_a_similar_line_is_found(self):
        lines = self.LINES[:50] + ["def compute_total(items, tax):"] + self.LINES[50:]
        self.assertEqual(self.near("def compute_totals(items, taxes):\n    pass", lines), (48, 54))

    def test_the_beginning_where_nothing_is_like_it(self):
        self.assertEqual(self.near("§§§§"), (0, 20))
        self.assertEqual(self.near("§§§§", ["a", "b"]), (0, 2))

    def test_a_lookalike_is_named(self):
        lines = ["one", "two \u201cquoted\u201d", "three\u00a03", "a-b"]
        for first, old, said in [
            (0, 'one\ntwo "quoted"\nfour', 'line 2 has U+201C where you sent "'), (0, "one\ntwo x\nthree", ""),
            (2, "three 3", "line 3 has U+00A0 where you sent a blank"),
            (3, "a\u2212b", "line 4 has U+002D where you sent \u2212"), (3, "a-b\nmore", ""), (-1, "x\none", ""),
        ]:
            document = matching.Document("\n".join(lines))
            self.assertEqual(matching.difference(document, first, old), said)
