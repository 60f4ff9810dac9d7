"""The gate: asks the user before a tool runs, and remembers the answers that are meant to last.

A grant is a tool's name, for the rest of the session. There are no command patterns: nothing to parse, nothing to bypass.
"""

from __future__ import annotations

from mm.cancel import Cancel
from mm.events import ALLOW, ALLOW_ALWAYS, NEVER, Permission
from mm.tools.tool import ALWAYS

ASK_THE_USER = "[stop and ask the user what they want]"

# After so many refusals in a row the model is told to stop and ask.
REJECTIONS_BEFORE_ADVICE = 2


class Gate:
    """The remembered answers of one session."""

    def __init__(self, yolo: bool):
        self._yolo = yolo
        self._always = {}

    def permits(self, permission: Permission, asks: bool, front, cancel: Cancel) -> bool:
        """Whether the call may run. `asks`: whether it needs a yes when yolo is off, ALWAYS: also when it is on. Raises Cancelled.

        Only a known allow is a yes; `never` also covers the calls of that tool that would not have asked.
        """
        name = permission.pending.name
        remembered = self._always.get(name)
        if remembered:
            return remembered == ALLOW_ALWAYS
        if not asks or self._yolo and asks != ALWAYS:
            return True
        answer = front.ask(permission, cancel)
        cancel.check()
        if answer in (ALLOW_ALWAYS, NEVER):
            self._always[name] = answer
        return answer in (ALLOW, ALLOW_ALWAYS)


def rejection(name: str, rejections_in_a_row: int) -> str:
    """What the model reads instead of a result; the same for a `reject` and a `never`, so that it cannot argue."""
    text = "[%s rejected by the user]" % ("command" if name == "bash" else name)
    if rejections_in_a_row >= REJECTIONS_BEFORE_ADVICE:
        text += "\n" + ASK_THE_USER
    return text
