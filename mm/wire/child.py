"""Programs that mm starts, each in a process group of its own that ends with mm.

A group is *listed* from its start until it is known to be gone, has been killed, or is released to live on (what
a finished command left in the background). Only listed groups are signalled, and a signal is sent under the lock
that also guards the list, so no thread can signal a group that another has just released.

Group numbers are process ids, and the system uses them again. It does not do so while any process of the group
exists, not even a zombie. So a group is taken off the list as soon as a signal finds nobody there. If its leader
has been reaped and yet a process has the leader's number, that process is a stranger, and the group is gone.
After the exit of a program its owner calls release() or end(), so that no number stays listed unobserved.

A program that mm talks to starts as a shell that waits for a line on its stdin and then becomes the program, so
it does not run before the guardian knows it. If mm is killed before it has sent the line, the shell exits. A
command, whose stdin is the null device, does not wait: that would add a millisecond to every tool call. It lives
on if mm is killed in the moment, far below a millisecond, before the guardian knows it. So does a program that
starts a session of its own.

Threads: end() has a daemon thread for each group, until the group is gone or killed; it also reaps the leader.
Any number of threads may wait for a Popen. All functions may be called from any thread.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time

from mm.wire import programs
from mm.wire.guardian import Guardian

# Seconds that end_all() gives programs to end by themselves, and that it waits for programs being started.
LAST_GRACE = 0.3
START_GRACE = 0.1

_POLL = 0.02
_PROBE, _TERM, _KILL = 0, 15, 9
# CREATE_NEW_PROCESS_GROUP and CREATE_NO_WINDOW.
_OPTIONS = {"creationflags": 0x08000200} if os.name == "nt" else {"start_new_session": True}
# The shell that waits; the program reads what follows the line.
_GATE = ("/bin/sh", "-c", 'read -r line && exec "$@"', "sh")

_lock = threading.RLock()
_listed = {}  # group number -> Child
_guardian = Guardian()
_starting = 0
_started = threading.Condition(_lock)


def start(argv, cwd=None, env=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
          stderr=subprocess.DEVNULL) -> Child:
    """Starts a program in a session and group of its own, listed with the guardian. Raises OSError, as Popen.

    mm.wire.programs finds it, for a session in `cwd`. Its PATH has no entries that depend on the current
    folder, and it inherits only the three descriptors given. `stdin` is subprocess.DEVNULL or PIPE; `stderr`
    may be STDOUT.
    """
    global _starting
    env = dict(os.environ if env is None else env)
    argv = [programs.locate(argv[0], cwd or os.getcwd(), env), *argv[1:]]
    programs.keep_outside_of_projects(env)
    waits = stdin == subprocess.PIPE and os.name != "nt"
    with _lock:
        _starting += 1
        if os.name != "nt":
            _guardian.start()
    try:
        process = subprocess.Popen([*_GATE, *argv] if waits else argv, stdin=stdin, cwd=cwd, env=env,
                                   stdout=stdout, stderr=stderr, **_OPTIONS)
        child = Child(process)
        if waits:
            try:
                os.write(process.stdin.fileno(), b"\n")
            except OSError:
                pass  # it was ended before it began
        return child
    finally:
        with _lock:
            _starting -= 1
            _started.notify_all()


def listed() -> set:
    """The numbers of the groups that end with mm."""
    with _lock:
        return set(_listed)


def end_all() -> None:
    """At exit: ends every listed group, by KILL if TERM is ignored. Takes less than half a second."""
    with _lock:
        _started.wait_for(lambda: not _starting, START_GRACE)
        children = list(_listed.values())
    for child in children:
        child.terminate()
    deadline = time.monotonic() + LAST_GRACE
    while time.monotonic() < deadline and any([child.alive() for child in children]):
        time.sleep(_POLL)
    for child in children:
        child.kill()
    with _lock:
        if not _listed:
            _guardian.dismiss()


def ending(code: int) -> str:
    """How a program ended: `exit code 3`, `killed by signal 9 (SIGKILL)`."""
    if code >= 0:
        return "exit code %d" % code
    import signal

    try:
        return "killed by signal %d (%s)" % (-code, signal.Signals(-code).name)
    except ValueError:
        return "killed by signal %d" % -code


class Child:
    """A program and its group. `process` is the Popen, `pid` its number and the group's.

    Every method may be called at any time and any number of times; on a group that is gone or released it does
    nothing.
    """

    def __init__(self, process: subprocess.Popen):
        self.process = process
        self.pid = process.pid
        self._ending = False
        with _lock:
            _listed[self.pid] = self
            _guardian.tell("+%d" % self.pid, _listed)

    def alive(self) -> bool:
        """Whether anything of the group is left, as far as mm may still touch it. Reaps the leader."""
        self.process.poll()
        return self._signal(_PROBE)

    def terminate(self) -> None:
        """Asks the group to end (TERM)."""
        self._signal(_TERM)

    def kill(self) -> None:
        """Ends the group (KILL)."""
        with _lock:
            if self._signal(_KILL):
                self.release()

    def release(self) -> None:
        """Takes the group off the list: it lives on, also after mm."""
        with _lock:
            if _listed.get(self.pid) is self:
                del _listed[self.pid]
                _guardian.tell("-%d" % self.pid, _listed)

    def end(self, grace: float = 2.0) -> None:
        """TERM now, KILL after `grace` seconds if anything of the group is left; returns at once."""
        with _lock:
            if self._ending:
                return
            self._ending = True
            if not self._signal(_TERM):
                return
        threading.Thread(target=self._finish, args=(grace,), name="end of %d" % self.pid, daemon=True).start()

    def _finish(self, grace: float) -> None:
        deadline = time.monotonic() + grace
        while self.alive() and time.monotonic() < deadline:
            time.sleep(_POLL)
        self.kill()
        try:
            self.process.wait(grace)
        except subprocess.TimeoutExpired:
            pass  # it is stuck in the kernel

    def _signal(self, signal: int) -> bool:
        """Signals the group and returns whether it was there. If not, takes it off the list."""
        with _lock:
            if _listed.get(self.pid) is not self:
                return False
            if _send(self.process, self.pid, signal):
                return True
            self.release()
            return False


def _send(process, pid, signal) -> bool:
    """Signals the group of a program; returns whether it was there."""
    if os.name == "nt":
        from mm.wire import windows

        return windows.send(process, signal)
    try:
        if process.returncode is not None:
            os.kill(pid, _PROBE)
            return False  # the number belongs to another process by now
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    try:
        os.killpg(pid, signal)
    except (ProcessLookupError, PermissionError):
        # Not permitted: all of the group run as another user (sudo), or, on macOS, are zombies.
        return False
    return True
