"""Tests against the model server that MM_REAL_URL names, with whatever model it has. Without one they are skipped: one line."""

from __future__ import annotations

import os
import sys
import unittest

NO_SERVER = "MM_REAL_URL names no model server"


def load_tests(loader, tests, pattern):
    """What unittest asks for the tests of this package: all, or one that stands for them."""
    if not os.environ.get("MM_REAL_URL"):
        print("tests/real: skipped, %s" % NO_SERVER, file=sys.stderr)
        tests.addTest(unittest.FunctionTestCase(unittest.skip(NO_SERVER)(lambda: None), description="a real model server"))
        return tests
    names = sorted(name[:-3] for name in os.listdir(os.path.dirname(__file__)) if name.startswith("test_"))
    tests.addTests(loader.loadTestsFromNames(["%s.%s" % (__name__, name) for name in names]))
    return tests
