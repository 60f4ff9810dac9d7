"""How many tokens a conversation takes: the estimate, the server's correction, and that each message is
counted once.
"""

from __future__ import annotations

import random
import time
import unittest

from mm.conversation import estimate
from mm.conversation.history import assistant_message, tool_message, user_message

CALL = {"ref": "call_1", "name": "bash", "arguments": '{"command": "ls"}'}


class Tokens(unittest.TestCase):
    def test_table(self):
        for text, expected in (("", 0), ("a" * 36, 10), ("é" * 10, 10), ("漢字", 2), ("a" * 36 + "漢", 11),
                               ("\ud800", 1)):
            with self.subTest(text):
                self.assertAlmostEqual(estimate.tokens(text), expected)

    def test_everything_that_is_sent_counts(self):
        plain = estimate.of_message(assistant_message("hello"))
        self.assertAlmostEqual(estimate.of_message(user_message("a" * 36)), 10 + estimate.PER_MESSAGE)
        self.assertGreater(estimate.of_message(assistant_message("hello", "why")), plain)
        self.assertGreater(estimate.of_message(assistant_message("hello", "", [CALL])),
                           plain + estimate.PER_MESSAGE)


class AMeter(unittest.TestCase):
    def setUp(self):
        self.meter = estimate.Meter("s" * 360, [])
        self.messages = [user_message("q" * 3600), assistant_message("a" * 36)]

    def test_without_a_report_the_estimate_counts(self):
        expected = estimate.of_prompt("s" * 360, []) + estimate.of_messages(self.messages)
        self.assertEqual(self.meter.used(self.messages), round(expected))
        self.assertIsNone(self.meter.measure)

    def test_tools_count_once(self):
        tools = [{"function": {"name": "x" * 360}}]
        self.assertGreater(estimate.Meter("s", tools).used([]), estimate.Meter("s", []).used([]) + 100)

    def test_only_what_follows_a_report_is_estimated(self):
        self.meter.report(self.messages, 2000, 100)
        self.assertEqual(self.meter.used(self.messages), 2100)
        self.assertEqual(self.meter.measure, 2100)
        self.messages.append(tool_message("call_1", "bash", "o" * 3600))
        self.assertEqual(self.meter.used(self.messages), 2100 + round(self.meter.ratio * 1008))

    def test_ratio_is_learned_within_bounds(self):
        asked = estimate.of_prompt("s" * 360, []) + estimate.of_message(self.messages[0])
        for reported, ratio in ((asked * 1.2, 1.2), (asked * 9, 1.8), (asked / 9, 0.6)):
            with self.subTest(reported):
                self.meter.report(self.messages, round(reported), 1)
                self.assertAlmostEqual(self.meter.ratio, ratio, 2)
                self.meter.forget()
                expected = ratio * (asked + estimate.of_message(self.messages[1]))
                self.assertAlmostEqual(self.meter.used(self.messages), expected, delta=2)

    def test_report_far_too_small_is_not_believed(self):
        self.meter.report(self.messages, 3, 1)  # some count only what was not cached
        self.assertGreater(self.meter.used(self.messages), 600)

    def test_a_report_without_an_input_is_none(self):
        for given in (None, 0):
            self.meter.report(self.messages, given, 5)
            self.assertIsNone(self.meter.measure)

    def test_messages_that_were_replaced_are_counted_anew(self):
        self.meter.report(self.messages, 1500, 0)
        # the list is as long as before and ends with the same message
        self.messages[0] = user_message("short")
        self.meter.forget()
        self.assertEqual(self.meter.used(self.messages), self.meter.estimate(self.messages))

    def test_larger_of_report_and_estimate_is_shown(self):
        self.meter.report(self.messages, 1500, 600)
        self.assertEqual(self.meter.shown(self.messages), 2100)
        self.meter.forget()
        self.assertEqual(self.meter.shown(self.messages), self.meter.estimate(self.messages))

    def test_a_refusal_corrects_the_estimate(self):
        self.meter.report(self.messages, 1000, 0)
        self.meter.refused(self.messages, 1500)
        self.assertIsNone(self.meter.measure)
        self.assertAlmostEqual(self.meter.used(self.messages), 1500, delta=2)

    def test_counting_on_and_counting_anew_agree(self):
        chance = random.Random(3)
        messages = []
        for _ in range(300):
            if messages and chance.random() < 0.3:
                del messages[chance.randrange(len(messages)):]
            for _ in range(chance.randrange(4)):
                messages.append(user_message("x" * chance.randrange(50)))
            self.assertAlmostEqual(self.meter.used(messages), self.meter.estimate(messages), delta=1)

    def test_asking_again_costs_nothing_however_long_the_conversation(self):
        messages = [user_message("é" * 5000) for _ in range(2000)]
        self.meter.used(messages)
        begin = time.perf_counter()
        for _ in range(100):
            self.meter.used(messages)
        self.assertLess(time.perf_counter() - begin, 0.1)  # counting them all takes about 20 ms each time


if __name__ == "__main__":
    unittest.main()
