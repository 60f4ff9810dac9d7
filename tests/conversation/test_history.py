"""The conversation's messages: mended, closed, and translated for the server."""

from __future__ import annotations

import copy
import json
import random
import unittest

from mm.conversation import history
from mm.conversation.history import INTERRUPTED, assistant_message, repaired, tool_message, user_message


def call(ref, name="bash"):
    return {"ref": ref, "name": name, "arguments": "{}"}


ASKED = user_message("go")
ONE = assistant_message("", "", [call("call_1")])
TWO = assistant_message("both", "", [call("call_1"), call("call_2")])

# name: (messages, mended)
MENDED = {
    "nothing is missing": ([ASKED, ONE, tool_message("call_1", "bash", "ok")],) * 2,
    "a missing result is filled in": ([ASKED, ONE],
                                      [ASKED, ONE, tool_message("call_1", "bash", INTERRUPTED)]),
    "a missing result before the next question": (
        [ASKED, ONE, ASKED], [ASKED, ONE, tool_message("call_1", "bash", INTERRUPTED), ASKED]),
    "results come in the order of the calls": (
        [TWO, tool_message("call_2", "bash", "b"), tool_message("call_1", "bash", "a")],
        [TWO, tool_message("call_1", "bash", "a"), tool_message("call_2", "bash", "b")]),
    "the first of two results counts": (
        [ONE, tool_message("call_1", "bash", "a"), tool_message("call_1", "bash", "b")],
        [ONE, tool_message("call_1", "bash", "a")]),
    "a stray result is dropped": ([ASKED, tool_message("call_9", "bash", "x")], [ASKED]),
    "an answer that says nothing is dropped": ([ASKED, assistant_message(""), ASKED], [ASKED, ASKED]),
    "an answer with reasoning alone is dropped": ([ASKED, assistant_message("", "hm")], [ASKED]),
}


class Mend(unittest.TestCase):
    def test_table(self):
        for name, (messages, mended) in MENDED.items():
            with self.subTest(name):
                before = copy.deepcopy(messages)
                self.assertEqual(repaired(messages), mended)
                self.assertEqual(messages, before, "the stored messages are not touched")

    def test_mending_twice_changes_nothing(self):
        chance = random.Random(7)
        choices = [ASKED, ONE, TWO, assistant_message(""), assistant_message("text")] + [
            tool_message("call_%d" % number, "bash", "out") for number in (1, 2, 3)]
        for _ in range(500):
            messages = [chance.choice(choices) for _ in range(chance.randrange(12))]
            once = repaired(messages)
            self.assertEqual(repaired(once), once)


class CloseCalls(unittest.TestCase):
    def test_only_the_unanswered_calls_get_the_text(self):
        messages = [ASKED, TWO, tool_message("call_1", "bash", "a")]
        history.close_calls(messages, "[x]")
        self.assertEqual(messages[3:], [tool_message("call_2", "bash", "[x]", status="failed", prose=True)])

    def test_nothing_to_close(self):
        messages = [ASKED, assistant_message("done")]
        history.close_calls(messages, "[x]")
        self.assertEqual(len(messages), 2)


class DropUnanswered(unittest.TestCase):
    def test_table(self):
        summary = dict(ASKED, kind="summary")
        for messages, left in (([ASKED], 0), ([summary, ASKED], 1), ([summary], 1),
                               ([ASKED, ONE, ASKED, ASKED], 2), ([], 0)):
            kept = list(messages)
            history.drop_unanswered(kept)
            self.assertEqual(kept, messages[:left])


class ToWire(unittest.TestCase):
    def test_every_kind_of_message(self):
        messages = [
            ASKED,
            assistant_message("look", "think", [{"ref": "call_1", "name": "bash",
                                                 "arguments": '{"command":"ls"}'}]),
            tool_message("call_1", "bash", "a"),
        ]
        self.assertEqual(history.to_wire("be good", messages), [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "look", "reasoning_content": "think", "tool_calls": [
                {"id": "call_1", "type": "function",
                 "function": {"name": "bash", "arguments": '{"command":"ls"}'}}]},
            {"role": "tool", "tool_call_id": "call_1", "name": "bash", "content": "a"},
        ])

    def test_reasoning_returns_under_its_own_name(self):
        for field, kept in (("", "reasoning_content"), ("reasoning_content", "reasoning_content"),
                            ("reasoning", "reasoning"), ("thinking", "thinking"),
                            ("role", "reasoning_content")):
            message = assistant_message("a", "think", (), field)
            self.assertEqual(history.to_wire("s", [message])[1],
                             {"role": "assistant", "content": "a", kept: "think"})
        for field in ("role", "content", [], None, 1):  # a session file may come with a hostile repository
            message = {"role": "assistant", "content": "a", "reasoning": "think", "reasoningField": field}
            self.assertEqual(history.to_wire("s", [message])[1],
                             {"role": "assistant", "content": "a", "reasoning_content": "think"})

    def test_a_longer_conversation_begins_with_the_same_bytes(self):
        messages = [ASKED, ONE, tool_message("call_1", "bash", "a"), assistant_message("done", "why")]
        for length in range(1, len(messages)):
            if messages[length - 1].get("calls"):
                continue  # a request is never made there
            shorter = json.dumps(history.to_wire("s", messages[:length]))[:-1]
            self.assertTrue(json.dumps(history.to_wire("s", messages)).startswith(shorter))

    def test_summary_and_next_question_are_one_message(self):
        summary = dict(user_message("a fact"), kind="summary")
        wire = history.to_wire("s", [summary, ASKED, ONE, tool_message("call_1", "bash", "a"), ASKED])
        framed = "[summary of the conversation so far]\na fact\n[end of the summary]"
        self.assertEqual(wire[1], {"role": "user", "content": framed + "\n\ngo"})
        self.assertEqual([message["role"] for message in wire],
                         ["system", "user", "assistant", "tool", "user"])
        self.assertEqual(history.to_wire("s", [summary])[1:], [{"role": "user", "content": framed}])

    def test_requests_after_a_summary_grow_element_by_element(self):
        messages = [dict(user_message("a fact"), kind="summary"), ASKED, ONE,
                    tool_message("call_1", "bash", "a"), says(), ASKED, says()]
        ends = [2, 4, 6]  # behind a question or a result: where requests are made
        requests = [history.to_wire("s", messages[:end]) for end in ends]
        for before, after in zip(requests, requests[1:]):
            self.assertEqual(after[:len(before)], before)


def says():
    return assistant_message("done")


if __name__ == "__main__":
    unittest.main()
