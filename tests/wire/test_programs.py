"""Programs that mm starts by name, and those that it passes over because the project brought them."""

from __future__ import annotations

import os
import unittest

from mm.wire import child, programs
from tests import support


class Find(unittest.TestCase):
    def setUp(self):
        self.folder = support.scratch_folder()
        self.home = self.made("home")
        self.project = self.made("work/project")
        self.session = self.made("work/project/src")
        self.made("work/project/.git")
        self.installed = self.program("usr/bin/server")

    def made(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path, exist_ok=True)
        return path

    def program(self, name, mode=0o755):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n")
        os.chmod(path, mode)
        return path

    def found(self, name, *entries, folder=None, home=None):
        path = os.pathsep.join(self.folder + entry if entry.startswith("/") else entry for entry in entries)
        return programs.find(name, folder or self.session, {"PATH": path, "HOME": home or self.home})

    def test_a_name_is_looked_up_in_path(self):
        self.assertEqual(self.found("server", "/none", "/usr/bin"), self.installed)
        self.assertIsNone(self.found("other", "/usr/bin"))
        self.assertIsNone(self.found("server", "/none"))

    def test_the_project_is_passed_over(self):
        for name in ("work/project/src/server", "work/project/bin/server"):
            self.program(name)
        os.makedirs(os.path.join(self.folder, "links"))
        os.symlink(os.path.join(self.project, "bin", "server"), os.path.join(self.folder, "links", "server"))
        os.symlink(os.path.join(self.project, "bin"), os.path.join(self.folder, "linked"))
        os.symlink(self.installed, os.path.join(self.project, "bin", "renamed"))
        old = os.getcwd()
        os.chdir(self.session)
        self.addCleanup(os.chdir, old)
        for entry in ("", ".", "./", "../bin", "/work/project/src", "/work/project/bin",
                      "/work/project/src/../bin", "/links", "/linked"):
            with self.subTest(entry):
                self.assertEqual(self.found("server", entry, "/usr/bin"), self.installed)
                self.assertIsNone(self.found("server", entry))
        self.assertIsNone(self.found("renamed", "/work/project/bin"))

    def test_without_a_repository_the_folder_counts(self):
        os.rmdir(os.path.join(self.project, ".git"))
        self.program("work/project/src/server")
        self.assertIsNone(self.found("server", "/work/project/src"))
        beside = self.program("work/project/bin/server")
        self.assertEqual(self.found("server", "/work/project/bin"), beside)

    def test_programs_in_the_home_are_the_users(self):
        own = self.program("home/.local/bin/own")
        for folder in (self.home, self.folder, "/"):
            with self.subTest(folder):
                self.assertEqual(self.found("own", "/home/.local/bin", folder=folder), own)

    def test_an_explicit_path_is_taken(self):
        inside = self.program("work/project/src/bin/server")
        for name, path in [(inside, inside), ("bin/server", inside), ("./bin/server", inside),
                           ("../src/bin/server", inside), ("./none", None), ("bin", None)]:
            with self.subTest(name):
                self.assertEqual(self.found(name, "/usr/bin"), path)

    def test_what_cannot_be_executed_is_no_program(self):
        self.program("first/server", 0o644)
        self.made("second/server")
        self.assertEqual(self.found("server", "/first", "/second", "/usr/bin"), self.installed)
        with self.assertRaises(PermissionError):
            programs.locate(os.path.join(self.folder, "first", "server"), self.session, {"PATH": ""})

    def test_a_child_gets_no_entries_that_move(self):
        for given, passed in [(":/usr/bin:.:/bin:", "/usr/bin:/bin"), (".", os.defpath), ("", os.defpath),
                              (None, os.defpath)]:
            environ = {} if given is None else {"PATH": given}
            with self.subTest(given):
                started = child.start(["/usr/bin/env"], cwd=self.session, env=environ)
                self.addCleanup(started.end)
                output = started.process.communicate()[0].decode()
                self.assertIn("PATH=%s\n" % passed, output)


class Shell(unittest.TestCase):
    def test_which_one(self):
        folder = support.scratch_folder()
        self.assertEqual(programs.shell("bash", folder, {"PATH": folder}), "/bin/sh")
        self.assertEqual(programs.shell("/bin/sh", folder, {"PATH": ""}), "/bin/sh")
        with self.assertRaises(programs.NoShell):
            programs.shell("no-such-shell", folder)


if __name__ == "__main__":
    unittest.main()
