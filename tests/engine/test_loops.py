"""The loop detectors: what is a loop and, above all, what is not."""

from __future__ import annotations

import random
import time
import unittest

from mm.engine import loops, second_tries
from mm.engine.loops import CallLoops, TextLoops


def play(detector, calls):
    """What happens to each call, "run", "nudge" or "refused", until the turn is to end, "stopped".

    A call is (arguments, output) or (arguments, output, seconds); a refused one gives no output.
    """
    story = []
    for arguments, output, *seconds in calls:
        if detector.before("bash", arguments):
            story.append("refused")
            if detector.stopped():
                return story + ["stopped"]
        else:
            story.append("nudge" if detector.after("bash", arguments, output, seconds[0] if seconds else 0)
                         else "run")
    return story


def same(count, arguments="a", output="x", seconds=0.0):
    return [(arguments, output, seconds)] * count


RUN, NUDGE, REFUSED, STOPPED = ["run"], ["nudge"], ["refused"], ["stopped"]
A, B, C, D = ("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")
LOG = "[… %d lines (56.7 KB) left out; everything is in /tmp/mm-x1y2/bash-%d.log, use read_file or grep on it …]"
JOB = "[still running in the background: process group %d. Its output goes to /tmp/mm-x1y2/bash-4.log. Stop it with: kill -- -%d]"

CALLS = (
    # the plain loop: nudged, refused, ended
    (same(9), RUN * 2 + NUDGE * 2 + REFUSED * 3 + STOPPED),
    # a batch of reads
    ([("file %d" % number, "same text") for number in range(20)], RUN * 20),
    # the same call, always another result
    ([("tail log", "line %d" % number, 5) for number in range(10)], RUN * 10),
    ([("tail log", "line %d" % number) for number in range(30)], RUN * 30),
    # a poll of something that does not move: a wait counts a quarter
    (same(30, seconds=5), RUN * 11 + NUDGE * 5 + REFUSED * 3 + STOPPED),
    # one change in between, and it begins again
    (same(11, seconds=5) + [("a", "moved", 5)] + same(11, seconds=5), RUN * 23),
    (same(2) + [B] + same(2), RUN * 5),
    # edit, test, edit, test
    ([call for number in range(10) for call in (("edit %d" % number, "edited"), ("test", "failed"))],
     RUN * 20),
    # cycles of two, three and four
    ([A, B] * 6, RUN * 5 + NUDGE * 3 + REFUSED * 3 + STOPPED),
    ([A, B, C] * 6, RUN * 8 + NUDGE * 4 + REFUSED * 3 + STOPPED),
    ([A, B, C, D] * 6, RUN * 11 + NUDGE * 5 + REFUSED * 3 + STOPPED),
    ([A, B, C, D, ("e", "5")] * 6, RUN * 30),
    # a cycle in which one result changes is none
    ([call for number in range(10) for call in (A, ("b", str(number)))], RUN * 20),
    # a cycle with a wait in it lasts longer
    ([A, ("sleep 5", "[no output]", 5)] * 20, RUN * 8 + NUDGE * 5 + REFUSED * 3 + STOPPED),
    # another call after a refusal frees the way, but what was refused stays counted
    (same(5) + [B] + same(5) + [B] + same(5), (RUN * 2 + NUDGE * 2 + REFUSED + RUN) * 2 + RUN * 2 + NUDGE * 2
     + REFUSED + STOPPED),
    # the order of the names says nothing
    ([({"x": 1, "y": 2}, "o"), ({"y": 2, "x": 1}, "o"), ({"x": 1, "y": 2}, "o")], RUN * 2 + NUDGE),
    # mm's own notes differ where the output does not
    ([("a", "x\n" + LOG % (1234, number) + "\ny") for number in range(3)], RUN * 2 + NUDGE),
    ([("a", "x\n" + LOG % (1234 + number, 4) + "\ny") for number in range(3)], RUN * 3),
    ([("a", "x\n\n" + JOB % (number, number)) for number in range(900, 903)], RUN * 2 + NUDGE),
    # outside of a note a number is a number
    ([("a", "process group %d" % number) for number in range(3)], RUN * 3),
)


class Calls(unittest.TestCase):
    def test_stories(self):
        for calls, story in CALLS:
            with self.subTest(calls=calls[:4]):
                self.assertEqual(play(CallLoops(3), calls), story)

    def test_texts(self):
        detector = CallLoops(3)
        results = [detector.before("bash", {}) or detector.after("bash", {}, "x", 0) for _ in range(5)]
        self.assertEqual(results, [
            None, None,
            "[you have made this same call 3 times with the same result. Do something else, or tell the user "
            "what blocks you.]",
            "[you have made this same call 4 times with the same result. Do something else, or tell the user "
            "what blocks you.]",
            "[not run: the same call gave the same result 4 times]"])
        self.assertEqual(detector.before("bash", {}), results[-1])  # that one gave no result
        detector = CallLoops(3)
        play(detector, [A, B] * 4)
        self.assertEqual([detector.before("bash", arguments) for arguments in "ab"], results[-1:] * 2)
        detector = CallLoops(3)
        play(detector, same(16, seconds=5))
        self.assertEqual(detector.before("bash", "a"), "[not run: the same call gave the same result 16 "
                                                       "times]")
        self.assertEqual(loops.STOPPED % "bash", "🔁 stopped: bash repeated with the same result. Tell me how "
                                                 "to go on.")

    def test_the_number_of_repeats_is_configured(self):
        self.assertEqual(play(CallLoops(2), same(9)), RUN + NUDGE * 2 + REFUSED * 3 + STOPPED)
        self.assertEqual(play(CallLoops(100), same(110)), RUN * 99 + NUDGE * 2 + REFUSED * 3 + STOPPED)

    def test_another_tool_is_another_call(self):
        detector = CallLoops(3)
        self.assertEqual([detector.after(name, {}, "x", 0)
                          for name in ("bash", "read_file", "plan", "lsp") * 2], [None] * 8)

    def test_asking_changes_nothing_while_the_call_may_run(self):
        detector = CallLoops(3)
        play(detector, same(3))
        self.assertEqual([detector.before("bash", "b") for _ in range(9)], [None] * 9)
        self.assertEqual(play(detector, same(2)), NUDGE + REFUSED)


SENTENCE = "I will now check whether the file exists before I go on. "
TABLE = "| name | value |\n|---|---|\n" + "| a    | 1     |\n" * 60
CODE = "```python\n" + "    0, 0, 0, 0,\n" * 60 + "```\n"
SENTENCES = "".join("%d. The value of row %d is %d.\n" % (number, number, number * number)
                    for number in range(200))

# (text, repeats in an answer, repeats in reasoning)
TEXTS = (
    ("Let me see. " + "The the " * 200, True, True),
    ("Let me see. " + SENTENCE * 20, True, True),
    ("So: " + "?!" * 500, True, True),
    ("0, " * 300, True, True),
    ("x" * 399, False, False),
    (SENTENCE * 5, False, False),
    (SENTENCES, False, False),
    (" \n" * 600, False, False),
    # what a document may repeat
    (TABLE, False, True),
    ("Done.\n\n" + "-" * 600 + "\n", False, True),
    ("═" * 600 + "\n", False, True),
    ("Here:\n" + CODE + "Done.", False, True),
    ("  ~~~~\n" + "~~~\n" * 300 + "~~~~\n", False, True),
    # a fence that was closed protects nothing any more; a longer one is not closed by a shorter
    (CODE + SENTENCE * 20, True, True),
    ("````\n```\n" + "0, 0,\n" * 200, False, True),
    ("This is ```code``` inline.\n" + SENTENCE * 20, True, True),
    # a block with a rule in it is no rule, and nobody writes such a long one
    ("Wait.\n---\n" * 100, True, True),
    ("-" * 3000, True, True),
)


class Texts(unittest.TestCase):
    def cut(self, text, prose, size):
        """What is left of the text when it comes in pieces of that size."""
        detector = TextLoops(prose)
        for end in range(size, len(text) + size, size):
            repeated = detector.feed(text[end - size:end])
            if repeated is not None:
                return text[:min(end, len(text)) - repeated]
        return text

    def test_what_repeats(self):
        for text, in_answer, in_reasoning in TEXTS:
            for prose, repeats in ((True, in_answer), (False, in_reasoning)):
                for size in (1, 7, 200, 100_000):
                    with self.subTest(text[:40], prose=prose, size=size):
                        self.assertEqual(self.cut(text, prose, size) != text, repeats)

    def test_one_block_of_the_repetition_stays(self):
        for start, block in (("Look: (", "The the "), ("Well:", SENTENCE), ("A list:", "0, "), ("x", "?")):
            for size in (1, 7, 200, 100_000):
                for prose in (True, False):
                    with self.subTest(block, size=size):
                        left = self.cut(start + block * (2000 // len(block)), prose, size)
                        self.assertEqual(left, start + block)

    def test_it_is_seen_soon(self):
        detector, fed = TextLoops(True), 0
        while detector.feed("The ") is None:
            fed += 4
        self.assertLessEqual(fed, loops.LEAST_REPETITION + loops.CHECK_EVERY)

    def test_only_random_repetitions_are_found(self):
        choose = random.Random(7)
        for _ in range(100):
            block = "".join(choose.choice("abcdefgh ,.") for _ in range(choose.randint(2, 199))) + "z"
            text = "".join(choose.choice("abcdefgh ,.\n") for _ in range(choose.randint(0, 900)))
            self.assertEqual(self.cut(text, True, 11), text)
            left = self.cut(text + block * (2000 // len(block) + 7), True, 11)
            self.assertLessEqual(abs(len(left) - len(text + block)), len(block) - 1)

    def test_a_long_text_costs_little(self):
        text = "".join(random.Random(7).choice("ab c") for _ in range(50_000))
        detector, started = TextLoops(True), time.process_time()
        for position in range(0, len(text), 4):
            self.assertIsNone(detector.feed(text[position:position + 4]))
        self.assertLess(time.process_time() - started, 2)  # 0.2 s where this was written

    def test_a_line_without_an_end_costs_no_more(self):
        started = time.process_time()
        self.assertIsNone(TextLoops(True).feed("```" + "".join(map(str, range(50_000)))))
        self.assertLess(time.process_time() - started, 4)


class ThePage(unittest.TestCase):
    def test_holds_the_texts(self):
        from tests.support import PROJECT

        with open(PROJECT + "/docs/loops.md", encoding="utf-8") as file:
            page = file.read()
        tries = [row for row in vars(second_tries).values() if type(row) is second_tries.SecondTry]
        rows = [row for row in tries if row is not second_tries.REFUSED_AS_TOO_LONG]
        self.assertEqual(len(tries), 8)
        for text in (loops.NUDGE % 3, loops.NOT_RUN % 4, loops.STOPPED % "<tool>", loops.LOG_LINE % "<title>",
                     *(text for row in rows for text in (row.note, row.end) if text)):
            self.assertIn("`%s`" % text, page)
        self.assertRegex(page, "%g s or more.*counts a quarter" % loops.WAIT)


if __name__ == "__main__":
    unittest.main()
