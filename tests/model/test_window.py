"""The window that each kind of server tells, that none of their imitations is believed, and what a refusal
teaches.
"""

from __future__ import annotations

import socket
import threading
import time
import unittest

from mm import log
from mm.cancel import Cancel, Cancelled
from mm.model import known_servers, probe, window
from mm.model.failures import Overflow
from mm.model.http import ModelError, Server
from mm.model.window import Window, ask_size
from tests.fakes.products import LM_STUDIO_UNKNOWN, NOT_FOUND, Pages

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
    "Ollama": ({"/api/ps": {"models": [{"name": "x", "context_length": 1},
                                       {"name": "m", "context_length": 4096}]}}, 4096),
    "Ollama, with a tag": ({"/api/ps": {"models": [{"model": "m:latest", "context_length": 8192}]}}, 8192),
    "Ollama before the model is loaded": (
        {"/api/ps": {"models": []}, "/api/show": {"parameters": "stop \"x\"\nnum_ctx    16384\ntop_k 20"}},
        16384),
    "Ollama, the maximum alone": (
        {"/api/ps": {"models": []}, "/api/show": {"model_info": {"qwen3.context_length": 40960}}}, 0),
    "LM Studio": ({"/api/v1/models": {"models": [
        {"key": "m", "max_context_length": 99999, "loaded_instances": [{"id": "m:2",
                                                                        "config": {"context_length": 6000}}]}]}}, 6000),
    "LM Studio by the instance's name": ({"/api/v1/models": {"models": [
        {"key": "n", "loaded_instances": [{"id": "m", "config": {"context_length": 6000}}]}]}}, 6000),
    "LM Studio, several instances: the one that is asked for": ({"/api/v1/models": {"models": [{"key": "m",
                                                                                                "loaded_instances": [
        {"id": "m:2", "config": {"context_length": 32768}},
        {"id": "m", "config": {"context_length": 4096}}]}]}}, 4096),
    "LM Studio, several instances: the smallest": ({"/api/v1/models": {"models": [{"key": "m",
                                                                                   "loaded_instances": [
        {"id": "x", "config": {"context_length": 32768}},
        {"id": "y", "config": {"context_length": 4096}}]}]}}, 4096),
    "LM Studio, not loaded": ({"/api/v1/models": {"models": [{"key": "m", "max_context_length": 9,
                                                              "loaded_instances": []}]}}, 0),
    "LM Studio before 0.4": ({"/api/v0/models": {"data": [
        {"id": "m", "state": "loaded", "loaded_context_length": 5000, "max_context_length": 99999}]}}, 5000),
    "vLLM, SGLang": ({MODELS: listed(max_model_len=8192)}, 8192),
    "the only model has another name": ({MODELS: {"data": [{"id": "other", "max_model_len": 8192}]}}, 8192),
    "one of several models": ({MODELS: {"data": [{"id": "a", "max_model_len": 1},
                                                 {"id": "m", "max_model_len": 8192}]}}, 8192),
    "another one of several models": ({MODELS: {"data": [{"id": "a", "max_model_len": 1}, {"id": "b"}]}}, 0),
    "Docker, as packaged": ({MODELS: listed(dmr={"context_window": 32768})}, 32768),
    "Docker, as configured": ({MODELS: listed(dmr={"context_window": 32768}), "/engines/_configure": [
        {"Model": "x", "Config": {"context-size": 1}}, {"ModelID": "m", "Config": {"context-size": 4096}}]},
                              4096),
    "shapes that are none": ({"/props": {"default_generation_settings": {"n_ctx": True}},
                              "/api/ps": {"models": [7, {"name": []}]}, MODELS: {"data": {"id": "m"}},
                              "/api/v1/models": {"models": [{"loaded_instances": 3}]},
                              "/api/v0/models": {"data": [{"id": "m", "loaded_context_length": "many"}]}}, 0),
    "not JSON": ({"/props": "<html>", MODELS: ""}, 0),
    "llama.cpp that says it in its slots alone": ({"/slots": [{"id": 0, "n_ctx": 4096}]}, 4096),
    "nested without end": ({"/props": "[" * 100000}, 0),
}


def server_at(pages, path="/v1", model="m", key=None):
    return Server(pages.root + path, model, key)


class Probe(unittest.TestCase):
    def test_every_kind_of_server(self):
        with Pages({}) as fake:
            for name, (fake.pages, expected) in SERVERS.items():
                for fake.otherwise in (NOT_FOUND, LM_STUDIO_UNKNOWN):
                    with self.subTest(name, otherwise=fake.otherwise[0]):
                        self.assertEqual(ask_size(server_at(fake), Cancel())[0], expected)

    def test_docker_s_own_paths(self):
        pages = {"/engines/v1/models": listed(), "/engines/_configure": [{"Model": "m",
                                                                          "Config": {"context-size": 4096}}]}
        for path, models in (("/engines/v1", "/engines/v1/models"),
                             ("/engines/llama.cpp/v1", "/engines/llama.cpp/v1/models")):
            with self.subTest(path), Pages({models: pages["/engines/v1/models"], **pages}) as fake:
                self.assertEqual(ask_size(server_at(fake, path), Cancel())[0], 4096)

    def test_it_stops_at_the_first_answer(self):
        with Pages({"/props": PROPS}) as fake:
            ask_size(server_at(fake, key="secret-key"), Cancel())
        self.assertEqual(fake.asked, ["/props"])
        self.assertEqual(fake.headers[0]["Authorization"], "Bearer secret-key")

    def test_nobody_there(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        self.assertEqual(ask_size(Server("http://127.0.0.1:%d/v1" % port, "m"), Cancel()), (0, None))

    def test_a_silent_server_is_given_up(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            server = Server("http://127.0.0.1:%d/v1" % silent.getsockname()[1], "m")
            cancel, begin = Cancel(), time.monotonic()
            threading.Timer(0.1, cancel.cancel).start()
            with self.assertRaises(Cancelled):
                ask_size(server, cancel)
            self.assertLess(time.monotonic() - begin, 1)
            self.assertIsNone(probe.ask(server, "/props", Cancel(), seconds=0.1).value)


TOO_LONG = ModelError("too long", "context_overflow", 400, numbers={"prompt": 9125, "window": 8192})


class TheWindow(unittest.TestCase):
    def looked(self, window_, server, answered=False):
        window_.look(server, answered)
        window_.wait(10)
        return window_.size

    def test_what_the_user_set_needs_no_question(self):
        with Pages({"/props": LARGE}) as fake:
            self.assertEqual(self.looked(Window(9000), server_at(fake)), 9000)
        self.assertEqual(fake.asked, [])

    def test_it_is_asked_for_once(self):
        with Pages({"/props": LARGE}) as fake:
            known = Window()
            self.assertEqual(known.size, 0)
            self.assertEqual(self.looked(known, server_at(fake)), 20000)
            self.looked(known, server_at(fake), answered=True)
        self.assertEqual(fake.asked, ["/props"])

    def test_it_is_asked_again_once_loaded(self):
        with Pages({"/api/ps": {"models": []}}) as fake:
            known = Window()
            self.assertEqual(self.looked(known, server_at(fake)), 0)
            fake.pages["/api/ps"] = {"models": [{"name": "m", "context_length": 20000}]}
            self.assertEqual(self.looked(known, server_at(fake), answered=True), 20000)
        with Pages({}) as fake:
            known = Window()
            self.looked(known, server_at(fake), answered=True)
            count = len(fake.asked)
            self.looked(known, server_at(fake))
            self.assertEqual((known.size, len(fake.asked)), (0, count))

    def test_the_probe_delays_nobody(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            server = Server("http://127.0.0.1:%d/v1" % silent.getsockname()[1], "m")
            begin = time.monotonic()
            Window().look(server)
            self.assertLess(time.monotonic() - begin, 0.5)

    def test_what_is_small_or_unknown_is_said_once(self):
        for pages, line in (({"/props": PROPS}, window.SMALL % (4096, "llama-server -c 32768")),
                            ({}, window.UNKNOWN), ({"/props": LARGE}, None)):
            with self.subTest(line), Pages(pages) as fake:
                known, told = Window(), []
                log.tap = told.append
                try:
                    for answered in (False, True, True):
                        self.looked(known, server_at(fake), answered)
                finally:
                    log.tap = None
                self.assertEqual(told, [line] if line else [])
                self.assertEqual(known.news(), [line] if line and line != window.UNKNOWN else [])
                self.assertEqual(known.news(), [])

    def test_a_small_window_is_asked_each_turn(self):
        with Pages({"/props": PROPS}) as fake:
            known = Window()
            self.assertEqual(self.looked(known, server_at(fake)), 4096)
            known.learn(ModelError("too long", "context_overflow", 400,
                                   numbers={"prompt": 9125, "window": 2048}), None)
            self.assertEqual([self.looked(known, server_at(fake), answered) for answered in (True, False)],
                             [2048, 2048])
            fake.pages = {"/props": LARGE}
            self.assertEqual([self.looked(known, server_at(fake), answered)
                              for answered in (True, False, True)], [2048, 20000, 20000])

    def test_what_the_user_set_is_no_news(self):
        known = Window(4096)
        known.look(Server("http://127.0.0.1:9/v1", "m"), answered=True)
        self.assertEqual(known.news(), [])

    def test_news_wait_briefly_for_a_running_question(self):
        for delay, expected in ((0.05, 1), (2, 0)):
            with self.subTest(delay), Pages({"/props": PROPS}, delays={"/props": delay}) as fake:
                known, begin = Window(), time.monotonic()
                known.look(server_at(fake))
                self.assertEqual(len(known.news()), expected)
                self.assertLess(time.monotonic() - begin, window.NEWS_SECONDS + 0.3)

    def test_the_way_out_is_that_of_the_make(self):
        ways = {product.key: product.larger_window and product.larger_window.replace("<model>", "m")
                for product in known_servers.PRODUCTS}
        several = " or ".join(known_servers.larger_window(None, "m"))
        cases = (  # what is known of it, the port, what the probe saw
            ("ollama", 1, None, ways["ollama"]), (None, 1, "lmstudio", ways["lmstudio"]),
                 ("docker", 8080, "ollama", ways["docker"]),
            (None, 8000, None, "vllm serve m --max-model-len 32768"), (None, 1, None, several),
                 ("mlx-lm", 1, None, window.NO_WAY_OUT))
        for product, port, seen, expected in cases:
            with self.subTest((product, port, seen)):
                server = Server("http://127.0.0.1:%d/v1" % port, "m", product=product)
                self.assertEqual(window.way_out(server, seen), expected)

    def test_the_way_out_is_a_larger_window(self):
        server = Server("http://127.0.0.1:8080/v1", "m")
        for size, wanted in ((0, 32768), (4096, 32768), (32767, 32768), (32768, 65536), (100000, 131072)):
            self.assertEqual("llama-server -c %d" % wanted, window.way_out(server, window=size))

    def test_a_refusal_teaches(self):
        cases = ((0, 8192), (32768, 8192), (4096, 4096))  # what was known before, and after it
        for before, after in cases:
            with self.subTest(before):
                known = Window(before)
                self.assertEqual(known.learn(TOO_LONG, None), Overflow(8192, 9125))
                self.assertEqual(known.size, after)
        known = Window(100)
        self.assertIsNone(known.learn(ModelError("no key", "auth", 401), None))
        self.assertEqual(known.size, 100)

    def test_a_refusal_without_a_number_asks_again(self):
        with Pages({"/props": LARGE}) as fake:
            known = Window()
            known.learn(ModelError("context shift is disabled", "context_overflow", 500), server_at(fake))
            known.wait(10)
            self.assertEqual(known.size, 20000)



# (tokens that the server counted, our estimate, the window or 0, whether the prompt was cut).
COUNTS = [
    (4096, 9000, 4096, True), (3900, 9000, 4096, True),  # whole messages were left out at the front
    (2050, 9000, 4096, True), (2050, 3500, 4096, True), (4098, 9000, 8192, True),  # one half and two
    (4096, 9000, 0, True), (2050, 9000, 0, True),  # a window that is unknown
    (4098, 4300, 8192, False), (2050, 2600, 4096, False),  # by chance as long as half of the window
    # only what the cache did not hold
    (300, 6000, 32768, False), (300, 6000, 0, False), (3000, 6000, 0, False),
    (3500, 5000, 4096, False),  # an estimate may be that far off
    (0, 9000, 4096, False), (5000, 5000, 8192, False), (5000, 4000, 0, False), (100, 0, 0, False),
]


class CutInSilence(unittest.TestCase):
    def test_table(self):
        for reported, estimated, size, expected in COUNTS:
            with self.subTest((reported, estimated, size)):
                self.assertEqual(window.truncated(reported, estimated, size), expected)

    def told(self, *pages):
        """What is said of a prompt of 9000 tokens of which 4000 were read, while the server answers these
        pages in turn."""
        told = []
        log.tap = told.append
        try:
            known = Window()
            for each in pages:
                with Pages(each) as fake:
                    known.look(server_at(fake), answered=True)
                    known.compare(4000, 9000, server_at(fake))
                    known.compare(None, 9000, server_at(fake))
                    known.wait(10)
        finally:
            log.tap = None
        self.assertEqual(known.news(), [line for line in told if line != window.UNKNOWN])
        return [line for line in told if line.startswith(window.TRUNCATED[:20])]

    def test_it_is_said_once_the_window_is_known(self):
        pages = {"/api/ps": {"models": [{"name": "m", "context_length": 4096}]}}
        line = window.TRUNCATED % (4000, 9000, "OLLAMA_CONTEXT_LENGTH=32768 ollama serve")
        self.assertEqual(self.told(pages, pages), [line])
        self.assertEqual(self.told({"/props": LARGE}), [])
        self.assertEqual(self.told({}), [])


if __name__ == "__main__":
    unittest.main()
