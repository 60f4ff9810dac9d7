"""One run of a hook's program: a line for the shell in its own process group, a message on stdin, and what it
wrote.

A run has four daemon threads. One waits until the shell has exited. One writes stdin, because a hook that
does not read must not keep mm waiting. Two read stdout and stderr. The turn's thread waits for the exit, the
timeout or the cancel. What a hook leaves in the background lives on, as with bash; a pipe that it holds is
read on, but mm waits for its end only a moment.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import threading
import time
from collections import namedtuple

from mm.cancel import Cancel
from mm.wire import child
from mm.wire.streams import write_to

# Bytes kept of each stream; the rest is read and dropped.
OUTPUT_LIMIT = 1024 * 1024
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


def run(shell: str, hook, cwd: str, environment: dict, message: bytes, timeout: float,
        cancel: Cancel) -> Ended:
    """Runs a hook (mm.config.entries.Hook) to its end and returns how it ended.

    Raises OSError if it cannot be started, and Cancelled. The group is ended then, and after the timeout.
    """
    cancel.check()
    line, program = locate(hook.command, hook.folder)
    # Bytes: a locale other than UTF-8 does not change what the file says, and a folder's name need not be
    # text.
    argv = [shell, "-c", line if os.name == "nt" else line.encode("utf-8", "surrogateescape")]
    started = child.start(argv, cwd=cwd, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    ended = _Run(started).finish(message, timeout, cancel)
    if ended.code in _NOT_EXECUTED and program:
        _check_program(program)
    return ended


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
    import shlex

    program = os.path.join(folder, word[2:] if word.startswith("./") else word)
    return shlex.quote(program) + command[match.end():], program


def _check_program(path: str) -> None:
    """Raises OSError if the system would not execute `path`."""
    if not os.path.exists(path):
        number = errno.ENOENT
    elif os.path.isdir(path):
        number = errno.EISDIR
    elif not os.access(path, os.X_OK):
        number = errno.EACCES
    else:
        return
    raise OSError(number, os.strerror(number))


class _Run:
    """A started program with its threads."""

    def __init__(self, started: child.Child):
        self._child = started
        self._process = started.process
        self._exited = threading.Event()
        self._stdout, self._stderr = _Stream(self._process.stdout), _Stream(self._process.stderr)

    def finish(self, message: bytes, timeout: float, cancel: Cancel) -> Ended:
        """Waits for the end."""
        by_itself = False
        try:
            for work in (self._wait, lambda: self._feed(message), self._stdout.read, self._stderr.read):
                threading.Thread(target=work, name="hook %d" % self._child.pid, daemon=True).start()
            by_itself = cancel.wait(self._exited, timeout)
            deadline = time.monotonic() + DRAIN + (0 if by_itself else GRACE)
            if not by_itself:
                self._child.end(GRACE)
            for event in (self._exited, self._stdout.ended, self._stderr.ended):
                cancel.wait(event, max(deadline - time.monotonic(), 0))
        except BaseException:
            self._child.end(GRACE)
            raise
        if by_itself:
            self._child.release()
        code = self._process.returncode if by_itself else None
        return Ended(code, self._stdout.data(), self._stderr.data(), self._stdout.cut)

    def _wait(self) -> None:
        self._process.wait()
        self._exited.set()

    def _feed(self, message: bytes) -> None:
        with self._process.stdin as pipe:
            try:
                write_to(pipe.fileno())(message)
            except OSError:
                pass  # it does not read


class _Stream:
    """The beginning of what comes out of a pipe. `ended` is set at its end, `cut` if there was more."""

    def __init__(self, pipe):
        self._pipe = pipe
        self._kept = []
        self._room = OUTPUT_LIMIT
        self.cut = False
        self.ended = threading.Event()

    def read(self) -> None:
        with self._pipe as pipe:
            while True:
                data = os.read(pipe.fileno(), 65536)
                if not data:
                    break
                if len(data) > self._room:
                    self.cut = True
                    data = data[:self._room]
                if data:
                    self._room -= len(data)
                    self._kept.append(data)
        self.ended.set()

    def data(self) -> bytes:
        return b"".join(tuple(self._kept))
