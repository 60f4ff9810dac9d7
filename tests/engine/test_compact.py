"""Compaction against a real model server: what is asked, what the history becomes, and that a failure leaves
it alone.
"""

from __future__ import annotations

import copy
import json
import os
import threading
import unittest

from mm.config import config
from mm.cancel import Cancel, Cancelled
from mm.conversation import compaction, estimate, history
from mm.conversation.history import assistant_message, tool_message, user_message
from mm.engine import compact, summary
from mm.engine.process import Process
from mm.errors import UserError
from mm.events import WindowUse
from mm.model.http import ModelError
from tests import support
from tests.fakes.model_server import ModelServer

GOOD = [{"text": ["Goal: the password ", "is tulip."]}]
LONG = " ".join("word%d" % number for number in range(1500))
CALL = [{"call": {"name": "bash", "arguments": {"command": "ls"}}}]


def talk(turns, size=400):
    """So many turns, question and answer of `size` characters each."""
    return sum(([user_message("question %d " % number + "q" * size),
                 assistant_message("answer %d " % number + "a" * size)]
                for number in range(1, turns + 1)), [])


def calls(count, size=2000, name="bash"):
    """So many assistant messages with one call, each with a result of `size` characters."""
    messages = []
    for number in range(1, count + 1):
        ref = "call_%d" % number
        messages += [assistant_message("", "", [{"ref": ref, "name": name,
                                                 "arguments": '{"path": "f%d"}' % number}]),
                     tool_message(ref, name, "o" * size)]
    return messages


class Compact(unittest.TestCase):
    def setUp(self):
        self.folder = support.scratch_folder()
        self.events = []

    def emit(self, event):
        self.events.append(event)

    def compactor(self, server, messages, window=0, cancel=None, **settings):
        """A Compactor for a session with these messages; `self.session` is the session."""
        overrides = dict({"model.url": server.url, "model.name": "m", "model.contextWindow": window},
                         **settings)
        process = self.process = Process(config.load(self.folder, {"HOME": self.folder}, None, overrides))
        session = self.session = process.new_session(self.folder)
        session.messages += messages
        cancel = cancel or Cancel()
        session.prepare(cancel, 0)
        session.seen.skills_read.add("bg-jobs")
        return compact.Compactor(process, session, self, cancel)

    def used(self):
        return self.session.prepared.meter.used(self.session.messages)

    def window_at(self, messages, share):
        """A window of which these messages use that share."""
        session = Process(config.load(self.folder, {"HOME": self.folder}, None, {})).new_session(self.folder)
        session.prepare(Cancel(), 0)
        return round(session.prepared.meter.used(messages) / share)

    def assert_summarised(self, outcome, kept):
        """The history is a summary and then these very messages; the line tells the numbers."""
        messages = self.session.messages
        self.assertTrue(outcome.changed, outcome.line)
        self.assertTrue(history.is_summary(messages[0]))
        self.assertEqual(len(messages) - 1, len(kept))
        for mine, given in zip(messages[1:], kept):
            self.assertIs(mine, given)
        self.assertRegex(outcome.line, r"^🗜️ compressed \d+ messages → 1 summary \+ %d kept \(%d tokens, "
                                       r"\d+\.\ds\)$" % (
            len(kept), self.used()))

    # /compact

    def test_the_old_turns_become_a_summary(self):
        messages = talk(5)
        with ModelServer(GOOD + [{"usage": {"input": 1200, "output": 10}}]) as server:
            compactor = self.compactor(server, messages)
            outcome = compactor.forced()
            [request] = server.wait_requests(1)
        self.assert_summarised(outcome, messages[6:])
        self.assertIn("compressed 6 messages → 1 summary + 4 kept", outcome.line)
        self.assertEqual(self.session.messages[0]["content"], "Goal: the password is tulip.")
        self.assertEqual(self.session.usage, {"input": 1200, "output": 10})
        self.assertEqual([event for event in self.events if type(event) is WindowUse], [WindowUse(1210, 0)])
        self.assertEqual(self.session.seen.skills_read, set(), "they can be read again")
        sent = request.body["messages"]
        self.assertEqual(sent[:-1], history.to_wire(self.session.prepared.system, messages),
                         "the very same messages, and one more")
        self.assertEqual(sent[-1], {"role": "user", "content": compaction.instructions(False)})
        self.assertEqual(request.body["tools"], self.session.prepared.wire_tools)
        self.assertNotIn("tool_choice", request.body)

    def test_later_requests_and_summaries_build_on_it(self):
        with ModelServer(GOOD) as server:
            self.compactor(server, talk(4)).forced()
            wire = history.to_wire(self.session.prepared.system, self.session.messages)
            self.assertEqual([message["role"] for message in wire],
                             ["system", "user", "assistant", "user", "assistant"])
            self.assertIn("the password is tulip", wire[1]["content"])
            self.assertIn("question 3", wire[1]["content"])
            again = self.compactor(server, self.session.messages + talk(3))
            self.assertTrue(again.forced().changed)
            sent = server.wait_requests(2)[1].body["messages"]
        self.assertTrue(sent[-1]["content"].endswith(compaction.UPDATE))
        self.assertEqual(sum(map(history.is_summary, self.session.messages)), 1)

    def test_hook_runs_before_the_summary(self):
        os.makedirs(self.folder + "/.config/mm")
        with open(self.folder + "/.config/mm/config.json", "w") as file:
            json.dump({"hooks": {"preCompact": [{"command": "cat > %s/told" % self.folder}]}}, file)
        with ModelServer(GOOD) as server:
            self.compactor(server, talk(2)).forced()
            self.assertFalse(os.path.exists(self.folder + "/told"), "there was nothing to compact")
            self.compactor(server, talk(5)).forced()
        with open(self.folder + "/told") as file:
            told = json.load(file)
        self.assertEqual((told["event"], told["messages"], told["forced"]), ("preCompact", 10, True))

    def test_nothing_to_compact(self):
        with ModelServer(GOOD) as server:
            for messages, keep in ((talk(2), 2), ([], 2), (talk(1), 1), ([], 0), (talk(3), 7)):
                with self.subTest(keep):
                    compactor = self.compactor(server, messages, **{"context.keepLastTurns": keep})
                    line = "🗜️ nothing to compact: %d message(s), no turn older than the last %d" % (len(messages), keep)
                    self.assertEqual(compactor.forced(), compact.Outcome(line, False, None))
            self.assertEqual(server.requests, [])

    def test_keep_last_turns_may_be_zero(self):
        with ModelServer(GOOD) as server:
            outcome = self.compactor(server, talk(2), **{"context.keepLastTurns": 0}).forced()
        self.assert_summarised(outcome, [])

    def test_a_summary_that_is_not_smaller_changes_nothing(self):
        with ModelServer([{"text": LONG[:2500]}]) as server:
            self.assert_failed(server, talk(5), "the summary is not smaller")

    def assert_failed(self, server, messages, explanation, **settings):
        before = list(messages)
        compactor = self.compactor(server, messages, **settings)
        self.session.prepared.meter.report(self.session.messages, 1000, 0)
        outcome = compactor.forced()
        self.assertEqual(outcome, compact.Outcome("[compact: failed, history kept: %s]" % explanation))
        self.assertEqual(self.session.messages, before)
        for mine, given in zip(self.session.messages, before):
            self.assertIs(mine, given)
        self.assertEqual(self.session.prepared.meter.measure, 1000, "what the server reported holds on")

    # The second request

    FIRST_TRIES = {
        summary.TOOL_CALL: CALL,
        summary.NO_SUMMARY: [{"text": "<think>hm"}],
        summary.CUT: [{"text": "Goal"}, {"finish": "length"}],
        summary.TOO_LONG: [{"text": LONG}, {"hang": True}],
        summary.REPEATED: [{"text": "Goal: the same words again and again. " * 60}, {"hang": True}],
        summary.TOO_MUCH_THOUGHT: [{"thought": ["t" * 8000] * 4}, {"hang": True}],
        "refused the request (400): no": [{"status": 400, "body": "no"}],
        "closed the connection": [{"text": "Goa"}, {"drop": True}],
    }

    def test_failed_summary_is_tried_with_a_transcript(self):
        for reason, first in self.FIRST_TRIES.items():
            with self.subTest(reason), ModelServer(first, GOOD) as server:
                messages = talk(5, 600)
                outcome = self.compactor(server, messages, 8000).forced()
                self.assert_summarised(outcome, messages[6:])
                body = server.wait_requests(2)[1].body
                self.assertNotIn("tools", body)
                self.assertEqual([message["role"] for message in body["messages"]], ["system", "user"])
                self.assertIn("user: question 3", body["messages"][1]["content"])
                self.assertNotIn("user: question 4", body["messages"][1]["content"])
                self.assertIn(compaction.instructions(False), body["messages"][1]["content"])

    def test_second_failure_is_reported_without_third_try(self):
        with ModelServer(CALL, [{"text": ""}, {"thought": "hm"}], GOOD) as server:
            self.assert_failed(server, talk(5), summary.NO_SUMMARY)
            self.assertEqual(len(server.requests), 2)

    def test_the_words_of_the_server_are_the_explanation(self):
        with ModelServer([{"status": 400, "body": "broken"}]) as server:
            self.assert_failed(server, talk(5), "%s refused the request (400): broken" % server.url)

    def test_a_server_that_is_gone_is_asked_once(self):
        server = ModelServer(GOOD)
        server.close()
        outcome = self.compactor(server, talk(5)).forced()
        self.assertRegex(outcome.line, r"^\[compact: failed, history kept: no model server at .* "
                                       r"\(connection refused\)")
        self.assertEqual(len(self.session.messages), 10)

    def test_too_long_conversation_goes_as_transcript(self):
        messages = talk(60)
        with ModelServer(GOOD) as server:
            outcome = self.compactor(server, messages, 6000).forced()
            [request] = server.wait_requests(1)
        self.assert_summarised(outcome, messages[-4:])
        self.assertIn("older messages left out]", request.body["messages"][1]["content"])
        self.assertLess(len(json.dumps(request.body)) / 3.6, 6000)

    def test_a_cancel_leaves_everything_as_it_was(self):
        cancel = Cancel()
        before = talk(5)
        with ModelServer([{"text": "Goal"}, {"hang": True}]) as server:
            compactor = self.compactor(server, before, cancel=cancel)
            threading.Thread(target=lambda: (server.wait_requests(1), cancel.cancel()), daemon=True).start()
            with self.assertRaises(Cancelled):
                compactor.forced()
            server.wait_dropped(1)
        self.assertEqual(self.session.messages, before)

    # Before a model call

    def test_nothing_happens_with_room_or_unknown_window(self):
        messages = talk(20)
        with ModelServer(GOOD) as server:
            for window in (0, self.window_at(messages, 0.79)):
                self.assertIsNone(self.compactor(server, messages, window).check())
            self.assertEqual(server.requests, [])

    def test_old_outputs_go_first_without_a_request(self):
        messages = [user_message("go")] + calls(12)
        before = copy.deepcopy(messages)
        with ModelServer(GOOD) as server:
            compactor = self.compactor(server, messages, self.window_at(messages, 0.85))
            self.session.prepared.meter.report(messages, self.used(), 0)
            outcome = compactor.check()
            self.assertEqual(outcome.line, "🗜️ left out 6 old tool output(s) (%d tokens)" % self.used())
            self.assertIsNone(compactor.check())
            self.assertEqual(server.requests, [])
        self.assertEqual(messages, before, "the messages themselves are not touched")
        self.assertEqual([message["content"] for message in self.session.messages
                          if message["role"] == "tool"],
                         ["[output of bash left out to save context]"] * 6 + ["o" * 2000] * 6)

    def test_too_little_to_gain_is_left_in(self):
        messages = talk(20) + [user_message("go")] + calls(7, 500)
        with ModelServer(GOOD) as server:
            outcome = self.compactor(server, messages, self.window_at(messages, 0.85)).check()
        self.assert_summarised(outcome, messages[38:])

    def test_turns_before_the_last_k_become_a_summary(self):
        messages = talk(40) + [user_message("and now?")]
        with ModelServer(GOOD) as server:
            compactor = self.compactor(server, messages, self.window_at(messages, 0.9),
                                       **{"context.keepLastTurns": 3})
            outcome = compactor.check()
            self.assertIsNone(compactor.check())
            [request] = server.wait_requests(1)
        self.assert_summarised(outcome, messages[-5:])
        self.assertTrue(request.body["messages"][-1]["content"].startswith("and now?\n\n["),
                        "no two user messages in a row")

    def test_fewer_turns_are_kept_if_necessary(self):
        messages = talk(1) + talk(1, 20000) + [user_message("and now?")]
        with ModelServer(GOOD) as server:
            outcome = self.compactor(server, messages, self.window_at(messages, 0.9)).check()
        self.assert_summarised(outcome, messages[-1:])

    def test_long_turn_is_cut_after_its_question(self):
        messages = talk(1) + [user_message("the long task")] + calls(12, 2000, "read_skill")
        with ModelServer(GOOD) as server:
            outcome = self.compactor(server, messages, self.window_at(messages, 0.9)).check()
            [request] = server.wait_requests(1)
        self.assert_summarised(outcome, [messages[2]] + messages[-8:])
        self.assertEqual(history.repaired(self.session.messages), self.session.messages)
        self.assertEqual(request.body["messages"][:-1],
                         history.to_wire(self.session.prepared.system, messages))

    def test_failed_summary_still_clears_old_outputs(self):
        messages = [user_message("go")] + calls(14)
        with ModelServer(CALL) as server:
            outcome = self.compactor(server, messages, self.window_at(messages, 1.5)).check()
        self.assertRegex(outcome.line, "^🗜️ left out 8 old tool output")
        self.assertEqual(outcome.changed, True)

    def test_two_failures_without_room_end_the_turn(self):
        messages = talk(30)
        window = self.window_at(messages, 0.95)
        with ModelServer(CALL) as server:
            compactor = self.compactor(server, messages, window)
            failed = "[compact: failed, history kept: %s]" % summary.TOOL_CALL
            self.assertEqual(compactor.check(), compact.Outcome(failed))
            stop = "⚠️ the conversation no longer fits the context window (%d/%d tokens). Use /new or /compact." % (self.used(), window)
            self.assertEqual(compactor.check(), compact.Outcome(failed, False, stop))
            self.assertEqual(compactor.check(), compact.Outcome("", False, stop), "no third attempt")
            self.assertEqual(len(server.requests), 4)
        self.assertEqual(self.session.messages, messages)

    def test_two_failures_with_room_change_nothing(self):
        messages = talk(30)
        with ModelServer(CALL) as server:
            compactor = self.compactor(server, messages, self.window_at(messages, 0.83))
            self.assertEqual([compactor.check().stop, compactor.check().stop, compactor.check()],
                             [None, None, None])
            self.assertEqual(len(server.requests), 4)

    def test_what_cannot_be_shortened_asks_no_model(self):
        with ModelServer(GOOD) as server:
            outcome = self.compactor(server, [user_message("q" * 40000)], 8000).check()
            self.assertEqual(outcome.line, "[compact: failed, history kept: %s]" % compact.NOTHING_LEFT)
            self.assertEqual(server.requests, [])

    def test_the_reserve_and_the_threshold(self):
        cases = (({}, 8000, 6400), ({"context.threshold": 1}, 8000, 7000),
                 ({"context.reserve": 2000}, 8000, 6000), ({"context.threshold": 1}, 100000, 95904),
                 ({"context.reserve": 50000}, 8000, 4000))
        for settings, window, limit in cases:
            with self.subTest(settings):
                self.assertEqual(estimate.limit(config.load("/", {"HOME": "/nonexistent"}, None, settings),
                                                window), limit)

    # After a refusal

    def refuse(self, compactor, prompt, window):
        return compactor.overflowed(ModelError("too long", "context_overflow", 400,
                                               numbers={"prompt": prompt, "window": window}))

    def test_refusal_reveals_the_window_and_shortens_once(self):
        messages = talk(30) + [user_message("and now?")]
        with ModelServer(GOOD) as server:
            compactor = self.compactor(server, messages)
            outcome = self.refuse(compactor, 9125, 8192)
            [request] = server.wait_requests(1)
            self.assert_summarised(outcome, messages[-3:])
            self.assertIsNone(outcome.stop)
            self.assertEqual(self.process.model.window.size, 8192)
            self.assertNotIn("tools", request.body, "what was just refused is not sent again")
            second = self.refuse(compactor, 8200, 8192)
        self.assertEqual(second.stop, "⚠️ the conversation no longer fits the context window (8200/8192 "
                                      "tokens). Use /new or /compact.")
        self.assertEqual(second.changed, False)

    def test_a_refusal_without_numbers(self):
        messages = talk(30) + [user_message("and now?")]
        with ModelServer(GOOD) as server:
            compactor = self.compactor(server, messages)
            outcome = compactor.overflowed(ModelError("context shift is disabled", "context_overflow", 500))
            self.assert_summarised(outcome, messages[-3:])
            failing = self.compactor(server, [user_message("q" * 3600)])
            outcome = failing.overflowed(ModelError("context shift is disabled", "context_overflow", 500))
        self.assertRegex(outcome.stop, r"\(\d+/\? tokens\)")

    def test_other_problems_are_not_its_business(self):
        with ModelServer(GOOD) as server:
            compactor = self.compactor(server, talk(1) + [user_message("x")])
            for problem in (UserError("no"), ModelError("x wants an API key (401)", "auth", 401),
                            ModelError("x ended its answer before the first word", "empty", 200)):
                self.assertIsNone(compactor.overflowed(problem))
            self.assertEqual(server.requests, [])

    def test_empty_answer_to_full_window_is_a_refusal(self):
        messages = talk(30) + [user_message("and now?")]
        problem = ModelError("x ended its answer (200) before the first word", "empty", 200)
        with ModelServer(GOOD) as server:
            for window in (self.window_at(messages, 0.7), 0):
                self.assert_summarised(self.compactor(server, messages, window).overflowed(problem),
                                       messages[-3:])
        with ModelServer(CALL) as server:
            self.assertIsNone(self.compactor(server, messages, 0).overflowed(problem),
                              "the problem itself tells more")

    def test_broken_answer_is_not_asked_for_again(self):
        with ModelServer(GOOD) as server:
            compactor = self.compactor(server, talk(5))
            self.assertIsNone(self.refuse(compactor, 9125, 8192))
            self.assertEqual(self.process.model.window.size, 8192)
            self.assertEqual(server.requests, [])


if __name__ == "__main__":
    unittest.main()
