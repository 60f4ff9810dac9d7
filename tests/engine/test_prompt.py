"""The system prompt and the instructions that go with it."""

from __future__ import annotations

import os
import platform
import re
import unittest

from mm.engine import prompt
from tests import support


class Instructions(unittest.TestCase):
    def setUp(self):
        self.root = support.scratch_folder()
        self.user = self.folder("user")
        self.cwd = self.folder("repo/src/deep")
        os.mkdir(self.root + "/repo/.git")

    def folder(self, name):
        path = os.path.join(self.root, name)
        os.makedirs(path)
        return path

    def write(self, name, text):
        with open(os.path.join(self.root, name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self):
        return prompt.instructions(self.cwd, self.user)

    def test_none(self):
        self.assertEqual(self.read(), "")

    def test_from_the_users_own_to_the_nearest(self):
        for name in ("user/AGENTS.md", "repo/AGENTS.md", "repo/src/deep/AGENTS.md"):
            self.write(name, "rule of %s\n" % name)
        self.write("AGENTS.md", "outside of the repository")
        self.assertEqual(self.read(), "".join("\n\n%s/%s:\n```\nrule of %s\n```" % (self.root, name, name) for name in (
            "user/AGENTS.md", "repo/AGENTS.md", "repo/src/deep/AGENTS.md")))

    def test_claude_md_stands_in_where_there_is_no_agents_md(self):
        self.write("repo/CLAUDE.md", "instead")
        self.write("repo/src/AGENTS.md", "agents")
        self.write("repo/src/CLAUDE.md", "not read")
        self.assertIn("instead", self.read())
        self.assertIn("agents", self.read())
        self.assertNotIn("not read", self.read())

    def test_outside_of_a_repository_only_the_folder_itself_counts(self):
        os.rmdir(self.root + "/repo/.git")
        self.write("repo/AGENTS.md", "above")
        self.write("repo/src/deep/AGENTS.md", "here")
        self.assertNotIn("above", self.read())
        self.assertIn("here", self.read())

    def test_all_together_are_cut_at_the_limit(self):
        self.write("repo/AGENTS.md", "é" * 5000)
        self.write("repo/src/AGENTS.md", "x" * 10000)
        text = self.read()
        self.assertIn("[AGENTS.md cut at 16384 bytes in all]", text)
        self.assertEqual(max(map(len, re.findall("x+", text))), prompt.INSTRUCTIONS_LIMIT - 10000)

    def test_in_a_small_window_they_may_take_an_eighth(self):
        self.write("repo/AGENTS.md", "x" * 5000)
        text = prompt.instructions(self.cwd, self.user, 8192)
        self.assertIn("x" * 4096 + "\n[AGENTS.md cut at 4096 bytes in all]", text)

    def test_a_fence_inside_does_not_end_the_fence(self):
        self.write("repo/AGENTS.md", "```\ncode\n```\n")
        self.assertIn("\n````\n```\ncode\n```\n````", self.read())

    def test_what_is_no_regular_file_is_not_waited_for(self):
        os.mkfifo(self.root + "/repo/AGENTS.md")
        self.assertEqual(self.read(), "")


class SystemPrompt(unittest.TestCase):
    def test_it_is_short_and_names_where_it_works(self):
        text = prompt.system_prompt("bob", "/some/where", None)
        self.assertIn("You are bob, a coding agent. You work in /some/where", text)
        self.assertLess(len(text.encode()), 1600)

    def test_it_names_the_system_as_the_standard_library_does(self):
        self.assertIn(" on %s with bash" % platform.system(), prompt.system_prompt("bob", "/some/where", None))


if __name__ == "__main__":
    unittest.main()
