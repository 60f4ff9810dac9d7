"""Breaks the input of a reader: `python3 -m tests.fuzz NAME COUNT [SEED]`; "all" is every reader. The first
failure ends it.
"""

from __future__ import annotations

import random
import sys
import time

from mm import log
from tests.fuzz.mutation import variant
from tests.fuzz.readers import READERS

SLOWEST = 2.0  # seconds of CPU for one input; a thousand times what one takes


class Failed(AssertionError):
    """An input that its reader must take and does not; says how to come by it again."""


def fuzz(name: str, count: int, seed: int = 1) -> float:
    """Feeds the reader with `count` broken inputs; returns the most seconds of CPU that one has taken. Raises
    Failed.
    """
    chance = random.Random("%s %d" % (name, seed))
    reader = READERS[name](chance)
    slowest = 0.0
    log.sink, sink = lambda *_: None, log.sink  # what servers and skills are warned of
    try:
        for number in range(count):
            data = variant(chance, reader.samples)
            before = time.process_time()
            try:
                reader.read(data)
            except reader.refusals:
                pass
            except BaseException as error:
                raise Failed("%s, seed %d, input %d: %s: %s\n%r" % (
                    name, seed, number, type(error).__name__, error, data[:3000])) from error
            took = time.process_time() - before
            slowest = max(slowest, took)
            if took > SLOWEST:
                raise Failed("%s, seed %d, input %d: took %.1f s\n%r"
                             % (name, seed, number, took, data[:3000]))
    finally:
        reader.close()
        log.sink = sink
    return slowest


def main(name="", count="2000", seed="1") -> int:
    if name not in READERS and name != "all":
        print("usage: python3 -m tests.fuzz NAME COUNT [SEED]; NAME is all or one of " + " ".join(READERS),
              file=sys.stderr)
        return 2
    for each in READERS if name == "all" else [name]:
        started = time.monotonic()
        slowest = fuzz(each, int(count), int(seed))
        print("%s: %s inputs in %.0f s, the slowest took %.0f ms"
              % (each, count, time.monotonic() - started, slowest * 1e3), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
