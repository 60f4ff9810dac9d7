"""The model server of a process: found once, whoever needs it first, and nothing said before a prompt has
it.
"""

from __future__ import annotations

import threading
import unittest
from unittest import mock

from mm.cancel import Cancel, Cancelled
from mm.config import config
from mm.errors import UserError
from mm.model.candidates import Candidate
from mm.model.connection import Connection
from tests.fakes.products import Pages


def connection(*urls) -> Connection:
    """`urls`: where to look."""
    return Connection(config.load("/", {}, None, {}), candidates=[Candidate(url) for url in urls], environ={})


def pages(*models, **more) -> Pages:
    """A llama.cpp with these models and a window of 20,000 tokens."""
    listing = {"object": "list", "data": [{"id": name, "owned_by": "llamacpp"} for name in models]}
    return Pages({"/v1/models": listing, "/props": {"default_generation_settings": {"n_ctx": 20000}}}, **more)


class Finding(unittest.TestCase):
    def test_a_warm_up_and_prompts_share_one_search(self):
        with pages("m", delays={"/v1/models": 0.2}) as server:
            one, found = connection(server.url), []
            threads = [threading.Thread(target=one.warm_up)]
            threads += [threading.Thread(target=lambda: found.append(one.server(Cancel()))) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
            one.window.look(found[0])
            one.window.wait(10)
        self.assertEqual(["m"] * 4, [each.model for each in found])
        self.assertEqual(1, len({id(each) for each in found}))
        self.assertEqual(["/props", "/v1/models"], sorted(server.asked))
        self.assertEqual(20000, one.window.size)

    def test_only_a_prompt_says_what_was_found(self):
        with pages("m") as server, mock.patch("mm.log.line") as line:
            one = connection(server.url)
            one.warm_up()
            one.window.wait(10)
            self.assertEqual(0, line.call_count)
            for _ in range(2):
                one.server(Cancel())
            self.assertEqual(1, line.call_count)

    def test_a_failure_is_not_kept(self):
        with pages() as server:
            one = connection(server.url)
            one.warm_up()
            self.assertRaises(UserError, one.server, Cancel())
            server.pages["/v1/models"] = pages("m").pages["/v1/models"]
            self.assertEqual("m", one.server(Cancel()).model)

    def test_a_cancel_ends_only_its_own_wait(self):
        with pages("m", delays={"/v1/models": 0.5}) as server:
            one, cancel, ended = connection(server.url), Cancel(), []
            threads = [threading.Thread(target=self.ask, args=(one, each, ended))
                       for each in (cancel, Cancel())]
            for thread in threads:
                thread.start()
            cancel.cancel()
            for thread in threads:
                thread.join(10)
        self.assertEqual([Cancelled, "m"], ended)
        self.assertEqual(["/v1/models"], server.asked)

    def test_a_cancelled_prompt_spoils_no_later_search(self):
        with pages("m", delays={"/v1/models": 0.2}) as server:
            one, cancel, ended = connection(server.url), Cancel(), []
            cancel.cancel()
            self.ask(one, cancel, ended)
            self.ask(one, Cancel(), ended)
        self.assertEqual([Cancelled, "m"], ended)

    def ask(self, one, cancel, ended):
        try:
            ended.append(one.server(cancel).model)
        except Cancelled as error:
            ended.append(type(error))


if __name__ == "__main__":
    unittest.main()
