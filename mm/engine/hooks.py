"""Hooks: the user's own programs, which are told what happens and may deny it.

    Hooks.run        the hooks of one event, one after the other -> a Verdict
    read_answer      what the end of one program means (pure)

A hook can deny, but never permit: a project's file must not be able to grant anything. A hook that fails is
always reported on stderr. Its `onFailure` says whether that counts as a denial; for a guard (preToolCall) it
does by default.
"""

from __future__ import annotations

import os
import re
import time

from mm import json_text, log
from mm.cancel import Cancel
from mm.engine.verdict import NOTHING, Verdict
from mm.secrecy import without_own
from mm.text import clean_terminal, cut_middle, one_line, replace_surrogates
from mm.tools import offers

VERSION = 1
NO_REASON = "denied"
HOOK_FAILED = "hook failed: %s"
NO_JSON_OBJECT = "stdout is not a JSON object"
FAILURE_LINE = "🪝 %s"

# Characters: of stderr as a reason; of a reason in JSON; of the context from all hooks of an event; of a
# tool's output on stdin; of the first line of stderr after a failure.
STDERR_REASON_LIMIT, REASON_LIMIT = 500, 4000
CONTEXT_LIMIT, OUTPUT_LIMIT, FIRST_LINE_LIMIT = 4000, 20_000, 300
# Seconds for all sessionEnd hooks together: mm is on its way out.
SESSION_END_LIMIT = 2

# The events in which a denial counts, those that take a context, and those that take plain text as one.
DENIABLE = frozenset({"userPrompt", "preToolCall", "postToolCall", "turnEnd"})
TAKES_CONTEXT = frozenset({"sessionStart", "userPrompt", "postToolCall"})
TAKES_TEXT = frozenset({"sessionStart", "userPrompt"})

VARIABLES = ("MM_EVENT", "MM_TOOL", "MM_SESSION", "MM_CWD", "MM_COMMAND", "MM_PATH")


class HookFailed(Exception):
    """There is no answer from a hook; the message says why."""


class Hooks:
    """The hooks of one session. `transcript` is the path of the session file, None without one."""

    def __init__(self, config, session_id: str, cwd: str, transcript: str | None = None):
        self.transcript = transcript
        self._config = config
        self._session_id = session_id
        self._cwd = cwd

    def present(self, event: str) -> bool:
        """Whether there is any hook for `event`; if not, its fields need not be gathered."""
        return bool(self._config.hooks.get(event))

    def run(self, event: str, cancel: Cancel, tool: str | None = None, arguments: dict | None = None,
            **fields) -> Verdict:
        """Runs the hooks of `event` in order until one denies. Raises Cancelled, which ends the running hook.

        `fields` are the event's own, in snake_case: call_id, output, status, duration_ms, …
        """
        hooks = [hook for hook in self._config.hooks.get(event, ()) if _matches(hook, tool)]
        if not hooks:
            return NOTHING
        limit = SESSION_END_LIMIT if event == "sessionEnd" else float("inf")
        deadline = time.monotonic() + limit
        contexts, replaced = [], None
        for hook in hooks:
            message = self._message(event, tool, arguments if replaced is None else replaced, fields)
            answer = self._answer(event, hook, message, deadline, cancel)
            if answer.context and event in TAKES_CONTEXT:
                contexts.append(answer.context)
            if answer.denied and event in DENIABLE:
                return Verdict(denied=True, reason=answer.reason, context=_joined(contexts))
            if answer.arguments is not None and event == "preToolCall":
                replaced = answer.arguments
        return Verdict(context=_joined(contexts), arguments=replaced)

    def _answer(self, event, hook, message, deadline, cancel) -> Verdict:
        """What one hook says; a failure is logged, and counts as it is configured."""
        try:
            timeout = min(hook.timeout, deadline - time.monotonic())
            return read_answer(event, self._run(event, hook, message, timeout, cancel), timeout)
        except HookFailed as failure:
            text = "%s hook %s: %s" % (event, one_line(hook.command), failure)
        log.line(FAILURE_LINE % text)
        if hook.on_failure == "deny":
            return Verdict(denied=True, reason=HOOK_FAILED % text)
        return NOTHING

    def _run(self, event, hook, message, timeout, cancel):
        """How the hook's program ended, a hook_program.Ended."""
        from mm.engine import hook_program
        from mm.wire import programs
        from mm.wire.framing import encode_line

        if timeout <= 0:
            raise HookFailed("not run: the %d s for %s are over" % (SESSION_END_LIMIT, event))
        try:
            shell = programs.shell(self._config.bash_shell, self._cwd)
            return hook_program.run(shell, hook, self._cwd, self._environment(event, message),
                                    encode_line(message), timeout, cancel)
        except OSError as error:
            raise HookFailed("cannot start: %s" % (error.strerror or error)) from None
        except programs.NoShell as problem:
            raise HookFailed("cannot start: %s" % problem) from None

    def _message(self, event, tool, arguments, fields) -> dict:
        """What the hook reads on stdin."""
        message = {"event": event, "sessionId": self._session_id, "cwd": self._cwd,
                   "transcript": self.transcript, "version": VERSION}
        if tool is not None:
            message.update(tool=tool, input=arguments or {})
        for name, value in fields.items():
            if name == "output" and len(value) > OUTPUT_LIMIT:
                value = cut_middle(value, OUTPUT_LIMIT - 100)  # room for the note about what is missing
            message[_camel_case(name)] = value
        return message

    def _environment(self, event, message) -> dict:
        """mm's own environment and VARIABLES. As bytes: a locale other than UTF-8 does not change what is
        meant.
        """
        from mm.tools.bash import COMMAND_LIMIT

        environment = {name: value for name, value in without_own(os.environ).items()
                       if name not in VARIABLES}
        tool, given = message.get("tool"), {"MM_EVENT": event, "MM_SESSION": self._session_id,
                                            "MM_CWD": self._cwd}
        if tool is not None:
            given["MM_TOOL"] = tool
        if tool == "bash":
            given["MM_COMMAND"] = message["input"].get("command")
        if tool in offers.TAKE_A_PATH:
            given["MM_PATH"] = self._path(tool, message["input"].get("path"))
        for name, value in given.items():
            if isinstance(value, str):
                # A longer command cannot run, whatever a hook says; the system would refuse to start the hook
                # with it.
                environment[name] = _for_environment(value)[:COMMAND_LIMIT]
        return environment

    def _path(self, tool, path) -> str | None:
        """The absolute path that the tool will open, after links that lead elsewhere; None if it cannot open
        it.
        """
        from mm.tools import paths
        from mm.tools.tool import ToolError

        try:
            return paths.resolve(self._cwd, tool, path).location if isinstance(path, str) else None
        except ToolError:
            return None


def read_answer(event: str, ended, timeout: float) -> Verdict:
    """What a hook that ended like this (hook_program.Ended) says. Pure. Raises HookFailed."""
    if ended.code is None:
        raise HookFailed("timed out after %g s" % round(timeout, 1))
    stderr = clean_terminal(ended.stderr.decode("utf-8", "replace")).strip()
    if ended.code == 2:
        return Verdict(denied=True, reason=_cut(stderr, STDERR_REASON_LIMIT) or NO_REASON)
    if ended.code != 0:
        first = one_line(stderr.split("\n", 1)[0], FIRST_LINE_LIMIT)
        raise HookFailed(": ".join(filter(None, (_ending(ended.code), first))))
    if ended.cut:
        raise HookFailed("stdout is longer than 1 MiB")
    return _read_stdout(event, ended.stdout.decode("utf-8-sig", "replace").strip())


def _read_stdout(event: str, text: str) -> Verdict:
    if not text:
        return NOTHING
    try:
        value = json_text.read(text)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return _read_object(value)
    # What begins like an object was meant to be one: half a denial must not become context for the model.
    if event in TAKES_TEXT and not text.startswith("{"):
        return Verdict(context=clean_terminal(text))
    raise HookFailed(NO_JSON_OBJECT)


def _read_object(value: dict) -> Verdict:
    """Strict, because a typing error in a guard must not open the door. Only null counts as absent."""
    given = {name: item for name, item in value.items() if item is not None}
    unknown = sorted(set(given) - {"decision", "reason", "context", "input"})
    if unknown:
        raise HookFailed('stdout has an unknown field "%s"' % one_line(unknown[0], 40))
    if given.get("decision", "allow") not in ("allow", "deny"):
        raise HookFailed('"decision" must be "deny" or "allow"')
    for name in ("reason", "context"):
        if not isinstance(given.get(name, ""), str):
            raise HookFailed('"%s" must be a string' % name)
    if not isinstance(given.get("input", {}), dict):
        raise HookFailed('"input" must be an object')
    denied = given.get("decision") == "deny"
    reason = _cut(clean_terminal(given.get("reason", "")).strip(), REASON_LIMIT) or NO_REASON
    return Verdict(denied, reason if denied else "", clean_terminal(given.get("context", "")).strip(),
                   given.get("input"))


def _ending(code: int) -> str:
    from mm.wire import child

    return "exit %d" % code if code > 0 else child.ending(code)


def _matches(hook, tool: str | None) -> bool:
    return tool is None or hook.match is None or re.fullmatch(hook.match, tool) is not None


def _joined(contexts: list) -> str:
    return _cut("\n".join(contexts), CONTEXT_LIMIT)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "…"


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _for_environment(text: str):
    text = text.replace("\0", "\ufffd")
    if os.name == "nt":
        return replace_surrogates(text)
    try:
        return text.encode("utf-8", "surrogateescape")  # the name of a file need not be text
    except UnicodeEncodeError:
        return replace_surrogates(text).encode("utf-8")
