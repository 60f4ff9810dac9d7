"""lsp, with a real server of a toy language: what is asked of it, what the model reads, and what a rename
leaves on disk.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
import unittest

from mm import events
from mm.config import config
from mm.cancel import Cancel, Cancelled
from mm.peers import lsp as client
from mm.peers import lsp_files, program
from mm.tools import registry
from mm.tools.arguments import parse_arguments
from mm.tools.tool import ToolError
from mm.tools.context import Seen
from tests import support
from tests.tools.calls import ToolTest

SERVER = os.path.join(support.PROJECT, "tests", "fakes", "lsp_server.py")
GREET = "# greet is a name\r\ndef greet name\r\n😀é greet x greet\r\n"
USE = "def use x\n  greet x\n"
# Seconds in which nothing ends by itself: a wait that ends sooner was cancelled.
BY_ITSELF = 5


class LspTest(ToolTest):
    """A folder with two files of the toy language; serve() makes the tool, with a server of its own."""

    def setUp(self):
        super().setUp()
        self.limit(client, SETTLE=0.05)  # the toy server says at once that it is indexing
        self.limit(lsp_files, QUIET=0.02, QUIET_EMPTY=0.05)
        self.begin()

    def begin(self):
        self.put("a.toy", GREET)
        self.put("b.toy", USE)
        self.serve()

    def start(self, **options):
        """The tool whose server has these options (fakes.lsp_server.OPTIONS), in a new context."""
        self.log = os.path.join(support.scratch_folder(), "log")
        command = [sys.executable, "-I", "-S", SERVER, json.dumps(dict(options, log=self.log))]
        self.context = self.new_context(lsp={"toy": {"command": command, "extensions": [".toy"]}})
        self.tool, = registry.reaching(self.context.config, self.folder, {"PATH": os.environ["PATH"]})

    def serve(self, **options):
        self.start(**options)
        self.addCleanup(self.context.seen.close)

    def prepare(self, action, cancel=None, **arguments):
        context = self.context._replace(cancel=cancel or self.context.cancel)
        return self.tool.prepare(parse_arguments(self.tool, dict(arguments, action=action)), context)

    def ask(self, action, cancel=None, **arguments):
        """What the model reads."""
        try:
            return self.prepare(action, cancel, **arguments).run(None).output
        except ToolError as error:
            return str(error)

    def told(self, method):
        """The params of all that the server was told under this name."""
        with open(self.log, encoding="utf-8") as file:
            return [entry.get("params") for entry in map(json.loads, file) if entry.get("method") == method]

    def until(self, happened):
        deadline = time.monotonic() + support.DEADLINE
        while not happened() and time.monotonic() < deadline:
            time.sleep(0.01)

    def limit(self, room, **limits):
        """Shorter limits for this test."""
        for name, value in limits.items():
            self.addCleanup(setattr, room, name, getattr(room, name))
            setattr(room, name, value)


class SharedTest(LspTest):
    """One server and one folder for all tests of the class, which empties it between them: a server takes its
    time to start.
    """

    kept = None

    def begin(self):
        if self.kept is None:
            self.put("a.toy", GREET)
            self.start()
            type(self).kept = self.folder, self.log, self.tool, self.context
        self.folder, self.log, self.tool, first = self.kept
        for name in os.listdir(self.folder):
            path = self.path(name)
            (shutil.rmtree if os.path.isdir(path) and not os.path.islink(path) else os.unlink)(path)
        if os.path.exists(self.log):
            os.unlink(self.log)
        seen = Seen()
        seen.language_servers = first.seen.language_servers
        self.context = first._replace(cancel=Cancel(), seen=seen)
        self.put("a.toy", GREET)
        self.put("b.toy", USE)

    @classmethod
    def tearDownClass(cls):
        if cls.kept is not None:
            cls.kept[3].seen.close()


class Navigation(SharedTest):
    def test_a_definition_with_its_source_line(self):
        self.assertEqual(self.ask("definition", path="b.toy", symbol="greet"), "a.toy:2: def greet name")

    def test_columns_behind_an_emoji_and_accents(self):
        for encoding in (None, "utf-16", "utf-32"):
            with self.subTest(encoding):
                self.serve(encoding=encoding)
                self.assertEqual(self.ask("definition", path="a.toy", symbol="greet", line=3),
                                 "a.toy:2: def greet name")
                self.assertEqual(self.ask("hover", path="a.toy", symbol="x", line=3),
                                 "```toy\ndef x\n```\n\nA name.")

    def test_a_name_in_a_comment_is_passed_over(self):
        self.assertEqual(self.ask("definition", path="a.toy", symbol="greet"), "a.toy:2: def greet name")
        self.assertEqual(self.ask("definition", path="a.toy", symbol="greet", line=1),
                         '[lsp: %s knows no definition of "greet" in a.toy]' % self.server_name())

    def server_name(self):
        return os.path.splitext(os.path.basename(sys.executable))[0]

    def test_references_by_file(self):
        self.put("sub/c.toy", "greet greet\n")
        self.assertEqual(self.ask("references", path="b.toy", symbol="greet", line=2),
                         "a.toy:2: def greet name\na.toy:3: 😀é greet x greet\nb.toy:2: greet x\nsub/c.toy:1: "
                         "greet greet")

    def test_many_references(self):
        self.put("c.toy", "greet\n" * 100)
        lines = self.ask("references", path="b.toy", symbol="greet").split("\n")
        self.assertEqual((len(lines), lines[-1]), (51, "[… 53 more]"))

    def test_a_small_window_limits_them(self):
        self.put("c.toy", "greet some more words\n" * 100)
        self.context = self.context._replace(window=100)  # shown are 1000 characters, the least
        output = self.ask("references", path="b.toy", symbol="greet")
        self.assertLess(len(output), 1020)
        self.assertEqual(output.split("\n")[-1], "[… %d more]" % (51 - output.count("\n")))

    def test_the_symbols_of_a_file(self):
        self.assertEqual(self.ask("symbols", path="b.toy"), "1: function use\n1:   variable x")
        self.put("c.toy", "x\n")
        self.assertEqual(self.ask("symbols", path="c.toy"),
                         "[lsp: %s finds no symbols in c.toy]" % self.server_name())

    def test_find(self):
        self.assertEqual(self.ask("find", query="gre"), "a.toy:2: function greet in toy")
        self.assertEqual(self.ask("find", symbol="us"), "b.toy:1: function use in toy")
        self.assertEqual(self.ask("find", query="zzz"), '[lsp: nothing is named like "zzz"]')

    def test_a_name_that_is_elsewhere(self):
        self.put("c.toy", "greet\nx\nx\nx\nx\ngreet\nx\nx\nx\nx\n")
        self.assertEqual(self.ask("definition", path="c.toy", symbol="greet", line=10),
                         '[lsp: "greet" is not on line 10 of c.toy; it is on lines 1, 6]')
        self.assertEqual(self.ask("definition", path="c.toy", symbol="nobody"),
                         '[lsp: "nobody" is not in c.toy]')

    def test_calls_that_lack_something(self):
        for arguments, text in [
            ({"action": "definition", "symbol": "x"}, '[lsp: definition needs "path"]'),
            ({"action": "definition", "path": "a.toy"}, '[lsp: definition needs "symbol"]'),
            ({"action": "rename", "path": "a.toy", "symbol": "x"}, '[lsp: rename needs "new_name"]'),
            ({"action": "find"}, '[lsp: find needs "query"]'),
            ({"action": "fly"}, "[lsp: there is no action fly. Actions: definition, references, hover, "
                                "symbols, find, diagnostics, rename]"),
            ({"action": "symbols", "path": "x.unknown"}, "[lsp: there is no language server for .unknown "
                                                         "files. There is one for toy (%s)"
             % self.server_name()),
        ]:
            with self.subTest(arguments):
                self.assertTrue(self.ask(**arguments).startswith(text))
        self.assertIn("missing.toy", self.ask("symbols", path="missing.toy"))

    def test_what_a_server_cannot_do(self):
        self.serve(cannot=["hoverProvider", "workspaceSymbolProvider"])
        name = self.server_name()
        self.assertEqual(self.ask("hover", path="b.toy", symbol="x"), "[lsp: %s cannot do hover; use bash "
                                                                      "with grep]" % name)
        self.assertEqual(self.ask("find", query="x"), "[lsp: %s cannot do find; use bash with grep]" % name)

    def test_what_the_front_end_is_told(self):
        action = self.prepare("definition", path="b.toy", symbol="greet")
        self.assertEqual((action.title, action.paths, action.asks, action.kind, self.tool.kind),
                         ("lsp: definition greet in b.toy", (self.path("b.toy"),), False, None, "read"))
        self.assertEqual(self.prepare("find", query="x").title, "lsp: find x")
        self.assertEqual(self.prepare("diagnostics", path="b.toy").title, "lsp: diagnostics b.toy")

    def test_content_modified_is_asked_again(self):
        self.limit(client, PAUSE=0.01)
        self.serve(modified=2)
        self.assertEqual(self.ask("definition", path="b.toy", symbol="greet"), "a.toy:2: def greet name")

    def test_while_it_is_indexing(self):
        self.limit(client, INDEXING_LIMIT=0.1)
        self.serve(indexing=0.6)
        self.assertEqual(self.ask("references", path="b.toy", symbol="use").split("\n")[-1],
                         "[%s is still indexing: there may be more]" % self.server_name())
        self.assertEqual(self.ask("rename", path="b.toy", symbol="greet", new_name="g"),
                         "[lsp: %s is still indexing, try again]" % self.server_name())
        client.INDEXING_LIMIT = 10
        self.assertEqual(self.ask("references", path="b.toy", symbol="use"), "b.toy:1: def use x")

    def test_work_that_is_never_done(self):
        self.limit(client, SILENT=0.2)
        self.serve(indexing=20)
        self.assertEqual(self.ask("references", path="b.toy", symbol="use"), "b.toy:1: def use x")

    def test_its_own_requests_are_answered(self):
        self.serve(asks=True)
        self.ask("symbols", path="b.toy")
        self.until(lambda: '"s6"' in self.get(self.log).decode())
        with open(self.log, encoding="utf-8") as file:
            answers = {entry["answer"]: entry for entry in map(json.loads, file) if "answer" in entry}
        uri = "file://" + os.path.realpath(self.folder)
        self.assertEqual([answers["s%d" % number]["result"] for number in range(7)],
                         [[None, None], None, None, None,
                          [{"uri": uri, "name": os.path.basename(self.folder)}], {"applied": False}, None])
        self.assertEqual(answers["s6"]["error"]["code"], -32601)
        self.assertEqual([answers["s%d" % number]["error"] for number in range(6)], [None] * 6)


class Diagnostics(LspTest):
    def test_errors_first_with_columns_in_characters(self):
        self.put("c.toy", "poor x\n😀é bad\n")
        text = "c.toy:2:4 error: bad word [7]\nc.toy:1:1 warning: poor word [7]"
        for options in ({}, {"versions": False}, {"pull": True}, {"encoding": "utf-32"}):
            with self.subTest(options):
                self.serve(**options)
                self.assertEqual(self.ask("diagnostics", path="c.toy"), text)

    def test_they_are_never_those_of_an_old_text(self):
        self.limit(lsp_files, CLOSING=5)  # which no server needs that says something of the closing
        for options in ({"late": 0.05}, {"versions": False, "only_news": True, "clears": True, "late": 0.05},
                        {"versions": True, "clears": True}):
            with self.subTest(options):
                self.put("c.toy", "good\n")
                self.put("d.toy", "x\n")
                self.serve(**options)
                clean, bad = "[lsp: %s finds no problems in c.toy]" % os.path.splitext(os.path.basename(sys.executable))[0], "c.toy:1:1 error: bad word [7]"
                self.assertEqual(self.ask("diagnostics", path="c.toy"), clean)
                self.put("c.toy", "bad\n")
                self.assertEqual(self.ask("diagnostics", path="c.toy"), bad)
                self.put("d.toy", "def bad\n")  # another file, which the server was never shown
                self.assertEqual(self.ask("diagnostics", path="c.toy"), clean)
                self.put("c.toy", "better\n")
                self.assertEqual(self.ask("diagnostics", path="c.toy"), clean)
                self.context.seen.close()

    def test_a_list_that_stays_the_same_is_known(self):
        self.limit(lsp_files, PATIENCE=0.3)
        self.put("c.toy", "bad\n")
        self.serve(only_news=True)
        bad = "c.toy:1:1 error: bad word [7]"
        self.assertEqual(self.ask("diagnostics", path="c.toy"), bad)
        self.put("c.toy", "bad \n")
        first, second = self.ask("diagnostics", path="c.toy").split("\n")
        self.assertEqual(first, bad)
        self.assertRegex(second, r"^\[python\S* reports nothing new: this is what it reported before\]$")

    def test_none_in_time_is_said(self):
        self.limit(lsp_files, PATIENCE=0.3, FIRST_PATIENCE=0.3)
        self.put("c.toy", "bad\n")
        self.serve(publishes=False)
        self.assertTrue(self.ask("diagnostics", path="c.toy").startswith("[lsp: no diagnostics yet from "))

    def test_many(self):
        self.put("c.toy", "bad\n" * 30)
        lines = self.ask("diagnostics", path="c.toy").split("\n")
        self.assertEqual((len(lines), lines[-1]), (21, "[… 10 more]"))

    def test_a_path_that_the_server_writes_otherwise(self):
        self.put("a+b é.toy", "bad\n")
        self.assertEqual(self.ask("diagnostics", path="a+b é.toy"), "a+b é.toy:1:1 error: bad word [7]")


class Files(LspTest):
    def test_what_anybody_changed_is_told_before_the_question(self):
        self.ask("symbols", path="a.toy")
        self.ask("symbols", path="b.toy")
        self.put("a.toy", "x\ny\ndef greet\n")
        self.assertEqual(self.ask("definition", path="b.toy", symbol="greet"), "a.toy:3: def greet")
        change, save = self.told("textDocument/didChange")[0], self.told("textDocument/didSave")[0]
        self.assertEqual((change["contentChanges"], save["text"]),
                         ([{"text": "x\ny\ndef greet\n"}], "x\ny\ndef greet\n"))
        self.assertEqual([each["type"] for told in self.told("workspace/didChangeWatchedFiles")
                          for each in told["changes"]], [2])
        versions = [told["textDocument"]["version"]
                    for told in self.told("textDocument/didOpen")] + [change["textDocument"]["version"]]
        self.assertEqual(versions, [1, 2, 3])

    def test_changes_of_files_it_never_saw(self):
        self.put("old.toy", "greet\n")
        self.put("c.toy", "x\n")
        self.put("large.toy", "x\n")
        self.serve(looks=False)
        self.assertIn("old.toy", self.ask("references", path="a.toy", symbol="greet"))
        os.unlink(self.path("old.toy"))
        self.put("c.toy", "greet\n")
        self.put("sub/new.toy", "greet\n")
        self.put("large.toy", "x greet\n" * 150000)
        self.put("other", "greet\n")
        lines = self.ask("references", path="a.toy", symbol="greet").split("\n")
        self.assertEqual(sorted(line.partition(":")[0] for line in lines),
                         ["a.toy", "a.toy", "b.toy", "c.toy", "sub/new.toy"])
        happened = [(os.path.basename(change["uri"]), change["type"])
                    for told in self.told("workspace/didChangeWatchedFiles") for change in told["changes"]]
        self.assertEqual(happened, [("c.toy", 2), ("large.toy", 2), ("old.toy", 3), ("new.toy", 1)])
        self.assertIn("6 places in 4 files", self.ask("rename", path="a.toy", symbol="greet",
                                                      new_name="welcome"))

    def test_a_file_that_is_gone(self):
        self.ask("symbols", path="a.toy")
        os.unlink(self.path("a.toy"))
        self.assertIn("knows no definition", self.ask("definition", path="b.toy", symbol="greet"))
        self.assertEqual(len(self.told("textDocument/didClose")), 1)

    def test_the_least_recent_are_closed(self):
        self.limit(lsp_files, OPEN_FILES=2)
        for name in ("a", "b", "c", "d"):
            self.put(name + ".toy", "def x\n")
            self.ask("symbols", path=name + ".toy")
        self.assertEqual([os.path.basename(told["textDocument"]["uri"])
                          for told in self.told("textDocument/didClose")], ["a.toy", "b.toy"])

    def test_languages_and_texts(self):
        self.put("c.toy", "é\r\n".encode("latin-1"))
        self.ask("symbols", path="c.toy")
        document = self.told("textDocument/didOpen")[0]["textDocument"]
        self.assertEqual((document["languageId"], document["text"]), ("toy", "é\r\n"))


class Rename(SharedTest):
    def rename(self, name="welcome", path="a.toy", symbol="greet", **more):
        return self.ask("rename", path=path, symbol=symbol, new_name=name, **more)

    def texts(self):
        return self.get("a.toy").decode(), self.get("b.toy").decode()

    def test_the_dialog_comes_before_and_lists_the_files(self):
        action = self.prepare("rename", path="a.toy", symbol="greet", new_name="welcome")
        self.assertEqual((action.asks, action.kind, action.diff, action.title),
                         (True, "edit", None, "lsp: rename greet to welcome in a.toy"))
        self.assertEqual(action.text, "rename greet to welcome: 4 places in 2 files\na.toy: 3\nb.toy: 1")
        self.assertEqual(action.paths, (self.path("a.toy"), self.path("b.toy")))
        self.assertEqual(self.texts(), (GREET, USE))
        result = action.run(None)
        self.assertEqual((result.output, result.status), ("[renamed greet to welcome: 4 places in 2 "
                                                          "files]\na.toy: 3\nb.toy: 1", events.COMPLETED))
        self.assertEqual(self.texts(), ("# greet is a name\r\ndef welcome name\r\n😀é welcome x welcome\r\n",
                                        "def use x\n  welcome x\n"))

    def test_all_shapes_of_an_edit(self):
        for encoding in (None, "utf-32"):
            self.serve(encoding=encoding)
            for shape in ("changes", "versions", "whole"):
                with self.subTest(shape=shape, encoding=encoding):
                    self.put("a.toy", "def greet name\r\n😀é greet x greet\r\n")
                    self.put("b.toy", USE)
                    self.assertEqual(self.rename(shape), "[renamed greet to %s: 4 places in 2 files]\na.toy: "
                                                         "3\nb.toy: 1" % shape)
                    self.assertEqual(self.texts(),
                                     ("def greet name\r\n😀é greet x greet\r\n".replace("greet", shape),
                                      USE.replace("greet", shape)))

    def test_encodings_and_marks_stay(self):
        # which the server takes for a character when it reads the file
        self.put("c.toy", "\ufeffx greet\ngreet é\r\n".encode("utf-8"))
        self.put("d.toy", "greet 😀\n".encode("utf-16"))
        self.put("e.toy", "é greet".encode("latin-1"))
        self.ask("symbols", path="d.toy")
        self.assertIn("8 places in 5 files", self.rename())
        self.assertEqual((self.get("c.toy"), self.get("d.toy"), self.get("e.toy")),
                         ("\ufeffx welcome\nwelcome é\r\n".encode("utf-8"), "welcome 😀\n".encode("utf-16"),
                          "é welcome".encode("latin-1")))

    def test_what_an_encoding_cannot_hold_changes_nothing(self):
        self.put("c.toy", "greet é\n".encode("latin-1"))
        self.ask("symbols", path="c.toy")
        self.assertEqual(self.rename("中"), "[lsp: the encoding of c.toy is unknown, so '中' cannot be "
                                           "written. "
                         "Convert it first, in bash: iconv -f <encoding> -t UTF-8 c.toy]")
        self.assertEqual(self.texts(), (GREET, USE))

    def test_edits_that_are_refused(self):
        name = os.path.splitext(os.path.basename(sys.executable))[0]
        self.put("folder/x", "")
        outside = self.put("../outside.toy", "greet\n")
        self.addCleanup(os.unlink, outside)
        for shape, text in [
            ("overlap", "[lsp: %s sent edits of a.toy that overlap. Nothing was changed]" % name),
            ("outside", "[lsp: the rename would change %s, which is outside of the working directory. "
                        "Nothing was changed]" % os.path.realpath(outside)),
            ("shifted", "[lsp: %s's edit does not fit a.toy as it is now. Nothing was changed, try again]"
             % name),
            # so it says of the comment, which comes first
            ("none", '[lsp: %s: there is nothing to rename here]' % name),
            ("move", "[lsp: %s would create, move or delete files, too, which is left to bash. Nothing was "
                     "changed]" % name),
        ]:
            with self.subTest(shape):
                self.assertEqual(self.rename(shape), text)
                self.assertEqual(self.texts(), (GREET, USE))

    def test_a_link_out_of_the_folder_is_refused(self):
        elsewhere = support.scratch_folder()
        with open(os.path.join(elsewhere, "far.toy"), "w") as file:
            file.write("greet\n")
        os.symlink(os.path.join(elsewhere, "far.toy"), self.path("c.toy"))
        self.assertIn("outside of the working directory", self.rename())

    def test_what_the_server_refuses(self):
        self.put("c.toy", "# lonely\n")
        self.assertTrue(self.rename(path="c.toy", symbol="lonely").endswith(": there is nothing to rename "
                                                                            "here]"))

    def test_a_file_that_changed_meanwhile_stops_all(self):
        action = self.prepare("rename", path="a.toy", symbol="greet", new_name="welcome")
        self.put("b.toy", "def use y\n  greet y\n")
        with self.assertRaises(ToolError) as caught:
            action.run(None)
        self.assertEqual(str(caught.exception), "[lsp: b.toy changed while waiting for permission. Read it "
                                                "again.]")
        self.assertEqual(self.texts(), (GREET, "def use y\n  greet y\n"))

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_read_only_file_stops_all(self):
        os.chmod(self.path("b.toy"), 0o400)
        self.assertEqual(self.rename(), "[lsp: b.toy is read-only]")
        self.assertEqual(self.texts(), (GREET, USE))

    def test_what_the_model_knows_of_the_files(self):
        self.output("read_file", path="a.toy")
        self.rename()
        self.assertTrue(self.output("write_file", path="a.toy", content="x\n").startswith("[wrote a.toy"))
        self.assertIn("you have not read it", self.output("write_file", path="b.toy", content="x\n"))

    def output(self, name, **arguments):
        tool = registry.find(registry.built_in(self.context.config), name)
        try:
            return tool.prepare(parse_arguments(tool, arguments), self.context).run(None).output
        except ToolError as error:
            return str(error)

    def test_one_after_the_other(self):
        self.assertIn("4 places", self.rename("one"))
        self.assertIn("4 places", self.rename("two", symbol="one"))
        self.assertEqual(self.texts(), (GREET.replace("greet", "two").replace("# two", "# greet"),
                                        USE.replace("greet", "two")))


class Hostile(LspTest):
    """One line, in time, and nothing is left behind."""

    def setUp(self):
        super().setUp()
        self.limit(program, GRACE=0.2)
        self.name = os.path.splitext(os.path.basename(sys.executable))[0]

    def define(self, **more):
        return self.ask("definition", path="b.toy", symbol="greet", **more)

    def left(self):
        """The servers' threads that are left once they have had time to end."""
        own = lambda: [thread.name for thread in threading.enumerate() if thread.name.startswith("lsp ")]
        self.context.seen.close()
        self.until(lambda: not own())
        return own()

    def test_servers_that_do_not_do_what_they_should(self):
        for options, texts in [
            ({"hostile": "exit at once", "stderr": "no\n\x1b[31mlicence"}, ["[lsp: %s did not start: it "
                                                                            "ended (exit code 3): licence]"] * 2),
            ({"hostile": "refuses"}, ["[lsp: %s did not start: no licence]"] * 2),
            ({"hostile": "exit"}, ["[lsp: %s ended (exit code 7): the end is near]"] * 3
             + ["[lsp: %s is off after 3 failures]"]),
            ({"hostile": "huge"}, ["[lsp: %s ended (a line over 16.0 MB)]"]),
            ({"hostile": "twice"}, ["a.toy:2: def greet name"] * 2),
            ({"hostile": "noise"}, ["a.toy:2: def greet name"]),
            ({"hostile": "flood"}, ["a.toy:2: def greet name"]),
        ]:
            with self.subTest(options):
                self.serve(**options)
                for text in texts:
                    self.assertEqual(self.define(), text % self.name if "%" in text else text)
                self.assertEqual(self.left(), [])

    def test_servers_that_never_answer(self):
        self.limit(client, FIRST_LIMIT=0.1, LIMIT=0.2)
        for hostile, limit, texts in [("silent at once", 0.1, ["[lsp: %s did not start: it did not answer in "
                                                               "0.1 s]"]),
                                      ("silent", 1, ["[lsp: %s is still indexing, try again]"] * 2)]:
            with self.subTest(hostile):
                client.FIRST_LIMIT = limit
                self.serve(hostile=hostile)
                for text in texts:
                    begin = time.monotonic()
                    self.assertEqual(self.define(), text % self.name)
                self.assertLess(time.monotonic() - begin, 1)  # no first question any more
                self.assertEqual(self.left(), [])

    def test_an_answer_that_does_not_come_later_on(self):
        self.serve(hostile="silent")
        self.ask("symbols", path="b.toy")
        self.limit(client, LIMIT=0.3)
        self.assertEqual(self.define(), "[lsp: %s did not answer in 0.3 s]" % self.name)

    def test_a_server_that_cannot_be_started(self):
        broken = os.path.join(support.scratch_folder(), "server")
        with open(broken, "w") as file:
            file.write("no program")
        os.chmod(broken, 0o755)
        self.context = self.new_context(lsp={"toy": {"command": broken, "extensions": [".toy"]}})
        self.tool, = registry.reaching(self.context.config, self.folder, {"PATH": os.defpath})
        self.assertTrue(self.define().startswith("[lsp: server did not start: "))

    def test_one_that_does_not_read(self):
        self.limit(client, FIRST_LIMIT=3, INDEXING_LIMIT=0.1, SHUTDOWN=0.1)
        self.put("b.toy", "greet " * 50000)
        self.serve(hostile="deaf")
        self.assertEqual(self.define(), "[lsp: %s is still indexing, try again]" % self.name)
        self.context.seen.close()
        self.assertEqual(self.left(), [])

    def cancelled(self, told, call=None, **options):
        """Seconds from the cancel, a moment after the server was told something, to the end of the call."""
        self.serve(**options)
        cancel, at = self.context.cancel, []

        def interrupt():
            self.until(lambda: os.path.exists(self.log) and self.told(told))
            time.sleep(0.1)
            at.append(time.monotonic())
            cancel.cancel()

        threading.Thread(target=interrupt, daemon=True).start()
        with self.assertRaises(Cancelled):
            (call or self.define)(cancel=cancel)
        seconds = time.monotonic() - at[0]
        self.context.seen.close()
        return seconds

    def test_every_wait_can_be_cancelled(self):
        for told, options in [("initialize", {"hostile": "silent at once"}),
                              ("textDocument/definition", {"hostile": "silent"}),
                              ("textDocument/didOpen", {"indexing": 20}),
                              ("initialized", {"hostile": "deaf"})]:
            with self.subTest(options):
                if options.get("hostile") == "deaf":
                    self.put("b.toy", "greet " * 50000)
                if os.path.exists(self.log):
                    os.unlink(self.log)
                self.assertLess(self.cancelled(told, **options), BY_ITSELF)
                if told == "textDocument/definition":
                    self.until(lambda: self.told("$/cancelRequest"))
                    self.assertEqual(len(self.told("$/cancelRequest")), 1)
        self.assertEqual(self.left(), [])

    def test_a_rename_can_be_cancelled_before_its_dialog(self):
        rename = lambda cancel: self.prepare("rename", path="a.toy", symbol="greet", new_name="x")
        self.assertLess(self.cancelled("textDocument/didOpen", rename, indexing=20), BY_ITSELF)
        self.assertEqual(self.get("a.toy").decode(), GREET)

    def test_it_ends_with_the_session_and_starts_again(self):
        self.define()
        self.assertEqual(self.left(), [])
        self.assertEqual([len(self.told(name)) for name in ("shutdown", "exit")], [1, 1])
        self.assertEqual(self.define(), "a.toy:2: def greet name")
        self.assertEqual(self.left(), [])


class TheTool(LspTest):
    def setUp(self):
        super().setUp()
        self.bin = support.scratch_folder()  # programs in the session's folder do not count

    def offered(self, environ=None, **overrides):
        settings = config.load(self.folder, {"HOME": self.path("home")}, None, overrides)
        return registry.reaching(settings, self.folder, environ or {"PATH": self.programs})

    def setUp(self):
        super().setUp()
        self.programs = support.scratch_folder()

    def program(self, name):
        path = os.path.join(self.programs, name)
        with open(path, "w") as file:
            file.write("#!/bin/sh\n")
        os.chmod(path, 0o755)

    def test_only_for_languages_with_a_server(self):
        self.program("pylsp")
        self.assertFalse(self.offered())
        self.put("src/a.py", "")
        self.assertTrue(self.offered())
        self.assertFalse(self.offered({"PATH": self.path("elsewhere")}))
        self.assertFalse(self.offered(lsp=False))
        self.put("b.go", "")
        os.chmod(self.put("bin/gopls", "#!/bin/sh\n"), 0o755)
        for path in ("bin", self.path("bin")):  # the project's own program
            self.assertFalse(self.offered({"PATH": path}))

    def test_without_yolo_only_in_a_trusted_folder(self):
        self.program("pylsp")
        self.put("a.py", "")
        self.assertFalse(self.offered(yolo=False))
        self.put(".mm/config.json", "{}")
        from mm.config import trust

        trust.trust(self.folder, {"HOME": self.path("home")})
        self.assertTrue(self.offered(yolo=False))
        sub = self.path("sub")
        self.put("sub/a.py", "")
        settings = config.load(self.folder, {"HOME": self.path("home")}, None, {"yolo": False})
        self.assertFalse(registry.reaching(settings, sub, {"PATH": self.programs, "HOME": self.path("home")}))

    def test_it_is_small(self):
        self.assertLessEqual(len(json.dumps(registry.to_wire([self.tool])[0], ensure_ascii=False,
                                            separators=(",", ":"))), 900)
        self.assertEqual(registry.call_title(self.tool, {"action": "find", "query": "x"}), "lsp: find x")
