"""bash: one command line in a shell, in a process group of its own.

The turn's thread itself reads what a command writes that ends at once. Any other command gets two threads: a
*pump* moves what the group writes into an Output, and a *waiter* blocks until the shell has exited, because
children that it left in the background hold the pipe open. The turn's thread then waits for the waiter, the
timeout or the cancel. The answer is given when the shell has exited. After that the pump is waited for only a
moment; it goes on in the background, which spares those children a broken pipe and fills their log. Both
threads are daemons.
"""

from __future__ import annotations

import errno
import os
import select
import subprocess
import threading
import time

from mm import events
from mm.cancel import Deadline
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
# A command that runs for more seconds than this gets its threads; until then its exit is looked for so often.
AT_ONCE = 0.02
LOOK = 0.00005

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
            with cancel.on_cancel(self._child.end):
                stopped = None if self._ends_at_once() else self._watch(cancel, progress)
                cancel.wait(self._drained, DRAIN)
            result = self._result(stopped)
            finished = True
            return result
        finally:
            if not finished:
                self._child.end(GRACE)
            self._output.forget()

    def _ends_at_once(self):
        """Reads the output for a moment; returns whether it has ended by then, and the shell has exited."""
        if not hasattr(select, "poll"):  # Windows: only a thread can wait for a pipe
            return False
        moment, ready = Deadline(AT_ONCE), select.poll()
        ready.register(self._child.process.stdout, select.POLLIN)
        while not self._drained.is_set():
            if moment.left() <= 0 or not ready.poll(moment.left() * 1000):
                return False
            self._read()
        while self._child.process.poll() is None:  # a process exits a little after its pipe has closed
            if moment.left() <= 0:
                return False
            time.sleep(LOOK)
        return True

    def _read(self):
        """Waits for output and takes it; closes the pipe at its end."""
        data = os.read(self._child.process.stdout.fileno(), 65536)
        if data:
            self._output.add(data)
            return
        self._child.process.stdout.close()
        self._output.close()
        self._drained.set()

    def _pump(self):
        while not self._drained.is_set():
            self._read()
            if self._output.size > LIMIT:
                self._over.set()

    def _wait(self):
        self._child.process.wait()
        self._exited.set()
        self._over.set()

    def _watch(self, cancel, progress):
        """Waits for the end, showing the output; returns why mm ended the command, or None."""
        deadline, shown = time.monotonic() + self._timeout, 0
        for work in (self._pump, self._wait):
            threading.Thread(target=work, name=f"bash{work.__name__} {self._child.pid}", daemon=True).start()
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
