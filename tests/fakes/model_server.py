"""A scripted model server for tests: real sockets, and control over every byte and every stall.

    with ModelServer([{"text": "Hello"}], [{"status": 500, "body": "no"}]) as server:
        … point mm at server.url …
        server.wait_requests(2)          the first two requests for a completion, as Request(path, headers, body, at)
        server.wait_dropped(1)           when the client hung up on the 1st of them, before its answer was over (time.monotonic())

Each answer is a list of steps, used for one POST each; when they are used up, the last one is repeated. `server.script(…)`
sets new ones for the requests to come. A step is a dict with one of these:

    {"text": "…"} {"thought": "…"}       one event; a list of strings: one event each
    {"call": {"name", "arguments"}}      arguments: a dict, or a string, or a list of strings: one event each
    {"usage": {"input", "output"}}       also "cached", "thought"
    {"finish": "length"}                 the finish reason, if it is not the usual one
    {"data": "…"}                        an event with this text
    {"raw": b"…"}                        these bytes of the body, as one piece; nothing is added at the end then
    {"pause": 0.5}                       seconds
    {"hang": True}                       nothing more, until the client hangs up or the server is closed
    {"drop": True}                       the connection ends (FIN) though the body is not over
    {"reset": True}                      the same with a RST
    {"cut": N}                           the next chunk says its length and breaks off after N bytes, then hangs

and these, which come first:

    {"status": 503, "body": "…", "type": "text/plain", "headers": {…}}      body: str, or anything that becomes JSON
    {"type": "text/html"}                the content type of what follows
    {"transport": "chunked"}             how the body is sent: "chunked" (the default), "close" or "length"
    {"head": "half"}                     half of the head, then what follows as it is ("hang", mostly)
    {"unread": True}                     answers before the request's body has been read

A `pause`, `hang`, `drop` or `reset` before anything that writes comes before the head. Unless there is a `raw`, `data`,
`status`, `hang`, `drop`, `reset` or `cut`, the finish reason and [DONE] are added.

GET …/models answers with `models`, a list of ids; `models=None` makes that a 404.

As a program: `python3 -m tests.fakes.model_server '[[{"text": "hi"}]]'` prints the URL and a JSON line for each request
and each drop; it ends with its stdin.

Threads: one accepts, one answers each connection, and one more for each waits for the client to hang up, which tells the
moment of it in whatever state the answer is.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import time
from collections import namedtuple

# One request for a completion; `body` is the decoded JSON (None where it is none), `at` a time.monotonic().
Request = namedtuple("Request", "path headers body at")

DEADLINE = 10

_OPEN = ("raw", "data", "status", "hang", "drop", "reset", "cut")


class ModelServer:
    """See the top of this file. `context`, an ssl.SSLContext, makes it https."""

    def __init__(self, *answers, models=("test-model",), context=None):
        self.requests = []
        self.connections = []  # of the requests, in the same order
        self._answers = list(answers) or [[{"text": "ok"}]]
        self._used = 0
        self._models = models
        self._context = context
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._sockets = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}/v1"
        _thread(self._accept)

    def script(self, *answers) -> None:
        with self._changed:
            self._answers, self._used = list(answers), 0

    def wait_requests(self, count: int, timeout: float = DEADLINE) -> list:
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, timeout):
                raise AssertionError(f"{len(self.requests)} of {count} requests after {timeout} s")
            return self.requests[:count]

    def wait_dropped(self, number: int = 1, timeout: float = DEADLINE) -> float:
        """When the client hung up on the answer to request `number`, counted from 1."""
        self.wait_requests(number, timeout)
        connection = self.connections[number - 1]
        if not connection.over.wait(timeout):
            raise AssertionError(f"request {number}: the client is still connected after {timeout} s")
        if connection.dropped_at is None:
            raise AssertionError(f"request {number}: the client stayed to the end")
        return connection.dropped_at

    def close(self) -> None:
        self._closing.set()
        with self._changed:
            sockets, self._sockets = self._sockets, []
        for each in sockets:
            _shut(each)
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()  # wakes the accepting thread
        except OSError:
            pass

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _accept(self) -> None:
        with self._listener:
            while True:
                connected, _ = self._listener.accept()
                if self._closing.is_set():
                    connected.close()
                    return
                with self._changed:
                    self._sockets.append(connected)
                _thread(self._serve, connected)

    def _serve(self, connected) -> None:
        connection = _Connection(connected, self._closing)
        try:
            if self._context:
                connection.secure(self._context)
            self._answer(connection)
        except (OSError, ValueError):
            pass  # the client hung up, or so did the test
        finally:
            connection.end()
            with self._changed:
                if connected in self._sockets:
                    self._sockets.remove(connected)

    def _answer(self, connection) -> None:
        method, path, headers = connection.read_head()
        if method == "GET":
            if self._models is None or not path.endswith("/models"):
                connection.send_whole(404, {"error": {"message": "no such page"}})
            else:
                connection.send_whole(200, {"object": "list", "data": [{"id": name} for name in self._models]})
            return
        with self._changed:
            steps = self._answers[min(self._used, len(self._answers) - 1)]
            self._used += 1
        body = None if any("unread" in step for step in steps) else connection.read_body(headers)
        connection.watch()
        with self._changed:
            self.connections.append(connection)
            self.requests.append(Request(path, headers, body, time.monotonic()))
            self._changed.notify_all()
        connection.play(steps)


class _Connection:
    """One request and its answer."""

    def __init__(self, connected, closing: threading.Event):
        self.dropped_at = None
        self.over = threading.Event()  # the client has hung up, or the answer was sent whole
        self._socket = connected
        self._closing = closing
        self._is_whole = False
        self._transport = "chunked"
        self._type = "text/event-stream"
        self._head_sent = self._resets = self._watched = False
        self._input = None
        self._held = b""  # of a body that is sent with its length
        self._calls = 0

    def secure(self, context) -> None:
        self._socket = context.wrap_socket(self._socket, server_side=True)

    def read_head(self):
        self._socket.settimeout(DEADLINE)  # what comes may be no HTTP: a TLS greeting has no lines
        self._input = self._socket.makefile("rb")
        method, path, _ = self._input.readline().decode("latin-1").split(" ", 2)
        headers = {}
        for line in iter(lambda: self._input.readline().decode("latin-1").strip(), ""):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return method, path, headers

    def read_body(self, headers):
        try:
            return json.loads(self._input.read(int(headers.get("content-length", 0))))
        except ValueError:
            return None

    def watch(self) -> None:
        """From here on the client has nothing to say: the next thing that comes is its end."""
        self._socket.settimeout(None)
        self._watched = True
        _thread(self._wait_for_end)

    def _wait_for_end(self) -> None:
        try:  # below TLS, which may not be read and written by two threads at once
            while socket.socket.recv(self._socket, 65536):
                pass
        except OSError:
            pass
        if not self._is_whole and not self._closing.is_set():
            self.dropped_at = time.monotonic()
        self.over.set()

    def play(self, steps) -> None:
        finish = next((step["finish"] for step in steps if "finish" in step), None)
        for step in steps:
            if not self._step(step):
                return
        if not any(key in _OPEN for step in steps for key in step):
            self._event({"choices": [_choice({}, finish or ("tool_calls" if self._calls else "stop"))]})
            for usage in (step["usage"] for step in steps if "usage" in step):
                self._event({"choices": [], "usage": _usage(usage)})
            self._body(b"data: [DONE]\n\n")
        self._finish_body()

    def _step(self, step: dict) -> bool:
        """Whether the answer goes on after it."""
        if "pause" in step:
            self.over.wait(step["pause"])
        elif "hang" in step:
            self.over.wait()
            return False
        elif "drop" in step or "reset" in step:
            self._is_whole = True  # it is not the client who ends it
            if "reset" in step:
                self._resets = True
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        elif "status" in step:
            self.send_whole(step["status"], step.get("body", ""), step.get("type"), step.get("headers"))
            return False
        elif "transport" in step:
            self._transport = step["transport"]
        elif "type" in step:
            self._type = step["type"]
        elif "head" in step:
            self._socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Ty")
        elif "cut" in step:
            self._head()
            self._socket.sendall(b"1000\r\n" + b"d" * step["cut"])
            self.over.wait()
            return False
        elif "raw" in step:
            self._body(step["raw"] if isinstance(step["raw"], bytes) else step["raw"].encode())
        elif "data" in step:
            self._body(b"data: " + step["data"].encode() + b"\n\n")
        else:
            for delta in self._deltas(step):
                self._event({"choices": [_choice(delta)]})
        return not self.over.is_set()

    def _deltas(self, step: dict):
        for key, field in (("text", "content"), ("thought", "reasoning_content")):
            value = step.get(key, [])
            for piece in value if isinstance(value, list) else [value]:
                yield {field: piece}
        if "call" in step:
            arguments = step["call"].get("arguments", {})
            arguments = json.dumps(arguments) if isinstance(arguments, dict) else arguments
            first, *others = arguments if isinstance(arguments, list) else [arguments]
            function = {"name": step["call"]["name"], "arguments": first}
            yield {"tool_calls": [{"index": self._calls, "id": f"id{self._calls}", "type": "function", "function": function}]}
            for piece in others:
                yield {"tool_calls": [{"index": self._calls, "function": {"arguments": piece}}]}
            self._calls += 1

    def _event(self, event: dict) -> None:
        self._body(b"data: " + json.dumps(event).encode() + b"\n\n")

    def _body(self, data: bytes) -> None:
        if self._transport == "length":
            self._held += data
            return
        self._head()
        if data:  # an empty chunk would be the last one
            self._socket.sendall(b"%x\r\n%s\r\n" % (len(data), data) if self._transport == "chunked" else data)

    def _head(self) -> None:
        if not self._head_sent:
            self._head_sent = True
            framing = {"chunked": "Transfer-Encoding: chunked\r\n", "close": "",
                       "length": f"Content-Length: {len(self._held)}\r\n"}[self._transport]
            self._socket.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: {self._type}\r\n{framing}\r\n".encode())

    def _finish_body(self) -> None:
        self._head()
        self._is_whole = True
        self._socket.sendall(b"0\r\n\r\n" if self._transport == "chunked" else self._held)

    def send_whole(self, status: int, body, content_type=None, headers=None) -> None:
        self._is_whole = True
        if not isinstance(body, (str, bytes)):
            body, content_type = json.dumps(body), content_type or "application/json"
        body = body.encode() if isinstance(body, str) else body
        fields = {"Content-Type": content_type or "text/plain", "Content-Length": len(body), **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._socket.sendall(f"HTTP/1.1 {status} Scripted\r\n{lines}Connection: close\r\n\r\n".encode() + body)

    def end(self) -> None:
        _shut(self._socket, socket.SHUT_RD if self._resets else socket.SHUT_RDWR)  # the former sends nothing
        if self._watched:  # by a thread that must have seen the end before the number is given back
            self.over.wait()
        self.over.set()
        self._socket.close()
        if self._input:
            self._input.close()


class Silent:
    """A listener whose queue is full: a client that connects to `url` waits. Linux; others answer or refuse."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._fillers = [socket.socket() for _ in range(2)]
        for filler in self._fillers:
            filler.setblocking(False)
            filler.connect_ex(self._listener.getsockname())

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_) -> None:
        for each in (*self._fillers, self._listener):
            each.close()


def _choice(delta: dict, finish=None) -> dict:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _usage(usage: dict) -> dict:
    counts = {"prompt_tokens": usage["input"], "completion_tokens": usage["output"]}
    if "cached" in usage:
        counts["prompt_tokens_details"] = {"cached_tokens": usage["cached"]}
    if "thought" in usage:
        counts["completion_tokens_details"] = {"reasoning_tokens": usage["thought"]}
    return counts


def _shut(each: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    try:
        socket.socket.shutdown(each, how)
    except OSError:
        pass


def _thread(function, *arguments) -> None:
    threading.Thread(target=function, args=arguments, daemon=True).start()


def main() -> None:
    with ModelServer(*json.loads(sys.argv[1] if len(sys.argv) > 1 else "[]")) as server:
        print(server.url, flush=True)

        def report():
            number = 0
            while True:
                number += 1
                request = server.wait_requests(number, timeout=10 ** 6)[-1]
                print(json.dumps({"request": number, "path": request.path, "body": request.body}), flush=True)
                _thread(report_end, number)

        def report_end(number):
            connection = server.connections[number - 1]
            connection.over.wait()
            if connection.dropped_at is not None:
                print(json.dumps({"dropped": number}), flush=True)

        _thread(report)
        sys.stdin.read()


if __name__ == "__main__":
    main()
