"""One conversation with the user: where it works, what was said, what was granted."""

from __future__ import annotations

import os
import time

from mm.engine.gate import Gate


def new_id() -> str:
    """A time-sortable session id, `20260916-101530-4f2a9c1e`."""
    return time.strftime("%Y%m%d-%H%M%S-") + os.urandom(4).hex()


class Session:
    """The state of one conversation.

    `messages` is the history (conversation.history); the turn that runs owns it, turns never run together. The system
    prompt and the tool list are made by the first turn and stay the same, byte for byte.
    """

    def __init__(self, session_id: str, cwd: str, yolo: bool):
        self.id = session_id
        self.cwd = cwd
        self.messages = []
        self.gate = Gate(yolo)
        self.system = None
        self.tools = ()
        self.wire_tools = []
        self.workspace = None
