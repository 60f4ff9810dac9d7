"""`-p` and the words of the command line, without a terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import unittest

from tests import support
from tests.fakes.model_server import ModelServer
from tests.support import environment

REPEATED = "I will now look at the file again, as I said. " * 14


def asked(*arguments, stdin=b"", answers=({"text": "ok"},), **more):
    """(how mm ended, what the user said in the first request)."""
    with ModelServer(list(answers), [{"text": "Well."}]) as server:
        done = support.run(*arguments, stdin=stdin, env=environment(MM_URL=server.url, MM_MODEL="m"), **more)
        return done, server.wait_requests(1)[0].body["messages"][1]["content"]


class Words(unittest.TestCase):
    def test_what_is_the_question(self):
        for arguments, stdin, question in (
            (("-p", "two", "words"), b"", "two words"),
            (("two", "words"), b"", "two words"),
            (("two", "words", "-p"), b"", "two words"),
            (("-p", "--yolo"), b"", "--yolo"),
            (("--", "-x"), b"", "-x"),
            (("- one",), b"", "- one"),
            ((), b"piped", "piped"),
            (("-p",), b"piped", "piped"),
            (("explain", "this"), b"piped\n", "explain this\n\n```\npiped\n```"),
            (("help", "me"), b"", "help me"),
            (("/tmp is full",), b"", "/tmp is full"),
        ):
            with self.subTest(arguments):
                self.assertEqual(asked(*arguments, stdin=stdin)[1], question)

    def test_bytes_of_another_encoding_arrive_whole(self):
        for argument, variables in ((b"gr\xfcn", {}), ("grün".encode(), {}),
                                    ("grün".encode(), {"LC_ALL": "C"})):
            with self.subTest(argument), ModelServer([{"text": "ok"}]) as server:
                env = environment(MM_URL=server.url, MM_MODEL="m", **variables)
                subprocess.run([*support.mm("-p"), argument], env=env, stdin=subprocess.DEVNULL, check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.assertEqual(server.wait_requests(1)[0].body["messages"][1]["content"], "grün")
        self.assertEqual(asked("-p", stdin=b"gr\xfcn")[1], "grün")

    def test_a_path_is_attached(self):
        folder = support.scratch_folder()
        open(folder + "/a.txt", "w").close()
        said = asked("-p", "see @a.txt", stdin=b"@a.txt", cwd=folder)[1]
        self.assertEqual(said, "see @a.txt\n\n```\n@a.txt\n```\n[attached file: %s/a.txt]" % folder)

    def test_commands_of_the_chat_are_refused(self):
        for command in ("/new", "/compact", "/nothing here"):
            with self.subTest(command):
                done = support.run("--demo", "-p", command)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("mm: %s is not a skill" % command.split()[0], done.stderr)

    def test_short_options(self):
        for arguments, begins in ((("-v",), "v0."), (("-V",), "v0."), (("help",), "usage: mm"),
                                  (("-h",), "usage: mm")):
            with self.subTest(arguments):
                self.assertTrue(support.run(*arguments).stdout.startswith(begins))
        with ModelServer([{"text": "ok"}]) as server:
            support.run("-m", "other", "-p", "x", env=environment(MM_URL=server.url))
            self.assertEqual(server.wait_requests(1)[0].body["model"], "other")

    def test_the_usage_fits_a_screen(self):
        lines = support.run("--help").stdout.splitlines()
        self.assertLessEqual(len(lines), 40)
        self.assertLessEqual(max(map(len, lines)), 80)


class Answers(unittest.TestCase):
    def test_one_that_was_cut_says_so(self):
        done, _ = asked("-p", "x", answers=({"text": "half"}, {"finish": "length"}))
        self.assertEqual((done.returncode, done.stdout), (3, "half\n"))
        self.assertIn("mm: the answer was cut at the server's length limit", done.stderr)

    def test_one_that_repeated_itself_is_not_joined(self):
        done, _ = asked("-p", "x", answers=({"text": "I see: " + REPEATED},))
        self.assertEqual((done.returncode, done.stdout), (0, "Well.\n"))
        self.assertIn("the answer repeated itself and was cut", done.stderr)

    def test_ctrl_c_keeps_what_was_said(self):
        # shows that the answer has come as far as the thought after it
        path = support.scratch_folder() + "/transcript"

        def has_come():
            with open(path) as file:
                return '"one two "' in file.read()

        with ModelServer([{"text": "one two "}, {"thought": "hm"}, {"hang": True}]) as server:
            env = environment(MM_URL=server.url, MM_MODEL="m")
            process = subprocess.Popen(support.mm("--record", path, "-p", "count"), stdin=subprocess.DEVNULL,
                                       env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            with process:
                support.wait_until(lambda: os.path.exists(path) and has_come())
                process.send_signal(signal.SIGINT)
                self.assertEqual((process.stdout.read(), process.wait(5)), (b"one two \n", 130))


class Recording(unittest.TestCase):
    def test_a_turn_is_recorded_and_replayed(self):
        path = support.scratch_folder() + "/transcript"
        done = support.run("--demo", "--record", path, "-p", "write: a.txt = one\nrun: cat a.txt")
        self.assertIn("bash answered: one", done.stdout)
        replayed = support.run("--replay", path)
        self.assertEqual((replayed.returncode, replayed.stdout), (0, path + ": the same\n"), replayed.stderr)


class Sessions(unittest.TestCase):
    def test_the_last_one_of_the_folder_goes_on(self):
        home, folder = support.scratch_folder(), support.scratch_folder()
        os.makedirs(home + "/.config/mm")
        with open(home + "/.config/mm/config.json", "w") as file:
            json.dump({"sessions": {"enabled": True}}, file)
        with ModelServer(*[[{"text": "ok"}]] * 2) as server:
            env = environment(MM_URL=server.url, MM_MODEL="m", HOME=home)
            for arguments in (("-p", "first"), ("-c", "-p", "second")):
                support.run(*arguments, env=env, cwd=folder)
            messages = server.wait_requests(2)[1].body["messages"]
        self.assertEqual([message["content"] for message in messages[1:]], ["first", "ok", "second"])

    def test_none_to_go_on_with(self):
        done = support.run("-c", "-p", "x", "--demo")
        self.assertEqual(done.returncode, 2)
        self.assertTrue(done.stderr.startswith("mm: sessions are not kept"), done.stderr)


if __name__ == "__main__":
    unittest.main()
