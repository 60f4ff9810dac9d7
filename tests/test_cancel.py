"""Cancel: callbacks, waiting, and the races around both."""

from __future__ import annotations

import threading
import time
import unittest

from mm.cancel import Cancel, Cancelled


class Callbacks(unittest.TestCase):
    def test_each_runs_once_however_often_it_is_cancelled(self):
        cancel, calls = Cancel(), []
        cancel.on_cancel(lambda: calls.append(1))
        cancel.cancel()
        cancel.cancel()
        self.assertEqual(calls, [1])

    def test_one_that_comes_late_runs_at_once(self):
        cancel, calls = Cancel(), []
        cancel.cancel()
        with cancel.on_cancel(lambda: calls.append(1)):
            pass
        self.assertEqual(calls, [1])

    def test_a_forgotten_one_does_not_run(self):
        cancel, calls = Cancel(), []
        with cancel.on_cancel(lambda: calls.append(1)):
            pass
        cancel.cancel()
        self.assertEqual(calls, [])

    def test_none_is_lost_when_both_happen_at_once(self):
        for _ in range(300):
            cancel, called = Cancel(), threading.Event()
            thread = threading.Thread(target=cancel.cancel)
            thread.start()
            cancel.on_cancel(called.set)
            thread.join()
            self.assertTrue(called.is_set())


class Wait(unittest.TestCase):
    def test_returns_whether_it_happened(self):
        happened, never = threading.Event(), threading.Event()
        happened.set()
        self.assertTrue(Cancel().wait(happened))
        self.assertFalse(Cancel().wait(never, 0.01))

    def test_the_cancel_ends_it_at_once(self):
        cancel = Cancel()
        threading.Timer(0.05, cancel.cancel).start()
        start = time.monotonic()
        with self.assertRaises(Cancelled):
            cancel.wait(threading.Event(), 30)
        self.assertLess(time.monotonic() - start, 5)


if __name__ == "__main__":
    unittest.main()
