"""The gate: asks the user before a tool runs, and remembers the answers that are meant to last.

A grant is for a tool's name and the rest of the session. There are no patterns for commands: nothing to
parse, and nothing to bypass.
"""

from __future__ import annotations

from mm.cancel import Cancel
from mm.events import ALLOW, ALLOW_ALWAYS, NEVER, REJECT, UNASKED, Permission, Rejected
from mm.tools.tool import ALWAYS

ASK_THE_USER = "[stop and ask the user what they want]"
NOBODY_ASKED = "[not run: nobody can be asked]"
INSTEAD = "%s\nThe user says: %s"

# After this many refusals in a row the model is told to stop and ask.
REJECTIONS_BEFORE_ADVICE = 2


class Gate:
    """The remembered answers of one session."""

    def __init__(self, yolo: bool):
        self._yolo = yolo
        self._always = {}

    def answer(self, permission: Permission, asks: bool, front, cancel: Cancel):
        """ALLOW, or the user's answer that is not a yes. Raises Cancelled.

        `asks`: whether the call needs a yes when yolo is off; ALWAYS: also when it is on. Only a known allow
        is a yes. `never` also covers those calls of the tool that would not have asked.
        """
        name = permission.pending.name
        remembered = self._always.get(name)
        if remembered:
            return ALLOW if remembered == ALLOW_ALWAYS else remembered
        if not asks or self._yolo and asks != ALWAYS:
            return ALLOW
        answer = front.ask(permission, cancel)
        cancel.check()
        if answer in (ALLOW_ALWAYS, NEVER):
            self._always[name] = answer
        return ALLOW if answer in (ALLOW, ALLOW_ALWAYS) else answer


def rejection(name: str, rejections_in_a_row: int, answer=REJECT) -> str:
    """What the model reads instead of a result; `reject` and `never` look the same to it."""
    if answer == UNASKED:
        return NOBODY_ASKED
    text = "[%s rejected by the user]" % ("command" if name == "bash" else name)
    if type(answer) is Rejected:
        return INSTEAD % (text, answer.words)
    if rejections_in_a_row >= REJECTIONS_BEFORE_ADVICE:
        text += "\n" + ASK_THE_USER
    return text
