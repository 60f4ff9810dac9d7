"""Edits of servers that mean no good, and of those that only write them in their own way: what becomes of the
files.
"""

from __future__ import annotations

import os
import time
from collections import namedtuple

from mm.cancel import Cancelled
from mm.peers import uris
from mm.tools import files, rename
from mm.tools.tool import ToolError
from tests import support
from tests.tools.calls import ToolTest

TEXT = "def greet name\r\n😀é greet x greet\r\n"


# In the place of a LanguageServer: which text it was shown of any file, None: of none.
Server = namedtuple("Server", "name encoding shown")
Server.files = property(lambda server: server)
Server.text = lambda server, uri: server.shown
Server.version = lambda server, uri: 7 if server.shown else None


def span(line, start, end, last=None):
    return {"start": {"line": line, "character": start},
            "end": {"line": line if last is None else last, "character": end}}


def edit(a_range, new="hail"):
    return {"range": a_range, "newText": new}


class Edits(ToolTest):
    def setUp(self):
        super().setUp()
        self.put("a.toy", TEXT)
        self.put("b.toy", "greet\n")

    def uri(self, name):
        return uris.to_uri(os.path.join(os.path.realpath(self.folder), name))

    def plan(self, edit, shown=None):
        return rename.plan(edit, Server("srv", "utf-16", shown), self.context, "greet", "hail")

    def refused(self, edit):
        with self.assertRaises(ToolError) as caught:
            rename.apply(self.plan(edit), self.context)
        self.assertEqual((self.get("a.toy").decode(), self.get("b.toy")), (TEXT, b"greet\n"))
        return str(caught.exception)

    def changed(self, *edits):
        """a.toy once these edits are made."""
        rename.apply(self.plan({"changes": {self.uri("a.toy"): list(edits)}}), self.context)
        return self.get("a.toy").decode()

    def test_edits_in_any_order(self):
        self.assertEqual(self.changed(edit(span(1, 12, 17)), edit(span(0, 4, 9)), edit(span(1, 4, 9))),
                         "def hail name\r\n😀é hail x hail\r\n")

    def test_insertions_keep_order_and_line_ends(self):
        self.assertEqual(self.changed(edit(span(0, 0, 0), "one\n"), edit(span(0, 0, 0), "two\n"),
                                      edit(span(0, 4, 9))),
                         "one\r\ntwo\r\ndef hail name\r\n😀é greet x greet\r\n")

    def test_edits_that_are_none(self):
        none = "[lsp: srv sent an edit of a.toy that mm does not know. Nothing was changed]"
        for each in (edit(None), edit({}), edit({"start": None, "end": 3}), edit(span(0, -1, 5)),
                     edit(span(0, "4", 9)), edit(span(0, 4.0, 9)), edit(span(0, 4, 9), None),
                     {"range": span(0, 4, 9)}):
            with self.subTest(each):
                self.assertEqual(self.refused({"changes": {self.uri("a.toy"): [each]}}), none)

    def test_edits_that_do_not_fit(self):
        stale = "[lsp: srv's edit does not fit a.toy as it is now. Nothing was changed, try again]"
        for a_range in (span(0, 9, 4), span(2, 0, 5), span(99, 0, 5), span(1, 0, 5, 0), span(0, 5, 10),
                        span(1, 3, 8)):
            with self.subTest(a_range):
                self.assertEqual(self.refused({"changes": {self.uri("a.toy"): [edit(a_range)]}}), stale)

    def test_files_that_are_not_the_folders(self):
        elsewhere = support.scratch_folder()
        with open(os.path.join(elsewhere, "far.toy"), "w") as file:
            file.write("greet\n")
        os.symlink(elsewhere, self.path("link"))
        os.symlink(os.path.join(elsewhere, "new.toy"), self.path("dangling.toy"))
        for uri in ("file:///etc/passwd", "file:///dev/zero", "file://host/x", "untitled:x", "http://a/b",
                    "file:///\ud800", "file:///a%00b", "", None, 7, {"a": "b"}, "x\n" * 5000,
                    self.uri("link/far.toy"), self.uri("link/new.toy"), self.uri("dangling.toy"),
                    self.uri("") + "%2e%2e/x", self.uri("") + "sub/../../x"):
            with self.subTest(uri=str(uri)[:60]):
                text = self.refused({"documentChanges": [{"textDocument": {"uri": each},
                                                          "edits": [edit(span(0, 0, 5))]}
                                                         for each in (self.uri("b.toy"), uri)]})
                self.assertRegex(text, r"^\[lsp: the rename would change [^\n]{0,310}, which is outside of "
                                       r"the working directory. "
                                       r"Nothing was changed\]$")
        self.assertEqual(os.listdir(elsewhere), ["far.toy"])

    def test_files_that_are_no_text(self):
        self.put("image.toy", b"greet\0")
        os.mkfifo(self.path("pipe.toy"))
        for name, text in (("image.toy", "[lsp: image.toy is binary (6 bytes); use bash to change it]"),
                           ("pipe.toy", "[lsp: pipe.toy is not a regular file]"),
                           ("a.toy/x", "[lsp: a.toy/x: Not a directory]"), ("none.toy", "[lsp: srv wants to "
                                                                                        "change none.toy, "
                                                                                        "which does not "
                                                                                        "exist. Nothing was "
                                                                                        "changed]")):
            with self.subTest(name):
                self.assertEqual(self.refused({"changes": {self.uri("b.toy"): [edit(span(0, 0, 5))],
                                                           self.uri(name): [edit(span(0, 0, 5))]}}), text)

    def test_files_are_left_to_bash(self):
        at = self.uri("b.toy")
        for operation in ({"kind": "create", "uri": at}, {"kind": "rename", "oldUri": at, "newUri": at},
                          {"kind": "delete", "uri": at}, {"kind": ["explode"]}, {}):
            with self.subTest(operation):
                self.assertEqual(self.refused({"documentChanges": [
                    {"textDocument": {"uri": at}, "edits": [edit(span(0, 0, 5))]}, operation]}),
                    "[lsp: srv would create, move or delete files, too, which is left to bash. Nothing was "
                    "changed]")

    def test_a_byte_order_mark_is_counted_or_not(self):
        for start, new in ((0, "hail"), (1, "hail"), (0, "\ufeffhail")):
            with self.subTest(start=start, new=new):
                self.put("mark.toy", "\ufeffgreet é\r\n".encode())
                rename.apply(self.plan({"changes": {self.uri("mark.toy"): [edit(span(0, start, start + 5),
                                                                                new)]}}), self.context)
                self.assertEqual(self.get("mark.toy"), "\ufeffhail é\r\n".encode())

    def test_an_old_text_is_not_edited(self):
        edits = {"changes": {self.uri("a.toy"): [edit(span(0, 4, 9))]}}
        with self.assertRaisesRegex(ToolError, "does not fit a.toy as it is now"):
            self.plan(edits, TEXT + "\n")
        self.assertEqual(len(self.plan(edits, TEXT)), 1)
        for version, fits in ((None, True), (7, True), (6, False), ([7], False)):
            document = {"uri": self.uri("a.toy"), "version": version}
            edits = {"documentChanges": [{"textDocument": document, "edits": [edit(span(0, 4, 9))]}]}
            if fits:
                self.assertEqual(len(self.plan(edits, TEXT)), 1)
            else:
                self.assertRaisesRegex(ToolError, "does not fit a.toy as it is now", self.plan, edits, TEXT)

    def test_a_file_with_two_names_is_edited_once(self):
        os.symlink("a.toy", self.path("same.toy"))
        edits = [edit(span(0, 4, 9)), edit(span(1, 4, 9))]
        changes = self.plan({"changes": {self.uri("a.toy"): edits, self.uri("same.toy"): edits}})
        self.assertEqual((rename.summary(changes), rename.listing(changes)),
                         ("2 places in 1 file", ["a.toy: 2"]))
        self.assertIn("overlap", self.refused({"changes": {self.uri("a.toy"): edits,
                                                           self.uri("same.toy"): edits[:1]}}))

    def test_names_cannot_write_lines_of_the_dialog(self):
        self.put("x\na.toy: 1", "greet")
        changes = self.plan({"changes": {self.uri("x\na.toy: 1"): [edit(span(0, 0, 5))]}})
        self.assertEqual(rename.listing(changes), ["x…: 1"])

    def test_very_many_edits_of_one_line(self):
        count, units = 10000, len("😀 greet;") + 1
        self.put("a.toy", "😀 greet;" * count)
        edits = [edit(span(0, number * units + 3, number * units + 8)) for number in range(count)]
        begin = time.thread_time()
        self.assertEqual(self.changed(*edits), "😀 hail;" * count)
        self.assertLess(time.thread_time() - begin, 3)

    def test_a_cancel_ends_it(self):
        self.context.cancel.cancel()
        with self.assertRaises(Cancelled):
            self.changed(edit(span(0, 4, 9)))

    def test_a_failure_midway_puts_back_what_was_written(self):
        changes = self.plan({"changes": {self.uri("a.toy"): [edit(span(0, 4, 9))],
                                         self.uri("b.toy"): [edit(span(0, 0, 5))]}})
        os.chmod(self.path("a.toy"), 0o640)
        whole, replace = changes[1].before, files.replace
        self.addCleanup(setattr, files, "replace", replace)

        def fail(name, place, data):
            if data != whole and place.real == changes[1].place.real:
                raise ToolError("[lsp: b.toy: No space left on device]")
            replace(name, place, data)

        files.replace = fail
        with self.assertRaises(ToolError) as caught:
            rename.apply(changes, self.context)
        self.assertEqual(str(caught.exception), "[lsp: b.toy: No space left on device]\n[nothing was "
                                                "changed: what had been written was put back]")
        self.assertEqual((self.get("a.toy").decode(), self.get("b.toy")), (TEXT, b"greet\n"))
        self.assertEqual(os.stat(self.path("a.toy")).st_mode & 0o777, 0o640)
