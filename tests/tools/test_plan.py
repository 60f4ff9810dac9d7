"""plan: each action on a plan, what the model reads, what the user sees."""

from __future__ import annotations

import os
import unittest

from mm.events import PlanChanged
from mm.tools import offers, plan
from tests import support
from tests.tools.calls import ToolTest

ABC = {"action": "start", "steps": ["a", "b", "c"]}
STARTED = "1 ▶ a\n2 · b\n3 · c\n[plan: 0 of 3 done]"

# Calls one after the other, and what the last of them answers.
ANSWERS = [
    ([ABC], STARTED),
    ([dict(ABC, title="The thing")], "The thing\n" + STARTED),
    ([ABC, {"action": "show"}], STARTED),
    ([ABC, {"action": "next"}], "1 ✓ a\n2 ▶ b\n3 · c\n[plan: 1 of 3 done]"),
    ([ABC, {"action": "Next", "note": "was\neasy"}], "1 ✓ a (was easy)\n2 ▶ b\n3 · c\n[plan: 1 of 3 done]"),
    ([ABC, {"action": "done", "step": 2}], "1 ▶ a\n2 ✓ b\n3 · c\n[plan: 1 of 3 done]"),
    ([ABC, {"action": "done", "step": "2"}, {"action": "next"}], "1 ✓ a\n2 ✓ b\n3 ▶ c\n[plan: 2 of 3 done]"),
    ([ABC, {"action": "skip", "step": 1, "reason": "no need"}], "1 – skipped: a (no need)\n2 ▶ b\n3 · "
                                                                "c\n[plan: 0 of 3 done]"),
    ([ABC, {"action": "add", "text": "d"}], "1 ▶ a\n2 · b\n3 · c\n4 · d\n[plan: 0 of 4 done]"),
    ([ABC, {"action": "add", "text": "d", "after": 1}], "1 ▶ a\n2 · d\n3 · b\n4 · c\n[plan: 0 of 4 done]"),
    ([ABC, {"action": "add", "text": "d", "after": 0}], "1 · d\n2 ▶ a\n3 · b\n4 · c\n[plan: 0 of 4 done]"),
    ([ABC] + [{"action": "next"}] * 3, "1 ✓ a\n2 ✓ b\n3 ✓ c\n[plan finished]"),
    ([ABC] + [{"action": "next"}] * 4, "1 ✓ a\n2 ✓ b\n3 ✓ c\n[plan finished]"),
    ([ABC] + [{"action": "next"}] * 3 + [{"action": "start", "steps": ["x", "y"]}],
     "1 ▶ x\n2 · y\n[plan: 0 of 2 done]"),
    ([ABC] + [{"action": "next"}] * 3 + [{"action": "add", "text": "d"}], "1 ✓ a\n2 ✓ b\n3 ✓ c\n4 ▶ "
                                                                          "d\n[plan: 3 of 4 done]"),
    ([ABC, {"action": "stop"}], "[plan stopped]"),
    ([ABC, {"action": "stop", "note": "too hard"}], "[plan stopped: too hard]"),
    ([ABC, {"action": "stop"}, {"action": "show"}], plan.NONE),
    ([{"action": "show"}], plan.NONE), ([{"action": "next"}], plan.NONE), ([{"action": "stop"}], plan.NONE),
    ([ABC, {"action": "next"}, ABC],
     '[plan: steps 2-3 of the present plan are unfinished. Use "stop" first, or "add".]'),
    ([ABC, {"action": "done", "step": 2}, ABC],
     '[plan: steps 1, 3 of the present plan are unfinished. Use "stop" first, or "add".]'),
    ([ABC, {"action": "next"}, {"action": "next"}, ABC],
     '[plan: step 3 of the present plan is unfinished. Use "stop" first, or "add".]'),
    ([ABC, {"action": "done", "step": 7}], "[plan: there is no step 7; the plan has 3]"),
    ([ABC, {"action": "skip", "step": 0}], "[plan: there is no step 0; the plan has 3]"),
    ([ABC, {"action": "add", "text": "x", "after": 9}], "[plan: there is no step 9; the plan has 3]"),
    ([ABC, {"action": "done"}], '[plan: "done" needs "step"]'),
    ([ABC, {"action": "add"}], '[plan: "add" needs "text"]'),
    ([ABC, {"action": "add", "text": " "}], '[plan: "add" needs "text"]'),
    ([{"action": "start"}], "[plan: a plan has 2 to 20 steps, not 0]"),
    ([{"action": "start", "steps": ["a", " "]}], "[plan: a plan has 2 to 20 steps, not 1]"),
    ([{"action": "start", "steps": ["a"] * 21}], "[plan: a plan has 2 to 20 steps, not 21]"),
    ([{"action": "start", "steps": ["a"] * 20}] + [{"action": "add", "text": "x"}] * 21,
     "[plan: a plan has at most 40 steps]"),
    ([{"action": "finish"}], '[plan: there is no action "finish"; actions: show, start, next, done, skip, '
                             'add, stop]'),
]


class Front:
    def __init__(self):
        self.events = []

    def emit(self, event):
        self.events.append(event)


class Plan(ToolTest):
    def setUp(self):
        super().setUp()
        self.context = self.context._replace(front=Front())

    def act(self, *calls):
        return [self.output("plan", **call) for call in calls][-1]

    def test_what_each_action_answers(self):
        for calls, expected in ANSWERS:
            with self.subTest(calls=str(calls)[:120]):
                self.context.seen.plan = None
                self.assertEqual(self.act(*calls), expected)

    def test_each_change_is_told_with_all_steps(self):
        self.act(ABC, {"action": "show"}, {"action": "next"}, {"action": "skip", "step": 2},
                 {"action": "stop"})
        self.assertEqual(self.context.front.events, [
            PlanChanged((("a", "in_progress"), ("b", "pending"), ("c", "pending"))),
            PlanChanged((("a", "completed"), ("b", "in_progress"), ("c", "pending"))),
            PlanChanged((("a", "completed"), ("b", "completed"), ("c", "in_progress"))),
            PlanChanged(())])

    def test_refused_change_changes_and_shows_nothing(self):
        self.act(ABC, {"action": "done", "step": 7}, ABC)
        self.assertEqual(len(self.context.front.events), 1)
        self.assertEqual(self.context.seen.plan.text(), STARTED)

    def test_showing_is_free_and_every_change_asks(self):
        self.act(ABC)
        for action in offers.PLAN_ACTIONS:
            self.assertEqual(self.prepare("plan", action=action).asks, action != "show")

    def test_it_comes_back_as_it_was_saved(self):
        self.act(dict(ABC, title="t"), {"action": "skip", "step": 1, "note": "n"})
        self.assertEqual(plan.restored(self.context.seen.plan.saved()).text(), self.context.seen.plan.text())

    def test_what_is_no_plan_is_none(self):
        for saved in (None, [], {}, {"steps": []}, {"steps": ["a"]},
                      {"steps": [{"text": "a", "status": "odd"}]},
                      {"steps": [{"text": 1, "status": "pending"}]},
                      {"steps": [{"text": "a", "status": "pending", "note": 1}]},
                      {"steps": [{"text": "a", "status": []}]},
                      {"steps": [{"text": " ", "status": "pending"}]},
                      {"steps": [{"text": "a", "status": "pending"}] * 41}):
            self.assertIsNone(plan.restored(saved))

    def test_restored_plan_keeps_the_limits(self):
        long = {"text": "a\n" + "b" * 1000, "status": "in_progress", "note": "c" * 1000}
        restored = plan.restored({"title": "t\n" * 1000,
                                  "steps": [dict(long, status="completed"), long, long]})
        self.assertEqual([step["status"] for step in restored.steps], ["completed", "in_progress", "pending"])
        self.assertLess(max(map(len, restored.text().split("\n"))), 2 * plan.STEP_LENGTH + 20)
        self.assertEqual(len(restored.text().split("\n")), 5)

    def test_reminder_comes_every_fifteen_other_calls(self):
        self.act(ABC)
        said = [self.context.seen.plan.reminder() for _ in range(45)]
        self.assertEqual([number for number, line in enumerate(said, 1) if line], [15, 30, 45])
        self.assertEqual(said[14], '[plan: step 1 "a" is still in progress]')
        self.act(*[{"action": "next"}] * 3)
        self.assertEqual([self.context.seen.plan.reminder() for _ in range(45)], [None] * 45)

    def test_an_action_begins_the_count_again(self):
        self.act(ABC)
        for _ in range(14):
            self.context.seen.plan.reminder()
        self.act({"action": "show"})
        self.assertIsNone(self.context.seen.plan.reminder())


class TheOffer(unittest.TestCase):
    def test_it_is_what_a_call_takes(self):
        told = {parameter.name: parameter for parameter in offers.PLAN.parameters}
        self.assertEqual((offers.PLAN.name, told["action"].choices), (plan.NAME, offers.PLAN_ACTIONS))
        self.assertEqual(told["steps"].description,
                         "start: %d to %d of them" % (plan.LEAST_STEPS, plan.MOST_STEPS))


class ThePage(unittest.TestCase):
    def test_it_has_every_text(self):
        with open(os.path.join(support.PROJECT, "docs", "plan.md"), encoding="utf-8") as file:
            page = file.read()
        for text in (plan.PROGRESS % (1, 4), plan.ALL_DONE, plan.STOPPED % ": <reason>", plan.NONE,
                     plan.UNFINISHED % ("steps 2-4", "are"), plan.NO_SUCH_STEP % (7, 4),
                     plan.NO_ACTION % ("<name>", ", ".join(offers.PLAN_ACTIONS)),
                     plan.NEEDS % ("done", "step"), plan.HOW_MANY % (2, 20, 1), plan.TOO_MANY % 40,
                     plan.REMINDER % (2, "write the test")):
            self.assertIn("`%s`" % text, page)
