"""mm under the Python SDK of the protocol, which validates each message that mm sends against the published schema.

The agent's stderr is a pipe that nobody reads: an editor that ignores it must not be able to block mm.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import unittest

from tests import support

try:
    import acp
    from acp import schema
except ImportError:
    acp = None

MISSING = "the Python SDK is not installed: pip install agent-client-protocol"
# Seconds that a step of a conversation may take on a busy machine.
PATIENCE = 30
FORMS = {"elicitation": {"form": {}}}


class Editor:
    """A client of the SDK: keeps each update in order and answers dialogs with `option`, forms with `content`."""

    def __init__(self, option="allow", content=None):
        self.option, self.content = option, content
        self.updates, self.dialogs, self.forms = [], [], []
        self._news = asyncio.Condition()

    async def session_update(self, session_id, update, **_):
        async with self._news:
            self.updates.append(update)
            self._news.notify_all()

    async def request_permission(self, session_id, tool_call, options, **_):
        self.dialogs.append((tool_call, options))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=self.option)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message, mode, **_):
        self.forms.append((message, mode))
        return schema.AcceptElicitationResponse(action="accept", content=self.content)

    def on_connect(self, conn):
        pass

    async def until(self, seen):
        """Waits until `seen(updates)` is true, and returns it."""
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(lambda: seen(self.updates)), PATIENCE)
            return seen(self.updates)

    def text(self) -> str:
        return "".join(update.content.text for update in self.updates
                       if isinstance(update, schema.AgentMessageChunk))

    def calls(self, kind=None) -> list:
        kinds = kind or (schema.ToolCallStart, schema.ToolCallProgress)
        return [update for update in self.updates if isinstance(update, kinds)]


class Conversation:
    """One `mm -acp --demo` with an open session, driven by the SDK."""

    def __init__(self, editor, connection, process, session_id, folder, sessions):
        self.editor, self.connection, self.process = editor, connection, process
        self.session_id, self.folder, self.sessions = session_id, folder, sessions

    async def prompt(self, text):
        answer = self.connection.prompt(session_id=self.session_id, prompt=[acp.text_block(text)])
        return await asyncio.wait_for(answer, PATIENCE)

    async def cancelled(self, text, seen):
        """The answer to a prompt that is cancelled when `seen(updates)` becomes true."""
        answer = asyncio.ensure_future(self.prompt(text))
        await self.editor.until(seen)
        await self.connection.cancel(session_id=self.session_id)
        return await answer


@contextlib.asynccontextmanager
async def conversation(editor, *arguments, capabilities=None, folder=None, load=None):
    """A Conversation; at its end the agent is told by its closed stdin, and must go."""
    folder = folder or support.scratch_folder()
    settings = os.path.join(support.scratch_folder(), "config.json")
    with open(settings, "w", encoding="utf-8") as file:
        json.dump({"sessions": {"enabled": True}}, file)
    command = support.mm("-acp", "--demo", "--config", settings, *arguments)
    options = {"env": support.environment(), "cwd": folder, "transport_kwargs": {"stderr": asyncio.subprocess.PIPE}}
    async with acp.stdio.spawn_agent_process(editor, *command, use_unstable_protocol=True, **options) as started:
        connection, process = started
        hello = await connection.initialize(protocol_version=1, client_capabilities=capabilities,
                                            client_info=schema.Implementation(name="sdk", version="1"))
        assert hello.protocol_version == 1 and hello.agent_info.name == "bob", hello
        if load:
            await connection.load_session(cwd=folder, session_id=load, mcp_servers=[])
            session_id = load
        else:
            session_id = (await connection.new_session(cwd=folder, mcp_servers=[])).session_id
        yield Conversation(editor, connection, process, session_id, folder, settings)
    assert process.returncode is not None


@unittest.skipUnless(acp, MISSING)
class AnEditor(unittest.IsolatedAsyncioTestCase):
    async def test_the_commands_and_a_streamed_answer(self):
        editor = Editor()
        async with conversation(editor) as talk:
            await editor.until(lambda seen: [one for one in seen if isinstance(one, schema.AvailableCommandsUpdate)])
            answer = await talk.prompt("slow: 12")
        self.assertEqual("end_turn", answer.stop_reason)
        self.assertGreater(len([one for one in editor.updates if isinstance(one, schema.AgentMessageChunk)]), 5)
        self.assertTrue([one for one in editor.updates if isinstance(one, schema.UsageUpdate)])

    async def test_each_answer_to_a_dialog(self):
        for option, ran, dialogs in (("allow", 2, 2), ("allow_always", 2, 1), ("reject", 0, 2), ("never", 0, 1)):
            with self.subTest(option=option):
                editor = Editor(option)
                async with conversation(editor, "--no-yolo") as talk:
                    for name in ("one", "two"):
                        await talk.prompt("run: echo %s > %s" % (name, name))
                    made = [name for name in ("one", "two") if os.path.exists(os.path.join(talk.folder, name))]
                self.assertEqual((ran, dialogs), (len(made), len(editor.dialogs)))
                call, options = editor.dialogs[0]
                self.assertEqual("bash: echo one > one", call.title)
                self.assertEqual(["allow_once", "allow_always", "reject_once", "reject_always"],
                                 [each.kind for each in options])

    async def test_a_diff_before_and_after(self):
        editor = Editor()
        async with conversation(editor, "--no-yolo") as talk:
            with open(os.path.join(talk.folder, "a.txt"), "w", encoding="utf-8") as file:
                file.write("one\n")
            await talk.prompt("edit: a.txt = one -> two")
            with open(os.path.join(talk.folder, "a.txt"), encoding="utf-8") as file:
                self.assertEqual("two\n", file.read())
        shown = [block for call, _ in editor.dialogs for block in call.content or []]
        ended = [block for call in editor.calls(schema.ToolCallProgress) for block in call.content or []]
        for blocks in (shown, ended):
            diffs = [block for block in blocks if isinstance(block, schema.FileEditToolCallContent)]
            self.assertEqual([("one\n", "two\n")], [(diff.old_text, diff.new_text) for diff in diffs])

    async def test_a_plan(self):
        editor = Editor()
        async with conversation(editor) as talk:
            await talk.prompt("plan: read it; fix it; test it")
        plan = [one for one in editor.updates if isinstance(one, schema.AgentPlanUpdate)][-1]
        self.assertEqual(["read it", "fix it", "test it"], [entry.content for entry in plan.entries])

    async def test_reasoning_is_a_thought(self):
        editor = Editor()
        async with conversation(editor) as talk:
            await talk.prompt("think: about it")
        thoughts = "".join(one.content.text for one in editor.updates if isinstance(one, schema.AgentThoughtChunk))
        self.assertIn("about it", thoughts)

    async def test_a_cancel_in_a_stream(self):
        editor = Editor()
        async with conversation(editor) as talk:
            answer = await talk.cancelled("slow: 400", lambda _: editor.text())
            self.assertEqual("cancelled", answer.stop_reason)
            self.assertEqual("end_turn", (await talk.prompt("hello")).stop_reason)

    async def test_a_cancel_in_a_command(self):
        editor = Editor()
        running = lambda seen: [one for one in editor.calls(schema.ToolCallProgress) if one.status == "in_progress"]
        async with conversation(editor) as talk:
            answer = await talk.cancelled("run: sleep 973", running)
            self.assertEqual("cancelled", answer.stop_reason)
            self.assertEqual("failed", editor.calls(schema.ToolCallProgress)[-1].status)
        self.assertEqual("", _running("sleep 973"))

    async def test_a_session_loaded_after_a_restart(self):
        first = Editor()
        async with conversation(first) as talk:
            await talk.prompt("run: echo kept")
            folder, session_id = talk.folder, talk.session_id
        again = Editor()
        async with conversation(again, folder=folder, load=session_id) as talk:
            self.assertEqual("end_turn", (await talk.prompt("hello")).stop_reason)
        self.assertIn("run: echo kept", [one.content.text for one in again.updates
                                         if isinstance(one, schema.UserMessageChunk)])
        self.assertEqual("completed", again.calls(schema.ToolCallStart)[0].status)

    async def test_a_form(self):
        editor = Editor(content={"q1": "tea"})
        async with conversation(editor, capabilities=FORMS) as talk:
            await talk.prompt("ask: Which? | tea | coffee")
        self.assertEqual(1, len(editor.forms))
        self.assertIn("tea", editor.text())

    async def test_a_dialog_without_forms(self):
        editor = Editor(option="1")
        async with conversation(editor) as talk:
            await talk.prompt("ask: Which? | tea | coffee")
        self.assertEqual([["tea", "coffee", "Decline"]],
                         [[each.name for each in options] for _, options in editor.dialogs])
        self.assertIn("coffee", editor.text())

    async def test_an_abrupt_end_leaves_no_child(self):
        editor = Editor()
        with self.assertRaises(Exception):
            async with conversation(editor) as talk:
                running = lambda _: [one for one in editor.calls(schema.ToolCallProgress)
                                     if one.status == "in_progress"]
                prompt = asyncio.ensure_future(talk.prompt("run: sleep 974"))
                await editor.until(running)
                talk.process.kill()
                await prompt
        await _gone("sleep 974")


def _running(command: str) -> str:
    return subprocess.run(["pgrep", "-f", "^" + command], stdout=subprocess.PIPE).stdout.decode()


async def _gone(command: str) -> None:
    """Waits until no process of that command line is left; its guardian has two seconds for it."""
    for _ in range(PATIENCE * 10):
        if not _running(command):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(command + " is still running")
