"""Every file in tests/transcripts/ is one test: mm, as it is shipped, goes the way that is written there.

The files are documentation, too: each begins with the heading of docs/ that it shows. They are played
four at a time, because most of a play is waiting.
"""

from __future__ import annotations

import concurrent.futures
import os
import re
import sys
import unittest

from mm.transcripts import player, transcript
from tests import support

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "transcripts")
FILES = sorted(name for name in os.listdir(FOLDER) if name.endswith(".txt"))
AT_ONCE = 4


def play(name: str):
    """The text of the first difference; "" when there is none."""
    parting = player.play(read(name), [sys.executable, "-I", "-S", support.pyz()])
    return player.report(os.path.join("tests", "transcripts", name), parting) if parting else ""


def read(name: str) -> list:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return transcript.parse(file.read())


class Transcripts(unittest.TestCase):
    """One test a file; the methods are made below."""

    plays = {}

    @classmethod
    def setUpClass(cls):
        support.pyz()  # built once, before several threads ask for it
        cls.pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)

    @classmethod
    def tearDownClass(cls):
        cls.pool.shutdown()

    def check(self, name: str) -> None:
        """Plays this file, and the next ones ahead: the tests run in the order of their names."""
        place = FILES.index(name)
        for each in FILES[place:place + AT_ONCE]:
            if each not in self.plays:
                self.plays[each] = self.pool.submit(play, each)
        told = self.plays[name].result()
        if told:
            self.fail("\n" + told)


def add_test(name: str) -> None:
    def test(self):
        self.check(name)

    setattr(Transcripts, "test_" + name[:-len(".txt")].replace("-", "_"), test)


for file_name in FILES:
    add_test(file_name)


class TheDocumentation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(support.PROJECT, "docs", "transcripts.md"), encoding="utf-8") as file:
            cls.text = file.read()

    def test_its_example_plays(self):
        lines = transcript.parse(self.text.split("```\n")[1])
        parting = player.play(lines, support.mm())
        self.assertIsNone(parting, parting and player.report("docs/transcripts.md", parting))

    def test_it_has_every_sign_key_and_setting(self):
        for name in transcript.SIGNS[:-1] + transcript.SCRIPT_KEYS:
            self.assertRegex(self.text, r"(?m)^\| `%s[` ]" % re.escape(name))
        for name in transcript.SETTINGS:
            self.assertRegex(self.text, r"(?m)^\|.* `# %s:|^\| `# %s:" % (name, name))


class TheFiles(unittest.TestCase):
    def test_each_begins_with_a_heading_of_the_documentation(self):
        headings = set()
        for page in os.listdir(os.path.join(support.PROJECT, "docs")):
            if page.endswith(".md"):
                with open(os.path.join(support.PROJECT, "docs", page), encoding="utf-8") as file:
                    headings.update(re.findall(r"(?m)^#+ (?:Reference: )?(.+)$", file.read()))
        for name in FILES:
            with self.subTest(name):
                first = read(name)[0]
                self.assertEqual(first.sign, "#")
                self.assertIn(re.split("[:,] ", first.text)[0], headings)


if __name__ == "__main__":
    unittest.main()
