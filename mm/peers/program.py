"""A program that mm talks JSON-RPC with over its stdin and stdout, from its start to its end.

Threads: the *reader* runs the Peer. The *drain* reads stderr, because a full pipe would stop the program, and
keeps the last line. The *waiter* waits for its exit, because a program may leave its stdout to children that
never close it. Whichever of reader and waiter notices the end first finds out why, and ends what is left of
the group. The Peer has its writer. All are daemons and end with the program; close() has one for the seconds
that it gives the program to end by itself.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections import namedtuple

from mm import log
from mm.text import clean_terminal, one_line, size
from mm.wire import child, streams
from mm.wire.framing import LINES, TooLong
from mm.wire.peer import Peer

# Bytes of one message; more ends the program.
LONGEST_MESSAGE = 16 * 1024 * 1024
# Seconds: between the end of stdin and TERM, and between TERM and KILL; for the exit after the end of stdout;
# for what stderr still holds then, and for what stdout still holds after the exit.
GRACE, EXIT, DRAIN, LAST_WORDS = 2.0, 1.0, 0.3, 0.5
# How much of a stray line is logged, in characters; how many are.
NOISE_SHOWN, NOISE_LINES = 200, 20
_LAST_LINE = 4096

# Why a program is over: "exit code 1", "signal 9", …, and the last line on its stderr, "" where there is
# none.
Ending = namedtuple("Ending", "how said")


class Program:
    """`label` stands before stray output of its in the log; serve, notified and framing are the Peer's
    (`peer`). `ended(program)` is called when it is over without close(), on one of its threads. Raises
    OSError as child.start does."""

    def __init__(self, label: str, argv, cwd: str, environ: dict, serve, notified, framing=LINES, ended=None):
        self._label = label
        self._ended = ended
        self._ending = None
        self._noise_lines = 0
        self._last_line = b""
        self._over, self._drained, self._read_out = threading.Event(), threading.Event(), threading.Event()
        self._writing, self._noticing = threading.Lock(), threading.Lock()
        self._closing = False
        self._child = child.start([os.path.expanduser(argv[0]), *argv[1:]], cwd=cwd, env=environ,
                                  stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self._process = self._child.process
        self._write_all = streams.write_to(self._process.stdin.fileno())
        self.peer = Peer(streams.Reader(self._process.stdout.fileno()), self._write, serve, notified,
                         label, framing=framing, noise=self._noise, longest=LONGEST_MESSAGE)
        for work in (self._drain, self._read, self._wait):
            self._begin(work)

    def _begin(self, work):
        threading.Thread(target=work, name=self._label + " " + work.__name__.strip("_"), daemon=True).start()

    def alive(self) -> bool:
        """Whether it can still answer. One that has gone and left its stdout to children cannot."""
        return not self._closing and not self.peer.closed and self._process.poll() is None

    def ending(self) -> Ending:
        """Why it is over; waits for that, at most for the seconds that finding out takes."""
        self._over.wait(EXIT + 2 * DRAIN)
        return self._ending or Ending("it closed its input", "")

    def close(self) -> None:
        """Ends it: the end of its stdin, 2 s, TERM, 2 s, KILL. Returns at once."""
        if not self._closing:
            self._closing = True
            self.peer.close()
            self._begin(self._finish)

    def wait(self, seconds: float) -> None:
        """Waits for the exit of the program itself, at most `seconds`."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass

    def _finish(self):
        self._close_stdin(DRAIN)
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            pass
        self._child.end(GRACE)
        self._close_stdin(2 * GRACE)

    def _close_stdin(self, seconds):
        # Who is in the middle of writing keeps the descriptor, until there is nobody to read: its number
        # could be another's by the next write.
        if self._writing.acquire(timeout=seconds):
            self._process.stdin.close()
            self._writing.release()

    def _write(self, data):
        with self._writing:
            if self._process.stdin.closed:
                raise BrokenPipeError
            self._write_all(data)

    def _read(self):
        how = None
        try:
            self.peer.run()
        except TooLong:
            how = "a line over " + size(LONGEST_MESSAGE)
        except Exception:  # a bug must not leave those who wait without an end
            log.traceback()
        self._read_out.set()
        self._is_over(how)
        self._process.stdout.close()

    def _wait(self):
        self._process.wait()
        # In two parts: of the first one a stopped process may have missed everything.
        if not self._read_out.wait(LAST_WORDS / 2) and not self._read_out.wait(LAST_WORDS / 2):
            self._is_over(None)

    def _is_over(self, how):
        """Finds out why, unless that is known; `how`: what is known of it."""
        with self._noticing:
            if self._over.is_set():
                return
            by_itself = not self._closing
            self._ending = self._find_out(how)
            self._over.set()
        self.close()
        if by_itself and self._ended is not None:
            self._ended(self)

    def _find_out(self, how):
        if how is None:
            try:
                code = self._process.wait(EXIT)
            except subprocess.TimeoutExpired:
                how = "it closed its output"
            else:
                self._drained.wait(DRAIN)
                how = "exit code %d" % code if code >= 0 else "signal %d" % -code
        return Ending(how, one_line(clean_terminal(self._last_line.decode("utf-8", "replace")), NOISE_SHOWN))

    def _drain(self):
        rest = b""
        with self._process.stderr as pipe:
            while True:
                data = os.read(pipe.fileno(), streams.READ_SIZE)
                *lines, rest = (rest + data).split(b"\n") if data else (rest, b"")
                self._last_line = next((line[:_LAST_LINE] for line in reversed(lines) if line.strip()),
                                       self._last_line)
                rest = rest[:_LAST_LINE]
                if not data:
                    break
        self._drained.set()

    def _noise(self, line):
        """Something on stdout that is not a message, such as a stray print."""
        self._noise_lines += 1
        if self._noise_lines <= NOISE_LINES:
            text = one_line(clean_terminal(line[:_LAST_LINE].decode("utf-8", "replace")), NOISE_SHOWN)
            log.line("[%s] %s" % (self._label, text or size(len(line))))
        elif self._noise_lines == NOISE_LINES + 1:
            log.line("[%s] more such lines are not shown" % self._label)


def shown(value) -> str:
    """A value of a program's in a message: a text or a number, `?` for what may be of any depth and size."""
    is_short = isinstance(value, (str, float)) or isinstance(value, int) and abs(value) < 10 ** 15
    return one_line(str(value), 40) if is_short else "?"
