"""Which model a server is asked for."""

from __future__ import annotations

import socket
import unittest

from mm.cancel import Cancel
from mm.model import servers
from mm.model.chat import ModelError
from tests.fakes.model_server import ModelServer
from tests.model import streams


class FirstModel(unittest.TestCase):
    def test_the_first_that_can_chat(self):
        cases = [
            (["a", "b"], "a"),
            (["nomic-Embed-text", "bge-reranker", "qwen"], "qwen"),
            (["nomic-embed-text"], "nomic-embed-text"),
            ([], None),
            ([None, 7, ""], None),
            (None, None),
        ]
        for models, expected in cases:
            with self.subTest(models), ModelServer(models=models) as server:
                self.assertEqual(expected, servers.first_model(streams.server(server.url), Cancel()))

    def test_nobody_there(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            with self.assertRaisesRegex(ModelError, "connection refused"):
                servers.first_model(streams.server("http://127.0.0.1:%d/v1" % unused.getsockname()[1]), Cancel())


if __name__ == "__main__":
    unittest.main()
