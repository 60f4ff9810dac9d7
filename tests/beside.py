"""Most of the tests in processes of their own, beside the others: they wait for programs that they started.

    beside(suite)                  the suite, with those of BESIDE replaced by tests that report what their process says
    python3 -m tests.beside        one such process: test ids on stdin, one JSON line for each test that has ended on stdout

Each test is reported under its own name, with its own failures; only its time is spent elsewhere.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import unittest

from tests import support

# A process each; a test belongs to the first that its id begins with. Each takes about as long as what is left.
BESIDE = tuple(map(re.compile, (
    r"tests\.test_transcripts\.", r"tests\.(tools|skills|test_zipapp)\.", r"tests\.(fronts|peers|wire|engine)\.")))

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"
# Seconds for one test, and all that come before it in its process; then that is over, so that one that hangs is the
# only one to be waited for.
DEADLINE = 180


def beside(suite: unittest.TestSuite) -> unittest.TestSuite:
    """The same tests, process by process. The other processes are started here, each if there is anything for it."""
    here, elsewhere = [], {pattern: [] for pattern in BESIDE}
    for test in _tests(suite):
        pattern = next((pattern for pattern in BESIDE if pattern.match(test.id())), None)
        (elsewhere[pattern] if pattern else here).append(test)
    if any(elsewhere.values()):
        os.environ.setdefault("MM_PYZ", support.pyz())  # built once for all
    # Their results are asked for at the end, when most are there.
    for tests in filter(None, elsewhere.values()):
        process = _OtherProcess([test.id() for test in tests])
        here += [_Elsewhere(test.id(), process) for test in tests]
    return unittest.TestSuite(here)


def _tests(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from _tests(each)
        else:
            yield each


class _OtherProcess:
    """Runs tests by their ids and keeps what became of them."""

    def __init__(self, ids: list):
        self._outcomes = {}
        self._news = threading.Condition()
        self._ended = False
        self._process = subprocess.Popen([sys.executable, "-m", "tests.beside"], cwd=PROJECT, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self._process.stdin.write("\n".join(ids))
        self._process.stdin.close()
        threading.Thread(target=self._read, daemon=True).start()

    def outcome(self, test_id: str):
        """(PASSED, SKIPPED or FAILED, the text that goes with it), waiting for it if need be."""
        with self._news:
            if not self._news.wait_for(lambda: test_id in self._outcomes or self._ended, DEADLINE):
                self._process.kill()
                self._ended = True
            return self._outcomes.get(test_id) or (FAILED, "the other process never told of this test")

    def _read(self) -> None:
        for line in self._process.stdout:
            test_id, outcome, text = json.loads(line)
            with self._news:
                self._outcomes[test_id] = outcome, text
                self._news.notify_all()
        self._process.stdout.close()
        self._process.wait()
        with self._news:
            self._ended = True
            self._news.notify_all()


class _Elsewhere(unittest.TestCase):
    """Reports a test of another process."""

    def __init__(self, test_id: str, process: _OtherProcess):
        super().__init__()
        self._id, self._other = test_id, process

    def id(self) -> str:
        return self._id

    def __str__(self) -> str:
        return self._id

    def runTest(self) -> None:
        outcome, text = self._other.outcome(self._id)
        if outcome == SKIPPED:
            self.skipTest(text)
        if outcome == FAILED:
            self.fail("in its process:\n" + text)


class _Telling(unittest.TestResult):
    """Tells each test's outcome when the test has stopped; a failed fixture fails the tests that it was for."""

    def __init__(self, out):
        super().__init__()
        self._out = out

    def stopTest(self, test) -> None:
        super().stopTest(test)
        # A subtest is named like its test, with what tells it apart behind a blank.
        problems = [text for failed, text in self.failures + self.errors if (failed.id() + " ").startswith(test.id() + " ")]
        skipped = [reason for each, reason in self.skipped if each is test]
        outcome = FAILED if problems else SKIPPED if skipped else PASSED
        self._out.write(json.dumps([test.id(), outcome, "\n".join(problems or skipped)]) + "\n")
        self._out.flush()


def main() -> None:
    """The other process. Its own stdout is kept from whatever the tests print."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    ids = sys.stdin.read().split("\n")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    unittest.defaultTestLoader.loadTestsFromNames(ids).run(_Telling(out))


if __name__ == "__main__":
    main()
