"""A model server inside the process: real HTTP on 127.0.0.1, with the answers made by a function.

The demo model and the transcript player are served by it, so that everything but the model is the real thing.

One daemon thread accepts, one daemon thread serves each connection and calls `answer` there: an answer
function that keeps state between calls guards it itself. What `answer` yields goes out at once, piece by
piece; when the client has hung up the iterator is closed and the thread ends. Nothing here waits for the
turn, and `close()` waits for nothing.
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections import namedtuple
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# What `answer` returns. `chunks` is an iterable of bytes, sent as they are produced.
Reply = namedtuple("Reply", "status content_type chunks")

EVENT_STREAM = "text/event-stream"
DONE = b"data: [DONE]\n\n"


def sse(obj) -> bytes:
    """One server-sent event. ASCII, so that a lone surrogate in a scripted text survives the way."""
    return b"data: " + json.dumps(obj, separators=(",", ":")).encode("ascii") + b"\n\n"


def json_reply(status: int, obj) -> Reply:
    """A whole JSON answer, for errors and lists."""
    return Reply(status, "application/json", (json.dumps(obj).encode("ascii"),))


def error_reply(status: int, message: str) -> Reply:
    """An error in the shape that OpenAI-compatible servers use."""
    return json_reply(status, {"error": {"message": message, "type": "invalid_request_error",
                                         "code": status}})


class Loopback:
    """Serves `answer(body_dict) -> Reply` as chat completions, and `model` as the only model, until
    `close()`."""

    def __init__(self, answer, model: str = "loopback"):
        self._closed = False
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.answer = answer
        self._server.model = model
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        threading.Thread(target=self._serve, name="loopback", daemon=True).start()

    def close(self) -> None:
        """Stops accepting. Answers under way end when their client hangs up."""
        self._closed = True
        # the accepting thread is woken by a connection: closing a socket that another thread waits on wakes
        # nobody
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            pass

    def _serve(self) -> None:
        with self._server:
            while not self._closed:
                self._server.handle_request()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def server_bind(self):
        # Not HTTPServer's: it asks the resolver for this machine's name, which takes seconds where there is
        # no network.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def handle_error(self, request, client_address):
        import sys
        if not isinstance(sys.exc_info()[1], ConnectionError):  # the client hung up: that is its right
            from mm import log
            log.traceback()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # the head goes out in one piece, and each chunk is flushed

    def do_GET(self):
        if self.path.endswith("/models"):
            model = {"id": self.server.model, "object": "model", "created": 0, "owned_by": "mm"}
            self._send(json_reply(200, {"object": "list", "data": [model]}))
        else:
            self._send(error_reply(404, f"no such path: {self.path}"))

    def do_POST(self):
        body = self._read_json()
        if not self.path.endswith("/chat/completions"):
            self._send(error_reply(404, f"no such path: {self.path}"))
        elif not isinstance(body, dict):
            self._send(error_reply(400, "the request body is not a JSON object"))
        else:
            self._send(self.server.answer(body))

    def _read_json(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.close_connection = True  # nobody knows where the next request would start
            return None
        try:
            return json.loads(self.rfile.read(int(length)))
        except ValueError:
            return None

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        chunks = iter(reply.chunks)
        try:
            for chunk in chunks:
                if chunk:  # an empty chunk would end the body
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        finally:
            getattr(chunks, "close", int)()

    def log_message(self, *_):
        pass
