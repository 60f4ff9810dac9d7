"""Signals to a program and to what it started, on Windows. UNTESTED: nobody has run this."""

from __future__ import annotations

import os
import subprocess


def send(process: subprocess.Popen, signal: int) -> bool:
    """As child._send(). All but 0 kill: a program cannot be asked, and its tree is known only while it lives."""
    if process.poll() is not None:
        return False
    if signal:
        # By its name alone Windows would start one in the current folder.
        taskkill = os.path.join(os.environ.get("SystemRoot", r"C:\Windows"), "System32", "taskkill.exe")
        subprocess.run([taskkill, "/F", "/T", "/PID", str(process.pid)], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return True
