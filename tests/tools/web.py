"""A web server on 127.0.0.1 that sends what a test tells it to, byte by byte; a proxy and a hostile one
too.
"""

from __future__ import annotations

import socket
import threading


def response(body=b"", kind="text/html; charset=utf-8", status="200 OK", *headers):
    """An answer that is well-formed."""
    lines = ["HTTP/1.1 " + status, "Content-Length: %d" % len(body)] + (["Content-Type: " + kind] if kind
                                                                        else []) + list(headers)
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def redirect(location, status="302 Found"):
    return response(b"", "", status, "Location: " + location)


# As a part of an answer: nothing more comes until the server is closed.
HOLD = object()


class Web:
    """`pages` maps request targets to the bytes of an answer, or to an iterable of its parts, each sent as it
    is made; a target that is not there gets 404. `heads` holds the heads of the requests that came, as
    text."""

    def __init__(self, pages, context=None):
        self.pages, self.heads = pages, []
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._closing = threading.Event()
        self.dropped = threading.Event()  # a client has gone before its answer was complete
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def url(self, target="/", host="127.0.0.1"):
        return "%s://%s:%d%s" % ("https" if self._context else "http", host, self.port, target)

    def close(self):
        if self._closing.is_set():
            return
        self._closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self):
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection):
        try:
            if self._context:
                connection = self._context.wrap_socket(connection, server_side=True)
            head = b""
            while b"\r\n\r\n" not in head:
                data = connection.recv(4096)
                if not data:
                    return
                head += data
            self.heads.append(head.decode("latin-1"))
            answer = self.pages.get(self.heads[-1].split(" ")[1],
                                    response(b"no such page", "text/plain", "404 Not Found"))
            for part in [answer] if isinstance(answer, bytes) else answer:
                if part is HOLD:
                    self._closing.wait(10)
                else:
                    connection.sendall(part)
        except OSError:
            self.dropped.set()
        finally:
            connection.close()
