"""The model requests of a turn. Each answer is streamed to the front end, kept in the history, and counted.

The stream is watched. An answer that repeats itself, or reasoning that does not end, is cut, and the Answer
says what to try again (engine.second_tries).
"""

from __future__ import annotations

import contextlib
from collections import namedtuple

from mm.cancel import Cancel
from mm.conversation import history
from mm.engine import loops
from mm.engine.second_tries import ONLY_THOUGHT, REPEATED_TEXT, THOUGHT_TOO_LONG, SecondTries
from mm.errors import UserError
from mm.events import AnswerCut, Text, Thought, Waiting, WindowUse
from mm.model import call_arguments, chat

EMPTY_ANSWER = "the model at %s sent an empty answer"
EMPTY_CUT_ANSWER = ("the model at %s was cut before it said anything: the conversation may fill its context "
                    "window")
FULL_WINDOW = "the model at %s said nothing: the conversation fills its context window (%d tokens)"
# If the prompt takes this part of the window, an empty answer is the fault of the window, not of the model.
FULL_PART = 0.95

# A tool call: its identifier ("call_7"), the name as the model wrote it, its arguments, a
# call_arguments.Reading.
Call = namedtuple("Call", "ref name arguments")

# What came of a request: the Calls, the finish reason, and None or the SecondTry that it calls for.
Answer = namedtuple("Answer", "calls finish again")


class EmptyAnswer(UserError):
    """The model said nothing that a turn could go on with."""

    kind = "empty"


class ModelRequests:
    """The requests of one turn. `tries` are the turn's SecondTries."""

    def __init__(self, process, session, server, front, cancel: Cancel, tries: SecondTries):
        self._process, self._session, self._server = process, session, server
        self._front, self._cancel, self._tries = front, cancel, tries
        self._listener = listener(session, front)

    def ask(self) -> Answer:
        """Makes the next request. Raises UserError and Cancelled; the history keeps what was said before."""
        session, prepared, window = self._session, self._session.prepared, self._process.model.window
        messages = history.to_wire(prepared.system, session.messages)
        guess = prepared.meter.guess(session.messages)
        stream = Stream(self._front, self._process.config, self._tries.left(THOUGHT_TOO_LONG), window.size)
        pieces = chat.complete(self._server, messages, prepared.wire_tools, self._cancel, self._process.tap,
                               self._listener, self._process.model.learned)
        try:
            with contextlib.closing(pieces):
                stream.read(pieces)
        finally:
            calls = self._keep(stream)
        if stream.usage:
            prepared.meter.report(session.messages, stream.usage.input, stream.usage.output)
            window.compare(stream.usage.input, guess, self._server)
            count(self._process, session, self._front, stream.usage)
        if stream.again is REPEATED_TEXT and stream.text:
            self._front.emit(AnswerCut(loops.REPEATED_LINE))
        if not (calls or stream.text or stream.again):
            raise self._nothing_said(stream)
        return Answer(calls, stream.finish, stream.again)

    def _keep(self, stream: Stream) -> list:
        """Puts what was said into the history; returns the Calls, which get their identifiers here."""
        calls = [Call(self._process.next_ref(), call.name, call_arguments.read(call.arguments))
                 for call in stream.calls]
        kept = [{"ref": call.ref, "name": call.name, "arguments": call.arguments.text} for call in calls]
        field = self._process.model.learned.reasoning_field
        if stream.text or kept:
            self._session.messages.append(history.assistant_message(stream.text, stream.thought, kept, field))
        elif stream.again:
            self._session.messages.append(history.nothing_said(stream.thought, field))
        return calls

    def _nothing_said(self, stream: Stream) -> EmptyAnswer:
        if stream.fills_window():
            return EmptyAnswer(FULL_WINDOW % (self._server.url, self._process.model.window.size))
        return EmptyAnswer((EMPTY_CUT_ANSWER if stream.finish == "length" else EMPTY_ANSWER)
                           % self._server.url)


def listener(session, front) -> chat.Listener:
    """Takes to the user what there is to say while the server is waited for."""
    return chat.Listener(notice=session.notices.add, waiting=lambda doing,
                         seconds: front.emit(Waiting(doing, seconds)),
                         logged=not getattr(front, "shows_waits", False))


def count(process, session, front, usage) -> None:
    """Adds the counts of a request (chat.Usage) to the session's totals, and shows them."""
    session.count(usage)
    front.emit(WindowUse((usage.input or 0) + (usage.output or 0), process.model.window.size))


class Stream:
    """One answer as it streams in. `again`: None, or the SecondTry for what is wrong with it.

    Only a part of `front` is needed, `emit`, for the pieces of text and reasoning.
    """

    def __init__(self, front, config, limits_thought: bool, window: int):
        self._front, self._window = front, window
        self._texts, self._thoughts = [], []
        self._thought_length, self._most_thought = 0, config.model_max_reasoning if limits_thought else 0
        self._loops = {kind: loops.TextLoops(prose=kind is Text)
                       for kind in (Text, Thought)} if config.loop_enabled else {}
        self.calls, self.usage, self.finish, self.again = [], None, None, None

    @property
    def text(self) -> str:
        """The answer; "" if it is blank."""
        text = "".join(self._texts)
        return text if text.strip() else ""

    @property
    def thought(self) -> str:
        """The reasoning to keep; none if it was cut for its length, because it has led nowhere."""
        return "" if self.again is THOUGHT_TOO_LONG else "".join(self._thoughts)

    def fills_window(self) -> bool:
        """Whether the prompt alone took nearly all of the window, as far as that is known."""
        return bool(self._window and self.usage and (self.usage.input or 0) >= FULL_PART * self._window)

    def read(self, pieces) -> None:
        """Takes the pieces one by one; stops before the end if the answer must be cut."""
        for piece in pieces:
            kind = type(piece)
            if kind is Text or kind is Thought:
                self._front.emit(piece)
                self._take(kind, piece.text)
                if self.again:
                    return
            elif kind is chat.Misread:  # what the user has seen stays seen; the history is right
                self._thoughts += self._texts
                self._texts.clear()
            elif kind is chat.ToolCall:
                self.calls.append(piece)
            elif kind is chat.Usage:
                self.usage = piece
            elif kind is chat.Finish:
                self.finish = piece.reason
        if self.thought and not (self.text or self.calls or self.finish == "length" or self.fills_window()):
            self.again = ONLY_THOUGHT

    def _take(self, kind, text: str) -> None:
        kept = self._texts if kind is Text else self._thoughts
        kept.append(text)
        repeated = self._loops[kind].feed(text) if self._loops else None
        if repeated:
            kept[:] = ["".join(kept)[:-repeated]]
            self.again = REPEATED_TEXT
        elif kind is Thought and self._most_thought:
            self._thought_length += len(text)
            if self._thought_length > self._most_thought:
                self.again = THOUGHT_TOO_LONG
