"""The documentation and the code agree."""

from __future__ import annotations

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
            names = ", ".join("`%s`" % (name + (" " + option.argument if option.argument else "")) for name in option.names)
            rows.append("| %s | %s |" % (names, option.help))
        self.assert_holds(read("docs/command-line.md"), "\n".join(rows))

    def test_the_table_of_tools_is_what_the_model_is_told(self):
        settings = config.load("/", {"HOME": "/nonexistent"})
        skills = catalogue.find("/", settings, {"HOME": "/nonexistent"}).skills
        folder = support.scratch_folder()
        with open(os.path.join(folder, "a.toy"), "w"):
            pass
        reaching = settings.replace(agents={"other": Agent(("sh",), {}, None, None)}, lsp={"toy": LanguageServer(("sh",), (".toy",))})
        for tool in registry.built_in(settings, skills) + registry.reaching(reaching, folder):
            parameters = ", ".join("`%s`%s" % (each.name, "" if each.required else "?") for each in tool.parameters)
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


if __name__ == "__main__":
    unittest.main()
