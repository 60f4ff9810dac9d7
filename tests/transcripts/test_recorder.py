"""The recorder: a live session of the real mm gives a transcript that replays the same and holds nothing
secret.
"""

from __future__ import annotations

import io
import json
import os
import signal
import unittest

from mm.errors import UserError
from mm.config import config
from mm.transcripts import player, transcript
from mm.transcripts.recorder import Recorder
from tests import support

SECRET = "tok-en-1234567"
ID = "20260916-101530-4f2a9c1e"


def scratch_file() -> str:
    return os.path.join(support.scratch_folder(), "recorded.txt")


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


class ALiveSession(unittest.TestCase):
    """The demo model behind `mm -acp --record FILE`."""

    def record(self, *arguments, secret=SECRET):
        self.path, folder = scratch_file(), support.scratch_folder()
        skill = os.path.join(folder, ".mm", "skills", "greetings")
        os.makedirs(skill)
        with open(os.path.join(skill, "SKILL.md"), "w", encoding="utf-8") as file:
            file.write("---\nname: greetings\ndescription: Greet somebody.\n---\nSay hello.\n")
        environment = support.environment(GITHUB_TOKEN=secret, PWD=folder)  # as a shell has it
        return support.Client("--demo", "--record", self.path, *arguments, env=environment, cwd=folder)

    def assert_replays(self):
        out = io.StringIO()
        code = player.replay(self.path, support.mm(), out)
        self.assertEqual(code, 0, out.getvalue())

    def test_replays_the_same(self):
        with self.record("--no-yolo") as client:
            client.initialize()
            session = client.new_session()
            client.prompt(session, "list the files")
            client.prompt(session, "write: notes.md = remember <cwd> and %s/x" % client.cwd)
            client.permission = support.reject
            client.prompt(session, "edit: notes.md = remember -> forget")
            client.permission = support.allow
            client.prompt(session, "read: %s/notes.md" % client.cwd)
            client.prompt(session, "think: about <id> and %s" % SECRET)
            client.answer(client.start_prompt(session, "fail: 400"))
            client.close()
        self.assert_replays()
        text = read(self.path)
        self.assertNotIn(SECRET, text)
        self.assertNotIn(client.cwd, text)
        self.assertNotIn(session, text)
        self.assertIn('# config: {"model":{"contextWindow":32768},"yolo":false}', text)
        self.assertIn("\n# session\n", text)
        self.assertIn("\n> prompt: list the files\n", text)

    def test_replays_the_same_after_cancels(self):
        with self.record() as client:
            session = client.new_session()
            streaming = client.start_prompt(session, "slow: 200")
            client.wait_for(lambda: client.text().count(" ") > 5)
            client.cancel(session)
            self.assertEqual(client.finish(streaming)["stopReason"], "cancelled")
            running = client.start_prompt(session, "run: sleep 20")
            client.update("tool_call_update", status="in_progress")
            client.cancel(session)
            self.assertEqual(client.finish(running)["stopReason"], "cancelled")
            client.prompt(session, "hello")
            client.close()
        self.assert_replays()

    def test_replays_two_sessions_in_two_folders(self):
        with self.record() as client:
            elsewhere = support.scratch_folder()
            below = os.path.join(client.cwd, "below")
            os.mkdir(below)
            for session in [client.new_session(folder) for folder in (None, elsewhere, below)]:
                client.prompt(session, "run: pwd")
            client.close()
        self.assert_replays()
        self.assertNotIn(elsewhere, read(self.path))

    def test_a_killed_process_leaves_what_happened(self):
        with self.record() as client:
            session = client.new_session()
            client.start_prompt(session, "slow: 200")
            client.wait_for(lambda: client.text().count(" ") > 5)
            seen = client.text().split()
            client.kill(signal.SIGKILL)
            client.wait()
        lines = transcript.parse(read(self.path))
        texts = [line.value["params"]["update"]["content"]["text"] for line in lines
                 if "agent_message_chunk" in line.text]
        # A line is sent first and then told to the recorder: the last one may be missing.
        self.assertEqual("".join(texts).split()[:len(seen) - 1], seen[:-1])

    @unittest.skipIf(os.name == "nt", "needs a shell's ulimit")
    def test_a_full_disk_ends_the_recording_and_not_the_session(self):
        self.path = scratch_file()
        command = ["bash", "-c", 'ulimit -f 2; exec "$@"', "bash"] + support.mm("-acp", "--demo", "--record",
                                                                                self.path)
        with support.Client(command=command) as client:
            session = client.new_session()
            self.assertEqual(client.prompt(session, "hello")["stopReason"], "end_turn")
            self.assertEqual(client.prompt(session, "hello")["stopReason"], "end_turn")
            client.close()
        self.assertEqual(client.stderr.count("mm: recording stopped: "), 1)
        self.assertLessEqual(os.path.getsize(self.path), 2048)

    def test_the_command_line_says_why_a_file_cannot_be_written(self):
        precious = scratch_file()
        with open(precious, "w", encoding="utf-8") as file:
            file.write("my notes\n")
        for path, told in ((precious, "the file exists and is not a recording of mm"),
                           ("/no/such/folder/x", "No such file or directory")):
            with self.subTest(path):
                done = support.run("-acp", "--record", path)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr, "mm: --record %s: %s\n" % (path, told))
        self.assertEqual(read(precious), "my notes\n")


class TheLines(unittest.TestCase):
    """What is told in, what stands in the file: one recorder, no mm."""

    def record(self, tell, settings=None) -> list:
        path = scratch_file()
        recorder = Recorder(path, "/", settings, environ={"A_TOKEN": SECRET})
        tell(recorder)
        recorder.close()
        transcript.parse(read(path))
        return read(path).splitlines()[2:]

    def test_lines_of_the_protocol_turn_round(self):
        def tell(recorder):
            recorder.trace("<", b'{"id":1, "x":"as it came"}')
            recorder.trace("<", b"no json")
            recorder.trace(">", b'{"id":1,"result":{"agentInfo":{"version":"v0.1.0"}}}\n')
            recorder.stderr("a line")

        self.assertEqual(self.record(tell), [
            '> {"id":1, "x":"as it came"}', "> no json",
            '< {"id":1,"result":{"agentInfo":{"version":"<any>"}}}', "! a line"])

    def test_what_servers_are_given_is_secret(self):
        def tell(recorder):
            recorder.trace("<", json.dumps({"method": "session/new",
                                            "params": {"cwd": "relative", "mcpServers": [
                {"env": [{"name": "X", "value": "abcdef"}, {"name": "Z", "value": "xyz"}]},
                {"headers": [{"name": "Y", "value": "ghijkl"}]}]}}).encode())
            recorder.stderr("server said abcdef ghijkl")

        text = "\n".join(self.record(tell))
        self.assertNotIn("abcdef", text)
        self.assertNotIn("ghijkl", text)
        self.assertNotIn("xyz", text)
        self.assertIn("! server said <any> <any>", text)

    def test_what_a_program_of_the_configuration_is_given_is_secret(self):
        entries = {"a": {"command": "sh", "env": {"SERVICE_TOKEN": "abcdefgh", "MODE": "fast-mode"}}}
        for kind in ("mcp", "agents"):
            settings = config.load("/", {"HOME": "/nonexistent"}, None, {kind: entries})
            text = "\n".join(self.record(lambda recorder: recorder.stderr("it said abcdefgh in fast-mode"),
                                         settings))
            self.assertIn("! it said <any> in fast-mode", text)
            self.assertNotIn("abcdefgh", text)

    def test_a_request_is_told_by_what_is_new_in_it(self):
        system, question = {"role": "system", "content": "long"}, {"role": "user", "content": "q"}
        answer, next_question = {"role": "assistant", "content": "a"}, {"role": "user", "content": "r"}
        tools = [{"type": "function", "function": {"name": "bash", "description": "long"}}]

        def tell(recorder):
            recorder.request({"model": "m", "messages": [system, question], "tools": tools, "stream": True,
                              "temperature": 1})
            recorder.data('data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}')
            recorder.data("data: [DONE]")
            recorder.request({"model": "m", "messages": [system, question, answer, next_question],
                              "tools": tools})
            recorder.status(500, "broken")
            recorder.request({"model": "m", "messages": [system, next_question], "tools": tools})

        self.assertEqual(self.record(tell), [
            "# model: m",
            '~ {"messages":[{"role":"system"},{"role":"user","content":"q"}],"tools":[{"function":{"name":"bash"}}],"temperature":1}',
            '= text: a', "= data: [DONE]",
            '~ {"messages":[{"role":"assistant","content":"a"},{"role":"user","content":"r"}]}',
            '= {"status":500,"body":"broken"}',
            '~ {"messages":[{"role":"system"},{"role":"user","content":"r"}]}', '= {"drop":true}'])

    def test_a_secret_in_pieces_is_found(self):
        def tell(recorder):
            recorder.request({"messages": []})
            for piece in ("my tok-", "en-1234", "567!"):
                recorder.data("data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]}))
                recorder.trace(">", json.dumps({"method": "session/update",
                                                "params": {"sessionId": ID, "update": {
                    "sessionUpdate": "agent_message_chunk",
                    "content": {"type": "text", "text": piece}}}}).encode())
            recorder.data("data: [DONE]")

        lines = self.record(tell)
        self.assertEqual([line for line in lines if line.startswith("=")],
                         ['= text: my [masked]!', '= text: ""', '= text: ""', "= data: [DONE]"])
        self.assertEqual([json.loads(line[2:])["params"]["update"]["content"]["text"] for line in lines
                          if line.startswith("<")],
                         ["my <any>!"])

    def test_a_session_and_its_lines_are_short(self):
        def told(sign, *messages):
            return lambda recorder: [recorder.trace(sign, json.dumps(message).encode())
                                     for message in messages]

        new = {"jsonrpc": "2.0", "id": 1, "method": "session/new",
               "params": {"cwd": "<cwd>", "mcpServers": []}}
        folder = support.scratch_folder()
        new["params"]["cwd"] = folder

        def tell(recorder):
            told("<", new)(recorder)
            told(">", {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": ID}}, {
                "jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": ID, "update": {
                    "sessionUpdate": "available_commands_update", "availableCommands": []}}})(recorder)
            told("<", {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {
                "sessionId": ID, "prompt": [{"type": "text", "text": "hello"}]}})(recorder)
            told(">", {"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}})(recorder)

        self.assertEqual(self.record(tell), ["# session", "> prompt: hello", "< done: end_turn"])

    def test_a_secret_is_found_as_a_key_escaped_and_as_the_model(self):
        secret = 'pa"ss\\w+\u00fc-and-more'
        given = json.dumps({secret: json.dumps({"a": secret})})  # twice escaped

        def tell(recorder):
            recorder.request({"model": secret, "messages": [{"role": "assistant", "tool_calls": [
                {"function": {"name": "x", "arguments": given}}]}]})
            recorder.data("data: " + json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [
                {"index": 0, "function": {"name": "x", "arguments": given}}]}}], secret: 1}))
            recorder.status(400, json.dumps({"error": secret}))

        path = scratch_file()
        recorder = Recorder(path, "/", None, environ={"DB_PASSWORD": secret})
        tell(recorder)
        recorder.close()
        for part in ("and-more", "\\w+"):
            self.assertNotIn(part, read(path))

    def test_a_broken_stream_is_dropped_in_a_replay(self):
        def tell(recorder):
            recorder.request({"messages": []})
            recorder.data('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}')
            recorder.trace(">", b'{"id":1,"error":{"code":-32603}}')

        self.assertEqual(self.record(tell), [
            '~ {"messages":[]}', '= text: a', '= {"drop":true}', '< {"id":1,"error":{"code":-32603}}'])

    def test_a_recording_may_be_written_over(self):
        path = scratch_file()
        for _ in range(2):
            Recorder(path, "/").close()
        self.assertEqual(read(path).count("\n"), 2)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)

    def test_anything_else_may_not(self):
        with self.assertRaises(UserError):
            Recorder(__file__, "/")


if __name__ == "__main__":
    unittest.main()
