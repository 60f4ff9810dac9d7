"""The benchmark's two ends: an agent's process, driven with little time of our own, and the model server's
process.
"""

from __future__ import annotations

import json
import os
import queue
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DEADLINE = 60  # seconds without a byte


class Agent:
    """A running agent. Lines are kept as they came with the time they came at, and parsed after the clock has
    stopped.
    """

    def __init__(self, argv: list, env: dict, cwd: str):
        self._rest = b""
        self._last_id = 0
        self._log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
                                        cwd=cwd, env=env, bufsize=0)

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self._log.close()

    def send(self, method: str, params: dict, request: bool = True) -> int:
        """Writes one message; returns the time just before."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if request:
            self._last_id += 1
            message["id"] = self._last_id
        line = json.dumps(message).encode() + b"\n"
        now = time.perf_counter_ns()
        self.process.stdin.write(line)
        return now

    def until(self, mark: bytes, count: int = 1) -> list:
        """[(arrival, line)] up to the line with the `count`th `mark`; the time in nanoseconds."""
        descriptor = self.process.stdout.fileno()
        pieces, tail, rest = [], b"", self._rest
        while True:
            if not select.select([descriptor], [], [], DEADLINE)[0]:
                raise RuntimeError("%d s without a byte%s" % (DEADLINE, self._what_it_said()))
            data = os.read(descriptor, 1 << 16)
            now = time.perf_counter_ns()
            if not data:
                raise RuntimeError("the agent ended%s" % self._what_it_said())
            pieces.append((now, data))
            # A mark may lie across two pieces; one that is inside the tail alone has been counted already.
            window = tail + data
            count -= window.count(mark)
            tail = window[-(len(mark) - 1):]
            if count <= 0 and data.endswith(b"\n"):
                break
        lines = []
        for arrival, data in pieces:
            *whole, rest = (rest + data).split(b"\n")
            lines += [(arrival, line) for line in whole]
        self._rest = rest
        return lines

    def _what_it_said(self) -> str:
        self._log.seek(0)
        return "; its stderr: " + self._log.read().decode("utf-8", "replace")[-2000:]

    # The protocol's calls

    def initialize(self) -> int:
        """Returns the time at which the answer arrived."""
        self.send("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        return self.finish()[-1][0]

    def new_session(self, cwd: str) -> str:
        self.send("session/new", {"cwd": cwd, "mcpServers": []})
        return json.loads(self.finish()[-1][1])["result"]["sessionId"]

    def load_session(self, session: str, cwd: str) -> int:
        """Loads a session; returns the nanoseconds until the answer."""
        before = self.send("session/load", {"sessionId": session, "cwd": cwd, "mcpServers": []})
        return self.until(b'"result"')[-1][0] - before

    def prompt(self, session: str, text: str) -> int:
        return self.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    def cancel(self, session: str) -> int:
        return self.send("session/cancel", {"sessionId": session}, request=False)

    def finish(self) -> list:
        """The lines up to the answer to the last request; RuntimeError when that is an error."""
        mark = b'"id":%d,' % self._last_id
        lines = self.until(mark)
        # What the agent sends by itself may follow in the same piece; it is of no use to anybody here.
        while mark not in lines[-1][1]:
            lines.pop()
        if b'"error":' in lines[-1][1]:
            raise RuntimeError("the agent answered %s%s" % (lines[-1][1].decode(), self._what_it_said()))
        return lines


class ModelServer:
    """model_server.py as a process; what it reports is read by a thread, so that it never waits for us."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "model_server.py")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._address = "127.0.0.1", json.loads(self.process.stdout.readline())["port"]
        self.url = "http://%s:%d/v1" % self._address
        self._reports = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._reports.put(json.loads(line))

    def next(self, kind: str) -> dict:
        """The next report of this kind; those before it are dropped."""
        while True:
            report = self._reports.get(timeout=DEADLINE)
            if kind in report:
                return report

    def requests(self) -> list:
        """(method, size of the body) of each request since the last look."""
        with socket.create_connection(self._address) as connection:
            connection.sendall(b"GET /look HTTP/1.0\r\n\r\n")
            connection.recv(1)
        seen = []
        while True:
            report = self._reports.get(timeout=DEADLINE)
            if "look" in report:
                return seen
            if "request" in report:
                seen.append((report["request"], report["bytes"]))

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(self, *_) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
