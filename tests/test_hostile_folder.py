"""A folder that somebody else made: opening it starts nothing, and nothing outside of it is read."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest

from tests import support
from tests.fakes.model_server import ModelServer


class AHostileFolder(unittest.TestCase):
    def setUp(self):
        self.server = ModelServer([{"text": "done"}])
        self.addCleanup(self.server.close)
        self.root = support.scratch_folder()
        self.folder = os.path.join(self.root, "project")
        os.mkdir(self.folder)

    def put(self, name, text, mode=0o644):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def ask(self, *calls, **variables):
        """Runs a turn that makes these calls, (name, arguments) each; returns the finished process."""
        self.server.script(*[[{"call": {"name": name, "arguments": arguments}}] for name, arguments in calls],
                           [{"text": "done"}])
        environ = support.environment(MM_URL=self.server.url, MM_MODEL="m", **variables)
        return support.run("-p", "go", cwd=self.folder, env=environ)

    def result(self):
        return self.server.requests[-1].body["messages"][-1]["content"]

    def test_programs_of_the_project_are_not_started(self):
        marker = os.path.join(self.root, "started")
        for name in ("bash", "sh", "git", "taskkill"):
            self.put("project/" + name, "#!/bin/sh\necho %s >> %s\n" % (name, marker), 0o755)
        self.put("project/known.txt", "x")
        path = os.pathsep.join([".", "", self.folder, os.environ["PATH"]])
        self.ask(("read_file", {"path": "unknown.txt"}), ("bash", {"command": "echo ok"}), PATH=path)
        self.assertIn("ok", self.result())
        self.assertFalse(os.path.exists(marker))

    def test_modules_of_the_project_are_not_imported(self):
        for name in ("subprocess", "select", "email", "difflib"):
            self.put("project/%s.py" % name, "open(%r, 'w')" % os.path.join(self.root, "started"))
        command = [sys.executable, support.pyz(), "-p", "go"]
        environ = support.environment(MM_URL=self.server.url, MM_MODEL="m", PYTHONPATH=":/nowhere")
        done = subprocess.run(command, cwd=self.folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True)
        self.assertEqual((done.stdout, os.path.exists(os.path.join(self.root, "started"))), (b"done\n", False))

    def test_a_missing_file_starts_no_git(self):
        # Wherever it is found: what a repository's configuration makes git run cannot be switched off key by key.
        marker = os.path.join(self.root, "started")
        self.put("bin/git", "#!/bin/sh\necho git >> %s\n" % marker, 0o755)
        self.put("project/.git/config", "[core]\n\tfsmonitor = touch %s\n" % marker)
        path = os.path.join(self.root, "bin") + os.pathsep + os.environ["PATH"]
        self.put("project/deep/main.py", "x")
        for name, more in (("read_file", {}), ("edit_file", {"old_string": "a", "new_string": "b"})):
            self.ask((name, {"path": "mian.py", **more}), PATH=path)
            self.assertEqual(self.result(), "[%s: mian.py does not exist. Similar: deep/main.py]" % name)
        self.assertFalse(os.path.exists(marker))

    def test_instructions_behind_a_link_stay_there(self):
        secret = self.put("home/secret", "a private key")
        os.symlink(secret, os.path.join(self.folder, "AGENTS.md"))
        done = self.ask()
        self.assertNotIn("a private key", str(self.server.requests[-1].body))
        self.assertEqual(done.stderr.count("AGENTS.md is not read: a link leads out of %s" % self.folder), 1)

    def test_instructions_behind_a_link_inside_are_read(self):
        self.put("project/docs/rules.md", "use tabs")
        os.symlink("docs/rules.md", os.path.join(self.folder, "AGENTS.md"))
        self.ask()
        self.assertIn("use tabs", str(self.server.requests[-1].body))


if __name__ == "__main__":
    unittest.main()
