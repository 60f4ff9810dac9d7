"""docs/context.md says what the code says: every text and every number."""

from __future__ import annotations

import os
import re
import unittest

from mm.conversation import compaction, estimate, history
from mm.engine import compact, summary
from mm.engine.second_tries import REFUSED_AS_TOO_LONG
from mm.model import probe, window
from tests import support


class ThePage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(support.PROJECT, "docs", "context.md"), encoding="utf-8") as file:
            cls.page = file.read()

    def test_the_texts(self):
        texts = [
            compact.COMPRESSED.replace("%.1f", "N.N").replace("%d", "N"),
            compact.NOTHING % (0, 0), compact.CLEARED.replace("%d", "N"), compact.FAILED % "<explanation>",
            REFUSED_AS_TOO_LONG.end % ("<used>", "<window>"), compaction.CLEARED % "<tool>", window.UNKNOWN,
            *(text.replace("%d", "N").replace("%s", "<command>")
              for text in (window.SMALL, window.TRUNCATED)), history.SUMMARY_HEAD, history.SUMMARY_END,
              compaction.NOT_SMALLER,
            summary.NO_SUMMARY, summary.TOOL_CALL, summary.TOO_LONG, summary.CUT, summary.TOO_MUCH_THOUGHT,
            compact.NOTHING_LEFT,
        ] + [form % "…" for form in compaction.FACTS.values()]
        for text in texts:
            text = text.replace("0 message(s), no turn older than the last 0",
                                "N message(s), no turn older than the last K")
            with self.subTest(text):
                self.assertIn("`%s`" % text, self.page)

    def test_the_numbers(self):
        for sentence in (
                "Below %d tokens" % window.SMALL_WINDOW, "Each question has %d s" % probe.QUESTION_SECONDS,
                "%s ASCII characters a token" % estimate.ASCII_PER_TOKEN,
                "%d tokens a message" % estimate.PER_MESSAGE,
                "between %s and %s" % (estimate.LOWEST_RATIO, estimate.HIGHEST_RATIO),
                "older than the last %d and longer than %d characters"
                % (compaction.KEPT_OUTPUTS, compaction.SHORT_OUTPUT),
                "at least %d %% of the window" % (100 * compaction.WORTH_CLEARING),
                "the last %d calls and their results, or %d or %d" % compaction.KEPT_GROUPS,
                "more than %d %% of the window" % (100 * compaction.LARGEST_SUMMARY),
                "cut to {:,} characters".format(compaction.MESSAGE_SHOWN), "At most %d words (a word for %d "
                                                                           "tokens"
                                                                           % (compaction.SUMMARY_WORDS,
                                                                              summary.WINDOW_A_WORD),
                                                                              "at most %d %% of the tokens"
                                                                              % (100 * compaction.SHRUNK),
                                                                              "after two failed attempts",
                "aiming at %d %% of" % (100 * summary.AFTER_REFUSAL),
                "{:,} tokens if".format(compact.SUSPICIOUS_TOKENS)):
            with self.subTest(sentence):
                self.assertIn(sentence, self.page)
        self.assertEqual((compact.FAILURES, compact.SUSPICIOUS), (2, 0.5))

    def test_the_headings_and_the_tools(self):
        headings = re.search(r"headings (.*?)\. An earlier", self.page).group(1)
        self.assertIn(headings, compaction.INSTRUCTIONS)
        self.assertIn("Those of `%s`, `%s` and `%s` stay" % compaction.NEVER_CLEARED, self.page)


if __name__ == "__main__":
    unittest.main()
