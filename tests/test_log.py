"""stderr that never blocks: a program that logs, with a reader of its stderr or none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
import unittest

from mm import log
from tests.support import DEADLINE, PROJECT

AGENT = os.path.join(PROJECT, "tests", "fakes", "logging_agent.py")


def start(count: int, flush: float) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-S", AGENT, str(count), str(flush)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class UnreadStderr(unittest.TestCase):
    def setUp(self):
        # 50,000 lines of a hundred bytes: five megabytes.
        self.agent = start(50_000, 0.05)
        self.addCleanup(self.agent.wait, DEADLINE)
        self.addCleanup(self.agent.kill)
        self.addCleanup(self.agent.stdout.close)
        self.addCleanup(self.agent.stderr.close)

    def test_five_megabytes_delay_neither_answer_nor_end(self):
        self.assertEqual(self.agent.stdout.readline(), b"answer\n")
        self.agent.stdin.close()
        started = time.monotonic()
        self.assertEqual(self.agent.wait(DEADLINE), 0)
        self.assertLess(time.monotonic() - started, 2)

    def test_dropped_lines_are_counted_in_their_place(self):
        self.assertEqual(self.agent.stdout.readline(), b"answer\n")
        texts = []
        reader = threading.Thread(target=lambda: texts.extend(self.agent.stderr), daemon=True)
        reader.start()
        time.sleep(0.2)  # the queue empties, so that the last line finds room
        self.agent.stdin.close()
        reader.join(DEADLINE)
        numbers, dropped = [], []
        for text in texts[:-1]:
            line = text.decode()
            count = re.match(r"… (\d+) lines? dropped\n$", line)
            if count:
                dropped.append(int(count.group(1)))
            else:
                self.assertEqual(len(line), len("line  \n") + 90 + len(line.split()[1]))
                numbers.append(int(line.split()[1]) - sum(dropped))
        self.assertEqual(texts[-1], b"last\n")
        self.assertGreater(sum(dropped), 10_000)
        # With the counted ones the lines are all there, in order.
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertEqual(len(numbers) + sum(dropped), 50_000)


class ReadStderr(unittest.TestCase):
    def test_flush_waits_for_a_slow_reader(self):
        agent = start(1000, DEADLINE)
        self.assertEqual(agent.stdout.readline(), b"answer\n")
        agent.stdin.close()
        time.sleep(0.1)
        lines = agent.stderr.read().splitlines()
        self.assertEqual(agent.wait(DEADLINE), 0)
        self.assertEqual((len(lines), lines[-1]), (1001, b"last"))
        agent.stdout.close()
        agent.stderr.close()

    def test_a_closed_stderr_hurts_nobody(self):
        agent = start(1000, DEADLINE)
        agent.stderr.close()
        self.assertEqual(agent.communicate(timeout=DEADLINE)[0], b"answer\n")
        self.assertEqual(agent.returncode, 0)


class InThisProcess(unittest.TestCase):
    """With descriptor 2 turned to a pipe of the test's."""

    def setUp(self):
        log.flush(DEADLINE)
        self.terminal = os.dup(2)
        self.read_end, write_end = os.pipe()
        os.dup2(write_end, 2)
        os.close(write_end)
        self.addCleanup(self.restore)

    def restore(self):
        log.tap = None
        os.dup2(self.terminal, 2)
        os.close(self.terminal)
        os.close(self.read_end)

    def written(self) -> str:
        log.flush(DEADLINE)
        return os.read(self.read_end, 1 << 20).decode("utf-8")

    def test_a_line_is_one_line_of_utf8(self):
        for text, line in (("plain", "plain"), ("two\nlines\r\n", "two lines"), ("é 😀", "é 😀"),
                           ("a\ud83db", "a\ufffdb"), ("", ""),
                           ("\x1b]0;title\x07Zed\x1b[2J \x00\x9b1", "Zed 1"),
                           ("x" * 10_000, "x" * log.LONGEST_LINE + "…")):
            with self.subTest(text[:20]):
                tapped = []
                log.tap = tapped.append
                log.line(text)
                self.assertEqual(self.written(), line + "\n")
                self.assertEqual(tapped, [line])

    def test_a_style_surrounds_the_clean_line(self):
        log.line("a\x1b[31mb", "1")
        self.assertEqual(self.written(), "\x1b[1mab\x1b[0m\n")

    def test_a_traceback_is_several_lines(self):
        try:
            raise ValueError("lost")
        except ValueError:
            log.traceback()
        lines = self.written().splitlines()
        self.assertEqual((lines[0], lines[-1]), ("Traceback (most recent call last):", "ValueError: lost"))

    def test_a_non_blocking_stderr_loses_nothing(self):
        os.set_blocking(2, False)
        for _ in range(100):
            log.line("x" * 1999)
        got = b""
        while len(got) < 200_000:
            got += os.read(self.read_end, 1 << 20)
        self.assertEqual(got, (b"x" * 1999 + b"\n") * 100)

    def test_threads_do_not_mix_their_lines(self):
        threads = [threading.Thread(target=lambda name=name: [log.line(name * 50) for _ in range(200)])
                   for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(self.written().split()), sorted([name * 50 for name in "abc"] * 200))


if __name__ == "__main__":
    unittest.main()
