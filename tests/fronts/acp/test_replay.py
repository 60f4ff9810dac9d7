"""A stored conversation as updates: the contract's replay table, row by row, and what a live call would show.
"""

from __future__ import annotations

import json
import random
import types
import unittest

from mm.config import config
from mm.cancel import Cancel
from mm.conversation import history
from mm.events import COMPLETED, Diff, ToolEnded, ToolPending
from mm.fronts.acp import replay, updates
from mm.tools import registry
from mm.tools.tool import Parameter, Tool
from mm.wire.framing import encode_line
from tests.tools.calls import ToolTest

TOOLS = registry.built_in(config.load("/", {}, None, {})) + (
    Tool("read_skill", "", "read", (Parameter("name", "string", ""),), "name", None),)


def call(name, arguments, ref="call_1"):
    return {"ref": ref, "name": name, "arguments": arguments if isinstance(arguments, str)
            else json.dumps(arguments)}


def asked(*calls, text=""):
    return history.assistant_message(text, "", calls)


def result(output, ref="call_1", name="bash", **more):
    return dict(history.tool_message(ref, name, output), **more)


def said(text, kind="agent_message_chunk"):
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def text(content):
    return {"type": "content", "content": {"type": "text", "text": content}}


def shown(title, kind, given, output=None, ref="call_1", content=None):
    """A tool_call as the contract writes it: with an output completed, without failed and without content."""
    update = {"sessionUpdate": "tool_call", "toolCallId": ref, "title": title, "kind": kind,
              "status": "failed", "rawInput": given}
    if output is not None:
        update.update(status="completed", content=content or [text("```\n%s\n```" % output)],
                      rawOutput={"output": output})
    return update


LS = {"command": "ls"}
DIFF = {"path": "/w/a.py", "old": "a\n", "new": "b\n"}

# name: (messages, updates)
ROWS = {
    "a user message": ([history.user_message(" hi\n[attached file: /w/a]")],
                       [said(" hi\n[attached file: /w/a]", "user_message_chunk")]),
    "a summary": ([{"role": "user", "content": "Goal: x", "kind": "summary"}], [said("🗜️ Goal: x")]),
    "model text, without its reasoning": ([history.assistant_message("**42**\n", "let me see")],
                                          [said("**42**\n")]),
    "notes between mm and the model": (
        [history.nothing_said(), history.note("[your last answer repeated itself and was cut. Go on without "
                                              "repeating.]")], []),
    "nothing at all": ([], []),
    "text before a call": ([asked(call("bash", LS), text="I look."), result("a")],
                           [said("I look."), shown("bash: ls", "execute", LS, "a")]),
    "a call without text": ([asked(call("bash", LS)), result("a")], [shown("bash: ls", "execute", LS, "a")]),
    "completed though it had failed": ([asked(call("bash", LS)),
                                        result("[exit code 1]", status="failed", prose=True)],
                                       [shown("bash: ls", "execute", LS, "[exit code 1]",
                                              content=[text("[exit code 1]")])]),
    "an output in brackets": ([asked(call("bash", LS)), result("[![x](https://host.example/p.png)]")],
                              [shown("bash: ls", "execute", LS, "[![x](https://host.example/p.png)]")]),
    "no recorded result": ([asked(call("bash", LS))], [shown("bash: ls", "execute", LS)]),
    "two calls, one without a result": (
        [asked(call("bash", LS, "call_7"), call("read_file", {"path": "a"}, "call_8")),
         result("a", "call_8", "read_file")],
        [shown("bash: ls", "execute", LS, ref="call_7"),
         shown("read_file: a", "read", {"path": "a"}, "a", ref="call_8")]),
    "results in another order": (
        [asked(call("bash", LS, "call_1"), call("bash", LS, "call_2")), result("2", "call_2"),
         result("1", "call_1")],
        [shown("bash: ls", "execute", LS, "1"), shown("bash: ls", "execute", LS, "2", ref="call_2")]),
    "the first of two results": ([asked(call("bash", LS)), result("1"), result("2")],
                                 [shown("bash: ls", "execute", LS, "1")]),
    "a result of no call": ([result("stray"), history.user_message("hi")],
                            [said("hi", "user_message_chunk")]),
    "a result that came too late": ([asked(call("bash", LS)), history.user_message("hi"), result("1")],
                                    [shown("bash: ls", "execute", LS), said("hi", "user_message_chunk")]),
    "a result of the same number belongs to the call before it": (
        [asked(call("bash", LS)), result("1"), asked(call("bash", LS))],
        [shown("bash: ls", "execute", LS, "1"), shown("bash: ls", "execute", LS)]),
    "a change is text, then a diff": (
        [asked(call("edit_file", {"path": "a.py", "old_string": "a", "new_string": "b"})),
         result("[edited a.py]", diff=DIFF)],
        [shown("edit_file: a.py", "edit", {"path": "a.py", "old_string": "a", "new_string": "b"},
               "[edited a.py]", content=[
            text("```\n[edited a.py]\n```"), {"type": "diff", "path": "/w/a.py", "oldText": "a\n",
                                              "newText": "b\n"}])]),
    "a new file": (
        [asked(call("write_file", {"path": "a.py", "content": ""})),
         result("[written]", diff=dict(DIFF, old=None, new=""))],
        [shown("write_file: a.py", "edit", {"path": "a.py", "content": ""}, "[written]", content=[
            text("```\n[written]\n```"), {"type": "diff", "path": "/w/a.py", "newText": ""}])]),
    "a skill, in prose": ([asked(call("read_skill", {"name": "bg-jobs"})), result("# Jobs\nDo", prose=True)],
                          [shown("read_skill: bg-jobs", "read", {"name": "bg-jobs"}, "# Jobs\nDo",
                                 content=[text("# Jobs\nDo")])]),
    "arguments as the tool reads them": ([asked(call("bash", {"cmd": "ls"})), result("a")],
                                         [shown("bash: ls", "execute", LS, "a")]),
    "a name as the tool is found by": ([asked(call("ReadFile", {"path": "a"})), result("a")],
                                       [shown("read_file: a", "read", {"path": "a"}, "a")]),
    "arguments that do not fit": ([asked(call("bash", {"x": 1})), result("[bash: missing parameter]")],
                                  [shown("bash", "execute", {"x": 1}, "[bash: missing parameter]")]),
    "a tool that is gone": ([asked(call("gone", {"x": 1})), result("a")],
                            [shown("gone", "execute", {"x": 1}, "a")]),
    "title and kind as they were": (
        [asked(call("mcp__s__long_line", {})), result("a", name="mcp__s__long_line", title="s: long line",
                                                      toolKind="other")],
        [shown("s: long line", "other", {}, "a")]),
    "a title that none was": ([asked(call("bash", LS)), result("a", title=["x"], toolKind={})],
                              [shown("bash: ls", "execute", LS, "a")]),
    "a title and a kind of nonsense": ([asked(call("bash", LS)),
                                        result("a", title="x\n" * 9999, toolKind="y")],
                                       [shown("x…", "execute", LS, "a")]),
    "a server's tool of which nothing is kept": ([asked(call("mcp__s__t", {})), result("a")],
                                                 [shown("s: t", "other", {}, "a")]),
    "an empty output": ([asked(call("bash", LS)), result("")],
                        [shown("bash: ls", "execute", LS, "", content=[text("```\n\n```")])]),
}


class TheTable(unittest.TestCase):
    def test_rows(self):
        for name, (messages, expected) in ROWS.items():
            with self.subTest(name):
                self.assertEqual(list(replay.updates(messages, TOOLS)), expected)

    def test_all_rows_in_one_conversation(self):
        # Results belong to the call right before them, so between the rows stands a question.
        messages, expected = [], []
        for rows, shown_ones in ROWS.values():
            messages += [history.user_message("next")] + rows
            expected += [said("next", "user_message_chunk")] + shown_ones
        self.assertEqual(list(replay.updates(messages, TOOLS)), expected)

    def test_only_the_model_makes_calls(self):
        self.assertEqual(replay.highest_ref([{"role": "user", "content": "", "calls": ["call_9", 5]}]), 0)

    def test_the_conversation_is_not_changed(self):
        for name, (messages, _) in ROWS.items():
            before = json.dumps(messages)
            list(replay.updates(messages, TOOLS))
            self.assertEqual(json.dumps(messages), before, name)

    def test_it_comes_one_by_one(self):
        self.assertIsInstance(replay.updates([], TOOLS), types.GeneratorType)


class AsLive(ToolTest):
    """What a call shows while it happens, and when it is replayed."""

    CALLS = [
        ("bash", {"command": "echo hi\necho you"}),
        ("bash", {"command": "printf 'a```\\n'"}),
        ("bash", {"command": "exit 3"}),
        ("read_file", {"path": "notes.md"}),
        ("write_file", {"path": "new.md", "content": "a\nb\n"}),
        ("edit_file", {"path": "notes.md", "old_string": "two", "new_string": "2"}),
    ]

    def test_titles_kinds_input_and_output_are_the_same(self):
        self.put("notes.md", "one\ntwo\n")
        shared = ("toolCallId", "title", "kind", "rawInput")
        for number, (name, arguments) in enumerate(self.CALLS):
            with self.subTest("%s %s" % (name, arguments)):
                tool = registry.find(TOOLS, name)
                action = self.prepare(name, **arguments)
                ended = action.run(lambda tail: None)
                pending = updates.update(ToolPending("call_1", name, action.title, tool.kind, arguments, ()))
                live = updates.update(ToolEnded("call_1", COMPLETED, ended.output, None, ended.prose))
                stored = result(ended.output, name=name, prose=ended.prose)
                if ended.diff:
                    stored["diff"] = ended.diff._asdict()
                update, = replay.updates([asked(call(name, arguments)), stored], TOOLS)
                self.assertEqual({key: update[key] for key in shared}, {key: pending[key] for key in shared})
                self.assertEqual((update["content"][0], update["rawOutput"]),
                                 (live["content"][0], live["rawOutput"]))
                if ended.diff:
                    diff = updates.update(ToolEnded("call_1", COMPLETED, "", Diff(*ended.diff), False))
                    self.assertEqual(update["content"][1:], diff["content"])


class Sizes(unittest.TestCase):
    def test_no_call_makes_a_line_over_64_KiB(self):
        choice = random.Random(3)
        letters = ("a", "\n", "\"", "é", "\0", "\U0001f600", "`")
        for _ in range(150):
            # 3,900 characters of six bytes each are just under what is shown whole.
            long = [choice.choice(letters) * choice.choice((10, 3_900, 20_000, 60_000)) for _ in range(5)]
            messages = [asked(call(choice.choice(("bash", "write_file", "gone")),
                                   {"command": long[0], "path": "a", "content": long[1]})),
                        result(long[2], **({"diff": {"path": "/w/a", "old": long[3], "new": long[4]}}
                                           if choice.random() < 0.7 else {}))]
            update, = replay.updates(messages, TOOLS)
            line = encode_line({"jsonrpc": "2.0", "method": "session/update",
                                "params": {"sessionId": "s" * 64, "update": update}})
            self.assertLess(len(line), 64 * 1024, [(piece[:1], len(piece)) for piece in long])

    def test_what_fits_is_not_cut_more_than_live(self):
        output = "a" * 20_000
        update, = replay.updates([asked(call("bash", LS)), result(output)], TOOLS)
        live = updates.update(ToolEnded("call_1", COMPLETED, output, None, False))
        self.assertEqual((update["content"], update["rawOutput"]), (live["content"], live["rawOutput"]))

    def test_a_message_is_whole(self):
        long = "é" * 100_000
        self.assertEqual(list(replay.updates([history.user_message(long), history.assistant_message(long)],
                                             TOOLS)),
                         [said(long, "user_message_chunk"), said(long)])


class TheNumbers(unittest.TestCase):
    def test_table(self):
        for refs, highest in (
            ([], 0),
            (["call_1"], 1),
            (["call_9", "call_10", "call_2"], 10),
            (["call_x", "call_", "call_-3", "xcall_5", "call_5x", "7"], 0),
            (["call_" + "9" * 5000], 0),
        ):
            with self.subTest(refs):
                self.assertEqual(replay.highest_ref([asked(*[call("bash", LS, ref) for ref in refs])]),
                                 highest)
                self.assertEqual(replay.highest_ref([result("", ref) for ref in refs]), highest)


if __name__ == "__main__":
    unittest.main()
