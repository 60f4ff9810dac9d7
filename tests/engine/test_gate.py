"""The gate: which answers let a tool run, and which are remembered."""

from __future__ import annotations

import unittest

from mm.cancel import Cancel, Cancelled
from mm.engine import gate
from mm.events import ALLOW, ALLOW_ALWAYS, NEVER, REJECT, UNASKED, Permission, Rejected, ToolPending
from mm.tools.tool import ALWAYS


class Answers:
    """A front end that gives these answers, one a question."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def ask(self, permission, cancel):
        return self.answers.pop(0)


def permission(name):
    return Permission(ToolPending("call_1", name, name, "execute", {}, ()), None, None)


class Gate(unittest.TestCase):
    def permits(self, subject, name, front, asks=True):
        return subject.answer(permission(name), asks, front, Cancel()) == ALLOW

    def test_yolo_asks_nobody(self):
        self.assertTrue(self.permits(gate.Gate(True), "bash", Answers()))

    def test_a_free_tool_asks_nobody(self):
        self.assertTrue(self.permits(gate.Gate(False), "read_file", Answers(), asks=False))

    def test_what_always_asks_asks_under_yolo_too(self):
        subject, front = gate.Gate(True), Answers(REJECT, ALLOW_ALWAYS)
        self.assertFalse(self.permits(subject, "mcp__a__b", front, asks=ALWAYS))
        self.assertTrue(self.permits(subject, "mcp__a__b", front, asks=ALWAYS))
        self.assertTrue(self.permits(subject, "mcp__a__b", front, asks=ALWAYS))
        self.assertEqual(front.answers, [])

    def test_one_answer_counts_once(self):
        subject, front = gate.Gate(False), Answers(ALLOW, REJECT)
        self.assertTrue(self.permits(subject, "bash", front))
        self.assertFalse(self.permits(subject, "bash", front))
        self.assertEqual(front.answers, [])

    def test_lasting_answers_hold_for_their_tool_alone(self):
        for answer, allowed in ((ALLOW_ALWAYS, True), (NEVER, False)):
            with self.subTest(answer):
                subject, front = gate.Gate(False), Answers(answer, REJECT)
                self.assertEqual(self.permits(subject, "bash", front), allowed)
                self.assertEqual(self.permits(subject, "bash", front), allowed)
                self.assertFalse(self.permits(subject, "write_file", front))

    def test_never_covers_calls_that_would_not_ask(self):
        subject = gate.Gate(False)
        self.permits(subject, "plan", Answers(NEVER))
        self.assertFalse(self.permits(subject, "plan", Answers(), asks=False))

    def test_an_answer_nobody_knows_is_a_no(self):
        for answer in ("yes", "", None, "ALLOW", UNASKED, Rejected("no")):
            self.assertFalse(self.permits(gate.Gate(False), "bash", Answers(answer)))

    def test_answer_during_a_cancel_is_not_remembered(self):
        cancel, subject = Cancel(), gate.Gate(False)
        cancel.cancel()
        with self.assertRaises(Cancelled):
            subject.answer(permission("bash"), True, Answers(ALLOW_ALWAYS), cancel)
        self.assertFalse(self.permits(subject, "bash", Answers(REJECT)))


class Rejection(unittest.TestCase):
    def test_the_words_of_the_user_follow(self):
        self.assertEqual(gate.rejection("bash", 2, Rejected("use make")), "[command rejected by the "
                                                                          "user]\nThe user says: use make")

    def test_nobody_has_rejected_what_nobody_saw(self):
        self.assertEqual(gate.rejection("bash", 2, UNASKED), "[not run: nobody can be asked]")

    def test_texts(self):
        self.assertEqual(gate.rejection("bash", 1), "[command rejected by the user]")
        self.assertEqual(gate.rejection("edit_file", 1), "[edit_file rejected by the user]")
        self.assertEqual(gate.rejection("bash", 2), "[command rejected by the user]\n[stop and ask the user "
                                                    "what they want]")


if __name__ == "__main__":
    unittest.main()
