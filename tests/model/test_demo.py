"""The demo model, asked over its real loopback server."""

from __future__ import annotations

import os
import re
import time
import unittest
import urllib.error
import urllib.request

from mm.cancel import Cancel, Cancelled
from mm.events import Text
from mm.model import chat, demo, probe, find
from mm.model.chat import ModelError, ToolCall, Usage
from mm.model.loopback import DONE, EVENT_STREAM, Loopback, Reply, error_reply, sse
from tests import support
from tests.model import streams

ALL_TOOLS = [directive.tool for directive in demo.DIRECTIVES if directive.tool] + ["mcp__fs__read"]


def user(text):
    return {"role": "user", "content": text}


def assistant(text, *calls):
    return {"role": "assistant", "content": text, "tool_calls": [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for number, name in enumerate(calls, 1)]}


def models(server):
    return find.names_in(probe.ask(server, "/models", Cancel()).value)


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.loopback = demo.start()
        cls.server = streams.server(cls.loopback.url, model=demo.MODEL)

    @classmethod
    def tearDownClass(cls):
        cls.loopback.close()

    def ask(self, *messages, tools=ALL_TOOLS):
        offered = [{"type": "function", "function": {"name": name}} for name in tools]
        return streams.ask(self.server, messages=[{"role": "system", "content": "You are"}, *messages],
                           tools=offered)

    def later(self, text, **more):
        """The answer to a message that is not the first."""
        return streams.digest(self.ask(user("hello"), assistant("hello"), user(text), **more))

    def test_directives_that_call_a_tool(self):
        cases = [
            ("run: ls -la | wc", "bash", {"command": "ls -la | wc"}),
            ("  run:ls  ", "bash", {"command": "ls"}),
            ("please\nrun: ls\nnow", "bash", {"command": "ls"}),
            ("list the files", "bash", {"command": "ls"}),
            ("What is in this folder?", "bash", {"command": "ls"}),
            ("ls", "bash", {"command": "ls"}),
            ("read: src/a b.py", "read_file", {"path": "src/a b.py"}),
            ("write: a.txt = x = y\\nz", "write_file", {"path": "a.txt", "content": "x = y\nz"}),
            ("edit: a.txt = old -> new\\n", "edit_file",
             {"path": "a.txt", "old_string": "old", "new_string": "new\n"}),
            ("edit: a.txt = old -> ", "edit_file", None),
            ("ask: Which? | A | B", "ask_user", {"questions": [{"question": "Which?", "type": "choice",
                                                                "options": ["A", "B"]}]}),
            ("ask: Why?", "ask_user", {"questions": [{"question": "Why?", "type": "text"}]}),
            ("plan: one; two;", "plan", {"action": "start", "steps": ["one", "two"]}),
            ("skill: bg-jobs", "read_skill", {"name": "bg-jobs"}),
            ("fetch: https://a.example/x", "fetch_content", {"url": "https://a.example/x"}),
            ("fetch: https://a.example/x -> y", "fetch_content", {"url": "https://a.example/x", "output": "y"}),
            ("lsp: definition a.py main", "lsp", {"action": "definition", "path": "a.py", "symbol": "main"}),
            ("agent: bob what is it?", "ask_agent", {"agent": "bob", "prompt": "what is it?"}),
            ('mcp: fs read {"path": "a"}', "mcp__fs__read", {"path": "a"}),
        ]
        for text, tool, arguments in cases:
            with self.subTest(text):
                answer = self.later(text)
                self.assertEqual([{"name": tool, "arguments": arguments}] if arguments else [],
                                 answer["calls"])
                self.assertEqual("tool_calls" if arguments else "stop", answer["finish"])
                if tool != "bash":
                    self.assertEqual(f"the tool {tool} is not offered here",
                                     self.later(text, tools=["bash"])["text"]
                                     if arguments else f"the tool {tool} is not offered here")

    def test_a_wrong_directive_says_what_it_wants(self):
        for text in ("run:", "write: a.txt", "edit: a = b", "ask: |", "plan: ;", "slow: x", "slow: 0", "mcp: fs", "mcp: fs read [1]", "agent: bob", "fetch:", "lsp:",
                     "fail: 200", "fail: x", "think:"):
            with self.subTest(text):
                word = text.partition(":")[0]
                argument = next(directive.argument for directive in demo.DIRECTIVES if directive.word == word)
                self.assertEqual(f"`{word}:` wants {argument}", self.later(text)["text"])

    def test_anything_else_names_the_directives(self):
        text = self.later("http: //run")["text"]
        for directive in demo.DIRECTIVES:
            self.assertIn(f"`{directive.word}: {directive.argument}`", text)

    def test_only_the_first_answer_explains_the_script(self):
        for text in ("hello", "run: ls", "ask: x"):
            with self.subTest(text):
                self.assertTrue(streams.digest(self.ask(user(text)))["text"].startswith(demo.GREETING))
                self.assertNotIn(demo.GREETING, self.later(text)["text"])

    def test_reasoning_and_several_calls_in_one_answer(self):
        events = self.ask(user("think: first this\nrun: a\nrun: b"))
        answer = streams.digest(events)
        self.assertEqual("first this", answer["reasoning"])
        self.assertEqual(["a", "b"], [call["arguments"]["command"] for call in answer["calls"]])
        self.assertEqual(2, answer["usage"][3])

    def test_it_streams_word_by_word_and_counts(self):
        events = self.ask(user("hello"))
        words = [event.text for event in events if isinstance(event, Text)]
        self.assertGreater(len(words), 20)
        self.assertTrue(all(len(word.split()) <= 1 for word in words))
        usage, = [event for event in events if isinstance(event, Usage)]
        self.assertEqual(len(words), usage.output)
        self.assertGreater(usage.input, 10)
        self.assertEqual(events, self.ask(user("hello")))

    def test_after_a_tool_result_it_says_what_came(self):
        cases = [
            ([("bash", "a.py\nb.py\n")], "bash answered 2 lines:\n\na.py\nb.py"),
            ([("bash", "[exit code 3]")], "bash answered: [exit code 3]"),
            ([("bash", "")], "bash answered nothing."),
            ([("read_file", "x"), ("bash", "y")], "read_file answered: x\n\nbash answered: y"),
            ([("bash", "\n".join(str(n) for n in range(100)))],
             "bash answered 100 lines, the first 12 of them:\n\n" + "\n".join(str(n) for n in range(12))),
        ]
        for results, expected in cases:
            with self.subTest(expected):
                replies = [{"role": "tool", "tool_call_id": f"call_{number}", "content": output}
                           for number, (_, output) in enumerate(results, 1)]
                events = self.ask(user("run: x"), assistant("", *(name for name, _ in results)), *replies)
                self.assertEqual(expected, streams.digest(events)["text"])

    def test_slow_takes_its_time_and_can_be_cancelled(self):
        start = time.monotonic()
        self.assertEqual("1 2 3 4", self.later("slow: 4")["text"])
        self.assertGreater(time.monotonic() - start, 4 * demo.SECONDS_A_WORD * 0.9)
        cancel = Cancel()
        answer = chat.complete(self.server, [user("slow: 10000")], [], cancel)
        next(answer)
        cancel.cancel()
        self.assertRaises(Cancelled, list, answer)

    def test_fail_answers_with_the_status(self):
        for status in (400, 418, 599):
            with self.subTest(status), self.assertRaisesRegex(ModelError, rf"\({status}\): {demo.FAILURE}"):
                self.ask(user(f"fail: {status}"))

    def test_a_summary_names_what_the_user_said(self):
        ask = "Write a hand-over of this conversation: Goal, Done, Next step."
        talk = [user("call me Bob"), assistant("yes", "bash", "bash"),
                {"role": "tool", "tool_call_id": "call_1", "content": "x"}, user("use tabs\nonly")]
        first = streams.digest(self.ask(*talk, user(ask)))["text"]
        for fact in ("call me Bob", "use tabs only", "bash was called 2 time(s)"):
            self.assertIn(fact, first)
        second = streams.digest(self.ask(user(first), assistant("ok"), user("and now"), assistant("ok"),
                                         user(ask)))["text"]
        for fact in ("call me Bob", "use tabs only", "and now"):
            self.assertIn(fact, second)
        transcript = "Summarise this conversation.\n\nuser: call me Bob\nassistant: run: ls\nuser: use tabs\n"
        alone = streams.digest(streams.ask(self.server, messages=[user(transcript)]))
        self.assertIn("call me Bob", alone["text"])
        self.assertIn("use tabs", alone["text"])
        self.assertEqual([], alone["calls"])

    def test_it_is_the_only_model(self):
        self.assertEqual([demo.MODEL], models(self.server))

    def test_the_documentation_has_the_same_table(self):
        with open(os.path.join(support.PROJECT, "docs", "demo.md"), encoding="utf-8") as file:
            rows = re.findall(r"(?m)^\| `(\w+): (.+?)` \| (.+?) \|$", file.read())
        self.assertEqual([(directive.word, directive.argument.replace("|", "\\|"), directive.does)
                          for directive in demo.DIRECTIVES], rows)


class LoopbackServer(unittest.TestCase):
    def setUp(self):
        self.replies = []
        self.loopback = Loopback(lambda body: self.replies.pop(0)(body), "a-model")
        self.addCleanup(self.loopback.close)

    def post(self, path, data):
        request = urllib.request.Request(self.loopback.url + path, data)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def test_it_answers_what_the_function_returns(self):
        self.replies.append(lambda body: Reply(200, EVENT_STREAM, [sse(body), b"", DONE]))
        self.assertEqual((200, b'data: {"x":"\\u00e9"}\n\ndata: [DONE]\n\n'),
                         self.post("/chat/completions", '{"x":"é"}'.encode()))
        self.replies.append(lambda body: error_reply(429, "slow down"))
        self.assertEqual(429, self.post("/chat/completions", b"{}")[0])

    def test_what_it_does_not_serve(self):
        for path, data, status in (("/other", b"{}", 404), ("/chat/completions", b"[]", 400),
                                   ("/chat/completions", b"{", 400)):
            with self.subTest(path, data=data):
                self.assertEqual(status, self.post(path, data)[0])
        self.assertEqual(["a-model"], models(streams.server(self.loopback.url)))

    def test_pieces_stop_when_the_client_is_gone(self):
        closed = []

        def chunks(body):
            def pieces():
                try:
                    while True:
                        yield sse({"choices": [{"delta": {"content": "x"}}]})
                        time.sleep(0.005)
                finally:
                    closed.append(True)
            return Reply(200, EVENT_STREAM, pieces())

        self.replies.append(chunks)
        answer = chat.complete(streams.server(self.loopback.url), [], [], Cancel())
        self.assertEqual(Text("x"), next(answer))
        answer.close()
        deadline = time.monotonic() + 10
        while not closed and time.monotonic() < deadline:
            time.sleep(0.005)
        self.assertEqual([True], closed)

    def test_closed_it_refuses(self):
        self.loopback.close()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                models(streams.server(self.loopback.url))
            except ModelError as error:
                self.assertEqual("refused", error.kind)
                return
            time.sleep(0.005)
        self.fail("still there")


if __name__ == "__main__":
    unittest.main()
