"""The turn, against a real model server: what is told, what is asked, and what the history keeps on every
path.
"""

from __future__ import annotations

import json
import os
import threading
import unittest

from mm.config import config
from mm.cancel import Cancel
from mm.engine import calls, second_tries, turn
from mm.engine.process import Process
from mm.events import ALLOW, COMPLETED, FAILED, REJECT, Text, ToolEnded, ToolPending, ToolStarted, Waiting
from tests import support
from tests.fakes.model_server import ModelServer


def bash(command):
    return {"call": {"name": "bash", "arguments": {"command": command}}}


class Front:
    """Keeps what it is told, waits apart; answers permissions with `answers`, one after the other; cancels at
    an event of the type `cancel_at`."""

    def __init__(self, answers=(), cancel=None, cancel_at=None):
        self.events, self.waits, self.answers, self.asked = [], [], list(answers), []
        self._cancel, self._cancel_at = cancel, cancel_at

    def emit(self, event):
        (self.waits if type(event) is Waiting else self.events).append(event)
        if self._cancel_at is not None and isinstance(event, self._cancel_at):
            self._cancel.cancel()

    def ask(self, permission, cancel):
        self.asked.append(permission)
        return self.answers.pop(0)

    def ends(self):
        return [event for event in self.events if type(event) is ToolEnded]

    def text(self):
        return "".join(event.text for event in self.events if type(event) is Text)


class Turn(unittest.TestCase):
    def setUp(self):
        self.folder = support.scratch_folder()

    def talk(self, server, *prompts, front=None, cancel=None, **settings):
        """Runs the prompts one after the other; returns (front, session, the outcomes)."""
        front = front or Front()
        overrides = dict({"model.url": server.url, "model.name": "m", "model.contextWindow": 1_000_000},
                         **settings)
        process = Process(config.load(self.folder, {"HOME": self.folder}, None, overrides))
        session = process.new_session(self.folder)
        outcomes = [turn.run_turn(process, session, prompt, front, cancel or Cancel()) for prompt in prompts]
        return front, session, outcomes

    def roles(self, session):
        return [message["role"] for message in session.messages]

    def assert_pairs(self, front):
        """Each call that was announced has exactly one end, after it."""
        begun = [event.ref for event in front.events if type(event) is ToolPending]
        self.assertEqual(begun, [event.ref for event in front.ends()])

    def test_an_answer(self):
        with ModelServer([{"text": ["Hel", "lo"]}]) as server:
            front, session, [outcome] = self.talk(server, "hi")
        self.assertEqual(front.events, [Text("Hel"), Text("lo")])
        self.assertEqual(session.messages, [{"role": "user", "content": "hi"},
                                            {"role": "assistant", "content": "Hello"}])
        self.assertEqual(outcome, turn.Outcome("end_turn", None, False, 0, 0, 0))

    def test_calls_run_in_order_and_give_results(self):
        with ModelServer([{"text": "Look."}, bash("echo one"), bash("exit 3")],
                         [{"text": "Done."}]) as server:
            front, session, [outcome] = self.talk(server, "go")
            sent = server.wait_requests(2)[1].body["messages"]
        self.assertEqual([type(event) for event in front.events if type(event) is not Text],
                         [ToolPending, ToolStarted, ToolEnded] * 2)
        self.assertEqual([event.ref for event in front.ends()], ["call_1", "call_2"])
        self.assertEqual([event.status for event in front.ends()], [COMPLETED, COMPLETED])
        self.assertEqual([message["content"] for message in sent if message["role"] == "tool"],
                         ["one", "[exit code 3]"])
        self.assertEqual([message.get("tool_call_id") for message in sent[3:]], ["call_1", "call_2"])
        self.assertEqual(outcome.commands, 2)

    def test_each_request_begins_like_the_last_one(self):
        with ModelServer([bash("echo a")], [bash("echo b"), {"thought": "hm"}], [{"text": "x"}]) as server:
            self.talk(server, "one", "two")
            bodies = [request.body for request in server.wait_requests(4)]
        for before, after in zip(bodies, bodies[1:]):
            self.assertEqual(after["messages"][:len(before["messages"])], before["messages"])
            self.assertEqual(after["tools"], before["tools"])

    def test_what_cannot_be_tried_is_shown_and_answered(self):
        calls = [
            ({"name": "bash", "arguments": "{broken"}, "the arguments are not valid JSON"),
            ({"name": "bash", "arguments": "{}"}, 'missing parameter "command"'),
            ({"name": "fly", "arguments": "{}"}, "[there is no tool named fly. Tools: bash, edit_file, "
                                                 "read_file, read_skill, write_file, fetch_content, plan]"),
            ({"name": "read_file", "arguments": {"path": "missing"}}, "does not exist"),
        ]
        for call, text in calls:
            with self.subTest(text), ModelServer([{"call": call}], [{"text": "ok"}]) as server:
                front, session, _ = self.talk(server, "go")
                self.assert_pairs(front)
                self.assertEqual(front.ends()[0].status, FAILED)
                self.assertIn(text, front.ends()[0].output)
                self.assertEqual(self.roles(session), ["user", "assistant", "tool", "assistant"])

    def test_refused_call_has_the_kind_of_its_tool(self):
        read = {"call": {"name": "read_file", "arguments": {"path": "."}}}
        with ModelServer([{"call": {"name": "read_file", "arguments": "{}"}},
                          {"call": {"name": "nope", "arguments": "{}"}}],
                         [read] * 5, [{"text": "Done."}]) as server:
            front, _, _ = self.talk(server, "go")
        shown = [(event.title, event.kind) for event in front.events if type(event) is ToolPending]
        self.assertEqual(shown, [("read_file", "read"), ("nope", "execute")] + [("read_file: .", "read")] * 5)
        self.assertIn("[not run: ", front.ends()[-1].output)

    def test_a_known_window_limits_what_a_result_shows(self):
        long = bash("for i in $(seq 300); do echo 12345678901234567890; done")
        with ModelServer([long], [{"text": "Done."}]) as server:
            front, _, _ = self.talk(server, "go", **{"model.contextWindow": 10_000})
        output = front.ends()[0].output
        self.assertIn(" left out; everything is in ", output)
        self.assertLess(len(output), 10_000 // 10 * 4 + 200)

    def test_long_turn_is_saved_between_calls(self):
        look = bash("grep -c '\"content\":\"made by the first\"' .mm/sessions/*.json")
        with ModelServer([bash("printf 'made by %s' 'the first'"), look], [{"text": "Done."}]) as server:
            overrides = {"model.url": server.url, "model.name": "m", "sessions.enabled": True}
            process = Process(config.load(self.folder, {"HOME": self.folder}, None, overrides))
            session = process.new_session(self.folder)
            session.store.due = lambda: True  # as if every call had taken ten seconds
            front = Front()
            turn.run_turn(process, session, "go", front, Cancel())
        self.assertEqual(front.ends()[1].output, "1")

    def test_three_malformed_calls_end_the_turn(self):
        broken = {"call": {"name": "bash", "arguments": "{"}}
        with ModelServer([broken, broken, broken, bash("echo no")]) as server:
            front, session, [outcome] = self.talk(server, "go")
        self.assertEqual(len(front.ends()), 3)
        self.assertEqual(front.text(), second_tries.MALFORMED_CALL.end)
        self.assertEqual(outcome.stop_reason, "end_turn")
        self.assertEqual(self.roles(session), ["user", "assistant", "tool", "tool", "tool", "tool",
                                               "assistant"])
        self.assertEqual([call["arguments"] for call in session.messages[1]["calls"]][:3], ["{}"] * 3)

    def test_good_call_resets_the_malformed_count(self):
        broken = {"call": {"name": "bash", "arguments": "{"}}
        with ModelServer([broken, broken, bash("true"), broken, broken], [{"text": "ok"}]) as server:
            front, _, _ = self.talk(server, "go")
        self.assertEqual(front.text(), "ok")

    def test_a_rejection_is_what_the_model_reads(self):
        front = Front([REJECT, REJECT, ALLOW])
        with ModelServer([bash("echo 1"), bash("echo 2"), bash("echo 3")], [{"text": "ok"}]) as server:
            self.talk(server, "go", front=front, yolo=False)
        self.assertEqual([event.output for event in front.ends()], [
            "[command rejected by the user]",
            "[command rejected by the user]\n[stop and ask the user what they want]", "3"])
        self.assertEqual(len([event for event in front.events if type(event) is ToolStarted]), 1)

    def test_the_length_limit(self):
        with ModelServer([{"text": "half"}, {"finish": "length"}]) as server:
            _, session, [outcome] = self.talk(server, "go")
        self.assertEqual(outcome.stop_reason, "max_tokens")
        self.assertEqual(session.messages[-1]["content"], "half")

    def test_calls_of_cut_answers_do_not_run(self):
        with ModelServer([bash("touch %s/ran" % self.folder), {"finish": "length"}]) as server:
            front, _, [outcome] = self.talk(server, "go")
        self.assertEqual(outcome.stop_reason, "max_tokens")
        self.assertEqual(front.ends()[0].output, calls.CUT)
        self.assertFalse(os.path.exists(self.folder + "/ran"))

    def test_the_step_limit(self):
        with ModelServer([bash("true")]) as server:
            os.makedirs(self.folder + "/.config/mm")
            with open(self.folder + "/.config/mm/config.json", "w") as file:
                file.write('{"maxSteps": 2}')
            front, session, [outcome] = self.talk(server, "go")
            self.assertEqual(len(server.wait_requests(2)), 2)
        self.assertEqual(outcome.stop_reason, "max_turn_requests")
        self.assertEqual(front.text(), '🛑 stopped after 2 steps. Say "go on" to continue.')
        self.assertEqual(self.roles(session)[-1], "assistant")

    def test_unreadable_call_is_tried_again_then_noted(self):
        broken = [{"status": 500, "body": {"error": {"message": "Failed to parse tool call arguments as "
                                                                "JSON: [1] x"}}}]
        with ModelServer(broken, broken, [{"text": "plain"}]) as server:
            _, _, [outcome] = self.talk(server, "go")
            first, again, noted = [request.body["messages"] for request in server.wait_requests(3)]
        self.assertIsNone(outcome.error)
        self.assertEqual(first, again)
        self.assertEqual(noted[len(first):], [{"role": "assistant", "content": "[cut]"},
                                              {"role": "user",
                                               "content": second_tries.UNREADABLE_ARGUMENTS.note}])
        with ModelServer(broken) as server:
            _, _, [outcome] = self.talk(server, "go")
            self.assertEqual(len(server.wait_requests(3)), 3)
        self.assertIn("Failed to parse tool call arguments", str(outcome.error))

    def test_a_front_end_learns_what_is_waited_for(self):
        loading = [{"status": 503, "body": {"error": {"message": "Loading model"}}}]
        with ModelServer(loading, [{"text": "Hi."}]) as server:
            front, _, _ = self.talk(server, "go")
        self.assertIn("the model is loading", [wait.doing for wait in front.waits])

    def test_unreadable_call_after_text_is_noted_at_once(self):
        error = {"data": '{"error":{"code":500,"message":"Failed to parse tool call arguments as JSON: [1] '
                         'x"}}'}
        with ModelServer([{"text": "I look. "}, error], [{"text": "Done."}]) as server:
            front, _, [outcome] = self.talk(server, "go")
            first, noted = [request.body["messages"] for request in server.wait_requests(2)]
        self.assertEqual((front.text(), outcome.error), ("I look. Done.", None))
        self.assertEqual(noted[len(first):], [{"role": "assistant", "content": "I look. "},
                                              {"role": "user",
                                               "content": second_tries.UNREADABLE_ARGUMENTS.note}])

    def test_a_question_without_any_answer_is_forgotten(self):
        with ModelServer([{"status": 400, "body": "no"}], [{"text": "yes"}]) as server:
            _, session, [failed, done] = self.talk(server, "one", "two")
            self.assertEqual(server.wait_requests(2)[1].body["messages"][1:],
                             [{"role": "user", "content": "two"}])
        self.assertIn("400", str(failed.error))
        self.assertIsNone(done.error)

    def test_what_was_done_before_a_failure_is_kept(self):
        with ModelServer([bash("echo a")], [{"text": "half"}, {"drop": True}], [{"text": "yes"}]) as server:
            _, session, [failed, done] = self.talk(server, "one", "two")
        self.assertIsNotNone(failed.error)
        self.assertEqual(self.roles(session), ["user", "assistant", "tool", "assistant", "user", "assistant"])
        self.assertEqual(session.messages[3]["content"], "half")

    def test_an_empty_answer_is_an_error(self):
        with ModelServer([{"text": ""}]) as server:
            _, session, [outcome] = self.talk(server, "go")
        self.assertIn("empty answer", str(outcome.error))
        self.assertEqual(session.messages, [])

    def test_blank_answer_is_an_empty_one(self):
        with ModelServer([{"text": " \n"}]) as server:
            _, session, [outcome] = self.talk(server, "go")
        self.assertIn("empty answer", str(outcome.error))
        self.assertEqual(session.messages, [])

    def test_reasoning_alone_is_asked_for_an_answer_once(self):
        with ModelServer([{"thought": "hmm"}], [{"text": "Done."}]) as server:
            front, session, [outcome] = self.talk(server, "go")
            first, second = [request.body["messages"] for request in server.wait_requests(2)]
        self.assertEqual(second[:len(first)], first)
        self.assertEqual(second[len(first):], [
            {"role": "assistant", "content": "[cut]", "reasoning_content": "hmm"},
            {"role": "user", "content": second_tries.ONLY_THOUGHT.note}])
        self.assertEqual((front.text(), outcome.stop_reason, outcome.stopped), ("Done.", "end_turn", False))

    def test_reasoning_returns_in_its_own_field(self):
        def thought(field, text, finish="stop"):
            return {"data": '{"choices":[{"delta":{"%s":"%s","content":"a"},"finish_reason":"%s"}]}'
                    % (field, text, finish)}

        half = [{"data": '{"choices":[{"delta":{"reasoning":"cut","content":"a"}}]}'}, {"drop": True}]
        with ModelServer(half, [thought("reasoning", "one")], [thought("reasoning_content", "two")],
                         [thought("thinking", "three")], [{"text": "<think>four</think>a"}],
                         [{"text": "b"}]) as server:
            self.talk(server, *"abcdef")
            sent = [request.body["messages"] for request in server.wait_requests(6)]
        self.assertEqual([list(message.items())[2:] for message in sent[-1]
                          if message["role"] == "assistant"],
                         [[("reasoning", "cut")], [("reasoning", "one")], [("reasoning_content", "two")],
                          [("thinking", "three")], [("thinking", "four")]])
        for before, after in zip(sent, sent[1:]):
            self.assertEqual(after[:len(before)], before)

    def test_reasoning_alone_twice_ends_the_turn(self):
        with ModelServer([{"thought": "hmm"}]) as server:
            front, session, [outcome] = self.talk(server, "go")
            self.assertEqual(len(server.wait_requests(2)), 2)
        self.assertEqual((front.text(), outcome.stopped, outcome.error),
                         (second_tries.ONLY_THOUGHT.end, True, None))

    def test_empty_answer_to_full_window_names_it(self):
        with ModelServer([{"thought": "h"}, {"usage": {"input": 3900, "output": 0}}]) as server:
            _, _, [outcome] = self.talk(server, "go", **{"model.contextWindow": 4096})
        self.assertIn("fills its context window (4096 tokens)", str(outcome.error))

    def test_cancelled_beginning_is_made_again(self):
        cancel = Cancel()
        hook = "echo >> starts; [ $(wc -l < starts) -gt 1 ] || { touch waits; sleep 60; }"
        os.makedirs(self.folder + "/.config/mm")
        with open(self.folder + "/.config/mm/config.json", "w") as file:
            json.dump({"hooks": {"sessionStart": [{"command": hook, "timeout": 60}]}}, file)
        with ModelServer([{"text": "Hi."}]) as server:
            overrides = {"model.url": server.url, "model.name": "m"}
            process = Process(config.load(self.folder, {"HOME": self.folder}, None, overrides))
            session, front = process.new_session(self.folder), Front()
            waits = os.path.join(self.folder, "waits")
            threading.Thread(target=lambda: (support.wait_until(lambda: os.path.exists(waits)), cancel.cancel()),
                             daemon=True).start()
            first = turn.run_turn(process, session, "one", front, cancel)
            self.assertEqual((first.stop_reason, session.prepared, session.tokens()), ("cancelled", None, 0))
            second = turn.run_turn(process, session, "two", front, Cancel())
        self.assertEqual((second.stop_reason, front.text()), ("end_turn", "Hi."))
        self.assertEqual(os.path.getsize(self.folder + "/starts"), 2)

    def test_cancel_ends_call_and_answers_the_rest(self):
        cancel = Cancel()
        front = Front(cancel=cancel, cancel_at=ToolStarted)
        with ModelServer([bash("sleep 30"), bash("echo never")], [{"text": "on"}]) as server:
            _, session, [outcome] = self.talk(server, "go", front=front, cancel=cancel)
        self.assertEqual(outcome.stop_reason, "cancelled")
        self.assertEqual([(event.status, event.output) for event in front.ends()],
                         [(FAILED, "[cancelled by the user]")])
        self.assertEqual([message["content"] for message in session.messages[2:]],
                         ["[cancelled by the user]", "[no result: the turn was interrupted]"])

    def test_cancel_in_stream_keeps_what_was_said(self):
        cancel = Cancel()
        front = Front(cancel=cancel, cancel_at=Text)
        with ModelServer([{"text": "half"}, {"hang": True}]) as server:
            _, session, [outcome] = self.talk(server, "go", front=front, cancel=cancel)
        self.assertEqual(outcome.stop_reason, "cancelled")
        self.assertEqual(session.messages[1], {"role": "assistant", "content": "half"})


if __name__ == "__main__":
    unittest.main()
