"""The suite in three processes, because most of a test is waiting for programs that it started.

`python3 -m unittest` finds the tests (tests/__init__.py) and gets them back from beside() as reports. Behind
them three processes (`python3 -m tests.beside`) take one module after the other, the one with the most tests
first, and say of each test how it ended. A report waits until its test has ended, and fails or is skipped as
the test did, under the same name. A single module, as in `python3 -m unittest tests.test_docs`, runs without
all this.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import threading
import unittest

from tests import support

PROCESSES = 3
DEADLINE = 600  # seconds for one test
PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"


def beside(suite: unittest.TestSuite) -> unittest.TestSuite:
    """A report for each test of the suite. The processes are started here."""
    here, modules = [], collections.defaultdict(list)
    for test in _tests(suite):
        if type(test).__module__.startswith("unittest."):
            here.append(test)  # a module that cannot be imported
        else:
            modules[type(test).__module__].append(test.id())
    os.environ.setdefault("MM_PYZ", support.pyz())  # built once for all
    outcomes = _Outcomes()
    waiting = collections.deque(sorted(modules.values(), key=len, reverse=True))
    for _ in range(min(PROCESSES, len(waiting))):
        threading.Thread(target=_work_off, args=(waiting, outcomes), daemon=True).start()
    return unittest.TestSuite(here + [_Report(each, outcomes) for ids in modules.values() for each in ids])


def _tests(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from _tests(each)
        else:
            yield each


class _Outcomes:
    """How each test ended: (PASSED, SKIPPED or FAILED, the text that goes with it)."""

    def __init__(self):
        self._known, self._news = {}, threading.Condition()

    def add(self, test_id: str, outcome: str, text: str) -> None:
        with self._news:
            self._known.setdefault(test_id, (outcome, text))
            self._news.notify_all()

    def of(self, test_id: str) -> tuple:
        with self._news:
            self._news.wait_for(lambda: test_id in self._known)
            return self._known[test_id]


class _Report(unittest.TestCase):
    """A test that runs in another process."""

    def __init__(self, test_id: str, outcomes: _Outcomes):
        super().__init__()
        self._id, self._outcomes = test_id, outcomes

    def id(self) -> str:
        return self._id

    def __str__(self) -> str:
        return self._id

    def runTest(self) -> None:
        outcome, text = self._outcomes.of(self._id)
        if outcome == SKIPPED:
            self.skipTest(text)
        if outcome == FAILED:
            self.fail("in its process:\n" + text)


def _work_off(waiting, outcomes: _Outcomes) -> None:
    """Has modules run until there are none; a process that ends in the middle is replaced."""
    while waiting:
        process = subprocess.Popen([sys.executable, "-m", "tests.beside"], cwd=PROJECT, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, encoding="utf-8")
        with process:
            while waiting and process.poll() is None:
                try:
                    ids = waiting.popleft()
                except IndexError:
                    return  # another thread was quicker
                process.stdin.write(json.dumps(ids) + "\n")
                process.stdin.flush()
                _listen(process, outcomes)
                for each in ids:
                    outcomes.add(each, FAILED, "its process ended before it")


def _listen(process, outcomes: _Outcomes) -> None:
    """Takes what the process says of one module."""
    while True:
        too_long = threading.Timer(DEADLINE, process.kill)
        too_long.daemon = True
        too_long.start()
        line = process.stdout.readline()
        too_long.cancel()
        told = json.loads(line) if line else None
        if told is None:
            return
        outcomes.add(*told)


class _Telling(unittest.TestResult):
    """Tells each test's outcome when the test has stopped; a failed fixture fails the tests that it was
    for.
    """

    def __init__(self, out):
        super().__init__()
        self._out = out

    def stopTest(self, test) -> None:
        super().stopTest(test)
        # A subtest is named like its test, with its parameters after a blank.
        problems = [text for failed, text in self.failures + self.errors
                    if (failed.id() + " ").startswith(test.id() + " ")]
        skipped = [reason for each, reason in self.skipped if each is test]
        outcome = FAILED if problems else SKIPPED if skipped else PASSED
        self.tell([test.id(), outcome, "\n".join(problems or skipped)])

    def tell(self, what) -> None:
        self._out.write(json.dumps(what) + "\n")
        self._out.flush()


def main() -> None:
    """One of the processes: a list of test ids on each line of stdin. Its stdout is kept from what the tests
    print.
    """
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lines = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for line in lines:
        result = _Telling(out)
        ids = json.loads(line)
        unittest.defaultTestLoader.loadTestsFromNames(ids).run(result)
        told = "\n".join(text for _, text in result.errors)
        for each in ids if told else ():  # what failed before its first test; the others have been told
            result.tell([each, FAILED, told])
        result.tell(None)


if __name__ == "__main__":
    main()
