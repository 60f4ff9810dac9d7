"""`$MM_TRACE=FILE`: every line of the protocol in both directions, with its time and without secrets.

The pieces of an answer are held back while they may be the beginning of a secret (mm.secrecy.Pieces), until
another line comes.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import time

from mm import log
from mm.secrecy import Known, Pieces, mask_servers, mask

TOO_DEEP = "[%d bytes, nested too deeply to be masked]"


def open_trace(path: str, secrets=()):
    """A function of (direction, line) for wire.Peer that appends to the file; None if it cannot be opened.

    `secrets` are texts that the file must not hold anywhere: a model may quote the key of its server.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as problem:
        log.line("MM_TRACE: %s: %s; nothing is traced" % (path, problem.strerror))
        return None
    trace = _Trace(descriptor, secrets)
    atexit.register(trace.flush)
    return trace


class _Trace:
    """The open file. It is called by the thread that reads and by the threads that write."""

    def __init__(self, descriptor: int, secrets):
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._known = Known(secrets)
        self._pieces = Pieces(self._known, self._write_chunk)

    def __call__(self, direction: str, line: bytes) -> None:
        now = time.time()
        begin = time.strftime("%H:%M:%S", time.localtime(now)) + ".%03d %s " % (now % 1 * 1000, direction)
        with self._lock:
            try:
                message = json.loads(line)
                for secret in mask_servers(message):
                    self._known.add(secret)
                chunk = _chunk(message) if direction == ">" else None
                if chunk:
                    held = begin, message, chunk
                    self._pieces.add(message["params"].get("sessionId"), held, chunk["text"])
                    return
                shown = _encoded(mask(message, self._known.hidden))
            except RecursionError:
                shown = TOO_DEEP % len(line)  # what is secret in it cannot be found
            except ValueError:  # unchanged, because people read a trace to find a broken line
                shown = self._known.hidden(line.decode("utf-8", "replace").rstrip("\r\n"))
            self._pieces.flush()
            self._write(begin + shown)

    def flush(self) -> None:
        """Writes what is held back."""
        with self._lock:
            self._pieces.flush()

    def _write_chunk(self, held, text: str) -> None:
        begin, message, chunk = held
        chunk["text"] = text
        self._write(begin + _encoded(mask(message, self._known.hidden)))

    def _write(self, line: str) -> None:
        if self._descriptor is None:
            return
        try:
            os.write(self._descriptor, (line + "\n").encode("utf-8", "replace"))
        except OSError as problem:
            self._descriptor = None
            log.line("MM_TRACE: %s; nothing more is traced" % problem.strerror)


def _chunk(message):
    """The content of the message if it is a piece of a streamed text, else None."""
    params = message.get("params") if isinstance(message, dict) else None
    update = params.get("update") if isinstance(params, dict) else None
    content = update.get("content") if isinstance(update, dict) else None
    streams = isinstance(content, dict) and str(update.get("sessionUpdate")).endswith("_chunk")
    return content if streams and isinstance(content.get("text"), str) else None


def _encoded(message) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def both(*traces):
    """One function that calls all `traces` except those that are None; None if all are."""
    traces = [trace for trace in traces if trace]
    if len(traces) < 2:
        return traces[0] if traces else None

    def trace(direction: str, line: bytes) -> None:
        for each in traces:
            each(direction, line)

    return trace
