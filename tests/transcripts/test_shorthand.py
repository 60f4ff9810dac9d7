"""The short form of a transcript's lines: what it stands for, and that it is found again."""

from __future__ import annotations

import json
import unittest

from mm.errors import UserError
from mm.transcripts import transcript
from mm.transcripts.shorthand import Shorthand


def update(**fields) -> str:
    return '{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "<id>", "update": %s}}' % json.dumps(fields)


def text(content) -> dict:
    return {"type": "content", "content": {"type": "text", "text": content}}


def ended(status, content, output) -> str:
    return update(sessionUpdate="tool_call_update", toolCallId="call_1", status=status,
                  content=[text(content)], rawOutput={"output": output})


def call(**fields) -> str:
    return update(**dict({"sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "bash: ls",
                          "kind": "execute", "status": "pending", "rawInput": {"command": "ls"}}, **fields))


# (short, long), each by itself
LINES = (
    ("> prompt: go", '> {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {"sessionId": '
                     '"<id>", "prompt": '
                     '[{"type": "text", "text": "go"}]}}'),
    ("> cancel", '> {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "<id>"}}'),
    ("> answer 3: allow", '> {"jsonrpc": "2.0", "id": 3, "result": {"outcome": {"outcome": "selected", '
                          '"optionId": "allow"}}}'),
    ("< text: Hi, <any>", "< " + update(sessionUpdate="agent_message_chunk",
                                        content={"type": "text", "text": "Hi, <any>"})),
    ('< thought: "a\\nb "', "< " + update(sessionUpdate="agent_thought_chunk",
                                          content={"type": "text", "text": "a\nb "})),
    ("< user: Hi", "< " + update(sessionUpdate="user_message_chunk", content={"type": "text", "text": "Hi"})),
    ("< call_1 bash: ls", "< " + call()),
    ('< call_1 lsp: x (read) {"a":1} at <cwd>/b', "< " + call(
        title="lsp: x", kind="read", rawInput={"a": 1}, locations=[{"path": "<cwd>/b"}])),
    ('< call_1 free: x (other) {"a":1}', "< " + call(title="free: x", kind="other", rawInput={"a": 1})),
    ("< call_1 runs", "< " + update(sessionUpdate="tool_call_update", toolCallId="call_1",
                                    status="in_progress")),
    ("< call_1 completed: hi", "< " + ended("completed", "```\nhi\n```", "hi")),
    ("< call_1 failed, plain: [no]", "< " + ended("failed", "[no]", "[no]")),
    ("< usage: <n> of 0", "< " + update(sessionUpdate="usage_update", used="<n>", size=0)),
    ('< done: end_turn {"inputTokens":1}',
     '< {"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn", "usage": {"inputTokens": 1}}}'),
    ("< error: no", '< {"jsonrpc": "2.0", "id": 0, "error": {"code": -32603, "message": "Internal error: '
                    'no", '
                    '"data": {"error": "no"}}}'),
    ("~", "~ {}"),
    ("= text: Hi", '= {"text": "Hi"}'),
    ("= bash: ls", '= {"call": {"name": "bash", "arguments": {"command": "ls"}}}'),
    ('= lsp {"action":"x"}', '= {"call": {"name": "lsp", "arguments": {"action": "x"}}}'),
)


def values(lines: str) -> list:
    """What the lines say, whichever way they are written."""
    parsed = transcript.parse("~ {}\n" + lines)
    return [(line.sign, json.loads(line.text) if line.sign == ">" else line.value) for line in parsed]


class TheShortForm(unittest.TestCase):
    def test_stands_for_the_long_one(self):
        for short, long in LINES:
            with self.subTest(short):
                self.assertEqual(values(short), values(long))

    def test_is_found_for_the_long_one(self):
        for short, long in LINES:
            with self.subTest(short):
                sign, _, content = long.partition(" ")
                self.assertEqual(" ".join(Shorthand().shortened((sign, content))).rstrip(), short)

    def test_says_all_or_is_not_used(self):
        for sign, long in ((">", '{"jsonrpc": "2.0", "id": 7, "method": "session/cancel", "params": '
                                 '{"sessionId": "<id>"}}'),
                           ("<", call(status="completed")), ("<", call(more=1)),
                           ("=", '{"text": ["a", "b"]}'), ("~", '{"tools": []}'), (">", "no JSON")):
            with self.subTest(long):
                self.assertIsNone(Shorthand().shortened((sign, long)))

    def test_a_session_is_a_request_an_answer_and_the_commands(self):
        self.assertEqual([line.sign for line in transcript.parse("# session\n# session 2")],
                         [">", "<", "<*"] * 2)
        self.assertEqual(transcript.parse("# session\n# session 2")[4].text,
                         '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"<id2>"}}')

    def test_what_runs_has_run_in_one_line(self):
        self.assertEqual(values("< call_1 ran: hi"), values("< call_1 runs\n< call_1 completed: hi"))
        lines = [("<", line.text) for line in transcript.parse("< call_1 ran: hi")]
        self.assertEqual(Shorthand().shortened(*lines), ("<", "call_1 ran: hi"))

    def test_a_permission_shows_the_call(self):
        asked = transcript.parse("< asks 3: call_1 bash: ls")[0].value["params"]
        self.assertEqual(asked["toolCall"]["content"], [text("```\nls\n```")])
        self.assertEqual(asked["toolCall"]["rawInput"], {"command": "ls"})

    def test_what_cannot_be_seen_is_escaped(self):
        short = Shorthand().shortened(("=", json.dumps({"text": "a\u202eb"})))
        self.assertEqual(short, ("=", 'text: "a\\u202eb"'))

    def test_broken_lines_are_named(self):
        for line in ('< text: "open', "< done: end_turn {a}", "< nothing of the kind"):
            with self.subTest(line), self.assertRaisesRegex(UserError, "^transcript line 1 "):
                transcript.parse(line)


if __name__ == "__main__":
    unittest.main()
