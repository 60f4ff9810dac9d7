"""The AGENTS.md files: which there are at the start, and which come later."""

from __future__ import annotations

import os
import re
import unittest

from mm.engine import instructions
from mm.notices import Notices
from tests import support


class OfSession(unittest.TestCase):
    def setUp(self):
        self.root = support.scratch_folder()
        self.notices = Notices()
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
        return instructions.Instructions(self.cwd, self.notices).at_start(self.user, 0)

    def test_none(self):
        self.assertEqual(self.read(), "")

    def test_from_the_users_own_to_the_nearest(self):
        for name in ("user/AGENTS.md", "repo/AGENTS.md", "repo/src/deep/AGENTS.md"):
            self.write(name, "rule of %s\n" % name)
        self.write("AGENTS.md", "outside of the repository")
        self.assertEqual(self.read(), "".join("\n\n%s/%s:\n```\nrule of %s\n```" % (self.root, name, name)
                                              for name in (
            "user/AGENTS.md", "repo/AGENTS.md", "repo/src/deep/AGENTS.md")))

    def test_claude_md_counts_without_agents_md(self):
        self.write("repo/CLAUDE.md", "instead")
        self.write("repo/src/AGENTS.md", "agents")
        self.write("repo/src/CLAUDE.md", "not read")
        self.assertIn("instead", self.read())
        self.assertIn("agents", self.read())
        self.assertNotIn("not read", self.read())

    def test_only_the_folder_counts_outside_repositories(self):
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
        self.assertEqual(max(map(len, re.findall("x+", text))), instructions.LIMIT - 10000)

    def test_small_windows_give_an_eighth(self):
        self.write("repo/AGENTS.md", "x" * 5000)
        text = instructions.Instructions(self.cwd, self.notices).at_start(self.user, 8192)
        self.assertIn("x" * 4096 + "\n[AGENTS.md cut at 4096 bytes in all]", text)

    def test_a_fence_inside_does_not_end_the_fence(self):
        self.write("repo/AGENTS.md", "```\ncode\n```\n")
        self.assertIn("\n````\n```\ncode\n```\n````", self.read())

    def test_fifo_is_not_waited_for(self):
        os.mkfifo(self.root + "/repo/AGENTS.md")
        self.assertEqual(self.read(), "")


class Below(unittest.TestCase):
    def setUp(self):
        self.cwd = os.path.join(support.scratch_folder(), "project")
        self.notices = Notices()
        self.below = instructions.Instructions(self.cwd, self.notices)

    def put(self, name, text):
        path = os.path.join(self.cwd, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, *names, window=0):
        return self.below.below([os.path.join(self.cwd, name) for name in names], window)

    def test_each_folder_once_from_the_outside_in(self):
        self.put("AGENTS.md", "of the root")
        self.put("packages/AGENTS.md", "of packages")
        self.put("packages/api/AGENTS.md", "of api\n")
        self.put("packages/web/CLAUDE.md", "of web")
        self.assertEqual(self.read("packages/api/src/x.py"), (
            "[instructions for the files in packages:]\n```\nof packages\n```\n"
            "[instructions for the files in packages/api:]\n```\nof api\n```"))
        self.assertEqual(self.read("packages/api/y.py", "x.py"), "")
        self.assertEqual(self.read("packages/web"), "[instructions for the files in packages/web:]\n```\nof "
                                                    "web\n```")
        self.below.forget()
        self.assertIn("of packages", self.read("packages/x"))

    def test_what_is_not_the_projects_own(self):
        for name in ("node_modules/x/AGENTS.md", ".cache/AGENTS.md", "../AGENTS.md", "../other/AGENTS.md"):
            self.put(name, "no")
            self.assertEqual(self.read(name), "", name)

    def test_no_link_leads_out(self):
        self.put("../secret", "key")
        self.put("sub/x", "")
        os.symlink("../../secret", os.path.join(self.cwd, "sub", "AGENTS.md"))
        self.assertEqual(self.read("sub/x"), "")
        self.assertEqual(self.notices.take(), [instructions.LEADS_OUT
                                               % (os.path.join(self.cwd, "sub/AGENTS.md"), self.cwd)])

    def test_all_together_have_a_limit(self):
        for number in range(3):
            self.put("%d/AGENTS.md" % number, "x" * 3000)
        text = self.read("0/a", "1/a", "2/a", window=8192)
        self.assertEqual(text.count("x"), 4096)
        self.assertIn("[AGENTS.md cut at 4096 bytes in all]", text)
        self.assertEqual(self.read("2/a", window=8192), "")


if __name__ == "__main__":
    unittest.main()
