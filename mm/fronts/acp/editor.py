"""The editor as a front end of the engine (mm.events): events become updates, questions become requests."""

from __future__ import annotations

import time

from mm.events import REJECT, UNAVAILABLE, FormAnswer, Permission, Text, Thought, Waiting
from mm.fronts.acp import updates
from mm.model import waits
from mm.text import Cleaner
from mm.wire.messages import RemoteError
from mm.wire.peer import Closed

# The seconds after which a wait is shown, and shown again: as a thought, not as a part of the answer.
WAIT_SHOWN, WAIT_SHOWN_AGAIN = 10, 30


class Editor:
    """The front end for one prompt of an OpenSession. It cancels the prompt if the client is gone."""

    def __init__(self, open_session, cancel, clock=time.monotonic):
        self._open_session, self._cancel, self._clock = open_session, cancel, clock
        self._shows_thoughts = open_session.process.config.acp_thoughts
        self._chunk_line = updates.ChunkLine(open_session.id)
        self._streaming, self._cleaner = Text, Cleaner()
        self._wait_shown = None  # when, by the clock

    def emit(self, event) -> None:
        kind = type(event)
        try:
            if kind is Text or kind is Thought:
                if kind is not self._streaming:
                    self._end_stream()
                    self._streaming = kind
                self._stream(self._cleaner.feed(event.text))
            elif kind is Waiting:
                self._wait(event)
            else:
                self._end_stream()
                self._open_session.update(updates.update(event))
        except Closed:
            self._cancel.cancel()  # nobody will read the answer

    def _stream(self, text: str) -> None:
        """Sends a clean piece of the answer or of the reasoning."""
        if not text:
            return
        if self._streaming is Text:
            for piece in updates.pieces(text):
                self._open_session.peer.send_encoded(self._chunk_line.encode(piece))
        elif self._shows_thoughts:
            for piece in updates.pieces(text):
                self._open_session.update(updates.update(Thought(piece)))

    def _end_stream(self) -> None:
        self._stream(self._cleaner.rest())

    def _wait(self, event: Waiting) -> None:
        """Comes from a thread of its own, while nothing else of the turn is sent."""
        now = self._clock()
        again = self._wait_shown is not None and now - self._wait_shown < WAIT_SHOWN_AGAIN
        if self._shows_thoughts and event.seconds >= WAIT_SHOWN and not again:
            self._wait_shown = now
            self._open_session.update(updates.update(Thought(waits.SHOWN % event + "\n\n")))

    def ask(self, permission: Permission, cancel) -> str:
        try:
            params = updates.permission_request(self._open_session.id, permission)
            result = self._open_session.peer.request("session/request_permission", params, cancel)
            return updates.chosen_option(result)
        except (RemoteError, Closed):
            return REJECT

    def fill_in(self, form, cancel) -> FormAnswer:
        from mm.fronts.acp import forms

        session = self._open_session
        try:
            return forms.ask(session.id, form, session.supports_forms, session.peer.request, cancel)
        except (RemoteError, Closed):
            return FormAnswer(UNAVAILABLE)
