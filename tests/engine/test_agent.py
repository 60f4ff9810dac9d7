"""The process's model server: looked for by the first prompt, again after a failure, and again when it is gone."""

from __future__ import annotations

import socket
import unittest

from mm.cancel import Cancel
from mm.engine.agent import Agent
from mm.model import servers
from tests import support
from tests.fakes import makes as fakes
from tests.fakes.makes import Pages


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


class TheServer(unittest.TestCase):
    """OPENAI_BASE_URL comes first: what else runs on this machine matters only where nothing is to be found."""

    def test_one_that_is_started_later_is_found_by_the_next_prompt_and_so_is_the_next_one(self):
        for place in servers.places_of({}):
            if "docker.internal" not in place.url and not servers.refuses(place.url):
                self.skipTest("something listens at %s" % place.url)
        port = free_port()
        url = "http://127.0.0.1:%d/v1" % port
        with support.Client(env=support.environment(OPENAI_BASE_URL=url)) as client:
            client.initialize()
            session = client.new_session()
            self.fails(client, session)
            for model in ("first", "second"):
                with Pages(*fakes.vllm([model]), chat=fakes.words("I am " + model), port=port) as fake:
                    for _ in range(2):
                        client.prompt(session, "who are you?")
                    self.assertEqual([body["model"] for body in fake.bodies], [model] * 2)
                self.assertEqual(client.text(), "I am first" * 2 + "I am second" * 2 * (model == "second"))
                line = "model: %s · vLLM at %s · another one: --model NAME or --url URL\n" % (model, url)
                self.assertEqual(client.stderr.count(line), 1, client.stderr)
                self.fails(client, session)

    def fails(self, client, session):
        with self.assertRaisesRegex(support.RemoteError, "no model server is running here"):
            client.prompt(session, "hello")

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
        agent = Agent(Config)
        first = agent.server(Cancel())
        self.assertIs(agent.server(Cancel()), first)
        self.assertEqual(tuple(first), (Config.model_url, "m", "key", {"X": "y"}, 3, 0.5, 7, {"a": 1}, None))


if __name__ == "__main__":
    unittest.main()
