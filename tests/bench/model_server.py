"""The benchmark's model server: a program of its own, raw sockets, one thread a connection.

It does what the last user message says, in the words below, and behaves as llama.cpp does: it streams
server-sent events, chunked for HTTP/1.1 and up to the end of the connection for HTTP/1.0, and GET /props
tells its context window. What it sees goes to stdout as JSON lines:

    {"port": N}                          once, when it listens
    {"request": "POST", "bytes": N}      a request has come; `bytes` is the size of its body
    {"look": true}                       GET /look has come: all that was asked before it has been reported
    {"stamps": [ns, …]}                  after a stream: when each chunk was handed to the kernel
    (time.perf_counter_ns,
                                         which is one clock for all processes here)

    bench: stream COUNT MILLISECONDS     that many chunks, numbered "w000000 ", "w000001 ", …, one by one and
    so far apart; with
                                         0 as fast as it goes, which is many in one write
    bench: hang                          not a byte
    bench: run COMMAND                   a call of the tool bash; "done" once the result is there
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time

DIRECTIVE = re.compile(r"bench: (\w+) ?([^\n\"]*)")
PROPS = b'{"default_generation_settings":{"n_ctx":32768},"total_slots":1}'
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}

def report(**what) -> None:
    os.write(1, json.dumps(what, separators=(",", ":")).encode() + b"\n")


def event(delta: dict, finish=None, **more) -> bytes:
    body = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 0, "model": "bench",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(dict(body, **more), separators=(",", ":")).encode() + b"\n\n"


END = event({}, "stop", usage=USAGE) + b"data: [DONE]\n\n"


def read_request(connection):
    """(first line, body) of a request, or None when the connection ends before it is whole."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(1 << 16)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    while len(body) < (int(length.group(1)) if length else 0):
        piece = connection.recv(1 << 16)
        if not piece:
            return None
        body += piece
    return head.split(b"\r\n", 1)[0].decode(), body


def serve(connection) -> None:
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = read_request(connection)
        if request is None:
            return
        method, path, version = request[0].split()
        if path == "/look":
            report(look=True)
            return
        report(request=method, bytes=len(request[1]))
        try:
            if method == "POST":
                answer(connection, version == "HTTP/1.1", json.loads(request[1])["messages"])
            else:
                status, body = (b"200 OK", PROPS) if path == "/props" else (b"404 Not Found", b"{}")
                connection.sendall(b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                                   b"Connection: close\r\n\r\n%s" % (status, len(body), body))
        except OSError:
            pass  # the agent has hung up, which is what a cancel does


def answer(connection, chunked: bool, messages: list) -> None:
    asked = next(message["content"] for message in reversed(messages) if message["role"] == "user")
    verb, rest = DIRECTIVE.search(asked).groups()
    if verb == "hang":
        connection.recv(1)
        return

    def frame(data: bytes) -> bytes:
        return b"%x\r\n%s\r\n" % (len(data), data) if chunked else data

    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
    connection.sendall(head + (b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"\r\n"))
    stamps = []
    if verb == "stream":
        count, gap = rest.split()
        chunks = [frame(event({"content": "w%06d " % number})) for number in range(int(count))]
        stamps = stream(connection, chunks, float(gap) / 1000)
    elif messages[-1]["role"] == "tool":
        connection.sendall(frame(event({"content": "done"})))
    else:
        function = {"name": "bash", "arguments": json.dumps({"command": rest})}
        call = {"index": 0, "id": "call_bench", "type": "function", "function": function}
        connection.sendall(frame(event({"tool_calls": [call]})))
    connection.sendall(frame(END) + (b"0\r\n\r\n" if chunked else b""))
    if stamps:
        report(stamps=stamps)


def stream(connection, chunks: list, gap: float) -> list:
    stamps = []
    start = time.perf_counter()
    if not gap:
        connection.sendall(b"".join(chunks))
        return stamps
    for number, chunk in enumerate(chunks):
        time.sleep(max(0.0, start + number * gap - time.perf_counter()))
        stamps.append(time.perf_counter_ns())
        connection.sendall(chunk)
    return stamps


def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    report(port=listener.getsockname()[1])
    threading.Thread(target=end_with_the_benchmark, daemon=True).start()
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def end_with_the_benchmark() -> None:
    """The benchmark holds the other end of stdin."""
    os.read(0, 1)
    os._exit(0)


if __name__ == "__main__":
    main()
