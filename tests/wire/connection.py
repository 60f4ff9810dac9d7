"""A Peer on a thread of its own, with the test at the other end of two real pipes."""

from __future__ import annotations

import json
import os
import threading
import unittest

from mm import log
from mm.wire import framing, streams
from mm.wire.framing import TooLong
from mm.wire.peer import Peer
from tests.support import DEADLINE


class Connection:
    """A Peer that runs on a thread of its own, and the test's ends of its two pipes."""

    def __init__(self, serve=None, notified=None, trace=None, framed=framing.LINES, **options):
        self.their_input, self.to_peer = os.pipe()
        self.from_peer, self.their_output = os.pipe()
        self.served, self.notices = [], []
        self.writing = threading.Event()  # the peer has begun to write
        self._write = streams.write_to(self.their_output)
        self.peer = Peer(streams.Reader(self.their_input), self._write_of_the_peer,
                         serve or self.served.append,
                         notified or (lambda *notice: self.notices.append(notice)), trace=trace,
                         framing=framed, **options)
        self._framer, self._lines = framed.framer(), []
        self.problem = None  # what run() raised
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            self.peer.run()
        except TooLong as problem:
            self.problem = problem

    def _write_of_the_peer(self, data):
        self.writing.set()
        self._write(data)

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
        os.set_blocking(self.their_output, False)
        try:
            while True:
                os.write(self.their_output, b"\n" * 4096)
        except BlockingIOError:
            pass
        os.set_blocking(self.their_output, True)

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
        os.close(self.their_input)
        os.close(self.their_output)


def in_thread(function, *arguments):
    """Runs it on a thread; returns a function that waits and gives the result, or the exception as a
    value.
    """
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
