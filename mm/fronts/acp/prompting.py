"""One `session/prompt`: from its blocks to its one answer. Runs in the prompt's own thread."""

from __future__ import annotations

from mm import log
from mm.cancel import Cancelled
from mm.engine.turn import CANCELLED, END_TURN, run_turn
from mm.events import WindowUse
from mm.fronts.acp import attachments, commands, updates
from mm.fronts.acp.editor import Editor
from mm.text import literal
from mm.wire.messages import INTERNAL_ERROR
from mm.wire.peer import Closed

TURN_DONE = "[acp] turn done: %d command(s) · %d file op(s) · %d skill(s)"
BUG = "a bug in mm, its traceback is in the log"
SIGN = "⚠️"
NOTHING_TO_SAY = "The prompt holds nothing that mm can read: it takes text and links to files."


def answer(open_session, request, blocks: list, ticket) -> None:
    """Answers the prompt `request` of the OpenSession, exactly once.

    Waits with `ticket` for its turn in the process. The answer goes out before the next turn can begin.
    """
    try:
        open_session.announce()
        with ticket.turn(request.cancel):
            _answer_in_turn(open_session, request, blocks)
    except Cancelled:
        request.answer(_result(open_session.session, CANCELLED))
    except Closed:
        pass
    except Exception:
        log.traceback()
        fail(request, BUG)


def _answer_in_turn(open_session, request, blocks: list) -> None:
    session, process, cancel = open_session.session, open_session.process, request.cancel
    prompt = _flattened(session, blocks)
    front = Editor(open_session, cancel)
    stop_reason, error = END_TURN, None
    command = commands.named(prompt.text)
    if not prompt.text.strip():
        open_session.update(updates.chunk(NOTHING_TO_SAY))
    elif command:
        stop_reason = _run_command(open_session, command, front, cancel)
    else:
        open_session.warn()
        text = commands.with_skills(prompt.text, session.skills())
        outcome = run_turn(process, session, text, front, cancel)
        stop_reason, error = outcome.stop_reason, outcome.error
        log.line(TURN_DONE % (outcome.commands, outcome.file_operations, outcome.skills))
        if not error and stop_reason != CANCELLED:
            _tell_below(open_session, prompt.left_out)
    front.emit(WindowUse(session.tokens(), process.model.window.size))
    if error:
        return fail(request, str(error))
    request.answer(_result(session, stop_reason))


def _tell_below(open_session, left_out) -> None:
    """Shows below the answer what the user would miss in the log. It does not go into the history.

    `left_out` is about this prompt; the session's notices are shown once a session.
    """
    session = open_session.session
    for line in open_session.process.model.window.news():
        session.notices.add(line)
    lines = ([left_out] if left_out else []) + session.notices.take()
    if lines:
        open_session.update(updates.chunk("".join("\n\n" + _signed(literal(line)) for line in lines)))


def _signed(line: str) -> str:
    return line if line.startswith(SIGN) else "%s %s" % (SIGN, line)


def _run_command(open_session, command: str, front, cancel) -> str:
    """Executes a slash command and shows its line; returns the stop reason."""
    try:
        line = commands.run(command, open_session.process, open_session.session, front, cancel)
    except Cancelled:
        return CANCELLED
    open_session.update(updates.chunk(line))
    return END_TURN


def _flattened(session, blocks: list):
    """The prompt as an attachments.Flattened. Attached paths and ignored blocks are logged."""
    prompt = attachments.flatten(blocks, session.cwd)
    for path in prompt.attached:
        log.line("[acp] session %s: attached %s" % (session.id, path))
    if prompt.ignored:
        log.line("[acp] session %s: ignored %s block(s)" % (session.id, ", ".join(prompt.ignored)))
    return prompt


def _result(session, stop_reason: str) -> dict:
    """The prompt's answer, with the session's totals once a server has counted anything."""
    result = {"stopReason": stop_reason}
    if session.usage:
        result["usage"] = updates.usage(session.usage)
    return result


def fail(request, line: str) -> None:
    """Answers with an internal error. Some clients show only the message, so it holds the reason."""
    request.fail(INTERNAL_ERROR, "Internal error: " + line, {"error": line})
