"""One `session/prompt`: from its blocks to its one answer. Runs in the prompt's own thread."""

from __future__ import annotations

from mm import log
from mm.cancel import Cancelled
from mm.engine.turn import CANCELLED, END_TURN, run_turn
from mm.events import REJECT, Permission, Text, Thought
from mm.fronts.acp import attachments, commands, updates
from mm.wire.peer import INTERNAL_ERROR, Closed, RemoteError

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
        request.answer({"stopReason": CANCELLED})
    except Closed:
        pass
    except Exception:
        log.traceback()
        _fail(request, "a bug in mm, its traceback is in the log")


def _answer_in_turn(client, agent, request, blocks: list) -> None:
    session = client.session
    text, attached, ignored = attachments.flatten(blocks, session.cwd)
    for path in attached:
        log.line("[acp] session %s: attached %s" % (session.id, path))
    if ignored:
        log.line("[acp] session %s: ignored %s block(s)" % (session.id, ", ".join(ignored)))
    command = commands.named(text)
    if command or not text.strip():
        client.update(updates.chunk(commands.run(command) if command else NOTHING_TO_SAY))
        return request.answer({"stopReason": END_TURN})
    front = _Front(client, agent.config.acp_thoughts, request.cancel)
    outcome = run_turn(agent, session, text, front, request.cancel)
    log.line("[acp] turn done: %d command(s) · %d file op(s) · %d skill(s)" % (
        outcome.commands, outcome.file_operations, outcome.skills,
    ))
    if outcome.error:
        return _fail(request, str(outcome.error))
    request.answer({"stopReason": outcome.stop_reason})


def _fail(request, line: str) -> None:
    """The contract's failure; the explanation stands in the message too because some clients show nothing else."""
    request.fail(INTERNAL_ERROR, "Internal error: " + line, {"error": line})


class _Front:
    """The editor as the engine sees it (mm.events)."""

    def __init__(self, client, thoughts: bool, cancel):
        self._client, self._peer, self._thoughts, self._cancel = client, client.peer, thoughts, cancel
        self._chunk_line = updates.ChunkLine(client.session.id)

    def emit(self, event) -> None:
        try:
            if type(event) is Text:
                for piece in updates.pieces(event.text):
                    self._peer.send_encoded(self._chunk_line.encode(piece))
            elif type(event) is not Thought or self._thoughts:
                self._client.update(updates.update(event))
        except Closed:
            self._cancel.cancel()  # nobody is left to work for

    def ask(self, permission: Permission, cancel) -> str:
        try:
            params = updates.permission_request(self._client.session.id, permission)
            return updates.chosen_option(self._peer.request("session/request_permission", params, cancel))
        except (RemoteError, Closed):
            return REJECT
