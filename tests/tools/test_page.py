"""What a page looks like as text: a table of pages in tests/data/pages, and pages that want to be the
last.
"""

from __future__ import annotations

import os
import time
import tracemalloc
import unittest

from mm.cancel import Cancel, Cancelled
from mm.tools import page
from tests import support

PAGES = os.path.join(support.PROJECT, "tests", "data", "pages")

# Each takes html.parser on its own a time that grows with its square, or hides a lot from it.
HOSTILE = {
    "quotes": "<a'",
    "start tags": "<a ",
    "end tags": "</a",
    "attributes": "<a b='",
    "declarations": "<!",
    "marked sections": "<![",
    "comments": "<!--",
    "instructions": "<?",
    "scripts": "<script",
    "open scripts": "<script>",
    "open pictures": "<svg>",
    "quoted pictures": '<svg a="',
    "titles": "<title>",
    "references": "&",
    "bogus ends": "</#",
}


def read(markup, url="https://e.example/docs/page.html", check=lambda: None):
    return page.read(markup, url, check)


class Pages(unittest.TestCase):
    def test_the_table(self):
        names = sorted(name[:-5] for name in os.listdir(PAGES) if name.endswith(".html"))
        self.assertGreaterEqual(len(names), 9)
        for name in names:
            with self.subTest(name):
                with open(os.path.join(PAGES, name + ".html"), encoding="utf-8") as file:
                    found = read(file.read())
                with open(os.path.join(PAGES, name + ".txt"), encoding="utf-8") as file:
                    expected = file.read()
                title = "# %s\n\n" % found.title if found.title else ""
                self.assertEqual((title + found.text + "\n", found.note), (expected, None))

    def test_pieces_do_not_show(self):
        with open(os.path.join(PAGES, "document.html"), encoding="utf-8") as file:
            markup = file.read()
        expected = read(markup).text
        for length in range(page.PIECE - len(markup), page.PIECE, 7):
            self.assertEqual(read(" " * length + markup).text, expected)

    def test_nothing_at_all(self):
        for markup in ("", " \n", "<html></html>", "<!-- -->", "<!-->", "<p>"):
            with self.subTest(markup):
                self.assertEqual(read(markup), ("", "", None))

    def test_comments_as_browsers_end_them(self):
        for markup in ("<!-->x", "<!--->x", "<!-- > -->x", "<!-- --!>x", "<!-- <!-- -->x"):
            with self.subTest(markup):
                self.assertEqual(read(markup).text, "x")

    def test_long_programs_are_not_broken_markup(self):
        long = "x < y; " * 10_000
        found = read("<script>%s</script><style>%s</style><!--%s--><p>a<img alt=b "
                     "src='data:image/png;base64,%s'>c" % (long, long, long, "A" * 99_999))
        self.assertEqual((found.text, found.note), ("abc", None))

    def test_a_script_that_never_ends_takes_the_rest(self):
        self.assertEqual(read("<p>a<script>" + "b" * 99_999).text, "a")

    def test_colours_and_controls_are_gone(self):
        self.assertEqual(read("<p>\x1b[31mred\x1b[0m\x07 a\x00b").text, "red ab")
        self.assertEqual(read("<title>\x1b]0;x\x07a\nb</title>").title, "a b")

    def test_references_to_no_character(self):
        """Python refuses to read a number of thousands of digits, and needs long for one that it does
        read.
        """
        for digits in ("9" * 8, "9" * 50_000, "x" + "F" * 50_000, "1114112", "x110000", "xD800", "0",
                       "0" * 50_000):
            for end in (";", ""):
                reference = "&#" + digits + end
                with self.subTest(reference[:12], length=len(reference)):
                    found = read("<title>t%s</title><p>a%s <img alt='b%s'><a href='/%s'>c</a>"
                                 % ((reference,) * 4))
                    self.assertEqual((found.title, found.text.split(" ")[0]), ("t\ufffd", "a\ufffd"))
                    self.assertIn(" b\ufffd", found.text)
        self.assertEqual(read("&#%s65;&#x%s42;&#<!-- -->%s" % ("0" * 9_000, "0" * 9_000, "9" * 9_000)).text,
                         "AB\ufffd")

    def test_line_ends_of_all_systems(self):
        self.assertEqual(read("<pre>a\r\nb\rc</pre>").text, "```\na\nb\nc\n```")


class Limits(unittest.TestCase):
    def test_hostile_pages_come_to_an_end(self):
        for name, piece in HOSTILE.items():
            with self.subTest(name):
                markup = "<p>begin</p>" + piece * (page.READ // 4 // len(piece))
                begin = time.thread_time()
                found = read(markup)
                self.assertLess(time.thread_time() - begin, page.CPU_SECONDS + 1)
                self.assertTrue(found.text.startswith("begin"), found.text[:50])
                self.assertLess(len(found.text), page.TEXT_LIMIT + page.READ)

    def test_a_tag_that_never_ends_takes_no_memory(self):
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for rest in ("a " * 100_000, "a='' " * 40_000):
            read("<script " + rest)
        self.assertLess(tracemalloc.get_traced_memory()[1], 15_000_000)

    def test_broken_markup_is_cut_with_a_word(self):
        self.assertEqual(read("<p>begin</p>" + "<a'" * 20_000)[1:], ("begin", "[page cut: its markup is "
                                                                              "broken]"))
        self.assertEqual(page.BROKEN, "[page cut: its markup is broken]")

    def test_the_first_megabyte_is_read(self):
        found = read("<p>" + "word " * 400_000)
        self.assertEqual((len(found.text), found.note), (page.READ - len("<p>"), page.LONG))

    def test_links_that_grow_are_cut(self):
        found = read("<a href=x>y</a>" * 6_000, "https://e.example/" + "d" * 900 + "/")
        self.assertLess(len(found.text), page.TEXT_LIMIT + 20_000)
        self.assertEqual(found.note, page.LONG)

    def test_what_is_nested_without_end(self):
        for piece in ("<ul><li>x", "<blockquote>x", "<table><tr><td>x", "<div>x", "<b>x", "<main>x", "<pre>x",
                      "<ol><li>"):
            with self.subTest(piece):
                begin = time.thread_time()
                found = read(piece * 3_000)
                self.assertLess(time.thread_time() - begin, page.CPU_SECONDS + 1)
                self.assertLess(len(found.text), 3_000 * 40)

    def test_a_cancel_ends_it_in_the_middle(self):
        for markup in ("<a'" * 100_000, "<p>x</p>" * 100_000, "<script></script>" * 50_000, "<" * 50_000):
            with self.subTest(markup[:8]):
                cancel, count = Cancel(), []

                def check():
                    count.append(1)
                    if len(count) == 3:
                        cancel.cancel()
                    cancel.check()

                begin = time.thread_time()
                with self.assertRaises(Cancelled):
                    read(markup, check=check)
                self.assertLess(time.thread_time() - begin, 1)


if __name__ == "__main__":
    unittest.main()
