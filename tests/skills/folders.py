"""A home and a project with skills in them, as the tests of the skills' rooms need them."""

from __future__ import annotations

import json
import os
import unittest

from mm.config import config, trust
from mm.skills import catalogue
from tests import support

# Short names for the folders that are searched.
PLACES = {
    "project": "project/.mm/skills", "project agents": "project/.agents/skills",
    "project claude": "project/.claude/skills", "user": "home/.config/mm/skills",
    "user agents": "home/.agents/skills", "user claude": "home/.claude/skills",
}


class SkillsTest(unittest.TestCase):
    """A folder with `home` and `project` in it, empty and new for each test."""

    def setUp(self):
        self.folder = support.scratch_folder()
        self.home, self.project = self.path("home"), self.path("project")
        os.makedirs(self.home)
        os.makedirs(self.project)
        self.environ = {"HOME": self.home}

    def path(self, name):
        return os.path.join(self.folder, *name.split("/"))

    def put(self, name, content=""):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
        return path

    def skill(self, place, name="greetings", description=None, **fields):
        """Puts a skill whose description says where it is, unless another is given; returns its SKILL.md."""
        given = dict({"name": name, "description": description or place}, **fields)
        lines = "".join("%s: %s\n" % (key.replace("_", "-"), value) for key, value in given.items())
        return self.put("%s/%s/SKILL.md" % (PLACES.get(place, place), name),
                        "---\n%s---\nbody of %s\n" % (lines, place))

    def configure(self, place, **keys):
        return self.put(("project/.mm" if place == "project" else "home/.config/mm") + "/config.json",
                        json.dumps(keys))

    def trust(self, folder=None):
        """`mm --trust` in a folder that has a configuration file, or gets one."""
        folder = folder or self.project
        path = os.path.join(folder, ".mm", "config.json")
        if not os.path.exists(path):
            self.put(os.path.relpath(path, self.folder).replace(os.sep, "/"), "{}")
        trust.trust(folder, self.environ)

    def config(self, start=None):
        return config.load(start or self.project, self.environ)

    def find(self, cwd=None, start=None):
        """({name: Skill} without the bundled ones, warnings)."""
        skills, warnings, _ = catalogue.find(cwd or self.project, self.config(start), self.environ)
        return {skill.name: skill for skill in skills if skill.folder}, warnings

    def winner(self, name="greetings", **where):
        """The description of the one that counts; "bundled" for a bundled one."""
        skills = catalogue.find(where.get("cwd") or self.project, self.config(where.get("start")),
                                self.environ).skills
        found = [skill for skill in skills if skill.name == name]
        return found[0].description if found and found[0].folder else "bundled" if found else None
