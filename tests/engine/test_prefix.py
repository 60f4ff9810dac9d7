"""What a server has read once it need not read again: each request begins with the bytes of the one
before.
"""

from __future__ import annotations

import json
import unittest

from mm.engine import loops
from mm.engine.second_tries import REPEATED_TEXT, THOUGHT_TOO_LONG, UNREADABLE_ARGUMENTS
from tests.engine import long_turn


def encoded(messages: list) -> str:
    return json.dumps(messages, ensure_ascii=False, separators=(",", ":"))


class Prefix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bodies, cls.log = long_turn.record()

    def test_each_request_begins_like_the_last_one(self):
        for number, (before, after) in enumerate(zip(self.bodies, self.bodies[1:]), 1):
            with self.subTest(request=number + 1):
                count = len(before["messages"])
                self.assertEqual(encoded(after["messages"][:count]), encoded(before["messages"]))
                self.assertEqual(list(after), list(before))
                self.assertEqual({name: encoded(value) for name,
                                  value in after.items() if name != "messages"},
                                 {name: encoded(value) for name,
                                  value in before.items() if name != "messages"})

    def test_conversation_held_everything_possible(self):
        """Else the test above would say little."""
        sent = encoded(self.bodies[-1]["messages"])
        for part in ("First I look around.", "Ünïcode.", "[a hook has looked at it]", "The house rule",
                     "in a hurry", "look once more", THOUGHT_TOO_LONG.note, REPEATED_TEXT.note,
                     UNREADABLE_ARGUMENTS.note, loops.NUDGE % 3, "there is no tool named fly",
                     "not valid JSON", "The answer is for", "Let me tell you",
                     "[Stop here: the conversation is about to be cut"):
            with self.subTest(part):
                self.assertIn(json.dumps(part, ensure_ascii=False)[1:-1], sent)
        self.assertGreater(len(self.bodies), 15)
        self.assertIn("compressed", self.log)

    def test_reasoning_goes_back_where_it_came_from(self):
        thoughts = [message["reasoning_content"] for message in self.bodies[-1]["messages"]
                    if "reasoning_content" in message]
        self.assertEqual(thoughts, ["First I look around.", "Two at once.", "Enough.", "Ünïcode."])


if __name__ == "__main__":
    unittest.main()
