"""An output: all of it in memory while it is short, else its two ends, and all of it in a log.

Two threads use an Output: one adds, the turn's thread looks. The log is written from the moment the memory
does not hold everything, or when a result has to name it; most outputs need none. If it cannot be written (a
full disk), the two ends are shown all the same.
"""

from __future__ import annotations

import codecs
import os
import threading

from mm.text import LINE_LIMIT, clean_terminal, head_and_tail, plural, size

# Bytes of a log; what comes after them is lost.
LIMIT = 64 * 1024 * 1024
# Lines that a result shows; the characters are configured.
SHOWN_LINES = 600
# What is kept in memory of the beginning and of the end, in bytes.
HEAD = 256 * 1024
TAIL = 512 * 1024
# A NUL within this many bytes from the start makes an output binary.
BINARY_PROBE = 8 * 1024
# What the live view shows, in characters; a character takes four bytes at most, escape sequences some more.
LIVE_CHARACTERS = 2000
_LIVE_BYTES = 8 * LIVE_CHARACTERS


class Output:
    """`size` is the number of bytes so far."""

    def __init__(self, limit: int = LIMIT):
        self.size = 0
        self._newlines = 0
        self._error = None  # why there can be no log
        self._named = False  # whether a result names the log
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
        if self._path or self._error:
            return
        from mm.tools import logs  # with tempfile, for few outputs

        try:
            self._path, self._file = logs.new_log()
        except OSError as error:
            self._error = error.strerror or str(error)
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
            self._error = error.strerror or str(error)
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

    def shown(self, characters: int) -> str:
        """As much as a result may show, cleaned, with a line about what is left out; "" for nothing."""
        beginning, end, total, newlines = self._ends()
        if b"\0" in beginning[:BINARY_PROBE]:
            return f"[binary output, {size(total)}; {self.named('it is in {}')}]"
        if end is None:
            text = clean_terminal(decode(beginning, False, False)).rstrip("\n")
            head, tail = head_and_tail(text, characters, SHOWN_LINES)
            count, total = text.count("\n") + 1, len(text.encode("utf-8"))
        else:
            first = beginning[:beginning.rfind(b"\n") + 1] or beginning
            last = end[end.find(b"\n") + 1:] or end
            text = clean_terminal(decode(first, False, True)).rstrip("\n")
            last = clean_terminal(decode(last, True, False)).rstrip("\n")
            head, tail = head_and_tail(text, characters, SHOWN_LINES, last)
            count = newlines + (not end.endswith(b"\n"))
        shown = "\n".join(head)
        if tail:
            return "\n".join([shown, self._left_out(head + tail, count, total), *tail])
        if shown != text:
            log = self.named("everything is in {}")
            return f"{shown}\n[lines over {LINE_LIMIT} characters were cut; {log}]"
        return shown

    def named(self, sentence: str) -> str:
        """`sentence` with the path of the log, which then stays; or why there is none."""
        with self._lock:
            self._open()
            if self._path is None:
                return f"no log could be written: {self._error}"
            self._named = True
            return sentence.format(self._path)

    def _left_out(self, shown, count, total):
        left = size(max(total - len("\n".join(shown).encode("utf-8")), 0))
        if count > len(shown):
            left = f"{plural(count - len(shown), 'line')} ({left})"
        return f"[… {left} left out; {self.named('everything is in {}, use read_file or grep on it')} …]"

    def _ends(self):
        """(beginning, end, bytes, line ends) so far; the end is None if the beginning is everything."""
        with self._lock:
            if len(self._head) + len(self._tail) == self.size:
                return bytes(self._head + self._tail), None, self.size, self._newlines
            return bytes(self._head), bytes(self._tail[-TAIL:]), self.size, self._newlines

    def latest(self) -> str:
        """The end so far, cleaned, for the live view."""
        with self._lock:
            data = bytes(self._head[-_LIVE_BYTES:] + self._tail[-_LIVE_BYTES:])[-_LIVE_BYTES:]
        return clean_terminal(decode(data, True, True))[-LIVE_CHARACTERS:]

    def forget(self) -> None:
        """The call is answered: what comes later goes to the log if the result names it, or nowhere."""
        with self._lock:
            self._in_memory = False
            self._head, self._tail = bytearray(), bytearray()
            if not self._named:
                self._discard()

    def close(self) -> None:
        """Nothing will be added any more."""
        with self._lock:
            self._ended = True
            self._close()


def decode(data: bytes, cut_before: bool, cut_after: bool) -> str:
    """Text of a piece; what a cut before or after it has left of a character is dropped."""
    start = 0
    while cut_before and start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(data[start:], not cut_after)
    if os.name == "nt" and "\ufffd" in text:
        return data.decode("oem", "replace")  # the console's own page
    return text
