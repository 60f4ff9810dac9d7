"""One run of a hook's program: what it gets, its process, and what its end means.

It gets a line for the shell in its own process group, a message on stdin, and variables. A run has four
daemon threads. One waits until the shell has exited. One writes stdin, because a hook that does not read must
not keep mm waiting. Two read stdout and stderr. The turn's thread waits for the exit, the timeout or the
cancel. What a hook leaves in the background lives on, as with bash; a pipe that it holds is read on, but mm
waits for its end only a moment.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import subprocess
import threading
import time
from collections import namedtuple

from mm import json_text
from mm.cancel import Cancel
from mm.secrecy import without_own
from mm.text import clean_terminal, one_line, replace_surrogates
from mm.tools import offers, paths
from mm.tools.bash import COMMAND_LIMIT
from mm.tools.tool import ToolError
from mm.wire import child, programs
from mm.wire.framing import encode_line
from mm.wire.streams import write_to

NO_REASON = "denied"
NO_JSON_OBJECT = "stdout is not a JSON object"
# Characters: of stderr as a reason, of a reason in JSON, of the first line of stderr after a failure.
STDERR_REASON_LIMIT, REASON_LIMIT, FIRST_LINE_LIMIT = 500, 4000, 300
# The events in which other text than JSON is a context.
TAKES_TEXT = frozenset({"sessionStart", "userPrompt"})
VARIABLES = ("MM_EVENT", "MM_TOOL", "MM_SESSION", "MM_CWD", "MM_COMMAND", "MM_PATH")

# Bytes kept of each stream; the rest is read and dropped.
STREAM_LIMIT = 1024 * 1024
# Seconds: between TERM and KILL; for the pipes to end after the shell has.
GRACE = 0.5
DRAIN = 0.3

# What a shell exits with when it cannot execute or find a command (POSIX, Shell Command Language, 2.8.2).
_NOT_EXECUTED = (126, 127)

# `code` is the exit code, the negative number of a signal, or None after the timeout; `cut` says that stdout
# was longer than the limit.
Ended = namedtuple("Ended", "code stdout stderr cut")

# The first word of a line, if it is plain enough to be read without a shell. An assignment is not.
_FIRST_WORD = re.compile(r"""
    \s* (?: "([^"\\$`]+)" | '([^']+)' | ([^\s"'\\$`&|;<>()=*?\[\]{}\#!]+) ) (?= [\s&|;<>()] | $ )
""", re.VERBOSE)


class HookFailed(Exception):
    """There is no answer from a hook; the message says why."""


def ask(hook, message: dict, shell: str, timeout: float, cancel: Cancel) -> dict:
    """What the hook (mm.config.entries.Hook) says to `message`: fields of a hooks.Verdict. `shell` is as
    configured.

    Raises HookFailed, and Cancelled. The group is ended then, and after the timeout.
    """
    cancel.check()
    line, program = locate(hook.command, hook.folder)
    try:
        # Bytes: a locale other than UTF-8 does not change what the file says, and a folder's name may be any.
        argv = [programs.shell(shell, message["cwd"]), "-c",
                line if os.name == "nt" else line.encode("utf-8", "surrogateescape")]
        started = child.start(argv, cwd=message["cwd"], env=environment(message), stdin=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        ended = _finish(started, encode_line(message), timeout, cancel)
        if ended.code in _NOT_EXECUTED and program:
            _check_program(program)
    except OSError as error:
        raise HookFailed("cannot start: %s" % (error.strerror or error)) from None
    except programs.NoShell as problem:
        raise HookFailed("cannot start: %s" % problem) from None
    return read_answer(message["event"], ended, timeout)


def locate(command: str, folder: str) -> tuple:
    """(line for the shell, the program's path or None): a first word that is a relative path starts at
    `folder`.

    All other words belong to the shell, which runs in the session's folder.
    """
    match = _FIRST_WORD.match(command)
    word = match.group(match.lastindex) if match else ""
    if "/" not in word:
        return command, None
    if word.startswith("~"):
        return command, os.path.expanduser(word) if match.lastindex == 3 else None
    if os.path.isabs(word):
        return command, word
    program = os.path.join(folder, word[2:] if word.startswith("./") else word)
    return shlex.quote(program) + command[match.end():], program


def environment(message: dict) -> dict:
    """mm's own and VARIABLES, as bytes: a locale other than UTF-8 does not change what is meant."""
    values = {"MM_EVENT": message["event"], "MM_SESSION": message["sessionId"], "MM_CWD": message["cwd"]}
    tool = message.get("tool")
    if tool is not None:
        values["MM_TOOL"] = tool
    if tool == "bash":
        values["MM_COMMAND"] = message["input"].get("command")
    if tool in offers.TAKE_A_PATH:
        values["MM_PATH"] = _path(message["cwd"], tool, message["input"].get("path"))
    # A longer command cannot run, whatever a hook says; the system would refuse to start the hook with it.
    given = {name: _encoded(value)[:COMMAND_LIMIT] for name,
             value in values.items() if isinstance(value, str)}
    own = {name: value for name, value in without_own(os.environ).items() if name not in VARIABLES}
    return dict(own, **given)


def _path(folder: str, tool: str, path) -> str | None:
    """The absolute path that the tool will open, after links that lead elsewhere; None if it cannot."""
    try:
        return paths.resolve(folder, tool, path).location if isinstance(path, str) else None
    except ToolError:
        return None


def _encoded(text: str):
    text = text.replace("\0", "\ufffd")
    if os.name == "nt":
        return replace_surrogates(text)
    try:
        return text.encode("utf-8", "surrogateescape")  # the name of a file need not be text
    except UnicodeEncodeError:
        return replace_surrogates(text).encode("utf-8")


def _check_program(path: str) -> None:
    """Raises OSError if the system would not execute `path`."""
    number = (errno.ENOENT if not os.path.exists(path) else errno.EISDIR if os.path.isdir(path)
              else 0 if os.access(path, os.X_OK) else errno.EACCES)
    if number:
        raise OSError(number, os.strerror(number))


def _finish(started: child.Child, message: bytes, timeout: float, cancel: Cancel) -> Ended:
    """Waits for the end."""
    process, exited = started.process, threading.Event()
    stdout, stderr = _Stream(process.stdout), _Stream(process.stderr)
    by_itself = False
    try:
        for work in (lambda: (process.wait(), exited.set()), lambda: _feed(process.stdin, message),
                     stdout.read, stderr.read):
            threading.Thread(target=work, name="hook %d" % started.pid, daemon=True).start()
        by_itself = cancel.wait(exited, timeout)
        deadline = time.monotonic() + DRAIN + (0 if by_itself else GRACE)
        if not by_itself:
            started.end(GRACE)
        for event in (exited, stdout.ended, stderr.ended):
            cancel.wait(event, max(deadline - time.monotonic(), 0))
    except BaseException:
        started.end(GRACE)
        raise
    if by_itself:
        started.release()
    return Ended(process.returncode if by_itself else None, stdout.data(), stderr.data(), stdout.cut)


def _feed(stdin, message: bytes) -> None:
    with stdin:
        try:
            write_to(stdin.fileno())(message)
        except OSError:
            pass  # it does not read


class _Stream:
    """The beginning of what comes out of a pipe. `ended` is set at its end, `cut` if there was more."""

    def __init__(self, pipe):
        self._pipe = pipe
        self._kept, self._room = [], STREAM_LIMIT
        self.cut = False
        self.ended = threading.Event()

    def read(self) -> None:
        with self._pipe as pipe:
            while True:
                data = os.read(pipe.fileno(), 65536)
                if not data:
                    break
                self.cut = self.cut or len(data) > self._room
                self._kept.append(data[:self._room])
                self._room -= len(self._kept[-1])
        self.ended.set()

    def data(self) -> bytes:
        return b"".join(tuple(self._kept))


def read_answer(event: str, ended: Ended, timeout: float) -> dict:
    """What a hook that ended like this says, as ask() returns it. Pure. Raises HookFailed."""
    if ended.code is None:
        raise HookFailed("timed out after %g s" % round(timeout, 1))
    stderr = clean_terminal(ended.stderr.decode("utf-8", "replace")).strip()
    if ended.code == 2:
        return {"denied": True, "reason": _cut(stderr, STDERR_REASON_LIMIT) or NO_REASON}
    if ended.code:
        ending = "exit %d" % ended.code if ended.code > 0 else child.ending(ended.code)
        first = one_line(stderr.split("\n", 1)[0], FIRST_LINE_LIMIT)
        raise HookFailed(": ".join(filter(None, (ending, first))))
    if ended.cut:
        raise HookFailed("stdout is longer than 1 MiB")
    text = ended.stdout.decode("utf-8-sig", "replace").strip()
    try:
        value = json_text.read(text) if text else {}
    except ValueError:
        value = None
    if isinstance(value, dict):
        return _read_object(value)
    # What begins like an object was meant to be one: half a denial must not become context for the model.
    if event in TAKES_TEXT and not text.startswith("{"):
        return {"context": clean_terminal(text)}
    raise HookFailed(NO_JSON_OBJECT)


def _read_object(value: dict) -> dict:
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
    answer = {"context": clean_terminal(given.get("context", "")).strip(), "arguments": given.get("input")}
    if given.get("decision") != "deny":
        return answer
    reason = _cut(clean_terminal(given.get("reason", "")).strip(), REASON_LIMIT) or NO_REASON
    return dict(answer, denied=True, reason=reason)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
