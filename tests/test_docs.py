"""The documentation and the code agree."""

from __future__ import annotations

import ast
import os
import re
import unittest

from mm import cli
from mm.config import config
from mm.config.entries import Agent, LanguageServer
from mm.fronts import editors
from mm.skills import catalogue
from mm.tools import registry
from tests import support
from tests.test_layout import rooms


def read(name):
    with open(os.path.join(support.PROJECT, name), encoding="utf-8") as file:
        return file.read()


def documents():
    yield "README.md"
    yield "CHANGELOG.md"
    for folder, _, names in os.walk(os.path.join(support.PROJECT, "docs")):
        for name in names:
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), support.PROJECT)


class Documentation(unittest.TestCase):
    def assert_holds(self, text, part):
        """assertIn without the whole page in its message."""
        self.assertTrue(part in text, "not in the page: " + part)

    def test_links_lead_somewhere(self):
        for name in documents():
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(name)):
                with self.subTest(document=name, target=target):
                    path = os.path.join(support.PROJECT, os.path.dirname(name), target)
                    self.assertTrue(os.path.exists(path))

    def test_the_table_of_options_is_the_parsers(self):
        rows = []
        for option in cli.OPTIONS:
            names = ", ".join("`%s`" % (name + (" " + option.argument if option.argument else ""))
                              for name in option.names)
            rows.append("| %s | %s |" % (names, option.help))
        self.assert_holds(read("docs/command-line.md"), "\n".join(rows))

    def test_the_table_of_tools_is_what_the_model_is_told(self):
        settings = config.load("/", {"HOME": "/nonexistent"})
        skills = catalogue.find("/", settings, {"HOME": "/nonexistent"}).skills
        folder = support.scratch_folder()
        with open(os.path.join(folder, "a.toy"), "w"):
            pass
        reaching = settings.replace(agents={"other": Agent(("sh",), {}, None, None)},
                                    lsp={"toy": LanguageServer(("sh",), (".toy",))})
        for tool in registry.built_in(settings, skills) + registry.reaching(reaching, folder):
            parameters = ", ".join("`%s`%s" % (each.name, "" if each.required else "?")
                                   for each in tool.parameters)
            row = "| `%s` | %s | `%s` | %s |" % (tool.name, parameters, tool.kind, tool.description)
            with self.subTest(tool.name):
                self.assert_holds(read("docs/tools.md"), row)

    def test_the_readme_has_the_block_for_zed(self):
        command = ["/usr/bin/python3", "-I", "-S", "/home/me/mm.pyz", "-acp", "--no-yolo"]
        self.assert_holds(read("README.md"), editors.block("zed", command))

    def test_the_readme_is_one_page(self):
        self.assertLessEqual(len(read("README.md").splitlines()), 110)

    def test_the_index_names_every_page(self):
        text = read("docs/index.md")
        for name in documents():
            if name.startswith("docs") and name != "docs/index.md":
                self.assert_holds(text, "(%s)" % os.path.basename(name))

    def test_the_architecture_names_every_room(self):
        text = read("docs/architecture.md")
        for folder, _, names in os.walk(os.path.join(support.PROJECT, "mm")):
            for name in names:
                if name.endswith(".py") and name != "__init__.py":
                    with self.subTest(os.path.join(folder, name)):
                        self.assert_holds(text, name)


class WhatIsPure(unittest.TestCase):
    """docs/architecture.md calls rooms pure that do no input or output, wait for nothing and know no time."""

    IMPURE = {"os", "io", "sys", "time", "datetime", "random", "secrets", "tempfile", "shutil", "glob",
              "pathlib", "signal", "socket", "select", "ssl", "threading", "queue", "subprocess", "http",
              "urllib.request"}

    def test_a_pure_room_imports_nothing_impure(self):
        rooms = pure_rooms()
        self.assertGreater(len(rooms), 20)
        for path in rooms:
            with self.subTest(path):
                tree = ast.parse(read(path))
                imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import)
                            for alias in node.names}
                imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
                             and node.module}
                self.assertEqual(imported & self.IMPURE, set())


def pure_rooms() -> list:
    """The paths of the rooms that the table of the house calls pure: names, then what they are."""
    floor, found = "", []
    for line in read("docs/architecture.md").split("```")[1].splitlines():
        floor = (re.findall(r"^  (\w+)/", line) or [floor if line.startswith("   ") else ""])[0]
        for names, what in re.findall(r"((?:\w+\.py(?:, )?)+)(.*?)(?=\s\w+\.py|$)", line):
            if re.search(r"\bpure\b", what):
                found += [path for path, _, _ in rooms().values()
                          if os.path.basename(path) in names.split(", ")
                          and path.startswith(os.path.join("mm", floor))]
    return found


if __name__ == "__main__":
    unittest.main()
