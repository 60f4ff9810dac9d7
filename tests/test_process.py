"""mm as a process: how it ends, what it leaves behind, how fast it stops, and what cannot block it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import unittest

from mm.skills.invocation import USE
from mm.tools.ask_user import NOBODY
from tests import support
from tests.fakes.model_server import ModelServer
from tests.support import Client, alive, environment, pid_in, wait_until

# A cancel is answered at once; this leaves room for a machine that is busy with other tests.
AT_ONCE = 0.5


def bash(command):
    return {"call": {"name": "bash", "arguments": {"command": command}}}


def client(server, *arguments, env=None, **options):
    return Client(*arguments, env=environment(MM_URL=server.url, MM_MODEL="m", **env or {}), **options)


def configure(home, settings):
    """Writes the user's configuration in `home`."""
    os.makedirs(home + "/.config/mm")
    with open(home + "/.config/mm/config.json", "w") as file:
        json.dump(settings, file)


class Cancels(unittest.TestCase):
    """`session/cancel` in each state: answered at once, as `cancelled`, and the session goes on."""

    def cancelled(self, steps, begun):
        """Prompts, waits until `begun(client, server, prompt)`, cancels; returns the seconds until the answer."""
        with ModelServer(steps, [{"text": "still here"}]) as server, client(server, "--no-yolo") as editor:
            editor.initialize()
            session = editor.new_session()
            prompt = editor.start_prompt(session, "go")
            begun(editor, server)
            start = time.monotonic()
            editor.cancel(session)
            answer = editor.answer(prompt)
            took = time.monotonic() - start
            self.assertEqual(answer["result"]["stopReason"], "cancelled")
            if steps[-1:] == [{"hang": True}]:
                self.assertLess(server.wait_dropped(1) - start, AT_ONCE)
            self.assertEqual(editor.prompt(session, "and now?")["stopReason"], "end_turn")
            self.assertTrue(editor.text().endswith("still here"))
            ended = {update["toolCallId"] for update in editor.updates("tool_call_update")
                     if update["status"] in ("failed", "completed")}
            self.assertEqual(ended, {update["toolCallId"] for update in editor.updates("tool_call")})
        self.assertLess(took, AT_ONCE)

    def test_before_the_servers_first_byte(self):
        self.cancelled([{"hang": True}], lambda editor, server: server.wait_requests(1))

    def test_in_the_head(self):
        self.cancelled([{"head": "half"}, {"hang": True}], lambda editor, server: server.wait_requests(1))

    def test_in_the_stream(self):
        self.cancelled([{"text": "Well"}, {"hang": True}], lambda editor, server: editor.update("agent_message_chunk"))

    def test_in_a_command(self):
        self.cancelled([bash("sleep 60")], lambda editor, server: editor.update("tool_call_update", status="in_progress"))

    def test_in_a_dialog(self):
        with ModelServer([bash("true")], [{"text": "on"}]) as server:
            with client(server, "--no-yolo", permission=lambda params: None) as editor:
                editor.initialize()
                session = editor.new_session()
                prompt = editor.start_prompt(session, "go")
                asked = editor.message(lambda message: message.get("method") == "session/request_permission")
                start = time.monotonic()
                editor.cancel(session)
                self.assertEqual(editor.finish(prompt)["stopReason"], "cancelled")
                self.assertLess(time.monotonic() - start, AT_ONCE)
                withdrawn = editor.message(lambda message: message.get("method") == "$/cancel_request")
                self.assertEqual(withdrawn["params"], {"requestId": asked["id"]})
                self.assertEqual(editor.updates("tool_call_update")[-1]["status"], "failed")

    def test_while_waiting_behind_another_session(self):
        with ModelServer([{"hang": True}]) as server, client(server) as editor:
            editor.initialize()
            first, second = editor.new_session(), editor.new_session()
            running, waiting = editor.start_prompt(first, "one"), editor.start_prompt(second, "two")
            server.wait_requests(1)
            editor.cancel(second)
            self.assertEqual(editor.finish(waiting)["stopReason"], "cancelled")
            self.assertFalse([message for message in editor.messages if message.get("id") == running])
            editor.cancel(first)
            self.assertEqual(editor.finish(running)["stopReason"], "cancelled")

    def test_one_session_ends_its_running_and_its_waiting_prompts(self):
        with ModelServer([{"hang": True}]) as server, client(server) as editor:
            editor.initialize()
            session = editor.new_session()
            prompts = [editor.start_prompt(session, "go") for _ in range(3)]
            server.wait_requests(1)
            editor.cancel(session)
            self.assertEqual([editor.finish(prompt)["stopReason"] for prompt in prompts], ["cancelled"] * 3)

    def test_without_a_turn_it_harms_nobody(self):
        with ModelServer([{"text": "fine"}]) as server, client(server) as editor:
            editor.initialize()
            session = editor.new_session()
            editor.cancel(session)
            editor.cancel("no-such-session")
            self.assertEqual(editor.prompt(session, "go")["stopReason"], "end_turn")

    def test_a_cancel_request_for_the_prompt(self):
        with ModelServer([{"hang": True}]) as server, client(server) as editor:
            editor.initialize()
            prompt = editor.start_prompt(editor.new_session(), "go")
            server.wait_requests(1)
            editor.notify("$/cancel_request", {"requestId": prompt})
            self.assertEqual(editor.finish(prompt)["stopReason"], "cancelled")

    def test_a_hundred_times_at_any_moment(self):
        with ModelServer([{"text": ["a"] * 5}, bash("echo b")], [{"text": ["c"] * 5}]) as server, client(server) as editor:
            editor.initialize()
            session = editor.new_session()
            for number in range(20 if support.SHORT else 100):
                prompt = editor.start_prompt(session, "go")
                time.sleep(number % 20 / 1000)
                editor.cancel(session)
                self.assertIn(editor.finish(prompt)["stopReason"], ("cancelled", "end_turn"))
            self.assertNotIn("Traceback", editor.stderr)


class Endings(unittest.TestCase):
    """Whatever ends mm, what it runs ends with it, but not what a finished command left in the background."""

    def running_command(self, editor, folder):
        editor.initialize()
        editor.start_prompt(editor.new_session(folder), "go")
        return pid_in(folder + "/pid")

    def ended_by(self, end, command="echo $$ > pid; sleep 600; true", within=2.5):
        folder = support.scratch_folder()
        with ModelServer([bash(command)]) as server, client(server) as editor:
            pid = self.running_command(editor, folder)
            time.sleep(0.1)  # the guardian hears of a command a moment after its start
            end(editor)
            start = time.monotonic()
            code = editor.wait()
            self.assertLess(time.monotonic() - start, 2)
            wait_until(lambda: not support.group_alive(pid), within, "the end of the command's group")
        return code

    def test_the_end_of_stdin(self):
        self.assertEqual(self.ended_by(lambda editor: editor.process.stdin.close()), 0)

    def test_sigterm(self):
        self.assertEqual(self.ended_by(lambda editor: editor.kill(signal.SIGTERM)), 143)

    def test_sigint(self):
        self.assertEqual(self.ended_by(lambda editor: editor.kill(signal.SIGINT)), 130)

    def test_sigkill(self):
        self.ended_by(lambda editor: editor.kill(signal.SIGKILL))

    def test_sigkill_with_a_command_that_ignores_term(self):
        self.ended_by(lambda editor: editor.kill(signal.SIGKILL), "trap '' TERM; echo $$ > pid; while :; do sleep 1; done")

    def test_a_client_that_stops_reading_stdout(self):
        folder = support.scratch_folder()
        with ModelServer([{"text": ["x"]}, {"pause": 0.3}, {"text": ["y"] * 50}, bash("sleep 60")]) as server:
            read, write = os.pipe()
            process = subprocess.Popen(support.mm("-acp"), stdin=subprocess.PIPE, stdout=write, stderr=subprocess.DEVNULL,
                                       env=environment(MM_URL=server.url, MM_MODEL="m"))
            os.close(write)
            with open(read, "rb") as stdout, process:
                def ask(number, method, params):
                    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
                                        + b"\n")
                    process.stdin.flush()
                ask(1, "initialize", {"protocolVersion": 1})
                stdout.readline()
                ask(2, "session/new", {"cwd": folder, "mcpServers": []})
                session = json.loads(stdout.readline())["result"]["sessionId"]
                ask(3, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
                server.wait_requests(1)
                stdout.close()
                process.wait(10)

    def test_what_a_finished_command_left_in_the_background_lives_on(self):
        folder, pids = support.scratch_folder(), []
        with ModelServer([{"text": "ok"}]) as server:
            for number, end in enumerate((lambda editor: editor.close(), lambda editor: editor.kill())):
                server.script([bash("cd .; sleep 600 > /dev/null 2>&1 & echo $! > pid%d" % number)], [{"text": "ok"}])
                with client(server) as editor:
                    editor.initialize()
                    editor.prompt(editor.new_session(folder), "go")
                    pids.append(pid_in(folder + "/pid%d" % number))
                    end(editor)
                    editor.wait()
        time.sleep(1.5)  # the guardian would have ended them by now
        self.assertEqual([alive(pid) for pid in pids], [True, True])
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def test_nothing_is_left_of_an_idle_mm(self):
        with ModelServer([bash("true")], [{"text": "ok"}]) as server, client(server) as editor:
            editor.initialize()
            editor.prompt(editor.new_session(), "go")
            left = support.children(editor.process.pid)
            self.assertEqual(editor.close(), 0)
            wait_until(lambda: not any(alive(pid) for pid in left), 2, "the end of the guardian")

    def test_a_server_that_stays_silent_before_the_first_prompt(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = "http://127.0.0.1:%d/v1" % silent.getsockname()[1]
            with Client(env=environment(MM_URL=url)) as editor:
                editor.initialize()
                editor.new_session()
                connection, _ = silent.accept()  # mm has begun to look for its model
                with connection:
                    began = time.monotonic()
                    self.assertEqual(editor.close(), 0)
                    self.assertLess(time.monotonic() - began, 5)  # a list of models is waited for 10 s
                self.assertEqual([line.split()[0] for line in editor.stderr.splitlines()], ["mm", "[acp]", "[acp]"])

    def test_the_end_of_stdin_before_anything_was_said(self):
        with Client() as editor:
            self.assertEqual(editor.close(), 0)


class Streams(unittest.TestCase):
    def test_stderr_that_nobody_reads_does_not_hold_up_an_answer(self):
        read, write = os.pipe()
        try:
            process = subprocess.Popen(support.mm("-acp"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=write,
                                       env=environment())
            with process:
                def ask(number, method, params):
                    line = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                    process.stdin.write(json.dumps(line).encode() + b"\n")
                    process.stdin.flush()
                    while True:
                        answer = json.loads(process.stdout.readline())
                        if answer.get("id") == number:
                            return answer
                # Each logs what the client is called: 5 MB, to a pipe of 64 KiB.
                for number in range(1, 1001):
                    ask(number, "initialize", {"protocolVersion": 1, "clientInfo": {"name": "x" * 5000, "version": "1"}})
                process.stdin.close()
                self.assertEqual(process.wait(10), 0)
        finally:
            os.close(read)
            os.close(write)

    def test_nothing_but_the_protocol_reaches_stdout(self):
        script = "echo out; echo err >&2; echo tty > /dev/tty; cat; exit 0"
        with ModelServer([bash(script)], [{"text": "ok"}]) as server, client(server) as editor:
            editor.initialize()
            editor.prompt(editor.new_session(), "go")
            self.assertFalse([message for message in editor.messages if "broken" in message])

    def test_no_line_of_an_answer_is_longer_than_a_client_can_bear(self):
        home = support.scratch_folder()
        configure(home, {"model": {"maxReasoning": 0}, "loop": {"enabled": False}})
        with ModelServer([{"thought": '"' * 9000 + "t" * 90_000}, {"text": "\\" * 9000 + "é" * 90_000}]) as server:
            with client(server, env={"HOME": home}) as editor:
                editor.initialize()
                editor.prompt(editor.new_session(), "go")
                for kind in ("agent_thought_chunk", "agent_message_chunk"):
                    chunks = editor.updates(kind)
                    self.assertEqual(sum(len(chunk["content"]["text"]) for chunk in chunks), 99_000)
                    self.assertLess(max(len(json.dumps(chunk).encode()) for chunk in chunks), 60_000)

    def test_a_prompt_of_five_megabytes_in_one_line(self):
        with ModelServer([{"text": "long"}]) as server, client(server) as editor:
            editor.initialize()
            self.assertEqual(editor.prompt(editor.new_session(), "x" * 5_000_000)["stopReason"], "end_turn")
            self.assertEqual(len(server.wait_requests(1)[0].body["messages"][1]["content"]), 5_000_000)

    def test_everything_in_one_write(self):
        with ModelServer([{"text": "hi"}]) as server, client(server) as editor:
            lines = [
                {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
                {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": editor.cwd, "mcpServers": []}},
                {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId": "x", "prompt": []}},
            ]
            editor.send_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
            editor.answer(3)
            self.assertEqual([message["id"] for message in editor.messages if "id" in message], [1, 2, 3])

    def test_without_home_or_language_in_the_environment(self):
        with ModelServer([{"text": "é漢🙂"}]) as server:
            bare = {"PATH": os.environ["PATH"], "MM_URL": server.url, "MM_MODEL": "m"}
            with Client(env=bare) as editor:
                editor.initialize()
                editor.prompt(editor.new_session(), "é漢🙂")
                self.assertEqual(editor.text(), "é漢🙂")
                self.assertEqual(server.wait_requests(1)[0].body["messages"][1]["content"], "é漢🙂")

    def test_the_trace_holds_every_line_and_no_secret(self):
        path = support.scratch_folder() + "/trace"
        with Client(env=environment(MM_TRACE=path)) as editor:
            editor.initialize()
            editor.send_bytes(b"broken\n")
            editor.request("session/new", {"cwd": editor.cwd, "mcpServers": [
                {"name": "m", "command": "c", "args": [], "env": [{"name": "API_KEY", "value": "hush-hush"}]}]})
            editor.close()
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertRegex(text, r'(?m)^\d\d:\d\d:\d\d\.\d{3} < \{"jsonrpc":"2.0","id":1,"method":"initialize"')
        self.assertRegex(text, r'(?m)^\S+ > \{"jsonrpc":"2.0","id":1,"result"')
        self.assertIn(" < broken\n", text)
        self.assertNotIn("hush-hush", text)

    def test_the_trace_masks_what_a_recording_masks(self):
        path = support.scratch_folder() + "/trace"
        secrets = {"MM_API_KEY": "hunter2hunter2", "DB_PASSWORD": "swordfish-9"}
        command = {"call": {"name": "bash", "arguments": {"command": "echo $DB_PASSWORD"}}}
        with ModelServer([command], [{"text": ["it is hunter2", "hunt", "er2!"]}]) as server:
            with Client("--url", server.url, "--model", "m", env=environment(MM_TRACE=path, **secrets)) as editor:
                editor.initialize()
                editor.prompt(editor.new_session(), "go")
                self.assertEqual(editor.text(), "it is hunter2hunter2!")
                editor.close()
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn('"it is [masked]!"', text)
        for piece in ("hunter2", "er2!", "swordfish"):
            self.assertNotIn(piece, text)


class Once(unittest.TestCase):
    """`-p`: the answer alone on stdout, the exit codes, Ctrl-C."""

    def run_mm(self, *arguments, **options):
        return support.run("--demo", *arguments, **options)

    def test_the_answer_alone_is_on_stdout(self):
        folder = support.scratch_folder()
        with open(folder + "/a.txt", "w"):
            pass
        done = self.run_mm("-p", "list the files", cwd=folder)
        self.assertEqual((done.returncode, done.stdout), (0, "bash answered: a.txt\n"))
        self.assertEqual(done.stderr, "$ ls\na.txt\n")

    def test_what_is_piped_in_is_added(self):
        with ModelServer([{"text": "ok"}]) as server:
            env = environment(MM_URL=server.url, MM_MODEL="m")
            support.run("-p", "explain", stdin=b"some ``` log\n", env=env)
            support.run("-p", "", stdin=b"alone", env=env)
            first, second = [request.body["messages"][1]["content"] for request in server.wait_requests(2)]
        self.assertEqual(first, "explain\n\n````\nsome ``` log\n````")
        self.assertEqual(second, "alone")

    def test_nobody_is_asked(self):
        done = self.run_mm("--no-yolo", "-p", "run: touch ran")
        self.assertIn("mm: bash needs a permission and there is nobody to ask (use --yolo)", done.stderr)
        self.assertIn("[not run: nobody can be asked]", done.stdout)

    def test_questions_are_not_offered_and_one_is_answered_by_a_word_that_nobody_is_there(self):
        with ModelServer([{"call": {"name": "ask_user", "arguments": {"questions": ["Which?"]}}}], [{"text": "ok"}]) as server:
            done = support.run("-p", "go", env=environment(MM_URL=server.url, MM_MODEL="m"))
            first, second = [request.body for request in server.wait_requests(2)]
        self.assertNotIn("ask_user", [tool["function"]["name"] for tool in first["tools"]])
        self.assertEqual(second["messages"][-1]["content"], NOBODY)
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"))

    def test_the_first_request_with_everything_offered_is_small(self):
        home, folder = support.scratch_folder(), support.scratch_folder()
        os.makedirs(home + "/.config/mm")
        with open(home + "/.config/mm/config.json", "w") as file:
            json.dump({"agents": {"reviewer": {"command": "sh", "description": "reviews changes"}},
                       "lsp": {"toy": {"command": "sh", "extensions": [".toy"]}}}, file)
        with open(folder + "/a.toy", "w"):
            pass
        with ModelServer([{"text": "ok"}]) as server:
            env = environment(MM_URL=server.url, MM_MODEL="m", HOME=home)
            with Client("-acp", env=env, cwd=folder) as client:
                client.initialize()
                client.prompt(client.new_session(folder), "hello")
            request = server.wait_requests(1)[0]
        names = [tool["function"]["name"] for tool in request.body["tools"]]
        self.assertEqual(names, ["bash", "edit_file", "read_file", "read_skill", "write_file", "fetch_content", "plan", "ask_user",
                                 "ask_agent", "lsp"])
        self.assertLessEqual(int(request.headers["content-length"]), 8192, "bytes")

    def test_exit_codes_and_one_line_errors(self):
        nobody = "http://127.0.0.1:1/v1"
        for arguments, code, line in (
            (("-p", ""), 2, "mm: there is no question: give one after -p or on stdin"),
            (("--demo", "-p", "fail: 500"), 1, "mm: "),
            (("--url", nobody, "-p", "hi"), 1, "mm: no model server at %s (connection refused)" % nobody),
            (("--cwd", "/no/such", "-p", "hi"), 2, "mm: --cwd /no/such: no such folder"),
            (("--bogus",), 2, "mm: unknown option --bogus"),
            (("--verison",), 2, "mm: unknown option --verison (did you mean --version?)"),
            (("-p",), 2, "mm: there is no question: give one after -p or on stdin"),
            (("--url",), 2, "mm: --url needs a value: --url URL"),
            (("--color", "blue", "-p", "x"), 2, "mm: --color must be one of always, never, auto, got 'blue'"),
            (("-acp", "--version"), 2, "mm: --version cannot be combined with -acp"),
            (("-acp", "-p", "hi"), 2, "mm: -p cannot be combined with -acp"),
            (("--replay", "x", "-p", "hi"), 2, "mm: -p cannot be combined with --replay"),
            (("-acp", "list", "the"), 2, "mm: -acp takes no question, got 'list'"),
            (("-c", "-acp"), 2, "mm: -c goes with the chat or -p alone"),
            (("--cwd", "/dev/null", "-p", "hi"), 2, "mm: --cwd /dev/null: is not a folder"),
            (("--replay", "nosuch"), 2, "mm: nosuch: No such file or directory"),
        ):
            with self.subTest(arguments):
                done = support.run(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertTrue(done.stderr.startswith(line), done.stderr)

    def test_a_turn_that_is_broken_off_has_an_exit_code_of_its_own(self):
        with ModelServer([bash("echo round and round")]) as server:
            done = support.run("-p", "go", env=environment(MM_URL=server.url, MM_MODEL="m"))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stdout, "🔁 stopped: bash repeated with the same result. Tell me how to go on.\n")

    def test_skills_are_called_and_hooks_hear_of_the_end(self):
        home = support.scratch_folder()
        configure(home, {"hooks": {"sessionEnd": [{"command": "echo $MM_EVENT >>" + home + "/ends"}]}})
        with ModelServer([{"text": "ok"}]) as server:
            for prompt in ("$bg-jobs make", "/bg-jobs make"):
                support.run("-p", prompt, env=environment(MM_URL=server.url, MM_MODEL="m", HOME=home))
            sent = [request.body["messages"][1]["content"] for request in server.wait_requests(2)]
        self.assertEqual(sent, ["$bg-jobs make\n" + USE % "bg-jobs"] * 2)
        with open(home + "/ends") as file:
            self.assertEqual(file.read(), "sessionEnd\n" * 2)

    def test_ctrl_c_cancels_and_says_so_by_its_exit_code(self):
        folder = support.scratch_folder()
        process = subprocess.Popen(support.mm("--demo", "-p", "run: echo $$ > pid; sleep 600; true"), cwd=folder,
                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
        with process:
            pid = pid_in(folder + "/pid")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(5), 130)
        wait_until(lambda: not support.group_alive(pid), 3, "the end of the command")

    def test_a_reader_that_goes_away(self):
        process = subprocess.Popen(support.mm("--demo", "-p", "hello"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment())
        process.stdout.close()
        with process:
            self.assertEqual(process.stderr.read(), b"")
            self.assertEqual(process.wait(10), 141)

    def test_mm_alone_prints_its_usage(self):
        done = support.run()
        self.assertEqual(done.returncode, 2)
        self.assertTrue(done.stderr.startswith("usage: mm"))

    def test_the_module_runs_from_a_clone(self):
        done = subprocess.run([sys.executable, "-m", "mm", "--version"], cwd=support.PROJECT, stdout=subprocess.PIPE)
        self.assertEqual(done.stdout, b"v0.1.0\n")


if __name__ == "__main__":
    unittest.main()
