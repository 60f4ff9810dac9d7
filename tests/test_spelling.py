"""Names with accents, in the two forms that Unicode has for them, through the whole of mm."""

from __future__ import annotations

import os
import unittest
from unicodedata import normalize

from mm import spelling
from mm.tools import paths
from tests import support
from tests.fakes.model_server import ModelServer

COMPOSED, DECOMPOSED = normalize("NFC", "résumé é.txt"), normalize("NFD", "résumé é.txt")
FOLDER_COMPOSED, FOLDER_DECOMPOSED = normalize("NFC", "années"), normalize("NFD", "années")


class OnDisk(unittest.TestCase):
    def setUp(self):
        self.folder = support.scratch_folder()

    def put(self, *names):
        for name in names:
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "w").close()

    def found(self, *parts):
        return os.path.relpath(spelling.on_disk(os.path.join(self.folder, *parts)), self.folder)

    def test_the_only_twin_is_meant(self):
        self.put(DECOMPOSED, os.path.join(FOLDER_DECOMPOSED, "a.txt"))
        self.assertEqual(self.found(COMPOSED), DECOMPOSED)
        self.assertEqual(self.found(DECOMPOSED), DECOMPOSED)
        self.assertEqual(self.found(FOLDER_COMPOSED, "a.txt"), os.path.join(FOLDER_DECOMPOSED, "a.txt"))
        self.assertEqual(self.found(FOLDER_COMPOSED, "new é"), os.path.join(FOLDER_DECOMPOSED, "new é"))

    def test_the_exact_name_comes_first(self):
        self.put(DECOMPOSED, COMPOSED)
        self.assertEqual([self.found(name) for name in (COMPOSED, DECOMPOSED)], [COMPOSED, DECOMPOSED])

    def test_among_several_twins_none_is_meant(self):
        wanted, *twins = "\u1e69", "s\u0323\u0307", "s\u0307\u0323"
        self.put(*twins)
        self.assertEqual(self.found(wanted), wanted)

    def test_what_is_not_there_stays_as_written(self):
        for name in (COMPOSED, "plain", os.path.join("none", COMPOSED), "\0é"):
            self.assertEqual(self.found(name), name)


class ATool(unittest.TestCase):
    def test_every_path_of_a_tool_is_resolved_so(self):
        folder = support.scratch_folder()
        open(os.path.join(folder, DECOMPOSED), "w").close()
        for tool in ("lsp", "fetch_content", "read_file"):
            place = paths.resolve(folder, tool, COMPOSED)
            self.assertEqual((place.real, place.linked), (os.path.join(folder, DECOMPOSED), False))


class AMisspeltFile(unittest.TestCase):
    def setUp(self):
        self.folder = support.scratch_folder()
        self.server = ModelServer([{"text": "done"}])
        self.addCleanup(self.server.close)
        with open(os.path.join(self.folder, DECOMPOSED), "w", encoding="utf-8") as file:
            file.write("one\n")

    def test_every_tool_and_a_mention_find_it(self):
        calls = [("read_file", {"path": COMPOSED}),
                 ("edit_file", {"path": COMPOSED, "old_string": "one", "new_string": "two"}),
                 ("write_file", {"path": COMPOSED, "content": "three\n"})]
        self.server.script(*[[{"call": {"name": name, "arguments": arguments}}] for name, arguments in calls],
                           [{"text": "done"}])
        with support.Client(cwd=self.folder, env=support.environment(MM_URL=self.server.url,
                                                                     MM_MODEL="m")) as editor:
            editor.initialize()
            editor.prompt(editor.new_session(), 'look at @"%s"' % COMPOSED)
        messages = self.server.requests[-1].body["messages"]
        self.assertIn("[attached file: %s]" % os.path.join(self.folder, DECOMPOSED), messages[1]["content"])
        results = [message["content"] for message in messages if message["role"] == "tool"]
        self.assertEqual(results[0], "one\n")
        self.assertIn("[edited ", results[1])
        self.assertIn("[wrote ", results[2])
        self.assertEqual(os.listdir(self.folder), [DECOMPOSED])


if __name__ == "__main__":
    unittest.main()
