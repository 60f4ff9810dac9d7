"""What the user learns of a wait for the model server: in the log at growing intervals, and as events every
second.
"""

from __future__ import annotations

import threading
import time
import unittest

from mm.model import waits
from mm.model.waits import Clock, Listener, Wait

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

    def test_a_clock_reports_until_it_is_stopped(self):
        came = threading.Event()
        listener = self.listener._replace(waiting=lambda *_: came.set())
        with Clock(Wait(waits.ANSWER, listener, 60), time.monotonic(), 0.001) as clock:
            self.assertTrue(came.wait(10))
        came.clear()
        clock.join(10)
        self.assertFalse(came.is_set() or clock.is_alive())
        self.assertEqual([], self.logged)


if __name__ == "__main__":
    unittest.main()
