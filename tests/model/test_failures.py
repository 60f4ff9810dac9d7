"""What a server's refusal means, in the words of every server, and the line that is made of it."""

from __future__ import annotations

import json
import os
import re
import time
import unittest

from mm.model import failures, known_servers
from mm.model.failures import Failure
from tests import support
from tests.model import streams

PAGE = "<!doctype html><html><head><title>%s</title></head><body><pre>%s</pre></body></html>"


def error(message, **more) -> str:
    return json.dumps({"error": dict(more, message=message)})


def samples() -> list:
    with open(os.path.join(streams.FOLDER, "errors.json"), encoding="utf-8") as file:
        return json.load(file)


class Kinds(unittest.TestCase):
    def test_the_samples(self):
        self.assertEqual(40, len(samples()))
        for sample in samples():
            with self.subTest(sample["body"][:80]):
                found = failures.of_body(sample["status"], sample["body"])
                self.assertEqual((sample["kind"], sample["numbers"]), (found.kind, found.numbers))

    def test_the_samples_as_errors_in_a_stream(self):
        """An `error` under 200 has only its words; those of the auth samples and the two pages say nothing
        without their status."""
        for sample in samples():
            if not sample["body"].startswith("{") or sample["status"] == 401:
                continue
            value = json.loads(sample["body"])
            with self.subTest(sample["body"][:80]):
                found = failures.of_value(value.get("error", value), 200)
                kind = "server_crash" if sample["kind"] == "bad_request" else sample["kind"]
                self.assertEqual((kind, sample["numbers"]), (found.kind, found.numbers))

    def test_prompts_that_are_too_long(self):
        cases = [
            (8192, 9001, "You passed 9001 input tokens and requested 100 output tokens. However, the model's "
                         "context length is only 8192 tokens, "
             "resulting in a maximum input length of 8092 tokens."),
            (8192, 9000, "The decoder prompt (length 9000) is longer than the maximum model length of 8192."),
            (4096, 5228, "Trying to keep the first 5228 tokens when context the overflows. However, the "
                         "model is loaded with context length of "
             "only 4096 tokens, which is not enough."),
            (4096, 5000, "The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
            (4090, 5000, "Input length (5000 tokens) exceeds the maximum allowed length (4090 tokens). Use a "
                         "shorter input."),
            (2048, 2285, "Requested tokens (2285) exceed context window of 2048"),
            (4096, 5000, "Prompt length 5000 is greater than max_seq_len 4096"),
            (200000, 210000, "prompt is too long: 210000 tokens > 200000 maximum"),
            (0, 0, "Context size has been exceeded."),
            (0, 0, "input length exceeds the context length"),
            (0, 0, "exceeded context window"),
            (0, 0, "The prompt is too long."),
            (4096, 3000, "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum "
                         "context length is 4096 tokens and your "
             "request has 3000 input tokens (2000 > 4096 - 3000)."),
        ]
        for window, prompt, words in cases:
            numbers = {name: count for name, count in (("window", window), ("prompt", prompt)) if count}
            for status in (200, 400, 500):
                with self.subTest(words, status=status):
                    self.assertEqual(("context_overflow", numbers),
                                     failures.of_body(status, error(words))[:2])

    def test_words_alone(self):
        cases = [
            ((8192, 9125), "request (9125 tokens) exceeds the available context size (8192 tokens), try "
                           "increasing it"),
            ((256, 1407), '"type": "exceed_context_size_error", "n_prompt_tokens": 1407, "n_ctx": 256'),
            ((0, 0), "the request exceeds the available context size. try increasing the context size or "
                     "enable context shift"),
            ((0, 0), "context shift is disabled"),
            ((8192, 8000), "This model's maximum context length is 8192 tokens. However, you requested 9000 "
                           "tokens (8000 in the messages, "
             "1000 in the completion)."),
            (None, "model is not loaded"), (None, "Invalid API Key"), (None, "tools param requires --jinja "
                                                                             "flag"),
            (None, "Rate limit exceeded: too many requests"), (None, "model 'qwen9' not found"),
            (None, "maximum models loaded"), (None, "Failed to parse tool call arguments as JSON: parse "
                                                    "error at line 1, column 131"),
            (None, "unable to load runner: not enough GPU memory to load the model (CUDA)"),
            (None, "After the optional system message, conversation roles must alternate user and assistant "
                   "roles"),
            (None, "the tool context_length has no description"),
        ]
        for expected, words in cases:
            with self.subTest(words):
                self.assertEqual(expected, failures.overflow(words))

    def test_kinds_by_words_and_status(self):
        gone = PAGE % ("502 Bad Gateway", "nginx")
        cases = [
            ("loading", 503, error("Loading model", code=503, type="unavailable_error")),
            ("loading", 500, error("llm server loading model")),
            ("loading", 503, error("The model is still loading, please wait")),
            ("loading", 200, '{"error": "model is loading"}'),
            ("bad_request", 400, error("model is loading")),  # whatever it is, it is not waited for
            ("server_crash", 500, error("error loading model: unknown architecture")),
            ("server_crash", 500, error("Failed to load model \"m\". Error: insufficient system resources")),
            ("server_crash", 500, error("model requires more system memory (9.2 GiB) than is available")),
            ("server_crash", 500, error("CUDA error: out of memory")),
            ("server_crash", 200, error("The model has crashed without additional information. (Exit code: 6)")),
            ("server_crash", 500, error("llama runner process has terminated: exit status 2")),
            ("server_crash", 500, ""),
            ("server_crash", 500, error("1 validation error: [{'type': 'missing'}] /usr/lib/python3/x.py")),
            ("server_crash", 500, error("Failed to parse tools: key 'name' not found; tools = [\"context "
                                        "length\"]")),
            ("busy", 429, error("Too many tokens per minute: context length 9")),
            ("busy", 429, ""),
            ("busy", 503, ""),
            ("busy", 503, error("server busy, please try again.  maximum pending requests exceeded")),
            ("busy", 503, PAGE % ("503", "Service Unavailable")),
            ("busy", 500, error("all slots are in use")),
            ("model_not_loaded", 400, error("Model is unloaded.")),
            ("model_not_loaded", 200, '{"error": "Model unloaded."}'),
            ("model_not_found", 404, error("Invalid model identifier \"qwen9\". Please specify a valid "
                                           "downloaded model")),
            ("model_not_found", 404, error("model not found")),
            ("model_not_found", 400, error("nope", code="model_not_found")),
            ("model_not_found", 404, error("Repository Not Found for url: "
                                           "https://huggingface.co/api/models/a/b")),
            ("model_not_found", 404, '{"error": "qwen9 is not a local folder and is not a valid model '
                                     'identifier listed on x"}'),
            ("tools_unsupported", 400, error("registry.ollama.ai/library/gemma:2b does not support tools")),
            ("tools_unsupported", 400, error("\"auto\" tool choice requires --enable-auto-tool-choice and "
                                             "--tool-call-parser to be set")),
            ("tools_unsupported", 500, error("Jinja Exception: This model does not support tool calls")),
            ("template", 500, error("Error: Jinja Exception: Conversation roles must alternate "
                                    "user/assistant/user/assistant/...")),
            ("template", 400, error("System role not supported")),
            ("template", 400, error("Only user and assistant roles are supported!")),
            ("template", 400, error("Unexpected role 'user' after role 'tool'")),
            ("template", 400, error("'NoneType' object is not iterable in chat template")),
            ("schema", 400, error("Unable to generate parser for this template. Automatic parser generation "
                                  "failed: JSON schema error at #")),
            ("trailing_assistant", 400, error("Cannot have 2 or more assistant messages at the end of the "
                                              "list.")),
            ("trailing_assistant", 400, error("Expected last role User or Tool (or Assistant with prefix "
                                              "True) for serving but got assistant")),
            ("trailing_assistant", 400, error("The last message must not be from the assistant")),
            ("bad_history_arguments", 500, error("Failed to parse tool call arguments as JSON: "
                                                 "[json.exception.parse_error.101]")),
            ("auth", 401, "nobody"),
            ("auth", 403, ""),
            ("auth", 403, '{"detail": "Forbidden"}'),
            ("bad_request", 403, error("this model requires a subscription")),
            ("request_too_large", 413, ""),
            ("request_too_large", 400, "http: request body too large"),
            ("proxy", 502, gone),
            ("proxy", 504, "upstream timed out"),
            ("server_crash", 502, error("the backend said nothing")),
            ("wrong_url", 404, ""),
            ("wrong_url", 404, "404 page not found"),
            ("wrong_url", 404, '{"detail":"Not Found"}'),
            ("wrong_url", 405, '{"detail":"Method Not Allowed"}'),
            ("wrong_url", 404, error("File Not Found", code=404, type="not_found_error")),
            ("wrong_url", 404, PAGE % ("Error", "Cannot POST /chat/completions")),
            ("bad_request", 404, '{"error": "list index out of range"}'),
            ("bad_request", 400, error("Field 'max_tokens': type must be number, but is string")),
            ("bad_request", 400, error("'max_tokens' or 'max_completion_tokens' is too large: 4096. This "
                                       "model's maximum context length is "
                                       "4096 tokens and your request has 20 input tokens (4096 > 4096 - 20).")),
            ("bad_request", 422, '{"detail": [{"loc": ["body"], "msg": "field required"}]}'),
            ("server_crash", 200, error("list index out of range")),
        ]
        for kind, status, body in cases:
            with self.subTest(body[:90], status=status):
                self.assertEqual(kind, failures.of_body(status, body).kind)

    def test_numbers(self):
        cases = [
            ({"model": "qwen9"}, error("Invalid model identifier \"qwen9\".")),
            ({"model": "a/b:Q4"}, error("model \"a/b:Q4\" not found, try pulling it first")),
            ({}, error("model not found")),
            ({"field": "stream_options"}, '{"detail": [{"loc": ["body", "stream_options"], "msg": "extra '
                                          'fields not permitted"}]}'),
            ({"field": "reasoning_content"}, error("unknown field messages[2].reasoning_content")),
            ({"field": "reasoning"}, error("messages.1.reasoning: extra fields not permitted")),
            ({}, error("unknown field x")),
            ({}, error("reasoning_effort is not supported")),
        ]
        for numbers, body in cases:
            with self.subTest(body):
                self.assertEqual(numbers, failures.of_body(400, body).numbers)

    def test_any_value_and_any_body_has_a_kind(self):
        for value in (None, True, 3, [], {}, [[[]]], {"error": None}, {"message": {"a": {}}}, {"code": "x"},
                      "", "\x00"):
            for status in (200, 400, 404, 500, 599, 0):
                with self.subTest(value=value, status=status):
                    self.assertIn(failures.of_value(value, status).kind, failures.RULES)
                    self.assertIn(failures.of_body(status, json.dumps(value)).kind, failures.RULES)

    def test_long_bodies_take_no_time(self):
        for piece in ("model ", "not (", "last message ", "a" * 50, "loading the ", "backend ",
                      "exceeds the ", "<html>", "secret=", "://a"):
            with self.subTest(piece):
                start = time.process_time()
                for body in (piece * (1_000_000 // len(piece)), error(piece * (1_000_000 // len(piece)))):
                    failures.line(failures.of_body(400, body), "http://x/v1")
                self.assertLess(time.process_time() - start, 0.5)


class Makers(unittest.TestCase):
    def test_of_a_server(self):
        cases = [
            ("vllm", "vllm", "http://127.0.0.1:11434/v1", "ollama says"),
            ("ollama", None, "http://127.0.0.1:8080/v1", "check ollama server logs for details"),
            ("docker", None, "http://127.0.0.1:1/v1", "backend \"vllm\" is not installed; run: docker model "
                                                      "install-runner"),
            ("lmstudio", None, "http://127.0.0.1:1/v1", "use the 'lms load' command"),
            ("llama.cpp", None, "http://127.0.0.1:1/v1", "tools param requires --jinja flag"),
            ("llama.cpp", None, "http://127.0.0.1:1/v1", "exceed_context_size_error"),
            ("docker", None, "http://127.0.0.1:12434/engines/v1", "exceed_context_size_error"),
            ("ollama", None, "http://127.0.0.1:11434/v1", ""),
            (None, None, "http://127.0.0.1:1/v1", "no"),
        ]
        for expected, known, url, words in cases:
            with self.subTest(words, url=url):
                product = failures.product_of(streams.server(url, product=known), words)
                self.assertEqual(expected, product and product.key)


class Lines(unittest.TestCase):
    def line(self, kind, numbers=None, words="", status=400, product=None, **more):
        return failures.line(Failure(kind, numbers or {}, words, status), "http://h/v1",
                             known_servers.of_key(product), **more)

    def test_the_remedy_is_that_servers(self):
        overflow = {"prompt": 9125, "window": 8192}
        names = ["a", "b", "c", "d", "e", "f"]
        cases = [
            ("the prompt (9125 tokens) does not fit the server's window (8192): /compact, or restart with a "
             "larger one (llama-server -c 32768)",
             ("context_overflow", overflow), {"product": "llama.cpp"}),
            ("the prompt does not fit the server's window: /compact, or restart with a larger one "
             "(OLLAMA_CONTEXT_LENGTH=32768 ollama serve)",
             ("context_overflow",), {"product": "ollama"}),
            ("the prompt does not fit the server's window (8192): /compact, or pick a model with a larger one",
             ("context_overflow", {"window": 8192}), {"product": "mlx-lm"}),
            ("the prompt does not fit the server's window: /compact, or restart with a larger one "
             "(llama-server -c 32768 / "
             "OLLAMA_CONTEXT_LENGTH=32768 ollama serve / lms unload --all; lms load <model> --context-length "
             "32768)", ("context_overflow",), {}),
            ("this model has no tool support here: restart llama-server with --jinja", ("tools_unsupported",),
             {"product": "llama.cpp"}),
            ('this model has no tool support here: pick a model with "tools" in ollama show',
             ("tools_unsupported",), {"product": "ollama"}),
            ("this model has no tool support here: restart vllm serve with --enable-auto-tool-choice "
             "--tool-call-parser <parser>",
             ("tools_unsupported",), {"product": "vllm"}),
            ("this model has no tool support here: pick a model that was trained for tools",
             ("tools_unsupported",), {}),
            ('model "qwen9" is not on this server; it has: a, b, c, d, e, …; choose one with --model, or: '
             'ollama pull qwen9',
             ("model_not_found", {"model": "qwen9"}), {"product": "ollama", "models": names}),
            ('model "qwen9" is not on this server; it has: a; choose one with --model',
             ("model_not_found", {"model": "qwen9"}), {"product": "llama.cpp", "models": ["a"]}),
            ('model "qwen9" is not on this server: docker model pull qwen9',
             ("model_not_found", {"model": "qwen9"}), {"product": "docker"}),
            ('model "qwen9" is not on this server', ("model_not_found", {"model": "qwen9"}), {}),
            ('model "$(reboot)" is not on this server: ollama pull <model>',
             ("model_not_found", {"model": "$(reboot)"}), {"product": "ollama"}),
            ('model "-f" is not on this server: ollama pull <model>', ("model_not_found", {"model": "-f"}),
             {"product": "ollama"}),
            ("no model loaded in LM Studio: lms load <model>", ("model_not_loaded",),
             {"product": "lmstudio"}),
            ("no model loaded in llama.cpp: restart llama-server without --no-models-autoload",
             ("model_not_loaded",), {"product": "llama.cpp"}),
            ("no model loaded in http://h/v1: load one", ("model_not_loaded", {}, "load one"), {}),
            ("no model server at http://h/v1 (connection refused): start it (ollama serve), or set the URL "
             "(--url or MM_URL)",
             ("refused",), {"product": "ollama"}),
            ("http://h/v1 wants an API key (401): set MM_API_KEY or model.apiKey",
             ("auth", {}, "key sk-12345678", 401), {}),
            ("http://h/v1 does not take the API key (403): set MM_API_KEY or model.apiKey",
             ("auth", {}, "", 403), {"has_key": True}),
            ("the model's chat template refused the conversation: roles must alternate.",
             ("template", {}, "\n---\nWhile executing {{ x }} at line 47:\nError: Jinja Exception: roles "
                              "must alternate."), {}),
            ("the model server at http://h/v1 failed (500): no memory", ("server_crash", {}, "\n-----\nno "
                                                                                             "memory\nstack",
                                                                         500), {}),
            ("the model server at http://h/v1 failed (500): no reason given", ("server_crash", {}, "", 500),
             {}),
            ("the model server at http://h/v1 failed (500): " + "x" * 199 + "…",
             ("server_crash", {}, "x" * 999, 500), {}),
            ("http://h/v1 refused the request (400): {address} {0}", ("bad_request", {}, "{address} {0}"),
             {}),
        ]
        for expected, failure, more in cases:
            with self.subTest(expected):
                self.assertEqual(expected, self.line(*failure, **more))

    def test_lines_are_short_printable_without_secrets(self):
        words = ("wrong key sekret-key-1, sek%72et+1, Bearer abcdefgh123, Basic YWxhZGRpbjpvcGVu, "
                 "http://bob:hunter22@host/v1,\n\x1b[31m\u202e"
                 "sk-abcdefgh12 and api_key=qwertz99, \"api-key\": \"asdfgh77\" password: hunter33 "
                 "Authorization: Token hunter44 " + "x" * 9999)
        for kind in failures.RULES:
            with self.subTest(kind):
                found = self.line(kind, {"model": "sekret-key-1\n" + "m" * 999}, words, 401, product="ollama",
                                  secrets=("sekret-key-1", "sek%72et+1"), models=["sekret-key-1", "n" * 999])
                self.assertTrue(found.isprintable(), found)
                self.assertLess(len(found), 600)
                for secret in ("sekret", "sek%72et", "abcdefgh", "YWxh", "hunter22", "bob", "qwertz",
                               "asdfgh", "hunter33"):
                    self.assertNotIn(secret, found)


class TheTable(unittest.TestCase):
    """docs/errors.md says what the code does."""

    PIECES = {
        "start": " (<start>)", "models": "; it has: <models>",
        "pull": "; choose one with --model, or: <pull>", "prompt": " (<n> tokens)", "window": " (<n>)",
        "where": "<where>", "url": "does the URL end in /v1?", "key": "wants an API key",
        "larger_window": "restart with a larger one (<larger window>)",
    }

    def test_kinds_lines_and_retries(self):
        with open(os.path.join(support.PROJECT, "docs", "errors.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| `([a-z_]+)` \| `(.+?)` \| (.+?) \|$", file.read(), re.MULTILINE)
        pieces = dict({name: f"<{name}>" for name in re.findall(r"{(\w+)}",
                                                                "".join(rule.line
                                                                        for rule in failures.RULES.values()))}, **self.PIECES)
        self.assertEqual([(kind, rule.line.format(**pieces).replace("|", "\\|"), rule.again) for kind,
                          rule in failures.RULES.items()], rows)

    def test_the_commands(self):
        with open(os.path.join(support.PROJECT, "docs", "errors.md"), encoding="utf-8") as file:
            text = file.read()
        rows = re.findall(r"^\| (.+?) \| `(.+?)` \| (.+?) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
        code = [(product.title, product.start, f"`{product.larger_window}`" if product.larger_window else "–",
                 f"`{product.pull}`" if product.pull else "–", product.tools)
                for product in known_servers.PRODUCTS]
        self.assertEqual(code, rows)


if __name__ == "__main__":
    unittest.main()
