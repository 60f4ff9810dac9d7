"""How much of each request a real llama-server reads that it has not read before."""

from __future__ import annotations

import unittest

from tests.engine import long_turn
from tests.real import server

# Prompt tokens that the server reads, over those that the request has more than the one before.
MOST = 1.1


class Prefix(server.RealTest):
    def test_only_what_is_new_is_read(self):
        first = {"messages": [{"role": "user", "content": "Hello."}]}
        if not self.asked(first)["timings"]:
            self.skipTest("this server does not tell how much of a prompt it reads")
        bodies = long_turn.record().bodies
        bodies = [body for body, before in zip(bodies, [None] + bodies) if body != before]  # asked again after a failure
        self.assertGreater(len(bodies), 10)
        rows, before = [], None
        for body in bodies:
            told = self.asked(body)
            size = told["usage"]["prompt_tokens"]
            rows.append((size, size - before if before else None, told["timings"]["prompt_n"]))
            before = size
        server.report("prompt tokens, added, read: " + ", ".join("%s %s %s" % row for row in rows))
        for number, (_, added, read) in enumerate(rows[1:], 2):
            with self.subTest(request=number):
                self.assertLessEqual(read, MOST * added)

    def asked(self, body: dict) -> dict:
        """The counts of the answer to a body of mm's, of which one token is enough."""
        told = {"usage": None, "timings": None}
        for event in server.stream(dict(body, model=server.model(), max_tokens=1, temperature=0)):
            told.update((name, event[name]) for name in told if event.get(name))
        return told


if __name__ == "__main__":
    unittest.main()
