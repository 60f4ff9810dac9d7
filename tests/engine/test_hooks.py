"""Hooks: real programs that are told, object, fail, hang and are cancelled; and what their ends mean, as a
table.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

from mm import log
from mm.config import config
from mm.cancel import Cancel, Cancelled
from mm.engine import hook_program, hooks
from mm.engine.hook_program import Ended, HookFailed, read_answer
from mm.engine.second_tries import SENT_ON_BY_HOOK
from mm.engine.hooks import NOTHING, Hooks, Verdict
from mm.tools import bash
from mm.tools.tool import ToolError
from mm.tools.context import Context, Seen
from mm.wire import child
from tests import support
from tests.support import DEADLINE, PROJECT, group_alive, wait_until

MIB = 1024 * 1024


def tearDownModule():
    child.end_all()


def denied(reason, context=""):
    return Verdict(True, reason, context, None)


def context(text):
    return Verdict(False, "", text, None)


class HookTest(unittest.TestCase):
    """A session's folder, the user's configuration in a home of its own, and what is logged."""

    def setUp(self):
        self.home, self.folder = support.scratch_folder(), support.scratch_folder()
        self.declared = os.path.join(self.home, ".config", "mm")
        os.makedirs(self.declared)
        self.logged = []
        log.tap = self.logged.append
        self.addCleanup(setattr, log, "tap", None)

    def hooks(self, event="preToolCall", *declared, **settings):
        """The Hooks with these declared for `event`: command lines, or dicts."""
        entries = [{"command": hook} if isinstance(hook, str) else hook for hook in declared]
        return self.configured({"hooks": {event: entries}}, **settings)

    def configured(self, document, **settings):
        self.write(os.path.join(self.declared, "config.json"), json.dumps(document))
        loaded = config.load(self.folder, {"HOME": self.home}, None, settings)
        return Hooks(loaded, "20260916-101530-4f2a9c1e", self.folder)

    def write(self, path, text, executable=False):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if executable:
            os.chmod(path, 0o755)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def lines(self, name):
        return self.read(name).splitlines()

    def call(self, subject, command="ls", tool="bash", cancel=None, **fields):
        return subject.run("preToolCall", cancel or Cancel(), tool, {"command": command}, **fields)


class WithoutHooks(unittest.TestCase):
    def test_nothing_is_imported_and_no_thread_started(self):
        program = ("import sys, threading\n"
                   "from mm.config import config\nfrom mm.cancel import Cancel\nfrom mm.engine.hooks import "
                   "NOTHING, Hooks\n"
                   "subject = Hooks(config.load('/', {}), 'id', '/')\n"
                   "assert not subject.present('preToolCall')\n"
                   "assert subject.run('preToolCall', Cancel(), 'bash', {}) == NOTHING\n"
                   "assert threading.active_count() == 1\n"
                   "print([name for name in ('subprocess', 'signal', 'mm.wire.child', 'mm.tools.bash', 'mm.engine.hook_program') if "
                   "name in sys.modules])")
        done = subprocess.run([sys.executable, "-S", "-c", program], cwd=PROJECT, env=support.environment(),
                              stdout=subprocess.PIPE)
        self.assertEqual(done.stdout, b"[]\n")


class WhatItIsGiven(HookTest):
    def test_the_call_on_stdin(self):
        subject = self.hooks("preToolCall", "cat > seen")
        self.assertEqual(self.call(subject, "echo \u00e9\ud800", call_id="call_7"), NOTHING)
        text = self.read("seen")
        self.assertEqual(text.count("\n"), 1)
        self.assertEqual(json.loads(text), {
            "event": "preToolCall", "sessionId": "20260916-101530-4f2a9c1e", "cwd": self.folder,
            "transcript": None, "version": 1, "tool": "bash", "input": {"command": "echo \u00e9\ufffd"},
            "callId": "call_7"})

    def test_the_fields_of_an_event_and_the_transcript(self):
        subject = self.hooks("postToolCall", "cat > seen")
        subject.transcript = "/sessions/x.json"
        subject.run("postToolCall", Cancel(), "bash", {"command": "ls"}, call_id="call_1",
                    output="x" * 50_000 + "end", status="completed", duration_ms=12)
        seen = json.loads(self.read("seen"))
        self.assertEqual((seen["transcript"], seen["status"], seen["durationMs"]),
                         ("/sessions/x.json", "completed", 12))
        self.assertEqual("x" * 50_000 + "end", seen["output"])  # what the model reads, a guard reads

    def environment(self, event, tool=None, arguments=None):
        self.hooks(event, "env > seen").run(event, Cancel(), tool, arguments)
        seen = dict(line.split("=", 1) for line in self.lines("seen") if line.startswith("MM_"))
        return {name: value for name, value in seen.items() if name in hook_program.VARIABLES}

    def test_the_environment(self):
        os.symlink("/etc", os.path.join(self.folder, "link"))
        common = {"MM_SESSION": "20260916-101530-4f2a9c1e", "MM_CWD": self.folder}
        for event, tool, arguments, expected in (
                ("userPrompt", None, None, {}),
                ("preToolCall", "bash", {"command": "echo \u00e9"},
                 {"MM_TOOL": "bash", "MM_COMMAND": "echo \u00e9"}),
                ("preToolCall", "bash", {"command": "a\0b\ud800"},
                 {"MM_TOOL": "bash", "MM_COMMAND": "a\ufffdb\ufffd"}),
                ("preToolCall", "bash", {}, {"MM_TOOL": "bash"}),
                ("preToolCall", "plan", {"path": "x"}, {"MM_TOOL": "plan"}),
                ("postToolCall", "edit_file", {"path": "a/../b"},
                 {"MM_TOOL": "edit_file", "MM_PATH": os.path.join(self.folder, "b")}),
                ("preToolCall", "write_file", {"path": "link/x"},
                 {"MM_TOOL": "write_file", "MM_PATH": os.path.realpath("/etc/x")}),
                ("preToolCall", "read_file", {"path": ""}, {"MM_TOOL": "read_file"})):
            with self.subTest(event, tool=tool):
                self.assertEqual(self.environment(event, tool, arguments),
                                 dict(common, MM_EVENT=event, **expected))

    def test_variables_of_an_outer_mm_are_dropped(self):
        os.environ["MM_COMMAND"] = "outer"
        self.addCleanup(os.environ.pop, "MM_COMMAND")
        self.assertNotIn("MM_COMMAND", self.environment("userPrompt"))

    def test_its_folder_is_the_sessions(self):
        self.call(self.hooks("preToolCall", "pwd > seen"))
        self.assertEqual(self.read("seen"), self.folder + "\n")

    def test_ten_megabytes_that_it_does_not_read(self):
        subject = self.hooks("preToolCall", "exit 0")
        self.assertEqual(self.call(subject, "x" * 100_000, content="x" * 10 * MIB), NOTHING)
        self.assertEqual(self.logged, [])

    def test_ten_megabytes_that_it_reads(self):
        self.call(self.hooks("preToolCall", "wc -c > seen"), content="x" * 10 * MIB)
        self.assertGreater(int(self.read("seen")), 10 * MIB)


class Which(HookTest):
    def test_match_is_for_the_whole_name(self):
        for match, tool, runs in (("bash", "bash", True), ("bash", "bash_x", False),
                                  ("bash|write_file", "write_file", True),
                                  ("mcp__.*", "mcp__git__push", True), ("ash", "bash", False),
                                  (None, "plan", True)):
            with self.subTest(match, tool=tool):
                hook = {"command": "exit 2"}
                if match:
                    hook["match"] = match
                self.assertEqual(self.call(self.hooks("preToolCall", hook), tool=tool).denied, runs)

    def test_present(self):
        subject = self.hooks("preToolCall", "true")
        self.assertEqual([subject.present(event) for event in ("preToolCall", "postToolCall")], [True, False])

    def test_they_run_in_their_order_until_one_denies(self):
        subject = self.hooks("preToolCall", "echo 1 >> seen", "echo 2 >> seen; echo no >&2; exit 2",
                             "echo 3 >> seen")
        self.assertEqual(self.call(subject), denied("no"))
        self.assertEqual(self.lines("seen"), ["1", "2"])

    def test_denial_has_no_effect_for_other_events(self):
        for event in ("sessionStart", "preCompact", "sessionEnd"):
            subject = self.hooks(event, "echo 1 >> seen; exit 2",
                                 {"command": "echo 2 >> seen; exit 1", "onFailure": "deny"}, "echo 3 >> seen")
            self.assertEqual(subject.run(event, Cancel()), NOTHING)
        self.assertEqual(self.lines("seen"), ["1", "2", "3"] * 3)

    def test_replaced_arguments_are_what_the_next_hook_sees(self):
        first = """echo '{"input": {"command": "ls -l"}}'"""
        subject = self.hooks("preToolCall", first, 'cat > seen; echo "$MM_COMMAND" >> seen')
        self.assertEqual(self.call(subject), Verdict(False, "", "", {"command": "ls -l"}))
        message, command = self.lines("seen")
        self.assertEqual((json.loads(message)["input"], command), ({"command": "ls -l"}, "ls -l"))

    def test_last_replacement_wins_unless_denied(self):
        replace = """echo '{"input": {"command": "%s"}}'"""
        self.assertEqual(self.call(self.hooks("preToolCall", replace % 1, replace % 2)).arguments,
                         {"command": "2"})
        self.assertEqual(self.call(self.hooks("preToolCall", replace % 1, "exit 2")), denied("denied"))
        self.assertEqual(self.hooks("turnEnd", replace % 1).run("turnEnd", Cancel()), NOTHING)

    def test_contexts_add_up_to_a_limit(self):
        for event in ("sessionStart", "userPrompt"):
            self.assertEqual(self.hooks(event, "echo one", "echo; echo two", "true").run(event, Cancel()),
                             context("one\ntwo"))
        long = self.hooks("sessionStart", "printf %03000d 7", "printf %03000d 7").run("sessionStart",
                                                                                      Cancel())
        self.assertEqual((len(long.context), long.context[-1]), (4001, "…"))

    def test_context_may_come_with_a_denial(self):
        subject = self.hooks("postToolCall", """echo '{"context": "a"}'""",
                             """echo '{"decision": "deny", "reason": "secret", "context": "b"}'""")
        self.assertEqual(subject.run("postToolCall", Cancel(), "bash", {}, output="x"),
                         denied("secret", "a\nb"))

    def test_context_is_ignored_for_other_events(self):
        self.assertEqual(self.call(self.hooks("preToolCall", """echo '{"context": "a"}'""")), NOTHING)


# (event, Ended, what it means: a Verdict, or the text of the failure)
ANSWERS = (
    ("preToolCall", Ended(0, b"", b"", False), NOTHING),
    ("preToolCall", Ended(0, b" \n", b"some noise", False), NOTHING),
    ("preToolCall", Ended(0, b"{}", b"", False), NOTHING),
    ("preToolCall", Ended(0, b'\xef\xbb\xbf{"decision": "allow", "reason": "why not"}\r\n', b"", False),
     NOTHING),
    ("preToolCall", Ended(0, b'{"decision": "deny", "reason": " no \\u001b[31mred "}', b"", False),
     denied("no red")),
    ("preToolCall", Ended(0, b'{"decision": "deny"}', b"", False), denied("denied")),
    ("preToolCall", Ended(0, b'{"decision": "deny", "reason": null, "input": null}', b"", False),
     denied("denied")),
    ("preToolCall", Ended(0, b'{"input": {"path": "x"}}', b"", False), Verdict(False, "", "", {"path": "x"})),
    ("turnEnd", Ended(0, b'{"decision": "deny", "reason": "a\\nb"}', b"", False), denied("a\nb")),
    ("turnEnd", Ended(0, json.dumps({"decision": "deny", "reason": "x" * 5000}).encode(), b"", False),
     denied("x" * 4000 + "…")),
    # a guard that says something else than it should must not open the door
    ("preToolCall", Ended(0, b"fine", b"", False), "stdout is not a JSON object"),
    ("preToolCall", Ended(0, b"[]", b"", False), "stdout is not a JSON object"),
    ("preToolCall", Ended(0, b'"deny"', b"", False), "stdout is not a JSON object"),
    ("preToolCall", Ended(0, b'{"decision": "deny"', b"", False), "stdout is not a JSON object"),
    ("preToolCall", Ended(0, b'profile loaded\n{"decision": "deny"}', b"", False),
     "stdout is not a JSON object"),
    ("preToolCall", Ended(0, b'{"input": {"limit": NaN}}', b"", False), "stdout is not a JSON object"),
    ("preToolCall", Ended(0, b'{"input": ' + b"[" * 200_000, b"", False), "stdout is not a JSON object"),
    ("preToolCall", Ended(0, b'{"decision": "block"}', b"", False), '"decision" must be "deny" or "allow"'),
    ("preToolCall", Ended(0, b'{"decision": ["deny"]}', b"", False), '"decision" must be "deny" or "allow"'),
    ("preToolCall", Ended(0, b'{"decison": "deny"}', b"", False), 'stdout has an unknown field "decison"'),
    ("preToolCall", Ended(0, b'{"decision": "deny", "reason": 7}', b"", False), '"reason" must be a string'),
    ("sessionStart", Ended(0, b'{"context": ["a"]}', b"", False), '"context" must be a string'),
    ("preToolCall", Ended(0, b'{"input": "ls"}', b"", False), '"input" must be an object'),
    ("preToolCall", Ended(0, b"{", b"", True), "stdout is longer than 1 MiB"),
    # text is context where there can be one
    ("sessionStart", Ended(0, b" it is \x1b[1mMonday\x1b[0m\n", b"", False), context("it is Monday")),
    ("userPrompt", Ended(0, b"42", b"", False), context("42")),
    ("userPrompt", Ended(0, b"caf\xe9", b"", False), context("caf\ufffd")),
    ("userPrompt", Ended(0, b'{"context": " a "}', b"", False), context("a")),
    ("userPrompt", Ended(0, b'{"decision": "deny", ', b"", False), "stdout is not a JSON object"),
    ("userPrompt", Ended(0, b"x", b"", True), "stdout is longer than 1 MiB"),
    # exit codes
    ("preToolCall", Ended(2, b"whatever", b" no\nno \n", True), denied("no\nno")),
    ("preToolCall", Ended(2, b"", b"", False), denied("denied")),
    ("preToolCall", Ended(2, b"", b"x" * 501, False), denied("x" * 500 + "…")),
    ("preToolCall", Ended(1, b'{"decision": "allow"}', b"\n  Traceback \nmore", False), "exit 1: Traceback"),
    ("preToolCall", Ended(3, b"", b"", False), "exit 3"),
    ("preToolCall", Ended(-9, b"", b"", False), "killed by signal 9 (SIGKILL)"),
    ("preToolCall", Ended(None, b'{"decision": "allow"}', b"", False), "timed out after 10 s"),
)


class WhatItSays(unittest.TestCase):
    def test_ends_and_their_meaning(self):
        for event, ended, meaning in ANSWERS:
            with self.subTest(event, ended=(ended.code, ended.stdout[:60], ended.stderr[:60])):
                try:
                    self.assertEqual(Verdict(**read_answer(event, ended, 10)), meaning)
                except HookFailed as failure:
                    self.assertEqual(str(failure), meaning)


class Failures(HookTest):
    """Real ones; each with the line that is logged and what it denies."""

    def assert_fails(self, line, command, **fields):
        del self.logged[:]
        self.assertEqual(self.call(self.hooks("preToolCall", dict(command=command, **fields))),
                         denied("hook failed: " + line))
        self.assertEqual(self.logged, ["🪝 " + line])
        allowing = self.hooks("preToolCall", dict(command=command, onFailure="allow", **fields))
        self.assertEqual(self.call(allowing), NOTHING)
        self.assertEqual(self.logged, ["🪝 " + line] * 2)

    def test_an_exit(self):
        self.assert_fails("preToolCall hook echo boom >&2; echo more >&2; exit 1: exit 1: boom",
                          "echo boom >&2; echo more >&2; exit 1")

    def test_a_signal(self):
        self.assert_fails("preToolCall hook kill -9 $$: killed by signal 9 (SIGKILL)", "kill -9 $$")

    def test_no_json(self):
        self.assert_fails("preToolCall hook echo fine: stdout is not a JSON object", "echo fine")

    def test_too_much(self):
        self.assert_fails("preToolCall hook yes | head -c 5000000: stdout is longer than 1 MiB",
                          "yes | head -c 5000000")

    def test_too_slow(self):
        self.assert_fails("preToolCall hook sleep 60: timed out after 0.2 s", "sleep 60", timeout=0.2)

    def test_no_program(self):
        self.write(os.path.join(self.declared, "plain.sh"), "#!/bin/sh\n")
        self.assert_fails("preToolCall hook ./guard.sh: cannot start: No such file or directory",
                          "./guard.sh")
        self.assert_fails("preToolCall hook /no/such --x: cannot start: No such file or directory",
                          "/no/such --x")
        self.assert_fails("preToolCall hook ./plain.sh: cannot start: Permission denied", "./plain.sh")
        self.assert_fails("preToolCall hook ../mm/: cannot start: Is a directory", "../mm/")

    def test_a_program_that_lacks_another_has_started(self):
        self.write(os.path.join(self.declared, "guard.sh"), "#!/bin/sh\necho no jq >&2; exit 127\n",
                   executable=True)
        self.assert_fails("preToolCall hook ./guard.sh: exit 127: no jq", "./guard.sh")

    def test_no_length_walks_round_a_guard(self):
        guard = {"command": """case "$MM_COMMAND" in *forbidden) exit 2; esac; cat > seen""",
                 "onFailure": "allow"}
        subject = self.hooks("preToolCall", guard)
        for length in (bash.COMMAND_LIMIT - 1, bash.COMMAND_LIMIT):
            with self.subTest(length):
                self.assertTrue(self.call(subject, "forbidden".rjust(length)).denied)
        # it is cut in the variable, and bash will not run it
        self.call(subject, "forbidden".rjust(140 * 1024))
        self.assertEqual(json.loads(self.read("seen"))["input"]["command"], "forbidden".rjust(140 * 1024))
        self.assertEqual(self.logged, [])
        with self.assertRaisesRegex(ToolError, "too long for the system"):
            bash.prepare({"command": "x" * (bash.COMMAND_LIMIT + 1)},
                         Context(self.folder, config.load(self.folder, {}), Cancel(), None, "call_1", 0,
                                 Seen()))

    def test_no_folder_and_no_shell(self):
        subject = self.hooks("preToolCall", "true")
        os.rmdir(self.folder)
        self.assertEqual(self.call(subject).reason, "hook failed: preToolCall hook true: cannot start: No "
                                                    "such file or directory")
        os.mkdir(self.folder)
        subject = self.hooks("preToolCall", "true", **{"bash.shell": "no-such-shell"})
        self.assertIn("cannot start: bash.shell is no-such-shell", self.call(subject).reason)

    def test_other_events_deny_only_if_configured(self):
        self.assertEqual(self.hooks("userPrompt", "exit 1").run("userPrompt", Cancel()), NOTHING)
        strict = self.hooks("userPrompt", {"command": "exit 1", "onFailure": "deny"})
        self.assertEqual(strict.run("userPrompt", Cancel()), denied("hook failed: userPrompt hook exit 1: "
                                                                    "exit 1"))
        self.assertEqual(self.logged, ["🪝 userPrompt hook exit 1: exit 1"] * 2)

    def test_session_end_waits_two_seconds_in_all(self):
        subject = self.hooks("sessionEnd", "sleep 60", "echo late > seen")
        started = time.monotonic()
        self.assertEqual(subject.run("sessionEnd", Cancel()), NOTHING)
        self.assertLess(time.monotonic() - started, 3)
        self.assertEqual(self.logged, ["🪝 sessionEnd hook sleep 60: timed out after 2 s",
                                       "🪝 sessionEnd hook echo late > seen: not run: the 2 s for sessionEnd "
                                       "are over"])
        self.assertFalse(os.path.exists(self.folder + "/seen"))


STUBBORN = "trap '' TERM; echo $$ > group; sh -c 'trap \"\" TERM; while :; do sleep 1; done' & while :; do sleep 1; done"


class TheEnd(HookTest):
    def group(self):
        group = int(wait_until(lambda: os.path.exists(self.folder + "/group") and self.read("group").strip()))
        self.addCleanup(self.kill, group)
        return group

    def kill(self, group):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_cancel_ends_group_and_wait_at_once(self):
        subject, cancel, seen = self.hooks("preToolCall", {"command": STUBBORN, "timeout": 60},
                                           "echo > next"), Cancel(), []

        def run():
            try:
                self.call(subject, cancel=cancel)
            except Cancelled:
                seen.append(time.monotonic())

        thread = threading.Thread(target=run)
        thread.start()
        group, cancelled = self.group(), time.monotonic()
        cancel.cancel()
        thread.join(DEADLINE)
        self.assertLess(seen[0] - cancelled, 0.3)
        wait_until(lambda: not group_alive(group), 2)
        self.assertFalse(os.path.exists(self.folder + "/next"))
        self.assertEqual(self.logged, [])

    def test_nothing_starts_once_the_turn_is_cancelled(self):
        cancel = Cancel()
        cancel.cancel()
        self.assertRaises(Cancelled, self.call, self.hooks("preToolCall", "echo > seen"), cancel=cancel)
        self.assertFalse(os.path.exists(self.folder + "/seen"))

    def test_the_timeout_ends_the_whole_group(self):
        started = time.monotonic()
        self.assertTrue(self.call(self.hooks("preToolCall", {"command": STUBBORN, "timeout": 0.3})).denied)
        self.assertLess(time.monotonic() - started, 2)
        group = self.group()
        wait_until(lambda: not group_alive(group), 2)

    def test_background_children_neither_delay_nor_die(self):
        subject = self.hooks("preToolCall", "echo $$ > group; sleep 60 & echo '{\"decision\": \"deny\", "
                                            "\"reason\": \"no\"}'")
        started = time.monotonic()
        self.assertEqual(self.call(subject), denied("no"))
        self.assertLess(time.monotonic() - started, 2)
        time.sleep(0.1)
        self.assertTrue(group_alive(self.group()))

    def test_no_thread_and_no_descriptor_is_left(self):
        subject = self.hooks("preToolCall", "cat >/dev/null")
        self.call(subject)  # the guardian's pipe is there to stay
        before = set(os.listdir("/dev/fd"))
        for _ in range(5):
            self.call(subject, content="x" * MIB)
        wait_until(lambda: not [thread for thread in threading.enumerate()
                                if thread.name.startswith("hook ")])
        self.assertEqual(set(os.listdir("/dev/fd")), before)


class TheProgram(HookTest):
    def test_relative_program_starts_at_its_files_folder(self):
        for command, line, program in (
                ("./guard.sh", "'/a b/guard.sh'", "/a b/guard.sh"),
                ("  ./guard.sh --x 'y z' | tail", "'/a b/guard.sh' --x 'y z' | tail", "/a b/guard.sh"),
                ("../x/guard.sh;true", "'/a b/../x/guard.sh';true", "/a b/../x/guard.sh"),
                ("bin/guard", "'/a b/bin/guard'", "/a b/bin/guard"),
                ('"./my guard.sh" x', "'/a b/my guard.sh' x", "/a b/my guard.sh"),
                ("'./it' x", "'/a b/it' x", "/a b/it"),
                ("/bin/guard ./x", "/bin/guard ./x", "/bin/guard"),
                ("~/guard", "~/guard", os.path.expanduser("~/guard")),
                ("guard.sh ./x", "guard.sh ./x", None),
                ("exit 2", "exit 2", None),
                ("FILE=./x guard", "FILE=./x guard", None),
                ("./$NAME/guard", "./$NAME/guard", None),
                ('"$HOME"/guard', '"$HOME"/guard', None),
                ("./gu*", "./gu*", None),
                ("(./guard)", "(./guard)", None),
                ("", "", None)):
            with self.subTest(command):
                self.assertEqual(hook_program.locate(command, "/a b"), (line, program))

    def test_it_runs_from_there_in_the_sessions_folder(self):
        self.write(os.path.join(self.declared, "guard.sh"), '#!/bin/sh\npwd >&2\necho "$1" >&2\nexit 2\n',
                   executable=True)
        self.assertEqual(self.call(self.hooks("preToolCall", "./guard.sh 'a b'")),
                         denied(self.folder + "\na b"))

    def test_a_trusted_projects_hook_starts_at_its_file(self):
        folder = os.path.join(self.folder, ".mm")
        os.mkdir(folder)
        self.write(os.path.join(folder, "guard.sh"), "#!/bin/sh\nexit 2\n", executable=True)
        self.write(os.path.join(folder, "config.json"), '{"hooks": {"preToolCall": [{"command": '
                                                        '"./guard.sh"}]}}')
        from mm.config import trust

        subject = self.configured({})
        self.assertFalse(subject.present("preToolCall"))
        trust.trust(self.folder, {"HOME": self.home})
        self.assertEqual(self.call(self.configured({})), denied("denied"))


PUSH = ("git push", "git push origin main", "cd x && git push -f", "git -C ../x push",
        "git -c a=b --no-pager push", "sudo git push", "true;git push", "bash -c 'git push'",
        "echo $(git push)", "echo `git push`", "ls\ngit push")
REMOVALS = ("rm -rf /", "rm -rf /*", "rm -fr /etc", "rm -r ~", "rm -rf ~/x", "rm -rf $HOME", "rm -rf ..",
            "rm -rf .", "sudo rm -Rf /usr", "rm --recursive /x", "rm -f -r /x", "ls; rm -rf /",
            "ls|xargs rm -rf /x", "/bin/rm -rf /x", "sh -c \"cd x; rm -rf /x\"")
FINE = ("git status", "git stash push", "git commit -m 'git push; rm -rf /'", "echo pushed to git",
        "rm -rf build", "rm -rf ./a/b", "rm -f /tmp/x", "rm x", "grep -r 'git push' .", "cat <<'X'\nit's\nX",
        "git log --grep push", "")
READING = ("ls", "ls -la src | head -n 5", "grep -rn 'a|b' . | wc -l", "grep '' x", "cat a b",
           "git log --oneline | cat", "git diff HEAD~1", "git show --stat -- x",           "cat x || cat y")
TOUCHING = ("rm x", "ls; rm x", "ls && rm x", "ls || rm x", "ls & rm x", "ls | xargs rm", "ls > x",
            "cat $(rm x)", "cat `rm x`", "ls\nrm x", "git push", "git diff --output=x", "git diff --outp=x",
            "git show --ext-diff", "git -c alias.log='!rm x' log", "git", "X=1 ls", "(rm x)", "cat <(rm x)",
            "grep 'open", "", "|", "ls |", "'rm' x", "ls '|' rm x", "./ls", "find . -delete")


class TheExamples(HookTest):
    """Those of docs/hooks.md, as pasted from there."""

    @classmethod
    def setUpClass(cls):
        with open(os.path.join(PROJECT, "docs", "hooks.md"), encoding="utf-8") as file:
            cls.page = file.read()

    def setUp(self):
        super().setUp()
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + path  # the python3 that is tested

    def example(self, title):
        """(the Hooks of the example whose heading begins so, its script)"""
        section = re.search(r"\n## Example: %s.*?(?=\n## |\Z)" % title, self.page, re.DOTALL).group()
        name = re.search(r"`~/.config/mm/(\w+\.py)`", section).group(1)
        script, settings = re.search(r"```python\n(.*?)```.*```json\n(.*?)```", section, re.DOTALL).groups()
        self.write(os.path.join(self.declared, name), script, executable=True)
        return self.configured(json.loads(settings)), script

    def reason(self, script, command):
        """What the script says against the command, "" for nothing; run in this process, for there are
        many.
        """
        message = json.dumps({"cwd": self.folder, "tool": "bash", "input": {"command": command}})
        stdin, sys.stdin, errors = sys.stdin, io.StringIO(message), io.StringIO()
        try:
            with contextlib.redirect_stderr(errors):
                exec(compile(script, "example", "exec"), {"__name__": "__main__"})
        except SystemExit as end:
            self.assertEqual(end.code, 2)
            return errors.getvalue().strip()
        finally:
            sys.stdin = stdin
        self.assertEqual(errors.getvalue(), "")
        return ""

    def test_no_push_and_no_rm_elsewhere(self):
        subject, script = self.example("no push")
        self.assertEqual([command for command in PUSH if self.reason(script, command) != "git push is the "
                                                                                         "user's to do"], [])
        self.assertEqual([command for command in REMOVALS
                          if not self.reason(script, command).startswith("rm -r of ")], [])
        self.assertEqual([command for command in FINE if self.reason(script, command)], [])
        self.assertEqual(self.call(subject, "git push"), denied("git push is the user's to do"))
        self.assertEqual(self.call(subject, "rm -rf /x"),
                         denied("rm -r of /x is outside of the folder " + self.folder))
        self.assertEqual(self.call(subject, "git status"), NOTHING)
        self.assertEqual(self.call(subject, "git push", tool="plan"), NOTHING)
        self.assertEqual(self.logged, [])

    def test_look_but_do_not_touch(self):
        subject, script = self.example("look")
        self.assertEqual([command for command in READING if self.reason(script, command)], [])
        self.assertEqual([command for command in TOUCHING
                          if not self.reason(script, command).startswith("this session only")], [])
        self.assertEqual([self.call(subject, command).denied for command in ("ls | wc", "rm x")],
                         [False, True])
        for tool, is_denied in (("read_file", False), ("write_file", True), ("mcp__x__y", True)):
            self.assertEqual(subject.run("preToolCall", Cancel(), tool, {"path": "x"}).denied, is_denied,
                             tool)
        self.assertEqual(self.logged, [])


    def test_read_in_the_folder_fetch_from_named_hosts(self):
        subject, _ = self.example("read here")
        outside = os.path.join(self.home, "key")
        self.write(outside, "secret")
        self.write(os.path.join(self.folder, "a"), "")
        os.symlink(outside, os.path.join(self.folder, "link"))
        os.symlink(self.home, os.path.join(self.folder, "way"))
        up = os.path.relpath(outside, self.folder)
        for path, allowed in (("a", True), ("./b/../a", True), ("new/x", True), (".", True), ("@a", True),
                              (os.path.join(self.folder, "a"), True), (outside, False), (up, False),
                              ("@" + up, False), ("link", False), ("way/key", False), ("way", False),
                              ("~/key", False), ("..", False), ("/", False), (self.folder + "-twin/x", False),
                              ("", False), (None, False), (7, False), ("a\0b", False), ("x" * 9000, False)):
            for tool in ("read_file", "lsp"):
                with self.subTest(tool=tool, path=path):
                    given = {"path": path} if path is not None else {}
                    expected = allowed or tool == "lsp" and not path
                    self.assertEqual(subject.run("preToolCall", Cancel(), tool, given).denied, not expected)
        for url, allowed in (("https://docs.python.org/3/?q=x", True), ("https://DOCS.python.org", True),
                             ("http://docs.python.org", False),
                             ("https://docs.python.org.host.example/", False),
                             ("https://docs.python.org@host.example/", False),
                             ("https://host.example/#https://docs.python.org", False), ("https://[", False),
                             ("", False), (None, False), (7, False)):
            with self.subTest(url):
                given = {"url": url} if url is not None else {}
                self.assertEqual(subject.run("preToolCall", Cancel(), "fetch_content", given).denied,
                                 not allowed)
        self.assertFalse(subject.run("preToolCall", Cancel(), "bash", {"command": "cat " + outside}).denied)


class ThePage(unittest.TestCase):
    def test_holds_the_texts_and_the_numbers(self):
        with open(os.path.join(PROJECT, "docs", "hooks.md"), encoding="utf-8") as file:
            page = file.read()
        for text in (hooks.DENIED % "<reason>", hooks.HIDDEN % "<reason>",
                     hooks.DENIED_TITLE % "<tool>", hooks.ARGUMENTS_CHANGED,
                     "hook failed: <the line without 🪝>", "at most %d times a turn" % SENT_ON_BY_HOOK.most,
                     hook_program.NO_JSON_OBJECT, "{:,} characters from all hooks".format(hooks.CONTEXT_LIMIT),
                     "{:,} characters; else".format(hook_program.REASON_LIMIT),
                     "at most %d characters, or" % hook_program.STDERR_REASON_LIMIT,
                     "have %d s in all" % hooks.SESSION_END_LIMIT,
                     "%d MiB of stdout" % (hook_program.STREAM_LIMIT / MIB)):
            self.assertIn(text, page)
        for name in hook_program.VARIABLES:
            self.assertIn("`%s`" % name, page)
        for event in config.BY_NAME["hooks"].shape["properties"]:
            self.assertIn("\n| `%s` |" % event, page)


if __name__ == "__main__":
    unittest.main()
