"""Cancelling in every state of an exchange, and what is refused before one begins, against real sockets."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
import unittest
from unittest import mock

from mm.cancel import Cancel, Cancelled
from mm.model import http
from mm.model.chat import ModelError
from mm.wire import cancellable_socket
from tests import support
from tests.fakes.model_server import ModelServer, Silent
from tests.model import streams

# What a cancel takes, in seconds, on a machine that is busy with the rest of the tests. It takes a
# millisecond.
SOON = 1.0


def descriptors() -> set:
    return set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()


class Asker(threading.Thread):
    """A completion on a thread of its own, as a turn runs; `ended_at` and `error` tell how it ended."""

    def __init__(self, server, cancel, body=""):
        super().__init__(daemon=True)
        self.server, self.cancel, self.body = server, cancel, body
        self.events, self.error, self.ended_at = [], None, None
        self.spoke = threading.Event()
        self.start()

    def run(self):
        try:
            for event in http_events(self.server, self.cancel, self.body):
                self.events.append(event)
                self.spoke.set()
        except Exception as error:
            self.error = error
        self.ended_at = time.monotonic()


@contextlib.contextmanager
def answering(answer: bytes):
    """The URL of a server that answers after the first byte, reads nothing more and keeps the connection."""
    with contextlib.ExitStack() as open_until_the_end:
        listener = open_until_the_end.enter_context(socket.create_server(("127.0.0.1", 0)))

        def serve():
            connected = open_until_the_end.enter_context(listener.accept()[0])
            connected.recv(1)
            connected.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield "http://127.0.0.1:%d/v1" % listener.getsockname()[1]
        thread.join(10)


def http_events(server, cancel, body):
    return streams.chat.complete(server, [{"role": "user", "content": body}], [], cancel)


class Cancelling(unittest.TestCase):
    def check(self, asker, cancel, server=None):
        start = time.monotonic()
        cancel.cancel()
        self.assertLess(time.monotonic() - start, SOON, "the thread that cancels was blocked")
        asker.join(10)
        self.assertIsInstance(asker.error, Cancelled)
        self.assertLess(asker.ended_at - start, SOON)
        if server:
            self.assertLess(server.wait_dropped(1) - start, SOON)

    def test_in_each_state_of_the_answer(self):
        states = [
            ("waiting for the head", [{"hang": True}], False),
            ("in the middle of the head", [{"head": "half"}, {"hang": True}], False),
            ("between two chunks", [{"text": "x"}, {"hang": True}], True),
            ("inside a chunk", [{"text": "x"}, {"cut": 5}], True),
            ("inside a character", [{"text": "x"}, {"raw": b'data: {"x": "\xf0\x9f'}, {"hang": True}], True),
            ("in a body without chunks", [{"transport": "close"}, {"text": "x"}, {"hang": True}], True),
            ("while it drips", [{"text": "x"}, *({"text": "b"}, {"pause": 0.02}) * 500], True),
        ]
        for name, steps, speaks in states:
            with self.subTest(name), ModelServer(steps) as server:
                cancel = Cancel()
                asker = Asker(streams.server(server.url), cancel)
                server.wait_requests(1)
                if speaks:
                    self.assertTrue(asker.spoke.wait(10))
                self.check(asker, cancel, server)

    def test_while_connecting(self):
        with Silent() as silent:
            cancel = Cancel()
            asker = Asker(streams.server(silent.url), cancel)
            self.wait_for_connecting(asker)
            self.check(asker, cancel)

    def test_while_sending(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:  # accepts, and never reads
            cancel = Cancel()
            asker = Asker(streams.server("http://127.0.0.1:%d/v1" % listener.getsockname()[1]), cancel,
                          "x" * 20_000_000)
            connected, _ = listener.accept()
            with connected:
                connected.recv(1)
                self.check(asker, cancel)

    def test_in_the_body_of_a_refusal(self):
        with answering(b"HTTP/1.1 500 No\r\nContent-Length: 10\r\n\r\nno") as url:
            cancel = Cancel()
            asker = Asker(streams.server(url), cancel)
            # into the body; if it comes before that, the state is another one of those above
            time.sleep(0.05)
            self.check(asker, cancel)

    def test_before_anything(self):
        cancel = Cancel()
        cancel.cancel()
        with ModelServer() as server:
            self.assertRaises(Cancelled, streams.ask, streams.server(server.url), cancel)
            self.assertEqual([], server.requests)

    def test_at_any_moment(self):
        """The cancel falls anywhere between the connect and the last byte; nothing blocks and no descriptor
        is left."""
        with ModelServer([{"text": ["a"] * 50}, {"pause": 0.001}, {"text": "b"}]) as server:
            asked = streams.server(server.url)
            streams.ask(asked)
            before = descriptors()
            for number in range(60):
                cancel = Cancel()
                asker = Asker(asked, cancel)
                time.sleep(number * 0.0001)
                cancel.cancel()
                asker.join(10)
                self.assertFalse(asker.is_alive())
                self.assertIsInstance(asker.error, (Cancelled, type(None)))
        deadline = time.monotonic() + 5
        while len(descriptors()) > len(before) and time.monotonic() < deadline:
            time.sleep(0.01)  # the fake's side of the last connections
        self.assertLessEqual(len(descriptors()), len(before))

    def test_a_late_cancel_touches_no_other_connection(self):
        cancel = Cancel()
        with ModelServer([{"text": "a"}]) as server:
            streams.ask(streams.server(server.url), cancel)
            with socket.create_server(("127.0.0.1", 0)) as listener:
                # takes the number that has become free
                mine = socket.create_connection(listener.getsockname())
                theirs, _ = listener.accept()
                with mine, theirs:
                    cancel.cancel()
                    mine.sendall(b"x")
                    self.assertEqual(b"x", theirs.recv(1))

    def wait_for_connecting(self, asker):
        deadline = time.monotonic() + 10
        while not asker.is_alive() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.1)  # into the poll; there is nothing to be seen from outside


class Connecting(unittest.TestCase):
    def test_what_cannot_be_reached_tells_what_to_do(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))  # bound and not listening: refuses
            port = unused.getsockname()[1]
            cases = [
                *(("refused", url, f"no model server at {url} (connection refused): start it, or set the URL (--url or MM_URL)")
                  for url in (f"http://127.0.0.1:{port}/v1", f"http://localhost:{port}/v1")),
                ("name", "http://no-such-host.invalid/v1",
                 'cannot resolve "no-such-host.invalid" (http://no-such-host.invalid/v1): check MM_URL or '
                 '--url'),
                ("url", "ftp://host/v1", "ftp://host/v1 is not the URL of a model server; one looks like "
                                         "http://127.0.0.1:8080/v1"),
                ("url", "127.0.0.1:8080/v1", "127.0.0.1:8080/v1 is not the URL of a model server; one looks "
                                             "like "
                                             "http://127.0.0.1:8080/v1"),
                ("url", "bob:sekret@host/v1?key=sekret", "host/v1 is not the URL of a model server; one "
                                                         "looks "
                                                         "like http://127.0.0.1:8080/v1"),
                ("url", "http://host:99999/v1", "http://host:99999/v1 is not the URL of a model server; one "
                                                "looks "
                                                "like http://127.0.0.1:8080/v1"),
                ("url", "http://host/a b\r\nX: 1", "http://host/a b X: 1 is not the URL of a model server; "
                                                   "one "
                                                   "looks like http://127.0.0.1:8080/v1"),
                ("url", "http://bob:sekret@host/v1",
                 "the URL of http://host/v1 holds a user name: set it in model.apiKey or model.headers"),
            ]
            for kind, url, message in cases:
                with self.subTest(url), self.assertRaises(ModelError) as caught:
                    streams.ask(streams.server(url))
                self.assertEqual((kind, message), (caught.exception.kind, str(caught.exception)))

    def test_headers_that_would_break_the_request_are_refused(self):
        cases = [
            ({"api_key": "a\r\nX: 1"}, "model.apiKey holds a character that cannot be in a header (a line "
                                       "break?)"),
            ({"api_key": "schlüssel€"}, "model.apiKey holds a character that cannot be in a header (a line "
                                        "break?)"),
            ({"headers": {"X-A": "1\n2"}}, "model.headers.X-A holds a character that cannot be in a header "
                                           "(a line break?)"),
            ({"headers": {"X A": "1"}}, "model.headers: 'X A' is not a header name"),
        ]
        for fields, message in cases:
            with self.subTest(message), self.assertRaises(ModelError) as caught:
                streams.ask(streams.server("http://127.0.0.1:1/v1", **fields))
            self.assertEqual((message, 2), (str(caught.exception), caught.exception.exit_code))

    def test_no_proxy_is_asked(self):
        with ModelServer() as server, ModelServer() as proxy:
            address = proxy.url[:-len("/v1")]
            with mock.patch.dict(os.environ, {"http_proxy": address, "HTTP_PROXY": address,
                                              "all_proxy": address, "no_proxy": ""}):
                streams.ask(streams.server(server.url))
            self.assertEqual(([], 1), (proxy.requests, len(server.requests)))

    def test_a_redirect_is_not_followed(self):
        for status in (301, 302, 303, 307, 308):
            with self.subTest(status), ModelServer() as other:
                with ModelServer([{"status": status, "body": "",
                                   "headers": {"Location": other.url}}]) as server:
                    with self.assertRaisesRegex(ModelError, f"it redirects to {other.url}; use that URL"):
                        streams.ask(streams.server(server.url))
                self.assertEqual([], other.requests)

    def test_a_refusal_without_reading_the_request(self):
        message = [{"role": "user", "content": "x" * 8_000_000}]
        for status, body, words in ((413, {"error": "request too large"}, r"the request is too large for \S+ "
                                                                          r"\(413\): /compact"),
                                    (400, "request too large\n", r"the request is too large for \S+ \(400\): "
                                                                 r"/compact"),
                                    (400, {"error": {"message": "no, " * 40}},
                                     r"refused the request \(400\): no, no, ")):
            with self.subTest(words), ModelServer([{"unread": True},
                                                   {"status": status, "body": body}]) as server:
                for _ in range(3):
                    with self.assertRaisesRegex(ModelError, words):
                        streams.ask(streams.server(server.url), messages=message)
                self.assertEqual(3, len(server.requests))

    def test_a_refusal_on_an_open_connection(self):
        refusal = b"HTTP/1.1 413 No\r\nContent-Length: 8\r\n\r\ntoo long"
        with answering(refusal) as url, self.assertRaisesRegex(ModelError, "the request is too large"):
            streams.ask(streams.server(url), messages=[{"role": "user", "content": "x" * 20_000_000}])

    def test_a_port_that_speaks_something_else(self):
        with answering(b"SSH-2.0-OpenSSH_9.2\r\n") as url:
            with self.assertRaisesRegex(ModelError,
                                        "answers, but not in HTTP: is it the model server's port?"):
                streams.ask(streams.server(url))


@unittest.skipUnless(shutil.which("openssl"), "openssl makes the certificate")
class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = support.scratch_folder()
        cls.certificate, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
                        cls.certificate, "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                        "subjectAltName=IP:127.0.0.1"],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=True)
        cls.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        cls.context.load_cert_chain(cls.certificate, key)

    def setUp(self):
        self.addCleanup(cancellable_socket.tls_context.cache_clear)
        cancellable_socket.tls_context.cache_clear()

    def trusted(self):
        return mock.patch.dict(os.environ, {"SSL_CERT_FILE": self.certificate})

    def test_an_answer_and_a_cancel(self):
        with self.trusted(), ModelServer([{"text": "hi"}], [{"text": "x"}, {"hang": True}],
                                         context=self.context) as server:
            self.assertEqual("hi", streams.digest(streams.ask(streams.server(server.url)))["text"])
            cancel = Cancel()
            asker = Asker(streams.server(server.url), cancel)
            self.assertTrue(asker.spoke.wait(10))
            start = time.monotonic()
            cancel.cancel()
            asker.join(10)
            self.assertIsInstance(asker.error, Cancelled)
            self.assertLess(server.wait_dropped(2) - start, SOON)

    def test_a_cancel_in_the_handshake(self):
        with self.trusted(), socket.create_server(("127.0.0.1", 0)) as listener:
            cancel = Cancel()
            asker = Asker(streams.server("https://127.0.0.1:%d/v1" % listener.getsockname()[1]), cancel)
            connected, _ = listener.accept()
            with connected:
                connected.recv(1)  # the handshake has begun
                start = time.monotonic()
                cancel.cancel()
                asker.join(10)
                self.assertIsInstance(asker.error, Cancelled)
                self.assertLess(asker.ended_at - start, SOON)

    def test_a_certificate_that_nobody_vouches_for(self):
        with ModelServer(context=self.context) as server:
            with self.assertRaisesRegex(ModelError, "^https://.*: the TLS connection failed: self.signed "
                                                    "certificate"):
                streams.ask(streams.server(server.url))

    def test_a_server_that_speaks_plain_http(self):
        with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
            with self.assertRaisesRegex(ModelError, "the TLS connection failed: WRONG_VERSION_NUMBER \\(does "
                                                    "it speak http\\?\\)"):
                streams.ask(streams.server(url.replace("http:", "https:")))


if __name__ == "__main__":
    unittest.main()
