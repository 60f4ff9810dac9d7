"""mm under acpx, a client for the command line. It uses the block that `mm --editor acpx` prints, as it is printed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import unittest

from tests import support

ACPX = os.environ.get("MM_ACPX") or shutil.which("acpx")
# acpx needs Node.js 22. With an older one, npm installs an old acpx that reads no block of today's; both are on npm.
MISSING = ("acpx 0.10 or later is not here: npm install node@22 acpx in an empty folder; "
           "then MM_ACPX=that-folder/node_modules/.bin/acpx")
PATIENCE = 60
REJECTED, TIMED_OUT = 5, 3  # acpx's exit codes


def _is_recent() -> bool:
    if not ACPX:
        return False
    done = subprocess.run([ACPX, "--version"], env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    version = done.stdout.decode().strip().split(".")
    return len(version) == 3 and (int(version[0]), int(version[1])) >= (0, 10)


def _environment(**more) -> dict:
    """acpx runs on the Node.js beside it, if there is one."""
    path = os.pathsep.join((os.path.dirname(os.path.abspath(ACPX)), os.environ.get("PATH", os.defpath)))
    return support.environment(PATH=path, **more)


@unittest.skipUnless(_is_recent(), MISSING)
class Acpx(unittest.TestCase):
    def setUp(self):
        self.home, self.folder = support.scratch_folder(), support.scratch_folder()
        self.settings = os.path.join(self.home, "mm.json")
        block = json.loads(_json_of(support.run("--editor", "acpx").stdout))
        block["agents"]["mm"]["argv"] += ["--demo", "--config", self.settings]
        os.mkdir(os.path.join(self.home, ".acpx"))
        self._write(os.path.join(self.home, ".acpx", "config.json"), json.dumps(block))
        self._write(self.settings, json.dumps({"sessions": {"enabled": True}}))
        self.addCleanup(self._acpx, "mm", "sessions", "close")

    @staticmethod
    def _write(path: str, text: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def _start(self, *arguments) -> subprocess.Popen:
        return subprocess.Popen([ACPX, *arguments], cwd=self.folder, env=_environment(HOME=self.home),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def _acpx(self, *arguments) -> subprocess.CompletedProcess:
        process = self._start(*arguments)
        output = process.communicate(timeout=PATIENCE)[0].decode("utf-8")
        return subprocess.CompletedProcess(arguments, process.returncode, output)

    def _messages(self, prompt: str) -> list:
        """What acpx and mm said to each other over one prompt."""
        done = self._acpx("--approve-all", "--format", "json", "--json-strict", "mm", "exec", prompt)
        self.assertEqual(0, done.returncode, done.stdout)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def _updates(self, prompt: str, kind: str) -> list:
        updates = [message["params"]["update"] for message in self._messages(prompt)
                   if message.get("method") == "session/update"]
        return [update for update in updates if update["sessionUpdate"] == kind]

    def test_a_streamed_answer(self):
        self.assertGreater(len(self._updates("slow: 12", "agent_message_chunk")), 5)

    def test_a_command_allowed_and_rejected(self):
        for option, code, made in (("--approve-all", 0, True), ("--deny-all", REJECTED, False)):
            with self.subTest(option=option):
                done = self._acpx(option, "mm", "exec", "run: echo hi > %s" % option.strip("-"))
                self.assertEqual(code, done.returncode, done.stdout)
                self.assertEqual(made, os.path.exists(os.path.join(self.folder, option.strip("-"))))

    def test_a_diff(self):
        self._write(os.path.join(self.folder, "a.txt"), "one\n")
        ended = self._updates("edit: a.txt = one -> two", "tool_call_update")[-1]
        self.assertEqual(("one\n", "two\n"), (ended["content"][0]["oldText"], ended["content"][0]["newText"]))

    def test_a_plan(self):
        plan = self._updates("plan: read it; fix it", "plan")[-1]
        self.assertEqual(["read it", "fix it"], [entry["content"] for entry in plan["entries"]])

    def test_a_failure_says_why(self):
        done = self._acpx("mm", "exec", "fail: 400")
        self.assertEqual(1, done.returncode)
        self.assertIn("refused the request (400)", done.stdout)

    def test_a_session_that_is_loaded_again(self):
        for arguments in (("sessions", "new"), ("prompt", "run: echo kept")):
            done = self._acpx("--approve-all", "mm", *arguments)
            self.assertEqual(0, done.returncode, done.stdout)
        self._acpx("mm", "sessions", "close")
        folder = os.path.join(self.folder, ".mm", "sessions")
        saved = [name for name in os.listdir(folder) if name.endswith(".json")]
        self.assertEqual(1, len(saved))
        with open(os.path.join(folder, saved[0]), encoding="utf-8") as file:
            self.assertIn("run: echo kept", file.read())

    def test_a_cancel_in_a_command(self):
        self._acpx("mm", "sessions", "new")
        prompt = self._start("--approve-all", "mm", "prompt", "run: touch begun; sleep 971")
        self._until(lambda: os.path.exists(os.path.join(self.folder, "begun")))
        self._acpx("mm", "cancel")
        output = prompt.communicate(timeout=PATIENCE)[0].decode("utf-8")
        self.assertIn("[done] cancelled", output)
        self._until(lambda: not _running("sleep 971"))

    def test_a_client_that_leaves_takes_the_command_along(self):
        done = self._acpx("--approve-all", "--timeout", "3", "mm", "exec", "run: sleep 972")
        self.assertEqual(TIMED_OUT, done.returncode, done.stdout)
        self._until(lambda: not _running("sleep 972"))

    def _until(self, condition) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)


def _json_of(printed: str) -> str:
    """The block itself, without the sentence above it that says where it goes."""
    return printed[printed.index("{"):]


def _running(command: str) -> bool:
    done = subprocess.run(["pgrep", "-f", "^" + command], stdout=subprocess.PIPE)
    return done.returncode == 0
