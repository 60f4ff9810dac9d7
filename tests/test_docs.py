"""The documentation and the code agree."""

from __future__ import annotations

import os
import re
import unittest

from mm import cli, config
from mm.fronts import editors
from mm.tools import registry
from tests import support


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
    def test_links_lead_somewhere(self):
        for name in documents():
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(name)):
                with self.subTest(document=name, target=target):
                    path = os.path.join(support.PROJECT, os.path.dirname(name), target)
                    self.assertTrue(os.path.exists(path))

    def test_the_table_of_options_is_the_parsers(self):
        rows = []
        for option in cli.OPTIONS:
            names = ", ".join("`%s`" % (name + (" " + option.argument if option.argument else "")) for name in option.names)
            rows.append("| %s | %s |" % (names, option.help))
        self.assertIn("\n".join(rows), read("docs/command-line.md"))

    def test_the_table_of_tools_is_what_the_model_is_told(self):
        settings = config.load("/", {"HOME": "/nonexistent"})
        for tool in registry.built_in(settings):
            parameters = ", ".join("`%s`%s" % (each.name, "" if each.required else "?") for each in tool.parameters)
            row = "| `%s` | %s | `%s` | %s |" % (tool.name, parameters, tool.kind, tool.description)
            with self.subTest(tool.name):
                self.assertIn(row, read("docs/tools.md"))

    def test_the_blocks_of_the_readme_are_those_that_mm_prints(self):
        command = ["/usr/bin/python3", "-I", "-S", "/home/me/mm.pyz", "-acp", "--no-yolo"]
        for name in ("zed", "jetbrains", "codecompanion", "avante", "agent-shell", "acpx"):
            with self.subTest(name):
                self.assertIn(editors.block(name, command), read("README.md"))

    def test_the_architecture_names_every_room(self):
        text = read("docs/architecture.md")
        for folder, _, names in os.walk(os.path.join(support.PROJECT, "mm")):
            for name in names:
                if name.endswith(".py") and name != "__init__.py":
                    with self.subTest(os.path.join(folder, name)):
                        self.assertIn(name, text)


if __name__ == "__main__":
    unittest.main()
