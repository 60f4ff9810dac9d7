"""The chat's rooms that need no terminal: marks, widths, answers to a form, completion, history, the status
line.
"""

from __future__ import annotations

import os
import re
import unittest

from mm.events import ACCEPTED, ALLOW, ALLOW_ALWAYS, DECLINED, FORM_CANCELLED, NEVER, REJECT, Diff, Form, FormAnswer
from mm.events import Permission, Rejected, ToolPending
from mm.fronts.terminal import dialogs
from mm.fronts.terminal.commands import completions
from mm.fronts.terminal.display import Status, diff_lines
from mm.fronts.terminal.markdown import CODE, FENCE, HEADING, PLAIN, Markdown
from mm.fronts.terminal.screen import cut, width
from mm.fronts.typed import as_typed, decoded
from tests import support


def marked(*pieces) -> list:
    """The (style, text) pairs of an answer in these pieces, neighbours of one style joined."""
    markdown, joined = Markdown(), []
    for style, text in [pair for piece in pieces for pair in markdown.feed(piece)] + markdown.rest():
        if joined and joined[-1][0] == style:
            joined[-1] = style, joined[-1][1] + text
        else:
            joined.append((style, text))
    return joined


class Marks(unittest.TestCase):
    def test_what_is_marked(self):
        for text, pairs in (
            ("plain # text", [(PLAIN, "plain # text")]),
            ("# Head\nbody", [(HEADING, "# Head\n"), (PLAIN, "body")]),
            ("#hash", [(PLAIN, "#hash")]),
            ("####### seven", [(PLAIN, "####### seven")]),
            ("```py\n# no head\n```\nend", [(FENCE, "```py\n"), (CODE, "# no head\n"), (FENCE, "```\n"),
                                            (PLAIN, "end")]),
            ("````\n```\n````", [(FENCE, "````\n"), (CODE, "```\n"), (PLAIN, "````")]),
            ("~~~\nx\n~~~\n", [(FENCE, "~~~\n"), (CODE, "x\n"), (FENCE, "~~~\n")]),
            ("`code` first", [(PLAIN, "`code` first")]),
            ("a\n\n  b", [(PLAIN, "a\n\n  b")]),
        ):
            with self.subTest(text):
                self.assertEqual(marked(text), pairs)
                self.assertEqual("".join(part for _, part in marked(*text)), text, "a character at a time")

    def test_plain_text_is_never_held_back(self):
        markdown = Markdown()
        self.assertEqual(markdown.feed("a"), [(PLAIN, "a")])
        self.assertEqual(markdown.feed(" ```"), [(PLAIN, " ```")])


class Widths(unittest.TestCase):
    def test_columns(self):
        for text, columns in (("abc", 3), ("漢字", 4), ("e\u0301", 1), ("🙂", 2), ("a\u200bb", 2), ("", 0)):
            with self.subTest(text):
                self.assertEqual(width(text), columns)

    def test_what_fits(self):
        for text, columns, shown in (("abcd", 4, "abcd"), ("abcde", 4, "abc…"), ("漢字漢", 5, "漢字…"),
                                     ("漢字漢", 4, "漢…")):
            with self.subTest(text):
                self.assertEqual(cut(text, columns), shown)


class Lines:
    """What a dialog shows, and who answers it."""

    columns = 80

    def __init__(self, *answers):
        self.lines, self.answers = [], list(answers)

    def line(self, text, style=""):
        self.lines.append(text)

    def end_text(self):
        pass

    def show_change(self, diff):
        self.lines.append(diff.path)

    def read(self, prompt):
        self.lines.append(prompt)
        answer = self.answers.pop(0)
        if isinstance(answer, type):
            raise answer
        return answer


def filled_in(told: dict, *answers, required=True) -> tuple:
    """(the answer to a form with this one question, what was shown)."""
    lines = Lines(*answers)
    schema = {"type": "object", "properties": {"q": told}, "required": ["q"] if required else []}
    return dialogs.fill_in(Form("call_1", "Well?", schema), lines, lines, lines.read), lines.lines


class Forms(unittest.TestCase):
    def test_answers_that_fit(self):
        choice = {"type": "string", "enum": ["red", "green", "1"]}
        several = {"type": "array", "items": {"type": "string", "enum": ["a, b", "c", "d"]}}
        titled = {"type": "string", "oneOf": [{"const": "x", "title": "The X"}, {"const": "y"}]}
        for told, answer, value in (
            (choice, "2", "green"), (choice, "RE", "red"), (choice, "1", "1"), (titled, "1", "x"),
            (titled, "y", "y"), (several, "2, 3", ["c", "d"]), (several, "a, b", ["a, b"]),
            ({"type": "string"}, " text ", "text"), ({"type": "boolean"}, "Y", True),
            ({"type": "boolean"}, "no", False), ({"type": "integer"}, "-3", -3),
            ({"type": "number"}, "2.5", 2.5), ({"type": "string", "default": "d"}, "", "d"),
            ({"type": "boolean", "default": False}, "", False),
        ):
            with self.subTest((told, answer)):
                self.assertEqual(filled_in(told, answer)[0], FormAnswer(ACCEPTED, {"q": value}))

    def test_answers_that_do_not_fit_are_asked_again(self):
        choice = {"type": "string", "enum": ["red", "rose"]}
        for told, wrong, right in (
            (choice, "3", "1"), (choice, "r", "1"), ({"type": "boolean"}, "maybe", "y"),
            ({"type": "integer"}, "2.5", "2"), ({"type": "number"}, "nan", "1"),
            ({"type": "number"}, "inf", "1"), ({"type": "string"}, "", "x"),
           
            ({"type": "array", "items": {"enum": ["a", "b"]}}, "1, 7", "1"),
        ):
            with self.subTest((told, wrong)):
                answer, lines = filled_in(told, wrong, right)
                self.assertEqual(answer.action, ACCEPTED)
                self.assertTrue(any(line.endswith("please") for line in lines),
                                lines)

    def test_a_question_that_may_be_left_out(self):
        self.assertEqual(filled_in({"type": "string"}, "", required=False)[0], FormAnswer(ACCEPTED, {}))

    def test_taken_back_and_declined(self):
        self.assertEqual(filled_in({"type": "string"}, KeyboardInterrupt)[0], FormAnswer(FORM_CANCELLED))
        self.assertEqual(filled_in({"type": "string"}, EOFError)[0], FormAnswer(DECLINED))

    def test_a_schema_that_is_not_one(self):
        for told in ({"type": ["string"], "enum": [1, None]}, {"type": "array", "items": 3}, {"type": "array", "items": {
                "anyOf": [4], "enum": "ab"}}, {"minLength": "x", "maxLength": None}, {"type": "integer", "minimum": "x"}):
            with self.subTest(told):
                self.assertEqual(filled_in(told, "7")[0].action, ACCEPTED)

    def test_nothing_in_it_is_hidden(self):
        _, lines = filled_in({"type": "string", "title": "a\u202eb\nc", "enum": ["x\x1b[2J"]}, "1")
        self.assertIn("a\\u202eb c", lines)
        self.assertNotIn("\x1b", "".join(lines))


class Permissions(unittest.TestCase):
    def permit(self, *answers, text="ls", title="bash: ls", diff=None):
        lines = Lines(*answers)
        pending = ToolPending("call_1", "bash", title, "execute", {}, ())
        return dialogs.permit(Permission(pending, diff, text), lines, lines, lines.read), lines.lines

    def test_answers(self):
        for typed, answer in (("y", ALLOW), ("Yes", ALLOW), ("a", ALLOW_ALWAYS), ("n", REJECT), ("v", NEVER),
                              (EOFError, REJECT), ("use make", Rejected("use make"))):
            with self.subTest(typed):
                self.assertEqual(self.permit(typed)[0], answer)

    def test_nothing_typed_is_no_answer(self):
        self.assertEqual(self.permit("", " ", "y")[0], ALLOW)

    def test_a_command_is_shown_whole(self):
        _, lines = self.permit("y", text="ls\nrm \u202e-rf x", title="bash: ls…")
        self.assertEqual(lines[:2], ["  ls", "  rm \\u202e-rf x"])

    def test_a_change_is_shown(self):
        self.assertEqual(self.permit("y", text=None, diff=Diff("/f", None, "x"))[1][0], "/f")


class Diffs(unittest.TestCase):
    def test_lines_and_their_colours(self):
        old = "".join("%d\n" % number for number in range(20))
        new = old.replace("\n2\n", "\ntwo\n").replace("\n11\n", "\n")
        self.assertEqual(diff_lines(Diff("/f", old, new)), [
            ("2", " 0"), ("2", " 1"), ("31", "-2"), ("32", "+two"), ("2", " 3"), ("2", " 4"), ("2", "⋮"),
            ("2", " 9"), ("2", " 10"), ("31", "-11"), ("2", " 12"), ("2", " 13")])

    def test_no_line_is_left_out_or_split(self):
        for old, new, shown in (
            (None, "x\n" * 100, ["+x"] * 100), ("x", "x\n", ["(the end of the last line)"]), ("a\n", "a\u2028b\x0bc\n", ["-a", "+a\\u2028b\\x0bc"]),
            ("x\n" * 9000 + "old\n", "x\n" * 9000 + "new\n", ["-old", "+new"]),
        ):
            with self.subTest(shown[-1]):
                self.assertEqual([line for _, line in diff_lines(Diff("/f", old, new))], shown)


class Completing(unittest.TestCase):
    def test_words(self):
        folder = support.scratch_folder()
        os.makedirs(folder + "/src/deep")
        for name in ("src/main.py", "setup.py", ".hidden", "with space"):
            open(os.path.join(folder, name), "w").close()
        for word, line, found in (
            ("/co", "/co", ["/compact "]), ("/co", "say /co", []), ("$b", "use $b", ["$bg-jobs "]),
            ("/b", "/b", ["/bg-jobs "]), ("@s", "see @s", ["@setup.py ", "@src/"]),
            ("@src/", "@src/", ["@src/deep/", "@src/main.py "]), ("@", "@", ["@setup.py ", "@src/"]),
            ("@.h", "@.h", ["@.hidden "]), ("@no/", "@no/", []), ("plain", "plain", []),
        ):
            with self.subTest(word):
                self.assertEqual(completions(word, line, ("bg-jobs",), folder), found)


class TheStatusLine(unittest.TestCase):
    def test_it_fits(self):
        status = Status()
        status.used(1234)
        status.begin("thinking", tokens=1)
        status.tail("a long thought about 漢字 " * 9)
        for columns in (20, 40, 100, 200):
            with self.subTest(columns):
                line = status(columns)
                self.assertTrue(re.match(r"thinking \d s · 1\.2k tokens", line), line)
                self.assertLessEqual(width(line), max(columns, 28))

    def test_a_wait_says_what_it_is_about(self):
        status = Status()
        status.wait("reading the prompt, 45 %", 12)
        self.assertEqual(status(60), "reading the prompt, 45 % 12 s")


class Typed(unittest.TestCase):
    def test_bytes(self):
        self.assertEqual([decoded(data) for data in (b"a", "ü".encode(), b"\xfc", b"\x80")],
                         ["a", "ü", "ü", "€"])

    def test_text_that_python_has_decoded(self):
        self.assertEqual([as_typed(text) for text in ("a", "ü", "漢", "\udcfc", "g\udcc3\udcbcn")],
                         ["a", "ü", "漢", "ü", "gün"])


if __name__ == "__main__":
    unittest.main()
