"""Groups of processes end when they should, and only those. Real programs throughout; mm itself is played by
tests/fakes/guarded.py, which the tests kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import unittest

from mm.wire import child
from tests import support
from tests.support import DEADLINE, PROJECT, group_alive, wait_until

GUARDED = os.path.join(PROJECT, "tests", "fakes", "guarded.py")

# Scripts that say when they are ready. `cat` and `sleep` are the grandchildren.
PLAIN = "echo ready; sleep 60; :"
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 60; done"
# The leader obeys TERM, what it started does not.
STUBBORN_INSIDE = "sh -c 'trap \"\" TERM; echo ready; while :; do sleep 60; done' & wait"
# The leader is gone when the line comes, its child lives on.
LEFT_BEHIND = "(sleep 0.05; echo ready; exec sleep 60) & exit 0"


def gone(group: int) -> bool:
    return not group_alive(group)


def end(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Guarded:
    """The program, its groups and its guardian."""

    def __init__(self, test: unittest.TestCase, how: str, *scripts: str):
        self.process = subprocess.Popen([sys.executable, "-S", GUARDED, how, *scripts], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        start_new_session=True)
        test.addCleanup(self.tidy)
        self.groups = [int(word) for word in self.process.stdout.readline().split()]
        inside = [one for one in support.processes() if one.parent == self.process.pid
                  and one.pid not in self.groups]
        self.guardian = inside[0].pid if inside else None

    def tidy(self) -> None:
        self.process.kill()
        self.process.wait()
        for group in self.groups + [self.guardian]:
            end(group)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


class TheGuardian(unittest.TestCase):
    def start(self, how: str, *scripts: str) -> Guarded:
        return Guarded(self, how, *scripts)

    def test_ends_every_listed_group_after_a_kill(self):
        guarded = self.start("wait", PLAIN, STUBBORN, STUBBORN_INSIDE, LEFT_BEHIND)
        self.assertEqual([gone(group) for group in guarded.groups], [False] * 4)
        killed = time.monotonic()
        guarded.process.kill()
        wait_until(lambda: all(map(gone, guarded.groups)), what="the end of the groups")
        self.assertLess(time.monotonic() - killed, 2)
        wait_until(lambda: not support.alive(guarded.guardian), 1, "the guardian's own end")

    def test_gives_a_program_a_second_to_end(self):
        folder = support.scratch_folder()
        tidy = "sleep 0.3; echo tidied > %s/done; exit" % folder
        guarded = self.start("wait", "trap '%s' TERM; echo ready; while :; do sleep 0.05; done" % tidy)
        guarded.process.kill()
        wait_until(lambda: gone(guarded.groups[0]))
        self.assertTrue(os.path.exists(folder + "/done"))

    def test_leaves_released_groups_alone(self):
        guarded = self.start("release", STUBBORN, PLAIN)
        guarded.process.kill()
        wait_until(lambda: gone(guarded.groups[0]) and not support.alive(guarded.guardian))
        self.assertFalse(gone(guarded.groups[1]))

    def test_a_killed_guardian_is_replaced(self):
        guarded = self.start("more", PLAIN, PLAIN)
        os.kill(guarded.guardian, signal.SIGKILL)
        wait_until(lambda: not support.alive(guarded.guardian))
        guarded.process.stdin.write(b"more\n")
        guarded.process.stdin.flush()
        guarded.groups.append(int(guarded.process.stdout.readline()))
        guarded.process.kill()
        wait_until(lambda: all(map(gone, guarded.groups)), 2)

    def test_keeps_a_group_that_is_being_ended(self):
        guarded = self.start("end", STUBBORN)
        guarded.process.kill()
        wait_until(lambda: gone(guarded.groups[0]), 2)

    def test_works_after_an_exit_without_clean_up_too(self):
        guarded = self.start("wait", PLAIN)
        guarded.process.stdin.close()
        self.assertEqual(guarded.process.wait(DEADLINE), 0)
        wait_until(lambda: gone(guarded.groups[0]), 2)

    def test_survives_signals(self):
        guarded = self.start("wait", PLAIN)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            os.kill(guarded.guardian, number)
        os.killpg(guarded.process.pid, signal.SIGKILL)
        wait_until(lambda: gone(guarded.groups[0]), 2)

    def test_holds_no_stream_of_mm(self):
        guarded = self.start("wait", STUBBORN)
        killed = time.monotonic()
        guarded.process.kill()
        self.assertEqual((guarded.process.stdout.read(), guarded.process.stderr.read()), (b"", b""))
        self.assertLess(time.monotonic() - killed, 0.8)
        self.assertFalse(gone(guarded.groups[0]))

    @unittest.skipUnless(os.path.isdir("/proc/self/fd"), "needs /proc")
    def test_has_three_descriptors_and_hardly_an_environment(self):
        guarded = self.start("wait", PLAIN)
        folder = "/proc/%d/" % guarded.guardian
        held = {name: os.readlink(folder + "fd/" + name) for name in os.listdir(folder + "fd")}
        self.assertEqual((held["1"], held["2"]), ("/dev/null", "/dev/null"))
        # dash keeps no other, bash may keep a copy of one of these.
        self.assertEqual(len(set(held.values())), 2)
        with open(folder + "environ", "rb") as file:
            names = {entry.split(b"=")[0] for entry in file.read().split(b"\0") if entry}
        self.assertEqual(names - {b"PWD", b"_"}, {b"PATH"})
        self.assertEqual(os.readlink(folder + "cwd"), "/")

    @unittest.skipUnless(os.path.isdir("/proc/self/fd"), "needs /proc")
    def test_no_program_inherits_its_pipe(self):
        guarded = self.start("wait", PLAIN)
        held = {os.readlink("/proc/%d/fd/%s" % (guarded.groups[0], name))
                for name in os.listdir("/proc/%d/fd" % guarded.groups[0])}
        self.assertNotIn(os.readlink("/proc/%d/fd/0" % guarded.guardian), held)

    def test_end_all_ends_groups_and_guardian_before_mm(self):
        guarded = self.start("end_all", PLAIN, STUBBORN, STUBBORN_INSIDE, LEFT_BEHIND)
        closed = time.monotonic()
        guarded.process.stdin.close()
        self.assertEqual(guarded.process.wait(DEADLINE), 0)
        self.assertLess(time.monotonic() - closed, 0.9)
        wait_until(lambda: all(map(gone, guarded.groups)), 0.5)
        self.assertFalse(support.alive(guarded.guardian))


class InThisProcess(unittest.TestCase):
    def start(self, script: str) -> child.Child:
        one = child.start(["/bin/sh", "-c", script])
        self.addCleanup(one.process.stdout.close)
        self.addCleanup(one.process.wait)
        self.addCleanup(end, one.pid)
        self.assertEqual(one.process.stdout.readline(), b"ready\n")
        return one

    def tearDown(self):
        child.end_all()

    def test_a_program_leads_its_own_session(self):
        source = "import os; print(os.getpid(), os.getpgid(0), os.getsid(0), os.read(0, 1))"
        one = child.start([sys.executable, "-S", "-c", source])
        self.addCleanup(one.process.stdout.close)
        self.assertEqual(one.process.stdout.read().split(), [b"%d" % one.pid] * 3 + [b"b''"])
        self.assertEqual(one.process.wait(DEADLINE), 0)

    def test_popens_errors_come_through_and_list_nothing(self):
        listed = child.listed()
        self.assertRaises(FileNotFoundError, child.start, ["/no/such/program"])
        self.assertRaises(FileNotFoundError, child.start, ["true"], cwd="/no/such/folder")
        self.assertRaises(PermissionError, child.start, ["/"])
        self.assertEqual(child.listed(), listed)

    def test_folder_environment_and_streams_are_given(self):
        one = child.start(["/bin/sh", "-c", "pwd; echo $WORD; cat; echo error >&2"], cwd="/",
                          env={"WORD": "w"}, stdin=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(one.process.communicate(b"in\n", DEADLINE)[0], b"/\nw\nin\nerror\n")

    def test_terminate_asks_and_kill_ends_the_whole_group(self):
        one = self.start(STUBBORN_INSIDE)
        one.terminate()
        self.assertEqual(one.process.wait(DEADLINE), -signal.SIGTERM)
        self.assertFalse(gone(one.pid))
        self.assertTrue(one.alive())
        one.kill()
        wait_until(lambda: gone(one.pid))
        self.assertFalse(one.alive())

    def test_end_returns_at_once_and_kills_later(self):
        for script in (STUBBORN, STUBBORN_INSIDE, LEFT_BEHIND):
            with self.subTest(script):
                one = self.start(script)
                started = time.monotonic()
                one.end(grace=0.2)
                one.end(grace=0.2)
                self.assertLess(time.monotonic() - started, 0.1)
                wait_until(lambda: gone(one.pid))
                wait_until(lambda: one.pid not in child.listed())

    def test_end_lets_a_program_end_by_itself(self):
        one = self.start("trap 'sleep 0.1; exit 7' TERM; echo ready; while :; do sleep 0.02; done")
        one.end()
        wait_until(lambda: one.process.returncode is not None and one.pid not in child.listed(), 1.5)
        self.assertEqual(one.process.returncode, 7)

    def test_end_works_while_another_thread_waits(self):
        one = self.start(PLAIN)
        codes = []
        waiter = threading.Thread(target=lambda: codes.append(one.process.wait()), daemon=True)
        waiter.start()
        one.end(grace=0.3)
        waiter.join(DEADLINE)
        self.assertEqual(codes, [-signal.SIGTERM])
        wait_until(lambda: one.pid not in child.listed())

    def test_a_released_group_is_never_signalled(self):
        one = self.start(PLAIN)
        one.release()
        one.release()
        one.terminate()
        one.kill()
        one.end(0)
        child.end_all()
        self.assertFalse(one.alive())
        self.assertFalse(gone(one.pid))

    def test_what_a_program_left_can_be_released(self):
        one = self.start(LEFT_BEHIND)
        one.process.wait(DEADLINE)
        one.release()
        child.end_all()
        self.assertFalse(gone(one.pid))

    def test_a_group_that_is_gone_is_left_alone(self):
        one = self.start("echo ready")
        one.process.wait(DEADLINE)
        for method in (one.terminate, one.end, one.kill, one.release, one.terminate, one.kill, one.end):
            method()
        self.assertFalse(one.alive())
        self.assertNotIn(one.pid, child.listed())

    def test_a_reused_number_is_not_signalled(self):
        """The system is made to look as if it had given the number again: the leader counts as reaped, and
        yet runs.
        """
        for method in ("terminate", "kill", "end", "alive"):
            with self.subTest(method):
                one = self.start(PLAIN)
                stranger = one.process
                one.process = subprocess.Popen(["true"])
                one.process.wait()
                self.assertFalse(getattr(one, method)())
                self.assertIsNone(stranger.poll())
                self.assertNotIn(one.pid, child.listed())
                end(one.pid)
                stranger.wait()

    def test_a_new_child_with_a_reused_number(self):
        old = self.start(PLAIN)
        new = child.Child(old.process)
        old.kill()
        old.release()
        self.assertTrue(new.alive())
        new.kill()
        wait_until(lambda: gone(new.pid))

    def test_many_threads_may_start_and_end_at_once(self):
        errors = []

        def churn():
            try:
                for _ in range(5):
                    one = child.start(["/bin/sh", "-c", "exec sleep 60"])
                    one.end()
                    one.process.wait(DEADLINE)
                    one.process.stdout.close()
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=churn) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        self.assertEqual(errors, [])
        wait_until(lambda: not child.listed())


if __name__ == "__main__":
    unittest.main()
