"""One model request: streamed to the front end, kept in the history, counted.

The stream is watched while it runs: a model that repeats itself or thinks without end is cut off, and the turn goes on with
a note to it, once each.
"""

from __future__ import annotations

import contextlib
from collections import namedtuple

from mm.cancel import Cancel
from mm.conversation import history
from mm.engine import loops
from mm.errors import UserError
from mm.events import AnswerCut, Text, Thought, Waiting, WindowUse
from mm.model import chat

EMPTY_ANSWER = "the model at %s sent an empty answer"
EMPTY_CUT_ANSWER = "the model at %s was cut before it said anything: the conversation may fill its context window"
FULL_WINDOW = "the model at %s said nothing: the conversation fills its context window (%d tokens)"
THOUGHT_TOO_LONG = "[you thought for too long: act now with a tool or answer]"
ONLY_THOUGHT = "[you thought and then said nothing: act now with a tool or answer]"
# An empty answer to a prompt that takes this part of the window, or whose counts add up to a window as servers round them, is
# the window's fault and not the model's.
FULL_PART, LEAST_ROUND_WINDOW = 0.95, 1024

# What came of a request. `calls`: (its place in the history, what the model sent) each; `finish`: the finish reason; `cut`:
# None, or the note for the model that says why its answer was cut off.
Answer = namedtuple("Answer", "calls finish cut")


class Asking:
    """The model requests of one turn."""

    def __init__(self, agent, session, server, front, cancel: Cancel):
        self._agent, self._session, self._server = agent, session, server
        self._front, self._cancel = front, cancel
        self._listener = chat.Listener(notice=session.notices.add, waiting=self._wait,
                                       logged=not getattr(front, "shows_waits", False))
        self._longest_thought = agent.config.model_max_reasoning  # 0: no limit, or it was reached once in this turn

    def ask(self) -> Answer:
        """Makes the next request. Raises UserError and Cancelled; what was said before is kept in the history."""
        session = self._session
        messages = history.to_wire(session.system, session.messages)
        stream = _Stream(self._front, self._agent.config.loop_enabled, self._longest_thought)
        guess = session.meter.guess(session.messages)
        pieces = chat.complete(self._server, messages, session.wire_tools, self._cancel, self._agent.tap, self._listener,
                               self._agent.model.learned)
        try:
            with contextlib.closing(pieces):
                stream.read(pieces)
            full = 0 if stream.said_something else self._full_window(stream.usage)
            if stream.thought and not stream.said_something and stream.finish != "length" and not full:
                stream.cut = ONLY_THOUGHT
        finally:
            places = [self._place(call) for call in stream.calls]
            said, field = stream.text if stream.text.strip() else "", self._agent.model.learned.reasoning_field
            if said or places:
                session.messages.append(history.assistant_message(said, stream.thought, places, field))
            elif stream.cut:
                session.messages.append(history.nothing_said(stream.thought, field))
        if stream.usage:
            session.meter.report(session.messages, stream.usage.input, stream.usage.output)
            self._agent.window.compare(stream.usage.input, guess, self._server)
            self.count(stream.usage)
        if stream.cut == loops.REPEATED_NOTE and stream.text.strip():
            self._front.emit(AnswerCut(loops.REPEATED_LINE))
        if stream.cut == THOUGHT_TOO_LONG:
            self._longest_thought = 0
        if full:
            raise _problem(FULL_WINDOW % (self._server.url, full))
        if not stream.said_something:
            raise _problem((EMPTY_CUT_ANSWER if stream.finish == "length" else EMPTY_ANSWER) % self._server.url)
        return Answer(list(zip(places, stream.calls)), stream.finish, stream.cut)

    def _wait(self, doing: str, seconds: float) -> None:
        self._front.emit(Waiting(doing, seconds))

    def count(self, usage) -> None:
        """Takes the server's counts of a request of this session, and tells them."""
        self._session.count(usage)
        self._front.emit(WindowUse((usage.input or 0) + (usage.output or 0), self._agent.window.size))

    def _full_window(self, usage) -> int:
        """The window that a request without an answer has filled, as far as the counts tell; 0 where it has not."""
        if not (usage and usage.input):
            return 0
        window, total = self._agent.window.size, usage.input + (usage.output or 0)
        if window and usage.input >= FULL_PART * window:
            return window
        return total if total >= LEAST_ROUND_WINDOW and total & (total - 1) == 0 else 0

    def _place(self, call) -> dict:
        """The call as the history keeps it, under its number."""
        return {"ref": self._agent.next_ref(), "name": call.name, "arguments": history.valid_arguments(call.arguments)}


class _Stream:
    """One answer as it streams in."""

    def __init__(self, front, watched: bool, longest_thought: int):
        self._front = front
        self._texts, self._thoughts = [], []
        self._thought_length, self._longest_thought = 0, longest_thought
        self._loops = {kind: loops.TextLoops(prose=kind is Text) for kind in (Text, Thought)} if watched else {}
        self.calls, self.usage, self.finish, self.cut = [], None, None, None

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def thought(self) -> str:
        """The reasoning to keep; one that was cut for its length has led nowhere."""
        return "" if self.cut == THOUGHT_TOO_LONG else "".join(self._thoughts)

    @property
    def said_something(self) -> bool:
        """Whether there is anything to go on with: a text, a call, or a note about why it was cut off."""
        return bool(self.calls or self.cut or self.text.strip())

    def read(self, pieces) -> None:
        """Takes the pieces one by one; stops before the end when the answer has to be cut."""
        for piece in pieces:
            kind = type(piece)
            if kind is Text or kind is Thought:
                self._front.emit(piece)
                if self._take(kind, piece.text):
                    return
            elif kind is chat.Misread:  # what the user has seen of it stays; the history knows better
                self._thoughts += self._texts
                self._texts.clear()
            elif kind is chat.ToolCall:
                self.calls.append(piece)
            elif kind is chat.Usage:
                self.usage = piece
            elif kind is chat.Finish:
                self.finish = piece.reason

    def _take(self, kind, text: str) -> bool:
        """Keeps a piece; whether the answer ends here."""
        kept = self._texts if kind is Text else self._thoughts
        kept.append(text)
        watch = self._loops.get(kind)
        repeated = watch.feed(text) if watch else None
        if repeated:
            kept[:] = ["".join(kept)[:-repeated]]
            self.cut = loops.REPEATED_NOTE
        elif kind is Thought and self._longest_thought:
            self._thought_length += len(text)
            if self._thought_length > self._longest_thought:
                self.cut = THOUGHT_TOO_LONG
        return self.cut is not None


def _problem(line: str) -> UserError:
    problem = UserError(line)
    problem.kind = "empty"
    return problem
