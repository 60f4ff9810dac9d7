"""What is done about a request that failed: when it is made again, how it is changed, and what is said
meanwhile.
"""

from __future__ import annotations

import email.utils
import threading
import time
import unittest

from mm.cancel import Cancel, Cancelled
from mm.events import Text
from mm.model import chat, retries
from mm.model.chat import ModelError
from mm.model.learned import Learned
from tests.fakes.model_server import ModelServer
from tests.model import streams

# What a cancel takes, in seconds, on a machine that is busy with the rest of the tests.
SOON = 0.7

GOOD = [{"text": "hi"}]
LOADING = [{"status": 503, "body": {"error": {"code": 503, "message": "Loading model",
                                              "type": "unavailable_error"}}}]
QUESTION = {"role": "user", "content": "q"}


def refusal(status, message, **headers):
    return [{"status": status, "body": {"error": {"message": message}}, "headers": headers}]


def ask(server, cancel=None, messages=(QUESTION,), told=None, tools=(), learned=None, **more) -> list:
    asked = streams.server(getattr(server, "url", server), **more)
    if isinstance(server, ModelServer):
        learned = vars(server).setdefault("learned", Learned())
    listener = chat.Listener(log=(told if told is not None else []).append)
    return list(chat.complete(asked, list(messages), list(tools), cancel or Cancel(), listener=listener,
                              learned=learned))


class Schedule(unittest.TestCase):
    def test_pauses(self):
        cases = [
            ("loading", [(0, None), (1, None), (3, None), (7, None), (12, None), (599, None), (600, None)],
             [1, 2, 4, 5, 5, 5, None]),
            ("loading", [(0, 60.0)], [1]),
            ("busy", [(9, None)] * 6, [1, 2, 4, 5, 5, None]),
            ("busy", [(0, 0.0)] * 6, [0, 0, 0, 0, 0, None]),
            ("busy", [(0, 30.0), (30, None)], [30, 2]),
            ("busy", [(0, 600.0)], [600]),
            ("busy", [(0, 601.0)], [None]),
        ]
        for kind, failures, expected in cases:
            with self.subTest(kind, failures=failures):
                self.assertEqual(expected, [retries.pause(kind, count, *failure) for count,
                                            failure in enumerate(failures, 1)])

    def test_retry_after(self):
        cases = [("3", 3), ("0.5", 0.5), (" 7 ", 7), ("", None), ("soon", None), ("-3", None),
                 ("1e999", float("inf")), ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("99 bottles", None)]
        for text, expected in cases:
            with self.subTest(text):
                self.assertEqual(expected, retries.seconds_in(text))
        self.assertAlmostEqual(60, retries.seconds_in(email.utils.formatdate(time.time() + 60, usegmt=True)),
                               delta=2)


class Again(unittest.TestCase):
    def test_waits_while_the_model_is_loaded(self):
        told, begin = [], time.monotonic()
        with ModelServer(LOADING, GOOD) as server:
            self.assertIn(Text("hi"), ask(server, told=told))
            self.assertEqual(2, len(server.requests))
        self.assertGreaterEqual(time.monotonic() - begin, 1)
        self.assertEqual(["the model is still loading…"], told)

    def test_a_busy_server_says_how_long(self):
        told = []
        busy = [{"status": 429, "body": "slow down", "headers": {"Retry-After": "0"}}]
        with ModelServer(busy, busy, busy, busy, busy, GOOD) as server:
            self.assertIn(Text("hi"), ask(server, told=told))
        self.assertEqual(["the server is busy; waiting…"], told)
        with ModelServer(busy) as server:
            with self.assertRaisesRegex(ModelError, r"is busy \(429\): slow down") as caught:
                ask(server)
            self.assertEqual(6, len(server.requests))
        self.assertEqual(("busy", 0), (caught.exception.kind, caught.exception.retry_after))
        with ModelServer(refusal(503, "", **{"Retry-After": "3600"})) as server:
            self.assertRaisesRegex(ModelError, r"is busy \(503\)", ask, server)
            self.assertEqual(1, len(server.requests))

    def test_a_cancel_ends_every_wait_at_once(self):
        states = [("loading", LOADING), ("busy", refusal(429, "", **{"Retry-After": "60"})),
                  ("no byte", [{"hang": True}])]
        for name, steps in states:
            with self.subTest(name), ModelServer(steps) as server:
                cancel, ended = Cancel(), []

                def run():
                    try:
                        ask(server, cancel)
                    except Cancelled:
                        ended.append(time.monotonic())

                thread = threading.Thread(target=run, daemon=True)
                thread.start()
                server.wait_requests(1)
                time.sleep(0.1)  # into the pause
                begin = time.monotonic()
                cancel.cancel()
                thread.join(10)
                self.assertLess(ended[0] - begin, SOON)
                self.assertEqual(1, len(server.requests))

    def test_a_break_before_the_first_word(self):
        cases = [
            ("closed the connection without an answer", [{"drop": True}]),
            ("closed the connection without an answer", [{"reset": True}]),
            ("closed the connection in the middle of its answer", [{"raw": b": ping\n\n"}, {"drop": True}]),
            ("closed the connection in the middle of its answer",
             [{"call": {"name": "bash", "arguments": '{"a'}}, {"drop": True}]),
            ("failed (500): no memory", refusal(500, "no memory")),
            ("failed (200): list index out of range", [{"data": '{"error": {"message": "list index out of '
                                                                'range"}}'}, {"data": "[DONE]"}]),
        ]
        for words, steps in cases:
            told = []
            with self.subTest(words), ModelServer(steps, GOOD) as server:
                self.assertIn(Text("hi"), ask(server, told=told))
                self.assertEqual([f"the model server at {server.url} {words}; the second try succeeded"],
                                 told)
                server.script(steps)
                with self.assertRaises(ModelError) as caught:
                    ask(server, told=told)
                self.assertIn(words, str(caught.exception))
                self.assertEqual(1, len(told), "the error tells it")
                self.assertEqual(4, len(server.requests))

    def test_what_is_not_asked_for_again(self):
        cases = [
            ("dropped", [{"text": "half"}, {"drop": True}]),
            ("server_crash", [{"thought": "hm"}, {"data": '{"error": "no memory"}'}]),
            ("loading", [{"text": "half"}, {"data": '{"error": "Loading model"}'}]),
            ("bad_request", refusal(400, "no")), ("bad_request", refusal(418, "no")),
            ("bad_request", refusal(422, "stream_options")), ("bad_request", refusal(400, "unknown field "
                                                                                          "reasoning_content")),
            ("auth", refusal(401, "no")), ("model_not_found", refusal(404, "model 'x' not found")),
            ("model_not_loaded", refusal(400, "model is not loaded")),
            ("tools_unsupported", refusal(400, "m does not support tools")),
            ("context_overflow", refusal(400, "exceed_context_size_error")),
            ("request_too_large", refusal(413, "")), ("template", refusal(500, "Jinja Exception: no")),
            ("trailing_assistant", refusal(400, "response prefill")),
            ("bad_history_arguments", refusal(500, "Failed to parse tool call arguments as JSON")),
            ("wrong_url", refusal(404, "File Not Found")),
            ("proxy", [{"status": 502, "body": "bad gateway"}]), ("empty", [{"data": "[DONE]"}]),
            ("redirect", [{"status": 301, "body": "", "headers": {"Location": "/v2"}}]),
        ]
        for kind, steps in cases:
            with self.subTest(steps), ModelServer(steps) as server:
                with self.assertRaises(ModelError) as caught:
                    ask(server, extra={"stream_options": {}})
                self.assertEqual(kind, caught.exception.kind)
                # A system message is the one thing left that a template may not like; here there is none.
                self.assertEqual(1, len(server.requests))

    def test_a_base_url_without_v1_is_kept(self):
        nothing = [{"status": 404, "body": "404 page not found"}]
        lm_studio = [{"raw": b'{"error":"Unexpected endpoint or method. (POST /chat/completions)"}'}]
        page = [{"type": "text/html"}, {"raw": b"<!doctype html><title>LM</title>"}]
        for wrong in (nothing, lm_studio, page):
            told = []
            with self.subTest(wrong), ModelServer(wrong, GOOD) as server:
                base = server.url[:-len("/v1")]
                learned = Learned()
                for _ in range(2):
                    self.assertIn(Text("hi"), ask(base, told=told, learned=learned))
                self.assertEqual(["/chat/completions", "/v1/chat/completions", "/v1/chat/completions"],
                                 [each.path for each in server.requests])
                self.assertEqual([f"{base} answers at {server.url}: it is asked there from now on"], told)

    def test_a_wrong_base_url_is_named(self):
        with ModelServer([{"status": 404, "body": "404 page not found"}]) as server:
            base = server.url[:-len("/v1")] + "/"
            with self.assertRaises(ModelError) as caught:
                ask(base)
            self.assertEqual(2, len(server.requests))
        self.assertEqual(f"{base[:-1]} answers, but not as an OpenAI API (404: 404 page not found): does the URL end in /v1?",
                         str(caught.exception))

    def test_behind_v1_another_failure_is_told(self):
        with ModelServer([{"status": 404, "body": "404 page not found"}], refusal(401, "no")) as server:
            self.assertRaisesRegex(ModelError, f"{server.url} wants an API key", ask,
                                   server.url[:-len("/v1")])


class Mending(unittest.TestCase):
    def sent(self, steps, messages, told=None, times=2):
        """The bodies of the requests that one refusal and then only good answers bring."""
        with ModelServer(steps, GOOD) as server:
            for _ in range(times):
                self.assertIn(Text("hi"), ask(server, messages=messages, told=told))
            return [each.body for each in server.requests]

    def test_what_helped_is_remembered_and_told_once(self):
        system, again = {"role": "system", "content": "s"}, {"role": "user", "content": "again"}
        thought = {"role": "assistant", "content": "a", "reasoning_content": "t"}
        bad = {"role": "assistant", "content": "",
               "tool_calls": [{"id": "call_1", "type": "function",
                               "function": {"name": "x", "arguments": "{"}}]}
        result = {"role": "tool", "tool_call_id": "call_1", "name": "x", "content": "r"}
        good = dict(bad, tool_calls=[dict(bad["tool_calls"][0], function={"name": "x", "arguments": "{}"})])
        merged = {"role": "user", "content": "q\n\nagain"}
        cases = [
            ("with one system message and the roles in turn", refusal(500, "Jinja Exception: roles must "
                                                                           "alternate"),
             [system, QUESTION, again], [system, merged]),
            ("without a system message", refusal(500, "Jinja Exception: roles must alternate"),
             [system, QUESTION], [{"role": "user", "content": "s\n\nq"}]),
            ("without a system message", refusal(400, "System role not supported"), [system, QUESTION],
             [{"role": "user", "content": "s\n\nq"}]),
            ("without an answer at the end", refusal(400, "Assistant response prefill is incompatible with "
                                                          "enable_thinking."),
             [QUESTION, {"role": "assistant", "content": "a"}], [QUESTION]),
            ("with {} for arguments that are not JSON", refusal(400, "invalid tool call arguments"),
             [QUESTION, bad, result], [QUESTION, good, result]),
            ("without reasoning", refusal(400, "unknown field: messages[1].reasoning_content"),
             [QUESTION, thought, again], [QUESTION, {"role": "assistant", "content": "a"}, again]),
        ]
        for name, steps, messages, expected in cases:
            told = []
            with self.subTest(name, messages=messages):
                bodies = self.sent(steps, messages, told)
                self.assertEqual([messages, expected, expected], [body["messages"] for body in bodies])
                self.assertRegex("\n".join(told), r"^http://\S+ accepts requests only %s: they are sent that "
                                                  r"way from now on$" % name.replace("{}", r"\{\}"))

    def test_two_mendings_one_after_the_other(self):
        with ModelServer(refusal(422, "stream_options: extra fields not permitted"),
                         refusal(400, "System role not supported"), GOOD) as server:
            for _ in range(2):
                ask(server, messages=[{"role": "system", "content": "s"}, QUESTION])
            found = [("stream_options" in each.body, each.body["messages"][0]["role"])
                     for each in server.requests]
        self.assertEqual([(True, "system"), (False, "system"), (False, "user"), (False, "user")], found)

    def test_what_did_not_help_is_not_kept(self):
        with ModelServer(refusal(400, "System role not supported"), refusal(400, "no"), GOOD) as server:
            messages = [{"role": "system", "content": "s"}, QUESTION]
            self.assertRaisesRegex(ModelError, r"refused the request \(400\): no", ask, server,
                                   messages=messages)
            ask(server, messages=messages)
            self.assertEqual(messages, server.requests[-1].body["messages"])

    def test_only_llama_cpp_is_asked_for_the_progress(self):
        with ModelServer(GOOD) as server:
            for product in ("llama.cpp", "vllm", None):
                ask(server, product=product)
            self.assertEqual([True, None, None], [each.body.get("return_progress")
                                                  for each in server.requests])

    def test_no_tools_are_no_field(self):
        self.assertEqual([{"model", "messages", "stream", "stream_options"}],
                         [set(body) for body in self.sent(GOOD, [QUESTION], times=1)])


def mcp(*names) -> list:
    return [streams.tool(name) for name in ("bash", *names)]


class Schemas(unittest.TestCase):
    BAD = refusal(400, "Failed to initialize samplers: failed to parse grammar")

    def asked(self, *answers, tools):
        """(the names of the tools in each request, what the user has to know) of two sessions."""
        noticed, learned = [], Learned()
        with ModelServer(*answers, GOOD) as server:
            for _ in range(2):
                list(chat.complete(streams.server(server.url), [QUESTION], tools, Cancel(), None,
                                   chat.Listener([].append, noticed.append), learned))
            sent = [[tool["function"]["name"] for tool in each.body.get("tools", ())]
                    for each in server.requests]
        return sent, noticed

    def test_the_only_mcp_server_is_left_out(self):
        sent, noticed = self.asked(self.BAD, tools=mcp("mcp__x__a", "mcp__x__b"))
        self.assertEqual([["bash", "mcp__x__a", "mcp__x__b"], ["bash"], ["bash"]], sent)
        self.assertEqual([noticed[0]] * 2, noticed)
        self.assertIn("MCP server x (Failed to initialize samplers: failed to parse grammar)", noticed[0])
        self.assertIn("tools.disabled", noticed[0])

    def test_of_several_each_is_tried_alone(self):
        sent, noticed = self.asked(self.BAD, self.BAD, tools=mcp("mcp__x__a", "mcp__y__b", "mcp__z__c"))
        self.assertEqual(["bash", "mcp__x__a", "mcp__z__c"], sent[-1])
        self.assertEqual(4, len(sent))
        self.assertIn("MCP server y", "".join(noticed))

    def test_at_last_all_are_left_out(self):
        sent, noticed = self.asked(self.BAD, self.BAD, self.BAD, tools=mcp("mcp__x__a", "mcp__y__b"))
        self.assertEqual(["bash"], sent[-1])
        self.assertEqual(2, len(set(noticed)))

    def test_one_that_is_named_goes_first(self):
        sent, _ = self.asked(refusal(400, "Invalid schema for function 'mcp__y__b'"),
                             tools=mcp("mcp__x__a", "mcp__y__b"))
        self.assertEqual(["bash", "mcp__x__a"], sent[1])

    def test_without_mcp_servers_it_is_an_error(self):
        with ModelServer(self.BAD) as server:
            with self.assertRaises(ModelError) as caught:
                ask(server, tools=mcp())
        self.assertEqual("schema", caught.exception.kind)
        self.assertIn("tools.disabled", str(caught.exception))
        self.assertEqual(1, len(server.requests))


class Models(unittest.TestCase):
    def test_an_unknown_model_names_the_others(self):
        missing = refusal(404, "model 'qwen9' not found")
        cases = [
            (("a", "b\x1bc"), "ollama", '; it has: a, b c; choose one with --model, or: ollama pull qwen9'),
            (("a",), None, "; it has: a; choose one with --model"),
            (None, "ollama", ": ollama pull qwen9"),
        ]
        for models, product, expected in cases:
            with self.subTest(models), ModelServer(missing, models=models) as server:
                with self.assertRaises(ModelError) as caught:
                    ask(server, product=product, model="qwen9")
                self.assertEqual('model "qwen9" is not on this server' + expected, str(caught.exception))

    def test_the_asked_name_stands_in_for_none(self):
        with ModelServer(refusal(404, "model not found"), models=()) as server:
            self.assertRaisesRegex(ModelError, '^model "m" is not on this server$', ask, server)


if __name__ == "__main__":
    unittest.main()
