"""One tool call of the model, from its arguments to its result in the history.

    Calls.run     loop detector -> arguments -> hooks -> Action -> gate -> run -> hooks -> history

Each call that is announced has exactly one end, on every path. Cancelled passes through.
"""

from __future__ import annotations

import os
import threading
import time

from mm import log
from mm.cancel import Cancel, Cancelled
from mm.conversation import history
from mm.diff import capped
from mm.engine import hooks, loops
from mm.engine.gate import rejection
from mm.engine.second_tries import MALFORMED_CALL, SecondTries
from mm.events import ALLOW, FAILED, Permission, ToolEnded, ToolOutput, ToolPending, ToolStarted
from mm.text import one_line
from mm.tools import offers, paths, registry
from mm.tools.arguments import parse_arguments
from mm.tools.context import Context
from mm.tools.tool import BadArguments, Result, ToolError

CANCELLED = "[cancelled by the user]"
# The call has run, but the hook that may hide its output had not spoken yet.
UNCHECKED = "[done, but cancelled by the user before a hook had seen the output]"
INTERNAL_ERROR = "[%s: internal error]"
CUT = "[not run: the server cut the answer at its length limit]"


class Calls:
    """The calls (request.Call) of one turn. `commands`, `file_operations` and `skills` count those that ran;
    `end_line` is the line with which the turn has to end after the last call, None if it goes on."""

    def __init__(self, process, session, front, cancel: Cancel, tries: SecondTries):
        self._process, self._session, self._front = process, session, front
        self._cancel, self._tries = cancel, tries
        self.commands = self.file_operations = self.skills = 0
        self.end_line = None
        self._rejections = 0
        self._announced = None
        self._seconds = 0  # that the last call ran
        self._when_cancelled = None  # what the call is answered with when it is cancelled
        self._loops = loops.CallLoops(process.config.loop_repeats) if process.config.loop_enabled else None

    def run(self, call) -> None:
        """Runs the call, or answers it with the reason why it does not run."""
        self._cancel.check()
        self._when_cancelled = Result.note(CANCELLED, FAILED)
        result = Result.failed(INTERNAL_ERROR % call.name)
        try:
            result = self._unless_looping(call)
        except Cancelled:
            result = self._when_cancelled
            raise
        finally:
            self._end(call, result)
        if self._loops and self._loops.stopped():
            log.line(loops.LOG_LINE % self._announced.title)
            self.end_line = loops.STOPPED % call.name

    def refuse(self, call, text: str) -> None:
        """Shows a call that is not even tried, and gives it the result `text`."""
        self._end(call, self._not_run(call, Result.note(text, FAILED), arguments={}))

    def _unless_looping(self, call) -> Result:
        if not self._loops:
            return self._from_arguments(call)
        asked = call.arguments.value or call.arguments.problem
        refusal = self._loops.before(call.name, asked)
        if refusal:
            return self._not_run(call, Result.note(refusal, FAILED), self._title(call))
        self._seconds = 0
        result = self._from_arguments(call)
        return _with_line(result, self._loops.after(call.name, asked, result.output, self._seconds))

    def _from_arguments(self, call) -> Result:
        """The result of a call whose tool is looked for and whose arguments are fitted to it."""
        try:
            tool = registry.find(self._session.prepared.tools, call.name)
            values = parse_arguments(tool, call.arguments)
        except ToolError as problem:
            if not self._tries.take(MALFORMED_CALL):
                self.end_line = MALFORMED_CALL.end
            return self._not_run(call, Result.failed(str(problem)))
        self._tries.reset(MALFORMED_CALL)
        verdict = self._session.prepared.hooks.run("preToolCall", self._cancel, tool.name, values,
                                                   call_id=call.ref)
        if verdict.denied:
            denied = Result.note(hooks.DENIED % verdict.reason, FAILED)
            return self._not_run(call, denied, hooks.DENIED_TITLE % tool.name, values)
        if verdict.arguments is None:
            return self._prepared(call, tool, values)
        try:
            values = parse_arguments(tool, verdict.arguments)
        except BadArguments as problem:
            result = self._not_run(call, Result.failed(str(problem)), tool.name, verdict.arguments)
        else:
            result = self._prepared(call, tool, values)
        return result._replace(output="%s\n%s" % (hooks.ARGUMENTS_CHANGED, result.output))

    def _prepared(self, call, tool, values: dict) -> Result:
        """The result of a call that is prepared, shown to the user if that is asked for, and run."""
        try:
            action = tool.prepare(values, self._context(call.ref))
        except ToolError as problem:
            title = registry.call_title(tool, values)
            return self._not_run(call, Result.failed(str(problem)), title, values, self._paths(tool, values))
        pending = self._announce(call.ref, tool.name, action.title, action.kind or tool.kind, values,
                                 action.paths)
        permission = Permission(pending, action.diff, action.text)
        answer = self._session.gate.answer(permission, action.asks, self._front, self._cancel)
        if answer != ALLOW:
            self._rejections += 1
            return Result.note(rejection(tool.name, self._rejections, answer), FAILED)
        self._rejections = 0
        result = self._checked(call.ref, tool, values, self._ran(call.ref, tool, action))
        result = _with_line(result, self._instructions(tool.name, action, result))
        plan = self._session.seen.plan
        return _with_line(result, plan.reminder()) if plan and tool.name != "plan" else result

    def _context(self, ref: str) -> Context:
        folder, window = os.path.abspath(self._session.cwd), self._process.model.window.size
        return Context(folder, self._process.config, self._cancel, self._front, ref, window,
                       self._session.seen)

    def _paths(self, tool, values: dict) -> tuple:
        """The absolute path that a call is about, for one that could not be prepared."""
        try:
            return (paths.resolve(self._session.cwd, tool.name, values["path"]).location,)
        except (KeyError, ToolError):
            return ()

    def _ran(self, ref: str, tool, action) -> Result:
        self._front.emit(ToolStarted(ref))
        self._count(tool.name, action.kind)
        progress = _Progress(self._front, ref)
        begin = time.monotonic()
        try:
            return action.run(progress)
        except ToolError as problem:
            return Result.failed(str(problem))
        finally:
            progress.close()
            self._seconds = time.monotonic() - begin

    def _checked(self, ref: str, tool, values: dict, result: Result) -> Result:
        """The result as the hooks leave it."""
        prepared = self._session.prepared
        if not prepared.hooks.present("postToolCall"):
            return result
        self._when_cancelled = Result.note(UNCHECKED, result.status)._replace(diff=result.diff)
        milliseconds = round(self._seconds * 1000)
        verdict = prepared.hooks.run("postToolCall", self._cancel, tool.name, values, call_id=ref,
                                     output=result.output, status=result.status, duration_ms=milliseconds)
        if verdict.denied:
            result = Result.note(hooks.HIDDEN % verdict.reason, result.status)
        return _with_line(result, verdict.context)

    def _instructions(self, name: str, action, result: Result) -> str:
        """The AGENTS.md files of the folders that this call is the first to touch; "" if there are none."""
        if result.status == FAILED or name not in offers.TAKE_A_PATH:
            return ""
        return self._session.prepared.instructions.below(action.paths, self._process.model.window.size)

    def _not_run(self, call, result: Result, title: str = "", arguments=None, paths=()) -> Result:
        """Announces a call that will not run; by default under its name, with the model's arguments."""
        tool = self._tool(call)
        name, kind = (tool.name, tool.kind) if tool else (call.name, registry.UNKNOWN_KIND)
        arguments = call.arguments.value or {} if arguments is None else arguments
        self._announce(call.ref, name, title or one_line(call.name), kind, arguments, paths)
        return result

    def _title(self, call) -> str:
        tool = self._tool(call)
        return registry.call_title(tool, call.arguments.value or {}) if tool else ""

    def _tool(self, call):
        """The tool that the call names, None if there is no such tool."""
        try:
            return registry.find(self._session.prepared.tools, call.name)
        except ToolError:
            return None

    def _announce(self, ref: str, name: str, title: str, kind: str, arguments: dict, paths=()) -> ToolPending:
        self._announced = ToolPending(ref, name, title, kind, arguments, paths)
        self._front.emit(self._announced)
        return self._announced

    def _end(self, call, result: Result) -> None:
        """The call's end, in the history and, if it was announced, for the front end."""
        announced = self._announced if self._announced and self._announced.ref == call.ref else None
        shown = {"status": result.status}
        if self._session.store:
            shown.update(diff=capped(result.diff)._asdict() if result.diff else None, prose=result.prose)
            if announced:
                shown.update(title=announced.title, toolKind=announced.kind)
        self._session.messages.append(history.tool_message(call.ref, call.name, result.output, **shown))
        if announced:
            self._front.emit(ToolEnded(call.ref, result.status, result.output, result.diff, result.prose))

    def _count(self, name: str, kind) -> None:
        if name == "bash":
            self.commands += 1
        elif name in offers.TAKE_A_PATH and (name != "lsp" or kind == "edit"):
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


def _with_line(result: Result, line) -> Result:
    return result._replace(output="%s\n%s" % (result.output, line)) if line else result
