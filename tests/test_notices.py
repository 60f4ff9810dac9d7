"""The lines that a session keeps for its front end."""

from __future__ import annotations

import threading
import unittest

from mm.notices import Notices


class TheNotices(unittest.TestCase):
    def test_each_line_is_taken_once(self):
        notices = Notices()
        notices.add("a")
        notices.add("b")
        notices.add("a")
        self.assertEqual(notices.take(), ["a", "b"])
        notices.add("b")
        notices.add("c")
        self.assertEqual(notices.take(), ["c"])
        self.assertEqual(notices.take(), [])

    def test_a_reader_of_the_log_gets_none_twice(self):
        notices = Notices()
        notices.add("a", logged=True)
        notices.add("b")
        self.assertEqual(notices.take(logged=False), ["b"])
        self.assertEqual(notices.take(), [])

    def test_threads_lose_no_line(self):
        notices = Notices()
        threads = [threading.Thread(target=lambda start=start: [notices.add(str(start + number))
                                                                for number in range(500)])
                   for start in (0, 250, 500)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(map(int, notices.take())), list(range(1000)))
