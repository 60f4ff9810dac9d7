"""One talk with mm: it survives the process, and what the model is sent stays the same, element by element."""

from __future__ import annotations

import json
import os
import random
import signal
import time
import unittest

from tests import support
from tests.fakes.model_server import ModelServer
from tests.support import Client, environment

TALK = (
    ("look", [[{"thought": "Hm."}, {"text": "Looking."}, {"call": {"name": "bash", "arguments": {"command": "echo one"}}}],
              [{"call": {"name": "read_file", "arguments": '{"path": "missing"}'}},
               {"call": {"name": "bash", "arguments": "{broken"}}],
              [{"text": "Looked."}, {"usage": {"input": 900, "output": 20}}]]),
    ("write", [[{"call": {"name": "write_file", "arguments": {"path": "a.txt", "content": "é\nb\n"}}}], [{"text": "Wrote."}]]),
    ("fail", [[{"status": 500, "body": "no"}]]),
    ("half", [[{"text": "half"}, {"drop": True}]]),
    ("go on", [[{"text": "Done."}]]),
)


def keeping_sessions(server):
    env = environment(MM_URL=server.url, MM_MODEL="m")
    os.makedirs(env["HOME"] + "/.config/mm")
    with open(env["HOME"] + "/.config/mm/config.json", "w") as file:
        json.dump({"sessions": {"enabled": True}}, file)
    return env


def say(editor, session, text):
    """The prompt's whole answer, result or error."""
    return editor.answer(editor.start_prompt(session, text))


class Messages(unittest.TestCase):
    def test_each_request_begins_with_the_messages_of_the_one_before(self):
        with ModelServer(*[step for _, steps in TALK for step in steps]) as server:
            with Client(env=keeping_sessions(server)) as editor:
                editor.initialize()
                session = editor.new_session()
                for question, _ in TALK:
                    say(editor, session, question)
            bodies = [request.body for request in server.wait_requests(8)]
        encoded = [[json.dumps(message) for message in body["messages"]] for body in bodies]
        for number, (before, after) in enumerate(zip(encoded, encoded[1:])):
            if before[-1] == json.dumps({"role": "user", "content": "fail"}):
                before = before[:-1]  # the question without any answer was removed
            self.assertEqual(after[:len(before)], before, "request %d" % (number + 2))
        self.assertEqual(len({json.dumps(body["tools"]) for body in bodies}), 1)

    def test_a_process_that_died_is_as_good_as_one_that_lived(self):
        bodies = []
        for dies in (False, True):
            folder = support.scratch_folder() + "/same"
            os.mkdir(folder)
            with ModelServer(*[step for _, steps in TALK for step in steps], [{"text": "end"}]) as server:
                env = keeping_sessions(server)
                editor = Client(env=env)
                with editor:
                    editor.initialize()
                    session = editor.new_session(folder)
                    for question, _ in TALK:
                        say(editor, session, question)
                    if dies:
                        editor.kill(signal.SIGKILL)
                    else:
                        say(editor, session, "last")
                if dies:
                    with Client(env=env) as editor:
                        self.assertTrue(editor.initialize()["agentCapabilities"]["loadSession"])
                        self.assertEqual(editor.request("session/load", {"sessionId": session, "cwd": folder, "mcpServers": []}), {})
                        calls = [update["toolCallId"] for update in editor.updates("tool_call")]
                        self.assertEqual(calls, ["call_1", "call_2", "call_3", "call_4"])
                        self.assertEqual(say(editor, session, "last")["result"]["usage"]["inputTokens"], 900)
                messages = server.wait_requests(9)[-1].body["messages"]
                bodies.append(json.loads(json.dumps(messages).replace(folder, "<cwd>")))
        self.assertEqual(bodies[0], bodies[1])

    @unittest.skipIf(support.SHORT, "takes as long as it takes for a turn to be saved")
    def test_a_turn_under_way_is_saved_when_it_is_long(self):
        slow = {"call": {"name": "bash", "arguments": {"command": "sleep 5.3"}}}
        with ModelServer([{"text": "Slow."}, slow], [{"hang": True}]) as server:
            env = keeping_sessions(server)
            with Client(env=env) as editor:
                editor.initialize()
                session = editor.new_session()
                editor.start_prompt(session, "go")
                server.wait_requests(2)
                editor.kill(signal.SIGKILL)
            with open("%s/.mm/sessions/%s.json" % (editor.cwd, session)) as file:
                saved = json.load(file)["messages"]
        self.assertEqual([message["role"] for message in saved], ["user", "assistant", "tool"])


    def test_a_load_behind_the_last_answer_is_not_refused(self):
        with ModelServer([{"text": "ok"}]) as server, Client(env=keeping_sessions(server)) as editor:
            editor.initialize()
            folder = support.scratch_folder()
            session = editor.new_session(folder)
            for _ in range(50):
                editor.prompt(session, "go")
                for _ in range(2):
                    editor.request("session/load", {"sessionId": session, "cwd": folder, "mcpServers": []})


class Killed(unittest.TestCase):
    def test_at_any_moment_the_file_is_whole_and_no_finished_turn_is_lost(self):
        chance = random.Random(3)
        with ModelServer([{"text": ["word "] * 3}]) as server:
            env = keeping_sessions(server)
            folder = support.scratch_folder()
            with Client(env=env) as editor:
                editor.initialize()
                session = editor.new_session(folder)
            answered = 0
            for _ in range(4 if support.SHORT else 8):
                with Client(env=env) as editor:
                    editor.initialize()
                    editor.request("session/load", {"sessionId": session, "cwd": folder, "mcpServers": []})
                    kept = len(editor.updates("user_message_chunk"))
                    self.assertGreaterEqual(kept, answered)
                    answered = kept
                    for number in range(3):
                        prompt = editor.start_prompt(session, "question")
                        if number < 2:
                            editor.finish(prompt)
                            answered += 1
                    time.sleep(chance.random() / 50)
                    editor.kill(signal.SIGKILL)
                    editor.wait()


if __name__ == "__main__":
    unittest.main()
