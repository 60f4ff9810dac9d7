"""The player against a tiny agent: what it lets pass, and the first thing it finds that is not as written."""

from __future__ import annotations

import concurrent.futures
import io
import os
import sys
import shutil
import tempfile
import time
import unittest

from mm.errors import UserError
from mm.transcripts import player, transcript

AGENT = [sys.executable, "-S", os.path.join(os.path.dirname(os.path.dirname(__file__)), "fakes",
                                            "tiny_agent.py")]

OPENING = """\
> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"<cwd>"}}
< {"jsonrpc":"2.0","id":1,"result":{"sessionId":"<id>"}}
"""
ANSWER = '< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}\n'
DATA_X = 'data: {\\"x\\":1}'


def prompt(words: str) -> str:
    return ('> {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"<id>",'
            '"prompt":[{"type":"text","text":"%s"}]}}\n' % words)


def chunk(text: str, sign: str = "<") -> str:
    return ('%s {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"<id>","update":{'
            '"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' % (sign, text))


def play(text: str, cwd=None):
    return player.play(transcript.parse(text), AGENT, cwd)


class WhatPasses(unittest.TestCase):
    def test_the_same(self):
        for name, text in (
            ("a conversation", OPENING + prompt("say hello") + chunk("hello") + ANSWER),
            ("a broken line", '> {oops\n< '
                              '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"<any>"}}\n'),
            ("lines in one write", '> {"id":1,"method":"a"}\n> {"id":2,"method":"b"}\n'
             '< {"jsonrpc":"2.0","id":1,"result":"<any>"}\n< {"jsonrpc":"2.0","id":2,"result":"<any>"}\n'),
            ("any order where it says so", OPENING + prompt("two") + chunk("first", "<*")
             + chunk("second", "<*") + ANSWER),
            ("the model's stream", OPENING + prompt("ask q")
             + '~ {"model":"scripted","messages":[{"content":"q"}]}\n'
             '= data: {"x":1}\n= data: [DONE]\n' + chunk(DATA_X) + chunk("data: [DONE]") + ANSWER),
            ("the model's stream, drop", OPENING + prompt("ask q") + '~ {}\n= data: {"x":1}\n= '
                                                                     '{"drop":true}\n'
             + chunk(DATA_X) + ANSWER.replace("end_turn", "end_turn")),
            ("the model's error", OPENING + prompt("ask q") + '~ {}\n= {"status":503,"body":"busy"}\n'
             + chunk("503 busy") + ANSWER),
            ("a model that hangs", OPENING + prompt("ask q") + '~ {}\n= {"hang":true}\n'
             '> {"method":"session/cancel","params":{"sessionId":"<id>"}}\n' + chunk("cancel came")),
            ("a model that never answers", OPENING + prompt("ask q") + '~ {}\n'
             '> {"method":"session/cancel","params":{"sessionId":"<id>"}}\n' + chunk("cancel came")),
            ("a model that hangs in the stream", OPENING + prompt("ask q")
             + '~ {}\n= data: {"x":1}\n= {"hang":true}\n' + chunk(DATA_X)
             + '> {"method":"session/cancel","params":{"sessionId":"<id>"}}\n' + chunk("cancel came")),
            ("stderr", OPENING + "! tiny agent -acp\n! [acp] session <id>: new, <cwd>\n"),
            ("some of stderr", OPENING + "! [acp] session <id>: new, <cwd>\n"),
            ("all of stderr", "# stderr: all\n" + OPENING + "! tiny agent -acp\n! [acp] session <id>: new, "
                                                            "<cwd>\n"),
            ("arguments", "# args: --no-yolo\n" + OPENING + "! tiny agent -acp --no-yolo\n"),
            ("files", "# cwd: file deep/a.txt \"two\\nlines\"\n" + OPENING + prompt("file deep/a.txt")
             + chunk("two\\nlines") + ANSWER),
            ("links", "# cwd: file a.txt \"x\"\n# cwd: link b <cwd>/a.txt\n" + OPENING + prompt("file b")
             + chunk("x") + ANSWER),
            ("the configuration", '# config: {"yolo": false}\n' + OPENING
             + prompt("file <home>/.config/mm/config.json")
             + chunk('{\\"yolo\\": false}') + ANSWER),
            ("the environment", "# env: X=<cwd>/y\n" + OPENING + prompt("env X") + chunk("'<cwd>/y'")
             + ANSWER),
            ("no other environment", OPENING + prompt("env SECRET_OF_THE_TESTS") + chunk("None") + ANSWER),
            ("the model's name", "# model: tiny\n" + OPENING + prompt("env MM_MODEL") + chunk("'tiny'")
             + ANSWER),
            ("an empty home", OPENING + prompt("env HOME") + chunk("'<home>'") + ANSWER),
            ("live output that is not written", OPENING + prompt("live") + ANSWER),
            ("live output that is", OPENING + prompt("live")
             + '< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":'
             '"<id>","update":{"sessionUpdate":"tool_call_update","toolCallId":"call_1","status":"in_progress","content":"<any>"}}}\n'
             + ANSWER),
            ("what comes after stdin was closed", OPENING + prompt("late") + "# stdin: closed\n"
             + chunk("late") + ANSWER),
            ("a restart", OPENING + prompt("say a") + chunk("a") + ANSWER + "# restart: ended\n"
             + prompt("say b") + chunk("b") + ANSWER),
            ("what stderr says after a restart", "# stderr: all\n! tiny agent -acp\n# restart: ended\n! tiny "
                                                 "agent -acp\n"),
            ("a restart of an agent that would go on", OPENING + prompt("linger") + ANSWER + "# restart: "
                                                                                             "killed\n"
             + OPENING),
            ("requests after a restart", "# restart: killed\n" + OPENING + prompt("ask q")
             + "~ {}\n= data: [DONE]\n"
             + chunk("data: [DONE]") + ANSWER),
            ("the agent's requests", OPENING + prompt("permission") + '< {"jsonrpc":"2.0","id":1,"method":'
             '"session/request_permission","params":"<any>"}\n> {"jsonrpc":"2.0","id":1,"result":"yes"}\n'
             + chunk('\\"yes\\"')),
        ):
            with self.subTest(name):
                os.environ["SECRET_OF_THE_TESTS"] = "x"
                parting = play(text)
                self.assertIsNone(parting, parting and player.report(name, parting))

    def test_in_a_folder_of_the_users_choice(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "mine"), "w", encoding="utf-8") as file:
                file.write("kept")
            self.assertIsNone(play(OPENING + prompt("file mine") + chunk("kept") + ANSWER, folder))
            self.assertEqual(os.listdir(folder), ["mine"])


class WhatIsFound(unittest.TestCase):
    def test_the_first_difference(self):
        # At the same time: some of them wait in vain for seconds.
        pool, cases = concurrent.futures.ThreadPoolExecutor(8), []
        self.addCleanup(pool.shutdown)
        for name, text, line, path, told in (
            ("another text", OPENING + prompt("say hello") + chunk("hullo") + ANSWER, 4,
             "params.update.content.text", '"hello"'),
            ("another line", OPENING + prompt("say hello") + ANSWER, 4, "id", "nothing"),
            ("the wrong order", OPENING + prompt("two") + chunk("first") + chunk("second") + ANSWER, 4,
             "params.update.content.text", '"second"'),
            ("one line too many", OPENING + prompt("two") + chunk("second") + ANSWER, 5, "id", "nothing"),
            ("a line too many at the end", OPENING + prompt("two") + chunk("second") + chunk("first"), None,
             "", "another line"),
            ("a line too many before the next", OPENING + prompt("say x") + "! no such line\n" + prompt("x"),
             3, "", "another line"),
            ("no JSON", OPENING + prompt("stray") + ANSWER, 4, "", "none: "),
            ("another request", OPENING + prompt("ask q") + '~ {"messages":[{"content":"p"}]}\n= data: x\n'
             + chunk("data: x") + ANSWER, 4, "messages[1].content", '"q"'),
            ("a request too many", OPENING + prompt("ask q") + chunk("<any>") + ANSWER, None, "", "one more"),
            ("a request too early", OPENING + prompt("ask q") + chunk("data: x") + ANSWER + prompt("say x")
             + "~ {}\n= data: x\n", 7, "", "it came before"),
            ("a traceback", OPENING + prompt("crash") + ANSWER, None, "", "one"),
            ("a line before a restart", OPENING + prompt("two") + chunk("second") + "# restart: ended\n",
             None, "", "another line"),
            ("an early end", OPENING + prompt("quit") + ANSWER, 4, "", "the end of the agent's stdout"),
            ("another line on stderr", "# stderr: all\n! hello\n" + OPENING, 2, "", "! tiny agent -acp"),
            ("one more line on stderr", "# stderr: all\n! tiny agent -acp\n" + OPENING, None, "",
             "! [acp] session"),
            ("silence", "# deadline: 3\n" + OPENING + prompt("mute") + ANSWER, 5, "", "nothing for 3 s"),
            ("silence on stderr", "# deadline: 3\n" + OPENING + "! no such line\n", 4, "", "nothing for 3 s"),
            ("no request", "# deadline: 3\n" + OPENING + "~ {}\n= data: x\n", 4, "", "nothing for 3 s"),
        ):
            cases.append((name, line, path, told, pool.submit(play, text)))
        for name, line, path, told, played in cases:
            with self.subTest(name):
                parting = played.result()
                self.assertIsNotNone(parting)
                self.assertEqual((parting.line and parting.line.number, parting.path), (line, path))
                self.assertIn(told, parting.got)

    def test_an_agent_that_outlives_its_stdin(self):
        goodbye, player.GOODBYE = player.GOODBYE, 0.2
        self.addCleanup(setattr, player, "GOODBYE", goodbye)
        started = time.monotonic()
        parting = play("# deadline: 3\n" + OPENING + prompt("linger") + ANSWER)
        self.assertEqual(parting.got, "it goes on")
        self.assertLess(time.monotonic() - started, 15)

    def test_the_report_names_the_place_both_values_and_what_stderr_said(self):
        text = OPENING + prompt("say hello") + chunk("hullo") + ANSWER
        told = player.report("x.txt", play(text)).splitlines()
        self.assertEqual(told[:3], ["x.txt:4: differs at params.update.content.text", '  expected  "hullo"',
                                    '  got       "hello"'])
        self.assertEqual(told[3], "  the line  " + text.splitlines()[3])
        self.assertIn('"text": "hello"', told[4])
        self.assertEqual(told[5:7], ["  stderr", "    tiny agent -acp"])


class Replay(unittest.TestCase):
    def replay(self, text: str):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "t.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        out = io.StringIO()
        return player.replay(path, AGENT, out), out.getvalue().replace(path, "t.txt")

    def test_the_same(self):
        self.assertEqual(self.replay(OPENING), (0, "t.txt: the same\n"))

    def test_a_difference(self):
        code, told = self.replay(OPENING + prompt("say a") + chunk("b") + ANSWER)
        self.assertEqual((code, told.splitlines()[0]), (1, "t.txt:4: differs at params.update.content.text"))

    def test_what_is_no_transcript(self):
        with self.assertRaises(UserError) as caught:
            self.replay("hello")
        self.assertIn("t.txt: transcript line 1 starts with none of", str(caught.exception))
        with self.assertRaises(UserError):
            player.replay("/no/such/file", AGENT, io.StringIO())


if __name__ == "__main__":
    unittest.main()
