"""Lines for stderr that never block: they are queued, and one daemon thread writes them.

A client may give mm a stderr that it never reads. The pipe is full after 64 KiB, and a write then waits for
ever, so only the writer thread touches descriptor 2. The queue is bounded: lines that do not fit are dropped,
and their number is written in their place as soon as there is room again.

The lock is re-entrant because a signal handler may log on a thread that is logging. It is held for moments,
never during a write.
"""

from __future__ import annotations

import collections
import os
import threading

# The most bytes in the queue, including those being written: twenty times what a talkative session logs.
LIMIT = 256 * 1024

# A longer line is cut, so that one line cannot fill the queue.
LONGEST_LINE = 8192

# The bytes that the writer hands over at a time, so that room is freed in steps if the reader is slow.
BATCH = 16 * 1024

# A function that also receives every line, on the thread that logs it; or None.
tap = None
# A function of (text, style) that writes the lines in place of the queue, for a front end that owns the
# terminal; or None.
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
                # The program that started mm shares this descriptor and has made it non-blocking.
                import select

                select.select([], [self._descriptor], [])
            except OSError:
                return  # nobody will read it


_stderr = _Stderr(2)


def line(text: str, style: str = "") -> None:
    """Queues one line for stderr, from any thread; never blocks. Line ends become spaces; control sequences
    are removed.

    `style` is the parameter of the terminal's escape sequence for the whole line, such as "1" for bold.
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
    """Waits until all lines are written, but at most `timeout` seconds."""
    _stderr.flush(timeout)


def traceback() -> None:
    """Logs the exception being handled with its traceback. For bugs only."""
    import traceback as formatter

    for text in formatter.format_exc().splitlines():
        line(text)
