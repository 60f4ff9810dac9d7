"""`--editor`: the blocks, the command in them, and the page that shows them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unittest

from mm.errors import UserError
from mm.fronts import editors
from tests import support

COMMAND = ["/usr/bin/python3.11", "-I", "-S", "/home/me/mm.pyz", "-acp", "--no-yolo"]
ODD = ['C:\\Program Files\\py "3"\\python.exe', "-I", "-S", "/home/mé/mm.pyz", "-acp", "--no-yolo"]

INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'


def argv_in(name, text):
    """The command in a block, read back as the editor would."""
    if name in ("zed", "jetbrains"):
        (server,) = json.loads(text)["agent_servers"].values()
        return [server["command"]] + server["args"]
    if name == "acpx":
        return json.loads(text)["agents"]["mm"]["argv"]
    where = {"codecompanion": r"default = \{ (.*) \} \}", "avante": r"command = (.*),\n +args = \{ (.*) \},",
             "agent-shell": r":command (.*)\n +:command-params '\((.*)\)\n"}[name]
    words = " ".join(re.search(where, text).groups())
    return [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r'"((?:[^"\\]|\\.)*)"', words)]


class Blocks(unittest.TestCase):
    def test_each_block_holds_the_command_word_by_word(self):
        for name in ("zed", "jetbrains", "codecompanion", "avante", "agent-shell", "acpx"):
            for command in (COMMAND, ODD):
                self.assertEqual(argv_in(name, editors.block(name, command)), command, name)

    def test_the_json_is_what_the_editor_reads(self):
        self.assertEqual(json.loads(editors.block("zed", ["p", "-x"])),
                         {"agent_servers": {"mm": {"type": "custom", "command": "p", "args": ["-x"],
                                                   "env": {}}}})
        self.assertEqual(json.loads(editors.block("jetbrains", ["p", "-x"])),
                         {"agent_servers": {"mm": {"command": "p", "args": ["-x"], "env": {}}}})
        self.assertEqual(json.loads(editors.block("acpx", ["p", "-x"])),
                         {"agents": {"mm": {"argv": ["p", "-x"]}}})

    def test_brackets_and_quotes_are_balanced(self):
        for name in editors.BLOCKS:
            text = re.sub(r'"(?:[^"\\]|\\.)*"', "", editors.block(name, ODD))
            self.assertNotIn('"', text)
            for opening, closing in ("()", "{}", "[]"):
                self.assertEqual(text.count(opening), text.count(closing), name)

    def test_an_editors_name_prints_all_its_blocks(self):
        self.assertEqual(editors.block("neovim", COMMAND),
                         editors.block("codecompanion", COMMAND) + "\n\n" + editors.block("avante", COMMAND))
        self.assertEqual(editors.block("Emacs", COMMAND), editors.block("agent-shell", COMMAND))

    def test_an_unknown_name(self):
        for name, hint in (("zde", "(did you mean zed?)"), ("vscode", ""), ("", ""), ("x" * 10000, "")):
            with self.assertRaises(UserError) as caught:
                editors.block(name, COMMAND)
            self.assertEqual(caught.exception.exit_code, 2)
            self.assertIn(hint, str(caught.exception))
            self.assertIn("allowed: zed, jetbrains, neovim", str(caught.exception))

    def test_the_page_shows_these_blocks(self):
        with open(os.path.join(support.PROJECT, "docs", "editors.md"), encoding="utf-8") as file:
            page = file.read()
        for name in ("zed", "jetbrains", "codecompanion", "avante", "agent-shell", "acpx"):
            self.assertIn("\n" + editors.block(name, COMMAND) + "\n```", page)
        for name in editors.BLOCKS:
            self.assertIn("`%s`" % name, page)


class Command(unittest.TestCase):
    """The printed command, run from another folder with nothing in the environment."""

    def printed(self, *argv, **where):
        done = subprocess.run(list(argv) + ["--editor", "zed"], stdout=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, check=True, **where)
        return argv_in("zed", done.stdout.decode("utf-8"))

    def starts(self, command):
        scratch = support.scratch_folder()
        done = subprocess.run(command, input=INITIALIZE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=scratch, env={"HOME": scratch})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["result"]["agentInfo"]["name"], "bob", done.stderr)

    def test_from_the_zipapp(self):
        archive = support.pyz()
        command = self.printed(sys.executable, os.path.basename(archive), cwd=os.path.dirname(archive))
        self.assertEqual(command, [os.path.realpath(sys.executable), "-I", "-S", archive, "-acp",
                                   "--no-yolo"])
        self.starts(command)

    def test_from_a_clone(self):
        command = self.printed(sys.executable, "-m", "mm", cwd=support.PROJECT)
        self.assertEqual(command[3], os.path.join(support.PROJECT, "mm"))
        self.starts(command)

    def test_the_real_interpreter_is_named(self):
        link = os.path.join(support.scratch_folder(), "python3")
        os.symlink(os.path.realpath(sys.executable), link)
        self.assertEqual(self.printed(link, support.pyz())[0], os.path.realpath(sys.executable))


if __name__ == "__main__":
    unittest.main()
