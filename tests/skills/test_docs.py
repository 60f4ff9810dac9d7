"""docs/skills.md says what the code says."""

from __future__ import annotations

import os
import re
import subprocess
import unittest

from mm.config import config
from mm.skills import catalogue, invocation
from mm.tools import read_skill
from mm.tools.tool import SHOWN
from tests import support
from tests.skills.folders import PLACES, SkillsTest

with open(os.path.join(support.PROJECT, "docs", "skills.md"), encoding="utf-8") as _file:
    PAGE = _file.read()

# Each text with what stands for its values on the page.
TEXTS = [
    invocation.INTRODUCTION, invocation.HINT, catalogue.THE_BUNDLED_ONE,
    invocation.USE % "<name>", invocation.HIDDEN % "<name>",
    catalogue.SHADOWED % ("<name>", "<file>", "<other file>"), catalogue.NO_NAME % "<file>",
    catalogue.BAD_NAME % ("<file>", "<name>"), catalogue.OTHER_FOLDER % ("<file>", "<name>"),
    (catalogue.NOT_AT_THE_TOP % ("<file>", 9)).replace("9", "<n>"),
    catalogue.LEADS_OUT % ("<file>", "<folder>"), catalogue.SKIPPED % ("<file>", "<reason>"),
    catalogue.NAMELESS, catalogue.NO_DESCRIPTION, catalogue.NO_FRONT_MATTER, catalogue.NOT_CLOSED,
    catalogue.TOO_MANY % (catalogue.SKILLS_LIMIT, "<file>"),
    catalogue.TOO_LARGE % ("<folder>", catalogue.ENTRIES_LIMIT),
    catalogue.NOT_SEARCHED % ("<folder>", "<reason>"), read_skill.ALREADY_READ % "<name>",
    read_skill.UNKNOWN % ("<name>", "<names>"), read_skill.DIRECTORY % "<folder>",
    read_skill.FILES % "scripts/x.py, references/y.md", read_skill.FAILED % ("<name>", "<reason>"),
    (read_skill.CUT % (0, read_skill.CUT_IN_FILE % "<file>")).replace("0", "<n>"),
    (catalogue.MORE_WARNINGS % 0).replace("0", "<n>"),
]

# Limits as the page words them.
LIMITS = [
    "at most %d characters" % catalogue.NAME_LIMIT, "%d characters are kept, %d stand" % (
        catalogue.DESCRIPTION_LIMIT, invocation.PROMPT_LIMIT),
    "within %d KiB; %d MiB of the file" % (catalogue.HEAD_BYTES >> 10, catalogue.FILE_BYTES >> 20),
    "%d warnings" % catalogue.WARNINGS_LIMIT, "at most %d characters or a tenth" % SHOWN,
    "at most %d, down to" % read_skill.FILES_NAMED, "longer than %d KiB" % (invocation.COMMANDS_BYTES >> 10),
    "`%s`, " % catalogue.FILE_NAMES[0] and "`%s` if that is missing" % catalogue.FILE_NAMES[1],
]


class ThePage(unittest.TestCase):
    def test_it_has_every_text(self):
        for text in TEXTS:
            with self.subTest(text):
                self.assertIn("`%s`" % text, PAGE)

    def test_no_text_of_the_rooms_is_missing_here(self):
        listed = sum(isinstance(value, str) and "%" in value and name.isupper()
                     for room in (catalogue, invocation, read_skill) for name, value in vars(room).items())
        # FILES, and CUT_IN_FILE within CUT
        self.assertEqual(listed, sum(text.count("<") > 0 for text in TEXTS) + 2)

    def test_it_has_the_limits(self):
        for text in LIMITS:
            with self.subTest(text):
                self.assertIn(text, PAGE)

    def test_it_lists_the_bundled_skills(self):
        settings = config.load(support.scratch_folder(), support.environment())
        skills = catalogue.find(settings.folder, settings, support.environment()).skills
        for skill in skills:
            if skill.folder is None:
                self.assertIn("`- %s: %s`" % (skill.name, skill.description), PAGE)


class TheExample(SkillsTest):
    def test_it_works_as_pasted(self):
        example = re.search(r"```\n(mkdir.*?)```", PAGE, re.DOTALL)[1]
        subprocess.run(["bash", "-e", "-c", example], env=support.environment(HOME=self.home), check=True)
        found, warnings = self.find()
        self.assertEqual((found["greetings"].path, warnings),
                         (self.path(PLACES["user"] + "/greetings/SKILL.md"), ()))


if __name__ == "__main__":
    unittest.main()
