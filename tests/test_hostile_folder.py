"""A folder that somebody else made: opening it starts nothing, and nothing outside of it is read."""

from __future__ import annotations

import json
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

    def test_no_file_of_the_project_begins_each_command(self):
        marker = os.path.join(self.root, "started")
        self.put("project/.env", "touch %s\n" % marker)
        elsewhere = self.put("own/bashrc", "greeting=hello\n")
        for value, greeting in ((".env", ""), ("./.env", ""), (elsewhere, "hello")):
            self.ask(("bash", {"command": "echo [$greeting]"}), BASH_ENV=value, ENV=value)
            self.assertIn("[%s]" % greeting, self.result())
        self.assertFalse(os.path.exists(marker))

    def test_modules_of_the_project_are_not_imported(self):
        for name in ("subprocess", "select", "email", "difflib"):
            self.put("project/%s.py" % name, "open(%r, 'w')" % os.path.join(self.root, "started"))
        command = [sys.executable, support.pyz(), "-p", "go"]
        environ = support.environment(MM_URL=self.server.url, MM_MODEL="m", PYTHONPATH=":/nowhere")
        done = subprocess.run(command, cwd=self.folder, env=environ, stdin=subprocess.DEVNULL,
                              capture_output=True)
        self.assertEqual((done.stdout, os.path.exists(os.path.join(self.root, "started"))),
                         (b"done\n", False))

    def test_a_missing_file_starts_no_git(self):
        # Wherever it is found: what a repository's configuration makes git run cannot be switched off key by
        # key.
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

    # What a session file may say instead of what it should: a part of it by another.
    SESSION = {"version": 1, "cwd": "/", "created": "c", "model": "m", "title": "t", "usage": {"input": 1},
               "plan": None, "messages": [
                   {"role": "user", "content": "hello"},
                   {"role": "assistant", "content": "", "reasoning": "hm", "reasoningField": "thinking",
                    "calls": [
                       {"ref": "call_1", "name": "edit_file", "arguments": '{"path": "a"}'}]},
                   {"role": "tool", "call": "call_1", "name": "edit_file", "content": "[edited]",
                    "status": "completed", "diff": {"path": "/a", "old": "x", "new": "y"}, "prose": True,
                    "title": "edit_file: a", "toolKind": "edit"},
               ]}
    OTHERS = (None, True, -1, 1.5, 10 ** 300, "", "x\u202e\x1b[2J", [], ["x"], {}, {"input": None}, [[{}]],
              {"steps": [{"text": 1}]})

    def test_a_session_file_breaks_no_turn(self):
        os.makedirs(os.path.join(self.folder, ".mm", "sessions"))
        self.put("settings.json", json.dumps({"sessions": {"enabled": True}}))
        files = [text for position, text in enumerate(self.session_files()) if not support.SHORT
                 or position % 3 == 0]
        with support.Client("--config", os.path.join(self.root, "settings.json"), cwd=self.folder,
                            env=support.environment(MM_URL=self.server.url, MM_MODEL="m")) as editor:
            editor.initialize()
            answered = 0
            for number, text in enumerate(files):
                self.put("project/.mm/sessions/s-%d.json" % number, text)
                try:
                    editor.request("session/load",
                                   {"sessionId": "s-%d" % number, "cwd": self.folder, "mcpServers": []})
                except support.RemoteError as refused:
                    self.assertEqual(refused.code, -32602, (text, str(refused)))
                    continue
                self.assertEqual(editor.prompt("s-%d" % number, "go on")["stopReason"], "end_turn", text)
                answered += 1
            self.assertGreater(answered, len(files) / 3)
            self.assertNotIn("Traceback", editor.stderr)

    def session_files(self):
        yield json.dumps(self.SESSION)
        for way in list(ways(self.SESSION)):
            for other in self.OTHERS:
                yield json.dumps(replaced(self.SESSION, way, other))
        yield json.dumps(self.SESSION).replace('"input": 1', '"input": NaN')
        yield json.dumps(self.SESSION).replace('"input": 1', '"input": 1e999')


def ways(value):
    """The keys and indexes that lead to each part of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield (key,)
        for rest in ways(part):
            yield (key, *rest)


def replaced(value, way, other):
    """A copy of a JSON value with `other` in the place that `way` leads to."""
    if not way:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[way[0]] = replaced(copy[way[0]], way[1:], other)
    return copy


if __name__ == "__main__":
    unittest.main()
