"""Measures mm beside the two floors, which are the least that Python itself allows, and prints each row with
its limit.

    python3 -m tests.bench [--rounds N] [--only NAME] [--python PATH]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

from tests import support
from tests.bench.agents import ModelServer
from tests.bench.measures import MEASURES, Bench


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.bench", description="Measures mm beside the two "
                                                                                "floors.")
    parser.add_argument("--rounds", type=int, default=10, help="the medians are over so many rounds (10)")
    parser.add_argument("--only", choices=MEASURES, action="append", help="measure this alone; may be given "
                                                                          "more than once")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the agents (this "
                                                                 "one)")
    options = parser.parse_args()
    python = subprocess.run([options.python, "-c", "import sys; print(sys.executable, "
                                                   "sys.version.split()[0], sep='\\n')"],
                            stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")
    with tempfile.TemporaryDirectory(prefix="mm-bench-") as folder, ModelServer() as server:
        bench = Bench(python[0], build(folder, python[0]), options.rounds, server, folder)
        print("Python %s (%s -I -S), medians of %d, %d cores, load %.1f" % (
            python[1], python[0], options.rounds, os.cpu_count(), os.getloadavg()[0]))
        print("%-30s %10s %10s        %7s %10s" % ("", "floor", "mm", "ratio", "limit"))
        over = 0
        for name in options.only or MEASURES:
            for row in MEASURES[name](bench):
                ok, line = show(row)
                over += not ok
                print(line, flush=True)
    return 1 if over else 0


def build(folder: str, python: str) -> str:
    """$MM_PYZ, or a zipapp with the byte code of every Python here."""
    if os.environ.get("MM_PYZ"):
        return os.path.abspath(os.environ["MM_PYZ"])
    target = os.path.join(folder, "mm.pyz")
    found = subprocess.run(["sh", os.path.join(support.PROJECT, "zipapp.sh"), "--pythons"],
                           stdout=subprocess.PIPE, check=True)
    # The one that is measured comes first: it must be among them, also where another patch of its version is
    # newer.
    support.build(target, pythons=":".join([python] + found.stdout.decode().split("\n")[:-1]))
    return target


def show(row):
    """(whether the limit holds, the line of the table)."""
    ratio = row.mm / row.floor if row.floor else None
    ok = (row.mm if row.absolute else ratio) <= row.limit
    digits = 2 if row.unit in ("ms", "MB", "us") else 0
    return ok, "%-30s %10s %10s %-5s  %7s %10s  %-4s  %s" % (
        row.name, "-" if row.floor is None else "%.*f" % (digits, row.floor), "%.*f" % (digits, row.mm),
        row.unit, "-" if ratio is None else "%.2f x" % ratio,
        "%d %s" % (row.limit, row.unit) if row.absolute else "%.1f x" % row.limit, "ok" if ok else "OVER",
        row.note)


if __name__ == "__main__":
    sys.exit(main())
