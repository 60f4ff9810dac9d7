"""docs/lsp.md says what the code says."""

from __future__ import annotations

import os
import unittest

from mm.peers import languages, lsp_files
from mm.peers import lsp as client
from mm.text import size
from mm.tools import language_servers, lsp, lsp_answers, positions, rename
from tests import support

with open(os.path.join(support.PROJECT, "docs", "lsp.md"), encoding="utf-8") as _file:
    PAGE = _file.read()

# Each text of the rooms with what stands for its values on the page.
TEXTS = {
    lsp.NO_ACTION: ("<action>", "definition, …"), lsp.NEEDS: ("<action>", "<parameter>"),
    lsp.CANNOT: ("<server>", "<action>"), lsp.NOT_HERE: ("<symbol>", "<file>"),
    lsp.NO_SYMBOLS: ("<server>", "<file>"), lsp.NOT_FOUND: ("<query>",),
    lsp.NOTHING: ("<server>", "<definition, use or description>", "<symbol>", "<file>"),
    lsp.NO_PROBLEMS: ("<server>", "<file>"), lsp.NOT_THERE.replace("%d", "%s"): ("<symbol>", "<line>",
                                                                                 "<file>", "<lines>"),
                                                                                 lsp.NO_DIAGNOSTICS: ("<server>",), lsp.MAYBE_MORE: ("<server>",), lsp.NOTHING_NEW: ("<server>",), languages.WAITS: ("<server>",), lsp.NO_CHANGE: ("<server>", "<symbol>"), languages.NOT_ON_PATH: ("<language>", "<program>"),
    lsp.WOULD_RENAME: ("foo", "bar", "14 places in 5 files"), lsp.RENAMED: ("foo", "bar", "14 places in 5 "
                                                                                          "files"),
    language_servers.NO_SERVER: ("<extension> files", "<language> (<server>), …"),
    "[lsp: %s]" % language_servers.OFF: ("<server>", language_servers.FAILURES),
    "[lsp: %s]" % client.INDEXING: ("<server>",), "[lsp: %s]" % client.REFUSED: ("<server>", "<message>"),
    "[lsp: %s]" % client.NO_ANSWER: ("<server>", client.LIMIT),
    "[lsp: %s]" % client.NOT_STARTED: ("<server>", "<reason>"),
    "[lsp: %s: <last line on stderr>]" % client.ENDED: ("<server>", "<exit code or signal>"),
    rename.OUTSIDE: ("<file>",), rename.OVERLAP: ("<server>", "<file>"), rename.STALE: ("<server>", "<file>"),
    rename.UNKNOWN: ("<server>", "<file>"), rename.FILES: ("<server>",), rename.GONE: ("<server>", "<file>"),
    rename.RESTORED.split("\n")[1]: (), rename.NOT_RESTORED.split("\n")[1]: ("<files>",),
    lsp_answers.MORE.replace("%d", "%s"): ("<n>",),
}

# Limits as the page words them.
LIMITS = [
    "at most %d files and folders, %d levels deep" % (languages.ENTRIES, languages.DEPTH),
    "At most %d servers run at a time" % language_servers.SERVERS,
    "%d times at most" % language_servers.FAILURES, "of at most %d languages" % lsp.LANGUAGES_SEARCHED,
    "%d are tried" % lsp.TRIES, "the nearest of the %d lines" % positions.NEAR,
    "%d places, %d symbols, %d diagnostics" % (lsp_answers.PLACES, lsp_answers.SYMBOLS,
                                               lsp_answers.DIAGNOSTICS), "%d characters of a source line; %d "
                                                                         "characters of a `hover`"
                                                                         % (lsp_answers.LINE,
                                                                            lsp_answers.HOVER),
    "At most %d files are open" % lsp_files.OPEN_FILES,
    "%d s, %d s the first time" % (lsp_files.PATIENCE, lsp_files.FIRST_PATIENCE),
    "%d s for an answer, %d s for the first one and for the start; %d s for the end of indexing" % (
        client.LIMIT, client.FIRST_LIMIT, client.INDEXING_LIMIT),
    "nothing is heard for %d s counts" % client.SILENT,
    "%d of them are opened, of %s at most" % (language_servers.OPENED, size(language_servers.OPENED_SIZE)),
    "`content modified` (%d) | The question is asked again, twice, after %g s"
    % (client.CONTENT_MODIFIED, client.PAUSE),
]


class ThePage(unittest.TestCase):
    def test_it_has_every_text(self):
        for text, values in TEXTS.items():
            with self.subTest(text):
                self.assertIn("`%s`" % (text % values), PAGE)

    def test_no_text_of_the_rooms_is_missing_here(self):
        listed = {value for room in (lsp, languages, language_servers, rename, client, lsp_answers)
                  for name, value in vars(room).items()
                  if name.isupper() and isinstance(value, str) and "%" in value}
        known = "\n".join(TEXTS).replace("%s", "").replace("%d", "")
        self.assertEqual([text for text in listed
                          if text.split("\n")[-1].replace("%s", "").replace("%d", "") not in known
                          and text not in (client.ENDED, client.NO_ANSWER)], [])

    def test_it_has_the_limits(self):
        self.assertEqual(client.TRIES, 3)  # asked again twice
        for text in LIMITS:
            with self.subTest(text):
                self.assertIn(text, PAGE)

    def test_it_has_the_languages(self):
        for language in languages.LANGUAGES:
            row = "| `%s` | %s | %s | %s |\n" % (
                language.name, " ".join("`%s`" % each for each in language.extensions),
                ", ".join("`%s`" % " ".join(command) for command in language.commands),
                ", ".join("`%s`" % marker for marker in language.markers) or "none")
            with self.subTest(language.name):
                self.assertIn(row, PAGE)

    def test_it_has_the_actions(self):
        for name, action in lsp.ACTIONS.items():
            with self.subTest(name):
                self.assertIn("| `%s` | %s" % (name, ", ".join("`%s`" % need for need in action.needs)), PAGE)
