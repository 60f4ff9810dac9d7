"""Which make of server it is."""

from __future__ import annotations

import unittest

from mm.model import known_servers


def listing(**model) -> dict:
    return {"object": "list", "data": [dict(model, object="model")]}


def key(product):
    return product and product.key


class Makes(unittest.TestCase):
    def test_by_its_usual_address(self):
        cases = [
            *((product.url, product.key) for product in known_servers.PRODUCTS
              if product.key not in ("mlx-lm", "llama-cpp-python")),
            ("http://127.0.0.1:8080", "llama.cpp"),
            ("http://gpu-box:11434/v1", "ollama"),
            ("http://127.0.0.1:9999/engines/v1", "docker"),
            ("http://127.0.0.1:9999/engines/llama.cpp/v1", "docker"),
            ("http://model-runner.docker.internal/engines/v1", "docker"),
            ("http://model-runner.docker.internal/v1", "docker"),
            ("http://127.0.0.1:9999/v1", None),
            ("http://example.com/v1", None),
            ("http://host:99999/v1", None),
            ("http://[::1/v1", None),
            ("", None),
        ]
        for url, expected in cases:
            with self.subTest(url):
                self.assertEqual(expected, key(known_servers.of_url(url)))

    def test_by_its_list_of_models(self):
        cases = [
            ("llama.cpp", listing(id="m.gguf", owned_by="llamacpp"), ""),
            ("llama.cpp", None, "llama.cpp"),
            ("llama.cpp", listing(id="m", owned_by="library"), "llama.cpp"),
            ("ollama", listing(id="qwen3:8b", owned_by="library"), ""),
            ("ollama", listing(id="hf.co/bartowski/X-GGUF:Q4_K_M", owned_by="bartowski"), ""),
            ("lmstudio", listing(id="qwen3-8b", owned_by="organization_owner"), ""),
            ("docker", listing(id="docker.io/ai/qwen3:latest", owned_by="docker"), ""),
            ("vllm", listing(id="Qwen/Qwen3-8B", owned_by="vllm"), "uvicorn"),
            ("sglang", listing(id="Qwen/Qwen3-8B", owned_by="sglang"), "uvicorn"),
            ("llama-cpp-python", listing(id="m.gguf", owned_by="me"), "uvicorn"),
            ("mlx-lm", listing(id="mlx-community/Qwen3-8B-4bit"), "BaseHTTP/0.6 Python/3.12.1"),
            (None, listing(id="a/b", owned_by="somebody"), "nginx"),
            (None, listing(id="m", owned_by=["vllm"]), ""),
            (None, {"data": None}, ""), (None, {"data": [1, None]}, ""), (None, {"models": []}, ""),
            (None, ["x"], ""), (None, None, ""),
        ]
        for expected, answer, header in cases:
            with self.subTest(answer=answer, header=header):
                self.assertEqual(expected, key(known_servers.of_models(answer, header)))

    def test_each_has_its_commands(self):
        self.assertEqual(len(known_servers.PRODUCTS),
                         len({product.key for product in known_servers.PRODUCTS}))
        for product in known_servers.PRODUCTS:
            with self.subTest(product.key):
                self.assertIs(product, known_servers.of_key(product.key))
                self.assertTrue(product.title and product.start and product.tools)
                self.assertRegex(product.url, r"^http://127\.0\.0\.1:\d+(/engines)?/v1$")
                self.assertTrue(product.pull is None or "<model>" in product.pull)
                # A newcomer is told the whole way: with the model, and with what tools and a window for
                # agents need.
                if product.pull:
                    self.assertIn(known_servers.with_model(product.pull,
                                                           known_servers.FIRST_MODEL[product.key]),
                                  product.first)
                self.assertNotIn("<", product.first or "")
                self.assertEqual(product.first is None, product.key == "llama-cpp-python")
        self.assertIsNone(known_servers.of_key(None))

    def test_which_have_a_port_of_their_own(self):
        self.assertEqual([product.key for product in known_servers.PRODUCTS
                          if known_servers.alone_at(product.key)], ["ollama", "lmstudio", "docker", "sglang"])
        self.assertIsNone(known_servers.alone_at(None))

    def test_only_plain_names_stand_in_commands(self):
        for name, expected in (("qwen/qwen3-8b", "load qwen/qwen3-8b"), ("a b", "load <model>"),
                               ("$(reboot)", "load <model>"), ("-x", "load <model>"),
                               ("a\nb", "load <model>"), ("", "load <model>"), (None, "load <model>")):
            with self.subTest(name):
                self.assertEqual(known_servers.with_model("load <model>", name), expected)


if __name__ == "__main__":
    unittest.main()
