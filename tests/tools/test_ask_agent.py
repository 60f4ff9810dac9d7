"""ask_agent: what the model is told of it and reads from it; the asking itself is
tests/peers/test_agent.py's.
"""

from __future__ import annotations

import json
import os
import sys

from mm import events
from mm.config import config, entries
from mm.cancel import Cancel
from mm.peers import agent as peers_agent
from mm.tools import ask_agent, registry
from mm.tools.arguments import parse_arguments
from mm.tools.tool import ToolError
from mm.tools.context import Context, Seen
from tests import support
from tests.tools import calls

FAKE = os.path.join(support.PROJECT, "tests", "fakes", "asked_agent.py")


class Front:
    def ask(self, permission, cancel):
        return events.REJECT

    def fill_in(self, form, cancel):
        return events.FormAnswer(events.UNAVAILABLE)


class AskAgent(calls.ToolTest):
    def setUp(self):
        super().setUp()
        self.config = config.load(self.folder, {"HOME": self.folder})
        agent = entries.Agent((sys.executable, "-I", "-S", FAKE), {}, None, "reads changes\nand more")
        self.config = self.config.replace(agents={"reviewer": agent,
                                                  "other": agent._replace(description=None)})
        self.tails = []

    def tool(self, **environ):
        return next(iter(registry.reaching(self.config, self.folder, dict(os.environ, **environ))), None)

    def call(self, *lines, agent="reviewer", tool=None, window=0, **values):
        """The Result; a ToolError's sentence where it fails."""
        context = Context(self.folder, self.config.replace(**values), Cancel(), Front(), "call_7", window,
                          Seen())
        tool = tool or self.tool()
        try:
            action = tool.prepare(parse_arguments(tool, {"agent": agent, "prompt": "\n".join(lines)}),
                                  context)
            self.assertEqual((action.title, action.asks, action.paths),
                             ("ask_agent: " + agent.strip().lower(), False, ()))
            return action.run(self.tails.append)
        except ToolError as error:
            return str(error)

    def test_without_agents_there_is_no_tool(self):
        self.config = self.config.replace(agents={})
        self.assertIsNone(self.tool())

    def test_what_the_model_is_told_is_short(self):
        wire = registry.to_wire([self.tool()])[0]
        agent = wire["function"]["parameters"]["properties"]["agent"]
        self.assertEqual((agent["enum"], agent["description"]), (["reviewer", "other"], "reviewer: reads "
                                                                                        "changes…"))
        self.assertLess(len(json.dumps(wire)), 500)

    def test_the_answer_and_how_it_ended(self):
        result = self.call("say I look.", "call 1 ls", "say Fine.", "count 3400")
        self.assertEqual(result, ("I look.\n\nFine.\n[reviewer: end_turn, 1 tool call, 3400 tokens]",
                                  events.COMPLETED, None, True))
        self.assertEqual(self.call("sleep 0").output, "[reviewer: end_turn, 0 tool calls]")
        self.assertEqual(self.call("stop refusal").status, events.FAILED)
        self.assertEqual(self.tails, ["I look.", "I look.\n[ls]"])

    def test_of_a_long_answer_the_end_is_kept(self):
        output = self.call("say " + "a" * 50_000 + "b").output
        self.assertTrue(output.startswith("[… 10001 characters left out]\naaa"))
        self.assertTrue(output.endswith("ab\n[reviewer: end_turn, 0 tool calls]"))
        self.assertLess(len(self.call("say " + "a" * 50_000, window=8192).output), 4000)

    def test_yolo_answers_for_the_user(self):
        self.assertIn("yes!", self.call("permission x", yolo=True).output)
        self.assertIn("no!", self.call("permission x", yolo=False).output)

    def test_refusals_are_one_line(self):
        self.assertEqual(self.call("x", agent="nobody"), "[ask_agent: there is no agent named nobody. "
                                                         "Agents: reviewer, other]")
        self.assertEqual(self.call(" "), "[ask_agent: the prompt is empty]")
        self.assertEqual(self.call("stderr out of memory", "exit 1", agent=" Reviewer"),
                         "[ask_agent: reviewer ended with exit code 1: out of memory]")

    def test_too_deep_it_is_not_offered(self):
        tool = self.tool(MM_AGENT_DEPTH="2")
        self.assertFalse(tool.offered)
        self.assertEqual(self.call("x", tool=tool), "[ask_agent: too deep (2)]")

    def test_the_page_has_every_text(self):
        with open(os.path.join(support.PROJECT, "docs", "agents.md"), encoding="utf-8") as file:
            page = file.read()
        texts = [text % values for text, values in (
            (peers_agent.TOO_DEEP, 2), (peers_agent.NO_START, ("<agent>", "<program>", "No such file or "
                                                                                       "directory")),
            (peers_agent.ENDED, ("<agent>", "with exit code 1")), (peers_agent.SILENT, ("<agent>", 600)),
            (peers_agent.NO_ANSWER, ("<agent>", "initialize", peers_agent.INITIALIZE_LIMIT)),
            (peers_agent.REFUSED, ("<agent>", "session/prompt", "<its words>")),
            (peers_agent.SIGN_IN, ("<agent>", "<command>")), (peers_agent.OTHER_VERSION, ("<agent>", "2", 1)),
            (peers_agent.NO_SESSION, "<agent>"), (ask_agent.UNKNOWN[len("[ask_agent: "):-1],
                                                  ("<name>", "reviewer, vibe")),
                                                  (ask_agent.EMPTY[len("[ask_agent: "):-1], ()),
            (ask_agent.END, ("<agent>", "<stop reason>, 12 tool calls, 3400 tokens")),
            (peers_agent.NOBODY, ()))]
        self.assertEqual([text for text in texts if text not in page], [])
        self.assertIn("{:,}".format(ask_agent.SHOWN), page)
