"""The picture of the README is what a chat of this mm looks like."""

from __future__ import annotations

import unittest
from xml.etree import ElementTree

from tests import picture


class Picture(unittest.TestCase):
    def test_it_is_made_from_a_real_chat(self):
        with open(picture.PICTURE, encoding="utf-8") as file:
            self.assertEqual(file.read(), picture.made(), "python3 -m tests.picture makes it again")

    def test_it_shows_question_dialog_diff_and_output(self):
        shown = "".join(ElementTree.parse(picture.PICTURE).getroot().itertext())
        for part in (picture.QUESTION, "Run it? [y]es", '-print("Helo, world")', '+print("Hello, world")', "$ python3 greet.py"):
            self.assertIn(part, shown)


class AScreen(unittest.TestCase):
    def test_what_stays_of_what_is_printed(self):
        for printed, rows in (
                ("one\r\ntwo", ["one", "two"]),
                ("waiting 3 s\r\x1b[Kdone", ["done"]),
                ("abc\b\bX", ["aXc"]),
                ("\x1b[?2004h> \x1b]0;title\x07hi", ["> hi"])):
            screen = picture.Screen()
            screen.feed(printed)
            self.assertEqual(rows, ["".join(cell.character for cell in row) for row in screen.rows])

    def test_colours(self):
        screen = picture.Screen()
        screen.feed("\x1b[1;32ma\x1b[0mb")
        self.assertEqual([[("a", ("bold", "green")), ("b", ())]], screen.rows)


if __name__ == "__main__":
    unittest.main()
