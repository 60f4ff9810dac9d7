"""A form as the protocol asks it, and what a client's answers come to."""

from __future__ import annotations

import unittest

from mm.events import ACCEPTED, DECLINED, FORM_CANCELLED, UNAVAILABLE, Form, FormAnswer
from mm.fronts.acp import forms

CHOICE = {"type": "string", "title": "Which?", "enum": ["a", "b"]}
CONFIRM = {"type": "boolean", "title": "Sure?"}


def form(**properties):
    return Form("call_1", "Which?", {"type": "object", "properties": properties,
                                     "required": list(properties)})


ANSWERS = [
    ({"action": "accept", "content": {"q1": "a"}}, FormAnswer(ACCEPTED, {"q1": "a"})),
    ({"action": "accept", "content": None}, FormAnswer(ACCEPTED, {})),
    ({"action": "accept"}, FormAnswer(ACCEPTED, {})),
    ({"action": "accept", "content": ["a"]}, FormAnswer(ACCEPTED, {})),
    ({"action": "decline"}, FormAnswer(DECLINED)),
    ({"action": "cancel"}, FormAnswer(FORM_CANCELLED)),
    ({"action": "perhaps"}, FormAnswer(FORM_CANCELLED)),
    ({}, FormAnswer(FORM_CANCELLED)),
    (None, FormAnswer(FORM_CANCELLED)),
    ("accept", FormAnswer(FORM_CANCELLED)),
]

CHOSEN = [
    ("0", FormAnswer(ACCEPTED, {"q1": "a"})), ("1", FormAnswer(ACCEPTED, {"q1": "b"})),
    ("decline", FormAnswer(DECLINED)), ("2", FormAnswer(FORM_CANCELLED)), (0, FormAnswer(FORM_CANCELLED)),
    ("allow", FormAnswer(FORM_CANCELLED)), (None, FormAnswer(FORM_CANCELLED)),
]


class Forms(unittest.TestCase):
    def test_what_a_client_answers(self):
        for result, expected in ANSWERS:
            with self.subTest(result=result):
                self.assertEqual(forms.answer(result, form(q1=CHOICE)), expected)

    def test_hidden_characters_are_shown_and_chosen_unchanged(self):
        hidden = "no\u202esey"
        asked = form(q1={"type": "string", "title": "Run\u200b it?", "enum": ["yes", hidden]},
                     q2={"type": "array", "items": {"type": "string", "enum": [hidden]}},
                     q3={"type": "string", "oneOf": [{"const": hidden, "title": "x" + " " * 1000 + "y"}]},
                     **{"q\u202e4": {"type": "string"}})
        params = forms.request("s", asked._replace(message="a\u2028b"))
        self.assertEqual(params["message"], "a\\u2028b")
        self.assertEqual(params["requestedSchema"]["properties"], {
            "q1": {"type": "string", "title": "Run\\u200b it?", "enum": ["yes", "no\\u202esey"]},
            "q2": {"type": "array", "items": {"type": "string", "enum": ["no\\u202esey"]}},
            "q3": {"type": "string", "oneOf": [{"const": "no\\u202esey", "title": "x[1000 blanks]y"}]},
            "q\u202e4": {"type": "string", "title": "q\\u202e4"}})
        content = {"q1": "no\\u202esey", "q2": ["no\\u202esey", "other", 1], "q3": "no\\u202esey",
                   "q\u202e4": "no\\u202esey", "q5": "x"}
        self.assertEqual(forms.answer({"action": "accept", "content": content}, asked).content,
                         {"q1": hidden, "q2": [hidden, "other", 1], "q3": hidden, "q\u202e4": "no\\u202esey",
                          "q5": "x"})

    def test_odd_schemas_of_an_agent_do_no_harm(self):
        for odd in ({"enum": 5}, {"items": 5}, {"items": {"enum": "ab"}}, {"oneOf": 5, "anyOf": [1, None]},
                    {"items": []}):
            with self.subTest(odd):
                result = {"action": "accept", "content": {"q1": ["a"]}}
                self.assertEqual(forms.answer(result, form(q1=odd)).content, {"q1": ["a"]})
                self.assertEqual(forms.answer({"action": "accept", "content": {"q1": "a"}},
                                              form(q1=odd)).content, {"q1": "a"})

    def test_only_a_known_option_is_a_choice(self):
        [dialog] = forms.dialogs("s", form(q1=CHOICE))
        for option, expected in CHOSEN:
            with self.subTest(option=option):
                self.assertEqual(forms.chosen(dialog,
                                              {"outcome": {"outcome": "selected", "optionId": option}}),
                                 expected)
        for result in (None, {}, {"outcome": None}, {"outcome": {"outcome": "cancelled", "optionId": "0"}}):
            self.assertEqual(forms.chosen(dialog, result), FormAnswer(FORM_CANCELLED))

    def test_a_question_without_fixed_choices_makes_no_dialogs(self):
        for told in ({"type": "string", "title": "Name?"}, {"type": "array", "items": {"enum": ["a"]}},
                     {"type": "number"}, {}, {"type": "string", "enum": list(map(str, range(51)))},
                     {"type": "string", "oneOf": [{"pattern": "a"}]}):
            self.assertIsNone(forms.dialogs("s", form(q1=CHOICE, q2=told)))
            self.assertEqual(forms.ask("s", form(q1=told), False, None, None), FormAnswer(UNAVAILABLE))

        self.assertIsNone(forms.dialogs("s", form(**{"q%d" % number: CONFIRM for number in range(11)})))

    def test_choices_with_titles_of_their_own(self):
        told = {"type": "string", "oneOf": [{"const": "r", "title": "Red\n(the colour)"}, {"const": "b"}]}
        [dialog] = forms.dialogs("s", form(colour=told))
        self.assertEqual([option["name"] for option in dialog.params["options"]], ["Red…", "b", "Decline"])
        self.assertEqual(dialog.params["toolCall"]["title"], "? colour")
        self.assertEqual(forms.chosen(dialog, {"outcome": {"outcome": "selected", "optionId": "0"}}),
                         FormAnswer(ACCEPTED, {"colour": "r"}))

    def test_dialogs_follow_one_another_until_one_is_declined(self):
        answers, asked = ["1", "0"], []

        def request(method, params, cancel):
            asked.append(params["toolCall"]["title"])
            return {"outcome": {"outcome": "selected", "optionId": answers[len(asked) - 1]}}

        self.assertEqual(forms.ask("s", form(q1=CHOICE, q2=CONFIRM), False, request, None),
                         FormAnswer(ACCEPTED, {"q1": "b", "q2": True}))
        answers, asked = ["decline"], []
        self.assertEqual(forms.ask("s", form(q1=CHOICE, q2=CONFIRM), False, request, None),
                         FormAnswer(DECLINED))
        self.assertEqual(asked, ["? Which?"])
