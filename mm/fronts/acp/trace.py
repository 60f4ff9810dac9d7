"""`$MM_TRACE=FILE`: every line of the protocol both ways, with its time; what looks secret is masked."""

from __future__ import annotations

import json
import os
import time

from mm import log
from mm.secrecy import MASKED, SHORTEST_SECRET, mask

TOO_DEEP = "[%d bytes, nested too deeply to be masked]"


def open_trace(path: str, secrets=()):
    """A function of (direction, line) for wire.Peer that appends to the file; None, and a line on stderr, if it cannot.

    `secrets` are texts that must not be in it wherever they stand: a model may quote the key that it was asked with.
    """
    secrets = [secret for secret in secrets if secret and len(secret) >= SHORTEST_SECRET]
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as problem:
        log.line("MM_TRACE: %s: %s; nothing is traced" % (path, problem.strerror))
        return None

    def trace(direction: str, line: bytes) -> None:
        now = time.time()
        stamp = time.strftime("%H:%M:%S", time.localtime(now)) + ".%03d" % (now % 1 * 1000)
        shown = _shown(line)
        for secret in secrets:
            shown = shown.replace(secret, MASKED)
        os.write(descriptor, ("%s %s %s\n" % (stamp, direction, shown)).encode("utf-8", "replace"))

    return trace


def both(*traces):
    """One trace function that calls those of `traces` that are not None; None where all are."""
    traces = [trace for trace in traces if trace]
    if len(traces) < 2:
        return traces[0] if traces else None

    def trace(direction: str, line: bytes) -> None:
        for each in traces:
            each(direction, line)

    return trace


def _shown(line: bytes) -> str:
    """The message on one line; what is no JSON as it came, since a broken line is what a trace is looked at for."""
    try:
        return json.dumps(mask(json.loads(line)), ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return TOO_DEEP % len(line)  # nobody can tell what in it is secret
    except ValueError:
        return line.decode("utf-8", "replace").rstrip("\r\n")
