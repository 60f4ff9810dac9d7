"""What is cut and what is asked: tables, and properties of all cuts."""

from __future__ import annotations

import copy
import random
import json
import unittest

from mm.conversation import compaction, estimate, history
from mm.conversation.compaction import clear_outputs, cuts, facts, split, split_long_turn, summary_message
from mm.conversation.history import assistant_message, repaired, tool_message, user_message

LONG = "o" * 401


def user(text="go"):
    return user_message(text)


def says(text="well"):
    return assistant_message(text)


def group(number, name="bash", arguments='{"command": "ls"}', output=LONG):
    """An assistant message with one call, and its result."""
    ref = "call_%d" % number
    return [assistant_message("", "", [{"ref": ref, "name": name, "arguments": arguments}]),
            tool_message(ref, name, output)]


def groups(count, **more):
    return sum((group(number, **more) for number in range(1, count + 1)), [])


SUMMARY = dict(user("earlier"), kind="summary")


class ClearOutputs(unittest.TestCase):
    def cleared(self, messages):
        before = copy.deepcopy(messages)
        result = clear_outputs(messages)
        self.assertEqual(messages, before, "the messages given are not touched")
        self.assertEqual(repaired(result), result)
        return [place for place, (old, new) in enumerate(zip(messages, result)) if old is not new]

    def test_the_last_six_stay(self):
        self.assertEqual(self.cleared([user()] + groups(6)), [])
        self.assertEqual(self.cleared([user()] + groups(8)), [2, 4])

    def test_what_replaces_them(self):
        message = clear_outputs([user()] + groups(7))[2]
        self.assertEqual(message, tool_message("call_1", "bash", "[output of bash left out to save context]"))

    def test_what_else_a_result_carries_stays(self):
        messages = [user()] + groups(7)
        messages[2].update(status="completed", diff={"path": "/a"})
        self.assertEqual(clear_outputs(messages)[2]["diff"], {"path": "/a"})

    def test_short_and_precious_ones_stay(self):
        for name in compaction.NEVER_CLEARED:
            self.assertEqual(self.cleared([user()] + groups(8, name=name)), [], name)
        self.assertEqual(self.cleared([user()] + groups(8, output="o" * 400)), [])

    def test_nothing_is_cleared_twice(self):
        once = clear_outputs([user()] + groups(9))
        self.assertIs(clear_outputs(once), once)


class Split(unittest.TestCase):
    TALK = [user("1"), says(), user("2")] + groups(1) + [says(), user("3"), says()]
    # keep_turns: where the cut is made, None for none.
    CUTS = {0: 8, 1: 6, 2: 2, 3: None, 9: None}

    def test_table(self):
        for keep, cut in self.CUTS.items():
            with self.subTest(keep):
                plan = split(self.TALK, keep)
                self.assertEqual(plan, cut and compaction.Cut(self.TALK[:cut], self.TALK[cut:]))

    def test_a_summary_is_no_turn(self):
        self.assertIsNone(split([SUMMARY, user("1"), says()], 1))
        self.assertIsNone(split([SUMMARY], 0))
        self.assertIsNone(split([], 0))

    def test_a_note_to_the_model_is_no_turn(self):
        messages = [user("1"), says(), user("2"), says(), history.note("[act now]")] + groups(2)
        self.assertEqual(split(messages, 1).kept, messages[2:])
        self.assertEqual(split_long_turn(messages, 1).kept, [messages[2]] + messages[-2:])

    def test_long_turn_keeps_question_and_last_groups(self):
        messages = [user("1"), says(), user("2")] + groups(6)
        plan = split_long_turn(messages, 4)
        self.assertEqual(plan.kept, [messages[2]] + messages[7:])
        self.assertIs(plan.kept[0], messages[2])
        self.assertEqual(plan.summarised, messages[:7])
        self.assertIsNone(split_long_turn(messages, 6))
        self.assertIsNone(split_long_turn([SUMMARY], 1))

    def test_each_cut_keeps_less_and_the_last_question(self):
        messages = [user("1"), says(), user("2"), says(), user("3")] + groups(6)
        found = cuts(messages, 2)
        sizes = [estimate.of_messages(plan.kept) for plan in found]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertEqual(len(found), 5)
        for plan in found + cuts(messages, 0):
            self.assertIn(messages[4], plan.kept)

    def test_no_cut_parts_a_call_from_its_result(self):
        chance = random.Random(5)
        for _ in range(300):
            messages, number = [], 0
            for _ in range(chance.randrange(1, 9)):
                messages.append(user())
                for _ in range(chance.randrange(4)):
                    number += 1
                    messages += group(number)
                messages += [says()] * (messages[-1]["role"] == "user" or chance.randrange(2))
            for plan in cuts(messages, chance.randrange(4)):
                shorter = [summary_message("short", plan.summarised)] + plan.kept
                self.assertEqual(repaired(shorter), shorter)
                roles = [message["role"] for message in history.to_wire("s", shorter)]
                self.assertNotIn(("user", "user"), list(zip(roles, roles[1:])))


class TheQuestion(unittest.TestCase):
    def test_it_extends_what_the_server_has_read(self):
        messages = [user("1")] + groups(2) + [says()]
        wire = history.to_wire("s", messages)
        self.assertEqual(compaction.request("s", messages, "sum up"),
                         wire + [{"role": "user", "content": "sum up"}])

    def test_it_joins_a_question_that_waits(self):
        wire = compaction.request("s", [user("1"), says(), user("2")], "sum up")
        self.assertEqual([message["role"] for message in wire], ["system", "user", "assistant", "user"])
        self.assertEqual(wire[-1]["content"], "2\n\nsum up")

    def test_what_it_says(self):
        text = compaction.instructions(False, 50)
        for word in ("hand-over", "conversation", "Goal", "Rules from the user", "Done", "State of files",
                     "Open problems", "Next step", "at most 50 words", "data", "Call no tools"):
            self.assertIn(word, text)
        self.assertNotIn(compaction.UPDATE, text)
        self.assertTrue(compaction.instructions(True).endswith(compaction.UPDATE))

    def test_leaked_thoughts_are_no_part_of_the_answer(self):
        cases = (("<think>hm</think>\nGoal", "Goal"), ("hm\n</think>\nGoal", "Goal"), ("<think>hm", ""),
                 (" Goal ", "Goal"), ("Goal: strip `</think>` from answers",
                                      "Goal: strip `</think>` from answers"),
                 ("<think>a</think>b <think> stays", "b <think> stays"))
        for text, left in cases:
            with self.subTest(text):
                self.assertEqual(compaction.cleaned(text), left)


class Transcript(unittest.TestCase):
    def request(self, messages, limit=0):
        wire = compaction.transcript_request(messages, "sum up", limit)
        self.assertEqual([message["role"] for message in wire], ["system", "user"])
        self.assertTrue(wire[1]["content"].endswith("\n\nsum up"))
        return wire[1]["content"]

    def test_its_lines(self):
        text = self.request([SUMMARY, user("hello")] + group(1, output="a\nb") + [says("done")])
        self.assertIn('summary: earlier\nuser: hello\nassistant calls bash {"command": "ls"}\ntool bash: '
                      'a\nb\nassistant: done', text)

    def test_long_messages_are_cut(self):
        text = self.request([user("a" * 1000 + "b" * 5000 + "c" * 1000)])
        self.assertIn("user: " + "a" * 1000 + "… [+5000 chars] …" + "c" * 1000 + "\n", text)

    def test_the_oldest_turns_go_and_the_summary_stays(self):
        messages = [SUMMARY] + sum(([user("question %d " % n + "x" * 360), says("answer %d" % n)]
                                    for n in range(20)), [])
        text = self.request(messages, 1000)
        self.assertIn("summary: earlier", text)
        self.assertNotIn("question 0 ", text)
        self.assertIn("answer 19", text)
        dropped = int(text.split(" older messages left out]")[0].rpartition("[")[2])
        self.assertIn("]\nuser: question %d " % (dropped // 2), text)
        self.assertLessEqual(estimate.tokens(text), 1000)

    def test_a_limit_that_nothing_fits_leaves_the_instructions(self):
        self.assertIn("[2 older messages left out]", self.request([user("x" * 999), says("y")], 1))

    def test_it_cannot_break_out_of_its_fence(self):
        self.assertIn("\n````\nuser: ```\n````\n", self.request([user("```")]))


class Facts(unittest.TestCase):
    def call(self, number, name, arguments, output="done", **more):
        messages = group(number, name, arguments, output)
        messages[1].update(more)
        return messages

    def test_what_was_done(self):
        messages = (self.call(1, "read_file", '{"path": "a.py"}') + self.call(2, "read_file", '{"path": '
                                                                                              '"b.py"}')
                    + self.call(3, "edit_file", '{"path": "a.py"}')
                    + self.call(4, "write_file", '{"path": "c.py"}')
                    + self.call(5, "read_skill", '{"name": "bg-jobs"}'))
        self.assertEqual(summary_message("text", messages, "1 ✓ read\n[plan: 1 of 2 done]")["content"],
                         "text\n\n[files changed: a.py, c.py]\n[files read: b.py]\n[skills in use: bg-jobs; "
                         "read them again if needed]\n"
                         "[the plan:]\n1 ✓ read\n[plan: 1 of 2 done]")

    def test_what_did_not_happen_is_no_fact(self):
        for output, more in (("fine", {"status": "failed"}), (history.INTERRUPTED, {})):
            with self.subTest(output):
                self.assertEqual(facts(self.call(1, "write_file", '{"path": "a"}', output, **more)), {})
        self.assertEqual(facts(self.call(1, "write_file", "{}")
                               + self.call(2, "write_file", '{"path": [1]}')), {})

    def test_they_survive_the_next_summary(self):
        names = ["plain.py", "with, comma", "line\nbreak", " blank ", "a]b", "100%s"]
        messages = sum((self.call(number, "write_file", json.dumps({"path": name})) for number,
                        name in enumerate(names)), [])
        first = summary_message("text", messages)
        second = summary_message("other", [first, user("2"), says()])
        self.assertEqual((second["facts"], second["content"].split("\n\n")[1]),
                         ({"changed": names}, first["content"].split("\n\n")[1]))
        third = facts([second] + self.call(1, "write_file", '{"path": "plain.py"}'))
        self.assertEqual(third["changed"][-1], "plain.py")

    def test_hostile_facts_are_left_out(self):
        for known in ([], 7, {"changed": "x"}, {"changed": [1, None, ["a"]]}, {"other": ["a"]}):
            with self.subTest(known):
                self.assertEqual(facts([dict(SUMMARY, facts=known)]), {})

    def test_the_lists_are_bounded(self):
        messages = sum((self.call(n, "read_file", '{"path": "f%d"}' % n) for n in range(100)), [])
        self.assertEqual(facts(messages), {"read": ["f%d" % n for n in range(60, 100)]})

    def test_a_summary_without_facts_is_the_text_alone(self):
        self.assertEqual(summary_message("text", [user()]),
                         {"role": "user", "content": "text", "kind": "summary"})


if __name__ == "__main__":
    unittest.main()
