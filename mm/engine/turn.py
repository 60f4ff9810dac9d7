"""One turn: the model and the tools take turns until there is an answer. The page to read first.

    run_turn        a prompt -> an Outcome, with the history in order on every path
    _Turn._steps    the loop: make room, ask the model (engine.request), run its calls (engine.calls)

What goes wrong and is tried again is in the table of engine.second_tries. Events go to the front end as they
happen. Cancelled and UserError pass through every function here and end the turn; the history keeps what was
said and done until then.
"""

from __future__ import annotations

from collections import namedtuple
from itertools import count

from mm import log
from mm.cancel import Cancel, Cancelled
from mm.conversation import estimate, history
from mm.engine import hooks, loops, request, second_tries
from mm.engine.calls import CUT, Calls
from mm.engine.second_tries import SecondTries
from mm.errors import UserError
from mm.events import Text

END_TURN, CANCELLED = "end_turn", "cancelled"
MAX_TOKENS, MAX_TURN_REQUESTS = "max_tokens", "max_turn_requests"

STEPS_USED_UP = '🛑 stopped after %d steps. Say "go on" to continue.'

# How a turn ended. `error`: the UserError that ended it, or None. `stopped`: whether mm broke off the work
# (steps, loop, window). The rest counts the calls that ran.
Outcome = namedtuple("Outcome", "stop_reason error stopped commands file_operations skills")


def run_turn(process, session, prompt: str, front, cancel: Cancel) -> Outcome:
    """Runs one turn of `session`. The caller holds the process's turn (engine.queue).

    Never raises Cancelled or UserError: they are in the Outcome. Whatever else is raised is a bug; the
    history is in order even then, and saved.
    """
    turn = _Turn(process, session, front, cancel)
    stop_reason, error = CANCELLED, None
    try:
        stop_reason = turn.go(prompt)
    except Cancelled:
        pass
    except _BrokenOff as end:
        stop_reason = end.stop_reason
    except UserError as problem:
        stop_reason, error = END_TURN, problem
        process.model.failed(problem)
    finally:
        turn.leave_in_order()
    if cancel.cancelled:
        stop_reason, error = CANCELLED, None  # whatever the cancel broke on its way is not a failure
    calls = turn.calls
    return Outcome(stop_reason, error, stopped=turn.stopped, commands=calls.commands,
                   file_operations=calls.file_operations, skills=calls.skills)


class _BrokenOff(Exception):
    """mm itself ends the turn; the reason has been said."""

    def __init__(self, stop_reason: str):
        super().__init__(stop_reason)
        self.stop_reason = stop_reason


class _Turn:
    """What one turn knows while it runs."""

    def __init__(self, process, session, front, cancel: Cancel):
        self._process, self._session, self._front, self._cancel = process, session, front, cancel
        self._tries = SecondTries()
        self.calls = Calls(process, session, front, cancel, self._tries)
        self.stopped = False
        self._server = self._requests = self._compacting = None

    def go(self, prompt: str) -> str:
        """Runs to the end; returns the stop reason."""
        self._session.start_mcp_servers()  # first, because their start takes longest
        self._server = self._process.model.server(self._cancel)
        self._session.prepare(self._cancel, self._process.model.window.size)
        if not self._accepted(prompt):
            return END_TURN
        self._process.model.window.look(self._server)
        self._requests = request.ModelRequests(
            self._process, self._session, self._server, self._front, self._cancel, self._tries)
        return self._steps()

    def _steps(self) -> str:
        """The loop: a step is one model request and the calls that it answers with."""
        for _ in self._allowed_steps():
            self._make_room()
            answer = self._ask()
            if answer is None:  # once more
                continue
            if answer.finish == "length":
                return self._refuse(answer.calls)
            if not answer.calls and not self._sent_on_by_hook():
                return END_TURN
            for call in answer.calls:
                self._run(call)

    def _allowed_steps(self):
        limit = self._process.config.max_steps
        yield from range(limit) if limit else count()
        self._break_off(STEPS_USED_UP % limit, MAX_TURN_REQUESTS)

    def _make_room(self) -> None:
        """Shortens the history if it has outgrown its part of the window."""
        window, session = self._process.model.window.size, self._session
        used = session.prepared.meter.used(session.messages)
        if window and used > estimate.limit(self._process.config, window):
            self._report(self._compactor().check())

    def _ask(self):
        """The model's answer (request.Answer); None if it is to be asked once more."""
        try:
            answer = self._requests.ask()
        except UserError as problem:
            if not (self._asks_for_call_again(problem) or self._has_made_room_after(problem)):
                raise
            return None
        self._process.model.window.look(self._server, answered=True)
        if not answer.again:
            return answer
        if not self._tries.take(answer.again):
            if answer.again is second_tries.REPEATED_TEXT:
                log.line(loops.LOG_LINE % "the answer")
            self._break_off(answer.again.end)
        self._session.messages.append(history.note(answer.again.note))
        return None

    def _run(self, call) -> None:
        self.calls.run(call)
        self._session.save_if_due(self._process.model.model_name, self._cancel)
        if self.calls.end_line:
            self._break_off(self.calls.end_line)

    def _refuse(self, calls: list) -> str:
        """The answer was cut at the server's length limit: its calls may be, too."""
        for call in calls:
            self.calls.refuse(call, CUT)
        return MAX_TOKENS

    def _asks_for_call_again(self, problem: UserError) -> bool:
        """Whether the server could not read the call that its model wrote, and may be asked again.

        The note is added if the model has said something, which is kept, and with the last try.
        """
        again = second_tries.OF_KIND.get(getattr(problem, "kind", None))
        if again is second_tries.UNREADABLE_ARGUMENTS and problem.status != 500:
            again = None  # the server speaks of the history
        if again is None or not self._tries.take(again):
            return False
        messages = self._session.messages
        said = messages[-1]["role"] == "assistant"
        if said or self._tries.is_last(again):
            messages += ([] if said else [history.nothing_said()]) + [history.note(again.note)]
        return True

    def _has_made_room_after(self, problem: UserError) -> bool:
        """Whether the request was too long for the server, and the history is shorter now."""
        outcome = self._compactor().overflowed(problem)
        self._report(outcome)
        return outcome is not None

    def _compactor(self):
        """The turn's Compactor: made when there is no room left, because most turns never need it."""
        if self._compacting is None:
            from mm.engine.compact import Compactor

            self._compacting = Compactor(self._process, self._session, self._front, self._cancel, self._tries)
        return self._compacting

    def _report(self, outcome) -> None:
        """Says what became of a compaction, if there was one; breaks off if there is no room left."""
        if outcome is None:
            return
        if outcome.line:
            log.line("[acp] session %s: %s" % (self._session.id, outcome.line))
        if outcome.stop:
            # Not into the history, and the question is dropped, too: what is too long must not grow.
            self.stopped = True
            self._front.emit(Text(outcome.stop))
            raise _BrokenOff(END_TURN)

    def _accepted(self, prompt: str) -> bool:
        """Puts the question into the history, unless a hook denies it."""
        verdict = self._session.prepared.hooks.run("userPrompt", self._cancel, prompt=prompt)
        if verdict.denied:
            self._front.emit(Text(hooks.DENIED % verdict.reason))
            return False
        if verdict.context:
            prompt = "%s\n\n%s" % (prompt, verdict.context)
        self._session.messages.append(history.user_message(prompt))
        return True

    def _sent_on_by_hook(self) -> bool:
        """Whether a turnEnd hook has sent the model on; its reason is the note."""
        messages, prepared = self._session.messages, self._session.prepared
        if not (prepared.hooks.present("turnEnd") and self._tries.left(second_tries.SENT_ON_BY_HOOK)):
            return False
        verdict = prepared.hooks.run("turnEnd", self._cancel, answer=messages[-1]["content"],
                                     stop_reason=END_TURN)
        if verdict.denied:
            self._tries.take(second_tries.SENT_ON_BY_HOOK)
            messages.append(history.note(verdict.reason))
        return verdict.denied

    def _break_off(self, line: str, stop_reason: str = END_TURN) -> None:
        """Ends the turn with a line that is part of the answer and of the history. Raises _BrokenOff."""
        self.stopped = True
        history.close_calls(self._session.messages, history.INTERRUPTED)
        self._front.emit(Text(line))
        self._session.messages.append(history.assistant_message(line))
        raise _BrokenOff(stop_reason)

    def leave_in_order(self) -> None:
        """On every path each call has a result, each question has some answer, and all of it is saved."""
        session = self._session
        history.close_calls(session.messages, history.INTERRUPTED)
        history.drop_unanswered(session.messages)
        session.save(self._process.model.model_name, self._cancel)
