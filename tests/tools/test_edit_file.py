"""edit_file: results, refusals, the help after a failure, and that no other byte changes."""

from __future__ import annotations

import os
import stat

from mm import events
from mm.tools import edit_file
from mm.tools.tool import ToolError
from tests.tools.calls import ToolTest

LINES = "".join(f"line {number}\n" for number in range(1, 101))


class Edited(ToolTest):
    def edit(self, old, new, **more):
        return self.output("edit_file", path="f", old_string=old, new_string=new, **more)

    def test_one_change_with_three_lines_around(self):
        self.put("f", LINES)
        result = self.run_tool("edit_file", path="f", old_string="line 41\n", new_string="one\ntwo\n")
        self.assertEqual(result.output, "[edited f: 1 change, lines 41-42]\n"
                                        "line 38\nline 39\nline 40\none\ntwo\nline 42\nline 43\nline 44")
        self.assertEqual((result.status, result.prose), (events.COMPLETED, False))
        self.assertEqual(result.diff, events.Diff(self.path("f"), LINES,
                                                  LINES.replace("line 41\n", "one\ntwo\n")))

    def test_one_line(self):
        self.put("f", "a\nb\nc\n")
        self.assertEqual(self.edit("b", "B"), "[edited f: 1 change, line 2]\na\nB\nc")

    def test_all_places(self):
        self.put("f", LINES)
        self.assertEqual(self.edit("line 5\n", "LINE 5\n", replace_all="true").split("\n")[0],
                         "[edited f: 1 change, line 5]")
        output = self.edit("line 2", "LINE 2", replace_all=True).split("\n")
        self.assertEqual(output[0], "[edited f: 11 changes, lines 2, 20, 21, 22, 23, 24, 25, 26, 27, 28, …]")
        self.assertLessEqual(len([line for line in output[1:] if line != "…"]), 20)
        self.assertEqual(self.get("f").decode(), LINES.replace("line 5\n", "LINE 5\n").replace("line 2",
                                                                                               "LINE 2"))

    def test_a_long_change_is_shown_at_both_ends(self):
        self.put("f", LINES)
        output = self.edit("line 50\n", "".join(f"new {number}\n" for number in range(50))).split("\n")
        self.assertEqual(output[0], "[edited f: 1 change, lines 50-99]")
        self.assertEqual((len(output), output[1], output[11], output[-1]), (22, "line 47", "…", "line 53"))

    def test_everything_goes(self):
        self.put("f", "a\n")
        self.assertEqual(self.edit("a\n", ""), "[edited f: 1 change, line 1]")
        self.assertEqual(self.get("f"), b"")

    def test_what_differed_is_said(self):
        self.put("f", "if a:\n\tb()\n\tc()\n")
        self.assertEqual(self.edit("    b()\n    c()", "    b()\n    d()").split("\n")[0],
                         "[edited f: 1 change, line 3; old_string differed in blanks, the indentation of the "
                         "file was kept]")
        self.assertEqual(self.get("f"), b"if a:\n\tb()\n\td()\n")
        self.assertIn("; old_string differed in blanks at line ends]",
                      self.edit("if a: \n\tb()", "if a:\n\tx()"))
        self.assertIn("; the line numbers in old_string were ignored]",
                      self.edit("2\t\tx()\n3\t\td()", "2\t\tx()\n3\t\ty()"))
        self.assertEqual(self.get("f"), b"if a:\n\tx()\n\ty()\n")

    def test_signs_that_look_alike(self):
        self.put("f", "a\nsay \u201chello\u201d\u00a0now\n")
        self.assertEqual(self.edit('a\nsay "hello" now', 'b\nsay "bye" now').split("\n")[0],
                         "[edited f: 1 change, lines 1-2; old_string differed in signs that look alike: "
                         'line 2 has U+201C where you sent "]')
        self.assertEqual(self.get("f").decode(), "b\nsay \u201cbye\u201d\u00a0now\n")

    def test_no_other_byte_changes(self):
        for content, letter in [
            (b"\xef\xbb\xbfa\r\nb\nc \r\n\td", "b"), ("\ufeffa\r\nb\n\u0101".encode("utf-16-le"), "b\0"),
            ("\ufeffa\r\nb\n\u0101".encode("utf-16-be"), "\0b"),
            ("a\r\nb\n\xfc\xa0 \n".encode("latin-1"), "b"),
            (b"\xff\xfe a\r\nb\nx", "b"), ("# coding: big5\n功 z\n".encode("big5"), "z"),
            ("b\ud7ff\u2028\U0001f4a1\0".encode("utf-8").rjust(10000), "b"),
        ]:
            with self.subTest(content[:20]):
                self.put("f", content)
                self.edit(letter.strip("\0"), letter.strip("\0").upper())
                self.assertEqual(self.get("f"), content.replace(letter.encode(), letter.upper().encode()))

    def test_names_that_other_tools_use(self):
        for names in (("old", "new"), ("old_text", "new_text"), ("old_str", "new_str"),
                      ("oldString", "newString")):
            self.put("f", "a\n")
            self.output("edit_file", file_path="f", **dict(zip(names, ("a", "b"))))
            self.assertEqual(self.get("f"), b"b\n")

    def test_mode_and_links_stay(self):
        os.chmod(self.put("real", "a\n"), 0o755)
        os.symlink("real", self.path("f"))
        action = self.prepare("edit_file", path="f", old_string="a", new_string="b")
        self.assertEqual((action.title, action.asks), (f"edit_file: f -> {self.path('real')}", True))
        self.edit("a", "b")
        self.assertTrue(os.path.islink(self.path("f")))
        self.assertEqual((self.get("real"), stat.S_IMODE(os.stat(self.path("real")).st_mode)),
                         (b"b\n", 0o755))

    def test_an_edit_mentions_that_the_file_had_changed(self):
        self.put("f", "a\nb\n")
        self.output("read_file", path="f")
        self.put("f", "A\nb\n")
        self.assertTrue(self.edit("b", "c").endswith("\n[note: f had changed since you read it]"))
        self.assertEqual(self.get("f"), b"A\nc\n")
        self.assertNotIn("note", self.edit("c", "d"))
        self.assertIn("exists", self.output("write_file", path="f", content="x"))

    def test_a_change_while_the_dialog_is_open(self):
        self.put("f", "a\nb\n")
        action = self.prepare("edit_file", path="f", old_string="a", new_string="x")
        self.put("f", "a\nB\n")
        with self.assertRaises(ToolError) as caught:
            action.run(None)
        self.assertEqual(str(caught.exception), "[edit_file: f changed while waiting for permission. Read it "
                                                "again.]")
        self.assertEqual(self.get("f"), b"a\nB\n")


class Refused(ToolTest):
    def edit(self, old, new="new", **more):
        return self.output("edit_file", path="f", old_string=old, new_string=new, **more)

    def test_texts(self):
        self.put("f", "x = 1\ny = 1\n  z\nz\n\n\tz\n")
        for old, new, more, expected in [
            ("", "a", {}, "[edit_file: old_string is empty; use write_file to create a file]"),
            ("a", "a", {}, "[edit_file: old_string and new_string are the same]"),
            ("a\n", "a\r\n", {}, "[edit_file: old_string and new_string are the same]"),
            ("1", "2", {}, "[edit_file: old_string occurs 2 times in f, at lines 1, 2. "
                           "Add surrounding lines to make it unique, or set replace_all to true.]"),
        ]:
            with self.subTest(old):
                self.assertEqual(self.edit(old, new, **more), expected)
        self.put("f", "\u2018z\u2019 \u2018z\u2019\n")
        self.context.seen.failed_edits.clear()
        self.assertEqual(self.edit("'z'", "Z", replace_all=True),
                         "[edit_file: old_string is not in f, but with other signs (line 1 has U+2018 where "
                         "you sent ') 2 times, "
                         "at lines 1, 1. Copy it exactly, with surrounding lines to make it unique.]")
        self.put("f", "x = 1\ny = 1\n  z\nz\n\n\tz\n")
        self.context.seen.failed_edits.clear()
        self.assertEqual(self.edit("   z", "Z", replace_all=True),
                         "[edit_file: old_string is not in f, but with other blanks 3 times, at lines 3, 4, "
                         "6. "
                         "Copy it exactly, with surrounding lines to make it unique.]")

    def test_files_that_cannot_be_edited(self):
        self.assertEqual(self.edit("a"), "[edit_file: f does not exist]")
        self.put("f", "")
        self.assertEqual(self.edit("a"), "[edit_file: f is empty; use write_file to fill it]")
        self.put("f", b"a\0")
        self.assertEqual(self.edit("a"), "[edit_file: f is binary (2 bytes); use bash to change it]")
        self.put("f", b"a\xe9\n")
        self.assertEqual(self.edit("a", "€"), "[edit_file: the encoding of f is unknown, so '€' cannot be "
                                              "written. "
                                             "Convert it first, in bash: iconv -f <encoding> -t UTF-8 f]")
        self.put("f", "# coding: gbk\na中\n".encode("gbk"))
        self.assertEqual(self.edit("a", "💡"), "[edit_file: f is gbk and cannot hold '💡']")

    def test_blanks_alone_are_not_changed_by_guessing(self):
        self.put("f", "\ta = 1\n")
        self.assertEqual(self.edit("    a  = 1", "    a = 1"),
                         "[edit_file: new_string differs from f in blanks only, and old_string does too. "
                         "To change blanks copy old_string exactly.]")

    def test_the_nearest_text_is_shown(self):
        self.put("f", LINES.replace("line 42\n", "\tline forty-two\n"))
        self.assertEqual(self.edit("line 41\nline 42\nline 43\n"),
                         "[edit_file: old_string is not in f. The nearest text is lines 39-45:]\n"
                         "line 39\nline 40\nline 41\n\tline forty-two\nline 43\nline 44\nline 45\n"
                         "[copy old_string from these lines exactly.]")

    def test_the_nearest_text_names_a_lookalike(self):
        self.put("f", "one\nit\u2019s two\nthree\n")
        self.assertIn("old_string is not in f. Line 2 has U+2019 where you sent '. The nearest text is lines "
                      "1-3:]",
                      self.edit("one\nit's two\nfour\n"))

    def test_look_alike_signs_are_not_changed_by_guessing(self):
        self.put("f", "\u201ca\u201d\n")
        self.assertIn("differs from f in look-alike signs only", self.edit('"a"', "\u201ca\u201d"))

    def test_what_is_too_large(self):
        for text, said in (("x\n" * (edit_file.LINES + 1), "f has 50001 lines and 100002 characters"),
                           ("x" * (edit_file.CHARACTERS + 1), "f has 1 line and 2000001 characters"),
                           ("x" * (edit_file.CHANGES + 1), "old_string occurs 10001 times in f")):
            self.put("f", text)
            self.assertRegex(self.edit("x", replace_all=True), said + "; use bash with sed to change "
                                                                      "(it|them all)]$")

    def test_a_drifted_interior_fails_and_nothing_changes(self):
        content = "def f():\n    a = 1\n    b = 2\n    return a\n"
        self.put("f", content)
        self.assertIn("is not in f", self.edit("def f():\n    a = 1\n    b = 3\n    return a\n"))
        self.assertEqual(self.get("f").decode(), content)


class FailedTwice(ToolTest):
    WHOLE = "[edit_file has failed twice on f. Send the whole new file with write_file.]"

    def failed(self, old="not there"):
        return self.output("edit_file", path="f", old_string=old, new_string="new")

    def test_the_second_failure_shows_the_whole_file(self):
        self.put("f", "a\nb")
        self.assertNotIn("twice", self.failed())
        self.assertEqual(self.failed(), "[edit_file: old_string is not in f. The nearest text is lines "
                                        "1-2:]\n"
                                        f"a\nb\n{self.WHOLE}")
        self.assertEqual(self.output("write_file", path="f", content="x"), "[wrote f: 1 line]")
        self.assertNotIn("twice", self.failed())

    def test_a_success_or_another_file_between_starts_anew(self):
        self.put("f", "a\nb\n")
        self.put("g", "a\nb\n")
        self.failed()
        self.output("edit_file", path="g", old_string="not there", new_string="new")
        self.output("edit_file", path="f", old_string="a", new_string="A")
        self.assertNotIn("twice", self.failed())
        self.assertIn("twice", self.failed())

    def test_the_reason_stays_the_first_line(self):
        self.put("f", "x = 1\ny = 1\n")
        reason = self.failed("1")
        self.assertIn("occurs 2 times in f, at lines 1, 2.", reason)
        self.assertEqual(self.failed("1"), f"{reason}\nx = 1\ny = 1\n{self.WHOLE}")

    def test_a_long_file_is_not_shown(self):
        self.put("f", "x\n" * 301)
        self.failed()
        self.assertNotIn("twice", self.failed())

    def test_a_file_beyond_the_window_is_not_shown(self):
        self.put("f", ("x" * 99 + "\n") * 200)
        self.context = self.new_context(window=8192)
        self.failed()
        self.assertNotIn("twice", self.failed())
