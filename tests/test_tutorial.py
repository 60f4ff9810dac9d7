"""The tutorial works as it is printed: its commands run from an empty home, and say what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest

from tests import support

PAGE = os.path.join(support.PROJECT, "docs", "tutorial.md")
# A block of commands, and the output that the page shows below it, if it shows one.
BLOCK = re.compile(r"```sh\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
MARK = "--- end of block ---"
# What differs from run to run: the time of day, and whether a server was quick.
TIME, WAITING = re.compile(r"\d\d:\d\d"), re.compile(r"mcp: waiting for .*\n")


class Tutorial(unittest.TestCase):
    def test_its_commands_say_what_it_shows(self):
        with open(PAGE, encoding="utf-8") as file:
            blocks = BLOCK.findall(file.read())
        self.assertGreater(len(blocks), 6)
        home = support.scratch_folder()
        script = "set -e\n" + "".join("%secho '%s'\n" % (commands, MARK) for commands, _ in blocks)
        done = subprocess.run(["bash", "-c", script], cwd=support.PROJECT, env=self.environment(home),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        printed = done.stdout.decode("utf-8").replace(home, "~")
        self.assertEqual(0, done.returncode, printed)
        for (commands, shown), output in zip(blocks, printed.split(MARK + "\n")):
            if shown:
                with self.subTest(commands):
                    self.assertEqual(TIME.sub("12:34", shown), TIME.sub("12:34", WAITING.sub("", output)))

    def environment(self, home: str) -> dict:
        """As a login shell has it, except that `python3` is the Python under test."""
        programs = support.scratch_folder()
        os.symlink(sys.executable, os.path.join(programs, "python3"))
        return support.environment(HOME=home, PATH="%s:/usr/bin:/bin" % programs, MM_PYTHONS=sys.executable)


if __name__ == "__main__":
    unittest.main()
