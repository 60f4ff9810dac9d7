"""Places in a text: as servers count them, and where a model may mean a name."""

from __future__ import annotations

import unittest

from mm.tools.positions import Lines, last_part, occurrences, units_of

# A line, a column in characters, the same in UTF-16 units.
COLUMNS = [
    ("abc", 0, 0), ("abc", 2, 2), ("é = 1", 2, 2), ("e\u0301x", 2, 2), ("😀x", 1, 2), ("😀😀x", 2, 4),
    ("a😀é中x", 4, 5), ("👨‍👩‍👧 x", 6, 9), ("\u2028x", 1, 1), ("\ufeffx", 1, 1),
]


def column_of(line, units, encoding):
    return Lines(line).offset({"line": 0, "character": units}, encoding)


class Columns(unittest.TestCase):
    def test_in_utf_16(self):
        for line, column, units in COLUMNS:
            with self.subTest(line):
                self.assertEqual((units_of(line, column, "utf-16"), column_of(line, units, "utf-16")),
                                 (units, column))

    def test_in_utf_32_they_are_characters(self):
        for line, column, _ in COLUMNS:
            with self.subTest(line):
                self.assertEqual((units_of(line, column, "utf-32"), column_of(line, column, "utf-32")),
                                 (column, column))

    def test_the_middle_of_a_character_is_its_beginning(self):
        self.assertEqual(column_of("a😀b", 2, "utf-16"), 1)

    def test_after_a_lines_end_is_its_end(self):
        for encoding in ("utf-16", "utf-32"):
            self.assertEqual((column_of("ab", 9, encoding), column_of("é😀", 9, encoding)), (2, 2))


class TheLines(unittest.TestCase):
    def test_the_line_ends_of_the_protocol(self):
        lines = Lines("a\r\nb\rc\nd\u2028e\x0bf\n")
        self.assertEqual([lines.line(index) for index in range(len(lines))],
                         ["a", "b", "c", "d\u2028e\x0bf", ""])
        self.assertEqual((lines.line(-1), lines.line(5)), ("", ""))

    def test_offsets_of_positions(self):
        lines = Lines("é😀x\r\ny\n")
        for position, encoding, offset in [
            ({"line": 0, "character": 3}, "utf-16", 2), ({"line": 0, "character": 2}, "utf-32", 2),
            ({"line": 0, "character": 99}, "utf-16", 3), ({"line": 1, "character": 0}, "utf-16", 5),
            ({"line": 2, "character": 0}, "utf-16", 7), ({"line": 99, "character": 3}, "utf-16", 7),
            ({"line": -1, "character": "x"}, "utf-16", 0), (None, "utf-16", 0), ({}, "utf-32", 0),
        ]:
            with self.subTest(position=position, encoding=encoding):
                self.assertEqual(lines.offset(position, encoding), offset)

    def test_places_and_whole_lines(self):
        lines = Lines("ab\r\ncd\nef")
        self.assertEqual([lines.place(offset) for offset in (0, 2, 4, 5, 7, 9)],
                         [(0, 0), (0, 2), (1, 0), (1, 1), (2, 0), (2, 2)])
        self.assertEqual((lines.whole(5, 5), lines.whole(0, 5), lines.whole(8, 9)), ("cd", "ab\r\ncd", "ef"))


# A text, the name, the line from 1 or None: the places as line:column from 1, and the lines that have it.
NAMES = [
    ("foo\nfood foo\n", "foo", None, "1:1 2:6", "1 2"),
    ("foo\nfood foo\n", "foo", 2, "2:6", "1 2"),
    ("x\n\nfoo\n", "foo", 1, "3:1", "3"),  # near it
    ("foo\nx\nx\nx\nx\n", "foo", 5, "", "1"),  # too far
    ("foo\nx\nfoo\nx\nx\n", "foo", 2, "1:1 3:1", "1 3"),
    ("x = 'foo'; foo(foo)\n", "foo", 1, "1:6 1:12 1:16", "1"),
    ("_foo foo_ foo1 éfoo\n", "foo", None, "", ""),
    ("a.foo $foo ~foo foo?\n", "foo", None, "1:3 1:8 1:13 1:17", "1"),
    ("$foo foo\n", "$foo", None, "1:1", "1"),
    ("ns::foo a->foo\n", "ns::foo", None, "1:5 1:12", "1"),
    ("bar\nclass A:\n  def bar\nA.bar()\n", "A.bar", None, "4:3 3:7 1:1", "1 3 4"),
    ("bar\nclass A:\n  def bar\n", "A.bar", None, "3:7 1:1", "1 3"),
    ("bar\n", "A.bar()", None, "1:1", "1"),
    ("foo(1)\n", "foo(x, y)", None, "1:1", "1"),
    ("operator==\n", "operator==", None, "1:1", "1"),
    ("x\n", "nothing", None, "", ""),
    ("😀 foo\r\nfoo\r\n", "foo", None, "1:3 2:1", "1 2"),
]


class Names(unittest.TestCase):
    def test_where_a_name_may_be_meant(self):
        for text, symbol, line, places, elsewhere in NAMES:
            with self.subTest(text=text, symbol=symbol, line=line):
                found, lines = occurrences(Lines(text), symbol, None if line is None else line - 1)
                self.assertEqual(" ".join("%d:%d" % (row + 1, column + 1) for row, column in found), places)
                self.assertEqual(" ".join(str(row + 1) for row in lines), elsewhere)

    def test_the_last_part(self):
        for symbol, part in [("a", "a"), ("A.b", "b"), ("A::b", "b"), ("a->b", "b"), ("A#b", "b"),
                             (" A.b() ", "b"), ("f(a.b)", "f"), ("A::", "A::"), ("operator()", "operator")]:
            with self.subTest(symbol):
                self.assertEqual(last_part(symbol), part)
