"""Replacing files: old bytes or new ones, and nothing of a killed write stays."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import unittest

from mm import replacing
from tests import support

# Replaces a file again and again until it is killed.
WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from mm import replacing
print("started", flush=True)
while True:
    for letter in b"ab":
        replacing.replace(sys.argv[2], bytes([letter]) * 3_000_000)
"""


class Replacing(unittest.TestCase):
    def setUp(self):
        self.folder, self.state = support.scratch_folder(), support.scratch_folder()
        self.environ = support.environment(XDG_STATE_HOME=self.state)
        self.path = os.path.join(self.folder, "file")

    def kill_a_writer(self, seconds):
        with subprocess.Popen([sys.executable, "-c", WRITER, support.PROJECT, self.path], env=self.environ,
                              stdout=subprocess.PIPE) as writer:
            writer.stdout.readline()
            support.wait_until(lambda: os.path.exists(self.path))
            try:
                writer.wait(seconds)
            except subprocess.TimeoutExpired:
                pass
            writer.kill()

    def remains(self):
        return [name for name in os.listdir(self.folder) if name != "file"]

    def notes(self):
        return os.listdir(os.path.join(self.state, "mm", "writing"))

    def test_what_a_killed_write_left_is_removed(self):
        left = 0
        for number in range(10):
            self.kill_a_writer(number / 500)
            left += len(self.remains())
            replacing.remove_remains(self.environ)
            self.assertEqual((self.remains(), self.notes()), ([], []))
            with open(self.path, "rb") as file:
                self.assertIn(set(file.read()), ({ord("a")}, {ord("b")}))
        self.assertGreater(left, 0)

    def test_the_next_session_removes_it(self):
        for _ in range(20):
            self.kill_a_writer(0.003)
            if self.remains():
                break
        self.assertTrue(self.remains())
        support.run("--demo", "-p", "hello", env=self.environ)
        self.assertEqual((self.remains(), self.notes()), ([], []))

    def test_a_note_of_a_living_process_stays(self):
        os.makedirs(os.path.join(self.state, "mm", "writing"))
        remain, note = os.path.join(self.folder, ".mm-" + "0" * 16), os.path.join(self.state, "mm", "writing",
                                                                                  "n")
        open(remain, "w").close()
        with open(note, "w") as file:
            file.write(remain)
            file.flush()
            replacing.lock(file.fileno())
            replacing.remove_remains(self.environ)
            self.assertEqual((len(self.remains()), self.notes()), (1, ["n"]))
        replacing.remove_remains(self.environ)
        self.assertEqual((self.remains(), self.notes()), ([], []))

    def test_nothing_else_is_removed(self):
        os.makedirs(os.path.join(self.state, "mm", "writing"))
        for number, name in enumerate(("file", ".mm-0123", "mm-" + "0" * 16, ".mm-%s/x" % ("0" * 16), "")):
            path = os.path.join(self.folder, name)
            if name and "/" not in name:
                open(path, "w").close()
            with open(os.path.join(self.state, "mm", "writing", str(number)), "w") as file:
                file.write(path)
        before = os.listdir(self.folder)
        replacing.remove_remains(self.environ)
        self.assertEqual((os.listdir(self.folder), self.notes()), (before, []))

    def test_the_mode_stays_or_is_the_one_given(self):
        with open(self.path, "w"):
            os.chmod(self.path, 0o751)
        for mode, expected in ((None, 0o751), (0o600, 0o600)):
            replacing.replace(self.path, b"x", mode)
            self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), expected)

    def test_without_a_place_for_notes_it_works_too(self):
        program = ("import sys; sys.path.insert(0, sys.argv[1]); from mm import replacing; "
                   "replacing.replace(sys.argv[2], b'x')")
        for state in ("/proc/nowhere", "relative"):
            environ = support.environment(XDG_STATE_HOME=state, HOME="/proc/nowhere")
            subprocess.run([sys.executable, "-c", program, support.PROJECT, self.path], env=environ,
                           check=True)
            self.assertEqual(os.listdir(self.folder), ["file"])


if __name__ == "__main__":
    unittest.main()
