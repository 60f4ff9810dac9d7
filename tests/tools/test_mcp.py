"""The tools of MCP servers: what the model is told of them, and what it reads of a call."""

from __future__ import annotations

import base64
import json
import os
import re
import unittest
from collections import namedtuple

from mm import events, peers
from mm.config import config
from mm.cancel import Cancel
from mm.engine.gate import Gate
from mm.engine.session import Session
from mm.fronts import once
from mm.config.keys import MCP_TIMEOUT
from mm.peers import mcp_pool, program
from mm.peers.mcp import Offer
from mm.text import size
from mm.tools import mcp, registry
from mm.tools.arguments import parse_arguments
from mm.tools.input_schema import DESCRIPTION_LIMIT, LEVELS
from mm.tools.tool import ALWAYS, ToolError
from mm.tools.context import Context, Seen
from mm.wire import child
from tests import support
from tests.peers.mcp_servers import McpTest, fake

Named = namedtuple("Named", "name entry")
Listed = namedtuple("Listed", "tools")  # in the place of McpServers if nothing is called


def offers(*names, server="s", description="", schema=None):
    return [Offer(Named(server, fake()), name, description, schema) for name in names]


def listed(*names, **more):
    return mcp.tools(Listed(lambda: offers(*names, **more)), (), 0)[0]


class WhatTheModelIsTold(unittest.TestCase):
    def test_names_are_short_and_unique(self):
        long = "x" * 80
        names = [tool.name for tool in listed("echo", "ec ho", "ec.ho", "ec_ho", "größe", long, long + "y",
                                              long + "z")]
        self.assertEqual(names[:5], ["mcp__s__echo", "mcp__s__ec_ho", "mcp__s__ec_ho_2", "mcp__s__ec_ho_3",
                                     "mcp__s__gr__e"])
        self.assertEqual([len(name) for name in names[5:]], [64, 64, 64])
        self.assertEqual([name[-2:] for name in names[5:]], ["xx", "_2", "_3"])
        for name in names:
            self.assertRegex(name, "^[A-Za-z0-9_-]{1,64}$")

    def test_the_schema_is_cleaned_and_the_description_cut(self):
        schema = {"type": "object", "properties": {"a": {"type": "string", "title": "A", "format": "uri"}},
                  "required": ["a"]}
        tool = listed("t", description="  d%s" % ("x" * 2000), schema=schema)[0]
        wire = registry.to_wire([tool])[0]["function"]
        self.assertEqual(wire["parameters"], {"type": "object", "properties": {"a": {"type": "string"}},
                                              "required": ["a"]})
        self.assertEqual(wire["description"], "d" + "x" * 999 + "…")

    def test_arguments_are_passed_on_as_they_came(self):
        arguments = {"a": {"b": [1, None, True]}, "unknown": "kept"}
        self.assertEqual(parse_arguments(listed("t")[0], arguments), arguments)


class ToolsOfAServer(McpTest):
    def setUp(self):
        super().setUp()
        settings = config.load(self.folder, {"HOME": self.folder})
        self.context = Context(self.folder, settings, Cancel(), None, "call_1", 0, Seen())

    def offered(self, *words, **options):
        return mcp.tools(self.server(*words, **options), (), 0)[0]

    def prepare(self, tools, name, **arguments):
        tool = registry.find(tools, "mcp__fake__" + name)
        return tool.prepare(parse_arguments(tool, arguments), self.context)

    def run_tool(self, tools, name, **arguments):
        return self.prepare(tools, name, **arguments).run(self.said.append)

    def test_the_title_and_the_permission(self):
        cases = (fake(), True, [True, False]), (fake(permissions="ask"), ALWAYS, [True, True])
        for entry, asks, asked in cases:
            with self.subTest(entry.permissions):
                action = self.prepare(mcp.tools(self.servers(fake=entry), (), 0)[0], "echo", text="hi")
                self.assertEqual((action.title, action.asks, action.paths, action.diff),
                                 ("fake: echo", asks, (), None))
                self.assertEqual(action.text, '{\n  "text": "hi"\n}')
                for yolo, expected in zip((False, True), asked):
                    front = Front()
                    pending = events.ToolPending("call_1", "mcp__fake__echo", action.title, "other", {}, ())
                    Gate(yolo).answer(events.Permission(pending, None, action.text), action.asks, front,
                                      Cancel())
                    self.assertEqual(bool(front.asked), expected)

    def test_arguments_must_fit_the_dialog(self):
        for entry, yolo, refused in ((fake(), False, True), (fake(permissions="ask"), True, True),
                                     (fake(), True, False)):
            with self.subTest(permissions=entry.permissions, yolo=yolo):
                self.context = self.context._replace(config=self.context.config.replace(yolo=yolo))
                tools = mcp.tools(self.servers(fake=entry), (), 0)[0]
                try:
                    self.prepare(tools, "echo", text="x" * 40_000)
                    self.assertFalse(refused)
                except ToolError as error:
                    self.assertTrue(refused)
                    self.assertEqual(str(error), mcp.NOT_SHOWN % ("fake", "echo"))

    def test_results_of_every_kind(self):
        tools = self.offered()
        text, data = {"type": "text", "text": "hello"}, base64.b64encode(b"x" * 2000).decode()
        image = {"type": "image", "mimeType": "image/png", "data": data}
        cases = (
            ({"content": [text]}, "hello"),
            ({"content": [text, {"type": "text", "text": "again\n"}]}, "hello\nagain"),
            ({"content": [{"type": "text", "text": "\x1b[31mred\x1b[0m\r\n\x00"}]}, "red"),
            ({"content": [text, image]}, "hello\n[image image/png, 2.0 KB]"),
            ({"content": [{"type": "audio", "mimeType": "audio/wav", "data": "AA=="}]},
             "[audio audio/wav, 1 byte]"),
            ({"content": [{"type": "image"}]}, "[image of unknown type, 0 bytes]"),
            ({"content": [{"type": "resource", "resource": {"uri": "a://b", "text": "inlined"}}]}, "inlined"),
            ({"content": [{"type": "resource", "resource": {"uri": "a://b", "mimeType": "application/pdf",
                                                            "blob": data}}]},
             "[resource a://b application/pdf, 2.0 KB]"),
            ({"content": [{"type": "resource_link", "uri": "a://b", "name": "B"}]}, "[resource a://b B]"),
            ({"content": [{"type": "hologram"}, "no part", None]}, "[hologram]"),
            ({"content": [], "structuredContent": {"a": [1]}}, '{\n  "a": [\n    1\n  ]\n}'),
            ({"structuredContent": {"a": 1}, "content": [image]},
             '{\n  "a": 1\n}\n[image image/png, 2.0 KB]'),
            ({"content": [text], "structuredContent": {"a": "hello"}}, "hello"),
            ({"content": [text, image], "structuredContent": {"n": 17}}, 'hello\n{\n  "n": 17\n}\n[image '
                                                                         'image/png, 2.0 KB]'),
            ({"content": [{"type": "text", "text": '{"b":2,"a":true}'}],
              "structuredContent": {"a": True, "b": 2}},
             '{"b":2,"a":true}'),
            ({"content": [{"type": {"a": [1]}}]}, "[unknown]"),
            ({"content": []}, "[no output]"),
            ({"content": "nonsense"}, "[no output]"),
            ({}, "[no output]"),
        )
        for answer, expected in cases:
            with self.subTest(expected):
                result = self.run_tool(tools, "answer", **answer)
                self.assertEqual((result.output, result.status), (expected, events.COMPLETED))
        for answer, expected in (({"content": [text], "isError": True}, "hello"),
                                 ({"isError": True}, "[mcp fake: answer failed without a word]")):
            result = self.run_tool(tools, "answer", **answer)
            self.assertEqual((result.output, result.status), (expected, events.FAILED))

    def test_a_long_result_goes_to_a_log(self):
        text = "\n".join("line %d" % number for number in range(20_000))
        output = self.run_tool(self.offered(), "echo", text=text).output
        self.assertLess(len(output), self.context.config.bash_max_output + 300)
        self.assertTrue(output.startswith("line 0\n") and output.endswith("\nline 19999"))
        path = re.search(r"\[… \d+ lines \([\d.]+ KB\) left out; everything is in (\S+), use read_file or "
                         r"grep on it …\]", output).group(1)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)

    def test_a_failure_is_one_sentence(self):
        with self.assertRaises(ToolError) as caught:
            self.run_tool(self.offered(), "die")
        ended = "mcp fake: the server ended (exit code 1): out of luck"
        self.assertEqual(str(caught.exception), "[%s]" % ended)
        self.wait_for(lambda: ended in self.log)

    def test_progress_is_the_live_output(self):
        self.run_tool(self.offered(), "slow", steps=2, gap=0.3)
        self.assertIn("1/2 at it", self.said)

    def test_tools_have_a_sixth_of_the_window(self):
        session = Session("id", self.folder, self.context.config.replace(mcp={"fake": fake()},
                                                                         tools_disabled=("mcp__fake__die",)))
        self.addCleanup(session.end)
        told = []
        for window in (0, 0, 1000, 1000):
            session.prepare(Cancel(), window)
            told.append((len([tool for tool in session.prepared.tools if tool.name.startswith("mcp__")]),
                         session.notices.take()))
        line = ("mcp: 10 of 13 MCP tools are left out (fake: 10), because together they would take more than "
                "a sixth of the model's "
                "window of 1000 tokens: name those that are needed in mcp.fake.tools")
        self.assertEqual(told, [(13, []), (13, []), (3, [line]), (3, [])])
        self.assertEqual(self.log.count(line), 1)


class TheBound(unittest.TestCase):
    def test_servers_take_turns(self):
        servers = Listed(lambda: offers(*["t%d" % number for number in range(1000)], server="large",
                                        description="d" * 900)
                         + offers("now", server="small"))
        tools, line = mcp.tools(servers, (), 0)
        self.assertEqual(tools[-1].name, "mcp__small__now")
        self.assertLess(len(json.dumps(registry.to_wire(tools))), 40_000)
        self.assertRegex(line, r"^mcp: \d+ of 1001 MCP tools are left out \(large: \d+\), because together "
                               r"they would take more than "
                               r"10000 tokens, and the model's window is not known: name those that are "
                               r"needed in mcp\.large\.tools$")


class ThePage(unittest.TestCase):
    def test_holds_the_texts_as_they_are(self):
        with open(os.path.join(support.PROJECT, "docs", "mcp.md"), encoding="utf-8") as file:
            page = file.read()
        client = peers.mcp
        lines = (
            client.NO_START % ("<program>", "No such file or directory"), client.SLOW_START % client.START,
            client.REFUSED % ("initialize", "<message>"), client.REVISION % "<revision>",
            client.STILL_STARTING, client.CHANGED, client.MANY_TOOLS, client.SAME_PAGE,
            client.NO_SUCH_TOOL % ("<tool>", "<name>"), client.SERVER_ENDED % "exit code 3" + ": <last line "
                                                                                              "of its stderr>")
        results = (
            client.REFUSED % ("<tool>", "<message>"), client.SILENT % ("<tool>", MCP_TIMEOUT),
            client.TOO_LONG % ("<tool>", client.TOTAL), client.ASKS_BACK % "<tool>",
            client.SERVER_ENDED % "exit code 1" + ": <last line of its stderr>",
            client.SERVER_ENDED % ("a line over " + size(program.LONGEST_MESSAGE)))
        parts = ["`mcp <name>: %s`" % line for line in lines] + ["`[mcp <name>: %s]`" % line
                                                                 for line in results]
        parts += ["`[mcp <name> %s]`" % client.OFF_AFTER, mcp_pool.WAITING % "<names>", mcp.NOTHING,
                  "up to %d s" % mcp_pool.FIRST_TURN, mcp.FAILED_SILENTLY % ("<server>", "<tool>"),
                  mcp.NOT_SHOWN % ("<server>", "<tool>"), "[… 2345 lines (120.3 KB) left out; everything is "
                                                          "in <log>, use read_file or grep on it …]",
                  mcp.TOO_MANY % (12, "31 MCP tools", "files: 10, git: 2", mcp.SIXTH % 8192, "files"),
                  "`%s`" % once.ALWAYS_ASKS % "<tool>", "%d levels deep" % LEVELS,
                  "KILL %g s later" % child.LAST_GRACE, "%d lines of each start" % program.NOISE_LINES,
                  ", ".join(client.REVISIONS[:3]), client.STATELESS, "%d characters at most" % mcp.NAME_LIMIT,
                  "{:,} characters; {}".format(mcp.DESCRIPTION_LIMIT, DESCRIPTION_LIMIT)]
        for part in parts:
            with self.subTest(part):
                self.assertTrue(part in page)


class Front:
    """Is asked, and says no."""

    def __init__(self):
        self.asked = []

    def ask(self, permission, cancel):
        self.asked.append(permission)
        return events.REJECT


if __name__ == "__main__":
    unittest.main()
