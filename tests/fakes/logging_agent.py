"""Logs N lines by mm.log, then writes "answer" to stdout, for tests with a stderr that nobody reads.

`logging_agent.py N [SECONDS]`: afterwards waits until stdin closes, logs one line more and flushes for SECONDS.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from mm import log  # noqa: E402

for number in range(int(sys.argv[1])):
    log.line("line %d %s" % (number, "x" * 90))
print("answer", flush=True)
sys.stdin.read()
log.line("last")
log.flush(float(sys.argv[2]))
