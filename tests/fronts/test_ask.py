"""`mm --ask`, through the zipapp: the fake agent, mm itself, and what may go wrong on the way."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import unittest

from tests import support

FAKE = os.path.join(support.PROJECT, "tests", "fakes", "asked_agent.py")
PROGRAM = [sys.executable, "-I", "-S", FAKE]
NAME = os.path.basename(sys.executable)


class Ask(unittest.TestCase):
    def setUp(self):
        self.folder = support.scratch_folder()

    def ask(self, *lines, agent=None, more=(), stdin=b"", env=None):
        """(exit code, stdout, stderr)"""
        done = support.run(*more, "--ask", agent or shlex.join(PROGRAM), "\n".join(lines), cwd=self.folder,
                           stdin=stdin, env=env)
        return done.returncode, done.stdout, done.stderr

    def configure(self, **agents):
        path = os.path.join(self.folder, "config.json")
        with open(path, "w") as file:
            json.dump({"agents": agents}, file)
        return "--config", path

    def test_stdout_has_only_the_answer(self):
        self.assertEqual(self.ask("say I look.", "call 1 ls -la", "plan 2 rm", "say Fine."),
                         (0, "Fine.\n", "ls -la\n"))

    def test_a_configured_agent(self):
        more = self.configure(rev={"command": PROGRAM, "env": {"COLOUR": "red"}})
        code, answer, _ = self.ask("env COLOUR", agent="rev", more=more)
        self.assertEqual((code, answer), (0, "'red'\n"))

    def test_piped_input_is_added(self):
        self.assertEqual(self.ask("", stdin=b"say piped\n")[:2], (0, "piped\n"))

    def test_permissions_as_yolo_says(self):
        self.assertIn("yes!", self.ask("edit")[1])
        code, answer, log = self.ask("edit", more=["--no-yolo"])
        self.assertIn("no!", answer)
        self.assertEqual(log, "mm: %s: edit a.txt needs a permission and there is nobody to ask (use "
                              "--yolo)\n" % NAME)

    def test_a_form_is_answered_with_an_error(self):
        self.assertEqual(self.ask("form"), (0, '"nobody can be asked here"\n', ""))

    def test_exit_codes(self):
        for lines, end in (
            (["say half", "stop max_tokens"], (3, "half\n", "mm: %s stopped: max_tokens\n" % NAME)),
            (["stop max_turn_requests"], (3, "", "mm: %s stopped: max_turn_requests\n" % NAME)),
            (["stop refusal"], (1, "", "mm: %s stopped: refusal\n" % NAME)),
            (["say half", "exit 4"], (1, "half\n", "mm: %s ended with exit code 4\n" % NAME)),
        ):
            with self.subTest(lines):
                self.assertEqual(self.ask(*lines), end)

    def test_wrong_calls(self):
        for agent, line in (
            ("nobody", "--ask nobody: no agent of that name in the configuration (it names none), and no "
                       "such program"),
            ("./nobody -x", "--ask ./nobody -x: no agent of that name in the configuration (it names none), "
                            "and no such program"),
            ("'", "--ask ': No closing quotation"),
        ):
            with self.subTest(agent):
                self.assertEqual(self.ask("x", agent=agent), (2, "", "mm: %s\n" % line))
        self.assertEqual(support.run("--ask", "x").stderr, "mm: there is no question: give one after the agent or on stdin\n")
        self.assertEqual(self.ask(" ")[0], 2)
        self.assertEqual(self.ask("x", more=["-acp"])[0], 2)

    def test_not_too_deep(self):
        code, _, log = self.ask("say x", env=support.environment(MM_AGENT_DEPTH="2"))
        self.assertEqual((code, log), (1, "mm: too deep (2)\n"))

    def test_an_asked_mm_without_yolo(self):
        mm = shlex.join(support.mm("-acp", "--demo"))
        self.assertEqual(self.ask("run: echo hello", agent=mm), (0, "bash answered: hello\n", "bash: echo "
                                                                                              "hello\n"))
        code, answer, log = self.ask("run: echo hello", agent=mm, more=["--no-yolo"])
        self.assertEqual((code, answer), (0, "bash answered: [command rejected by the user]\n"))
        self.assertIn("needs a permission", log)

    def test_ctrl_c_ends_it_and_the_agent(self):
        command = support.mm("--ask", shlex.join(PROGRAM), "linger\ncall 1 x\nwait")
        with subprocess.Popen(command, cwd=self.folder, env=support.environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            self.assertEqual(process.stderr.readline(), b"x\n")
            agents = support.children(process.pid)
            process.send_signal(signal.SIGINT)
            self.assertEqual((process.wait(support.DEADLINE), process.stdout.read()), (130, b""))
        support.wait_until(lambda: not any(map(support.group_alive, agents)), what="the end of the agent")
        self.assertTrue(os.path.exists(os.path.join(self.folder, "cancelled")))


if __name__ == "__main__":
    unittest.main()
