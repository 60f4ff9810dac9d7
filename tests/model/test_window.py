"""The window that each kind of server tells, that none of their imitations is believed, and what a refusal teaches."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time
import unittest

from mm import log
from mm.cancel import Cancel, Cancelled
from mm.model import window
from mm.model.http import Server
from mm.model.window import Overflow, Window, learned_from, probe

NOT_FOUND = (404, {"error": {"message": "not found"}})
LM_STUDIO_UNKNOWN = (200, {"error": "Unexpected endpoint or method. (GET /props)"})

PROPS = {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 2}
LARGE = {"default_generation_settings": {"n_ctx": 20000}}
ROUTER = {"default_generation_settings": {"n_ctx": 0}, "role": "router"}
MODELS = "/v1/models"


def listed(**more):
    return {"object": "list", "data": [dict({"id": "m", "object": "model"}, **more)]}


# name: (what the server answers by path, its window). The asked model is "m".
SERVERS = {
    "llama.cpp": ({"/props": PROPS}, 4096),
    "llama.cpp as a router": ({"/props": ROUTER, "/props?model=m": PROPS}, 4096),
    "llama.cpp without /props": ({MODELS: listed(meta={"n_ctx": 4096, "n_ctx_train": 8192})}, 4096),
    "llama.cpp, the trained window alone": ({MODELS: listed(meta={"n_ctx_train": 8192})}, 0),
    "Ollama": ({"/api/ps": {"models": [{"name": "x", "context_length": 1}, {"name": "m", "context_length": 4096}]}}, 4096),
    "Ollama, with a tag": ({"/api/ps": {"models": [{"model": "m:latest", "context_length": 8192}]}}, 8192),
    "Ollama before the model is loaded": (
        {"/api/ps": {"models": []}, "/api/show": {"parameters": "stop \"x\"\nnum_ctx    16384\ntop_k 20"}}, 16384),
    "Ollama, the maximum alone": (
        {"/api/ps": {"models": []}, "/api/show": {"model_info": {"qwen3.context_length": 40960}}}, 0),
    "LM Studio": ({"/api/v1/models": {"models": [
        {"key": "m", "max_context_length": 99999, "loaded_instances": [{"id": "m:2", "config": {"context_length": 6000}}]}]}}, 6000),
    "LM Studio by the instance's name": ({"/api/v1/models": {"models": [
        {"key": "n", "loaded_instances": [{"id": "m", "config": {"context_length": 6000}}]}]}}, 6000),
    "LM Studio, not loaded": ({"/api/v1/models": {"models": [{"key": "m", "max_context_length": 9, "loaded_instances": []}]}}, 0),
    "LM Studio before 0.4": ({"/api/v0/models": {"data": [
        {"id": "m", "state": "loaded", "loaded_context_length": 5000, "max_context_length": 99999}]}}, 5000),
    "vLLM, SGLang": ({MODELS: listed(max_model_len=8192)}, 8192),
    "the only model has another name": ({MODELS: {"data": [{"id": "other", "max_model_len": 8192}]}}, 8192),
    "one of several models": ({MODELS: {"data": [{"id": "a", "max_model_len": 1}, {"id": "m", "max_model_len": 8192}]}}, 8192),
    "another one of several models": ({MODELS: {"data": [{"id": "a", "max_model_len": 1}, {"id": "b"}]}}, 0),
    "Docker, as packaged": ({MODELS: listed(dmr={"context_window": 32768})}, 32768),
    "Docker, as configured": ({MODELS: listed(dmr={"context_window": 32768}), "/engines/_configure": [
        {"Model": "x", "Config": {"context-size": 1}}, {"ModelID": "m", "Config": {"context-size": 4096}}]}, 4096),
    "shapes that are none": ({"/props": {"default_generation_settings": {"n_ctx": True}}, "/api/ps": {"models": [7, {"name": []}]},
                              MODELS: {"data": {"id": "m"}}, "/api/v1/models": {"models": [{"loaded_instances": 3}]},
                              "/api/v0/models": {"data": [{"id": "m", "loaded_context_length": "many"}]}}, 0),
    "not JSON": ({"/props": "<html>", MODELS: ""}, 0),
    "nested without end": ({"/props": "[" * 100000}, 0),
}


class Pages:
    """A real HTTP server with these answers by path; the others are `otherwise`. `asked`: the paths, in order."""

    def __init__(self, pages, otherwise=NOT_FOUND):
        self.pages, self.asked, self.headers = pages, [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                outer.headers.append(self.headers)
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                page = outer.pages.get(self.path)
                status, page = otherwise if page is None else (200, page)
                body = (page if isinstance(page, str) else json.dumps(page)).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.root = "http://127.0.0.1:%d" % self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def server(self, path="/v1", model="m", key=None):
        return Server(self.root + path, model, key, {}, 0, None, None, {})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class Probe(unittest.TestCase):
    def test_every_kind_of_server(self):
        for name, (pages, expected) in SERVERS.items():
            for otherwise in (NOT_FOUND, LM_STUDIO_UNKNOWN):
                with self.subTest(name, otherwise=otherwise[0]), Pages(pages, otherwise) as fake:
                    self.assertEqual(probe(fake.server(), Cancel()), expected)

    def test_docker_s_own_paths(self):
        pages = {"/engines/v1/models": listed(), "/engines/_configure": [{"Model": "m", "Config": {"context-size": 4096}}]}
        for path, models in (("/engines/v1", "/engines/v1/models"), ("/engines/llama.cpp/v1", "/engines/llama.cpp/v1/models")):
            with self.subTest(path), Pages({models: pages["/engines/v1/models"], **pages}) as fake:
                self.assertEqual(probe(fake.server(path), Cancel()), 4096)

    def test_it_stops_at_the_first_answer_and_sends_the_key(self):
        with Pages({"/props": PROPS}) as fake:
            probe(fake.server(key="secret-key"), Cancel())
        self.assertEqual(fake.asked, ["/props"])
        self.assertEqual(fake.headers[0]["Authorization"], "Bearer secret-key")

    def test_nobody_there(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        self.assertEqual(probe(Server("http://127.0.0.1:%d/v1" % port, "m", None, {}, 0, None, None, {}), Cancel()), 0)

    def test_a_server_that_says_nothing_is_given_up_and_a_cancel_comes_through_at_once(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            server = Server("http://127.0.0.1:%d/v1" % silent.getsockname()[1], "m", None, {}, 0, None, None, {})
            cancel, begin = Cancel(), time.monotonic()
            threading.Timer(0.1, cancel.cancel).start()
            with self.assertRaises(Cancelled):
                probe(server, cancel)
            self.assertLess(time.monotonic() - begin, 1)
            self.assertIsNone(self.asked_shortly(server))

    def asked_shortly(self, server):
        before, window.QUESTION_SECONDS = window.QUESTION_SECONDS, 0.1
        try:
            return window._ask(server, "/props", Cancel())
        finally:
            window.QUESTION_SECONDS = before


# What servers say of a prompt that is too long, as body or as the words in it: (text, Overflow or None).
REFUSALS = [
    ('{"error": {"code": 400, "message": "request (9125 tokens) exceeds the available context size (8192 tokens), try increasing '
     'it", "type": "exceed_context_size_error", "n_prompt_tokens": 9125, "n_ctx": 8192}}', Overflow(8192, 9125)),
    ("request (9125 tokens) exceeds the available context size (8192 tokens), try increasing it", Overflow(8192, 9125)),
    ('{"error": {"code": 500, "message": "the request exceeds the available context size. try increasing the context size or '
     'enable context shift", "type": "exceed_context_size_error", "n_prompt_tokens": 1407, "n_ctx": 256}}', Overflow(256, 1407)),
    ("the request exceeds the available context size. try increasing the context size or enable context shift", Overflow(0, 0)),
    ("context shift is disabled", Overflow(0, 0)),
    ("the prompt is longer than the context length currently available to the model; shorten the prompt", Overflow(0, 0)),
    ("no user query found in messages", Overflow(0, 0)),
    ("The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5228 >= n_ctx: 4096). "
     "Try to load the model with a larger context length, or provide a shorter input.", Overflow(4096, 5228)),
    ("Reached context length of 4096 tokens with model (arch: qwen3vlmoe) that does not currently support mid-generation "
     "context overflow.", Overflow(4096, 0)),
    ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the "
     "completion). Please reduce the length of the messages or completion.", Overflow(8192, 8000)),
    ("This model's maximum context length is 4096 tokens. However, your request has 4200 input tokens.", Overflow(4096, 4200)),
    ("max_tokens must be at least 1, got -186.", Overflow(0, 0)),
    ("prompt is too long: 210000 tokens > 200000 maximum", Overflow(200000, 210000)),
    ("model is not loaded", None), ("Invalid API Key", None), ("tools param requires --jinja flag", None),
    ("Rate limit exceeded: too many requests", None), ("model 'qwen9' not found", None),
    ("Failed to parse tool call arguments as JSON: parse error at line 1, column 131", None),
    ("invalid tool call arguments", None), ("unable to load runner: not enough GPU memory to load the model (CUDA)", None),
    ("After the optional system message, conversation roles must alternate user and assistant roles", None),
    ("the tool context_length has no description", None),
]


class Refusals(unittest.TestCase):
    def test_table(self):
        for text, expected in REFUSALS:
            with self.subTest(text[:60]):
                self.assertEqual(learned_from(text), expected)
                self.assertEqual(learned_from("http://127.0.0.1:8080/v1 answered 400: " + text), expected)


class TheWindow(unittest.TestCase):
    def looked(self, window_, server, answered=False):
        window_.look(server, answered)
        window_.wait(10)
        return window_.size

    def test_what_the_user_set_needs_no_question(self):
        with Pages({"/props": LARGE}) as fake:
            self.assertEqual(self.looked(Window(9000), fake.server()), 9000)
        self.assertEqual(fake.asked, [])

    def test_it_is_asked_for_once(self):
        with Pages({"/props": LARGE}) as fake:
            known = Window()
            self.assertEqual(known.size, 0)
            self.assertEqual(self.looked(known, fake.server()), 20000)
            self.looked(known, fake.server(), answered=True)
        self.assertEqual(fake.asked, ["/props"])

    def test_it_is_asked_for_again_when_the_model_is_loaded_and_then_never_more(self):
        with Pages({"/api/ps": {"models": []}}) as fake:
            known = Window()
            self.assertEqual(self.looked(known, fake.server()), 0)
            fake.pages["/api/ps"] = {"models": [{"name": "m", "context_length": 20000}]}
            self.assertEqual(self.looked(known, fake.server(), answered=True), 20000)
        with Pages({}) as fake:
            known = Window()
            self.looked(known, fake.server(), answered=True)
            count = len(fake.asked)
            self.looked(known, fake.server())
            self.assertEqual((known.size, len(fake.asked)), (0, count))

    def test_the_probe_delays_nobody(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            server = Server("http://127.0.0.1:%d/v1" % silent.getsockname()[1], "m", None, {}, 0, None, None, {})
            begin = time.monotonic()
            Window().look(server)
            self.assertLess(time.monotonic() - begin, 0.5)

    def test_what_is_small_or_unknown_is_said_once(self):
        for pages, line in (({"/props": PROPS}, window.SMALL % 4096), ({}, window.UNKNOWN), ({"/props": LARGE}, None)):
            with self.subTest(line), Pages(pages) as fake:
                known, told = Window(), []
                log.tap = told.append
                try:
                    for answered in (False, True, True):
                        self.looked(known, fake.server(), answered)
                finally:
                    log.tap = None
                self.assertEqual(told, [line] if line else [])

    def test_a_refusal_teaches(self):
        text = REFUSALS[1][0]
        cases = ((0, 8192), (32768, 8192), (4096, 4096))  # what was known before, and after it
        for before, after in cases:
            with self.subTest(before):
                known = Window(before)
                self.assertEqual(known.learn(text, None), Overflow(8192, 9125))
                self.assertEqual(known.size, after)
        known = Window(100)
        self.assertIsNone(known.learn("Invalid API Key", None))
        self.assertEqual(known.size, 100)

    def test_a_refusal_without_a_number_asks_again(self):
        with Pages({"/props": LARGE}) as fake:
            known = Window()
            known.learn("context shift is disabled", fake.server())
            known.wait(10)
            self.assertEqual(known.size, 20000)


if __name__ == "__main__":
    unittest.main()
