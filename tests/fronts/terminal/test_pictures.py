"""What a person sees: one chat with a command, dialogs, a change, a form, a plan and an answer, at two
widths.

The pictures are in tests/data/terminal; MM_PICTURES=write makes them anew.
"""

from __future__ import annotations

import os
import re
import unittest

from tests import support
from tests.fronts.terminal.terminal import Terminal

FOLDER = os.path.join(support.PROJECT, "tests", "data", "terminal")
DIALOG = r"what to do instead: *\Z"

# What is typed, and what is waited for before the next.
TALK = (
    ("run: printf 'one\\n\\033[31mtwo\\n'; seq 20", DIALOG), ("y", ""),
    ("run: rm -rf build", DIALOG), ("use make clean", ""),
    ("write: 漢字.txt = eins\\nzwei", DIALOG), ("always", ""),
    ("write: 漢字.txt = eins\\ndrei und eine lange Zeile, die nicht ganz zu sehen ist", ""),
    ("ask: Which colour? | red | blue", r"2\. blue\n>\Z"), ("7", r"please\n>\Z"), ("bl", ""),
    ("plan: look; fix; test", DIALOG), ("y", ""),
    ("/plan", ""),
    ("/nothing", ""),
    ('"""think: hm', r"^… *\Z"), ('slow: 12"""', ""),
)


def picture(columns: int) -> str:
    with Terminal("--demo", "--no-yolo", "think:", "hello", columns=columns) as terminal:
        terminal.idle()
        for typed, awaited in TALK:
            terminal.enter(typed)
            if awaited:
                terminal.wait_for(awaited)
            else:
                terminal.idle()
        terminal.type("\x04")
        terminal.wait()
        return re.sub(r"v\d+\.\d+\.\d+", "v<version>", terminal.picture.text()) + "\n"


class Pictures(unittest.TestCase):
    maxDiff = None

    def check(self, columns: int) -> None:
        path = os.path.join(FOLDER, "chat-%d.txt" % columns)
        seen = picture(columns)
        if os.environ.get("MM_PICTURES") == "write":
            with open(path, "w", encoding="utf-8") as file:
                file.write(seen)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(seen, file.read())

    def test_forty_columns(self):
        self.check(40)

    def test_a_hundred_columns(self):
        self.check(100)


if __name__ == "__main__":
    unittest.main()
