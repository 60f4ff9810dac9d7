"""A turn of -p in the lines that an editor and mm would have exchanged, so that --record makes the same
transcript of both."""

from __future__ import annotations

from mm.events import Thought, Waiting, WindowUse
from mm.fronts.acp import updates
from mm.wire import messages
from mm.wire.framing import encode_line

RECEIVED, SENT = "<", ">"  # by mm, as a recorder's trace() takes them
NEW, PROMPT = 1, 2  # the numbers of the requests


class Transcribed:
    """The front end `front`, whose events `trace(direction, line)` is told, too."""

    def __init__(self, front, trace, session, typed: str, thoughts: bool):
        self._front, self._trace, self._session, self._thoughts = front, trace, session, thoughts
        self.ask, self.fill_in, self.shows_waits = front.ask, front.fill_in, front.shows_waits
        self._say(RECEIVED, messages.call(NEW, "session/new", {"cwd": session.cwd, "mcpServers": []}))
        self._say(SENT, messages.answer(NEW, {"sessionId": session.id}))
        self._update(updates.commands(()))
        prompt = [{"type": "text", "text": typed}]
        self._say(RECEIVED, messages.call(PROMPT, "session/prompt",
                                          {"sessionId": session.id, "prompt": prompt}))

    def emit(self, event) -> None:
        if type(event) is not Waiting and (self._thoughts or type(event) is not Thought):
            self._update(updates.update(event))
        self._front.emit(event)

    def end(self, outcome, window: int) -> None:
        """The turn is over."""
        self._update(updates.update(WindowUse(self._session.tokens(), window)))
        if outcome.error:
            self._say(SENT, messages.failure(PROMPT, -32603, "Internal error: %s" % outcome.error,
                                             {"error": str(outcome.error)}))
            return
        result = {"stopReason": outcome.stop_reason}
        if self._session.usage:
            result["usage"] = updates.usage(self._session.usage)
        self._say(SENT, messages.answer(PROMPT, result))

    def _update(self, body: dict) -> None:
        self._say(SENT, messages.notice("session/update", {"sessionId": self._session.id, "update": body}))

    def _say(self, direction: str, message: dict) -> None:
        self._trace(direction, encode_line(message))
