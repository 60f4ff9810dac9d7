"""A Peer against the test over real pipes, and two Peers against each other."""

from __future__ import annotations

import json
import os
import threading
import time
import unittest

from mm import log
from mm.cancel import Cancel, Cancelled
from mm.wire import framing, peer, streams
from mm.wire.peer import Closed, Peer, RemoteError, RpcError
from tests.support import DEADLINE, wait_until


class Connection:
    """A Peer that runs on a thread of its own, and the test's ends of its two pipes."""

    def __init__(self, serve=None, notified=None, trace=None, framed=framing.LINES):
        self._their_input, self.to_peer = os.pipe()
        self.from_peer, self._their_output = os.pipe()
        self.served, self.notices = [], []
        self.peer = Peer(streams.read_from(self._their_input), streams.write_to(self._their_output), serve or self.served.append,
                         notified or (lambda *notice: self.notices.append(notice)), trace=trace, framing=framed)
        self._framer, self._lines = framed.framer(), []
        self.thread = threading.Thread(target=self.peer.run, daemon=True)
        self.thread.start()

    def write(self, *lines) -> None:
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            streams.write_to(self.to_peer)(data)

    def read(self):
        """The next message of the peer's."""
        while not self._lines:
            data = os.read(self.from_peer, 65536)
            if not data:
                raise EOFError
            self._lines += self._framer.feed(data)
        return json.loads(self._lines.pop(0))

    def fill(self) -> None:
        """Fills the pipe that the test does not read, so that the next write blocks."""
        os.set_blocking(self._their_output, False)
        try:
            while True:
                os.write(self._their_output, b"\n" * 4096)
        except BlockingIOError:
            pass
        os.set_blocking(self._their_output, True)

    def end_input(self) -> None:
        """The test's end of the pipe to the peer closes, once."""
        if self.to_peer is not None:
            os.close(self.to_peer)
            self.to_peer = None

    def end_output(self) -> None:
        """The peer's next write fails."""
        if self.from_peer is not None:
            os.close(self.from_peer)
            self.from_peer = None

    def close(self) -> None:
        self.end_input()
        self.end_output()
        self.thread.join(DEADLINE)
        self.peer.close()
        os.close(self._their_input)
        os.close(self._their_output)


def in_thread(function, *arguments):
    """Runs it on a thread; returns a function that waits and gives the result, or the exception as a value."""
    outcome = []

    def run():
        try:
            outcome.append(function(*arguments))
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def wait():
        thread.join(DEADLINE)
        return outcome[0]

    return wait


class PeerTest(unittest.TestCase):
    def connect(self, *arguments, **options) -> Connection:
        connection = Connection(*arguments, **options)
        self.addCleanup(connection.close)
        return connection

    def keep_log(self) -> list:
        """The lines logged until the test ends, kept off the terminal."""
        lines, terminal = [], os.dup(2)

        def restore():
            log.tap = None
            log.flush(DEADLINE)
            os.dup2(terminal, 2)
            os.close(terminal)

        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        self.addCleanup(restore)
        log.tap = lines.append
        return lines


class Serving(PeerTest):
    def test_ids_are_echoed_as_they_came_and_requests_served_in_order(self):
        connection = self.connect(lambda request: request.answer(request.method))
        ids = [1, 0, -3, "1", "7d5c-é", "", None, 1.5, 10 ** 30, 1]
        connection.write(b"".join(framing.encode_line({"jsonrpc": "2.0", "id": identifier, "method": "m%d" % number})
                                  for number, identifier in enumerate(ids)))
        for number, identifier in enumerate(ids):
            answer = connection.read()
            self.assertEqual(answer, {"jsonrpc": "2.0", "id": identifier, "result": "m%d" % number})
            self.assertIs(type(answer["id"]), type(identifier))

    def test_broken_lines_are_answered_and_reading_goes_on(self):
        connection = self.connect(lambda request: request.answer("served"))
        connection.write(b"hello\n\n{}\n[]\n\xff\n", {"id": 1, "result": 1}, {"id": None, "error": {}}, {"method": "unknown"},
                         {"jsonrpc": "2.0", "id": 5, "method": "m"})
        answers = [connection.read() for _ in range(5)]
        self.assertEqual([(answer["id"], answer.get("error", {}).get("code")) for answer in answers],
                         [(None, -32700), (None, -32600), (None, -32600), (None, -32700), (5, None)])
        self.assertEqual(connection.notices, [("unknown", {})])

    def test_a_very_long_line_is_read(self):
        connection = self.connect(lambda request: request.answer(len(request.params["text"])))
        connection.write({"id": 1, "method": "m", "params": {"text": "x" * 30_000_000}})
        self.assertEqual(connection.read()["result"], 30_000_000)

    def test_the_last_line_needs_no_line_end(self):
        connection = self.connect(lambda request: request.answer(1))
        connection.write(b'{"id":1,"method":"m"}')
        connection.end_input()
        self.assertEqual(connection.read()["result"], 1)
        connection.thread.join(DEADLINE)
        self.assertFalse(connection.peer.closed)

    def test_an_answer_counts_once_and_may_come_later_from_any_thread(self):
        connection = self.connect()
        connection.write({"id": 1, "method": "a"}, {"id": 2, "method": "b"})
        first, second = wait_until(lambda: len(connection.served) == 2 and connection.served)
        second.fail(-1, "no", {"why": "so"})
        first.answer(None)
        first.answer("again")
        first.fail(-1, "again")
        connection.peer.notify("end", {})
        self.assertEqual([connection.read() for _ in range(3)], [
            {"jsonrpc": "2.0", "id": 2, "error": {"code": -1, "message": "no", "data": {"why": "so"}}},
            {"jsonrpc": "2.0", "id": 1, "result": None},
            {"jsonrpc": "2.0", "method": "end", "params": {}}])

    def test_two_threads_answering_at_once_send_one_answer(self):
        connection = self.connect()
        for number in range(50):
            connection.write({"id": number, "method": "m"})
        for request in wait_until(lambda: len(connection.served) == 50 and connection.served):
            gate = threading.Barrier(3)
            waits = [in_thread(lambda text: (gate.wait(), request.answer(text)), text) for text in "abc"]
            for wait in waits:
                wait()
        connection.peer.notify("end", {})
        answers = [connection.read() for _ in range(51)]
        self.assertEqual([answer.get("id") for answer in answers], list(range(50)) + [None])

    def test_what_serve_raises_becomes_the_answer(self):
        lines = self.keep_log()

        def serve(request):
            if request.method == "refuse":
                raise RpcError(-32602, "no", {"field": "x"})
            if request.method == "unencodable":
                request.answer(object())
            raise ValueError("two\nlines")

        connection = self.connect(serve)
        connection.write({"id": 1, "method": "refuse"}, {"id": 2, "method": "crash"}, {"id": 3, "method": "unencodable"})
        answers = [connection.read() for _ in range(3)]
        self.assertEqual(answers[0]["error"], {"code": -32602, "message": "no", "data": {"field": "x"}})
        self.assertEqual(answers[1]["error"], {"code": -32603, "message": "Internal error: ValueError: two lines",
                                               "data": {"error": "ValueError: two lines"}})
        self.assertEqual(answers[2]["error"]["code"], -32603)
        self.assertIn("ValueError: two", lines)

    def test_a_crash_in_a_notification_is_logged_and_nothing_more(self):
        lines = self.keep_log()

        def notified(method, params):
            raise RpcError(-1, "no") if method == "refuse" else ValueError(method)

        connection = self.connect(lambda request: request.answer(1), notified)
        connection.write({"method": "refuse"}, {"method": "crash"}, {"id": 1, "method": "m"})
        self.assertEqual(connection.read()["result"], 1)
        self.assertEqual([line for line in lines if line.startswith(("ValueError", "mm."))], ["ValueError: crash"])

    def test_a_cancel_request_reaches_the_unanswered_request_with_that_very_id(self):
        connection = self.connect()
        for identifier in (1, "1", None, 2):
            connection.write({"id": identifier, "method": "m"})
        requests = wait_until(lambda: len(connection.served) == 4 and connection.served)
        requests[3].answer(1)
        for identifier in (None, True, [1], "2", 2, 99, 1):
            connection.write({"method": "$/cancel_request", "params": {"requestId": identifier}})
        connection.write({"method": "$/cancel_request"}, {"method": "end"})
        wait_until(lambda: connection.notices)
        self.assertEqual([request.cancel.cancelled for request in requests], [True, False, True, False])

    def test_after_the_end_of_input_answers_still_go_out(self):
        connection = self.connect()
        connection.write({"id": 1, "method": "m"})
        connection.end_input()
        connection.thread.join(DEADLINE)
        waiting = in_thread(connection.peer.flush, DEADLINE)
        connection.served[0].answer("late")
        waiting()
        self.assertEqual(connection.read()["result"], "late")

    def test_flush_gives_up_on_a_request_that_is_not_answered(self):
        connection = self.connect()
        connection.write({"id": 1, "method": "m"})
        wait_until(lambda: connection.served)
        connection.peer.flush(0.01)
        self.assertFalse(connection.served[0].cancel.cancelled)


class Asking(PeerTest):
    def test_two_peers_ask_each_other(self):
        connection = self.connect(lambda request: request.answer({"got": request.params}))
        back = Peer(streams.read_from(connection.from_peer), streams.write_to(connection.to_peer),
                    lambda request: request.fail(-5, "no"), lambda *_: None)
        threading.Thread(target=back.run, daemon=True).start()
        for number in range(100):
            self.assertEqual(back.request("m", {"n": number}, Cancel()), {"got": {"n": number}})
        with self.assertRaises(RemoteError) as caught:
            connection.peer.request("m", {}, Cancel())
        self.assertEqual((caught.exception.code, str(caught.exception)), (-5, "no"))

    def test_answers_may_come_in_any_order_twice_and_without_a_result(self):
        connection = self.connect()
        waits = [in_thread(connection.peer.request, "m%d" % number, {}, Cancel()) for number in range(3)]
        ids = {request["method"]: request["id"] for request in (connection.read() for _ in range(3))}
        self.assertEqual(sorted(ids.values()), [1, 2, 3])
        connection.write({"id": "1", "result": "wrong type"}, {"id": True, "result": "no number"}, {"id": ids["m2"], "result": 2},
                         {"id": ids["m2"], "result": "again"}, {"id": ids["m0"]}, {"id": ids["m1"], "error": "boom"})
        self.assertEqual([wait() for wait in waits][::2], [None, 2])
        self.assertEqual(str(waits[1]()), "boom")

    def test_a_cancel_ends_the_wait_and_tells_the_other_side(self):
        connection = self.connect()
        for notice in (True, False):
            cancel = Cancel()
            wait = in_thread(lambda: connection.peer.request("m", {}, cancel, cancel_notice=notice))
            number = connection.read()["id"]
            cancel.cancel()
            self.assertIsInstance(wait(), Cancelled)
            connection.write({"id": number, "result": "too late"})
            connection.peer.notify("end", {})
            expected = [{"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": number}}] if notice else []
            for message in expected + [{"jsonrpc": "2.0", "method": "end", "params": {}}]:
                self.assertEqual(connection.read(), message)

    def test_an_answer_and_a_cancel_at_once_end_the_wait_once(self):
        connection = self.connect()
        for _ in range(100):
            cancel = Cancel()
            wait = in_thread(connection.peer.request, "m", {}, cancel)
            message = connection.read()
            while "id" not in message:
                message = connection.read()
            other = in_thread(cancel.cancel)
            connection.write({"id": message["id"], "result": 7})
            other()
            outcome = wait()
            self.assertTrue(outcome == 7 or isinstance(outcome, Cancelled), outcome)

    def test_a_cancel_before_the_request_sends_nothing(self):
        connection = self.connect()
        cancel = Cancel()
        cancel.cancel()
        self.assertRaises(Cancelled, connection.peer.request, "m", {}, cancel)
        connection.peer.notify("end", {})
        self.assertEqual(connection.read()["method"], "end")

    def test_the_end_of_input_ends_every_wait(self):
        connection = self.connect()
        wait = in_thread(connection.peer.request, "m", {}, Cancel())
        connection.read()
        connection.end_input()
        self.assertIsInstance(wait(), Closed)
        self.assertRaises(Closed, connection.peer.request, "m", {}, Cancel())
        connection.peer.notify("still", {})
        self.assertEqual(connection.read()["method"], "still")

    def test_a_request_that_cannot_be_encoded_leaves_nothing_behind(self):
        connection = self.connect()
        self.assertRaises(TypeError, connection.peer.request, "m", {"a": object()}, Cancel())
        wait = in_thread(connection.peer.request, "m", {}, Cancel())
        connection.write({"id": connection.read()["id"], "result": 1})
        self.assertEqual(wait(), 1)


class Closing(PeerTest):
    def test_close_ends_waits_cancels_what_is_served_and_calls_back_once(self):
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

    def test_a_failed_write_closes_the_peer_while_the_reader_is_blocked(self):
        for send in (lambda one: one.notify("m", {}), lambda one: one.request("m", {}, Cancel())):
            connection = self.connect()
            closed = threading.Event()
            connection.peer.on_close(closed.set)
            connection.end_output()
            self.assertRaises(Closed, send, connection.peer)
            self.assertTrue(closed.wait(DEADLINE))
            self.assertTrue(connection.thread.is_alive())

    def test_a_failed_answer_of_the_reader_closes_the_peer(self):
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

    def test_a_cancel_is_delivered_while_a_turn_is_stuck_in_its_write_and_answers_are_due(self):
        def serve(request):
            connection.served.append(request)
            if request.method == "short":
                request.answer(1)

        connection = self.connect(serve)
        connection.write({"id": 1, "method": "turn"})
        turn = wait_until(lambda: connection.served)[0]
        connection.fill()
        stuck = in_thread(connection.peer.notify, "update", {"text": "x" * 100_000})
        wait_until(connection.peer._writing.locked)
        connection.write({"id": 2, "method": "short"}, b"broken\n", {"method": "$/cancel_request", "params": {"requestId": 1}},
                         {"method": "session/cancel"})
        wait_until(lambda: turn.cancel.cancelled and connection.notices)
        got = [connection.read() for _ in range(3)]
        self.assertEqual([message.get("method") or message["id"] for message in got], ["update", 2, None])
        self.assertIsNone(stuck())

    def test_a_request_can_be_cancelled_before_it_is_written(self):
        connection = self.connect()
        connection.fill()
        cancel = Cancel()
        wait = in_thread(connection.peer.request, "m", {"text": "x" * 100_000}, cancel)
        wait_until(lambda: connection.peer._outbox_size)
        cancel.cancel()
        self.assertIsInstance(wait(), Cancelled)

    def test_flush_and_close_do_not_hang(self):
        connection = self.connect(lambda request: request.answer("x" * 100_000))
        connection.fill()
        connection.write({"id": 1, "method": "m"})
        wait = in_thread(connection.peer.request, "m", {}, Cancel())
        wait_until(lambda: connection.peer._waiting)
        connection.peer.flush(0.01)
        connection.peer.close()
        self.assertIsInstance(wait(), Closed)

    def test_a_flood_of_requests_does_not_fill_the_memory(self):
        connection = self.connect(lambda request: request.answer("x" * 100_000))
        connection.fill()
        params = {"pad": "x" * 5000}
        flood = in_thread(connection.write, *[{"id": number, "method": "m", "params": params} for number in range(100)])
        wait_until(lambda: connection.peer._outbox_size > peer.OUTBOX_LIMIT)
        time.sleep(0.05)
        self.assertLess(connection.peer._outbox_size, peer.OUTBOX_LIMIT + 200_000)
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

    def test_what_the_reader_sends_precedes_what_others_send_later(self):
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

    def test_descriptors_made_non_blocking_by_others_work(self):
        connection = self.connect(lambda request: request.answer("x" * 500_000))
        for descriptor in (connection._their_input, connection._their_output):
            os.set_blocking(descriptor, False)
        connection.write({"id": 1, "method": "m"})
        self.assertEqual(len(connection.read()["result"]), 500_000)

    def test_the_trace_sees_every_line_in_order_and_may_fail(self):
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
        self.assertEqual(lines, [("<", b'{"id":1,"method":"m"}'), (">", b'{"jsonrpc":"2.0","id":1,"result":1}'), (">", b"{}"),
                                 (">", b'{"jsonrpc":"2.0","method":"full","params":{}}')])
        self.assertIn("OSError: disk full", logged)

    def test_header_framing_works_both_ways(self):
        connection = self.connect(lambda request: request.answer(1), framed=framing.HEADERS)
        connection.write(framing.encode_header({"id": 1, "method": "m"}))
        self.assertEqual(connection.read()["result"], 1)


if __name__ == "__main__":
    unittest.main()
