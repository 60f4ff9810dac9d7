"""Large files: a cancel is answered while the file tools compute, and what can be quick is.

The files are smaller than those that take long; what is measured is the time from the cancel to its answer.
"""

from __future__ import annotations

import os
import threading
import time

from mm.cancel import Cancel, Cancelled
from mm.tools import document, edit_file, matching
from tests.tools.calls import ToolTest

NUMBERED = "".join(f"value {number} = {number % 7};\n" for number in range(150000))
SAME = "foo bar\n" * 300000
# Longer than a cancel takes on a busy machine, shorter than what is cancelled.
ANSWERED = 0.25

# (what, tool, the file, arguments): what takes a good part of a second at least
LONG = [
    ("nothing is found", "edit_file", NUMBERED * 2, {"old_string": "valux 3 = 3;\nvalue 77 = 0;", "new_string": "x"}),
    ("one long line", "edit_file", "foo bar " * 1000000, {"old_string": "baz\nqux", "new_string": "x"}),
    ("all places", "edit_file", SAME * 2, {"old_string": "foo", "new_string": "baz", "replace_all": True}),
    ("all places, mixed line ends", "edit_file", "x\r\n" + SAME,
     {"old_string": "bar\n", "new_string": "b\nc\n", "replace_all": True}),
    ("CRLF", "read_file", "\r\n" * 8000000, {"offset": -5}),
]


class Cancelling(ToolTest):
    def test_a_cancel_is_answered_at_once(self):
        for what, tool, text, arguments in LONG:
            with self.subTest(what):
                self.put("f", text)
                self.context = self.context._replace(cancel=Cancel())
                times = []
                timer = threading.Timer(0.1, lambda: (times.append(time.monotonic()), self.context.cancel.cancel()))
                timer.start()
                with self.assertRaises(Cancelled):
                    self.run_tool(tool, cancel=self.context.cancel, path="f", **arguments)
                self.assertLess(time.monotonic() - times[0], ANSWERED)
                timer.join()
                self.assertEqual(os.path.getsize(self.path("f")), len(text))

    def test_a_cancelled_turn_prepares_nothing(self):
        self.put("f", "a\n")
        self.context.cancel.cancel()
        for path in ("f", "missing"):
            with self.assertRaises(Cancelled):
                self.run_tool("edit_file", path=path, old_string="a", new_string="b")
        self.context = self.context._replace(cancel=Cancel())
        self.assertEqual(self.output("edit_file", path="f", old_string="a", new_string="b"), "[edited f: 1 change, line 1]\nb")


class Cheap(ToolTest):
    def test_a_part_of_many_lines(self):
        self.put("f", "\n" * 5000000 + "here\n" + "\n" * 5000000)
        started = time.monotonic()
        self.assertEqual(self.output("read_file", path="f", offset=5000000, limit=2),
                         "[f: lines 5000000-5000001 of 10000001]\n\nhere\n[use offset=5000002 to read on]")
        self.assertLess(time.monotonic() - started, 1)

    def test_many_places_in_one_line(self):
        text = "foo bar " * 100000
        self.put("f", text)
        output = self.output("edit_file", path="f", old_string="foo", new_string="baz", replace_all=True)
        self.assertEqual(output.split("\n")[0], "[edited f: 100000 changes, lines 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, …]")
        self.assertEqual(self.get("f").decode(), text.replace("foo", "baz"))

    def test_too_many_lines_to_edit(self):
        self.put("f", "\n" * (edit_file.LINES + 1))
        self.assertEqual(self.output("edit_file", path="f", old_string="a", new_string="b"),
                         "[edit_file: f has 2000001 lines; use bash with sed to change it]")


class Pieces(ToolTest):
    """What is done in pieces comes out as if it were not."""

    def test_lines_across_pieces(self):
        line = "x" * (document.PIECE // 3) + "\r\n"
        for text in (line * 20, line * 20 + "end", (line + "\n") * 20):
            whole = document.Document(text)
            lines = text.replace("\r\n", "\n").split("\n")
            lines = lines if lines[-1] else lines[:-1]
            self.assertEqual((whole.count, whole.lines(0, whole.count)), (len(lines), lines))
            self.assertEqual([line for piece in whole.pieces() for line in piece], lines)
            self.assertEqual([whole.lines(index, index + 1) for index in range(len(lines))], [[line] for line in lines])
            self.assertEqual(list(whole.picked(range(0, len(lines), 3))), lines[::3])
            self.assertEqual([whole.flat[start:start + len(line)] for start, line in zip(whole.starts(), lines)], lines)

    def test_a_long_line_with_other_blanks(self):
        words = "word  " * (document.PIECE // 2)
        text = matching.Document("a\n" + words + "\nb\n")
        match = matching.find(text, words.replace("  ", " ") + "\nb", "c")
        self.assertEqual((match.level, len(match.spans)), (matching.BLANKS, 1))

    def test_a_stray_cr_is_not_found_in_line_ends(self):
        text = matching.Document("a\r\r\nb\r\n")
        self.assertEqual(matching.replace(text, matching.find(text, "\r", "x"))[0], "ax\r\nb\r\n")
