"""write_file: what is refused, what is kept of an existing file, and that nothing is ever half written."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
import unittest

from mm import events
from mm.tools.tool import ToolError
from tests import support
from tests.tools.calls import ToolTest

# (what, the file before, the content given, the file afterwards, its lines)
KEPT = [
    ("LF", "a\n", "b\nc\n", "b\nc\n", "2 lines"),
    ("LF, given CRLF", "a\nb\n", "b\r\nc\r\n", "b\nc\n", "2 lines"),
    ("CRLF", "a\r\nb\r\n", "b\nc\n", "b\r\nc\r\n", "2 lines"),
    ("CRLF, given CRLF", "a\r\nb\r\n", "b\r\nc", "b\r\nc", "2 lines"),
    ("mostly CRLF", "a\r\nb\r\nc\n", "x\ny\n", "x\r\ny\r\n", "2 lines"),
    ("mostly LF", "a\r\nb\nc\n", "x\ny\n", "x\ny\n", "2 lines"),
    ("old Mac", "a\rb\r", "x\ny\n", "x\ry\r", "2 lines"),
    ("no line end to go by", "a", "x\r\ny\n", "x\r\ny\n", "2 lines"),
    ("BOM", "\ufeffa\n", "ü\n", "\ufeffü\n", "1 line"),
    ("emptied", "a\n", "", "", "0 lines"),
]


class Written(ToolTest):
    def test_paths_that_are_too_long(self):
        for path, expected in [
            ("d/" * 600 + "f", "[write_file: the path goes through more than 500 folders]"),
            ("d/" * 5000 + "f", "[write_file: the path is longer than 4096 bytes]"),
            ("ü" * 2049, "[write_file: the path is longer than 4096 bytes]"),
        ]:
            with self.subTest(expected):
                self.assertEqual(self.output("write_file", path=path, content="x"), expected)
        deep = "d/" * 400 + "f"
        self.assertEqual(self.output("write_file", path=deep, content="x"), f"[created {deep}: 1 line]")

    def test_a_chain_of_links(self):
        """Python follows it to its end, before 3.13 (or so) by calling itself."""
        for number in range(1200):
            os.symlink(f"{number + 1}", self.path(str(number)))
        self.assertIn(self.output("write_file", path="0", content="x"),
                      ("[created 0: 1 line]", "[write_file: 0: Too many levels of symbolic links]"))

    def test_a_new_file_with_its_parents(self):
        result = self.run_tool("write_file", path="a/b/c.txt", content="one\ntwo")
        self.assertEqual((result.output, result.status, result.prose),
                         ("[created a/b/c.txt: 2 lines]", events.COMPLETED, False))
        self.assertEqual(result.diff, events.Diff(self.path("a/b/c.txt"), None, "one\ntwo"))
        self.assertEqual(self.get("a/b/c.txt"), b"one\ntwo")
        self.assertEqual(os.listdir(self.path("a/b")), ["c.txt"])

    def test_a_new_file_is_written_as_given(self):
        for content in ("", "a\r\nb\n", "$1 \\n", "grüße \u2028 💡"):
            self.run_tool("write_file", path="f", content=content)
            self.assertEqual(self.get("f"), content.encode("utf-8"))
            os.unlink(self.path("f"))

    def test_a_new_file_follows_the_umask(self):
        before = os.umask(0o027)
        self.addCleanup(os.umask, before)
        self.run_tool("write_file", path="f", content="x")
        self.assertEqual(stat.S_IMODE(os.stat(self.path("f")).st_mode), 0o640)

    def test_line_ends_and_bom_are_kept(self):
        for what, before, content, after, lines in KEPT:
            with self.subTest(what):
                self.put("f", before)
                self.output("read_file", path="f")
                result = self.run_tool("write_file", path="f", content=content)
                self.assertEqual(self.get("f"), after.encode("utf-8"))
                self.assertEqual(result.output, f"[wrote f: {lines}]")
                self.assertNotIn("\r", result.diff.old + result.diff.new)

    def test_the_encoding_of_an_existing_file_is_kept(self):
        for encoding in ("latin-1", "utf-16"):
            self.put("f", "grüße\n".encode(encoding))
            self.output("read_file", path="f")
            self.run_tool("write_file", path="f", content="süß\n")
            self.assertEqual(self.get("f"), "süß\n".encode(encoding))
        self.put("f", "grüße\n".encode("latin-1"))
        self.output("read_file", path="f")
        self.assertEqual(self.output("write_file", path="f", content="5 €"),
                         "[write_file: the encoding of f is unknown, so '€' cannot be written. "
                         "Convert it first, in bash: iconv -f <encoding> -t UTF-8 f]")

    def test_mode_and_links_stay(self):
        target = self.put("real.sh", "old\n")
        os.chmod(target, 0o751)
        os.symlink("real.sh", self.path("link.sh"))
        self.output("read_file", path="link.sh")
        action = self.prepare("write_file", path="link.sh", content="new\n")
        self.assertEqual((action.title, action.paths, action.diff.path),
                         (f"write_file: link.sh -> {target}", (target,), target))
        self.run_tool("write_file", path="link.sh", content="new\n")
        self.assertTrue(os.path.islink(self.path("link.sh")))
        self.assertEqual((self.get("real.sh"), stat.S_IMODE(os.stat(target).st_mode)), (b"new\n", 0o751))

    def test_a_link_to_nothing_makes_what_it_names(self):
        os.symlink("sub/target", self.path("link"))
        self.assertEqual(self.output("write_file", path="link", content="x"), "[created link: 1 line]")
        self.assertEqual(self.get("sub/target"), b"x")

    def test_it_asks_and_changes_nothing_before(self):
        action = self.prepare("write_file", path="d/f", content="x")
        self.assertEqual((action.title, action.paths, action.asks, action.diff),
                         ("write_file: d/f", (self.path("d/f"),), True,
                          events.Diff(self.path("d/f"), None, "x")))
        self.assertEqual(os.listdir(self.folder), [])


class Unseen(ToolTest):
    UNREAD = ("[write_file: f exists (2 lines) and you have not read it. Read it first, or use edit_file to "
              "change part of it.]")

    def test_a_file_never_read_is_refused(self):
        self.put("f", "a\nb\n")
        self.assertEqual(self.output("write_file", path="f", content="x"), self.UNREAD)
        self.assertEqual(self.get("f"), b"a\nb\n")

    def test_a_file_read_under_another_name_is_allowed(self):
        self.put("f", "a\nb\n")
        os.symlink("f", self.path("g"))
        self.output("read_file", path="g")
        self.assertEqual(self.output("write_file", path="f", content="x"), "[wrote f: 1 line]")

    def test_a_file_read_in_part_is_refused(self):
        self.put("f", "a\nb\n")
        self.output("read_file", path="f", limit=1)
        self.assertEqual(self.output("write_file", path="f", content="x"),
                         "[write_file: f exists (2 lines) and you have read only a part of it. "
                         "Read the rest first, or use edit_file to change part of it.]")

    def test_a_file_changed_since_is_refused(self):
        self.put("f", "a\nb\n")
        self.output("read_file", path="f")
        self.put("f", "a\nB\n")
        self.assertEqual(self.output("write_file", path="f", content="x"), "[write_file: f changed since you "
                                                                           "read it. Read it again.]")
        self.output("read_file", path="f")
        self.assertEqual(self.output("write_file", path="f", content="x"), "[wrote f: 1 line]")

    def test_a_touched_file_has_not_changed(self):
        self.put("f", "a\n")
        self.output("read_file", path="f")
        os.utime(self.path("f"), (1, 1))
        self.assertEqual(self.output("write_file", path="f", content="x"), "[wrote f: 1 line]")

    def test_own_writes_and_edits_are_known(self):
        self.assertEqual(self.output("write_file", path="f", content="a\nb\n"), "[created f: 2 lines]")
        self.assertEqual(self.output("write_file", path="f", content="a\nc\n"), "[wrote f: 2 lines]")
        self.output("edit_file", path="f", old_string="c", new_string="d")
        self.assertEqual(self.output("write_file", path="f", content="x"), "[wrote f: 1 line]")

    def test_an_edit_leaves_an_unread_file_unknown(self):
        self.put("f", "a\nb\n")
        self.output("edit_file", path="f", old_string="b", new_string="c")
        self.assertIn("exists (2 lines)", self.output("write_file", path="f", content="x"))

    def test_an_empty_file_has_nothing_to_lose(self):
        self.put("f", "")
        self.assertEqual(self.output("write_file", path="f", content="x"), "[wrote f: 1 line]")

    def test_a_binary_file_is_refused(self):
        self.put("f.png", b"\0")
        self.assertEqual(self.output("write_file", path="f.png", content="x"),
                         "[write_file: f.png is binary (image/png, 1 byte); use bash to replace it]")


class Permission(ToolTest):
    """Between the dialog and the answer the world goes on."""

    CHANGED = "[write_file: f changed while waiting for permission. Read it again.]"

    def check(self, meanwhile, before=None):
        if before is not None:
            self.put("f", before)
            self.output("read_file", path="f")
        action = self.prepare("write_file", path="f", content="new")
        meanwhile()
        with self.assertRaises(ToolError) as caught:
            action.run(None)
        self.assertEqual(str(caught.exception), self.CHANGED)

    def test_the_file_was_changed(self):
        self.check(lambda: self.put("f", "changed"), "old")
        self.assertEqual(self.get("f"), b"changed")

    def test_the_file_was_made(self):
        self.check(lambda: self.put("f", "made"))
        self.assertEqual(self.get("f"), b"made")

    def test_the_file_was_removed(self):
        self.check(lambda: os.unlink(self.path("f")), "old")

    def test_a_link_was_put_in_its_place(self):
        other = support.scratch_folder()

        def meanwhile():
            os.rename(self.path("f"), os.path.join(other, "f"))
            os.symlink(os.path.join(other, "f"), self.path("f"))
        self.check(meanwhile, "old")

    def test_its_folder_became_a_link(self):
        action = self.prepare("write_file", path="d/f", content="new")
        os.symlink(support.scratch_folder(), self.path("d"))
        with self.assertRaises(ToolError):
            action.run(None)


class Refused(ToolTest):
    def test_places_where_no_file_can_be(self):
        os.mkdir(self.path("d"))
        self.put("file", "x")
        for path, expected in [
            ("d", "[write_file: d is a directory]"),
            ("file/below", "[write_file: file/below: Not a directory]"),
            ("/dev/null", "[write_file: /dev/null is not a regular file]"),
            ("/proc/nothing/here", "[write_file: /proc/nothing/here: No such file or directory]"),
        ]:
            with self.subTest(path):
                self.assertEqual(self.output("write_file", path=path, content="x"), expected)

    def test_a_full_disk_leaves_the_old_file(self):
        self.put("f", "old\n")
        done = self.in_a_program("""
            import resource
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            test.output("read_file", path="f")
            print(test.output("write_file", path="f", content="x" * 5000))
        """)
        self.assertEqual(done, "[write_file: f: File too large]\n")
        self.assertEqual((self.get("f"), os.listdir(self.folder)), (b"old\n", ["f"]))

    @unittest.skipUnless(hasattr(os, "geteuid") and os.geteuid() == 0, "only root can become somebody else")
    def test_what_may_not_be_written(self):
        self.put("closed/f", "old\n")
        self.put("open/f", "old\n")
        os.chmod(self.path("closed"), 0o755)
        os.chmod(self.path("open"), 0o777)
        os.chmod(self.path("closed/f"), 0o666)
        os.chmod(self.path("open/f"), 0o444)
        folder = self.folder
        while folder != "/":  # the way there is ours alone
            self.addCleanup(os.chmod, folder, stat.S_IMODE(os.stat(folder).st_mode))
            os.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode) | 0o055)
            folder = os.path.dirname(folder)
        done = self.in_a_program("""
            os.setgid(65534); os.setuid(65534)
            for path in ("closed/f", "open/f", "closed/new"):
                test.output("read_file", path=path)
                print(test.output("write_file", path=path, content="x"))
                if path != "closed/new":
                    print(test.output("edit_file", path=path, old_string="old", new_string="new"))
        """).replace(self.folder, "<folder>").splitlines()
        closed = "no permission to write in <folder>/closed]"
        self.assertEqual(done, [f"[write_file: closed/f: {closed}", f"[edit_file: closed/f: {closed}",
                                "[write_file: open/f is read-only]", "[edit_file: open/f is read-only]",
                                f"[write_file: closed/new: {closed}"])
        self.assertEqual((self.get("closed/f"), self.get("open/f")), (b"old\n", b"old\n"))

    def in_a_program(self, code):
        """Runs `code` in a Python of its own, with `test` as this test in the same folder; returns what it
        prints.
        """
        start = textwrap.dedent("""
            import os, sys
            from tests.tools.calls import ToolTest
            test = ToolTest()
            test.folder = sys.argv[1]
            test.context = test.new_context()
            test.run_tool("read_file", path="/etc/passwd")  # everything is imported
            from mm.tools import similar
            import hashlib
        """)
        command = [sys.executable, "-c", start + textwrap.dedent(code), self.folder]
        done = subprocess.run(command, cwd=support.PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode()
