"""Every sample stream, cut everywhere and in every transport: the same answer or the same failure."""

from __future__ import annotations

import json
import os
import unittest

from mm.model import chat
from mm.model.chat import ModelError
from tests.fakes.model_server import ModelServer
from tests.model import streams


class Samples(unittest.TestCase):
    def test_each_sample_in_each_cut(self):
        for name, expected in streams.expected().items():
            for cut, pieces in streams.cuts(streams.sample(name)):
                with self.subTest(sample=name, cut=cut):
                    events, answer, complete = streams.parse(pieces, streams.TOOLS)
                    self.check(expected, events, answer.error and json.dumps(answer.error), complete)

    def test_each_sample_over_http_in_each_transport(self):
        for transport in ("chunked", "close", "length"):
            with ModelServer() as server:
                for name, expected in streams.expected().items():
                    server.script([{"transport": transport}, {"raw": streams.sample(name)}])
                    with self.subTest(sample=name, transport=transport):
                        events, error = [], None
                        try:
                            for event in chat.complete(streams.server(server.url), [], streams.TOOLS,
                                                       streams.Cancel()):
                                events.append(event)
                        except ModelError as problem:
                            error = problem.words or str(problem)
                        self.check(expected, events, error, error is None)

    def test_no_sample_is_left_out(self):
        self.assertEqual(set(streams.expected()), {name[:-4] for name in os.listdir(streams.FOLDER)
                                                   if name.endswith(".sse")})

    def test_calls_in_the_text_stay_there_without_tools(self):
        for name, expected in streams.expected().items():
            if expected.get("leaked"):
                with self.subTest(name):
                    events, _, _ = streams.parse([streams.sample(name)])
                    self.assertEqual([], streams.digest(events)["calls"])

    def check(self, expected, events, error, complete):
        found = streams.digest(events)
        self.assertEqual({key: expected[key] for key in found}, found)
        self.assertEqual(expected["complete"], complete)
        if expected["error"]:
            self.assertIn(expected["error"], error)


if __name__ == "__main__":
    unittest.main()
