"""read_file: what of a file is shown, how, and what is remembered of it."""

from __future__ import annotations

import os
import socket

from mm import events
from mm.tools import files
from tests.tools.calls import ToolTest

NUMBERS = "".join(f"{number}\n" for number in range(1, 3501))
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"

UNKNOWN = ("[the encoding of f is unknown: read as Latin-1, so letters other than ASCII may be wrong. "
           "In bash: iconv -f <encoding> -t UTF-8 f]\n")

# (what, the file, what is shown of it)
SHOWN = [
    ("as it is", b"a\n\tb\n", "a\n\tb\n"),
    ("no final newline", b"a\nb", "a\nb"),
    ("CRLF", b"a\r\nb\r\n", "a\nb\n"),
    ("old Mac", b"a\rb\r", "a\nb\n"),
    ("UTF-8", "grüße 💡\n".encode(), "grüße 💡\n"),
    ("UTF-8 with BOM", b"\xef\xbb\xbfa\n", "a\n"),
    ("UTF-16 little", "\ufeffgrüße\r\n".encode("utf-16-le"), "grüße\n"),
    ("UTF-16 big", "\ufeffgrüße\n".encode("utf-16-be"), "grüße\n"),
    ("what nothing names", "grüße\n".encode("latin-1"), UNKNOWN + "grüße\n"),
    ("GBK that nothing names", "中文\n".encode("gbk"), UNKNOWN + "ÖÐÎÄ\n"),
    ("a coding line", "# -*- coding: gbk -*-\n中文\n".encode("gbk"), "[decoded as gbk]\n# -*- coding: gbk "
                                                                   "-*-\n中文\n"),
    ("XML", "<?xml version='1.0' encoding='Big5'?>\n<a>中文</a>\n".encode("big5"),
     "[decoded as big5]\n<?xml version='1.0' encoding='Big5'?>\n<a>中文</a>\n"),
    ("HTML", '<meta charset="shift_jis">日本\n'.encode("shift_jis"), '[decoded as shift_jis]\n<meta '
                                                                   'charset="shift_jis">日本\n'),
    ("CSS", '@charset "iso-8859-15";\n/* 5 € */\n'.encode("iso-8859-15"), '[decoded as '
                                                                          'iso-8859-15]\n@charset '
                                                                          '"iso-8859-15";\n/* 5 € */\n'),
    ("a coding line that is wrong", "# coding: utf-8\né\n".encode("latin-1"),
     UNKNOWN + "# coding: utf-8\né\n"),
    ("a coding line that names none", "# coding: klingon\né\n".encode("latin-1"),
     UNKNOWN + "# coding: klingon\né\n"),
    ("a coding line that gives other bytes back", "# coding: unicode_escape\né\n".encode("latin-1"),
     UNKNOWN + "# coding: unicode_escape\né\n"),
    ("a coding line that names no text", "# coding: hex\né\n".encode("latin-1"),
     UNKNOWN + "# coding: hex\né\n"),
    ("UTF-32", "a中\n".encode("utf-32"), "a中\n"),
    ("empty", b"", "[f is empty]"),
    ("BOM alone", b"\xef\xbb\xbf", "[f is empty]"),
    ("one empty line", b"\n", "\n"),
    ("a NUL after the first 8 KiB", b"x\n" * 4096 + b"\0", "x\n" * 1000 and None),
    ("binary", PNG, "[read_file: f is binary (16 bytes); use bash to look at it]"),
    ("half a UTF-16 character is binary", b"\xff\xfea\0b", "[read_file: f is binary (5 bytes); use bash to "
                                                           "look at it]"),
    ("a long line", b"x" * 7321 + b"\nshort\n", "x" * 2000 + "… [+5321 chars]\nshort\n"),
]

# (arguments, first and last line shown, whether something follows), of 3500 lines
PARTS = [
    ({}, 1, 1000, True),
    ({"offset": 0}, 1, 1000, True),
    ({"offset": 1001}, 1001, 2000, True),
    ({"offset": 3001}, 3001, 3500, False),
    ({"offset": 10, "limit": 1}, 10, 10, True),
    ({"offset": -5}, 3496, 3500, False),
    ({"offset": -5, "limit": 2}, 3496, 3497, True),
    ({"offset": "3500"}, 3500, 3500, False),
    ({"limit": 0}, 1, 1000, True),
    ({"offset": -9999, "limit": 2}, 1, 2, True),
    ({"limit": 3499}, 1, 3499, True),
]


class Shown(ToolTest):
    def test_files(self):
        for what, content, expected in SHOWN:
            with self.subTest(what):
                self.put("f", content)
                if expected is not None:
                    self.assertEqual(self.output("read_file", path="f"), expected)
                else:
                    self.assertIn("lines 1-1000 of 4097", self.output("read_file", path="f"))

    def test_parts_carry_their_line_numbers(self):
        self.put("f", NUMBERS)
        for arguments, first, last, more in PARTS:
            with self.subTest(arguments):
                expected = f"[f: lines {first}-{last} of 3500]\n" + "".join(f"{number}\n"
                                                                            for number in range(first,
                                                                                                last + 1))
                expected += f"[use offset={last + 1} to read on]" if more else ""
                self.assertEqual(self.output("read_file", path="f", **arguments), expected)

    def test_all_lines_by_a_larger_limit(self):
        self.put("f", NUMBERS)
        self.assertEqual(self.output("read_file", path="f", limit=3500), NUMBERS)

    def test_an_offset_past_the_end(self):
        self.put("f", "x\n" * 120)
        self.assertEqual(self.output("read_file", path="f", offset=121), "[read_file: f has 120 lines]")

    def test_at_most_40000_characters(self):
        self.put("f", ("x" * 99 + "\n") * 900)
        self.assertTrue(self.output("read_file", path="f").startswith("[f: lines 1-400 of 900]\n"))

    def test_at_most_a_tenth_of_a_known_window(self):
        self.put("f", ("x" * 99 + "\n") * 900)
        output = self.output("read_file", self.new_context(window=8192), path="f")
        self.assertTrue(output.startswith("[f: lines 1-32 of 900]\n"))

    def test_a_binary_file_says_what_it_is(self):
        self.put("a.png", PNG + b"x" * 12579)
        self.assertEqual(self.output("read_file", path="a.png"),
                         "[read_file: a.png is binary (image/png, 12.3 KB); use bash to look at it]")

    def test_no_result_is_prose(self):
        self.put("f", "[a line]\n")
        result = self.run_tool("read_file", path="f")
        self.assertEqual((result.status, result.diff, result.prose), (events.COMPLETED, None, False))
        self.put("f", "")
        self.assertFalse(self.run_tool("read_file", path="f").prose)

    def test_it_never_asks(self):
        self.put("f", "x")
        action = self.prepare("read_file", path="f")
        self.assertEqual((action.title, action.paths, action.asks),
                         ("read_file: f", (self.path("f"),), False))


class Folders(ToolTest):
    def test_a_folder_gives_its_listing(self):
        for name in ("b.py", "a/x", ".hidden"):
            self.put(name, "")
        os.symlink("a", self.path("link"))
        self.assertEqual(self.output("read_file", path="."), ".hidden\na/\nb.py\nlink/")

    def test_at_most_200_names(self):
        for number in range(320):
            self.put(f"d/{number:03}", "")
        output = self.output("read_file", path="d").split("\n")
        self.assertEqual((len(output), output[0], output[199], output[200]),
                         (201, "000", "199", "[… 120 more]"))

    def test_an_empty_folder(self):
        os.mkdir(self.path("d"))
        self.assertEqual(self.output("read_file", path="d/"), "[d/ is an empty directory]")


class Refused(ToolTest):
    def test_what_is_not_there_with_similar_names(self):
        self.put("src/main.py", "")
        self.put("src/other.txt", "")
        self.assertEqual(self.output("read_file", path="src/mian.py"), "[read_file: src/mian.py does not "
                                                                       "exist. Similar: src/main.py]")
        self.assertEqual(self.output("read_file", path="nothing.like"), "[read_file: nothing.like does not "
                                                                        "exist]")

    def test_similar_names_are_found_further_down(self):
        self.put("deep/down/config.json", "")
        self.put("node_modules/config.json", "")
        self.assertEqual(self.output("read_file", path="config.json"),
                         "[read_file: config.json does not exist. Similar: deep/down/config.json]")

    def test_what_is_no_regular_file_is_not_opened(self):
        os.mkfifo(self.path("fifo"))
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        os.chdir(self.folder)  # a socket's path must be short
        self.addCleanup(os.chdir, "/")
        listener.bind("socket")
        for path in ("fifo", "socket", "/dev/zero", "/dev/stdin"):
            with self.subTest(path):
                if path == "/dev/stdin" and os.path.isfile(path):
                    continue
                for tool, more in (("read_file", {}), ("write_file", {"content": "x"}),
                                   ("edit_file", {"old_string": "a", "new_string": "b"})):
                    self.assertEqual(self.output(tool, path=path, **more),
                                     f"[{tool}: {path} is not a regular file]")

    def test_more_than_50_mb(self):
        with open(self.path("big"), "wb") as file:
            file.truncate(int(2.3 * (1 << 30)))
        self.assertEqual(self.output("read_file", path="big"), "[read_file: big is 2.3 GB; use bash with sed "
                                                               "-n or grep]")

    def test_paths_that_are_none(self):
        os.symlink("loop", self.path("loop"))
        self.put("file", "x")
        for path, expected in [
            ("", "[read_file: the path is empty]"),
            ("a\0b", "[read_file: the path holds a NUL character]"),
            ("loop", "[read_file: loop: Too many levels of symbolic links]"),
            ("file/below", "[read_file: file/below: Not a directory]"),
            ("x" * 300, f"[read_file: {'x' * 300}: File name too long]"),
        ]:
            with self.subTest(path[:20]):
                self.assertEqual(self.output("read_file", path=path), expected)


class Paths(ToolTest):
    def test_relative_absolute_home_and_at(self):
        self.put("f", "x")
        before = os.environ["HOME"]
        self.addCleanup(os.environ.__setitem__, "HOME", before)
        os.environ["HOME"] = self.folder
        for path in ("f", "./f", "x/../f", self.path("f"), "~/f", "@f"):
            with self.subTest(path):
                action = self.prepare("read_file", path=path)
                self.assertEqual((action.title, action.paths), (f"read_file: {path}", (self.path("f"),)))

    def test_the_title_names_the_target_of_links(self):
        target = self.put("real/notes.md", "x")
        os.symlink(target, self.path("notes.md"))
        os.symlink("real", self.path("folder"))
        for path in ("notes.md", "folder/notes.md"):
            action = self.prepare("read_file", path=path)
            self.assertEqual((action.title, action.paths), (f"read_file: {path} -> {target}", (target,)))

    def test_links_above_the_folder_are_not_named(self):
        self.put("real/f", "x")
        os.symlink("real", self.path("project"))
        context = self.new_context(folder=self.path("project"))
        for path in ("f", self.path("project/f")):
            action = self.prepare("read_file", context, path=path)
            self.assertEqual((action.title, action.paths), (f"read_file: {path}", (self.path("project/f"),)))


class Remembered(ToolTest):
    def known(self):
        real = os.path.realpath(self.path("f"))
        return self.context.seen.knows_whole(real, files.digest(self.get("f")))

    def test_a_file_shown_whole_is_known(self):
        self.put("f", "a\nb")
        self.output("read_file", path="f")
        self.assertTrue(self.known())

    def test_a_part_is_not_but_all_parts_are(self):
        self.put("f", NUMBERS)
        for offset in (1, 3001, 1001):
            self.output("read_file", path="f", offset=offset)
            self.assertFalse(self.known())
        self.output("read_file", path="f", offset=2001)
        self.assertTrue(self.known())

    def test_parts_of_different_contents_do_not_add_up(self):
        self.put("f", "a\nb\n")
        self.output("read_file", path="f", limit=1)
        self.put("f", "c\nd\n")
        self.output("read_file", path="f", offset=2)
        self.assertFalse(self.known())

    def test_a_cut_line_leaves_the_file_unknown(self):
        self.put("f", "x" * 2001)
        self.output("read_file", path="f")
        self.assertFalse(self.known())
