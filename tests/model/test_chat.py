"""The answer of a model server, in every shape that servers are known to send, over a real connection where
it matters.
"""

from __future__ import annotations

import json
import time
import unittest

from mm.events import Text, Thought
from mm.model import chat
from mm.model.answer import ENDLESS, MOST, MOST_CALLS
from mm.model.learned import Learned
from mm.model.chat import Finish, ModelError, ToolCall, Usage
from mm.model.sse import LONGEST
from tests.fakes.model_server import ModelServer
from tests.model import streams


def delta(**fields) -> dict:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def call(index=None, ident=None, name=None, arguments=None) -> dict:
    """One piece of a tool call, with only what is given."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    piece = {key: value for key, value in (("index", index), ("id", ident), ("function", function))
             if value is not None}
    return delta(tool_calls=[piece])


def calls_of(*chunks) -> list:
    answer = chat.Answer()
    for chunk in chunks:
        answer.take(chunk)
    return [(event.name, event.arguments) for event in answer.end() if isinstance(event, ToolCall)]


def texts_of(*pieces) -> list:
    answer = chat.Answer()
    events = [event for piece in pieces for event in answer.take(delta(content=piece))]
    return [event.text for event in events + answer.end() if isinstance(event, Text)]


class Calls(unittest.TestCase):
    def test_which_pieces_belong_to_which_call(self):
        cases = [
            ("one call in pieces", [("bash", '{"a":1}')],
             [call(0, "x", "bash", ""), call(0, None, None, '{"a"'), call(0, None, None, ":1}")]),
            ("indexes that begin at 1 and skip", [("a", "{}"), ("b", "{}")],
             [call(1, "x", "a", "{}"), call(4, "y", "b", "{}")]),
            ("pieces that alternate", [("a", '{"x":1}'), ("b", '{"y":2}')],
             [call(0, "x", "a", '{"x"'), call(1, "y", "b", '{"y"'), call(0, None, None, ":1}"),
              call(1, None, None, ":2}")]),
            ("the same index and another id", [("a", "{}"), ("a", "{}")],
             [call(0, "x", "a", "{}"), call(0, "y", "a", "{}")]),
            ("the same index, no ids, complete arguments", [("a", '{"q":"}"}'), ("a", '{"q":2}')],
             [call(0, None, "a", '{"q":"}"}'), call(0, None, "a", '{"q":2}')]),
            ("no index, no ids, other names, no arguments", [("a", ""), ("b", "")],
             [call(None, None, "a", ""), call(None, None, "b", "")]),
            ("the name in every piece", [("a", '{"q":"\\"{"}')],
             [call(0, "x", "a", '{"q":"\\'), call(0, "x", "a", '"{'), call(0, "x", "a", '"}')]),
            ("the name and the id in every piece, also in those behind the end", [("a", '{"q":1}\n')],
             [call(0, "x", "a", '{"q":1}'), call(0, "x", "a", "\n"), call(0, "x", "a", "")]),
            ("one id for all calls", [("a", "{}"), ("a", '{"q":2}')],
             [call(0, "x", "a", "{}"), call(0, "x", "a", '{"q":2}')]),
            ("an id per piece and the name in the first", [("a", '{"q":1}')],
             [call(0, "x", "a", '{"q"'), call(0, "y", None, ":1}")]),
            ("pieces without index go to the call with the id", [("a", "{}"), ("b", "{}")],
             [call(None, "x", "a", "{"), call(None, "y", "b", "{"), call(None, "x", None, "}"),
              call(None, "y", None, "}")]),
            ("a call without a name is none", [], [call(0, "x", None, "{}")]),
            ("an object", [("a", {"q": [1]})], [call(0, "x", "a", {"q": [1]})]),
            ("a list where an object should be", [("a", "[1]")], [call(0, "x", "a", [1])]),
            ("half a character in each of two pieces", [("a", '{"q":"\U0001f642"}')],
             [call(0, "x", "a", '{"q":"\ud83d'), call(0, None, None, '\ude42"}')]),
            ("markup behind the name", [("bash", "{}")],
             [call(0, "x", "functions.bash<|channel|>commentary", "{}")]),
            ("shapes that make no sense", [], [delta(tool_calls=[None, 3, {"function": None}, {}]),
                                               delta(tool_calls={"a": 1}), {"choices": [None, 1]},
                                               {"choices": {}}, {"choices": [{"delta": [1]}]}]),
        ]
        for name, expected, chunks in cases:
            with self.subTest(name):
                self.assertEqual(expected, calls_of(*chunks))

    def test_many_named_pieces_take_linear_time(self):
        def seconds(size):
            text = json.dumps({"content": "{}[]\\\"" * (size // 9)})
            pieces = [call(0, "x", "write_file", text[at:at + 4]) for at in range(0, len(text), 4)]
            best = float("inf")
            for _ in range(3):
                start = time.process_time()
                self.assertEqual([("write_file", text)], calls_of(*pieces))
                best = min(best, time.process_time() - start)
            return best

        self.assertLess(seconds(100_000), 10 * 5 * seconds(10_000))  # quadratic: 100 times


class Endless(unittest.TestCase):
    def test_an_answer_without_an_end_is_an_error(self):
        large = "x" * (MOST // 8)
        for name, chunks in (("text", [delta(content=large)] * 9),
                             ("reasoning", [delta(reasoning=large)] * 9),
                             ("arguments", [call(0, "x", "a", large)] + [call(0, None, None, large)] * 8),
                             ("calls", [call(number, str(number), "a", "{}")
                                        for number in range(MOST_CALLS + 1)])):
            with self.subTest(name):
                answer = chat.Answer()
                for chunk in chunks[:-1]:
                    answer.take(chunk)
                self.assertIsNone(answer.error)
                answer.take(chunks[-1])
                self.assertEqual(ENDLESS, answer.error)


class Texts(unittest.TestCase):
    def test_half_characters_are_joined_and_lone_ones_replaced(self):
        cases = [
            (["x\ud83d", "\ude42b"], ["x", "\U0001f642b"]),
            (["\ud83d", "\ude42"], ["\U0001f642"]),
            (["\ud83d", "b"], ["\ufffdb"]),
            (["a\ude42"], ["a\ufffd"]),
            (["x\ud83d"], ["x", "\ufffd"]),
            (["\u00e9", "\U0001f642"], ["\u00e9", "\U0001f642"]),
        ]
        for pieces, expected in cases:
            with self.subTest(pieces=pieces):
                self.assertEqual(expected, texts_of(*pieces))

    def test_content_that_is_a_list_of_parts(self):
        answer = chat.Answer()
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                 {"type": "text", "text": "Hi"}, "!", None]
        self.assertEqual([Thought("hm"), Text("Hi"), Text("!")], answer.take(delta(content=parts)))

    def test_other_choices_are_ignored(self):
        self.assertEqual([], chat.Answer().take({"choices": [{"index": 1, "delta": {"content": "x"},
                                                              "finish_reason": "stop"}]}))


class Counts(unittest.TestCase):
    def test_usage_wherever_it_stands(self):
        counted = {"prompt_tokens": 10, "completion_tokens": 2}
        timings = {"cache_n": 90, "prompt_n": 10, "predicted_n": 2}
        cases = [
            ("nothing", {}, None),
            ("null on each chunk", {"usage": None}, None),
            ("plain", {"usage": counted}, Usage(10, 2, None, None)),
            ("with a choice", {"choices": [{"delta": {}, "usage": counted}]}, Usage(10, 2, None, None)),
            ("0 prompt tokens are unknown", {"usage": {"prompt_tokens": 0, "completion_tokens": 2}},
             Usage(None, 2, None, None)),
            ("only timings", {"timings": timings}, Usage(100, 2, 90, None)),
            ("usage without what was cached", {"usage": counted, "timings": timings},
             Usage(100, 2, 90, None)),
            ("details", {"usage": dict(counted, prompt_tokens_details={"cached_tokens": 7},
                                       completion_tokens_details={"reasoning_tokens": 1})},
             Usage(10, 2, 7, 1)),
            ("details that are null", {"usage": dict(counted, prompt_tokens_details=None)},
             Usage(10, 2, None, None)),
            ("nonsense", {"usage": {"prompt_tokens": "ten", "completion_tokens": -1},
                          "timings": {"cache_n": True}}, None),
        ]
        for name, chunk, expected in cases:
            with self.subTest(name):
                answer = chat.Answer()
                answer.take(chunk)
                found = [event for event in answer.end() if isinstance(event, Usage)]
                self.assertEqual([expected] if expected else [], found)


class Requests(unittest.TestCase):
    def test_the_fields_of_a_request(self):
        tools = [{"type": "function", "function": {"name": "bash"}}]
        plain = {"model": "m", "messages": [], "stream": True, "stream_options": {"include_usage": True}}
        cases = [
            ("as little as possible", {}, [], plain),
            ("tools", {}, tools, dict(plain, tools=tools)),
            ("what is set", {"temperature": 0.0, "max_tokens": 5}, [],
             dict(plain, temperature=0.0, max_tokens=5)),
            ("extra, less what is mm's own", {"extra": {"top_k": 1, "model": "no", "messages": 1, "tools": 1,
                                                        "stream": False}}, [],
             dict(plain, top_k=1)),
            ("extra over a field", {"extra": {"stream_options": {}}}, [], dict(plain, stream_options={})),
        ]
        for name, more, tools, expected in cases:
            with self.subTest(name):
                self.assertEqual(expected, chat.request_body(streams.server("http://x/v1", **more), [],
                                                             tools))

    def test_half_characters_do_not_reach_the_server(self):
        self.assertEqual('{"a":"\ufffd\U0001f642é"}'.encode(), chat.encode({"a": "\ud83d\ud83d\ude42é"}))

    def test_the_request_on_the_wire(self):
        with ModelServer([{"text": "hi"}]) as server:
            asked = streams.server(server.url, api_key="sekret-1", headers={"X-Team": "a b"})
            streams.ask(asked, messages=[{"role": "user", "content": "é"}])
            request, = server.wait_requests(1)
        self.assertEqual("/v1/chat/completions", request.path)
        self.assertEqual([{"role": "user", "content": "é"}], request.body["messages"])
        self.assertEqual("Bearer sekret-1", request.headers["authorization"])
        self.assertEqual("a b", request.headers["x-team"])

    def test_no_authorization_without_a_key(self):
        with ModelServer() as server:
            streams.ask(streams.server(server.url))
            self.assertNotIn("authorization", server.wait_requests(1)[0].headers)

    def test_stream_options_are_left_out_once_refused(self):
        refusal = [{"status": 400, "body": {"error": {"message": "Unrecognized request argument: "
                                                                 "stream_options"}}}]
        learned = Learned()
        with ModelServer(refusal, [{"text": "hi"}]) as server:
            for _ in range(2):
                self.assertIn(Text("hi"), streams.ask(streams.server(server.url), learned=learned))
            sent = ["stream_options" in request.body for request in server.wait_requests(3)]
        self.assertEqual([True, False, False], sent)


class Streaming(unittest.TestCase):
    def test_events_go_out_before_the_next_read(self):
        with ModelServer([{"text": ["one", "two"]}, {"hang": True}]) as server:
            answer = chat.complete(streams.server(server.url), [], [], streams.Cancel())
            self.assertEqual([Text("one"), Text("two")], [next(answer), next(answer)])
            answer.close()
            server.wait_dropped(1)

    def test_what_the_end_brings(self):
        steps = [{"thought": "hm"}, {"text": "Hi"},
                 {"call": {"name": "bash", "arguments": ['{"command":', ' "ls"}']}},
                 {"usage": {"input": 5, "output": 3, "cached": 2}}]
        with ModelServer(steps) as server:
            self.assertEqual([Thought("hm"), Text("Hi"), ToolCall("bash", '{"command": "ls"}'),
                              Usage(5, 3, 2, None), Finish("tool_calls")],
                             streams.ask(streams.server(server.url)))

    def test_done_ends_the_answer_though_the_connection_stays(self):
        with ModelServer([{"text": "x"}, {"data": "[DONE]"}, {"hang": True}]) as server:
            self.assertEqual([Text("x"), Finish(None)], streams.ask(streams.server(server.url)))
            server.wait_dropped(1)

    def test_a_recorder_gets_request_lines_and_refusal(self):
        told = []

        class Tap:
            request = staticmethod(lambda body: told.append(("request", body["model"])))
            data = staticmethod(lambda line: told.append(("data", line)))
            status = staticmethod(lambda code, body: told.append(("status", code, body)))

        with ModelServer([{"raw": b'data: {"choices":[]}\n\ndata: [DONE]\n\n'}],
                         [{"status": 418, "body": "tea"}]) as server:
            for _ in range(2):
                self.assertRaises(ModelError, streams.ask, streams.server(server.url), tap=Tap)
        self.assertEqual([("request", "m"), ("data", 'data: {"choices":[]}'), ("data", "data: [DONE]"),
                          ("request", "m"), ("status", 418, "tea")], told)


class Failures(unittest.TestCase):
    def test_failures_are_one_line_with_the_address(self):
        text = {"text": "half"}
        page = "<!doctype html><html><head><title>Gate</title><style>p{}</style></head><body><p>502  Bad</p></body></html>"
        refused = "refused the request (%d): "
        cases = [
            ("server_crash", [{"status": 500, "body": {"error": {"message": "\nboom\nin two lines"}}}],
             "failed (500): boom"),
            ("bad_request", [{"status": 422, "body": {"detail": [{"loc": ["body"],
                                                                  "msg": "field required"}]}}],
             refused % 422 + "field required"),
            ("bad_request", [{"status": 400, "body": {"object": "error", "message": "nothing\nthere"}}],
             refused % 400 + "nothing there"),
            ("proxy", [{"status": 502, "body": page, "type": "text/html"}],
             "answered 502: is the model server behind it running?"),
            ("backend_missing", [{"status": 412, "body": 'backend "x" is not installed\nmore\n'}],
             'lacks what this model runs on: backend "x" is not installed'),
            ("server_crash", [{"status": 500, "body": ""}], "failed (500): no reason given"),
            ("auth", [{"status": 401, "body": {"error": {"message": "Invalid API Key"}}}],
             "wants an API key (401): set MM_API_KEY or model.apiKey"),
            ("wrong_url", [{"status": 404, "body": "404 page not found"}],
             "answers, but not as an OpenAI API (404: 404 page not found): is it the model server's port?"),
            ("redirect", [{"status": 302, "body": "",
                           "headers": {"Location": "https://else:p@where/v1?k=1"}}],
             "answered 302: it redirects to https://where/v1; use that URL"),
            ("wrong_url", [{"type": "text/html"}, {"raw": page}],
             "answers, but not as an OpenAI API (200: 502 Bad): is it the model server's port?"),
            ("wrong_url", [{"type": "text/plain"}, {"raw": b"Ollama is running"}],
             "answers, but not as an OpenAI API (200: Ollama is running)"),
            ("wrong_url", [{"raw": b'{"error": "Unexpected endpoint or method. (POST /x)"}'}],
             "answers, but not as an OpenAI API (200: Unexpected endpoint or method. (POST /x))"),
            ("model_not_loaded", [{"data": '{"error": "Model is unloaded."}'}], "no model loaded in http"),
            ("server_crash", [text, {"data": '{"error": {"code": 500, "message": "no memory"}}'},
                              {"data": "[DONE]"}],
             "failed in the middle of its answer (500): no memory"),
            ("server_crash", [text, {"raw": b"event: error\n\n"}], "failed in the middle of its answer "
                                                                   "(200): an error without a description"),
            ("dropped", [text, {"drop": True}], "closed the connection in the middle of its answer"),
            ("dropped", [text, {"reset": True}], "closed the connection in the middle of its answer"),
            ("dropped", [{"transport": "close"}, text, {"drop": True}], "closed the connection in the middle "
                                                                        "of its answer"),
            ("dropped", [{"call": {"name": "bash", "arguments": '{"a'}}, {"drop": True}],
             "closed the connection in the middle of its answer"),
            ("dropped", [{"drop": True}], "closed the connection without an answer"),
            ("dropped", [{"reset": True}], "closed the connection without an answer"),
            ("empty", [{"raw": b""}], "ended its answer (200) before the first word: its log may say why"),
            ("empty", [{"raw": b": ping - 1\n\n: ping - 2\n\n"}], "ended its answer (200) before the first "
                                                                  "word: its log may say why"),
            ("server_crash", [{"raw": b"data: " + LONGEST * b"x"}], "failed (200): an answer without an end"),
            ("server_crash", [text, {"raw": (LONGEST + 1) * b"x"}], "failed in the middle of its answer "
                                                                    "(200): an answer without an end"),
            ("empty", [{"data": '{"choices":[{"delta":{"role":"assistant"}}]}'}, {"data": "[DONE]"}],
             "before the first word: it gave no reason; another request may have interrupted it"),
        ]
        for kind, steps, words in cases:
            with self.subTest(words), ModelServer(steps) as server:
                with self.assertRaises(ModelError) as caught:
                    streams.ask(streams.server(server.url))
                message = str(caught.exception)
                self.assertEqual(kind, caught.exception.kind, message)
                self.assertIn(words, message)
                self.assertIn(server.url, message)
                self.assertNotIn("\n", message)

    def test_text_before_a_failure_is_passed_on(self):
        with ModelServer([{"text": ["x", "y"]}, {"drop": True}]) as server:
            answer = chat.complete(streams.server(server.url), [], [], streams.Cancel())
            self.assertEqual([Text("x"), Text("y")], [next(answer), next(answer)])
            self.assertRaises(ModelError, next, answer)

    def test_a_cut_after_the_finish_is_complete(self):
        finish = {"data": '{"choices":[{"delta":{},"finish_reason":"stop"}]}'}
        for end in ("drop", "reset"):
            with self.subTest(end), ModelServer([{"text": "a"}, finish, {"pause": 0.02},
                                                 {end: True}]) as server:
                self.assertEqual([Text("a"), Finish("stop")], streams.ask(streams.server(server.url)))

    def test_words_are_cut_and_hold_no_secret(self):
        body = {"error": {"message": "wrong key sekret-key-1 or Basic c2VjcmV0 " + "x" * 1000}}
        with ModelServer([{"status": 418, "body": body}], [{"data": json.dumps(body)}]) as server:
            for _ in range(2):
                asked = streams.server(server.url, api_key="sekret-key-1",
                                       headers={"X-Auth": "Basic c2VjcmV0"})
                with self.assertRaises(ModelError) as caught:
                    streams.ask(asked)
                message = str(caught.exception)
                self.assertNotIn("sekret", message)
                self.assertNotIn("c2VjcmV0", message)
                self.assertLess(len(message), 450)
                self.assertIn("…", message)

    def test_a_refusal_that_never_ends_still_shows(self):
        with ModelServer([{"status": 500, "body": "no", "headers": {"Content-Length": 10}}]) as server:
            with self.assertRaisesRegex(ModelError, r"failed \(500\): no"):
                streams.ask(streams.server(server.url))

    def test_a_finish_reason_alone_completes_an_answer(self):
        finish = {"data": '{"choices":[{"delta":{},"finish_reason":"stop"}]}'}
        with ModelServer([{"text": "a"}, finish, {"hang": True}]) as server:
            self.assertEqual([Text("a"), Finish("stop")],
                             streams.ask(streams.server(server.url, timeout=0.1)))

    def test_time_out_only_where_one_is_set(self):
        with ModelServer([{"text": "x"}, {"hang": True}], [{"pause": 0.3}, {"text": "late"}]) as server:
            with self.assertRaisesRegex(ModelError, r"no byte from http.* for 0\.05 s \(model.timeout\)"):
                streams.ask(streams.server(server.url, timeout=0.05))
            self.assertIn(Text("late"), streams.ask(streams.server(server.url)))


if __name__ == "__main__":
    unittest.main()
