"""Events as the protocol's updates: shapes, sizes, fences, diffs."""

from __future__ import annotations

import json
import unittest

from mm.events import (
    ALLOW, COMPLETED, FAILED, REJECT, Diff, Permission, Text, Thought, ToolEnded, ToolOutput, ToolPending,
    ToolStarted,
)
from mm.json_text import encoded_size
from mm.fronts.acp import updates

BASH = ToolPending("call_1", "bash", "bash: ls", "execute", {"command": "ls"}, ())
EDIT = ToolPending("call_2", "edit_file", "edit_file: a.py", "edit", {"path": "a.py"}, ("/w/a.py",))
LINE_LIMIT = 64 * 1024


def text(content):
    return {"type": "content", "content": {"type": "text", "text": content}}


# name: (event, update)
SHAPES = {
    "answer": (Text(" a\n"), {"sessionUpdate": "agent_message_chunk",
                              "content": {"type": "text", "text": " a\n"}}),
    "thought": (Thought("hm"), {"sessionUpdate": "agent_thought_chunk",
                                "content": {"type": "text", "text": "hm"}}),
    "a command": (BASH, {"sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "bash: ls",
                         "kind": "execute", "status": "pending", "rawInput": {"command": "ls"}}),
    "a file": (EDIT, {"sessionUpdate": "tool_call", "toolCallId": "call_2", "title": "edit_file: a.py",
                      "kind": "edit", "status": "pending", "rawInput": {"path": "a.py"},
                      "locations": [{"path": "/w/a.py"}]}),
    "an unknown kind is execute": (
        BASH._replace(kind="odd"), {"sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "bash: ls",
                                    "kind": "execute", "status": "pending", "rawInput": {"command": "ls"}}),
    "started": (ToolStarted("call_1"),
                {"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "in_progress"}),
    "live output": (ToolOutput("call_1", "a\n"), {
        "sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "in_progress",
        "content": [text("```\na\n```")]}),
    "output is fenced, raw it is plain": (ToolEnded("call_1", COMPLETED, "# a", None, False), {
        "sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed",
        "content": [text("```\n# a\n```")], "rawOutput": {"output": "# a"}}),
    "output that looks like a note is fenced": (ToolEnded("call_1", FAILED,
                                                          "[![x](https://host.example/p.png)]", None, False),
                                                {
        "sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "failed",
        "content": [text("```\n[![x](https://host.example/p.png)]\n```")],
        "rawOutput": {"output": "[![x](https://host.example/p.png)]"}}),
    "output is cleaned": (ToolEnded("call_1", COMPLETED, "\x1b[31mred\x1b]0;t\x07\x00\n", None, False), {
        "sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed",
        "content": [text("```\nred\n```")], "rawOutput": {"output": "red\n"}}),
    "a note is not fenced": (ToolEnded("call_1", FAILED, "[no]", None, True), {
        "sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "failed",
        "content": [text("[no]")], "rawOutput": {"output": "[no]"}}),
    "prose is not fenced": (ToolEnded("call_1", COMPLETED, "# a\nb", None, True), {
        "sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed",
        "content": [text("# a\nb")], "rawOutput": {"output": "# a\nb"}}),
    "prose loads nothing": (ToolEnded("call_1", COMPLETED, "![x](https://host.example/p.png)", None, True), {
        "sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed",
        "content": [text("!\\[x](https://host.example/p.png)")],
        "rawOutput": {"output": "![x](https://host.example/p.png)"}}),
    "a change is a diff": (ToolEnded("call_2", COMPLETED, "[edited]", Diff("/w/a.py", "a\n", "b\n"), False), {
        "sessionUpdate": "tool_call_update", "toolCallId": "call_2", "status": "completed",
        "content": [{"type": "diff", "path": "/w/a.py", "oldText": "a\n", "newText": "b\n"}],
        "rawOutput": {"output": "[edited]"}}),
    "a new file has no old text": (ToolEnded("call_2", COMPLETED, "[created]", Diff("/w/a.py", None, ""),
                                             False), {
        "sessionUpdate": "tool_call_update", "toolCallId": "call_2", "status": "completed",
        "content": [{"type": "diff", "path": "/w/a.py", "newText": ""}],
        "rawOutput": {"output": "[created]"}}),
}


HIDDEN, SEEN = "rm\u202e x\u2028" + " " * 1000 + "y\U000e0041", "rm\\u202e x\\u2028[1000 blanks]y\\U000e0041"


class WhatAPersonDecidesOn(unittest.TestCase):
    def test_hides_nothing(self):
        pending = BASH._replace(arguments={"command": HIDDEN, "more": [{HIDDEN: HIDDEN}, 1, None]})
        call = updates.permission_request("s", Permission(pending, None, HIDDEN))["toolCall"]
        self.assertEqual(call["rawInput"], {"command": SEEN, "more": [{SEEN: SEEN}, 1, None]})
        self.assertEqual(call["content"], [text("```\n%s\n```" % SEEN)])
        diff = Diff("/w/a\u202eb", HIDDEN, HIDDEN + "\n")
        call = updates.permission_request("s", Permission(EDIT, diff, None))["toolCall"]
        self.assertEqual(call["content"], [{"type": "diff", "path": "/w/a\\u202eb", "oldText": SEEN,
                                            "newText": SEEN + "\n"}])
        self.assertEqual(updates.update(ToolEnded("call_2", COMPLETED, "", diff, False))["content"],
                         call["content"])

    def test_a_line_of_hidden_characters_stays_short(self):
        line = Diff("/w/a", "\U000e0041" * 50_000, "\x01" * 50_000)
        request = updates.permission_request("s", Permission(EDIT, line, None))
        self.assertLess(encoded_size(request), LINE_LIMIT)

    def test_arguments_nested_too_deeply_are_left_out(self):
        deep = []
        for _ in range(5000):
            deep = [deep]
        self.assertEqual(updates.update(BASH._replace(arguments={"command": deep}))["rawInput"], {})


class Shapes(unittest.TestCase):
    def test_table(self):
        for name, (event, expected) in SHAPES.items():
            with self.subTest(name):
                self.assertEqual(updates.update(event), expected)

    def test_a_fence_is_longer_than_the_backticks_inside(self):
        shown = updates.update(ToolEnded("call_1", COMPLETED, "```\nx\n````", None, False))["content"][0]
        self.assertTrue(shown["content"]["text"].startswith("`````\n"))


class Sizes(unittest.TestCase):
    def test_no_line_is_too_long_for_clients(self):
        for filler in ("x", "\x01", "é", "漢", "🙂", "\n", '"'):
            huge = filler * 200_000
            change = Diff("/w/a", "a" + huge, "b" + huge[:-1])
            pending = EDIT._replace(arguments={"content": huge, "path": "a", "list": [huge]})
            events = [
                ToolOutput("call_1", huge), ToolEnded("call_1", COMPLETED, huge, None, False), pending,
                ToolEnded("call_1", COMPLETED, huge, change, False),
            ]
            lines = [updates.update(event) for event in events]
            lines.append(updates.permission_request("s", Permission(pending, change, None)))
            lines.append(updates.permission_request("s", Permission(pending, None, huge)))
            lines += [updates.chunk(piece) for piece in updates.pieces(huge)]
            for line in lines:
                with self.subTest(filler=filler, kind=line.get("sessionUpdate")):
                    self.assertLess(encoded_size(line) + 300, LINE_LIMIT)

    def test_output_is_cut_in_the_middle(self):
        text = "first\n" + "x" * 40_000 + "\nlast"
        shown = updates.update(ToolEnded("call_1", COMPLETED, text, None, False))["rawOutput"]["output"]
        self.assertLessEqual(len(shown), updates.OUTPUT_LIMIT)
        self.assertTrue(shown.startswith("first\n") and shown.endswith("\nlast"))
        self.assertIn("characters left out", shown)

    def test_the_whole_command_is_in_the_raw_input(self):
        command = "echo " + "a" * 12_000
        self.assertEqual(updates.update(BASH._replace(arguments={"command": command}))["rawInput"]["command"],
                         command)

    def test_pieces_lose_nothing(self):
        text = "漢字" * 9_000
        self.assertEqual("".join(updates.pieces(text)), text)


class PermissionRequests(unittest.TestCase):
    def test_it_carries_all_that_a_dialog_shows(self):
        request = updates.permission_request("s", Permission(EDIT, Diff("/w/a.py", "a", "b"), None))
        self.assertEqual(request["toolCall"], {
            "toolCallId": "call_2", "title": "edit_file: a.py", "kind": "edit", "rawInput": {"path": "a.py"},
            "locations": [{"path": "/w/a.py"}],
            "content": [{"type": "diff", "path": "/w/a.py", "oldText": "a", "newText": "b"}],
        })
        self.assertEqual([(option["optionId"], option["kind"]) for option in request["options"]], [
            ("allow", "allow_once"), ("allow_always", "allow_always"), ("reject", "reject_once"),
            ("never", "reject_always"),
        ])

    def test_only_a_known_option_that_was_selected_counts(self):
        for answer, chosen in (
            ({"outcome": {"outcome": "selected", "optionId": "allow"}}, ALLOW),
            ({"outcome": {"outcome": "selected", "optionId": "yes"}}, REJECT),
            ({"outcome": {"outcome": "selected", "optionId": ["allow"]}}, REJECT),
            ({"outcome": {"outcome": "selected"}}, REJECT),
            ({"outcome": {"outcome": "cancelled", "optionId": "allow"}}, REJECT),
            ({"outcome": "selected"}, REJECT), ({}, REJECT), (None, REJECT), ([], REJECT),
        ):
            with self.subTest(answer=answer):
                self.assertEqual(updates.chosen_option(answer), chosen)


class ChunkLines(unittest.TestCase):
    def test_the_ready_made_line_is_the_same_message(self):
        line = updates.ChunkLine("20260916-101530-4f2a9c1e")
        for text in ("a", ' "\n\\\u2028é🙂', ""):
            message = json.loads(line.encode(text))
            self.assertEqual(message, {"jsonrpc": "2.0", "method": "session/update", "params": {
                "sessionId": "20260916-101530-4f2a9c1e", "update": updates.chunk(text)}})

    def test_half_a_character_does_not_break_the_line(self):
        self.assertEqual(json.loads(updates.ChunkLine("s").encode("a\ud83d"))["params"]["update"],
                         updates.chunk("a\ufffd"))


if __name__ == "__main__":
    unittest.main()
