"""The tests of mm: unittest, real programs, and transcripts. `python3 -m unittest` runs them all."""

from __future__ import annotations

import os


def load_tests(loader, tests, pattern):
    """Called by the discovery in the place of its own walk through this folder: the tests run in other processes."""
    from tests.beside import PROJECT, beside

    folder = os.path.join(PROJECT, "tests")
    tests.addTests(loader.discover(folder, pattern or "test*.py", PROJECT))
    return beside(tests)
