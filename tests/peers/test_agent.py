"""Asking an agent that is a program of its own: what it says, what it asks, and every way in which it can
fail.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import unittest

from mm import events, log
from mm.config import config, entries
from mm.cancel import Cancel, Cancelled
from mm.peers import agent
from tests import support
from tests.wire import connection

FAKE = os.path.join(support.PROJECT, "tests", "fakes", "asked_agent.py")


class Front:
    """A user who gives these answers one after the other and then thinks for ever; keeps what was asked."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.asked = []
        self.waiting = threading.Event()

    def emit(self, event):
        pass

    def ask(self, asked, cancel):
        self.asked.append(asked)
        if not self._answers:
            self.waiting.set()
            cancel.wait(threading.Event())
        return self._answers.pop(0)

    fill_in = ask


class AskTest(connection.PeerTest):
    def setUp(self):
        self.folder = support.scratch_folder()
        self.front = Front()
        self.log = self.keep_log()
        self.seen = []

    def ask(self, *lines, how="", yolo=False, cancel=None, environ=(), env=(), cwd=None, argv=None,
            **overrides):
        settings = {name.replace("_", "."): value for name, value in overrides.items()}
        settings = config.load(self.folder, {"HOME": self.folder}, None, settings)
        entry = entries.Agent(argv or (sys.executable, "-I", "-S", FAKE, how), dict(env), cwd, None)
        asker = agent.Asker(self.front, "call_7", "ask_agent", yolo, lambda title,
                            tail: self.seen.append((title, tail)))
        return agent.ask("rev", entry, "\n".join(lines), self.folder, asker, settings,
                         dict(os.environ, **dict(environ)), cancel or Cancel())

    def failure(self, *lines, **more):
        with self.assertRaises(agent.AgentFailed) as caught:
            self.ask(*lines, **more)
        return str(caught.exception)

    def in_thread(self, *lines, **more):
        return connection.in_thread(lambda: self.ask(*lines, **more))


class WhatItSays(AskTest):
    def test_the_answer_with_what_was_done_for_it(self):
        answer = self.ask("say I look.", "call 1 ls", "call 2 cat a", "say All", "say  is well.",
                          "count 3400")
        self.assertEqual(answer, ("I look.\n\nAll is well.", "All is well.", "end_turn", 2, 3400))

    def test_text_before_the_last_call_is_kept(self):
        self.assertEqual(self.ask("say Done.", "call 1 tidy up").last, "Done.")

    def test_messages_are_paragraphs(self):
        self.assertEqual(self.ask("message a One", "message a ...", "message b Two").text, "One...\n\nTwo")

    def test_the_reason_why_it_stopped(self):
        self.assertEqual(self.ask("stop max_tokens").stop_reason, "max_tokens")

    def test_nothing_said_and_nothing_counted(self):
        self.assertEqual(self.ask(""), ("", "", "end_turn", 0, None))

    def test_a_second_answer_is_not_heard(self):
        self.assertEqual(self.ask("say once", "twice").text, "once")

    def test_it_is_seen_at_work(self):
        self.ask("say I look.", "plan 0 think", "call 1 ls")
        self.assertEqual(self.seen, [(None, "I look."), ("ls", "I look.")])

    def test_where_it_works(self):
        self.assertEqual(self.ask("where").text, "%s %s" % (self.folder, self.folder))
        os.mkdir(os.path.join(self.folder, "sub"))
        self.assertEqual(self.ask("where", cwd="sub").text, "%s/sub %s/sub" % (self.folder, self.folder))

    def test_its_environment(self):
        given = {"MM_API_KEY": "secret", "MM_TRACE": "/t", "MM_YOLO": "1", "MM_AGENT_DEPTH": "1", "OWN": "no"}
        answer = self.ask("env MM_API_KEY", "say  ", "env MM_TRACE", "say  ", "env OWN", "say  ",
                          "env MM_AGENT_DEPTH", "say  ", "env MM_YOLO", environ=given, env={"OWN": "yes"})
        self.assertEqual(answer.text, "None None 'yes' '2' 'false'")
        self.assertEqual(self.ask("env MM_YOLO", environ=given, yolo=True).text, "'1'")

    def test_noise_is_logged_and_skipped(self):
        self.assertEqual(self.ask("say a", "stray hello", "bytes", "say b", how="noise").text, "ab")
        self.assertEqual(self.log[:3], ["[agent rev] Welcome!", "[agent rev] ready", "[agent rev] hello"])
        self.assertEqual(len(self.log), 9)

    def test_a_flood_on_stderr(self):
        self.assertEqual(self.ask("flood 20", "say dry").text, "dry")


class WhatItAsks(AskTest):
    def answers(self, *given, lines, **more):
        """What the agent got for its lines, with these answers of the user's."""
        self.front = Front(*given)
        return self.ask(*[each for line in lines for each in (line, "say |")],
                        **more).text.rstrip("|").split("|")

    def test_an_answer_is_the_agents_own_option(self):
        given = (events.ALLOW, events.ALLOW_ALWAYS, events.REJECT, events.NEVER)
        got = self.answers(*given, lines=["permission x"] * 4)
        self.assertEqual([option.split('"')[-2] for option in got], ["yes!", "ever", "no!", "at-no-time"])

    def test_with_yolo_nobody_is_asked(self):
        self.assertIn('"optionId": "yes!"', self.answers(lines=["permission x"], yolo=True)[0])
        self.assertEqual(self.front.asked, [])

    def test_what_the_user_is_shown(self):
        self.answers(events.ALLOW, events.ALLOW, lines=["edit", "plan 5 rm -rf /", "permission 5"])
        edit = events.ToolPending("call_7", "ask_agent", "rev: edit a.txt", "edit", {}, ("/a.txt",))
        known = events.ToolPending("call_7", "ask_agent", "rev: rm -rf /", "execute", {"command": "rm -rf /"},
                                   ())
        self.assertEqual(self.front.asked, [events.Permission(edit, events.Diff("/a.txt", "old\n", "new\n"),
                                                              None),
                                            events.Permission(known, None, None)])

    def test_what_no_dialog_shows_whole_is_rejected(self):
        got = self.answers(lines=["longest"])
        self.assertEqual(got[0].split(chr(34))[-2], "no!")
        self.assertEqual(self.front.asked, [])

    def test_a_permission_with_choices_is_a_form(self):
        given = events.FormAnswer(events.ACCEPTED, {"choice": "Blue"}), events.FormAnswer(events.DECLINED)
        got = self.answers(*given, events.FormAnswer(events.UNAVAILABLE), lines=["question"] * 3)
        self.assertEqual([each.split('"')[-2] for each in got], ["b", "none", "cancelled"])
        form = self.front.asked[0]
        self.assertEqual((form.ref, form.message), ("call_7", "rev: ? Which colour"))
        self.assertEqual(form.schema["properties"]["choice"]["enum"], ["Red", "Blue"])

    def test_forms(self):
        given = [events.FormAnswer(action) for action in (events.DECLINED, events.FORM_CANCELLED,
                                                          events.UNAVAILABLE)]
        got = self.answers(events.FormAnswer(events.ACCEPTED, {"q1": "Ada"}), *given, lines=["form"] * 4,
                           yolo=True)
        self.assertEqual(got, ['{"action": "accept", "content": {"q1": "Ada"}}', '{"action": "decline"}',
                               '{"action": "cancel"}', '"nobody can be asked here"'])
        form = self.front.asked[0]
        self.assertEqual((form.ref, form.message, list(form.schema["properties"])),
                         ("call_7", "rev: Who…", ["q1"]))

    def test_what_mm_cannot_do_is_refused(self):
        got = self.answers(lines=["url", "read"])
        self.assertEqual(got, ['"%s"' % agent.NO_FORM, '"Method not found: fs/read_text_file"'])
        self.assertEqual(self.front.asked, [])


class HowItFails(AskTest):
    def test_in_one_line(self):
        for how, lines, line in (
            ("exit", (), "rev ended with exit code 1: no licence"),
            ("version", (), "rev speaks version 2 of the protocol, mm speaks 1"),
            ("auth", (), "rev wants you to sign in first: start it once by hand (%s -I -S %s auth)"
             % (sys.executable, FAKE)),
            ("refuse", (), "rev refused session/new: No refuse"),
            ("nosession", (), "rev gave no session id"),
            ("", ("exit 0",), "rev ended with exit code 0"),
            ("", ("stderr out of memory", "exit 3"), "rev ended with exit code 3: out of memory"),
            ("", ("kill",), "rev ended with signal 9"),
            ("", ("close",), "rev ended (it closed its output)"),
            ("", ("refuse no model",), "rev refused session/prompt: Internal error: no model"),
            ("", ("long 18",), "rev ended (a line over 16.0 MB)"),
        ):
            with self.subTest(how or lines):
                self.assertEqual(self.failure(*lines, how=how), line)

    def test_silence(self):
        class Slow(Front):
            def ask(self, asked, cancel):
                time.sleep(1.2)
                return events.ALLOW

        silent = self.in_thread("say a", "mute", askAgent_idleTimeout=1)
        noisy = self.in_thread(*["stray x", "sleep 0.4"] * 6, askAgent_idleTimeout=1)
        at_once = self.in_thread(how="mute", askAgent_idleTimeout=1)
        self.front = Slow()
        # while the user thinks it is not silent
        asking = self.in_thread("permission x", askAgent_idleTimeout=1)
        self.assertEqual(str(silent()), "rev was silent for 1 s")
        self.assertEqual(str(noisy()), "rev was silent for 1 s", "noise is no message")
        self.assertEqual(str(at_once()), "rev did not answer initialize within 1 s")
        self.assertIn("yes!", asking().text)

    def test_a_program_that_is_not_there(self):
        gone = os.path.join(self.folder, "gone")
        self.assertEqual(self.failure(argv=("./nothing",)), "rev cannot be started: ./nothing: No such file "
                                                            "or directory")
        self.assertEqual(self.failure(cwd="gone"),
                         "rev cannot be started: %s: No such file or directory" % gone)

    def test_a_command_line_that_no_system_can_start(self):
        self.assertEqual(self.failure(argv=(sys.executable, "\0")), "rev cannot be started: %s: embedded "
                                                                    "null byte" % sys.executable)

    def test_what_was_said_before_is_kept(self):
        with self.assertRaises(agent.AgentFailed) as caught:
            self.ask("say half", "exit 1")
        self.assertEqual(caught.exception.said, "half")

    def test_too_deep(self):
        self.assertEqual(self.failure(environ={"MM_AGENT_DEPTH": "2"}), "too deep (2)")
        self.assertEqual(self.failure(askAgent_maxDepth=0), "too deep (0)")


class TheEnd(AskTest):
    @unittest.skipIf(support.SHORT, "it takes five seconds")
    def test_nothing_is_left_of_it(self):
        threads, children = threading.active_count(), set(support.children(os.getpid()))
        cancel = Cancel()
        deaf = self.in_thread("linger", "call 1 x", "mute", how="deaf", cancel=cancel)
        support.wait_until(lambda: self.seen and self.seen[-1][0])
        sleepers, begin = [int(self.seen[-1][1])], time.monotonic()
        cancel.cancel()
        sleepers.append(int(self.ask("linger").text))
        # though its child holds its stdout
        self.assertEqual(self.failure("linger", "exit 1"), "rev ended with exit code 1")
        self.assertIsInstance(deaf(), Cancelled)
        support.wait_until(lambda: not any(map(support.alive, sleepers)), what="the end of what they had "
                                                                               "started")
        self.assertLess(time.monotonic() - begin, 7)
        support.wait_until(lambda: threading.active_count() <= threads, what="the end of the threads")
        self.assertLessEqual(len(set(support.children(os.getpid())) - children), 1)  # the guardian

    def test_a_cancel_reaches_it(self):
        cancel = Cancel()
        outcome = self.in_thread("call 1 x", "wait", cancel=cancel)
        support.wait_until(lambda: self.seen)
        cancel.cancel()
        self.assertIsInstance(outcome(), Cancelled)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "cancelled")))

    def test_a_cancel_closes_a_dialog(self):
        for line in ("permission x", "form", "question"):
            with self.subTest(line):
                cancel, self.front = Cancel(), Front()
                outcome = self.in_thread(line, cancel=cancel)
                self.assertTrue(self.front.waiting.wait(support.DEADLINE))
                cancel.cancel()
                self.assertIsInstance(outcome(), Cancelled)

    def test_a_death_closes_a_dialog(self):
        self.front, others = Front(), support.children(os.getpid())  # fakes of other tests that are ending
        outcome = self.in_thread("stderr bye", "permission x", how="")
        self.assertTrue(self.front.waiting.wait(support.DEADLINE))
        fake = next(process.pid for process in support.processes() if process.pid == process.group
                    and process.pid not in others and fake_runs(process.pid))
        os.kill(fake, 9)
        self.assertEqual(str(outcome()), "rev ended with signal 9: bye")

    def test_a_cancel_before_it_begins(self):
        cancel = Cancel()
        cancel.cancel()
        with self.assertRaises(Cancelled):
            self.ask("say x", cancel=cancel)

    def test_a_cancel_in_the_handshake(self):
        cancel = Cancel()
        outcome = self.in_thread(how="mute", cancel=cancel)
        time.sleep(0.1)
        cancel.cancel()
        self.assertIsInstance(outcome(), Cancelled)


def fake_runs(pid):
    """Whether the process is the fake agent, a child of this one."""
    return pid in support.children(os.getpid()) and FAKE.encode() in open("/proc/%d/cmdline" % pid,
                                                                          "rb").read()


if __name__ == "__main__":
    unittest.main()
