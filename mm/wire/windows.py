"""Groups of processes on Windows: a program and the tree of what it started, ended by `taskkill`.

UNTESTED: nobody has run this. There is no guardian: what runs when mm itself is killed lives on.
"""

from __future__ import annotations

import os
import subprocess

_CREATE_NEW_PROCESS_GROUP = 0x00000200
_CREATE_NO_WINDOW = 0x08000000


class Windows:
    """See system.py."""

    options = {"creationflags": _CREATE_NEW_PROCESS_GROUP | _CREATE_NO_WINDOW}

    def __init__(self):
        self._processes = {}

    def guard(self) -> None:
        """There is none."""

    def popen(self, argv, stdin, **more) -> subprocess.Popen:
        return subprocess.Popen(argv, stdin=stdin, **more)

    def open_gate(self, process: subprocess.Popen, stdin) -> None:
        """It has begun."""

    def adopt(self, process: subprocess.Popen) -> None:
        self._processes[process.pid] = process

    def signal(self, pid: int, signal: str, reaped: bool) -> bool:
        """TERM is KILL here: a program cannot be asked to end, and its tree is only known while it lives."""
        if reaped or self._processes[pid].poll() is not None:
            return False
        return signal == "PROBE" or _end_tree(pid)

    def forget(self, pid: int) -> None:
        self._processes.pop(pid, None)

    def dismiss(self) -> None:
        """There is no guardian."""


def _end_tree(pid: int) -> bool:
    # By its name alone Windows would start one in the current folder.
    taskkill = os.path.join(os.environ.get("SystemRoot", r"C:\Windows"), "System32", "taskkill.exe")
    done = subprocess.run([taskkill, "/F", "/T", "/PID", str(pid)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0
