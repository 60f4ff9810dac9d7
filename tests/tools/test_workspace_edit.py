"""Edits of servers that mean no good, and of those that only write them in their own way: what becomes of the files."""

from __future__ import annotations

import os
import time

from mm.cancel import Cancelled
from mm.peers import uris
from mm.tools import files, workspace_edit
from mm.tools.tool import ToolError
from tests import support
from tests.tools.calls import ToolTest

TEXT = "def greet name\r\n😀é greet x greet\r\n"


def span(line, start, end, last=None):
    return {"start": {"line": line, "character": start}, "end": {"line": line if last is None else last, "character": end}}


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
        return workspace_edit.plan(edit, "srv", "utf-16", self.context, "greet", "hail", lambda path: (shown, None))

    def refused(self, edit):
        with self.assertRaises(ToolError) as caught:
            workspace_edit.apply(self.plan(edit), self.context)
        self.assertEqual((self.get("a.toy").decode(), self.get("b.toy")), (TEXT, b"greet\n"))
        return str(caught.exception)

    def changed(self, *edits):
        """a.toy once these edits are made."""
        workspace_edit.apply(self.plan({"changes": {self.uri("a.toy"): list(edits)}}), self.context)
        return self.get("a.toy").decode()

    def test_edits_in_any_order(self):
        self.assertEqual(self.changed(edit(span(1, 12, 17)), edit(span(0, 4, 9)), edit(span(1, 4, 9))),
                         "def hail name\r\n😀é hail x hail\r\n")

    def test_insertions_at_one_place_keep_their_order_and_get_the_line_ends_of_the_file(self):
        self.assertEqual(self.changed(edit(span(0, 0, 0), "one\n"), edit(span(0, 0, 0), "two\n"), edit(span(0, 4, 9))),
                         "one\r\ntwo\r\ndef hail name\r\n😀é greet x greet\r\n")

    def test_edits_that_are_none(self):
        none = "[lsp: srv sent an edit that mm does not know (a text edit without a range). Nothing was changed]"
        for each in (edit(None), edit({}), edit({"start": None, "end": 3}), edit(span(0, -1, 5)), edit(span(0, "4", 9)), edit(span(0, 4.0, 9)),
                     edit(span(0, 4, 9), None), {"range": span(0, 4, 9)}):
            with self.subTest(each):
                self.assertEqual(self.refused({"changes": {self.uri("a.toy"): [each]}}), none)

    def test_edits_that_do_not_fit(self):
        stale = "[lsp: srv's edit does not fit a.toy as it is now. Nothing was changed, try again]"
        for a_range in (span(0, 9, 4), span(2, 0, 5), span(99, 0, 5), span(1, 0, 5, 0), span(0, 5, 10), span(1, 3, 8)):
            with self.subTest(a_range):
                self.assertEqual(self.refused({"changes": {self.uri("a.toy"): [edit(a_range)]}}), stale)

    def test_files_that_are_not_the_folders(self):
        elsewhere = support.scratch_folder()
        with open(os.path.join(elsewhere, "far.toy"), "w") as file:
            file.write("greet\n")
        os.symlink(elsewhere, self.path("link"))
        os.symlink(os.path.join(elsewhere, "new.toy"), self.path("dangling.toy"))
        for uri in ("file:///etc/passwd", "file:///dev/zero", "file://host/x", "untitled:x", "http://a/b", "file:///\ud800", "file:///a%00b", "",
                    None, 7, {"a": "b"}, "x\n" * 5000, self.uri("link/far.toy"), self.uri("link/new.toy"), self.uri("dangling.toy"),
                    self.uri("") + "%2e%2e/x", self.uri("") + "sub/../../x"):
            for operation in ({"textDocument": {"uri": uri}, "edits": [edit(span(0, 0, 5))]}, {"kind": "create", "uri": uri},
                              {"kind": "rename", "oldUri": self.uri("b.toy"), "newUri": uri}, {"kind": "delete", "uri": uri}):
                with self.subTest(uri=str(uri)[:60], kind=operation.get("kind")):
                    text = self.refused({"documentChanges": [{"textDocument": {"uri": self.uri("b.toy")}, "edits": [edit(span(0, 0, 5))]}, operation]})
                    self.assertRegex(text, r"^\[lsp: the rename would change [^\n]{0,310}, which is outside of the working directory. Nothing was changed\]$")
        self.assertEqual(os.listdir(elsewhere), ["far.toy"])

    def test_files_that_are_no_text(self):
        self.put("image.toy", b"greet\0")
        os.mkfifo(self.path("pipe.toy"))
        for name, text in (("image.toy", "[lsp: image.toy is binary (6 bytes); use bash to change it]"), ("pipe.toy", "[lsp: pipe.toy is not a regular file]"),
                           ("a.toy/x", "[lsp: a.toy/x: Not a directory]"), ("none.toy", "[lsp: srv wants to change none.toy, which does not exist. Nothing was changed]")):
            with self.subTest(name):
                self.assertEqual(self.refused({"changes": {self.uri("b.toy"): [edit(span(0, 0, 5))], self.uri(name): [edit(span(0, 0, 5))]}}), text)

    def test_what_others_may_count_otherwise_must_have_been_shown(self):
        for name, data in (("mark.toy", "\ufeffgreet\n".encode()), ("latin.toy", "greet é\n".encode("latin-1"))):
            with self.subTest(name):
                self.put(name, data)
                edits = {"changes": {self.uri(name): [edit(span(0, 0, 5), "\ufeffhail" if name == "mark.toy" else "hail")]}}
                self.assertEqual(self.refused(edits), "[lsp: srv's edit does not fit %s as it is now. Nothing was changed, try again]" % name)
                workspace_edit.apply(self.plan(edits, "greet\n" if name == "mark.toy" else "greet é\n"), self.context)
                self.assertEqual(self.get(name), data.replace(b"greet", b"hail"))

    def test_a_file_with_two_names_is_edited_once(self):
        os.symlink("a.toy", self.path("same.toy"))
        edits = [edit(span(0, 4, 9)), edit(span(1, 4, 9))]
        changes = self.plan({"changes": {self.uri("a.toy"): edits, self.uri("same.toy"): edits}})
        self.assertEqual((workspace_edit.summary(changes), workspace_edit.listing(changes)), ("2 places in 1 file", ["a.toy: 2"]))
        self.assertIn("does not fit", self.refused({"changes": {self.uri("a.toy"): edits, self.uri("same.toy"): edits[:1]}}))

    def test_names_cannot_write_lines_of_the_dialog(self):
        changes = self.plan({"documentChanges": [{"kind": "create", "uri": self.uri("x\na.toy: 1")}]})
        self.assertEqual(workspace_edit.listing(changes), ["x…: new"])

    def test_very_many_edits_of_one_line_take_no_time(self):
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

    def test_folders_that_were_made_go_again(self):
        text = self.refused({"documentChanges": [{"kind": "rename", "oldUri": self.uri("b.toy"), "newUri": self.uri("new/deep/b.toy")},
                                                 {"kind": "create", "uri": self.uri("c")}, {"kind": "create", "uri": self.uri("c/d.toy")}]})
        self.assertEqual(text, "[lsp: c/d.toy: Not a directory]\n[nothing was changed: what had been written was put back]")
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.toy", "b.toy"])

    def test_what_is_known_of_a_file_moves_with_it(self):
        for name, known in (("a.toy", True), ("b.toy", False)):
            with self.subTest(name):
                real = os.path.join(os.path.realpath(self.folder), name)
                if known:
                    self.context.seen.saw_whole(real, files.digest(self.get(name)))
                workspace_edit.apply(self.plan({"documentChanges": [
                    {"textDocument": {"uri": self.uri(name)}, "edits": [edit(span(0, 4, 9) if known else span(0, 0, 5))]},
                    {"kind": "rename", "oldUri": self.uri(name), "newUri": self.uri("moved." + name)}]}), self.context)
                moved = os.path.join(os.path.realpath(self.folder), "moved." + name)
                self.assertEqual(self.context.seen.knows_whole(moved, files.digest(self.get("moved." + name))), known)
                self.assertIsNone(self.context.seen.last_known(real))
