"""What `$MM_TRACE` writes of one line."""

from __future__ import annotations

import os
import re
import unittest

from mm.fronts.acp.trace import open_trace
from tests import support


def traced(line: bytes, secrets=()) -> str:
    """What stands in the trace behind the time and the direction."""
    path = support.scratch_folder() + "/trace"
    open_trace(path, secrets)("<", line)
    with open(path, encoding="utf-8") as file:
        return file.read().split(" ", 2)[2][:-1]


class Lines(unittest.TestCase):
    def test_table(self):
        deep = b'{"apiKey":"hush","a":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
        for line, shown in (
            (b'{"id":1,"method":"m"}\n', '{"id":1,"method":"m"}'),
            (b'{"params":{"token":"hush"}}\n', '{"params":{"token":"[masked]"}}'),
            (b"no JSON\r\n", "no JSON"),
            (b"\xff", "\ufffd"),
            (deep, "[%d bytes, nested too deeply to be masked]" % len(deep)),
        ):
            with self.subTest(line[:40]):
                self.assertEqual(traced(line), shown)

    def test_the_key_is_masked_wherever_it_stands(self):
        self.assertEqual(traced(b'{"text":"it is hush-hush, yes"}', [None, "hush-hush", "it"]),
                         '{"text":"it is [masked], yes"}')

    def test_a_key_in_pieces_is_masked(self):
        path = support.scratch_folder() + "/trace"
        trace = open_trace(path, ["hush-hush"])
        line = ('{"params":{"sessionId":"s","update":'
                '{"sessionUpdate":"agent_%s_chunk","content":{"type":"text","text":"%s"}}}}')
        pieces = ("message", "it is hu"), ("message", "sh-"), ("message", "hush, yes"), ("thought", "hush-hu")
        for piece in pieces:
            trace(">", (line % piece).encode())
        trace("<", b'{"id":1}')
        with open(path, encoding="utf-8") as file:
            texts = re.findall('"text":"(.*?)"', file.read())
        self.assertEqual(texts, ["it is [masked], yes", "", "", "hush-hu"])

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full here")
    def test_a_full_disk_ends_the_trace_alone(self):
        trace = open_trace("/dev/full")
        for _ in range(2):
            trace("<", b'{"id":1}')

    def test_what_the_editor_gives_its_servers_is_masked(self):
        self.assertEqual(traced(b'{"params":{"mcpServers":[{"env":[{"name":"A","value":"b"}]}]}}'),
                         '{"params":{"mcpServers":[{"env":[{"name":"A","value":"[masked]"}]}]}}')

    def test_nothing_secret_shows_however_deep_the_line_is(self):
        for depth in range(300, 1100, 50):  # where what can be read cannot be masked, and then cannot be read
            self.assertNotIn("hush", traced(b'{"apiKey":"hush","a":' + b"[" * depth + b"]" * depth + b"}"),
                             depth)


if __name__ == "__main__":
    unittest.main()
