"""`--check` in front of a real server."""

from __future__ import annotations

import re
import unittest

from tests import support
from tests.real import server


class Check(server.RealTest):
    def test_it_tells_what_the_server_is_and_whether_tools_work(self):
        done = support.run("--check", "--config", self.config(), timeout=server.PATIENCE)
        rows = {row[4:14].strip(): row for row in done.stdout.splitlines()}
        self.assertIn(server.url(), rows["server"])
        self.assertIn(server.model(), rows["model"])
        self.assertIn(str(server.window() or "unknown"), rows["window"])
        if server.calls_tools():
            self.assertEqual((rows["tools"][:2], done.returncode), ("ok", 0))
            self.assertRegex(rows["speed"], r"prompt [\d.]+ tokens/s, answer [\d.]+ tokens/s")
        else:
            self.assertEqual((rows["tools"][:2], done.returncode), ("!!", 1))
        for row in done.stdout.splitlines():
            self.assertTrue(re.match("(ok|--|!!|  )  ", row), row)
        server.report("--check: " + rows["tools"] + "\n           " + rows.get("speed", ""))


if __name__ == "__main__":
    unittest.main()
