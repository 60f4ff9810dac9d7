"""Diffs: whole where they are small, else the changed region."""

from __future__ import annotations

import unittest

from mm import diff
from mm.events import Diff


class ChangedRegion(unittest.TestCase):
    def test_only_changed_lines_with_some_context(self):
        lines = ["line %d\n" % number for number in range(5_000)]
        after = list(lines)
        after[2_500] = "changed\n"
        old, new = diff.changed_region("".join(lines), "".join(after))
        self.assertEqual(old, "".join(lines[2_497:2_504]))
        self.assertEqual(new, old.replace("line 2500\n", "changed\n"))

    def test_ends(self):
        long = "x\n" * 20
        for before, after in (("a\n" + long, "b\n" + long), (long + "a", long + "b"), ("", long), (long, "")):
            old, new = diff.changed_region(before, after)
            self.assertNotEqual(old, new)
            self.assertIn(old, before)
            self.assertIn(new, after)

    def test_a_large_region_is_cut_with_a_sign(self):
        old, new = diff.changed_region("a" * 100_000, "b" * 100_000)
        self.assertTrue(old.endswith("a… [1 more line(s) not shown]"), old[-40:])
        self.assertTrue(new.endswith("b… [1 more line(s) not shown]"), new[-40:])

    def test_a_small_diff_is_left_as_it_is(self):
        for small in (Diff("/a", None, "x"), Diff("/a", "", "x\n"), Diff("/a", "a\n" * 100, "")):
            self.assertEqual(diff.capped(small), small)

    def test_a_large_new_file_stays_a_new_file(self):
        shown = diff.capped(Diff("/a", None, "line\n" * 10_000))
        self.assertIsNone(shown.old)
        self.assertRegex(shown.new, r"… \[\d+ more line\(s\) not shown\]$")


if __name__ == "__main__":
    unittest.main()
