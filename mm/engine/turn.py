"""One turn: the model and the tools take turns until there is an answer. The page to read first.

    run_turn     a prompt -> an Outcome, with the history in order on every path
    _Turn.go     the loop: ask the model, run what it calls, ask again
    _Turn._call  one tool call: arguments, action, permission, run; exactly one end for each beginning

Events go to the front end as they happen. Cancelled and UserError pass through every function here and end the turn;
the history keeps what was said and done until then.
"""

from __future__ import annotations

import json
import threading
from collections import namedtuple

from mm.cancel import Cancel, Cancelled
from mm.conversation import history
from mm.engine.gate import rejection
from mm.engine.prompt import system_prompt
from mm.errors import UserError
from mm.events import FAILED, Permission, Text, Thought, ToolEnded, ToolOutput, ToolPending, ToolStarted
from mm.model import chat
from mm.tools import registry
from mm.tools.arguments import parse_arguments
from mm.tools.tool import Result, ToolError
from mm.tools.workspace import Workspace

END_TURN, MAX_TOKENS, MAX_TURN_REQUESTS, CANCELLED = "end_turn", "max_tokens", "max_turn_requests", "cancelled"

STEPS_USED_UP = '🛑 stopped after %d steps. Say "go on" to continue.'
MALFORMED_CALLS = "🛑 stopped: %d malformed tool calls in a row. Tell me how to go on."
MALFORMED_LIMIT = 3
CALL_CANCELLED = "[cancelled by the user]"
INTERNAL_ERROR = "[%s: internal error]"
CALL_CUT = "[not run: the server cut the answer at its length limit]"
# The tool kind of a call that names no tool.
UNKNOWN_KIND = "execute"
FILE_TOOLS = ("read_file", "write_file", "edit_file")
EMPTY_ANSWER = "the model at %s sent an empty answer"
EMPTY_CUT_ANSWER = "the model at %s was cut before it said anything: the conversation may fill its context window"

# How a turn ended. `error` is the UserError that ended it or None; the rest counts the calls that ran.
Outcome = namedtuple("Outcome", "stop_reason error commands file_operations skills")


def run_turn(agent, session, prompt: str, front, cancel: Cancel) -> Outcome:
    """Runs one turn of `session`. The caller holds the process's turn (engine.queue).

    Never raises Cancelled or UserError: they are in the Outcome. Whatever else is raised is a bug; the history is in
    order even then.
    """
    turn = _Turn(agent, session, front, cancel)
    start = len(session.messages)
    session.messages.append(history.user_message(prompt))
    stop_reason, error = CANCELLED, None
    try:
        stop_reason = turn.go()
    except Cancelled:
        pass
    except UserError as problem:
        stop_reason, error = END_TURN, problem
    finally:
        history.close_calls(session.messages, history.INTERRUPTED)
        if len(session.messages) == start + 1:
            del session.messages[start:]  # a question with no answer at all
    if cancel.cancelled:
        stop_reason, error = CANCELLED, None  # whatever the cancel broke on its way is no failure
    return Outcome(stop_reason, error, turn.commands, turn.file_operations, turn.skills)


class _Turn:
    """What one turn knows while it runs."""

    def __init__(self, agent, session, front, cancel: Cancel):
        self.agent, self.session, self.front, self.cancel = agent, session, front, cancel
        self.commands = self.file_operations = self.skills = 0
        self._malformed = self._rejections = 0

    def go(self) -> str:
        """Runs to the end; returns the stop reason."""
        session, limit = self.session, self.agent.config.max_steps
        server = self.agent.server(self.cancel)
        if session.system is None:
            self._open_session()
        steps = 0
        while True:
            if limit and steps == limit:
                self._say(STEPS_USED_UP % limit)
                return MAX_TURN_REQUESTS
            steps += 1
            calls, finish = self._ask_model(server)
            if finish == "length":
                for place, call in calls:
                    self._refuse(place, ToolPending(place["ref"], call.name, call.name, UNKNOWN_KIND, {}, ()), CALL_CUT)
                return MAX_TOKENS
            if not calls:
                return END_TURN
            for place, call in calls:
                self._call(place, call)
                if self._malformed == MALFORMED_LIMIT:
                    history.close_calls(session.messages, history.INTERRUPTED)
                    self._say(MALFORMED_CALLS % MALFORMED_LIMIT)
                    return END_TURN

    def _open_session(self) -> None:
        """What the first turn of a session makes, once: later requests must begin with the very same bytes."""
        session, config = self.session, self.agent.config
        session.tools = registry.built_in(config)
        session.wire_tools = registry.to_wire(session.tools)
        session.workspace = Workspace(session.cwd, config)
        session.system = system_prompt(config.acp_name, session.cwd, config.user_folder)

    def _ask_model(self, server):
        """One model request, streamed to the front end and kept in the history; returns (calls, finish reason).

        Each call comes as (its place in the history, what the model sent). What was said before a failure or a cancel
        is kept.
        """
        texts, thoughts, sent, finish = [], [], [], None
        messages = history.to_wire(self.session.system, self.session.messages)
        try:
            for piece in chat.complete(server, messages, self.session.wire_tools, self.cancel, self.agent.tap):
                kind = type(piece)
                if kind is Text:
                    texts.append(piece.text)
                    self.front.emit(piece)
                elif kind is Thought:
                    thoughts.append(piece.text)
                    self.front.emit(piece)
                elif kind is chat.ToolCall:
                    sent.append(piece)
                elif kind is chat.Finish:
                    finish = piece.reason
        finally:
            places = [self._place(call) for call in sent]
            if texts or places:
                answer = history.assistant_message("".join(texts), "".join(thoughts), places)
                self.session.messages.append(answer)
        if not texts and not sent:
            raise UserError((EMPTY_CUT_ANSWER if finish == "length" else EMPTY_ANSWER) % server.url)
        return list(zip(places, sent)), finish

    def _place(self, call) -> dict:
        """The call as the history keeps it, under its number."""
        return {"ref": self.agent.next_ref(), "name": call.name, "arguments": history.valid_arguments(call.arguments)}

    def _say(self, line: str) -> None:
        """A line of mm's own, as part of the answer and of the history."""
        self.front.emit(Text(line))
        self.session.messages.append(history.assistant_message(line))

    def _call(self, place: dict, call) -> None:
        """Takes one call of the model from its text to its result in the history."""
        self.cancel.check()
        ref = place["ref"]
        try:
            tool = registry.find(self.session.tools, call.name)
            values = parse_arguments(tool, call.arguments)
        except ToolError as problem:
            self._malformed += 1
            given = json.loads(place["arguments"])
            return self._refuse(place, ToolPending(ref, call.name, call.name, UNKNOWN_KIND, given, ()), str(problem))
        self._malformed = 0
        try:
            action = tool.prepare(values, self.session.workspace)
        except ToolError as problem:
            title = registry.call_title(tool, values)
            return self._refuse(place, ToolPending(ref, tool.name, title, tool.kind, values, ()), str(problem))
        self._run(place, ToolPending(ref, tool.name, action.title, tool.kind, values, action.paths), action)

    def _run(self, place: dict, pending: ToolPending, action) -> None:
        """Asks for permission and runs the action; its end is told on every path."""
        self.front.emit(pending)
        progress = _Progress(self.front, pending.ref)
        result = _failed(CALL_CANCELLED)
        try:
            permission = Permission(pending, action.diff, action.text)
            if self.session.gate.permits(permission, action.asks, self.front, self.cancel):
                self._rejections = 0
                self.front.emit(ToolStarted(pending.ref))
                self._count(pending.name)
                result = action.run(self.cancel, progress)
            else:
                self._rejections += 1
                result = _failed(rejection(pending.name, self._rejections))
        except ToolError as problem:
            result = _failed(str(problem))
        except Cancelled:
            raise
        except Exception:
            result = _failed(INTERNAL_ERROR % pending.name)
            raise
        finally:
            progress.close()
            self._end(place, result)

    def _refuse(self, place: dict, pending: ToolPending, text: str) -> None:
        """A call that cannot be tried is shown all the same."""
        self.front.emit(pending)
        self._end(place, _failed(text))

    def _end(self, place: dict, result: Result) -> None:
        self.front.emit(ToolEnded(place["ref"], result.status, result.output, result.diff, result.prose))
        self.session.messages.append(history.tool_message(place["ref"], place["name"], result.output))

    def _count(self, name: str) -> None:
        if name == "bash":
            self.commands += 1
        elif name in FILE_TOOLS:
            self.file_operations += 1
        elif name == "read_skill":
            self.skills += 1


def _failed(text: str) -> Result:
    return Result(text, FAILED, None, False)


class _Progress:
    """What a running tool calls with the end of its output; says nothing more once the call is over."""

    def __init__(self, front, ref: str):
        self._front, self._ref = front, ref
        self._lock = threading.Lock()
        self._open = True

    def __call__(self, tail: str) -> None:
        with self._lock:
            if self._open:
                self._front.emit(ToolOutput(self._ref, tail))

    def close(self) -> None:
        with self._lock:
            self._open = False
