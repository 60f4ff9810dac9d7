"""The wall between mm and the operating system, for groups of processes: `system` is one of two objects with

    options                       what Popen needs so that the program leads a group of its own
    guard()                       makes sure that there is a guardian, before a program is started
    popen(argv, stdin, **more)    starts a program; one with a PIPE for stdin does nothing until open_gate()
    adopt(process)                a program was started: its group is on the guardian's list
    open_gate(process, stdin)     lets it begin
    signal(pid, signal, reaped)   sends TERMINATE, KILL or PROBE to the group; returns whether there was one.
                                  `reaped` says that its leader is gone
    forget(pid)                   takes the group off the guardian's list
    dismiss()                     ends the guardian if its list is empty

child.py calls all but guard() and dismiss() under its lock.
"""

from __future__ import annotations

import os

TERMINATE, KILL, PROBE = "TERM", "KILL", "PROBE"

if os.name == "nt":
    from mm.wire.windows import Windows

    system = Windows()
else:
    from mm.wire.posix import Posix

    system = Posix()
