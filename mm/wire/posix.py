"""Process groups on POSIX, and the guardian: a few lines of sh that outlive mm if there is work to do.

The guardian reads "+937" and "-937" from a pipe whose other end only mm holds. When that end closes, because
mm ended or was killed, it sends TERM to the groups still on its list, and KILL a second later. It has a
session of its own, so that a signal to mm's group or a closed terminal does not reach it. It ignores the
signals that can be ignored, holds none of mm's streams (a client may wait for them to close), and has neither
mm's working directory nor its environment. If it is killed, the next write fails, and a new guardian gets the
whole list.

A program that mm talks to starts as a shell that waits for a line on its stdin and then becomes the program,
so it does not run before it is on the list. If mm is killed before it has sent the line, the shell reads the
end of its input and exits. A command, whose stdin is the null device, does not wait: that would add a
millisecond to every tool call. If mm is killed in the moment between its start and the arrival of its number
in the pipe, far less than a millisecond on an idle machine, the command lives on. So does a program that
starts a session of its own.
"""

from __future__ import annotations

import os
import signal as signals
import subprocess
import threading

from mm import log

_GUARDIAN = """
trap '' HUP INT QUIT TERM
groups=
while read -r line; do
  case $line in
    +*) groups="$groups ${line#+}" ;;
    -*) rest=
        for group in $groups; do [ "$group" = "${line#-}" ] || rest="$rest $group"; done
        groups=$rest ;;
  esac
done
[ -n "$groups" ] || exit 0
for group in $groups; do kill -s TERM -- "-$group"; done
sleep 1
for group in $groups; do kill -s KILL -- "-$group"; done
"""

# The shell that waits at the gate; the program reads what follows the line.
_GATE = 'read -r line && exec "$@"'

_SIGNALS = {"TERM": signals.SIGTERM, "KILL": signals.SIGKILL, "PROBE": 0}


class Posix:
    """See system.py."""

    options = {"start_new_session": True}

    def __init__(self):
        self._lock = threading.RLock()
        self._groups = set()
        self._guardian = None  # Popen
        self._pipe = None
        self._complained = False

    def guard(self) -> None:
        with self._lock:
            if self._guardian is None:
                self._start_guardian()

    def popen(self, argv, stdin, **more) -> subprocess.Popen:
        if stdin == subprocess.PIPE:
            argv = ["/bin/sh", "-c", _GATE, "sh", *argv]
        return subprocess.Popen(argv, stdin=stdin, **more)

    def open_gate(self, process: subprocess.Popen, stdin) -> None:
        if stdin == subprocess.PIPE:
            try:
                os.write(process.stdin.fileno(), b"\n")
            except OSError:
                pass  # it was ended before it began

    def adopt(self, process: subprocess.Popen) -> None:
        with self._lock:
            self._groups.add(process.pid)
            self._report("+%d\n" % process.pid)

    def forget(self, pid: int) -> None:
        with self._lock:
            self._groups.discard(pid)
            self._report("-%d\n" % pid)

    def signal(self, pid: int, signal: str, reaped: bool) -> bool:
        if reaped and _exists(pid):
            return False  # the number belongs to somebody else by now
        try:
            os.killpg(pid, _SIGNALS[signal])
        except (ProcessLookupError, PermissionError):
            # Not permitted: all of the group run as another user (sudo), or, on macOS, are zombies.
            return False
        return True

    def dismiss(self) -> None:
        with self._lock:
            if self._guardian is None or self._groups:
                return
            guardian = self._drop_guardian()
        try:
            guardian.wait(0.1)
        except subprocess.TimeoutExpired:
            pass

    def _start_guardian(self) -> None:
        theirs, ours = os.pipe()
        try:
            self._guardian = subprocess.Popen(
                ["/bin/sh", "-c", _GUARDIAN, "mm-guardian"], stdin=theirs, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, cwd="/", env={"PATH": "/usr/bin:/bin"}, close_fds=True,
                start_new_session=True)
        except OSError as error:
            os.close(ours)
            if not self._complained:
                log.line("mm: no guardian, programs may outlive a killed mm: %s" % error)
            self._complained = True
            return
        finally:
            os.close(theirs)
        os.set_blocking(ours, False)  # a guardian that was stopped must not stop mm
        self._pipe = ours

    def _drop_guardian(self) -> subprocess.Popen:
        os.close(self._pipe)
        guardian, self._guardian, self._pipe = self._guardian, None, None
        return guardian

    def _report(self, *lines: str) -> None:
        """Writes to the guardian; if it is gone, writes the whole list to a new one."""
        if self._write(*lines):
            return
        self._drop_guardian().poll()
        self._start_guardian()
        if not self._write(*["+%d\n" % pid for pid in self._groups]):
            self._drop_guardian().poll()

    def _write(self, *lines: str) -> bool:
        if self._guardian is None:
            return True
        try:
            os.write(self._pipe, "".join(lines).encode("ascii"))
        except OSError:
            return False
        return True


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
