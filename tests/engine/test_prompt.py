"""The system prompt."""

from __future__ import annotations

import platform
import unittest

from mm.engine import prepared


class SystemPrompt(unittest.TestCase):
    def test_it_is_short_and_names_where_it_works(self):
        text = prepared.system_prompt("bob", "/some/where")
        self.assertIn("You are bob, a coding agent. You work in /some/where", text)
        self.assertLess(len(text.encode()), 1600)

    def test_system_name_is_that_of_platform(self):
        self.assertIn(" on %s with bash" % platform.system(), prepared.system_prompt("bob", "/some/where"))


if __name__ == "__main__":
    unittest.main()
