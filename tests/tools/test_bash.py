"""bash: real commands, what comes back and what is left running."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest

from mm import events, replacing
from mm.cancel import Cancel, Cancelled
from mm.tools import bash, logs
from mm.tools.output import Output, decode
from tests import support
from tests.tools.calls import ToolTest

# (command, the whole output)
RESULTS = [
    ("true", "[no output]"),
    ("echo hi", "hi"),
    ("echo 'a\n\n'", "a"),
    ("exit 3", "[exit code 3]"),
    ("echo no; exit 1", "no\n\n[exit code 1]"),
    ("no-such-program 2>/dev/null", "[exit code 127]"),
    ("echo early; exec >&- 2>&-; sleep 0.1; exit 3", "early\n\n[exit code 3]"),
    ("echo early; sleep 0.1; echo late", "early\nlate"),
    ("kill -9 $$", "[killed by signal 9 (SIGKILL)]"),
    ("echo x; kill -TERM $$", "x\n\n[killed by signal 15 (SIGTERM)]"),
    ("echo one; echo two > /dev/stderr; echo three; echo four >> /dev/stderr", "one\ntwo\nthree\nfour"),
    ("echo a; echo b >&2; echo c", "a\nb\nc"),
    (r"printf '\033[1;31mred\033[0m\r\n10%%\r100%%\n'", "red\n100%"),
    (r"printf 'a\377b\n'", "a\ufffdb"),
    ("printf 'gr\u00fc\u00dfe \U0001f4a1'", "gr\u00fc\u00dfe \U0001f4a1"),
    ("read line; echo \"[$line] $?\"", "[] 1"),
    ("cat", "[no output]"),
    ("echo $0 $#", "bash 0"),
    ("shopt -q login_shell || echo no login", "no login"),
    ("echo $PAGER,$GIT_EDITOR,$TERM,$AGENT,$LESS,$GIT_TERMINAL_PROMPT", "cat,true,dumb,mm,-FRX,0"),
    (": < /dev/tty", "bash: line 1: /dev/tty: No such device or address\n\n[exit code 1]"),
    ("x=kept; cd /; export x", "[no output]"),
    ("echo \"$x\"; pwd", "\n<folder>"),
]

LEFT = ("[still running in the background: process group {0}. Its output goes to {1}. "
        "Stop it with: kill -- -{0}]")


class Results(ToolTest):
    def run_bash(self, command, **more):
        return self.run_tool("bash", command=command, **more)

    def test_outputs(self):
        for command, expected in RESULTS:
            with self.subTest(command):
                result = self.run_bash(command)
                output = result.output.replace(self.folder, "<folder>").replace(shutil.which("bash"), "bash")
                self.assertEqual(output, expected)
                self.assertEqual((result.status, result.diff), (events.COMPLETED, None))
                self.assertEqual(result.prose, output.startswith("[") and output.endswith("]")
                                 and "\n" not in output)

    def test_what_cannot_run(self):
        for arguments, expected in [
            ({"command": " "}, "[bash: the command is empty]"),
            ({"command": "echo a\0b"}, "[bash: the command holds a NUL character]"),
            ({"command": "#" * 128 * 1024}, "[bash: the command is too long for the system; write it to a "
                                            "file]"),
            ({"command": "\u00e4" * 64 * 1024}, "[bash: the command is too long for the system; write it to "
                                                "a file]"),
            ({"command": "true", "timeout": 0}, '[bash: "timeout" must be above 0]'),
            ({"command": "true", "timeout": "soon"}, '[bash: "timeout" must be a number]'),
        ]:
            with self.subTest(str(arguments)[:40]):
                self.assertEqual(self.output("bash", **arguments), expected)

    def test_the_longest_command_runs(self):
        self.assertEqual(self.output("bash", command="true #".ljust(bash.COMMAND_LIMIT)), "[no output]")

    def test_a_folder_that_is_gone(self):
        context = self.new_context(folder=self.path("gone"))
        self.assertEqual(self.output("bash", context, command="true"),
                         f"[bash: the working directory {self.path('gone')} does not exist]")

    def test_the_configured_shell(self):
        context = self.new_context(bash_shell="/bin/sh")
        self.assertEqual(self.output("bash", context, command="echo $0"), "/bin/sh")
        context = self.new_context(bash_shell="no-such-shell")
        self.assertEqual(self.output("bash", context, command="true"),
                         "[bash: bash.shell is no-such-shell, and there is no such program]")

    def test_what_the_dialog_shows(self):
        action = self.prepare("bash", command="make\nmake install")
        self.assertEqual((action.title, action.paths, action.asks, action.diff, action.text),
                         ("bash: make…", (), True, None, "make\nmake install"))

    def test_what_no_dialog_can_show_is_refused(self):
        asking = self.new_context(yolo=False)
        for command, runs in (("true #".ljust(16_000, "x"), True), ("true #".ljust(16_001, "x"), False),
                              ("true #" + "\u202e" * 3000, False)):
            self.assertEqual(self.output("bash", command=command), "[no output]")
            if runs:
                self.assertEqual(self.output("bash", asking, command=command), "[no output]")
            else:
                self.assertIn("Put it into a script file", self.output("bash", asking, command=command))

    def test_two_sessions_at_once_do_not_share_logs(self):
        outputs = {}
        threads = [threading.Thread(target=lambda number=number: outputs.update(
            {number: self.output("bash", self.new_context(), command=f"yes {number} | head -n 20000")}))
                   for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(2):
            path = log_named(outputs[number])
            with open(path) as file:
                self.assertEqual(file.read(), f"{number}\n" * 20000)


def tearDownModule():
    shutil.rmtree(logs.folder())  # a result named what is in there, so it would stay


def log_named(output):
    """The path of the log in a result."""
    start = output.index(logs.folder())
    return output[start:output.index(".log", start)] + ".log"


class Long(ToolTest):
    def test_the_middle_goes_to_a_log(self):
        output = self.output("bash", command="seq 2000")
        head, note, tail = output.partition("[… 1400 lines (6.1 KB) left out; everything is in "
                                            f"{log_named(output)}, use read_file or grep on it …]")
        self.assertTrue(note)
        self.assertEqual(head, "".join(f"{number}\n" for number in range(1, 201)))
        self.assertEqual(tail, "".join(f"\n{number}" for number in range(1601, 2001)))
        self.assertEqual(self.output("read_file", path=log_named(output), offset=1000,
                                     limit=1).split("\n")[1], "1000")

    def test_at_most_the_configured_characters(self):
        command = f"for i in $(seq 500); do echo $i-{'x' * 90}; done"
        for context, most in [(self.context, 30000), (self.new_context(bash_maxOutput=3000), 3000),
                            (self.new_context(window=8192), 3276)]:
            output = self.output("bash", context, command=command)
            self.assertLess(len(output), most + 200)
            self.assertGreater(len(output), most * 0.9)

    def test_more_than_memory_keeps(self):
        output = self.output("bash", command="seq 400000")
        lines = output.split("\n")
        self.assertEqual((lines[0], lines[199], lines[-1], len(lines)), ("1", "200", "400000", 601))
        self.assertTrue(lines[200].startswith("[… 399400 lines (2.6 MB) left out"))
        self.assertEqual(os.path.getsize(log_named(output)), 2688895)

    def test_one_line_longer_than_memory_keeps(self):
        output = self.output("bash", command="head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")
        self.assertIn("[… 2.9 MB left out; everything is in", output)
        self.assertTrue(output.endswith("\nend"))
        self.assertLess(len(output), 5000)

    def test_a_cut_line_is_mentioned(self):
        output = self.output("bash", command="printf 'a%.0s' $(seq 5000)")
        self.assertEqual(output, "a" * 1000 + "… [+3000 chars] …" + "a" * 1000 +
                         f"\n[lines over 2000 characters were cut; everything is in {log_named(output)}]")

    def test_binary_output(self):
        output = self.output("bash", command="head -c 100000 /dev/zero; exit 2")
        self.assertEqual(output, f"[binary output, 97.7 KB; it is in {log_named(output)}]\n\n[exit code 2]")
        self.assertEqual(os.path.getsize(log_named(output)), 100000)

    def test_a_flood_is_stopped(self):
        result = self.run_tool("bash", command="yes")
        self.assertEqual(result.status, events.FAILED)
        self.assertTrue(result.output.endswith("y\n\n[stopped: more than 64 MB of output]"))
        path = log_named(result.output)
        self.assertLessEqual(os.path.getsize(path), 64 << 20)
        self.assertGreater(os.path.getsize(path), 63 << 20)
        os.unlink(path)

    def test_short_outputs_leave_no_log(self):
        before = os.listdir(logs.folder())
        self.output("bash", command="seq 100")
        self.output("bash", command="seq 100000 | tr '\\n' '\\r'")  # a progress bar of 575 KB
        self.assertEqual(os.listdir(logs.folder()), before)


class Background(ToolTest):
    def test_a_background_child_lives_on(self):
        started = time.monotonic()
        output = self.output("bash", command="sleep 30 & echo $!; echo ok")
        self.assertLess(time.monotonic() - started, 3)
        pid = int(output.split("\n")[0])
        group = os.getpgid(pid)
        self.addCleanup(os.killpg, group, signal.SIGKILL)
        self.assertEqual(output, f"{pid}\nok\n\n" + LEFT.format(group, log_named(output)))

    def test_a_background_child_fills_its_log(self):
        output = self.output("bash", command="(while :; do echo tick; sleep 0.02; done) & echo $!")
        pid = next(int(line) for line in output.split("\n") if line.isdigit())
        self.addCleanup(os.killpg, os.getpgid(pid), signal.SIGKILL)
        path = log_named(output)
        size = os.path.getsize(path)
        self.assertTrue(until(lambda: os.path.getsize(path) > size + 20))

    def test_a_child_with_its_output_elsewhere_costs_nothing(self):
        started = time.monotonic()
        output = self.output("bash", command="nohup sleep 30 >/dev/null 2>&1 & echo $!")
        self.addCleanup(os.kill, int(output), signal.SIGKILL)
        self.assertLess(time.monotonic() - started, 0.29)
        os.kill(int(output), 0)


class Ended(ToolTest):
    def cancelled(self, command, progress=lambda tail: None):
        """Cancels a running command; returns how long the turn then took, in seconds."""
        cancel = Cancel()
        marker = self.path("started")
        times = []

        def cancel_it():
            until(lambda: os.path.exists(marker))
            times.append(time.monotonic())
            cancel.cancel()
        thread = threading.Thread(target=cancel_it)
        thread.start()
        with self.assertRaises(Cancelled):
            self.run_tool("bash", cancel=cancel, progress=progress, command=command)
        times.append(time.monotonic())
        thread.join()
        return times[1] - times[0]

    def pid(self, name="pid"):
        with open(self.path(name)) as file:
            return int(file.read())

    def test_a_timeout_kills_the_command_and_its_children(self):
        result = self.run_tool("bash", command="sleep 60 & echo $! > pid; echo begun; wait", timeout="0.3")
        self.assertEqual(result.output, "begun\n\n[timed out after 0.3 s: the command and its children were "
                                        "killed. "
                                        "Give a longer timeout (at most 600), or start it in the background "
                                        "(read the skill bg-jobs).]")
        self.assertEqual(result.status, events.FAILED)
        self.assertTrue(until(lambda: gone(self.pid())))

    @unittest.skipIf(support.SHORT, "takes two seconds")
    def test_a_timeout_waits_for_children_that_ignore_term(self):
        started = time.monotonic()
        self.run_tool("bash", command="trap '' TERM; sleep 60 & echo $! > pid; wait", timeout=0.2)
        self.assertGreater(time.monotonic() - started, 2)
        self.assertTrue(until(lambda: gone(self.pid())))

    def test_a_timeout_above_the_most_is_lowered(self):
        context = self.new_context(bash_timeout=1, bash_maxTimeout=1)
        output = self.output("bash", context, command="sleep 60", timeout=900)
        self.assertEqual(output, "[timed out after 1 s, the most allowed: the command and its children were "
                                 "killed. "
                                 "Rather start it in the background (read the skill bg-jobs).]")

    def test_a_cancel_ends_the_turn_at_once(self):
        took = self.cancelled("sleep 60 & echo $! > pid; echo $$ > shell; touch started; wait")
        self.assertLess(took, 0.1)
        self.assertTrue(until(lambda: gone(self.pid()) and gone(self.pid("shell"))))

    @unittest.skipIf(support.SHORT, "takes two seconds")
    def test_a_cancel_kills_what_ignores_term(self):
        took = self.cancelled("trap '' TERM; sleep 60 & echo $! > pid; touch started; wait")
        self.assertLess(took, 0.1)
        self.assertFalse(gone(self.pid()))
        self.assertTrue(until(lambda: gone(self.pid())))

    def test_a_cancel_arrives_though_nobody_reads(self):
        stuck = threading.Event()

        def progress(tail):
            until(lambda: gone(self.pid()))
            stuck.set()
        cancel = Cancel()
        timer = threading.Timer(0.5, cancel.cancel)  # after the first live view
        timer.start()
        with self.assertRaises(Cancelled):
            self.run_tool("bash", cancel=cancel, progress=progress, command="echo $$ > pid; echo x; sleep 60")
        self.assertTrue(stuck.is_set())

    def test_a_cancel_before_the_start_starts_nothing(self):
        cancel = Cancel()
        cancel.cancel()
        with self.assertRaises(Cancelled):
            self.run_tool("bash", cancel=cancel, command="touch started")
        self.assertFalse(os.path.exists(self.path("started")))

    def test_no_thread_is_left_after_a_command(self):
        self.output("bash", command="true")
        before = threading.active_count()
        for _ in range(10):
            self.output("bash", command="echo x")
        self.assertTrue(until(lambda: threading.active_count() <= before))


class Live(ToolTest):
    def test_the_tail_is_shown_while_the_command_runs(self):
        seen = []
        self.run_tool("bash", progress=seen.append, command=r"printf '\033[31mone\n'; sleep 0.6; echo two; "
                                                            r"sleep 0.6; echo three")
        self.assertEqual(seen[:2], ["one\n", "one\ntwo\n"])  # on a busy machine the third is seen too

    def test_at_most_2000_characters(self):
        seen = []
        self.run_tool("bash", progress=seen.append, command="seq 100000; sleep 0.4")
        self.assertEqual(len(seen[-1]), 2000)
        self.assertTrue(seen[-1].endswith("\n100000\n"))


class Kept(unittest.TestCase):
    """mm.tools.output and mm.tools.logs by themselves."""

    def test_pieces_may_begin_and_end_within_a_character(self):
        data = "\u00e4\u20ac\U0001f4a1".encode()
        for start, end, expected in [(0, 9, "\u00e4\u20ac\U0001f4a1"), (1, 9, "\u20ac\U0001f4a1"),
                                     (3, 9, "\U0001f4a1"), (0, 8, "\u00e4\u20ac"), (6, 8, "")]:
            self.assertEqual(decode(data[start:end], True, True), expected)
        self.assertEqual(decode(data[1:8], False, False), "\ufffd\u20ac\ufffd")

    def test_the_log_holds_everything(self):
        data = os.urandom(3000000)
        for asked in (0, 100000, 1000000, 2000000):
            output = Output(1 << 30)
            for start in range(0, len(data), 50000):
                if start == asked:
                    output.named("{}")
                output.add(data[start:start + 50000])
            output.close()
            path = output.named("{}")
            with open(path, "rb") as file:
                self.assertEqual(file.read(), data)
            os.unlink(path)

    def test_a_full_disk_costs_only_the_log(self):
        done = in_a_program("""
            import resource
            from mm.tools import logs
            test.output("bash", command="true")
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
            print(test.output("bash", command="seq 2000").split(chr(10))[200])
            print(os.listdir(logs.folder()))
        """)
        self.assertEqual(done, "[… 1400 lines (6.1 KB) left out; no log could be written: File too large "
                               "…]\n['pid']\n")

    def test_no_folder_for_logs(self):
        done = in_a_program("""
            import tempfile
            tempfile.tempdir = "/proc/nothing"
            print(test.output("bash", command="seq 2000").split(chr(10))[200])
            print(test.output("bash", command="echo x"))
        """)
        self.assertEqual(done, "[… 1400 lines (6.1 KB) left out; no log could be written: No such file or "
                               "directory …]\nx\n")

    def test_an_unnamed_folder_goes_at_exit(self):
        for command, stays in (("seq 10", False), ("seq 2000", True)):
            path = in_a_program(f"""
                from mm.tools import logs
                print(logs.folder(), end="")
                test.output("bash", command="{command}")
            """)
            self.assertEqual(os.path.exists(path), stays)

    def old_folder(self, parent, name, days, logs=(), mark=b"123"):
        """A folder for logs, as a process that is gone has left it; `logs` are (name, bytes, days) each."""
        folder = os.path.join(parent, name)
        os.mkdir(folder)
        for file, size, age in logs:
            with open(os.path.join(folder, file), "wb") as log:
                log.truncate(size)
            os.utime(os.path.join(folder, file), (time.time() - age * 86400,) * 2)
        if mark is not None:
            with open(os.path.join(folder, "pid"), "wb") as file:
                file.write(mark)
        os.utime(folder, (time.time() - days * 86400,) * 2)
        return folder

    def test_old_folders_are_removed(self):
        parent = support.scratch_folder()
        some = [("bash-1.log", 1, 8)]
        for name, days, logs_left, mark, stays in [
            ("mm-old", 8, (), b"123", False),
            ("mm-log", 8, some + [("bash-22.log", 1, 8)], b"123", False),
            ("mm-new", 6, some, b"123", True),
            ("mm-foreign", 8, some, None, True),
            ("mm-strange", 8, some, b"x", True),
            ("mm-more", 8, some + [("notes.txt", 1, 8)], b"123", True),
            ("other", 8, (), b"123", True),
        ]:
            folder = self.old_folder(parent, name, days, logs_left, mark)
            logs.tidy(parent)
            self.assertEqual(os.path.exists(folder), stays, name)
        self.assertTrue(os.path.exists(os.path.join(parent, "mm-more", "notes.txt")))

    def test_the_folder_of_a_living_process_stays(self):
        parent = support.scratch_folder()
        folder = self.old_folder(parent, "mm-alive", 8, [("bash-1.log", 1000, 8)])
        with open(os.path.join(folder, "pid"), "r+b") as mark:
            replacing.lock(mark.fileno())
            logs.tidy(parent, total=1)
            self.assertEqual(len(os.listdir(folder)), 2)
        logs.tidy(parent, total=1)
        self.assertFalse(os.path.exists(folder))

    def test_the_oldest_logs_above_a_total_are_removed(self):
        parent = support.scratch_folder()
        gone = self.old_folder(parent, "mm-gone", 1, [("bash-1.log", 100, 1), ("bash-2.log", 100, 3)])
        own = self.old_folder(parent, "mm-own", 1, [("bash-1.log", 100, 2), ("bash-2.log", 100, 0)])
        for total, left in ((400, 4), (399, 3), (200, 2), (100, 1), (0, 1)):
            logs.tidy(parent, own, total)
            found = [log for folder in (gone, own) if os.path.exists(folder) for log in os.listdir(folder)
                     if log != "pid"]
            self.assertEqual(len(found), left)
        self.assertEqual((os.path.exists(gone), sorted(os.listdir(own))), (False, ["bash-2.log", "pid"]))


def in_a_program(code):
    """Runs `code` in a Python of its own, with a ToolTest in a folder of its own as `test`; returns what it
    prints.
    """
    start = textwrap.dedent("""
        import os, sys
        from tests.tools.calls import ToolTest
        test = ToolTest()
        test.setUp()
    """)
    environment = dict(os.environ, TMPDIR=support.scratch_folder())
    done = subprocess.run([sys.executable, "-c", start + textwrap.dedent(code)], cwd=support.PROJECT,
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    if done.returncode or done.stderr:
        raise AssertionError(done.stderr.decode())
    return done.stdout.decode()


def until(condition, seconds=10):
    """Waits for the condition; whether it came true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def gone(pid):
    """Whether the process has ended; a zombie has."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
