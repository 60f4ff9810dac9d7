"""The process's model server: looked for by the first prompt, again after a failure, and again when it is
gone.
"""

from __future__ import annotations

import socket
import unittest

from mm import log
from mm.config import config
from mm.cancel import Cancel
from mm.engine.process import Process
from mm.errors import UserError
from mm.model import window
from mm.model.candidates import Candidate
from tests import support
from tests.fakes import products as fakes
from tests.fakes.products import Pages


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


class TheServer(unittest.TestCase):
    def test_server_started_later_is_found(self):
        port, told = free_port(), []
        url = "http://127.0.0.1:%d/v1" % port
        process = Process(config.load("/", {}, None, {}), candidates=[Candidate(url)])
        log.tap = told.append
        try:
            for model in ("first", "second"):
                with self.assertRaisesRegex(UserError, "no model server is running here"):
                    process.model.server(Cancel())
                with Pages(*fakes.vllm([model], window=8192 if model == "first" else 20000),
                           port=port) as fake:
                    self.assertEqual([process.model.server(Cancel()).model for _ in range(2)], [model] * 2)
                    self.assertEqual(fake.asked, ["/v1/models"])
                    process.model.window.look(process.model.server(Cancel()))
                    process.model.window.wait(10)
                    self.assertEqual(process.model.window.size, 8192 if model == "first" else 20000)
                    self.assertEqual(process.model.model_name, model)
        finally:
            log.tap = None
        line = "model: %s · vLLM at %s · another one: --model NAME or --url URL"
        self.assertEqual([each for each in told if each.startswith("model: ")],
                         [line % (model, url) for model in ("first", "second")])

    def test_other_model_is_used_after_a_failure(self):
        """OPENAI_BASE_URL comes first: what else runs on this machine does not matter."""
        port = free_port()
        with support.Client(env=support.environment(OPENAI_BASE_URL="http://127.0.0.1:%d/v1"
                                                    % port)) as client:
            client.initialize()
            session = client.new_session()
            with Pages(*fakes.vllm(["first"]), chat=fakes.only("first"), port=port):
                client.prompt(session, "who are you?")
            with Pages(*fakes.vllm(["second"]), chat=fakes.only("second"), port=port):
                with self.assertRaisesRegex(support.RemoteError, 'model "first" is not on this server'):
                    client.prompt(session, "who are you?")
                client.prompt(session, "who are you?")
            self.assertEqual(client.text(), "I am first. I am second. ")

    def test_small_window_is_reported_below_the_answer(self):
        line = window.SMALL % (4096, "OLLAMA_CONTEXT_LENGTH=32768 ollama serve")
        with Pages(*fakes.ollama(["m"], loaded=["m"]), chat=fakes.words("Hello.")) as fake:
            environment = support.environment(OLLAMA_HOST=fake.root, OPENAI_BASE_URL=fake.url)
            with support.Client(env=environment) as client:
                session = client.new_session()
                for _ in range(2):
                    client.prompt(session, "hello")
                self.assertEqual(client.text(), "Hello.\n\n%sHello." % line)
                self.assertEqual(client.stderr.count(line), 1)
            self.assertNotIn("agents need", str(fake.bodies))
            once = support.run("-p", "hello", env=environment)
            self.assertEqual((once.stdout, once.stderr.count(line)), ("Hello.\n", 1))

    def test_nothing_is_asked_before_the_first_prompt(self):
        with Pages(*fakes.vllm()) as fake, support.Client(env=support.environment(OPENAI_BASE_URL=fake.url)) as client:
            client.initialize()
            client.new_session()
            client.close()
            self.assertEqual(fake.asked, [])

    def test_one_that_is_set_is_never_exchanged(self):
        class Config:
            model_url, model_name, model_api_key, model_headers = "http://127.0.0.1:%d/v1" % free_port(), "m", "key", {"X": "y"}
            model_timeout, model_temperature, model_max_tokens, model_extra, model_context_window = 3, 0.5, 7, {"a": 1}, 0
        process = Process(Config)
        first = process.model.server(Cancel())
        self.assertIs(process.model.server(Cancel()), first)
        self.assertEqual(tuple(first), (Config.model_url, "m", "key", {"X": "y"}, 3, 0.5, 7, {"a": 1}, None))


if __name__ == "__main__":
    unittest.main()
