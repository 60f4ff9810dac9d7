"""The documentation and the code agree."""

from __future__ import annotations

import html
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

    def test_the_blocks_of_the_readme_are_those_that_mm_prints(self):
        command = ["/usr/bin/python3", "-I", "-S", "/home/me/mm.pyz", "-acp", "--no-yolo"]
        for name in ("zed", "jetbrains", "codecompanion", "avante", "agent-shell", "acpx"):
            with self.subTest(name):
                self.assert_holds(read("README.md"), editors.block(name, command))

    def test_the_picture_shows_what_the_demo_prints(self):
        folder = support.scratch_folder()
        for name in ("LICENSE", "README.md", "hello.py"):
            with open(os.path.join(folder, name), "w"):
                pass
        done = support.run("--demo", "-p", "list the files", cwd=folder)
        shown = re.findall(r">([^<>]+)</text>", read("docs/picture.svg"))
        printed = [line for line in (done.stderr + done.stdout).splitlines() if line]
        self.assertEqual([html.unescape(line) for line in shown[1:-1]], printed)

    def test_the_architecture_names_every_room(self):
        text = read("docs/architecture.md")
        for folder, _, names in os.walk(os.path.join(support.PROJECT, "mm")):
            for name in names:
                if name.endswith(".py") and name != "__init__.py":
                    with self.subTest(os.path.join(folder, name)):
                        self.assert_holds(text, name)


if __name__ == "__main__":
    unittest.main()
