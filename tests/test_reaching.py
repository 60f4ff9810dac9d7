"""Other programs around a session, through the zipapp: MCP servers and asked agents, from their start to an
end of whatever kind.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import unittest

from tests import support
from tests.fakes.model_server import ModelServer

FAKES = os.path.join(support.PROJECT, "tests", "fakes")
DONE = [{"text": "done"}]


def fake(name: str, *words) -> dict:
    return {"command": [sys.executable, "-I", "-S", os.path.join(FAKES, name + ".py"), *words]}


def call(name: str, **arguments) -> list:
    return [{"call": {"name": name, "arguments": arguments}}]


class ReachingTest(unittest.TestCase):
    def setUp(self):
        self.server = ModelServer(DONE)
        self.addCleanup(self.server.close)

    def editor(self, **settings) -> support.Client:
        path = os.path.join(support.scratch_folder(), "config.json")
        with open(path, "w") as file:
            json.dump(settings, file)
        editor = support.Client("--config", path, env=support.environment(MM_URL=self.server.url,
                                                                          MM_MODEL="m"))
        self.addCleanup(editor.__exit__)
        editor.initialize()
        return editor

    def offered(self, number: int) -> list:
        """The names of the MCP tools in the request of that number."""
        tools = self.server.wait_requests(number)[number - 1].body["tools"]
        return [tool["function"]["name"] for tool in tools if tool["function"]["name"].startswith("mcp__")]


class TheEnd(ReachingTest):
    def test_servers_may_take_leave(self):
        said = os.path.join(support.scratch_folder(), "said")
        editor = self.editor(mcp={"s": fake("mcp_server", "farewell=" + said)})
        editor.prompt(editor.new_session(), "hi")
        self.assertEqual(editor.close(), 0)
        self.assertTrue(os.path.exists(said))

    def busy(self) -> tuple:
        """(editor, groups of all that it has started) in the middle of a question to a deaf agent, beside
        three servers.
        """
        editor = self.editor(mcp={"a": fake("mcp_server", "stubborn"), "b": fake("mcp_server"),
                                  "c": fake("mcp_server", "flood")},
                             agents={"deaf": fake("asked_agent", "deaf")})
        self.server.script(call("ask_agent", agent="deaf", prompt="linger\ncall 1 x\nmute"))
        editor.start_prompt(editor.new_session(), "go")
        said = editor.message(lambda message: "[x]" in json.dumps(message),
                              what="the agent's tool call")["params"]["update"]
        sleeper = int(said["content"][0]["content"]["text"].split("\n")[1])
        groups = [process.group for process in support.processes() if process.parent == editor.process.pid]
        self.assertEqual(len(groups), 5, "three servers, an agent, the guardian")
        self.assertTrue(support.alive(sleeper))
        return editor, groups

    def gone(self, groups):
        support.wait_until(lambda: not any(map(support.group_alive, groups)), what="the end of all programs")

    def test_killed_it_leaves_no_program_behind(self):
        editor, groups = self.busy()
        editor.kill(signal.SIGKILL)
        self.gone(groups)

    def test_nor_when_its_stdin_ends(self):
        editor, groups = self.busy()
        self.assertEqual(editor.close(), 0)
        self.gone(groups)
        self.assertNotIn("Traceback", editor.stderr)
        self.assertNotIn("mcp", editor.stderr.replace("mcp: waiting", ""),
                         "an end that was wanted is no news")


class Threads(ReachingTest):
    """What an editor with many threads costs."""

    def test_twenty_sessions_share_three_servers(self):
        editor = self.editor(mcp={name: fake("mcp_server") for name in "abc"})
        sessions = [editor.new_session() for _ in range(20)]
        editor.wait_for(lambda: len(editor.updates("available_commands_update")) == 20)
        self.assertEqual(support.children(editor.process.pid), [], "who is not prompted starts nothing")
        editor.prompt(sessions[0], "hi")
        first = self.costs(editor)
        for session in sessions[1:6]:
            editor.prompt(session, "hi")
        self.assertEqual(self.costs(editor), first)
        self.assertEqual(first["programs"], 4, "three servers and the guardian")
        self.server.script(call("mcp__b__echo", text="shared"), DONE)
        editor.prompt(sessions[5], "go")
        editor.update("tool_call_update", status="completed", rawOutput={"output": "shared"})

    def costs(self, editor) -> dict:
        pid = editor.process.pid
        costs = {"programs": len(support.children(pid))}
        if os.path.exists("/proc/self/task"):
            support.wait_until(lambda: len(os.listdir("/proc/%d/task" % pid)) <= 20,
                               what="the end of the turn's threads")
            costs.update(files=len(os.listdir("/proc/%d/fd" % pid)))
        return costs

    def test_a_grant_is_for_one_session(self):
        editor = self.editor(mcp={"s": fake("mcp_server")}, yolo=False)
        asked = []
        editor.permission = lambda params: asked.append(params["sessionId"]) or support.choose("allow_always")
        sessions = [editor.new_session(), editor.new_session()]
        for session in sessions * 2:
            self.server.script(call("mcp__s__echo", text="x"), DONE)
            editor.prompt(session, "go")
        self.assertEqual(asked, sessions)


class TheSession(ReachingTest):
    def test_a_load_ends_the_replaced_sessions_servers(self):
        editor = self.editor(mcp={"a": fake("mcp_server"), "b": fake("mcp_server")},
                             sessions={"enabled": True})
        session = editor.new_session()
        for _ in range(3):
            editor.prompt(session, "hi")
            editor.request("session/load", {"sessionId": session, "cwd": editor.cwd, "mcpServers": []})
        self.server.script(call("mcp__a__echo", text="here"), DONE)
        editor.prompt(session, "go")
        editor.update("tool_call_update", status="completed", rawOutput={"output": "here"})
        support.wait_until(lambda: len(support.children(editor.process.pid)) == 3,
                           what="two servers and the guardian")

    def test_a_first_turn_cancelled_while_waiting(self):
        gate = os.path.join(support.scratch_folder(), "gate")
        editor = self.editor(mcp={"slow": fake("mcp_server", "hold=" + gate)})
        session = editor.new_session()
        prompt = editor.start_prompt(session, "hi")
        editor.wait_for(lambda: "mcp: waiting for slow" in editor.stderr)
        editor.cancel(session)
        self.assertEqual(editor.finish(prompt)["stopReason"], "cancelled")
        open(gate, "w").close()
        self.assertEqual(editor.prompt(session, "/new")["stopReason"], "end_turn")
        self.assertIn("mcp__slow__echo", self.offered(editor.prompt(session, "hi") and 1))

    def test_the_tools_stay_as_they_are_until_new(self):
        editor = self.editor(mcp={"s": fake("mcp_server")},
                             tools={"disabled": ["mcp__s__echo", "mcp__s__die"]})
        session = editor.new_session()
        self.server.script(call("mcp__s__change"), DONE)
        editor.prompt(session, "go")
        editor.wait_for(lambda: "mcp s: its tools have changed; /new takes them over" in editor.stderr)
        editor.prompt(session, "hi")
        editor.prompt(session, "/new")
        editor.prompt(session, "hi")
        first, *same, changed = [request.body["tools"] for request in self.server.wait_requests(4)]
        self.assertEqual(same, [first, first])
        self.assertEqual(changed[:len(first)], first)
        self.assertEqual(self.offered(4)[-1], "mcp__s__new")
        self.assertFalse({"mcp__s__echo", "mcp__s__die"} & set(self.offered(4)))


class Once(ReachingTest):
    def test_what_always_asks_is_refused_where_nobody_is(self):
        path = os.path.join(support.scratch_folder(), "config.json")
        with open(path, "w") as file:
            json.dump({"mcp": {"s": dict(fake("mcp_server"), permissions="ask")}}, file)
        self.server.script(call("mcp__s__echo", text="x"), DONE)
        done = support.run("--config", path, "-p", "go",
                           env=support.environment(MM_URL=self.server.url, MM_MODEL="m"))
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
        self.assertIn("mm: mcp__s__echo always asks for a permission and there is nobody to ask "
                      "(mcp.<server>.permissions)\n", done.stderr)
        self.assertNotIn("the server ended", done.stderr)


class TheReplay(ReachingTest):
    CALLS = (("mcp__x__y__long_line", {}), ("mcp__gone__t", {}),
             ("ask_agent", {"agent": " rev ", "prompt": "say x"}),
             ("ask_agent", {"agent": "nobody", "prompt": "x"}), ("plan", {"action": " Show "}),
             ("plan", {"action": "odd"}), ("ask_user",
                                           {"questions": [{"question": " Which\none? ",
                                                           "options": ["a", "b"]}]}), ("nonsense", {"a": 1}))

    def test_calls_are_called_as_they_were(self):
        editor = self.editor(mcp={"x__y": fake("mcp_server")}, agents={"Rev": fake("asked_agent", "now")},
                             sessions={"enabled": True})
        session = editor.new_session()
        self.server.script(*[call(name, **arguments) for name, arguments in self.CALLS], DONE)
        editor.prompt(session, "go")
        live = editor.updates("tool_call")
        editor.request("session/load", {"sessionId": session, "cwd": editor.cwd, "mcpServers": []})
        replayed = editor.updates("tool_call")[len(live):]
        shown = [[(each["title"], each["kind"], each["rawInput"]) for each in calls]
                 for calls in (live, replayed)]
        self.assertEqual(*shown)
        self.assertEqual([title for title, _, _ in shown[0][:3]],
                         ["x__y: long line", "mcp__gone__t", "ask_agent: Rev"])


if __name__ == "__main__":
    unittest.main()
