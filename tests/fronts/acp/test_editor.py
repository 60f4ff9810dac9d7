"""What an editor is told of a wait for the model."""

from __future__ import annotations

import unittest
from types import SimpleNamespace

from mm.cancel import Cancel
from mm.events import Text, Thought, Waiting
from mm.fronts.acp.editor import Editor


def told(events, thoughts=True) -> list:
    """The updates for `events`, each given with the time by the clock."""
    seen, now = [], [0]
    peer = SimpleNamespace(send_encoded=lambda line: seen.append(line))
    process = SimpleNamespace(config=SimpleNamespace(acp_thoughts=thoughts))
    session = SimpleNamespace(id="s", peer=peer, process=process, update=lambda update: seen.append(
        (update["sessionUpdate"], update["content"]["text"])))
    editor = Editor(session, Cancel(), clock=lambda: now[0])
    for time, event in events:
        now[0] = time
        editor.emit(event)
    return seen


class AWait(unittest.TestCase):
    def test_is_a_thought_after_ten_seconds(self):
        events = [(second, Waiting("the model is loading", second)) for second in range(1, 75)]
        self.assertEqual(told(events), [("agent_thought_chunk", "⏳ the model is loading (%d s)\n\n" % second)
                                        for second in (10, 40, 70)])

    def test_is_not_shown_where_thoughts_are_not(self):
        self.assertEqual(told([(20, Waiting("the server is busy", 20))], thoughts=False), [])

    def test_does_not_end_a_stream(self):
        events = [(0, Thought("a\x1b[")), (20, Waiting("the server is busy", 20)), (21, Thought("1mb")),
                  (22, Text(""))]
        self.assertEqual([text for _, text in told(events)], ["a", "⏳ the server is busy (20 s)\n\n", "b"])


if __name__ == "__main__":
    unittest.main()
