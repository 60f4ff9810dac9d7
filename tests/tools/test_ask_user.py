"""ask_user: what it refuses to ask, the form it makes, and how the answers read."""

from __future__ import annotations

import os
import unittest

from mm.events import ACCEPTED, DECLINED, FORM_CANCELLED, UNAVAILABLE, FormAnswer
from mm.tools import ask_user, offers
from tests import support
from tests.tools.calls import ToolTest


class Front:
    """Answers each form with this; keeps the last one."""

    def __init__(self, action, content=None):
        self.answer = FormAnswer(action, content or {})
        self.form = None

    def fill_in(self, form, cancel):
        self.form = form
        return self.answer


CHOICE = {"question": "Which?", "type": "choice", "options": ["a", "b"]}
MULTI = {"question": "Which?", "type": "multi", "options": ["a", "b"]}
TEXT = {"question": "Name?"}
CONFIRM = {"question": "Sure?", "type": "confirm"}

REFUSED = [
    ([], "[ask_user: ask 1 to 4 questions, not 0]"),
    ([TEXT] * 5, "[ask_user: ask 1 to 4 questions, not 5]"),
    ([TEXT, {"question": "W?", "type": "choice"}], '[ask_user: question 2: "choice" needs 2 to 8 options]'),
    ([dict(MULTI, options=["a"])], '[ask_user: question 1: "multi" needs 2 to 8 options]'),
    ([dict(CHOICE, options=[str(n) for n in range(9)])], '[ask_user: question 1: "choice" needs 2 to 8 '
                                                         'options]'),
    ([dict(CHOICE, options=["a", "a"])], "[ask_user: question 1: each option needs a text of its own]"),
    ([dict(CHOICE, options=["a", " "])], "[ask_user: question 1: each option needs a text of its own]"),
    ([dict(CHOICE, options=["a", "b" * 101])], "[ask_user: question 1: an option has more than 100 "
                                               "characters]"),
    ([{"question": " "}], "[ask_user: question 1: it is empty]"),
    ([{"question": "x" * 301}], "[ask_user: question 1: it has more than 300 characters]"),
    ([dict(TEXT, type="number")], '[ask_user: question 1: there is no type "number"; types: choice, multi, '
                                  'text, confirm]'),
    ([dict(CHOICE, default="c")], "[ask_user: question 1: its default is none of the options]"),
    ([dict(MULTI, default="a, c")], "[ask_user: question 1: its default is none of the options]"),
    ([dict(CONFIRM, default="maybe")], '[ask_user: question 1: its default must be "yes" or "no"]'),
    ([{"type": "text"}], '[ask_user: questions 1: missing parameter "question"]'),
]

# The question, the property that it becomes.
PROPERTIES = [
    (CHOICE, {"type": "string", "title": "Which?", "enum": ["a", "b"]}),
    ({"question": "Which?", "options": ["a", "b"]},
     {"type": "string", "title": "Which?", "enum": ["a", "b"]}),
    (dict(CHOICE, default="b"), {"type": "string", "title": "Which?", "enum": ["a", "b"], "default": "b"}),
    (MULTI, {"type": "array", "title": "Which?", "items": {"type": "string", "enum": ["a", "b"]}}),
    (dict(MULTI, default="b, a"),
     {"type": "array", "title": "Which?", "items": {"type": "string", "enum": ["a", "b"]},
      "default": ["b", "a"]}),
    (TEXT, {"type": "string", "title": "Name?"}),
    ("Name?", {"type": "string", "title": "Name?"}),
    (dict(TEXT, default="box"), {"type": "string", "title": "Name?", "default": "box"}),
    (CONFIRM, {"type": "boolean", "title": "Sure?"}),
    (dict(CONFIRM, default="Yes"), {"type": "boolean", "title": "Sure?", "default": True}),
    (dict(CONFIRM, default=False), {"type": "boolean", "title": "Sure?", "default": False}),
]

ANSWERS = [
    (CHOICE, "a", "a"), (CHOICE, "something else", "something else"), (CHOICE, 3, "[no answer]"),
    (CHOICE, None, "[no answer]"), (MULTI, ["a", "b"], "a, b"), (MULTI, [], "none of them"),
    (MULTI, "a", "a"), (MULTI, [1], "[no answer]"), (MULTI, ["a"] * 1000, ", ".join("a" * 8)),
    (TEXT, " box \ud83d", "box \ufffd"), (TEXT, "", "[no answer]"), (TEXT, {"a": 1}, "[no answer]"),
    (CONFIRM, True, "yes"), (CONFIRM, False, "no"), (CONFIRM, "true", "yes"),
    (CONFIRM, "perhaps", "[no answer]"),
]


class AskUser(ToolTest):
    def ask(self, questions, front):
        self.context = self.context._replace(front=front, ref="call_7")
        return self.run_tool("ask_user", questions=questions)

    def test_what_cannot_be_asked_is_refused(self):
        for questions, expected in REFUSED:
            with self.subTest(expected=expected):
                self.assertEqual(self.output("ask_user", questions=questions), expected)

    def test_a_question_is_a_property_of_the_form(self):
        for question, expected in PROPERTIES:
            with self.subTest(question=question):
                front = Front(DECLINED)
                self.ask([question], front)
                self.assertEqual(front.form.schema,
                                 {"type": "object", "properties": {"q1": expected}, "required": ["q1"]})

    def test_the_message_of_the_form(self):
        for questions, message in (([TEXT], "Name?"),
                                   ([TEXT, CONFIRM], "The agent has 2 questions for you.")):
            front = Front(DECLINED)
            self.ask(questions, front)
            self.assertEqual((front.form.ref, front.form.message), ("call_7", message))

    def test_answers_are_checked_against_the_form(self):
        for question, value, expected in ANSWERS:
            with self.subTest(question=question["question"], value=value):
                result = self.ask([question], Front(ACCEPTED, {"q1": value}))
                self.assertEqual(result.output, "q1 %s: %s" % (question["question"], expected))

    def test_the_other_answers(self):
        for action, output, status in ((DECLINED, ask_user.USER_DECLINED, "completed"),
                                       (FORM_CANCELLED, ask_user.USER_CANCELLED, "completed"),
                                       (UNAVAILABLE, ask_user.NOBODY, "failed")):
            result = self.ask([TEXT], Front(action))
            self.assertEqual((result.output, result.status), (output, status))

    def test_its_title_is_the_first_question(self):
        action = self.prepare("ask_user", questions=[TEXT, CONFIRM])
        self.assertEqual((action.asks, action.title), (False, "ask_user: Name?"))


class TheOffer(unittest.TestCase):
    def test_it_is_what_a_call_takes(self):
        told = {parameter.name: parameter for parameter in offers.ask_user(True).parameters[0].items}
        self.assertEqual((offers.ask_user(True).name, told["type"].choices), (ask_user.NAME, ask_user.TYPES))
        self.assertIn("1 to %d questions" % ask_user.MOST_QUESTIONS, offers.ask_user(True).description)
        self.assertEqual(told["options"].description,
                         "%d to %d, for choice and multi" % (ask_user.LEAST_OPTIONS, ask_user.MOST_OPTIONS))


class ThePage(unittest.TestCase):
    def test_it_has_every_text_and_limit(self):
        with open(os.path.join(support.PROJECT, "docs", "ask-user.md"), encoding="utf-8") as file:
            page = file.read()
        for text in (ask_user.NOBODY, ask_user.USER_DECLINED, ask_user.USER_CANCELLED, ask_user.NO_ANSWER,
                     "q1 <question>: <answer>", REFUSED[2][1], REFUSED[1][1], *ask_user.TYPES):
            self.assertIn("`%s`" % text, page)
        for text in ("at most %d characters" % ask_user.QUESTION_LENGTH,
                     "at most %d characters" % ask_user.OPTION_LENGTH,
                     "%d to %d different" % (ask_user.LEAST_OPTIONS, ask_user.MOST_OPTIONS)):
            self.assertIn(text, page)
