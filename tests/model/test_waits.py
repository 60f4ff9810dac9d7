"""What the user learns of a wait for the model server: in the log at growing intervals, and as events every
second.
"""

from __future__ import annotations

import unittest

from mm.cancel import Cancel, Cancelled
from mm.model import chat, waits
from mm.model.waits import Listener, Wait
from tests.fakes.model_server import ModelServer
from tests.model import streams

HALF = {"total": 200, "processed": 90, "cache": 0}


class Waits(unittest.TestCase):
    def setUp(self):
        self.logged, self.waited = [], []
        self.listener = Listener(self.logged.append, waiting=lambda *waiting: self.waited.append(waiting))

    def test_logged_at_growing_intervals(self):
        wait = Wait(waits.LOADING, self.listener)
        for second in range(0, 200):
            wait.report(second)
        lines = ["the model is still loading (%d s)…" % at for at in (10, 20, 40, 80, 160)]
        self.assertEqual(["the model is still loading…", *lines], self.logged)
        self.assertEqual([("the model is loading", second) for second in range(0, 200)], self.waited)

    def test_progress_of_reading_the_prompt(self):
        cases = [(HALF, "reading the prompt, 45 %", "waiting for the model (35 s, 45 % of the prompt read)…"),
                 *((none, "waiting for the model", "waiting for the model (35 s)…")
                   for none in ({"total": 0, "processed": 0}, [1], {"total": "x", "processed": 1}, None))]
        for progress, doing, line in cases:
            with self.subTest(progress):
                self.logged.clear()
                wait = Wait(waits.ANSWER, self.listener, 10)
                wait.take_progress(progress)
                wait.report(35)
                self.assertEqual(([line], (doing, 35)), (self.logged, self.waited[-1]))

    def test_a_pause_is_reported(self):
        Wait(waits.BUSY, self.listener).pause(0, Cancel())
        self.assertEqual((["the server is busy; waiting…"], 1), (self.logged, len(self.waited)))
        cancel = Cancel()
        listener = self.listener._replace(waiting=lambda *_: cancel.cancel())
        self.assertRaises(Cancelled, Wait(waits.BUSY, listener).pause, 60, cancel)

    def test_a_silent_server_is_reported(self):
        cancel = Cancel()
        listener = self.listener._replace(waiting=lambda *waiting: (self.waited.append(waiting),
                                                                    cancel.cancel()))
        with ModelServer([{"hang": True}]) as server:
            asked = chat.complete(streams.server(server.url), [], [], cancel, listener=listener)
            self.assertRaises(Cancelled, next, asked)
        self.assertEqual("waiting for the model", self.waited[0][0])

    def test_comments_do_not_hide_a_wait(self):
        pings = [{"raw": b": ping\n\n"}, {"pause": 0.1}] * 13
        with ModelServer([*pings, {"text": "x"}, {"data": "[DONE]"}]) as server:
            list(chat.complete(streams.server(server.url), [], [], Cancel(), listener=self.listener))
        self.assertEqual(["waiting for the model"], [doing for doing, _ in self.waited])


if __name__ == "__main__":
    unittest.main()
