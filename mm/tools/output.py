"""What a command has written so far: all of it in memory while it is short, else its two ends, and all of it in a log.

Two threads use an Output: the pump adds, the turn looks. The log is written from the moment the memory does not hold
everything, or when somebody asks for its path: for most commands there is none. Where it cannot be written (a full disk),
the command still runs and its ends are still shown.
"""

from __future__ import annotations

import codecs
import os
import threading
from collections import namedtuple

from mm.tools import logs

# What is kept in memory of the beginning and of the end, in bytes.
HEAD = 256 * 1024
TAIL = 512 * 1024
# What the live view shows, in characters; a character takes four bytes at most, escape sequences some more.
LIVE_CHARACTERS = 2000
_LIVE_BYTES = 8 * LIVE_CHARACTERS

# An Output at one moment: `end` is None when `beginning` is everything.
Ends = namedtuple("Ends", "beginning end size newlines")


class Output:
    """`size` is the number of bytes so far; `error` says why there can be no log, or is None."""

    def __init__(self, limit: int):
        self.size = 0
        self._newlines = 0
        self.error = None
        self._limit = limit  # of the log, in bytes
        self._lock = threading.Lock()
        self._head = bytearray()
        self._tail = bytearray()
        self._path = self._file = None
        self._in_memory = True
        self._ended = False

    def add(self, data: bytes) -> None:
        with self._lock:
            self.size += len(data)
            if self._in_memory and self.size > HEAD + 2 * TAIL:
                self._open()
            if self._file and self.size <= self._limit:
                self._write(data)
            if self._in_memory:
                self._newlines += data.count(b"\n")
                self._remember(data)

    def _remember(self, data):
        room = HEAD - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]

    def _open(self):
        """Starts the log with what has been in memory up to now, unless there is one."""
        if self._path or self.error:
            return
        try:
            self._path, self._file = logs.new_log()
        except OSError as error:
            self.error = error.strerror or str(error)
            return
        for data in (self._head, self._tail):
            if self._file:
                self._write(data)
        if self._ended:
            self._close()

    def _write(self, data):
        try:
            view = memoryview(data)
            while view:
                view = view[self._file.write(view):]
        except OSError as error:
            self.error = error.strerror or str(error)
            self._discard()

    def _close(self):
        if self._file:
            self._file.close()
            self._file = None

    def _discard(self):
        self._close()
        if self._path:
            try:
                os.unlink(self._path)
            except OSError:
                pass  # the command itself may have removed it
            self._path = None

    def log(self) -> str | None:
        """The path of the log with everything in it so far and from now on; None where it cannot be written."""
        with self._lock:
            self._open()
            return self._path

    def ends(self) -> Ends:
        """The beginning and the end of what there is now."""
        with self._lock:
            if len(self._head) + len(self._tail) == self.size:
                return Ends(bytes(self._head + self._tail), None, self.size, self._newlines)
            return Ends(bytes(self._head), bytes(self._tail[-TAIL:]), self.size, self._newlines)

    def latest(self) -> str:
        """The end so far, decoded, for the live view."""
        with self._lock:
            data = bytes(self._head[-_LIVE_BYTES:] + self._tail[-_LIVE_BYTES:])[-_LIVE_BYTES:]
        return decode(data, True, True)

    def forget(self, keep_log: bool) -> None:
        """The call is answered: what comes later goes to the log, or nowhere."""
        with self._lock:
            self._in_memory = False
            self._head, self._tail = bytearray(), bytearray()
            if not keep_log:
                self._discard()

    def close(self) -> None:
        """Nothing will be added any more."""
        with self._lock:
            self._ended = True
            self._close()


def decode(data: bytes, cut_before: bool, cut_after: bool) -> str:
    """Text of a piece; what is left of characters that the cuts before and after it went through is dropped."""
    start = 0
    while cut_before and start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(data[start:], not cut_after)
    if os.name == "nt" and "\ufffd" in text:
        return data.decode("oem", "replace")  # the console's own page
    return text
