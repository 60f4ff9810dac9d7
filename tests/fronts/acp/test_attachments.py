"""Prompt blocks as text: links in every client's spelling, and `@path`s."""

from __future__ import annotations

import os
import tempfile
import unittest

from mm.fronts.acp.attachments import LEFT_OUT, flatten, link_path, mentioned_paths


def embedded(uri):
    return {"type": "resource", "resource": {"uri": uri, "text": "inside"}}


class Folder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.cwd = os.path.realpath(holder.name)
        for name in ("a.py", "with space.md", "100%25.txt", "odd#L3.txt", "q?x.txt"):
            self.write(name)
        os.mkdir(self.path("src"))
        self.write("src/b.py")

    def path(self, name):
        return os.path.join(self.cwd, name)

    def write(self, name):
        with open(self.path(name), "w"):
            pass


class Links(Folder):
    def test_table(self):
        here = self.cwd
        for uri, shown in (
            ("file://%s/a.py" % here, "%s/a.py"),
            ("file://localhost%s/a.py" % here, "%s/a.py"),
            ("FILE://%s/a.py" % here, "%s/a.py"),
            ("file://%s/with space.md" % here, "%s/with space.md"),
            ("file://%s/with%%20space.md" % here, "%s/with space.md"),
            ("file://%s/100%%25.txt" % here, "%s/100%%25.txt"),
            ("file://%s/100%%2525.txt" % here, "%s/100%%25.txt"),
            ("file://%s/a.py#L10:20" % here, "%s/a.py lines 10-20"),
            ("file://%s/a.py#L10-20" % here, "%s/a.py lines 10-20"),
            ("file://%s/a.py#L10-L20" % here, "%s/a.py lines 10-20"),
            ("file://%s/a.py?symbol=main#L10:20" % here, "%s/a.py lines 10-20"),
            ("file://%s/a.py?symbol=main" % here, "%s/a.py"),
            ("file://%s/odd#L3.txt" % here, "%s/odd#L3.txt"),
            ("file://%s/q?x.txt" % here, "%s/q?x.txt"),
            ("file://%s/missing%%20one.py" % here, "%s/missing%%20one.py"),
            ("file://%s/src/" % here, "%s/src/"),
        ):
            with self.subTest(uri):
                self.assertEqual(link_path(uri), shown % here)

    def test_other_schemes_are_shown_as_they_are(self):
        for uri in ("zed:///agent/thread/1?name=x", "http://example.org/a%20b#L1", "untitled", "file:a.py"):
            self.assertEqual(link_path(uri), uri)


class Mentions(Folder):
    def test_table(self):
        for text, names in (
            ("look at @a.py", ["a.py"]),
            ("@a.py", ["a.py"]),
            ("look at @a.py, please", ["a.py"]),
            ("is it @a.py?", ["a.py"]),
            ("(see @src/b.py)", ["src/b.py"]),
            ("@a.py and again @a.py", ["a.py"]),
            ("@src/b.py before @a.py", ["src/b.py", "a.py"]),
            ("the folder @src/", ["src"]),
            ('@"with space.md" here', ["with space.md"]),
            ('@"missing one.md"', []),
            ("@missing.py", []),
            ("me@a.py", []),
            ("@src/../a.py", ["a.py"]),
            ("@100%25.txt", ["100%25.txt"]),
            ("a @ b", []),
            ("@\0", []),
            ("@~\0 and @~\ud800", []),
        ):
            with self.subTest(text):
                self.assertEqual(mentioned_paths(text, self.cwd), [self.path(name) for name in names])

    def test_absolute_and_home_paths(self):
        self.assertEqual(mentioned_paths("@%s" % self.path("a.py"), "/"), [self.path("a.py")])
        self.assertEqual(mentioned_paths("@~", "/"), [os.path.expanduser("~")])


class Flatten(Folder):
    def test_blocks_are_joined_and_mentioned_paths_follow(self):
        text, attached, ignored, left_out = flatten([
            {"type": "text", "text": "look at @a.py and "},
            {"type": "resource_link", "uri": "file://%s/src/b.py" % self.cwd, "name": "b.py"},
            {"type": "text", "text": " now"},
            {"type": "image", "data": "", "mimeType": "image/png"},
            {"type": "image", "data": "", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///x", "text": "@a.py"}},
            {},
        ], self.cwd)
        self.assertEqual(text, "look at @a.py and \n[attached file: %s/src/b.py] now\n[attached file: "
                               "%s/a.py]" % (
            self.cwd, self.cwd))
        self.assertEqual(attached, [self.path("a.py")])
        self.assertEqual(ignored, ["image", "resource", "None"])
        self.assertEqual(left_out, "2 images, 1 unknown block and /x were not sent: mm reads text and files "
                                   "on disk.")

    def test_the_line_about_what_was_not_sent(self):
        image, sound = {"type": "image"}, {"type": "audio"}
        for blocks, said in (
            ([image], "1 image was"),
            ([image, image], "2 images were"),
            ([sound, image], "1 recording and 1 image were"),
            ([embedded("untitled:Untitled-1")], "untitled:Untitled-1 was"),
            ([image, embedded("untitled:Untitled-1")], "1 image and untitled:Untitled-1 were"),
            ([embedded("untitled:a\u202eb\n")], "untitled:a\\u202eb was"),
            ([embedded("untitled:%d" % number) for number in range(7)],
             "untitled:0, untitled:1, untitled:2, untitled:3 and 3 more files were"),
            ([{"type": "resource"}, {"type": ["x"]}], "2 unknown blocks were"),
        ):
            with self.subTest(said):
                self.assertEqual(flatten(blocks, self.cwd).left_out, said + LEFT_OUT.split("%s")[2])

    def test_a_mentioned_file_is_not_left_out(self):
        blocks = [{"type": "text", "text": "see @a.py"}, embedded("file://%s/a.py" % self.cwd)]
        self.assertIsNone(flatten(blocks, self.cwd).left_out)

    def test_a_folder_is_a_directory(self):
        self.assertEqual(flatten([{"type": "text", "text": "@src"}], self.cwd)[0],
                         "@src\n[attached directory: %s/src]" % self.cwd)

    def test_blocks_without_their_field_are_ignored(self):
        self.assertEqual(flatten([{"type": "text"}, {"type": "text", "text": 1}, {"type": "resource_link"}],
                                 self.cwd),
                         ("", [], ["text", "resource_link"], LEFT_OUT % ("3 unknown blocks", "were")))


if __name__ == "__main__":
    unittest.main()
