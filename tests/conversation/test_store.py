"""Sessions on disk: whole or not at all, never over another's, and nothing hostile is followed."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import threading
import time
import unittest

from mm import replacing
from mm.cancel import Cancel
from mm.conversation import history, store
from mm.conversation.store import SessionError
from tests import support

WRITER = os.path.join(support.PROJECT, "tests", "fakes", "session_writer.py")
ID = "20260916-101530-4f2a9c1e"
MESSAGES = [history.user_message("What is 6*7?"), history.assistant_message("42")]
USAGE = {"input": 10, "output": 2}


def read(path: str) -> dict:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.cwd = support.scratch_folder()
        self.folder = os.path.join(self.cwd, ".mm", "sessions")

    def saved(self, messages=MESSAGES, session_id=ID):
        """A new session with these messages on disk."""
        kept = store.create(self.folder, session_id, self.cwd)
        self.assertIsNone(kept.save(messages, USAGE, "Sums", "demo"))
        return kept

    def names(self):
        return sorted(os.listdir(self.folder))

    def put(self, data: bytes, name: str = ID + ".json"):
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data)

    def refused(self, session_id=ID) -> str:
        with self.assertRaises(SessionError) as raised:
            store.open(self.folder, session_id)
        return str(raised.exception)

    def writer(self, *arguments, stdin=subprocess.DEVNULL, **options):
        """The program tests/fakes/session_writer.py, which has opened the session."""
        process = subprocess.Popen([sys.executable, "-I", "-S", WRITER, *map(str, arguments)], stdin=stdin,
                                   stdout=subprocess.PIPE, **options)
        self.assertEqual(process.stdout.readline(), b"opened\n")
        return process

    def written(self, *arguments, **options) -> list:
        with self.writer(*arguments, **options) as process:
            lines = process.stdout.read().decode().splitlines()
        self.assertEqual(process.returncode, 0)
        return lines


class Saving(StoreTest):
    def test_makes_files_that_only_the_user_reads(self):
        kept = self.saved([])
        self.assertEqual(self.names(), [".gitignore", ID + ".json"])
        self.assertEqual(kept.path, os.path.join(self.folder, ID + ".json"))
        self.assertEqual((mode(self.folder), mode(kept.path)), (0o700, 0o600))
        with open(os.path.join(self.folder, ".gitignore")) as file:
            self.assertEqual(file.read(), "*\n")

    def test_git_sees_nothing_of_it(self):
        self.saved()
        subprocess.run(["git", "init", "-q", self.cwd], check=True)
        done = subprocess.run(["git", "status", "--porcelain"], cwd=self.cwd, stdout=subprocess.PIPE,
                              check=True)
        self.assertEqual(done.stdout, b"")

    def test_a_folder_in_use_is_not_hidden_from_git(self):
        self.put(b"mine", "notes.md")
        self.saved()
        self.assertNotIn(".gitignore", self.names())

    def test_what_was_saved_is_what_is_opened(self):
        self.saved()
        again, saved = store.open(self.folder, ID)
        self.assertEqual((saved.messages, saved.usage, saved.title, saved.model),
                         (MESSAGES, USAGE, "Sums", "demo"))
        self.assertEqual((again.id, read(again.path)["cwd"]), (ID, self.cwd))

    def test_an_empty_session_is_opened_by_another_process(self):
        self.saved([])
        self.assertEqual(self.written(self.folder, ID, "b", 1), ["1 " + ID])

    def test_what_others_added_stays(self):
        self.put(b'{"version":1,"created":"2020-01-01T00:00:00Z","mine":[1],'
                 b'"messages":[{"role":"user","content":"a","my":2}]}')
        kept, saved = store.open(self.folder, ID, "/elsewhere")
        self.assertIsNone(kept.save(saved.messages + MESSAGES, {}, None, None, [{"text": "step"}]))
        document = read(kept.path)
        self.assertEqual((document["created"], document["mine"], document["messages"][0]["my"]),
                         ("2020-01-01T00:00:00Z", [1], 2))
        self.assertEqual((document["id"], document["cwd"], document["plan"]),
                         (ID, "/elsewhere", [{"text": "step"}]))

    def test_a_message_is_encoded_once(self):
        message = history.user_message("first")
        kept = self.saved([message])
        message["content"] = "never done"  # shows that the line made before is written
        kept.save([message, MESSAGES[1]], USAGE, None, None)
        self.assertEqual([item["content"] for item in read(kept.path)["messages"]], ["first", "42"])

    def test_a_reused_address_is_encoded_again(self):
        kept = self.saved([history.user_message(str(number)) for number in range(50)])
        for turn in range(20):  # objects come and go: their addresses are used again
            messages = [history.user_message("%d %d" % (turn, number)) for number in range(50)]
            kept.save(messages, USAGE, None, None)
            self.assertEqual(read(kept.path)["messages"], messages)

    def test_a_removed_folder_is_made_again(self):
        kept = self.saved()
        for name in self.names():
            os.unlink(os.path.join(self.folder, name))
        os.rmdir(self.folder)
        self.assertIsNone(kept.save(MESSAGES, USAGE, None, None))
        self.assertEqual(store.open(self.folder, ID)[1].messages, MESSAGES)
        self.assertEqual(mode(self.folder), 0o700)

    def test_a_removed_project_is_not_made_again(self):
        kept = self.saved()
        shutil.rmtree(self.cwd)
        with self.assertRaises(FileNotFoundError):
            kept.save(MESSAGES, USAGE, None, None)
        self.assertFalse(os.path.exists(self.cwd))

    def test_a_copy_is_kept_under_another_id(self):
        kept = self.saved()
        self.assertEqual(kept.copy_as("other", MESSAGES, USAGE, "Sums", "demo"), "other")
        self.assertIsNone(kept.save([], USAGE, None, "demo"))
        self.assertEqual(store.open(self.folder, "other")[1].messages, MESSAGES)
        self.assertEqual(store.open(self.folder, ID)[1].messages, [])
        self.assertEqual(read(os.path.join(self.folder, "other.json"))["id"], "other")

    def test_a_copy_never_replaces_another_session(self):
        self.saved([], "other")
        copied = self.saved().copy_as("other", MESSAGES, USAGE, None, None)
        self.assertRegex(copied, r"^other-conflict-[0-9a-f]{8}$")
        self.assertEqual(store.open(self.folder, "other")[1].messages, [])
        self.assertEqual(store.open(self.folder, copied)[1].messages, MESSAGES)

    def test_is_due_some_seconds_after_the_last_attempt(self):
        kept = self.saved()
        self.assertFalse(kept.due())
        later = time.monotonic() + store.SAVE_EVERY
        self.assertTrue(kept.due(later))
        kept.save(MESSAGES, USAGE, None, None)
        self.assertFalse(kept.due(later))


class FailingToSave(StoreTest):
    def test_a_full_disk_leaves_the_last_save(self):
        lines = self.written(self.folder, ID, "a", 8, 10_000)
        self.assertEqual(lines, ["%d %s" % (number, ID) for number in range(1, 5)]
                         + ["failed: File too large"] * 4)
        self.assertEqual(len(store.open(self.folder, ID)[1].messages), 4)
        self.assertEqual(self.names(), [".gitignore", ID + ".json"])

    def test_a_folder_that_cannot_be_made(self):
        place = support.scratch_folder()
        os.chmod(place, 0o555)
        self.assertEqual(self.written("sessions", ID, "ro-a", 2, cwd=place),
                         ["failed: Permission denied"] * 2)

    def test_a_folder_that_cannot_be_written(self):
        kept = self.saved()
        os.chmod(self.folder, 0o555)
        os.chmod(kept.path, 0o444)
        self.addCleanup(os.chmod, self.folder, 0o700)
        self.assertEqual(self.written(".", ID, "ro-a", 1, cwd=self.folder), ["failed: Permission denied"])
        self.assertEqual(store.open(self.folder, ID)[1].messages, MESSAGES)

    def test_a_file_where_the_folder_should_be(self):
        os.makedirs(os.path.dirname(self.folder))
        with open(self.folder, "w"):
            pass
        with self.assertRaises(OSError):
            self.saved()
        self.assertEqual(self.refused(), store.NO_SUCH)

    def test_a_session_beyond_the_limit_is_still_saved(self):
        kept, large = self.saved(), MESSAGES + [history.user_message("x" * store.MAX_BYTES)]
        self.assertEqual(kept.save(large, USAGE, None, None), store.GROWN % ID)
        self.assertIsNone(kept.save(large + MESSAGES, USAGE, None, None))
        self.assertEqual((kept.id, self.refused()), (ID, store.TOO_LARGE))

    def test_the_next_save_makes_up_for_it(self):
        os.makedirs(os.path.dirname(self.folder))
        with open(self.folder, "w"):
            pass
        kept = store.create(self.folder, ID, self.cwd)
        with self.assertRaises(OSError):
            kept.save(MESSAGES, USAGE, None, None)
        os.unlink(self.folder)
        self.assertIsNone(kept.save(MESSAGES, USAGE, None, None))
        self.assertEqual(store.open(self.folder, ID)[1].messages, MESSAGES)

    def test_the_file_is_whole_after_any_kill(self):
        choice, kept = random.Random(8), 0
        for _ in range(4 if support.SHORT else 12):
            process = self.writer(self.folder, ID, "a", 10_000)
            for _ in range(choice.randrange(1, 4)):
                line = process.stdout.readline()
            time.sleep(choice.uniform(0, 0.01))
            with process:
                process.kill()
                last = (line + process.stdout.read()).splitlines()[-1]
            told = int(last.split()[0])
            # The file is that of the last save that ended, or of the next.
            kept, before = len(store.open(self.folder, ID)[1].messages), kept
            self.assertIn(kept, (told, told + 1))
            self.assertGreater(told, before)
        self.assertTrue(all(ID in name or name == ".gitignore" or name.startswith(".mm-")
                            for name in self.names()))


class TwoProcesses(StoreTest):
    def test_the_later_one_gets_its_own_file(self):
        kept = self.saved()
        self.assertEqual(self.written(self.folder, ID, "b", 1), ["3 " + ID])
        mine = MESSAGES + [history.user_message("mine")]
        news = kept.save(mine, USAGE, None, None)
        self.assertRegex(kept.id, "^%s-conflict-[0-9a-f]{8}$" % ID)
        self.assertEqual(news, store.CONFLICT % (ID, kept.id))
        self.assertEqual(read(kept.path)["id"], kept.id)
        # From now on each has its own, and nobody is in anybody's way.
        self.assertEqual(self.written(self.folder, ID, "b", 1), ["4 " + ID])
        self.assertIsNone(kept.save(mine + MESSAGES, USAGE, None, None))
        self.assertEqual(store.open(self.folder, kept.id)[1].messages, mine + MESSAGES)
        self.assertEqual(len(store.open(self.folder, ID)[1].messages), 4)

    def test_a_touched_file_is_not_a_conflict(self):
        kept = self.saved()
        os.utime(kept.path, (1, 1))
        self.assertIsNone(kept.save(MESSAGES, USAGE, None, None))

    def test_an_edit_that_keeps_the_size_is_one(self):
        kept = self.saved()
        with open(kept.path, "r+b") as file:
            data = file.read()
            file.seek(0)
            file.write(data.replace(b"42", b"43"))
        os.utime(kept.path)
        self.assertIn("-conflict-", kept.save(MESSAGES, USAGE, None, None))

    def test_a_removed_file_is_written_again(self):
        kept = self.saved()
        os.unlink(kept.path)
        self.assertIsNone(kept.save(MESSAGES, USAGE, None, None))
        self.assertEqual(store.open(self.folder, ID)[1].messages, MESSAGES)

    def test_a_new_session_never_replaces_another(self):
        self.saved()
        news = store.create(self.folder, ID, self.cwd).save([], {}, None, None)
        self.assertIn("-conflict-", news)
        self.assertEqual(store.open(self.folder, ID)[1].messages, MESSAGES)

    def test_the_id_of_a_conflict_can_be_loaded(self):
        for session_id in ("a" * 64, ID + "-conflict-00000000"):
            kept = self.saved([], session_id)
            self.saved_by_another(session_id)
            self.assertIn(session_id, kept.save(MESSAGES, USAGE, None, None))
            self.assertTrue(store.is_session_id(kept.id), kept.id)
            self.assertEqual(kept.id.count("-conflict-"), 1)
            self.assertEqual(store.open(self.folder, kept.id)[1].messages, MESSAGES)

    def saved_by_another(self, session_id):
        other, _ = store.open(self.folder, session_id)
        self.assertIsNone(other.save([], USAGE, "another title", None))

    def test_at_once_nothing_that_was_saved_is_lost(self):
        self.saved()
        names = ["one", "two", "three"]
        started = [self.writer(self.folder, ID, name, 40, stdin=subprocess.PIPE) for name in names]
        for process in started:
            process.stdin.close()
        last = []
        for process in started:
            last.append(process.stdout.read().splitlines()[-1].split())
            process.stdout.close()
            self.assertEqual(process.wait(), 0)
        self.assertIn(ID.encode(), [kept_under for _, kept_under in last])
        for name, (count, kept_under) in zip(names, last):
            messages = store.open(self.folder, kept_under.decode())[1].messages
            own = [message["content"].split()[1] for message in messages
                   if message["content"].startswith(name + " ")]
            self.assertEqual(own, [str(number) for number in range(40)])
            self.assertEqual(len(messages), int(count))
        self.assertEqual(len({kept_under for _, kept_under in last}), 3)

    def locked(self):
        """The folder, locked as by another process: a descriptor of its own."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        replacing.lock(descriptor)
        return descriptor

    def test_a_save_waits_for_the_other_ones_end(self):
        kept, done = self.saved(), threading.Event()

        def save():
            kept.save(MESSAGES, USAGE, "later", None)
            done.set()

        other = self.locked()
        thread = threading.Thread(target=save)
        thread.start()
        self.assertFalse(done.wait(0.1))
        os.close(other)
        thread.join(support.DEADLINE)
        self.assertEqual(read(kept.path)["title"], "later")

    def test_a_cancel_shortens_the_wait(self):
        kept, cancel, other = self.saved(), Cancel(), self.locked()
        self.addCleanup(os.close, other)
        threading.Timer(0.1, cancel.cancel).start()
        begin = time.monotonic()
        with self.assertRaises(OSError) as raised:
            kept.save(MESSAGES, USAGE, "later", None, cancel=cancel)
        self.assertEqual(raised.exception.strerror, store.BUSY)
        self.assertLess(time.monotonic() - begin, store.PATIENCE / 2)


class Loading(StoreTest):
    def test_only_an_id_reaches_the_disk(self):
        self.saved()
        os.rename(os.path.join(self.folder, ID + ".json"), os.path.join(self.cwd, "outside.json"))
        for wrong in ("../../outside", "/etc/passwd", "", ".", "a/b", "a.b", "a\0", "ä", "a" * 65, "a\n",
                      None, 1, ["a"]):
            with self.subTest(wrong):
                self.assertFalse(store.is_session_id(wrong))
                self.assertEqual(self.refused(wrong), store.BAD_ID)
        for right in ("a", "-", ID, "a" * 64):
            self.assertTrue(store.is_session_id(right))

    def test_what_is_not_there(self):
        self.assertEqual(self.refused(), "no such session")
        self.saved([], "another")
        self.assertEqual(self.refused(), "no such session")

    def test_a_broken_file_is_told_and_left_alone(self):
        for data, text in ((b"", "the session file is not JSON (line 1, column 1)"),
                           (b'{"version":7,"messages":[]}', "the session file was written by a newer mm "
                                                            "(version 7)")):
            self.put(data)
            self.assertEqual(self.refused(), text)
            with open(os.path.join(self.folder, ID + ".json"), "rb") as file:
                self.assertEqual(file.read(), data)

    def test_a_file_of_an_older_version(self):
        self.put(b'{"messages":[{"role":"assistant","content":"","calls":['
                 b'{"ref":"call_1","name":"bash","arguments":{"command":"ls"}}]}]}')
        kept, saved = store.open(self.folder, ID)
        self.assertIsNone(kept.save(saved.messages, saved.usage, None, None))
        document = read(kept.path)
        self.assertEqual((document["version"], document["messages"][0]["calls"][0]["arguments"]),
                         (1, '{"command": "ls"}'))
        self.assertRegex(document["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def test_a_fifo_does_not_make_it_wait(self):
        os.makedirs(self.folder)
        os.mkfifo(os.path.join(self.folder, ID + ".json"))
        self.assertEqual(self.refused(), store.NOT_REGULAR)

    def test_a_folder_of_that_name(self):
        os.makedirs(os.path.join(self.folder, ID + ".json"))
        self.assertEqual(self.refused(), store.NOT_REGULAR)

    def test_a_huge_file_is_not_read(self):
        self.put(b"")
        os.truncate(os.path.join(self.folder, ID + ".json"), store.MAX_BYTES + 1)
        self.assertEqual(self.refused(), "the session file is larger than 64 MB")

    def test_a_link_is_not_followed(self):
        self.saved()
        outside = os.path.join(self.cwd, "outside.json")
        os.rename(os.path.join(self.folder, ID + ".json"), outside)
        os.symlink(outside, os.path.join(self.folder, ID + ".json"))
        self.assertEqual(self.refused(), store.NOT_REGULAR)

    @unittest.skipUnless(os.getuid(), "root reads everything")
    def test_a_file_that_may_not_be_read(self):
        os.chmod(self.saved().path, 0)
        self.assertEqual(self.refused(), "the session file cannot be read: Permission denied")


class HostileFolders(StoreTest):
    """Links and FIFOs under the names that a save uses: what they lead to is never written."""

    def setUp(self):
        super().setUp()
        self.kept = self.saved()
        self.victim = os.path.join(self.cwd, "victim")
        with open(self.victim, "w") as file:
            file.write("untouched")

    def tearDown(self):
        with open(self.victim) as file:
            self.assertEqual(file.read(), "untouched")

    def test_a_link_instead_of_the_session_file(self):
        os.unlink(self.kept.path)
        os.symlink(self.victim, self.kept.path)
        self.assertIn("-conflict-", self.kept.save(MESSAGES, USAGE, None, None))
        self.assertEqual(store.open(self.folder, self.kept.id)[1].messages, MESSAGES)

    def test_a_link_in_the_place_of_the_gitignore(self):
        folder = os.path.join(self.cwd, "other")
        os.makedirs(folder)
        os.symlink(self.victim, os.path.join(folder, ".gitignore"))
        self.assertIsNone(store.create(folder, ID, self.cwd).save([], {}, None, None))


class TheReference(unittest.TestCase):
    def test_has_every_text_as_it_is_sent(self):
        from mm.conversation import session_file

        with open(os.path.join(support.PROJECT, "docs", "sessions.md"), encoding="utf-8") as file:
            page = file.read()
        for text, values in (
            (store.BAD_ID, ()), (store.NO_SUCH, ()), (store.NOT_REGULAR, ()), (store.TOO_LARGE, ()),
            (store.NOT_READABLE, ("<reason>",)), (session_file.NOT_UTF8.replace("%d", "%s"), ("N",)),
            (session_file.NOT_JSON.replace("%d", "%s"), ("N", "N")), (session_file.NOT_READABLE_JSON, ()),
            (session_file.WRONG_SHAPE, ("<where> must be <what>",)), (session_file.NEWER, ("N",)),
            (store.CONFLICT, ("<id>", "<id>-conflict-<hex>")), (store.GROWN, ("<id>",)),
        ):
            self.assertIn("`%s`" % (text % values if values else text), page)

    def test_has_every_key_of_the_file(self):
        from mm.conversation import session_file

        with open(os.path.join(support.PROJECT, "docs", "sessions.md"), encoding="utf-8") as file:
            page = file.read()
        for key in session_file.OWN_KEYS:
            self.assertIn("| `%s` |" % key, page)


if __name__ == "__main__":
    unittest.main()
