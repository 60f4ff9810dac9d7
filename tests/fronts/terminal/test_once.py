"""`-p` in a terminal: it streams, says what it waits for, asks, and keeps what was said."""

from __future__ import annotations

import os
import re
import unittest

from tests import support
from tests.fakes.model_server import ModelServer
from tests.fronts.terminal.terminal import Terminal
from tests.fronts.terminal.test_chat import ASK, with_server


class InATerminal(unittest.TestCase):
    def test_it_streams_and_keeps_what_was_said(self):
        with ModelServer([{"text": "one two "}, {"hang": True}]) as server:
            with Terminal("-p", "count", env=with_server(server)) as terminal:
                terminal.wait_for("^one two")
                terminal.type("\x03")
                self.assertEqual(terminal.wait(), 130)
        self.assertRegex(terminal.picture.text(), "^one two")

    def test_the_status_line_goes_before_the_answer(self):
        with ModelServer([{"pause": 1}, {"text": "here"}]) as server:
            with Terminal("-p", "count", env=with_server(server)) as terminal:
                self.assertRegex(terminal.wait_for("waiting"), r"\A\S waiting for the model \d s\Z")
                self.assertEqual(terminal.wait(), 0)
        self.assertEqual(terminal.picture.text().splitlines()[0], "here")

    def test_reasoning_is_in_that_line_alone(self):
        with ModelServer([{"thought": "Hmm, let me see."}, {"hang": True}]) as server:
            with Terminal("-p", "count", env=with_server(server)) as terminal:
                terminal.wait_for(r"\A\S thinking \d s · \d tokens · Hmm, let me see.\Z")
                terminal.type("\x03")
                terminal.wait()
        self.assertNotIn("Hmm", terminal.picture.text())

    def test_a_permission_is_asked_for(self):
        for typed, made in (("y", True), ("n", False)):
            with self.subTest(typed), Terminal("--demo", "--no-yolo", "-p", "run: touch made") as terminal:
                terminal.wait_for(ASK)
                terminal.enter(typed)
                self.assertEqual(terminal.wait(), 0)
                self.assertEqual(os.path.exists(terminal.cwd + "/made"), made)

    def test_a_permission_with_stdout_a_pipe(self):
        command = ("sh", "-c", '"$@" | cat > out', "sh")
        with Terminal("--demo", "--no-yolo", "-p", "run: echo yes", command=command) as terminal:
            terminal.wait_for(ASK)
            terminal.enter("y")
            self.assertEqual(terminal.wait(), 0)
            with open(terminal.cwd + "/out") as file:
                self.assertEqual(file.read(), "bash answered: yes\n")

    def test_nobody_is_asked_in_the_background(self):
        command = ("bash", "-c", 'set -m; "$@" & wait', "bash")
        with Terminal("--demo", "--no-yolo", "-p", "run: touch made", command=command) as terminal:
            self.assertEqual(terminal.wait(), 0)
        self.assertIn("[not run: nobody can be asked]", terminal.picture.text())

    def test_an_answer_is_cleaned_in_a_terminal_alone(self):
        answer = "a\x1b[?1000hb\x1b]0;title\x07c"
        with ModelServer([{"text": answer}], [{"text": answer}]) as server:
            with Terminal("-p", "x", env=with_server(server)) as terminal:
                terminal.wait()
            piped = support.run("-p", "x", env=support.environment(**with_server(server)))
        self.assertEqual(terminal.raw.replace("\r", "").splitlines()[0], "abc")
        self.assertEqual(piped.stdout, answer + "\n")


class AnEditorsOption(unittest.TestCase):
    def test_acp_in_a_terminal_says_what_to_type(self):
        with Terminal("-acp") as terminal:
            said = re.sub(r"\s+", " ", terminal.wait_for(r"yolo on"))
            self.assertIn("mm: -acp is for an editor", said)
            terminal.type("\x04")
            self.assertEqual(terminal.wait(), 0)


if __name__ == "__main__":
    unittest.main()
