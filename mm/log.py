"""stderr that never blocks: lines are queued here and one daemon thread writes them.

A client may hand mm a stderr that it never reads; the pipe is full after 64 KiB, and whoever writes then waits for ever.
So nobody but the writer thread touches descriptor 2. The queue is bounded: what does not fit is dropped and counted, and
the count is written where the lost lines would have stood, as soon as there is room again.

The lock is re-entrant, because a signal handler may log on a thread that is just logging. It is held for moments, never
while writing.
"""

from __future__ import annotations

import collections
import os
import threading

# Bytes that wait at most, those being written included. Twenty times what a talkative session logs.
LIMIT = 256 * 1024

# A longer line is cut: one line must not fill the queue.
LONGEST_LINE = 8192

# The writer hands over about this much at a time, so that room comes back in steps when the reader is slow.
BATCH = 16 * 1024

# Told every line too, on the thread that logs it: None or a function of the text.
tap = None
# A front end that owns the terminal writes the lines itself: None or a function of the text and its style.
sink = None


class _Stderr:
    """The queue, its writer thread and the count of what was dropped."""

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._lines = collections.deque()
        self._size = 0
        self._dropped = 0
        self._changed = threading.Condition(threading.RLock())
        self._thread = None

    def put(self, line: bytes) -> None:
        with self._changed:
            if self._size + len(line) > LIMIT:
                self._dropped += 1
                return
            self._note_dropped()
            self._append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="stderr writer", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._size and not self._dropped, timeout)

    def _append(self, line: bytes) -> None:
        self._lines.append(line)
        self._size += len(line)

    def _note_dropped(self) -> None:
        if self._dropped:
            count, self._dropped = self._dropped, 0
            self._append(b"\xe2\x80\xa6 %d line%s dropped\n" % (count, b"" if count == 1 else b"s"))

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._lines:
                    self._changed.wait()
                batch = self._take()
            self._write(batch)
            with self._changed:
                self._size -= len(batch)
                if not self._lines:
                    self._note_dropped()
                self._changed.notify_all()

    def _take(self) -> bytes:
        batch, size = [], 0
        while self._lines and size < BATCH:
            batch.append(self._lines.popleft())
            size += len(batch[-1])
        return b"".join(batch)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest):]
            except BlockingIOError:
                # Whoever started mm shares this descriptor with it and made it non-blocking.
                import select

                select.select([], [self._descriptor], [])
            except OSError:
                return  # nobody will ever read it


_stderr = _Stderr(2)


def line(text: str, style: str = "") -> None:
    """Queues one line for stderr, from any thread; never blocks. Line ends in it become spaces, control sequences are left out.

    `style`: the parameters of the terminal's colours for the whole line, such as "1" for bold.
    """
    text = " ".join(text.splitlines())
    if not text.isprintable():
        from mm.text import clean

        text = clean(text)
    if len(text) > LONGEST_LINE:
        text = text[:LONGEST_LINE] + "…"
    if tap is not None:
        tap(text)
    if sink is not None:
        sink(text, style)
        return
    _stderr.put(("\x1b[%sm%s\x1b[0m\n" % (style, text) if style else text + "\n").encode("utf-8"))


def flush(timeout: float) -> None:
    """Waits until all lines are written, at most `timeout` seconds."""
    _stderr.flush(timeout)


def traceback() -> None:
    """Logs the exception being handled with its traceback: for bugs, nothing else."""
    import traceback as formatter

    for text in formatter.format_exc().splitlines():
        line(text)
