"""Groups of processes on Windows: one job object each, which ends its processes when mm's handle closes, however mm ends.

UNTESTED: nobody has run this. Where ctypes or the job is missing, `taskkill /T` ends the tree of a program, and what mm
leaves behind when it is killed stays.
"""

from __future__ import annotations

import os
import signal as signals
import subprocess

_CREATE_NEW_PROCESS_GROUP = 0x00000200
_CREATE_NO_WINDOW = 0x08000000
_BASIC_ACCOUNTING, _EXTENDED_LIMITS = 1, 9  # JOBOBJECTINFOCLASS
_KILL_ON_JOB_CLOSE = 0x2000


class Windows:
    """See system.py."""

    options = {"creationflags": _CREATE_NEW_PROCESS_GROUP | _CREATE_NO_WINDOW}

    def __init__(self):
        self._processes = {}
        self._jobs = {}

    def guard(self) -> None:
        """Each job guards itself."""

    def popen(self, argv, stdin, **more) -> subprocess.Popen:
        """No gate: the moment between the start and the job remains."""
        return subprocess.Popen(argv, stdin=stdin, **more)

    def open_gate(self, process: subprocess.Popen, stdin) -> None:
        """Nothing to open."""

    def adopt(self, process: subprocess.Popen) -> None:
        self._processes[process.pid] = process
        job = _new_job(process)
        if job is not None:
            self._jobs[process.pid] = job

    def signal(self, pid: int, signal: str, reaped: bool) -> bool:
        job, process = self._jobs.get(pid), self._processes[pid]
        if signal == "KILL":
            return _kill(job, pid)
        there = process.poll() is None if job is None else _count(job) > 0
        if signal == "TERM" and there:
            try:
                os.kill(pid, signals.CTRL_BREAK_EVENT)
            except OSError:
                pass  # no console in common: the KILL will do
        return there

    def release(self, pid: int) -> None:
        job = self._jobs.get(pid)
        if job is not None:
            _limit(job, 0)

    def forget(self, pid: int) -> None:
        self._processes.pop(pid, None)
        job = self._jobs.pop(pid, None)
        if job is not None:
            _kernel().CloseHandle(job)

    def dismiss(self) -> None:
        """Nothing to end."""


def _kernel():
    import ctypes

    kernel = ctypes.WinDLL("kernel32")
    kernel.CreateJobObjectW.restype = ctypes.c_void_p
    for function in (kernel.AssignProcessToJobObject, kernel.SetInformationJobObject, kernel.QueryInformationJobObject,
                     kernel.TerminateJobObject, kernel.CloseHandle):
        function.restype = ctypes.c_int
    return kernel


def _new_job(process: subprocess.Popen):
    """A job with the program in it, as a handle, or None."""
    try:
        import ctypes

        kernel = _kernel()
    except (ImportError, AttributeError, OSError):
        return None
    handle = kernel.CreateJobObjectW(None, None)
    if not handle:
        return None
    job = ctypes.c_void_p(handle)
    _limit(job, _KILL_ON_JOB_CLOSE)
    if not kernel.AssignProcessToJobObject(job, ctypes.c_void_p(int(process._handle))):
        kernel.CloseHandle(job)
        return None
    return job


def _limit(job, flags: int) -> None:
    """Sets JOBOBJECT_EXTENDED_LIMIT_INFORMATION.BasicLimitInformation.LimitFlags, all else zero."""
    import ctypes

    size = 144 if ctypes.sizeof(ctypes.c_void_p) == 8 else 112
    information = ctypes.create_string_buffer(size)
    information[16:20] = flags.to_bytes(4, "little")  # behind two 64-bit time limits
    _kernel().SetInformationJobObject(job, _EXTENDED_LIMITS, information, size)


def _count(job) -> int:
    """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.ActiveProcesses."""
    import ctypes

    information = ctypes.create_string_buffer(48)
    if not _kernel().QueryInformationJobObject(job, _BASIC_ACCOUNTING, information, 48, None):
        return 0
    return int.from_bytes(information[40:44], "little")  # behind four 64-bit times and two counts


def _kill(job, pid: int) -> bool:
    if job is not None:
        return bool(_kernel().TerminateJobObject(job, 1))
    done = subprocess.run([_taskkill(), "/F", "/T", "/PID", str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
    return done.returncode == 0


def _taskkill():
    """Its path: by its name alone Windows would start one in the current folder."""
    return os.path.join(os.environ.get("SystemRoot", r"C:\Windows"), "System32", "taskkill.exe")
