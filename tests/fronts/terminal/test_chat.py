"""The chat, as it is typed and seen in a real terminal: commands, dialogs, cancels, and what breaks a
terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
import unittest

from tests import support
from tests.fakes.model_server import ModelServer
from tests.fronts.terminal.terminal import Terminal
from tests.support import pid_in, wait_until

ASK = r"what to do instead: *\Z"


# A shell with job control: when mm is stopped it says so, and goes on with it after Enter.
SHELL = ("bash", "-c", 'set -m; "$@"; echo stopped; read line; fg', "bash")


WITHOUT_READLINE = """
import runpy, sys
sys.modules["readline"] = None
while not sys.argv[0].endswith(".pyz"):
    del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def sent(server, count: int) -> list:
    """What the user said in the last request of `count`."""
    messages = server.wait_requests(count)[-1].body["messages"]
    return [message["content"] for message in messages if message["role"] == "user"]


def with_server(server, **more) -> dict:
    return dict(MM_URL=server.url, MM_MODEL="m", **more)


class Talking(unittest.TestCase):
    def test_a_message_of_several_lines(self):
        with ModelServer([{"text": "ok"}]) as server, Terminal(env=with_server(server)) as terminal:
            terminal.idle()
            terminal.enter('"""one')
            terminal.wait_for(r"^… *\Z")
            terminal.enter("")
            terminal.wait_for(r"^… *\n… *\Z")
            terminal.enter('two"""')
            terminal.idle()
            self.assertEqual(sent(server, 1), ["one\n\ntwo"])

    def test_paths_and_skills_as_in_an_editor(self):
        folder = support.scratch_folder()
        open(folder + "/a.txt", "w").close()
        server = ModelServer([{"text": "ok"}])
        self.addCleanup(server.close)
        with Terminal(env=with_server(server), cwd=folder) as terminal:
            terminal.idle()
            terminal.enter("/bg-jobs see @a.txt")
            terminal.idle()
            said, = sent(server, 1)
        self.assertTrue(said.startswith("$bg-jobs see @a.txt\n[attached file: %s/a.txt]\n" % folder), said)

    def test_tab_completes(self):
        folder = support.scratch_folder()
        os.mkdir(folder + "/source")
        open(folder + "/source/main.py", "w").close()
        server = ModelServer([{"text": "ok"}])
        self.addCleanup(server.close)
        with Terminal(env=with_server(server), cwd=folder) as terminal:
            terminal.idle()
            terminal.type("/he\t")
            terminal.wait_for(r"^> /help *\Z")
            terminal.type("\x15$bg\t@so\tma\t\r")
            terminal.idle()
            self.assertTrue(sent(server, 1)[0].startswith("$bg-jobs @source/main.py"), sent(server, 1))

    def test_the_history_is_the_users_alone(self):
        home = support.scratch_folder()
        with Terminal("--demo", "think: x", env={"HOME": home}) as terminal:
            terminal.idle()
            for text in ("think: first", " think: secret"):
                terminal.enter(text)
                terminal.idle()
            terminal.type("\x04")
            self.assertEqual(terminal.wait(), 0)
        path = home + "/.local/state/mm/history"
        with open(path) as file:
            self.assertEqual(file.read(), "think: first\n")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with Terminal("--demo", "think: x", env={"HOME": home}) as terminal:
            terminal.idle()
            terminal.type("\x1b[A")
            terminal.wait_for(r"^> think: first\Z")

    def test_sessions_are_listed_and_loaded(self):
        home = support.scratch_folder()
        os.makedirs(home + "/.config/mm")
        with open(home + "/.config/mm/config.json", "w") as file:
            json.dump({"sessions": {"enabled": True}}, file)
        with Terminal("--demo", "think: the first one", env={"HOME": home}) as terminal:
            terminal.idle()
            terminal.enter("/sessions")
            self.assertRegex(terminal.idle(), r"  1\. .* think: the first one \(this one\)")
            terminal.enter("/load 7")
            self.assertIn("usage: /load N", terminal.idle())
            terminal.type("\x04")
            terminal.wait()
        with ModelServer([{"text": "ok"}]) as server:
            env = with_server(server, HOME=home)
            with Terminal("-c", env=env, cwd=terminal.cwd) as again:
                self.assertRegex(again.idle(), r"\n> think: the first one\nI am mm's")
                again.enter("go on")
                again.idle()
            self.assertEqual(sent(server, 1), ["think: the first one", "go on"])

    def test_no_session_to_go_on_with(self):
        with Terminal("-c", "--demo") as terminal:
            self.assertEqual(terminal.wait(), 2)
            self.assertIn("mm: sessions are not kept: set sessions.enabled", terminal.picture.text())

    def test_a_session_from_elsewhere_is_cleaned(self):
        home, folder = support.scratch_folder(), support.scratch_folder()
        os.makedirs(home + "/.config/mm")
        with open(home + "/.config/mm/config.json", "w") as file:
            json.dump({"sessions": {"enabled": True}}, file)
        os.makedirs(folder + "/.mm/sessions")
        hostile = "a\x1b]0;title\x07b\x1b[2J"
        with open(folder + "/.mm/sessions/x.json", "w") as file:
            json.dump({"version": 1, "title": hostile, "cwd": folder, "messages": [
                {"role": "user", "content": hostile}, {"role": "assistant", "content": hostile}]}, file)
        with Terminal("--demo", "-c", env={"HOME": home}, cwd=folder) as terminal:
            terminal.idle()
            terminal.enter("/sessions")
            terminal.idle()
        self.assertNotIn("\x1b]0;", terminal.raw)
        self.assertNotIn("\x1b[2J", terminal.raw)
        self.assertIn("> ab\nab\n>", terminal.picture.text())

    def test_an_answer_is_cleaned(self):
        with ModelServer([{"text": "a\x1b[?1000hb\x1b]0;title\x07c\x9bd"}]) as server:
            with Terminal("hello", env=with_server(server)) as terminal:
                terminal.idle()
        self.assertIn("\nabcd\n", terminal.picture.text())
        self.assertNotIn("\x1b[?1000h", terminal.raw)
        self.assertNotIn("title", terminal.raw)


class TheTour(unittest.TestCase):
    def test_it_leads_through_the_chat(self):
        with Terminal("--demo") as terminal:
            self.assertIn("# 1 of 8: the chat", terminal.idle())
            for step, shown in ((2, "hello"), (3, "+    print('hello, world')"), (4, "3. blue")):
                terminal.enter("next")
                terminal.wait_for("# %d of 8" % step)
                terminal.wait_for(re.escape(shown))
                if step < 4:
                    terminal.idle()
            terminal.enter("2")
            self.assertIn("q1 Which one do you like?: green", terminal.idle())
            terminal.enter("next")
            self.assertIn("▶ look at the code", terminal.idle())
            terminal.enter("next")
            terminal.wait_for("running")
            terminal.type("\x03")
            terminal.idle()
            for step in (7, 8):
                terminal.enter("next")
                self.assertIn("# %d of 8" % step, terminal.idle())
            terminal.enter("next")
            self.assertIn("The tour is over", terminal.idle())


class Asking(unittest.TestCase):
    def test_words_instead_of_a_permission_reach_the_model(self):
        call = {"call": {"name": "bash", "arguments": {"command": "touch ran"}}}
        with ModelServer([call], [{"text": "ok"}]) as server:
            with Terminal("--no-yolo", "go", env=with_server(server)) as terminal:
                terminal.wait_for(ASK)
                terminal.enter("not here")
                terminal.idle()
            result = server.wait_requests(2)[-1].body["messages"][-1]["content"]
        self.assertEqual(result, "[command rejected by the user]\nThe user says: not here")
        self.assertFalse(os.path.exists(terminal.cwd + "/ran"))

    def test_a_change_is_shown_whole_before_it_is_made(self):
        lines = ["line %d" % number for number in range(300)]
        lines[120] = "a" * 9000 + " rm -rf"
        arguments = {"path": "a.sh", "content": "\n".join(lines) + "\n"}
        with ModelServer([{"call": {"name": "write_file", "arguments": arguments}}], [{"text": "ok"}]) as server:
            for extra in ((), ("-p",)):
                with self.subTest(extra), Terminal("--no-yolo", *extra, "go", env=with_server(server)) as terminal:
                    shown = terminal.wait_for(ASK)
                    for number, line in enumerate(lines):
                        self.assertIn(line if number != 120 else " rm -rf", shown)
                    self.assertFalse(os.path.exists(terminal.cwd + "/a.sh"))
                server.script([{"call": {"name": "write_file", "arguments": arguments}}], [{"text": "ok"}])

    def test_what_was_typed_before_is_no_answer(self):
        def call(command):
            return {"call": {"name": "bash", "arguments": {"command": command}}}

        with ModelServer([call("until [ -e go ]; do sleep 0.05; done")], [call("touch ran")],
                         [{"text": "ok"}]) as server:
            with Terminal("--no-yolo", "go", env=with_server(server)) as terminal:
                terminal.wait_for(ASK)
                terminal.enter("y")
                terminal.wait_for("running")
                terminal.enter("y")
                open(terminal.cwd + "/go", "w").close()
                terminal.wait_for("touch ran(.*\n)+?.*" + ASK)
                terminal.enter("n")
                terminal.idle()
        self.assertFalse(os.path.exists(terminal.cwd + "/ran"))

    def test_a_form_is_taken_back_and_declined(self):
        for key, said in (("\x03", "cancelled the question"), ("\x04", "declined to answer")):
            with self.subTest(said), Terminal("--demo", "ask: Which? | a | b") as terminal:
                terminal.wait_for(r"2\. b\n>\Z")
                terminal.type(key)
                terminal.wait_for("the user %s" % said)

    def test_another_agent_asks_this_user(self):
        agent = support.mm("--demo", "-acp", "--no-yolo")
        config = {"agents": {"other": {"command": agent}}, "yolo": False}
        home = support.scratch_folder()
        os.makedirs(home + "/.config/mm")
        with open(home + "/.config/mm/config.json", "w") as file:
            json.dump(config, file)
        with Terminal("--demo", "think: x", env={"HOME": home}) as terminal:
            terminal.idle()
            terminal.enter("/ask")
            terminal.wait_for("usage: /ask AGENT QUESTION. Agents: other")
            terminal.enter("/ask other run: echo from there")
            terminal.wait_for(ASK)
            terminal.enter("y")
            terminal.idle()
            self.assertIn("bash answered: from there", terminal.picture.text())
            terminal.enter("/ask other ask: Which? | a | b")
            terminal.wait_for(r"2\. b\n>\Z")
            terminal.enter("1")
            terminal.wait_for("answered: .*a$")


class Cancelling(unittest.TestCase):
    def test_ctrl_c_ends_a_command_alone(self):
        folder = support.scratch_folder()
        with Terminal("--demo", "run: echo $$ > pid; sleep 600; true", cwd=folder) as terminal:
            pid = pid_in(folder + "/pid")
            terminal.type("\x03")
            terminal.idle()
            wait_until(lambda: not support.group_alive(pid), 3, "the end of the command")
            terminal.enter("think: still here")
            self.assertIn("I have thought about it", terminal.idle())

    def test_twice_leaves(self):
        folder = support.scratch_folder()
        with Terminal("--demo", "run: echo $$ > pid; sleep 600; true", cwd=folder) as terminal:
            pid_in(folder + "/pid")
            terminal.type("\x03")
            terminal.idle()
            terminal.type("\x03")
            self.assertEqual(terminal.wait(), 130)

    def test_at_the_prompt_it_clears_the_line(self):
        with Terminal("--demo", "think: x") as terminal:
            terminal.idle()
            for _ in range(3):
                terminal.type("half a")
                terminal.wait_for(r"^> half a\Z")
                terminal.type("\x03")
                terminal.idle()
            terminal.enter("think: whole")
            self.assertIn("> think: whole\nI have thought", terminal.idle())


class Breaking(unittest.TestCase):
    """What breaks a terminal loses nothing and leaves nobody behind."""

    def leave_by(self, how) -> Terminal:
        """A chat whose command runs while `how(terminal)` ends it; the command has ended, too."""
        folder = support.scratch_folder()
        with Terminal("--demo", "run: echo $$ > pid; sleep 600; true", cwd=folder) as terminal:
            pid = pid_in(folder + "/pid")
            how(terminal)
            wait_until(lambda: not support.group_alive(pid), 5, "the end of the command")
        return terminal

    def test_the_terminal_is_closed(self):
        self.leave_by(lambda terminal: terminal.close())

    def test_signals_that_end_it(self):
        for name, number in (("quit", signal.SIGQUIT), ("hang up", signal.SIGHUP),
                             ("terminate", signal.SIGTERM)):
            def end(terminal, number=number):
                terminal.send_signal(number)
                self.assertEqual(terminal.wait(), 128 + number)

            with self.subTest(name):
                self.leave_by(end)

    def test_it_is_killed(self):
        self.leave_by(lambda terminal: terminal.send_signal(signal.SIGKILL))

    def test_quit_at_the_prompt_gives_the_terminal_back(self):
        import termios

        with Terminal("--demo", "think: x") as terminal:
            terminal.idle()
            terminal.type("\x1c")
            self.assertEqual(terminal.wait(), 131)
            self.assertTrue(termios.tcgetattr(terminal.master)[3] & termios.ECHO)

    def test_stopped_and_continued_at_the_prompt(self):
        with Terminal("--demo", "think: x", command=SHELL) as terminal:
            terminal.idle()
            terminal.type("think: ab")
            terminal.wait_for(r"^> think: ab\Z")
            terminal.type("\x1a")
            terminal.wait_for(r"^stopped")
            terminal.type("\r")
            terminal.wait_for(r"^> think: ab\Z")
            terminal.enter("c")
            self.assertIn("> think: abc\nI have thought", terminal.idle())

    def test_stopped_and_continued_in_a_turn(self):
        with Terminal("--demo", "slow: 20", command=SHELL) as terminal:
            terminal.wait_for("1 2 3")
            terminal.type("\x1a")
            terminal.wait_for(r"^stopped")
            terminal.type("\r")
            self.assertIn("19 20", terminal.idle())

    def test_resized_in_a_turn(self):
        with Terminal("--demo", "slow: 10", columns=100) as terminal:
            terminal.wait_for("1 2 3")
            terminal.resize(40)
            self.assertIn("9 10", terminal.idle())
            terminal.enter("think: on")
            self.assertIn("I have thought", terminal.idle())

    def test_a_large_paste_is_one_message(self):
        lines = ["line %d, %s" % (number, "x" * 80) for number in range(3_000 if support.SHORT else 11_000)]
        text = "\n".join(lines)
        for name, before, after, env in (("marked", "\x1b[200~", "\x1b[201~\r", {}),
                                         ("unmarked", "", "\r", {"TERM": "dumb"})):
            with self.subTest(name), ModelServer([{"text": "ok"}]) as server:
                with Terminal(env=with_server(server, **env)) as terminal:
                    terminal.idle()
                    terminal.type(before + text.replace("\n", "\r") + after)
                    terminal.wait_for(r"^ok\n")
                    said, = sent(server, 1)
                    self.assertEqual(said.split("\n"), lines)

    def test_terminals_that_can_little(self):
        for name, env, command in (
            ("dumb", {"TERM": "dumb"}, ()), ("no colours", {"NO_COLOR": "1"}, ()),
            ("no locale", {"LANG": None, "LC_ALL": "C"}, ()),
            ("no readline", {}, (sys.executable, "-c", WITHOUT_READLINE)),
        ):
            with self.subTest(name), Terminal("--demo", "think: x", env=env, command=command) as terminal:
                terminal.wait_for(r"thought about it.\n>\Z")
                terminal.enter("run: echo 'grün 漢字'")
                seen = terminal.wait_for(r"answered: .*\n(.*\n)*>\Z")
                self.assertIn("bash answered: grün 漢字", seen)
                terminal.type("\x04")
                self.assertEqual(terminal.wait(), 0)
                if name in ("dumb", "no colours"):
                    self.assertNotIn("\x1b[1m", terminal.raw)


class TheStart(unittest.TestCase):
    def test_the_prompt_comes_soon(self):
        times = []
        for _ in range(3):
            begin = time.monotonic()
            with Terminal("--demo", "-m", "x") as terminal:
                terminal.wait_for("^mm v")
                times.append(time.monotonic() - begin)
        self.assertLess(min(times), 1)  # the bench has the figure


if __name__ == "__main__":
    unittest.main()
