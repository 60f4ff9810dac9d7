"""bash: one command line in a shell, in a process group of its own.

Threads of a call: a *pump* moves what the group writes into an Output, and waits for the shell's exit after
that. The turn's thread waits for the pump, the timeout or the cancel. A command that does not end at once
also gets a *waiter*, which blocks until the shell has exited, because children that it left in the background
hold the pipe open. The answer is given when the shell has exited. After that the pump is waited for only a
moment; it goes on in the background, which spares those children a broken pipe and fills their log. Both
threads are daemons.
"""

from __future__ import annotations

import errno
import os
import subprocess
import threading
import time

from mm import events
from mm.secrecy import without_own
from mm.text import one_line, shown_whole
from mm.tools.output import LIMIT, Output
from mm.tools.tool import Action, Result, ToolError
from mm.wire import child, programs

NAME = "bash"
# Bytes of the longest command. Linux takes 128 KiB in one piece, and a hook must get the whole command in a
# variable: `MM_COMMAND=` before it, a NUL after it.
COMMAND_LIMIT = 128 * 1024 - len("MM_COMMAND=") - 1
# Seconds: between TERM and KILL; for the pipe to end after the shell has; between two live views.
GRACE = 2.0
DRAIN = 0.3
LIVE = 0.25
# A command that runs for more seconds than this gets a waiter.
PUMP_ALONE = 0.02

# Nobody can answer a question or leave a pager or an editor.
_ENVIRONMENT = dict(pair.split("=", 1) for pair in (
    "TERM=dumb NO_COLOR=1 PAGER=cat GIT_PAGER=cat MANPAGER=cat LESS=-FRX "
    "GIT_EDITOR=true GIT_SEQUENCE_EDITOR=true EDITOR=true VISUAL=true GIT_TERMINAL_PROMPT=0 "
    "GCM_INTERACTIVE=Never DEBIAN_FRONTEND=noninteractive PIP_NO_INPUT=1 PIP_PROGRESS_BAR=off "
    "TQDM_DISABLE=1 PYTHONUNBUFFERED=1 AGENT=mm"
).split())


def prepare(arguments, context):
    command, timeout = arguments["command"], arguments.get("timeout", context.config.bash_timeout)
    if not command.strip():
        raise ToolError(f"[{NAME}: the command is empty]")
    if "\0" in command:
        raise ToolError(f"[{NAME}: the command holds a NUL character]")
    encoded = command.encode("utf-8")
    if len(encoded) > COMMAND_LIMIT:
        raise _too_long()
    if not context.config.yolo and not shown_whole(command):  # what is allowed must have been seen
        raise ToolError(f"[{NAME}: the command is too long to be shown whole when the user is asked. "
                        "Put it into a script file with write_file, and run that.]")
    if timeout <= 0:
        raise ToolError(f'[{NAME}: "timeout" must be above 0]')
    # Bytes, because a locale that is not UTF-8 does not change what the model wrote.
    argv = [_shell(context), "-c", command if os.name == "nt" else encoded]

    def run(progress):
        return _Run(argv, context, timeout).run(progress)

    return Action(f"{NAME}: {one_line(command)}", run, asks=True, text=command)


def _shell(context):
    try:
        return programs.shell(context.config.bash_shell, context.folder)
    except programs.NoShell as problem:
        raise ToolError(f"[{NAME}: {problem}]") from None


def _too_long():
    return ToolError(f"[{NAME}: the command is too long for the system; write it to a file]")


def _start(argv, folder):
    if not os.path.isdir(folder):
        raise ToolError(f"[{NAME}: the working directory {folder} does not exist]")
    environment = {**without_own(os.environ), **_ENVIRONMENT}
    try:
        return child.start(argv, cwd=folder, env=environment, stderr=subprocess.STDOUT)
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise _too_long() from None
        raise ToolError(f"[{NAME}: cannot start {argv[0]}: {error.strerror or error}]") from None


class _Run:
    """One command, from its start to its Result."""

    def __init__(self, argv, context, timeout):
        self._argv = argv
        self._context = context
        self._longest = context.config.bash_max_timeout
        self._timeout = min(timeout, self._longest)
        self._lowered = timeout > self._longest
        self._output = Output()
        self._child = None
        self._exited = threading.Event()
        self._over = threading.Event()  # it has exited, or written too much
        self._drained = threading.Event()

    def run(self, progress):
        cancel = self._context.cancel
        cancel.check()
        self._child = _start(self._argv, self._context.folder)
        finished = False
        try:
            self._begin(self._pump)
            with cancel.on_cancel(self._child.end):
                stopped = self._watch(cancel, progress)
                cancel.wait(self._drained, DRAIN)
            result = self._result(stopped)
            finished = True
            return result
        finally:
            if not finished:
                self._child.end(GRACE)
            self._output.forget()

    def _begin(self, work):
        threading.Thread(target=work, name=f"bash{work.__name__} {self._child.pid}", daemon=True).start()

    def _wait(self):
        self._child.process.wait()
        self._exited.set()
        self._over.set()

    def _pump(self):
        with self._child.process.stdout as pipe:
            while True:
                data = os.read(pipe.fileno(), 65536)
                if not data:
                    break
                self._output.add(data)
                if self._output.size > LIMIT:
                    self._over.set()
        self._output.close()
        self._drained.set()
        self._wait()

    def _watch(self, cancel, progress):
        """Waits for the end, showing the output; returns why mm ended the command, or None."""
        deadline, shown = time.monotonic() + self._timeout, 0
        if not cancel.wait(self._over, PUMP_ALONE):
            self._begin(self._wait)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return self._stop(cancel, self._timed_out())
            if cancel.wait(self._over, min(left, LIVE)):
                break
            if self._output.size != shown:
                shown = self._output.size
                progress(self._output.latest())
        if self._output.size > LIMIT:
            return self._stop(cancel, f"[stopped: more than {LIMIT >> 20} MB of output]")
        return None

    def _stop(self, cancel, sentence):
        """Ends the group and waits for that; children that ignore TERM hold the pipe until KILL comes."""
        self._child.end(GRACE)
        deadline = time.monotonic() + GRACE + DRAIN
        for event in (self._exited, self._drained):
            cancel.wait(event, max(deadline - time.monotonic(), 0))
        return sentence

    def _timed_out(self):
        start = f"[timed out after {self._timeout:g} s"
        advice = "start it in the background (read the skill bg-jobs).]"
        if self._lowered:
            return f"{start}, the most allowed: the command and its children were killed. Rather {advice}"
        rather = "Rather"
        if self._timeout < self._longest:
            rather = f"Give a longer timeout (at most {self._longest:g}), or"
        return f"{start}: the command and its children were killed. {rather} {advice}"

    def _result(self, stopped):
        shown = self._output.shown(self._context.shown_limit(self._context.config.bash_max_output))
        notes = []
        if stopped:
            notes.append(stopped)
        else:
            code = self._child.process.returncode
            if code or not shown:
                notes.append(_ending(code))
            if not self._drained.is_set():
                notes.append(self._still_running())
            self._child.release()
        output = "\n\n".join(filter(None, (shown, "\n".join(notes))))
        return Result(output, events.FAILED if stopped else events.COMPLETED, prose=not shown)

    def _still_running(self):
        group = self._child.pid
        log = self._output.named("Its output goes to {}")
        return (f"[still running in the background: process group {group}. {log}. "
                f"Stop it with: kill -- -{group}]")


def _ending(code):
    return f"[{child.ending(code)}]" if code else "[no output]"
