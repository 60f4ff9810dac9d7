"""Starts programs by mm.wire.child, for tests that end it: `guarded.py HOW SCRIPT…`, each SCRIPT for sh -c.

Prints the group numbers on one line, then does HOW:
    wait      until stdin closes, then ends without a word to its children
    release   releases the last group, then as `wait`
    end       ends the first group with a long grace, then as `wait`
    more      at a line on stdin starts one more and prints its group, then as `wait`
    end_all   until stdin closes, then end_all()
Every SCRIPT must write a line when it is ready.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from mm.wire import child  # noqa: E402


def main(how: str, *scripts: str) -> None:
    children = [child.start(["/bin/sh", "-c", script]) for script in scripts]
    for one in children:
        one.process.stdout.readline()
    if how == "release":
        children[-1].release()
    if how == "end":
        children[0].end(grace=60)
    print(*[one.pid for one in children], flush=True)
    if how == "more":
        sys.stdin.readline()
        print(child.start(["/bin/sh", "-c", "sleep 60"]).pid, flush=True)
    sys.stdin.read()
    if how == "end_all":
        child.end_all()
    # Neither the interpreter's own tidying nor a destructor is to help.
    os._exit(0)


main(*sys.argv[1:])
