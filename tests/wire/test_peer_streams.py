"""A Peer whose other side goes away, does not read, or is written to by many threads at once."""

from __future__ import annotations

import os
import select
import threading
import time
import unittest

from mm.cancel import Cancel, Cancelled
from mm.wire import framing, peer
from mm.wire.peer import Closed
from tests.support import DEADLINE, wait_until
from tests.wire.connection import Connection, PeerTest, in_thread


class Closing(PeerTest):
    def test_close_ends_waits_and_calls_back_once(self):
        connection = self.connect()
        calls = []
        connection.peer.on_close(lambda: calls.append(1))
        connection.peer.on_close(lambda: calls.append("forgotten")).forget()
        connection.write({"id": 1, "method": "m"})
        wait = in_thread(connection.peer.request, "m", {}, Cancel())
        connection.read()
        request = wait_until(lambda: connection.served)[0]
        connection.peer.close()
        connection.peer.close()
        connection.peer.on_close(lambda: calls.append(2))
        self.assertIsInstance(wait(), Closed)
        self.assertTrue(request.cancel.cancelled)
        self.assertEqual(calls, [1, 2])
        self.assertTrue(connection.peer.closed)
        self.assertRaises(Closed, connection.peer.notify, "m", {})
        self.assertRaises(Closed, connection.peer.send_encoded, b"{}\n")
        self.assertRaises(Closed, connection.peer.request, "m", {}, Cancel())
        request.answer("nobody hears it")

    def test_a_failed_write_closes_the_peer(self):
        for send in (lambda one: one.notify("m", {}), lambda one: one.request("m", {}, Cancel())):
            connection = self.connect()
            closed = threading.Event()
            connection.peer.on_close(closed.set)
            connection.end_output()
            self.assertRaises(Closed, send, connection.peer)
            self.assertTrue(closed.wait(DEADLINE))
            self.assertTrue(connection.thread.is_alive())

    def test_a_failed_answer_closes_the_peer(self):
        connection = self.connect(lambda request: request.answer(1))
        closed = threading.Event()
        connection.peer.on_close(closed.set)
        connection.end_output()
        connection.write({"id": 1, "method": "m"})
        self.assertTrue(closed.wait(DEADLINE))

    def test_close_from_within_serve_ends_the_run(self):
        connection = self.connect(lambda request: connection.peer.close())
        connection.write({"id": 1, "method": "m"})
        connection.thread.join(DEADLINE)
        self.assertFalse(connection.thread.is_alive())

    def test_a_callback_that_crashes_keeps_no_other_waiting(self):
        lines = self.keep_log()
        connection = self.connect()
        connection.peer.on_close(lambda: 1 / 0)
        connection.write({"id": 1, "method": "m"})
        request = wait_until(lambda: connection.served)[0]
        connection.peer.close()
        self.assertTrue(request.cancel.cancelled)
        self.assertIn("ZeroDivisionError: division by zero", lines)

    def test_requests_and_closes_in_a_race_all_end(self):
        for _ in range(30):
            connection = Connection()
            waits = [in_thread(connection.peer.request, "m", {}, Cancel()) for _ in range(3)]
            connection.peer.close()
            self.assertEqual([type(wait()) for wait in waits], [Closed] * 3)
            connection.close()


class NotReading(PeerTest):
    """The other side does not read: its pipe is full."""

    def test_a_cancel_arrives_while_a_write_is_stuck(self):
        def serve(request):
            connection.served.append(request)
            if request.method == "short":
                request.answer(1)

        connection = self.connect(serve)
        connection.write({"id": 1, "method": "turn"})
        turn = wait_until(lambda: connection.served)[0]
        connection.fill()
        stuck = in_thread(connection.peer.notify, "update", {"text": "x" * 100_000})
        self.assertTrue(connection.writing.wait(DEADLINE))
        connection.write({"id": 2, "method": "short"}, b"broken\n",
                         {"method": "$/cancel_request", "params": {"requestId": 1}},
                         {"method": "session/cancel"})
        wait_until(lambda: turn.cancel.cancelled and connection.notices)
        got = [connection.read() for _ in range(3)]
        self.assertEqual([message.get("method") or message["id"] for message in got], ["update", 2, None])
        self.assertIsNone(stuck())

    def test_a_request_is_cancelled_before_it_is_written(self):
        connection = self.connect()
        connection.fill()
        cancel = Cancel()
        wait = in_thread(connection.peer.request, "m", {"text": "x" * 100_000}, cancel)
        self.assertTrue(connection.writing.wait(DEADLINE))
        cancel.cancel()
        self.assertIsInstance(wait(), Cancelled)

    def test_flush_and_close_do_not_hang(self):
        connection = self.connect(lambda request: request.answer("x" * 100_000))
        connection.fill()
        connection.write({"id": 1, "method": "m"})
        wait = in_thread(connection.peer.request, "m", {}, Cancel())
        self.assertTrue(connection.writing.wait(DEADLINE))
        connection.peer.flush(0.01)
        connection.peer.close()
        self.assertIsInstance(wait(), Closed)

    def test_a_flood_does_not_fill_the_memory(self):
        def serve(request):
            served.append(request)
            request.answer("x" * 100_000)

        served, connection = [], self.connect(serve)
        connection.fill()
        params = {"pad": "x" * 5000}
        flood = in_thread(connection.write, *[{"id": number, "method": "m", "params": params}
                                              for number in range(100)])
        enough = peer.OUTBOX_LIMIT // 100_000
        wait_until(lambda: len(served) > enough)
        time.sleep(0.05)  # in which all others would come
        self.assertLess(len(served), enough + 3)
        self.assertEqual([connection.read()["id"] for _ in range(100)], list(range(100)))
        flood()


class Sending(PeerTest):
    def test_threads_never_mix_their_lines(self):
        connection = self.connect(lambda request: request.answer("y" * 3000))

        def send(name):
            for number in range(100):
                connection.peer.notify(name, {"n": number, "pad": "x" * 3000})

        senders = [in_thread(send, name) for name in "abc"]
        asking = in_thread(connection.write, *[{"id": number, "method": "m"} for number in range(100)])
        seen = {}
        for _ in range(400):
            message = connection.read()
            number = message["params"]["n"] if "method" in message else message["id"]
            seen.setdefault(message.get("method"), []).append(number)
        self.assertEqual(seen, {name: list(range(100)) for name in ("a", "b", "c", None)})
        for wait in senders + [asking]:
            wait()

    def test_what_was_sent_first_leaves_first(self):
        def serve(request):
            request.answer("first")
            connection.peer.notify("second", {})
            ready.set()

        connection = self.connect(serve)
        for number in range(50):
            ready = threading.Event()
            connection.write({"id": number, "method": "m"})
            ready.wait(DEADLINE)
            connection.peer.notify("third", {})
            self.assertEqual([connection.read().get("method") for _ in range(3)], [None, "second", "third"])

    def test_the_reader_waits_for_its_answer_to_leave(self):
        out = []

        def serve(request):
            request.answer(1)
            out.append(bool(select.select([connection.from_peer], [], [], 0)[0]))

        connection = self.connect(serve)
        for number in range(20):
            connection.write({"id": number, "method": "m"})
            wait_until(lambda: len(out) > number)
            connection.read()
        self.assertEqual(out, [True] * 20)

    def test_descriptors_made_non_blocking_by_others_work(self):
        connection = self.connect(lambda request: request.answer("x" * 500_000))
        for descriptor in (connection.their_input, connection.their_output):
            os.set_blocking(descriptor, False)
        connection.write({"id": 1, "method": "m"})
        self.assertEqual(len(connection.read()["result"]), 500_000)

    def test_the_trace_sees_every_line_in_order(self):
        lines, logged = [], self.keep_log()

        def trace(direction, line):
            lines.append((direction, line.rstrip(b"\n")))
            if b"full" in line:
                raise OSError("disk full")

        connection = self.connect(lambda request: request.answer(1), trace=trace)
        connection.write(b'{"id":1,"method":"m"}\r\n')
        connection.read()
        connection.peer.send_encoded(b"{}\n")
        connection.peer.notify("full", {})
        connection.peer.notify("on", {})
        self.assertEqual([connection.read().get("method") for _ in range(3)], [None, "full", "on"])
        self.assertEqual(lines, [("<", b'{"id":1,"method":"m"}'),
                                 (">", b'{"jsonrpc":"2.0","id":1,"result":1}'), (">", b"{}"),
                                 (">", b'{"jsonrpc":"2.0","method":"full","params":{}}')])
        self.assertIn("OSError: disk full", logged)

    def test_header_framing_works_both_ways(self):
        connection = self.connect(lambda request: request.answer(1), framed=framing.HEADERS)
        connection.write(framing.encode_header({"id": 1, "method": "m"}))
        self.assertEqual(connection.read()["result"], 1)


if __name__ == "__main__":
    unittest.main()
