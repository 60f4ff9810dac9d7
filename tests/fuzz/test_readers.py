"""2,000 broken inputs for each reader; `python3 -m tests.fuzz NAME COUNT` tries any number."""

from __future__ import annotations

import random
import unittest

from tests.fuzz.__main__ import fuzz
from tests.fuzz.mutation import variant
from tests.fuzz.readers import READERS

COUNT = 2000


class EveryReader(unittest.TestCase):
    def test_a_seed_gives_the_same_inputs_again(self):
        for name, reader in READERS.items():
            first, second = ([variant(chance, reader.samples) for _ in range(20)] for chance in
                             (random.Random(7), random.Random(7)))
            self.assertEqual(first, second, name)


def _takes_broken_input(name):
    def test(self):
        fuzz(name, COUNT)

    return test


# One test for each reader, so that they can be run by name.
for _name in READERS:
    setattr(EveryReader, "test_broken_input_is_refused_in_words_" + _name, _takes_broken_input(_name))


if __name__ == "__main__":
    unittest.main()
