"""Hooks: the user's own programs, which are told what happens and may deny it.

A hook can deny, but never permit: a project's file must not be able to grant anything. A hook that fails is
always reported on stderr. Its `onFailure` says whether that counts as a denial; for a guard (preToolCall) it
does by default. engine.hook_program, which asks one of them, is loaded with the first.
"""

from __future__ import annotations

import re
import time
from collections import namedtuple

from mm import log
from mm.cancel import Cancel
from mm.text import one_line

VERSION = 1

# What the model, or for userPrompt the user, reads after a denial; each takes the reason.
DENIED = "[denied by a hook: %s]"
HIDDEN = "[hidden by a hook: %s]"
# The title of a denied call; takes the tool's name.
DENIED_TITLE = "%s — denied by a hook"
# The first line of a result whose arguments a hook replaced.
ARGUMENTS_CHANGED = "[a hook changed the arguments]"

HOOK_FAILED = "hook failed: %s"
FAILURE_LINE = "🪝 %s"
TOO_LATE = "not run: the %d s for %s are over"

# Characters of the context from all hooks of an event, and of a tool's output on stdin.
CONTEXT_LIMIT = 4000
# Seconds for all sessionEnd hooks together: mm is on its way out.
SESSION_END_LIMIT = 2

# The events in which a denial counts, and those that take a context.
DENIABLE = frozenset({"userPrompt", "preToolCall", "postToolCall", "turnEnd"})
TAKES_CONTEXT = frozenset({"sessionStart", "userPrompt", "postToolCall"})

# What hooks said about an event. `reason` and `context` are "" if there is none; `arguments` is a dict to use
# instead of the call's, not yet checked against the tool, or None.
Verdict = namedtuple("Verdict", "denied reason context arguments", defaults=(False, "", "", None))
NOTHING = Verdict()


class Hooks:
    """The hooks of one session. `transcript` is the path of the session file, None without one."""

    def __init__(self, config, session_id: str, cwd: str, transcript: str | None = None):
        self.transcript = transcript
        self._config, self._session_id, self._cwd = config, session_id, cwd

    def present(self, event: str) -> bool:
        """Whether there is any hook for `event`; if not, its fields need not be gathered."""
        return bool(self._config.hooks.get(event))

    def run(self, event: str, cancel: Cancel, tool: str | None = None, arguments: dict | None = None,
            **fields) -> Verdict:
        """Runs the hooks of `event` in order until one denies. Raises Cancelled, which ends the running hook.

        `fields` are the event's own, in snake_case: call_id, output, status, duration_ms, …
        """
        hooks = [hook for hook in self._config.hooks.get(event, ()) if _matches(hook, tool)]
        deadline = time.monotonic() + (SESSION_END_LIMIT if event == "sessionEnd" else float("inf"))
        contexts, replaced = [], None
        for hook in hooks:
            message = self._message(event, tool, arguments if replaced is None else replaced, fields)
            answer = self._answer(hook, message, deadline, cancel)
            if answer.context and event in TAKES_CONTEXT:
                contexts.append(answer.context)
            if answer.denied and event in DENIABLE:
                return Verdict(denied=True, reason=answer.reason, context=_joined(contexts))
            if answer.arguments is not None and event == "preToolCall":
                replaced = answer.arguments
        return Verdict(context=_joined(contexts), arguments=replaced)

    def _answer(self, hook, message: dict, deadline: float, cancel: Cancel) -> Verdict:
        """What one hook says; a failure is logged, and counts as it is configured."""
        from mm.engine import hook_program

        event, timeout = message["event"], min(hook.timeout, deadline - time.monotonic())
        try:
            if timeout <= 0:
                raise hook_program.HookFailed(TOO_LATE % (SESSION_END_LIMIT, event))
            return Verdict(**hook_program.ask(hook, message, self._config.bash_shell, timeout, cancel))
        except hook_program.HookFailed as failure:
            text = "%s hook %s: %s" % (event, one_line(hook.command), failure)
        log.line(FAILURE_LINE % text)
        return Verdict(denied=True, reason=HOOK_FAILED % text) if hook.on_failure == "deny" else NOTHING

    def _message(self, event, tool, arguments, fields) -> dict:
        """What the hook reads on stdin."""
        message = {"event": event, "sessionId": self._session_id, "cwd": self._cwd,
                   "transcript": self.transcript, "version": VERSION}
        if tool is not None:
            message.update(tool=tool, input=arguments or {})
        for name, value in fields.items():
            message[_camel_case(name)] = value
        return message


def _matches(hook, tool: str | None) -> bool:
    return tool is None or hook.match is None or re.fullmatch(hook.match, tool) is not None


def _joined(contexts: list) -> str:
    text = "\n".join(contexts)
    return text if len(text) <= CONTEXT_LIMIT else text[:CONTEXT_LIMIT] + "…"


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
