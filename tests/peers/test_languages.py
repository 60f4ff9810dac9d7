"""Which language server a folder gets: only what is there, nothing installed."""

from __future__ import annotations

import os
import unittest

from mm.config.entries import LanguageServer
from mm.config.keys import LSP
from mm.peers import languages, uris
from tests import support


class Candidates(unittest.TestCase):
    def found(self, *programs, configured=None):
        return {each.name: each for each in languages.candidates(configured or {},
                                                                 {name: "/bin/" + name
                                                                  for name in programs}.get)}

    def test_the_first_program_that_is_there(self):
        for programs, argv in [
            (["pylsp", "jedi-language-server"], ("/bin/pylsp",)),
            (["jedi-language-server"], ("/bin/jedi-language-server",)),
            (["pylsp", "pyright-langserver"], ("/bin/pyright-langserver", "--stdio")),
            (["basedpyright-langserver", "pyright-langserver"], ("/bin/basedpyright-langserver", "--stdio")),
        ]:
            with self.subTest(programs):
                self.assertEqual(self.found(*programs)["python"].argv, argv)
        self.assertEqual(self.found("other"), {})

    def test_the_users_entry_replaces_the_known_one(self):
        entry = LanguageServer(("mine", "-x"), (".py", ".special"))
        found = self.found("mine", "pylsp", "gopls", configured={"python": entry})
        self.assertEqual((list(found), found["python"].argv), (["python", "go"], ("/bin/mine", "-x")))
        self.assertEqual(found["python"].extensions, {".py": "python", ".special": "python"})
        self.assertNotIn("python", self.found("pylsp", configured={"python": entry}))

    def test_the_table_is_sound(self):
        names = [language.name for language in languages.LANGUAGES]
        self.assertEqual(len(names), len(set(names)))
        pattern = LSP["anyOf"][1]["additionalProperties"]["properties"]["extensions"]["items"]["pattern"]
        for language in languages.LANGUAGES:
            for extension, identifier in language.extensions.items():
                self.assertRegex(extension, pattern)
                self.assertRegex(identifier, "^[a-z]+$")


class AFolder(unittest.TestCase):
    def setUp(self):
        self.folder = support.scratch_folder()

    def put(self, *names):
        for name in names:
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "w").close()

    def test_what_is_present(self):
        self.put("deep/er/a.py", "b.py", "node_modules/c.js", ".git/d.go", "venv/e.rs", "1/2/3/4/5/6/f.rb",
                 "1/2/3/4/5/6/7/g.lua")
        found = languages.first_files(self.folder, {".py", ".js", ".go", ".rs", ".rb", ".lua"})
        self.assertEqual({extension: os.path.relpath(path, self.folder) for extension, path in found.items()},
                         {".py": "b.py", ".rb": "1/2/3/4/5/6/f.rb"})

    def test_the_look_is_bounded(self):
        self.addCleanup(setattr, languages, "ENTRIES", languages.ENTRIES)
        languages.ENTRIES = 50
        self.put(*("many/%d" % number for number in range(50)), "many/deep/a.py")
        self.assertEqual(languages.first_files(self.folder, {".py"}), {})
        self.assertEqual(languages.first_files(os.path.join(self.folder, "nowhere"), {".py"}), {})

    def test_the_sources_and_their_states(self):
        self.put("a.py", "sub/b.py", "sub/c.go", "node_modules/d.py")
        os.symlink(os.path.join(self.folder, "a.py"), os.path.join(self.folder, "link.py"))
        before = languages.sources(self.folder, {".py"})
        self.assertEqual(sorted(before), [os.path.join(self.folder, name) for name in ("a.py", "sub/b.py")])
        with open(os.path.join(self.folder, "a.py"), "a") as file:
            file.write("x")
        after = languages.sources(self.folder, {".py"})
        self.assertEqual([path for path in after if after[path] != before[path]],
                         [os.path.join(self.folder, "a.py")])

    def test_links_are_not_entered(self):
        self.put("a/b.py")
        os.symlink(self.folder, os.path.join(self.folder, "a", "up"))
        os.symlink(os.path.join(self.folder, "a"), os.path.join(self.folder, "again"))
        self.assertEqual(languages.first_files(os.path.join(self.folder, "again", "up", "again"), {".go"}), {})

    def test_the_root_is_the_nearest_marked_folder(self):
        self.put("top/setup.py", "top/work/a.py", "top/work/sub/go.mod", "top/work/sub/pkg/b.py",
                 "top/work/sub/c.py", "else/d.py")
        top, work = (os.path.join(self.folder, name) for name in ("top", "top/work"))
        for path, markers, root in [
            ("top/work/a.py", ("setup.py",), "top"),
            ("top/work/sub/pkg/b.py", ("go.mod", "setup.py"), "top/work/sub"),
            ("top/work/sub/c.py", ("go.mod",), "top/work/sub"), ("top/work/a.py", ("go.mod",), None),
            ("else/d.py", ("setup.py",), "top"),
        ]:
            with self.subTest(path=path, markers=markers):
                found = languages.root_of(os.path.join(self.folder, path), markers, [work, top])
                self.assertEqual(found, root and os.path.join(self.folder, root))


class Uris(unittest.TestCase):
    def test_there_and_back(self):
        for path, uri in [("/a/b.py", "file:///a/b.py"),
                          ("/a b/é😀.py", "file:///a%20b/%C3%A9%F0%9F%98%80.py"),
                          ("/a/50%.py", "file:///a/50%25.py"),
                          ("/a/b#c?d.py", "file:///a/b%23c%3Fd.py"), ("/a/\udcff.py", "file:///a/%FF.py")]:
            with self.subTest(path):
                self.assertEqual((uris.to_uri(path), uris.to_path(uri)), (uri, path))

    def test_other_ways_to_write_them(self):
        for uri, path in [("file:///a/b%2Bc.py", "/a/b+c.py"), ("file:///a/b+c.py", "/a/b+c.py"),
                          ("file://localhost/a", "/a"), ("file:/a", "/a"), ("FILE:///a", "/a"),
                          ("file:///a/é", "/a/é"), ("file:///a/../b", "/b"), ("jdt://x/y", None),
                          ("untitled:1", None), ("file://host/a", None), ("file:///a%00b", None), ("", None),
                          (None, None), (7, None), ("file://[x/a", None), ("file:///\ud800", None)]:
            with self.subTest(uri):
                self.assertEqual(uris.to_path(uri), path)

    def test_inside(self):
        for path, folder, inside in [("/a/b", "/a", True), ("/ab", "/a", False), ("/a", "/a", False),
                                     ("/a/b", "/", True)]:
            self.assertEqual(uris.is_inside(path, folder), inside)
