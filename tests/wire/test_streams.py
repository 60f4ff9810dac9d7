"""Reading a descriptor: the end of a wait by a signal."""

from __future__ import annotations

import os
import signal
import threading
import unittest

from mm.wire import streams


@unittest.skipIf(os.name == "nt", "there is no pthread_kill")
class Signals(unittest.TestCase):
    def setUp(self):
        self.source, self.sink = os.pipe()
        self.addCleanup(os.close, self.source)
        self.read = streams.Reader(self.source)
        self.read.wake_on_signals()
        self.addCleanup(signal.set_wakeup_fd, -1)

    def test_a_signal_ends_the_wait(self):
        class Arrived(Exception):
            pass

        def handler(number, frame):
            raise Arrived

        def send():
            # To a thread that does not read: the reading one is in the same position as if the signal had
            # come just before.
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, handler))
        given_up = threading.Timer(10, os.close, [self.sink])
        given_up.start()
        self.addCleanup(os.close, self.sink)
        self.addCleanup(given_up.cancel)
        threading.Timer(0.05, send).start()
        self.assertRaises(Arrived, self.read)

    def test_bytes_and_their_end_come_as_before(self):
        self.addCleanup(signal.signal, signal.SIGUSR1,
                        signal.signal(signal.SIGUSR1, lambda number, frame: None))
        signal.raise_signal(signal.SIGUSR1)
        os.write(self.sink, b"one")
        self.assertEqual(self.read(), b"one")
        os.close(self.sink)
        self.assertEqual(self.read(), b"")


if __name__ == "__main__":
    unittest.main()
