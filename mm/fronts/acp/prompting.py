"""One `session/prompt`: from its blocks to its one answer. Runs in the prompt's own thread."""

from __future__ import annotations

from mm import log
from mm.cancel import Cancelled
from mm.engine.turn import CANCELLED, END_TURN, run_turn
from mm.events import REJECT, UNAVAILABLE, FormAnswer, Permission, Text, Thought, Waiting, WindowUse
from mm.fronts.acp import attachments, commands, updates
from mm.text import Cleaner
from mm.wire.peer import INTERNAL_ERROR, Closed, RemoteError

TURN_DONE = "[acp] turn done: %d command(s) · %d file op(s) · %d skill(s)"
BUG = "a bug in mm, its traceback is in the log"
NOTHING_TO_SAY = "The prompt holds nothing that mm can read: it takes text and links to files."


def answer(client, agent, request, blocks: list, ticket) -> None:
    """Answers the prompt `request` exactly once. `client` is the open session on its connection.

    Waits for the process's turn with `ticket`; the answer goes out before the next turn may begin.
    """
    try:
        client.announce()
        with ticket.turn(request.cancel):
            _answer_in_turn(client, agent, request, blocks)
    except Cancelled:
        request.answer(_result(client.session, CANCELLED))
    except Closed:
        pass
    except Exception:
        log.traceback()
        fail(request, BUG)


def _answer_in_turn(client, agent, request, blocks: list) -> None:
    session, cancel = client.session, request.cancel
    text = _flatten(session, blocks)
    front = _Front(client, agent.config.acp_thoughts, cancel)
    stop_reason, error = END_TURN, None
    command = commands.named(text)
    if not text.strip():
        client.update(updates.chunk(NOTHING_TO_SAY))
    elif command:
        stop_reason = _run_command(client, command, agent, front, cancel)
    else:
        client.warn()
        outcome = run_turn(agent, session, commands.with_skills(text, session.skills()), front, cancel)
        stop_reason, error = outcome.stop_reason, outcome.error
        log.line(TURN_DONE % (outcome.commands, outcome.file_operations, outcome.skills))
        if not error and stop_reason != CANCELLED:
            _tell_news(client, agent)
    used = session.meter.shown(session.messages) if session.meter else 0
    front.emit(WindowUse(used, agent.window.size))
    if error:
        return fail(request, str(error))
    request.answer(_result(session, stop_reason))


def _tell_news(client, agent) -> None:
    """What has become known of the model's window, below the answer and not in the history: the log is hidden in most editors."""
    for line in agent.window.news():
        client.update(updates.chunk("\n\n" + line))


def _run_command(client, command: str, agent, front, cancel) -> str:
    """Executes a slash command and answers with its line; returns the stop reason."""
    try:
        line = commands.run(command, agent, client.session, front, cancel)
    except Cancelled:
        return CANCELLED
    client.update(updates.chunk(line))
    return END_TURN


def _flatten(session, blocks: list) -> str:
    """The prompt's text; what was attached and what was left out is logged."""
    text, attached, ignored = attachments.flatten(blocks, session.cwd)
    for path in attached:
        log.line("[acp] session %s: attached %s" % (session.id, path))
    if ignored:
        log.line("[acp] session %s: ignored %s block(s)" % (session.id, ", ".join(ignored)))
    return text


def _result(session, stop_reason: str) -> dict:
    """The prompt's answer, with the session's totals once a server has counted anything."""
    result = {"stopReason": stop_reason}
    if session.usage:
        result["usage"] = updates.usage(session.usage)
    return result


def fail(request, line: str) -> None:
    """The contract's failure; the explanation stands in the message too because some clients show nothing else."""
    request.fail(INTERNAL_ERROR, "Internal error: " + line, {"error": line})


class _Front:
    """The editor as the engine sees it (mm.events)."""

    def __init__(self, client, thoughts: bool, cancel):
        self._client, self._peer, self._thoughts, self._cancel = client, client.peer, thoughts, cancel
        self._chunk_line = updates.ChunkLine(client.session.id)
        self._streaming, self._cleaner = Text, Cleaner()

    def emit(self, event) -> None:
        kind = type(event)
        try:
            if kind is Text or kind is Thought:
                if kind is not self._streaming:
                    self._end_stream()
                    self._streaming = kind
                self._stream(self._cleaner.feed(event.text))
            elif kind is not Waiting:
                self._end_stream()
                self._client.update(updates.update(event))
        except Closed:
            self._cancel.cancel()  # nobody is left to work for

    def _stream(self, text: str) -> None:
        """Sends a piece of the answer, or of the reasoning, that is clean."""
        if not text:
            return
        if self._streaming is Text:
            for piece in updates.pieces(text):
                self._peer.send_encoded(self._chunk_line.encode(piece))
        elif self._thoughts:
            for piece in updates.pieces(text):
                self._client.update(updates.update(Thought(piece)))

    def _end_stream(self) -> None:
        self._stream(self._cleaner.rest())

    def ask(self, permission: Permission, cancel) -> str:
        try:
            params = updates.permission_request(self._client.session.id, permission)
            return updates.chosen_option(self._peer.request("session/request_permission", params, cancel))
        except (RemoteError, Closed):
            return REJECT

    def fill_in(self, form, cancel) -> FormAnswer:
        from mm.fronts.acp import forms

        try:
            return forms.ask(self._client.session.id, form, self._client.supports_forms, self._peer.request, cancel)
        except (RemoteError, Closed):
            return FormAnswer(UNAVAILABLE)
