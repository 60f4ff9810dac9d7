"""One tool call of the model, from its text to its result in the history.

    Calls.run     arguments -> loop detector -> hooks -> Action -> gate -> run -> hooks -> history

Each call that is announced has exactly one end, on every path. Cancelled passes through.
"""

from __future__ import annotations

import json
import os
import threading
import time

from mm.cancel import Cancel, Cancelled
from mm.conversation import history
from mm.diff import capped
from mm.engine import loops, verdict as verdicts
from mm.engine.gate import rejection
from mm.events import ALLOW, FAILED, Permission, ToolEnded, ToolOutput, ToolPending, ToolStarted
from mm.text import one_line
from mm.tools import paths, registry
from mm.tools.arguments import parse_arguments
from mm.tools.context import Context
from mm.tools.tool import BadArguments, Result, ToolError

CANCELLED = "[cancelled by the user]"
# The call has run, but the hook that may hide its output had not spoken yet.
UNCHECKED = "[done, but cancelled by the user before a hook had seen the output]"
INTERNAL_ERROR = "[%s: internal error]"
CUT = "[not run: the server cut the answer at its length limit]"
FILE_TOOLS = ("read_file", "write_file", "edit_file")


class Calls:
    """The calls of one turn. `commands`, `file_operations` and `skills` count those that ran, `malformed` those in a row
    that could not be read."""

    def __init__(self, agent, session, front, cancel: Cancel):
        self._agent, self._session, self._front, self._cancel = agent, session, front, cancel
        self.commands = self.file_operations = self.skills = 0
        self.malformed = 0
        self._rejections = 0
        self._announced = None
        self._seconds = 0  # that the last call ran
        self._cancelled = None  # what the call is answered with when it is cancelled
        config = agent.config
        self._loops = loops.CallLoops(config.loop_repeats) if config.loop_enabled else None

    def looping(self):
        """The title of the last call when the model goes round in circles and no word of mm's has helped; else None."""
        return self._announced.title if self._loops and self._loops.stopped() else None

    def run(self, place: dict, call) -> None:
        """`place`: the call as the history keeps it, under its number; `call`: what the model sent, a chat.ToolCall."""
        self._cancel.check()
        self._cancelled = Result.note(CANCELLED, FAILED)
        result = None
        try:
            result = self._try_unless_looping(place, call)
        except Cancelled:
            result = self._cancelled
            raise
        except Exception:
            result = Result.failed(INTERNAL_ERROR % call.name)
            raise
        finally:
            self._end(place, result)

    def refuse(self, place: dict, call, text: str) -> None:
        """Shows a call that is not even tried, and gives it the result `text`."""
        self._announce(place["ref"], call.name, one_line(call.name), self._kind(call.name), {})
        self._end(place, Result.note(text, FAILED))

    def _try_unless_looping(self, place: dict, call) -> Result:
        if not self._loops:
            return self._try(place, call)
        given = json.loads(place["arguments"]) or str(call.arguments)
        refusal = self._loops.before(call.name, given)
        if refusal:
            title = self._title(call.name, given)
            self._announce(place["ref"], call.name, title, self._kind(call.name), json.loads(place["arguments"]))
            return Result.note(refusal, FAILED)
        self._seconds = 0
        result = self._try(place, call)
        nudge = self._loops.after(call.name, given, result.output, self._seconds)
        return _with_line(result, nudge) if nudge else result

    def _kind(self, name: str) -> str:
        return registry.kind_of(self._session.tools, name)

    def _title(self, name: str, given) -> str:
        try:
            return registry.call_title(registry.find(self._session.tools, name), given if isinstance(given, dict) else {})
        except ToolError:
            return one_line(name)

    def _try(self, place: dict, call) -> Result:
        """From what the model sent to a Result; a call that cannot be read or made is answered with the reason."""
        ref = place["ref"]
        try:
            tool = registry.find(self._session.tools, call.name)
            values = parse_arguments(tool, call.arguments)
        except ToolError as problem:
            self.malformed += 1
            self._announce(ref, call.name, one_line(call.name), self._kind(call.name), json.loads(place["arguments"]))
            return Result.failed(str(problem))
        self.malformed = 0
        verdict = self._session.hooks.run("preToolCall", self._cancel, tool.name, values, call_id=ref)
        if verdict.denied:
            self._announce(ref, tool.name, verdicts.DENIED_TITLE % tool.name, tool.kind, values)
            return Result.note(verdicts.DENIED % verdict.reason, FAILED)
        if verdict.arguments is None:
            return self._make(ref, tool, values)
        try:
            values = parse_arguments(tool, verdict.arguments)
        except BadArguments as problem:
            self._announce(ref, tool.name, tool.name, tool.kind, verdict.arguments)
            return Result.failed("%s\n%s" % (verdicts.ARGUMENTS_CHANGED, problem))
        result = self._make(ref, tool, values)
        return result._replace(output="%s\n%s" % (verdicts.ARGUMENTS_CHANGED, result.output))

    def _make(self, ref: str, tool, values: dict) -> Result:
        """Prepares the call, asks for permission and runs it."""
        try:
            action = tool.prepare(values, self._context(ref))
        except ToolError as problem:
            self._announce(ref, tool.name, registry.call_title(tool, values), tool.kind, values, self._paths(tool, values))
            return Result.failed(str(problem))
        pending = self._announce(ref, tool.name, action.title, action.kind or tool.kind, values, action.paths)
        permission = Permission(pending, action.diff, action.text)
        answer = self._session.gate.answer(permission, action.asks, self._front, self._cancel)
        if answer != ALLOW:
            self._rejections += 1
            return Result.note(rejection(tool.name, self._rejections, answer), FAILED)
        self._rejections = 0
        result = self._run(ref, tool, values, action)
        plan = self._session.seen.plan
        for line in (self._instructions(tool.name, action, result), plan.reminder() if plan and tool.name != "plan" else None):
            result = _with_line(result, line) if line else result
        return result

    def _instructions(self, name: str, action, result: Result) -> str:
        """The AGENTS.md files of the folders that the model comes to with this call; "" if there is nothing new."""
        if result.status == FAILED or not (name in FILE_TOOLS or name == "lsp"):
            return ""
        return self._session.instructions.for_paths(action.paths, self._agent.window.size)

    def _context(self, ref: str) -> Context:
        folder, window = os.path.abspath(self._session.cwd), self._agent.window.size
        return Context(folder, self._agent.config, self._cancel, self._front, ref, window, self._session.seen)

    def _paths(self, tool, values: dict) -> tuple:
        """The absolute path that a call is about, for one that could not be prepared."""
        try:
            return (paths.resolve(self._session.cwd, tool.name, values["path"]).location,)
        except (KeyError, ToolError):
            return ()

    def _run(self, ref: str, tool, values: dict, action) -> Result:
        self._front.emit(ToolStarted(ref))
        self._count(tool.name, action.kind)
        progress = _Progress(self._front, ref)
        begin = time.monotonic()
        try:
            result = action.run(progress)
        except ToolError as problem:
            result = Result.failed(str(problem))
        finally:
            progress.close()
        self._seconds = time.monotonic() - begin
        return self._checked(ref, tool, values, result) if self._session.hooks.present("postToolCall") else result

    def _checked(self, ref: str, tool, values: dict, result: Result) -> Result:
        """The result as the hooks leave it."""
        self._cancelled = result._replace(output=UNCHECKED, prose=True)
        verdict = self._session.hooks.run("postToolCall", self._cancel, tool.name, values, call_id=ref, output=result.output,
                                          status=result.status, duration_ms=round(self._seconds * 1000))
        if verdict.denied:
            result = Result.note(verdicts.HIDDEN % verdict.reason, result.status)
        return _with_line(result, verdict.context) if verdict.context else result

    def _announce(self, ref: str, name: str, title: str, kind: str, arguments: dict, paths=()) -> ToolPending:
        self._announced = ToolPending(ref, name, title, kind, arguments, paths)
        self._front.emit(self._announced)
        return self._announced

    def _end(self, place: dict, result: Result) -> None:
        """The call's end, in the history and, if it was announced, for the front end."""
        ref = place["ref"]
        announced = self._announced if self._announced and self._announced.ref == ref else None
        shown = {"status": result.status}
        if self._session.store:
            shown.update(diff=capped(result.diff)._asdict() if result.diff else None, prose=result.prose)
            if announced:
                shown.update(title=announced.title, toolKind=announced.kind)
        self._session.messages.append(history.tool_message(ref, place["name"], result.output, **shown))
        if announced:
            self._front.emit(ToolEnded(ref, result.status, result.output, result.diff, result.prose))

    def _count(self, name: str, kind) -> None:
        if name == "bash":
            self.commands += 1
        elif name in FILE_TOOLS or name == "lsp" and kind == "edit":
            self.file_operations += 1
        elif name == "read_skill":
            self.skills += 1


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


def _with_line(result: Result, line: str) -> Result:
    return result._replace(output="%s\n%s" % (result.output, line))
