"""What a Peer serves and asks, over real pipes."""

from __future__ import annotations

import threading
import unittest

from mm.cancel import Cancel, Cancelled, Deadline
from mm.wire import framing, streams
from mm.wire.framing import TooLong
from mm.wire.messages import RemoteError, RpcError
from mm.wire.peer import Closed, Peer, TimedOut
from tests.support import DEADLINE, wait_until
from tests.wire.connection import PeerTest, in_thread


class Noise(PeerTest):
    def test_noise_is_reported_instead_of_answered(self):
        heard = []
        connection = self.connect(lambda request: request.answer(request.method), noise=heard.append)
        lines = [b"Server is up!", b"\x00\xff\xfe", b"[1]", b'"text"', b'{"a": 1}', b"[" * 100_000,
                 b'{"id": true, "method": "m"}']
        connection.write(b"\n\n".join(lines) + b"\n", {"id": 1, "method": "served"},
                         {"id": 2, "method": "m", "params": 3})
        self.assertEqual(connection.read()["result"], "served")
        self.assertEqual(connection.read()["error"]["code"], -32602, "what has an id is answered")
        self.assertEqual(heard, lines)

    def test_the_longest_message(self):
        cases = (framing.LINES, b"x" * 70_000 + b"\n", b"x" * 150_000), \
                (framing.HEADERS, framing.encode_header("x" * 70_000),
                 b"Content-Length: 2000000\r\n\r\n" + b"x" * 150_000)
        for framed, fits, too_long in cases:
            heard = []
            connection = self.connect(framed=framed, noise=heard.append, longest=100_000)
            wait = in_thread(connection.peer.request, "m", {}, Cancel())
            connection.read()
            connection.write(fits)
            wait_until(lambda: heard)
            connection.write(too_long)  # what the peer leaves of it fits into the pipe
            self.assertIsInstance(wait(), Closed)
            connection.thread.join(DEADLINE)
            self.assertIsInstance(connection.problem, TooLong)


class Serving(PeerTest):
    def test_an_answer_nested_too_deeply_is_an_error(self):
        deep = []
        for _ in range(100_000):
            deep = [deep]

        def serve(request):
            if request.id == 1:
                request.answer(deep)
            raise RpcError(-1, "no", deep)

        connection = self.connect(serve)
        connection.write({"id": 1, "method": "m"}, {"id": "2", "method": "m"})
        for number in (1, "2"):
            answer = connection.read()
            self.assertEqual((answer["id"], answer["error"]["code"]), (number, -32603))
        while deep:
            deep = deep[0]  # its end, one level at a time

    def test_ids_are_echoed_and_requests_served_in_order(self):
        connection = self.connect(lambda request: request.answer(request.method))
        ids = [1, 0, -3, "1", "7d5c-é", "", None, 1.5, 10 ** 30, 1]
        connection.write(b"".join(framing.encode_line({"jsonrpc": "2.0", "id": identifier,
                                                       "method": "m%d" % number})
                                  for number, identifier in enumerate(ids)))
        for number, identifier in enumerate(ids):
            answer = connection.read()
            self.assertEqual(answer, {"jsonrpc": "2.0", "id": identifier, "result": "m%d" % number})
            self.assertIs(type(answer["id"]), type(identifier))

    def test_broken_lines_are_answered_and_reading_goes_on(self):
        connection = self.connect(lambda request: request.answer("served"))
        connection.write(b"hello\n\n{}\n[]\n\xff\n", {"id": 1, "result": 1}, {"id": None, "error": {}},
                         {"method": "unknown"}, {"jsonrpc": "2.0", "id": 5, "method": "m"})
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

    def test_an_answer_counts_once_from_any_thread(self):
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
        connection.write({"id": 1, "method": "refuse"}, {"id": 2, "method": "crash"},
                         {"id": 3, "method": "unencodable"})
        answers = [connection.read() for _ in range(3)]
        self.assertEqual(answers[0]["error"], {"code": -32602, "message": "no", "data": {"field": "x"}})
        self.assertEqual(answers[1]["error"], {"code": -32603, "message": "Internal error: ValueError: two "
                                                                          "lines",
                                               "data": {"error": "ValueError: two lines"}})
        self.assertEqual(answers[2]["error"]["code"], -32603)
        self.assertIn("ValueError: two", lines)

    def test_a_crash_in_a_notification_is_logged(self):
        lines = self.keep_log()

        def notified(method, params):
            raise RpcError(-1, "no") if method == "refuse" else ValueError(method)

        connection = self.connect(lambda request: request.answer(1), notified)
        connection.write({"method": "refuse"}, {"method": "crash"}, {"id": 1, "method": "m"})
        self.assertEqual(connection.read()["result"], 1)
        self.assertEqual([line for line in lines if line.startswith(("ValueError", "mm."))],
                         ["ValueError: crash"])

    def test_a_cancel_request_reaches_its_request(self):
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

    def test_answers_go_out_after_the_input_ended(self):
        connection = self.connect()
        connection.write({"id": 1, "method": "m"})
        connection.end_input()
        connection.thread.join(DEADLINE)
        waiting = in_thread(connection.peer.flush, DEADLINE)
        connection.served[0].answer("late")
        waiting()
        self.assertEqual(connection.read()["result"], "late")

    def test_flush_gives_up_on_an_unanswered_request(self):
        connection = self.connect()
        connection.write({"id": 1, "method": "m"})
        wait_until(lambda: connection.served)
        connection.peer.flush(0.01)
        self.assertFalse(connection.served[0].cancel.cancelled)


class Asking(PeerTest):
    def test_two_peers_ask_each_other(self):
        connection = self.connect(lambda request: request.answer({"got": request.params}))
        back = Peer(streams.Reader(connection.from_peer), streams.write_to(connection.to_peer),
                    lambda request: request.fail(-5, "no"), lambda *_: None)
        threading.Thread(target=back.run, daemon=True).start()
        for number in range(100):
            self.assertEqual(back.request("m", {"n": number}, Cancel()), {"got": {"n": number}})
        with self.assertRaises(RemoteError) as caught:
            connection.peer.request("m", {}, Cancel())
        self.assertEqual((caught.exception.code, str(caught.exception)), (-5, "no"))

    def test_answers_in_any_order_and_shape(self):
        connection = self.connect()
        waits = [in_thread(connection.peer.request, "m%d" % number, {}, Cancel()) for number in range(3)]
        ids = {request["method"]: request["id"] for request in (connection.read() for _ in range(3))}
        self.assertEqual(sorted(ids.values()), [1, 2, 3])
        connection.write({"id": "1", "result": "wrong type"}, {"id": True, "result": "no number"},
                         {"id": ids["m2"], "result": 2}, {"id": ids["m2"], "result": "again"},
                         {"id": ids["m0"]}, {"id": ids["m1"], "error": "boom"})
        self.assertEqual([wait() for wait in waits][::2], [None, 2])
        self.assertEqual(str(waits[1]()), "boom")

    def test_a_cancel_ends_the_wait_on_both_sides(self):
        connection = self.connect()
        usual = {"method": "$/cancel_request", "params": {"requestId": 1}}
        notices = (({}, usual), ({"cancel_notice": None}, None),
                   ({"cancel_notice": lambda number: ("stop", {"id": number})},
                    {"method": "stop", "params": {"id": 3}}))
        for options, notice in notices:
            cancel = Cancel()
            wait = in_thread(lambda: connection.peer.request("m", {}, cancel, **options))
            number = connection.read()["id"]
            cancel.cancel()
            self.assertIsInstance(wait(), Cancelled)
            connection.write({"id": number, "result": "too late"})
            connection.peer.notify("end", {})
            expected = [dict(notice, jsonrpc="2.0")] if notice else []
            for message in expected + [{"jsonrpc": "2.0", "method": "end", "params": {}}]:
                self.assertEqual(connection.read(), message)

    def test_a_wait_ends_when_its_time_is_over(self):
        connection = self.connect()

        class Moving:
            """A limit that has moved when it is over, three times."""

            asked = 0

            def left(self):
                self.asked += 1
                return 0.01 if self.asked < 4 else 0

        wait = in_thread(lambda: connection.peer.request("m", {}, Cancel(), limit=Moving()))
        number = connection.read()["id"]
        self.assertIsInstance(wait(), TimedOut)
        self.assertEqual(connection.read(), {"jsonrpc": "2.0", "method": "$/cancel_request",
                                             "params": {"requestId": number}})
        connection.write({"id": number, "result": "too late"})
        wait = in_thread(lambda: connection.peer.request("m", {}, Cancel(), limit=Deadline(10)))
        connection.write({"id": connection.read()["id"], "result": "in time"})
        self.assertEqual(wait(), "in time")

    def test_an_answer_and_a_cancel_at_once(self):
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

    def test_a_request_that_cannot_be_encoded(self):
        connection = self.connect()
        self.assertRaises(TypeError, connection.peer.request, "m", {"a": object()}, Cancel())
        wait = in_thread(connection.peer.request, "m", {}, Cancel())
        connection.write({"id": connection.read()["id"], "result": 1})
        self.assertEqual(wait(), 1)


if __name__ == "__main__":
    unittest.main()
