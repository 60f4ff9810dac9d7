"""mm as a process where the system lets it down: streams that are closed, files that vanish, threads that cannot start."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest

from tests import support
from tests.fakes.model_server import ModelServer
from tests.support import Client, environment, wait_until

INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'


def from_shell(line, *arguments, stdin=INITIALIZE):
    """Runs the shell line, in which "$@" is mm with these arguments."""
    return subprocess.run(["sh", "-c", line, "sh"] + support.mm(*arguments), input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, cwd=support.scratch_folder(), env=environment(), timeout=support.DEADLINE)


class ClosedStreams(unittest.TestCase):
    def test_a_stream_that_is_closed_at_the_start_is_the_null_device(self):
        answers = '"protocolVersion":1'
        for line, arguments, shown in (
            ('"$@" <&-', ("-acp",), ""),
            ('"$@" 2>&-', ("-acp",), answers),
            ('"$@" >&-', ("-acp",), ""),
            ('"$@" <&- >&- 2>&-', ("-acp",), ""),
            ('"$@" <&-', ("--demo", "-p", "list the files"), "bash answered"),
            ('"$@" 2>&-', ("--demo", "-p", "list the files"), "bash answered"),
            ('"$@" >&-', ("--version",), ""),
        ):
            with self.subTest(line=line, arguments=arguments):
                done = from_shell(line, *arguments)
                self.assertNotIn(b"Traceback", done.stderr)
                self.assertEqual(done.returncode, 0)
                self.assertIn(shown, done.stdout.decode())

    def test_what_is_logged_goes_into_no_file(self):
        write = {"call": {"name": "write_file", "arguments": {"path": "note", "content": "x" * 1000}}}
        with ModelServer([write], [{"text": "written"}]) as server:
            done = from_shell('"$@" 2>&- && cat note', "--url", server.url, "--model", "m", "-p", "go", stdin=b"")
        self.assertEqual(done.stdout.decode(), "written\n" + "x" * 1000)


class Vanished(unittest.TestCase):
    def test_the_folder_that_mm_is_started_in(self):
        for arguments in (("-acp",), ("-p", "hello")):
            done = from_shell('mkdir gone && cd gone && rmdir ../gone && "$@"', *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.decode(), "mm: the current folder: No such file or directory; use --cwd\n")

    def test_the_log_of_a_command_that_is_cancelled(self):
        folder = support.scratch_folder()
        command = "head -c 2000000 /dev/zero; until rm $TMPDIR/mm-*/*.log; do sleep 0.01; done 2>/dev/null; touch gone; sleep 60"
        with ModelServer([{"call": {"name": "bash", "arguments": {"command": command}}}]) as server:
            with Client("--url", server.url, "--model", "m", env=environment(TMPDIR=folder)) as editor:
                editor.initialize()
                session = editor.new_session()
                prompt = editor.start_prompt(session, "go")
                wait_until(lambda: os.path.exists(editor.cwd + "/gone"))
                editor.cancel(session)
                self.assertEqual(editor.finish(prompt), {"stopReason": "cancelled"})


@unittest.skipUnless(sys.platform == "linux", "needs prlimit and /proc")
class NoMoreThreads(unittest.TestCase):
    def test_requests_are_refused_and_the_line_goes_on_afterwards(self):
        import resource

        config = os.path.join(support.scratch_folder(), "config.json")
        with open(config, "w") as file:
            file.write('{"sessions": {"enabled": true}}')
        options = "--url", "--model", "m", "--config", config
        with ModelServer([{"hang": True}]) as server, Client(options[0], server.url, *options[1:]) as editor:
            editor.initialize()
            session = editor.new_session()
            running = editor.start_prompt(session, "one")
            server.wait_requests(1)
            pid = editor.process.pid
            with open("/proc/%d/statm" % pid) as file:
                size = int(file.read().split()[0]) * resource.getpagesize()
            limits = resource.prlimit(pid, resource.RLIMIT_AS)
            # A thread's stack has no room left. Stacks of threads that have ended are used again, so some may start.
            resource.prlimit(pid, resource.RLIMIT_AS, (size + (7 << 20), limits[1]))
            more = [editor.start_prompt(session, "more") for _ in range(30)]
            refused = editor.message(lambda message: "error" in message)
            load = editor.start("session/load", {"sessionId": "other", "cwd": editor.cwd, "mcpServers": []})
            not_loaded = editor.answer(load)
            lost = editor.answer(editor.start_prompt("other", "go"))
            resource.prlimit(pid, resource.RLIMIT_AS, limits)
            self.assertIn(refused["id"], more)
            self.assertEqual(refused["error"]["message"], "Internal error: the system lets mm start no more threads")
            self.assertEqual(not_loaded["error"]["message"], refused["error"]["message"])
            self.assertIn("unknown session", lost["error"]["message"])
            editor.request("authenticate", {})  # all of them have been read
            editor.cancel(session)
            for prompt in [running] + more:
                editor.answer(prompt)
            server.script([{"text": "still here"}])
            self.assertEqual(editor.prompt(session, "and now?")["stopReason"], "end_turn")


if __name__ == "__main__":
    unittest.main()
