"""Which server is found, in which order and how fast, and which of its models is asked for."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import unittest
from collections import namedtuple

from mm.cancel import Cancel, Cancelled
from mm.errors import UserError
from mm.model import find, known_servers
from mm.model.candidates import Candidate, candidates, ollama_url, openai_url
from mm.model.http import ModelError, Server
from tests.fakes import products as fakes
from tests.fakes.products import Pages
from tests.fakes.model_server import ModelServer

Config = namedtuple("Config", "model_url model_name model_api_key model_headers model_timeout "
                              "model_temperature model_max_tokens "
                              "model_extra")
UNSET = Config(None, None, None, {}, 0, None, None, {})
NO_SERVER = Server(None)

# Pages of programs that are no model servers, or of nobody that can be used.
WEB_PAGE = {"/v1/models": (200, "<html>Jenkins</html>")}, (200, "<html>"), ""
FORBIDDEN_PAGE = {}, (403, "<html>Forbidden</html>"), ""
UNKNOWN_ROUTE = {}, fakes.LM_STUDIO_UNKNOWN, ""
OTHER_DATA = {"/v1/models": {"data": []}}, fakes.NOT_FOUND, ""
LOCKED = ({}, (401, {"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}}),
          "llama.cpp")
LOCKED_PYTHON = {}, (401, {"detail": "Invalid API key"}), "uvicorn"
LOADING = {}, (503, {"error": {"code": 503, "message": "Loading model",
                               "type": "unavailable_error"}}), "llama.cpp"


def closed_url() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return "http://127.0.0.1:%d/v1" % closed.getsockname()[1]


class Around(unittest.TestCase):
    def around(self, *fakes_, config=UNSET, cancel=None, **more):
        """(what is found, the fakes' URLs) where these answer, in this order; None is nobody."""
        with contextlib.ExitStack() as stack:
            running = [each and stack.enter_context(Pages(*each, **more)) for each in fakes_]
            urls = [each.url if each else closed_url() for each in running]
            return find.find_server(config, {}, cancel or Cancel(), [Candidate(url) for url in urls]), urls


class TheOrder(Around):
    def test_the_first_that_answers_as_a_model_server(self):
        good, other = fakes.vllm(["a"]), fakes.ollama(["b"])
        cases = [
            ((good, other), 0), ((None, good, other), 1), ((WEB_PAGE, good), 1), ((FORBIDDEN_PAGE, good), 1),
            ((UNKNOWN_ROUTE, good), 1), ((OTHER_DATA, good), 1), ((fakes.ollama([]), good), 1),
            ((LOCKED, good), 1), ((LOADING, good), 0), ((fakes.lm_studio(["text-embedding-nomic"]), good), 1),
            ((None, None, fakes.docker(["d"])), 2),
        ]
        for each, expected in cases:
            with self.subTest(each):
                found, urls = self.around(*each)
                self.assertEqual(found.server.url, urls[expected])
                self.assertIn(urls[expected], found.line)

    def test_each_make_is_known_by_its_answer(self):
        for key, pages in (("llama.cpp", fakes.llama_cpp()), ("ollama", fakes.ollama()),
                           ("lmstudio", fakes.lm_studio()), ("docker", fakes.docker()),
                           ("vllm", fakes.vllm()), ("llama-cpp-python", fakes.llama_cpp_python())):
            with self.subTest(key):
                found, urls = self.around(pages)
                self.assertEqual((found.server.product, found.server.model), (key, "m"))
                self.assertEqual(found.line, "model: m · %s at %s · another one: --model NAME or --url URL"
                                 % (known_servers.of_key(key).title, urls[0]))

    def test_a_loading_model_needs_no_name(self):
        found, _ = self.around(LOADING)
        self.assertEqual((found.server.model, found.server.product), (find.ANY_MODEL, "llama.cpp"))

    def test_what_is_passed_over_is_told(self):
        found, urls = self.around(LOCKED, fakes.ollama([]), WEB_PAGE, fakes.vllm())
        self.assertEqual(len(found.notes), 2)
        self.assertIn("%s wants an API key" % urls[0], found.notes[0])
        self.assertIn("%s has no model that can chat" % urls[1], found.notes[1])

    def test_no_key_for_a_server_that_was_found(self):
        config = UNSET._replace(model_api_key="secret-key", model_headers={"X-Secret": "secret"},
                                model_temperature=0.5, model_timeout=7)
        with Pages(*fakes.ollama(["a", "b"])) as fake:
            found = find.find_server(config, {}, Cancel(), [Candidate(fake.url)])
        self.assertEqual((found.server.api_key, found.server.headers), (None, {}))
        self.assertEqual((found.server.temperature, found.server.timeout), (0.5, 7))
        self.assertFalse([headers for headers in fake.headers if "Authorization" in headers
                          or "X-Secret" in headers])


class NothingFound(Around):
    def failure(self, *fakes_, **more) -> str:
        with self.assertRaises(UserError) as caught:
            self.around(*fakes_, **more)
        self.assertNotIn("\n", str(caught.exception))
        return str(caught.exception)

    def test_nobody(self):
        with self.assertRaises(find.NothingRuns) as caught:
            find.find_server(UNSET, {"PATH": "/nonexistent"}, Cancel(),
                             [Candidate("http://127.0.0.1:9/v1"), Candidate("http://127.0.0.1:1/v1")])
        self.assertRegex(str(caught.exception), r"^no model server is running here \(:9, :1\): .+: .+\. Or "
                                                r"name one with --url, or "
                                                r"try --demo$")
        self.assertTrue(caught.exception.ways)

    def test_what_is_nearest_is_said(self):
        self.assertIn("wants an API key, and mm sends one only to a URL that you set: MM_API_KEY=… mm --url "
                      "http://", self.failure(LOCKED))
        self.assertIn("wants an API key", self.failure(None, LOCKED_PYTHON))
        self.assertRegex(self.failure(None, ({"/v1/models": {"object": "list", "data": []}}, fakes.NOT_FOUND,
                                             "")),
                         r"^the server at \S+ has no model that can chat$")
        self.assertRegex(self.failure(WEB_PAGE), "^no model server is running here")
        with Pages(*fakes.ollama([])) as fake, self.assertRaisesRegex(UserError,
                                                                      "can chat: ollama pull qwen3:8b$"):
            find.find_server(UNSET, {}, Cancel(), [Candidate(fake.url, None, "ollama")])
        self.assertRegex(self.failure(fakes.lm_studio(["text-embedding-nomic"])),
                         "can chat: lms get qwen/qwen3-8b$")
        self.assertRegex(self.failure(({"/v1/models": {"object": "list", "data": []}}, fakes.NOT_FOUND,
                                       "llama.cpp")),
                         r"can chat: restart it with one \(llama-server -hf Qwen/Qwen3-8B-GGUF\)$")

    def test_a_model_that_was_asked_for_is_taken(self):
        found, _ = self.around(fakes.vllm(["embed-and-chat"]),
                               config=UNSET._replace(model_name="embed-and-chat"))
        self.assertEqual(found.server.model, "embed-and-chat")

    def test_an_address_outside_is_not_asked(self):
        for url, words in (("http://192.0.2.1/v1", "192.0.2.1"), ("https://8.8.8.8/v1", "8.8.8.8")):
            begin = time.monotonic()
            with self.subTest(url), self.assertRaises(find.NothingRuns) as caught:
                find.find_server(UNSET, {}, Cancel(),
                                 [Candidate(url, "OPENAI_BASE_URL", None), Candidate(closed_url())])
            self.assertRegex(str(caught.exception), r"^no model server is running here \(:\d+\): .*; "
                                                    r"OPENAI_BASE_URL is not used: %s is neither" % words)
            self.assertLess(time.monotonic() - begin, 0.5)


class TheTime(Around):
    def test_refusals_and_answers_take_no_time(self):
        begin = time.monotonic()
        with self.assertRaises(UserError):
            self.around(None, None, None, WEB_PAGE, UNKNOWN_ROUTE, None, None)
        self.assertLess(time.monotonic() - begin, 0.5)

    def test_a_slow_earlier_one_is_waited_for(self):
        found, urls = self.around(fakes.ollama(["slow"]), fakes.vllm(), delays={"/v1/models": 0.3})
        self.assertEqual(found.server.url, urls[0])

    def test_but_not_for_longer_than_its_time(self):
        with socket.create_server(("127.0.0.1", 0)) as silent, Pages(*fakes.vllm()) as fake:
            silent_url = "http://127.0.0.1:%d/v1" % silent.getsockname()[1]
            begin = time.monotonic()
            found = find.find_server(UNSET, {}, Cancel(),
                                     [Candidate(url) for url in (silent_url, silent_url, fake.url)],
                                 seconds=0.4)
            took = time.monotonic() - begin
        self.assertEqual(found.server.url, fake.url)
        self.assertTrue(0.35 < took < 0.9, took)
        self.assertEqual(find.LIST_SECONDS, 2)
        self.assertEqual(found.notes, ("%s accepts connections and did not list its models in 0.4 s (--url "
                                       "%s asks it all the same)"
                                       % (silent_url, silent_url),) * 2)

    def test_a_slow_later_one_is_not_waited_for(self):
        with socket.create_server(("127.0.0.1", 0)) as silent, Pages(*fakes.vllm()) as fake:
            begin = time.monotonic()
            find.find_server(UNSET, {}, Cancel(), [Candidate(url) for url in (
                fake.url, "http://127.0.0.1:%d/v1" % silent.getsockname()[1])])
            self.assertLess(time.monotonic() - begin, 0.5)

    def test_a_cancel_ends_the_search_at_once(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            cancel = Cancel()
            threading.Timer(0.1, cancel.cancel).start()
            begin = time.monotonic()
            with self.assertRaises(Cancelled):
                find.find_server(UNSET, {}, cancel,
                                 [Candidate("http://127.0.0.1:%d/v1" % silent.getsockname()[1], None, None)])
            self.assertLess(time.monotonic() - begin, 0.5)
            for thread in threading.enumerate():
                if thread.name == "search":
                    thread.join(1)
            self.assertNotIn("search", [thread.name for thread in threading.enumerate()])


class TheModel(Around):
    def test_which_one(self):
        three = ["a-embed", "b", "c"]
        cases = [
            (fakes.vllm(three), "b"), (fakes.vllm(["x-Rerank", "y"]), "y"),
            (fakes.ollama(three, loaded=["c"]), "c"), (fakes.ollama(three, loaded=["a-embed"]), "b"),
            (fakes.ollama(three), "b"), (fakes.lm_studio(three, loaded=["c"]), "c"),
            (fakes.lm_studio(three, loaded=["c"], old=True), "c"), (fakes.lm_studio(three), "b"),
            (fakes.router(three, loaded=["c"]), "c"), (fakes.router(three, loaded=[]), "b"),
            (fakes.docker(three), "b"),
        ]
        for each, expected in cases:
            with self.subTest(expected=expected, pages=sorted(each[0])):
                found, _ = self.around(each)
                self.assertEqual(found.server.model, expected)
                other = "c" if expected == "b" else "b"
                if "y" not in expected:
                    self.assertIn("model: %s (also there: %s) · " % (expected, other), found.line)
                found, _ = self.around(each, config=UNSET._replace(model_name="mine"))
                self.assertEqual(found.server.model, "mine")

    def test_one_model_needs_no_question(self):
        with Pages(*fakes.ollama(["only", "an-embedding-model"])) as fake:
            find.find_server(UNSET, {}, Cancel(), [Candidate(fake.url)])
        self.assertEqual(fake.asked, ["/v1/models"])


class TheServerThatIsSet(unittest.TestCase):
    def find(self, url, **more):
        return find.find_server(UNSET._replace(model_url=url, **more),
                                {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, Cancel())

    def test_the_first_that_can_chat(self):
        cases = [
            (["a", "b"], "a"), (["nomic-Embed-text", "bge-reranker", "qwen"], "qwen"),
            (["nomic-embed-text"], "nomic-embed-text"), ([], find.ANY_MODEL), ([None, 7, ""], find.ANY_MODEL),
            (None, find.ANY_MODEL),
        ]
        for models, expected in cases:
            with self.subTest(models), ModelServer(models=models) as server:
                found = self.find(server.url)
                self.assertEqual((found.server.model, found.server.url, found.origin),
                                 (expected, server.url, find.SET))

    def test_without_v1_both_are_tried(self):
        listing = {"object": "list", "data": [{"id": "m"}]}
        cases = [("only with it", {"/v1/models": listing}, "/v1"),
                 ("both", {"/v1/models": listing, "/models": listing}, ""), ("neither", {}, ""),
                 ("an answer to anything", {"/models": {"error": "Unexpected endpoint"},
                                            "/v1/models": listing}, "/v1")]
        for what, pages, end in cases:
            for model in (None, "m"):
                with self.subTest(what, model=model), Pages(pages) as server:
                    found = self.find(server.root, model_name=model)
                    self.assertEqual(server.root + end, found.server.url)
                    moved = ("%s answers at %s/v1: it is asked there from now on"
                             % (server.root, server.root),)
                    self.assertEqual(moved if end else (), found.notes)

    def test_it_gets_the_key_and_rarely_a_line(self):
        with Pages(*fakes.vllm(["a"])) as fake:
            self.assertEqual(self.find(fake.url, model_api_key="secret-key").line, "")
            self.assertEqual(fake.headers[0]["Authorization"], "Bearer secret-key")
            self.assertEqual(self.find(fake.url, model_name="m"), find.Found(
                Server(fake.url, "m", headers={}, extra={}, product="vllm"), find.SET))
        self.assertEqual(len(fake.asked), 2)
        with Pages(*fakes.vllm(["a", "b"])) as fake:
            self.assertEqual(self.find(fake.url).line, "model: a (also there: b) · %s · another one: --model "
                                                       "NAME" % fake.url)

    def test_nobody_there(self):
        with self.assertRaisesRegex(ModelError, "connection refused"):
            self.find(closed_url())

    def test_a_list_that_never_comes_is_given_up(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            cancel = Cancel()
            threading.Timer(0.1, cancel.cancel).start()
            with self.assertRaises(Cancelled):
                find.find_server(UNSET._replace(model_url="http://127.0.0.1:%d/v1" % silent.getsockname()[1]),
                                 {}, cancel)


class ThePlaces(unittest.TestCase):
    def test_their_order(self):
        environ = {"OPENAI_BASE_URL": "http://box:1/v1/", "OLLAMA_HOST": "0.0.0.0:5"}
        urls = [place.url for place in candidates(environ) if "docker.internal" not in place.url]
        self.assertEqual(urls, ["http://box:1/v1", "http://127.0.0.1:5/v1"] + [
            "http://127.0.0.1:%s/v1" % port for port in ("8080", "11434", "1234", "12434/engines", "8000",
                                                         "30000")])

    def test_a_named_usual_place_is_asked_once(self):
        found = candidates({"OLLAMA_HOST": "127.0.0.1"})
        self.assertEqual(found[0], Candidate("http://127.0.0.1:11434/v1", "OLLAMA_HOST", "ollama"))
        self.assertEqual(len({each.url for each in found}), len(found))

    def test_ollama_s_variable(self):
        cases = [
            ("0.0.0.0", "http://127.0.0.1:11434/v1"), ("0.0.0.0:1", "http://127.0.0.1:1/v1"),
            ("127.0.0.1:1", "http://127.0.0.1:1/v1"), (":1", "http://127.0.0.1:1/v1"),
            ("box", "http://box:11434/v1"), ("http://box", "http://box:80/v1"),
            ("https://box", "https://box:443/v1"), ("http://box:1/", "http://box:1/v1"),
            ("http://box:1/v1", "http://box:1/v1"), ("http://box:1/v1/", "http://box:1/v1"),
            ("box:1/ollama", "http://box:1/ollama/v1"), ("[::]:1", "http://[::1]:1/v1"),
            ("::1", "http://[::1]:11434/v1"), ("[::1]", "http://[::1]:11434/v1"),
            (" box ", "http://box:11434/v1"), ("box:", "http://box:11434/v1"),
            ("box:abc", "http://box:11434/v1"), ("127.0.0.1:99999", "http://127.0.0.1:11434/v1"),
            ('"0.0.0.0:1"', "http://127.0.0.1:1/v1"), ("http://box:/v1", "http://box:80/v1"),
            ("[::1", "http://[::1]:11434/v1"), ("box\u2100", None), ("", None), ("unix:///tmp/x", None),
            ("user:secret@box", None),
        ]
        for given, expected in cases:
            with self.subTest(given):
                self.assertEqual(ollama_url({"OLLAMA_HOST": given}), expected)
        self.assertIsNone(ollama_url({}))

    def test_openai_s_variable(self):
        cases = [
            ("http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1"),
            ("http://127.0.0.1:1/v1/", "http://127.0.0.1:1/v1"),
            ("http://127.0.0.1:1", "http://127.0.0.1:1/v1"), ("http://h/engines/v1", "http://h/engines/v1"),
            ("", None), ("box:1", None), ("http://", None), ("http://h:x/v1", None),
            ("http://u:p@h/v1", None), ("ftp://h/v1", None), ("http://h/v1?key=x", None),
            ("http://[::1/v1", None),
        ]
        for given, expected in cases:
            with self.subTest(given):
                self.assertEqual(openai_url({"OPENAI_BASE_URL": given}), expected)

    def test_which_addresses_are_near(self):
        for address in ("127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "172.31.255.255",
                        "192.168.65.254", "::1", "fd00::1", "::ffff:127.0.0.1"):
            self.assertTrue(find.is_near(address), address)
        for address in ("8.8.8.8", "172.32.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "2001:db8::1",
                        "::ffff:8.8.8.8", "192.0.2.1"):
            self.assertFalse(find.is_near(address), address)

    def test_a_cancel_reaches_the_look_at_a_name(self):
        cancel = Cancel()
        cancel.cancel()
        with self.assertRaises(Cancelled):
            find.refuses("http://a-name-that-a-resolver-may-be-slow-with.invalid/v1", cancel)

    def test_who_refuses(self):
        self.assertTrue(find.refuses(closed_url(), Cancel()))
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.assertFalse(find.refuses("http://127.0.0.1:%d/v1" % listening.getsockname()[1], Cancel()))


if __name__ == "__main__":
    unittest.main()
