"""One turn: the model and the tools take turns until there is an answer. The page to read first.

    run_turn     a prompt -> an Outcome, with the history in order on every path
    _Turn.go     the loop: make room, ask the model (engine.asking), run what it calls (engine.calls), ask again

Events go to the front end as they happen. Cancelled and UserError pass through every function here and end the turn;
the history keeps what was said and done until then.
"""

from __future__ import annotations

from collections import namedtuple

from mm import log
from mm.cancel import Cancel, Cancelled
from mm.conversation import estimate, history
from mm.engine import loops, verdict as verdicts
from mm.engine.asking import ONLY_THOUGHT, Asking
from mm.engine.calls import CUT, Calls
from mm.errors import UserError
from mm.events import Text

END_TURN, MAX_TOKENS, MAX_TURN_REQUESTS, CANCELLED = "end_turn", "max_tokens", "max_turn_requests", "cancelled"

STEPS_USED_UP = '🛑 stopped after %d steps. Say "go on" to continue.'
MALFORMED_CALLS = "🛑 stopped: %d malformed tool calls in a row. Tell me how to go on."
MALFORMED_LIMIT = 3
CALL_AGAIN = "[the arguments of your last tool call are not valid JSON. Call the tool again with one JSON object.]"
CALL_ANEW = "[the server could not read your last tool call. Call the tool again.]"
NO_ANSWER = "🛑 stopped: the model thought and gave no answer, twice. Say it in other words, or take another model."
# An answer that repeats itself is asked for once more with a note; the second one ends the turn.
REPEATED_LIMIT = 2

# How a turn ended. `error`: the UserError that ended it, or None. `stopped`: whether mm broke off the work (steps, loop,
# window). The rest counts the calls that ran.
Outcome = namedtuple("Outcome", "stop_reason error stopped commands file_operations skills")


def run_turn(agent, session, prompt: str, front, cancel: Cancel) -> Outcome:
    """Runs one turn of `session`. The caller holds the process's turn (engine.queue).

    Never raises Cancelled or UserError: they are in the Outcome. Whatever else is raised is a bug; the history is in
    order even then, and saved.
    """
    turn = _Turn(agent, session, front, cancel)
    stop_reason, error = CANCELLED, None
    try:
        stop_reason = turn.go(prompt)
    except Cancelled:
        pass
    except UserError as problem:
        stop_reason, error = END_TURN, problem
        agent.failed(problem)
    finally:
        turn.leave_in_order()
    if cancel.cancelled:
        stop_reason, error = CANCELLED, None  # whatever the cancel broke on its way is no failure
    calls = turn.calls
    return Outcome(stop_reason, error, turn.stopped, calls.commands, calls.file_operations, calls.skills)


class _BrokenOff(Exception):
    """mm itself ends the turn; the reason has been said."""

    def __init__(self, stop_reason: str):
        super().__init__(stop_reason)
        self.stop_reason = stop_reason


class _Turn:
    """What one turn knows while it runs."""

    def __init__(self, agent, session, front, cancel: Cancel):
        self._agent, self._session, self._front, self._cancel = agent, session, front, cancel
        self.calls = Calls(agent, session, front, cancel)
        self.stopped = False
        self._compacting = None
        self._repeated = self._sent_on = self._unreadable = self._only_thought = 0

    def go(self, prompt: str) -> str:
        """Runs to the end; returns the stop reason."""
        self._session.start_mcp_servers()  # first, because their start takes longest
        server = self._agent.server(self._cancel)
        self._session.open(self._cancel, self._agent.window.size)
        if not self._accepted(prompt):
            return END_TURN
        self._agent.window.look(server)
        asking = Asking(self._agent, self._session, server, self._front, self._cancel)
        try:
            return self._steps(server, asking)
        except _BrokenOff as end:
            return end.stop_reason

    def _steps(self, server, asking: Asking) -> str:
        """The loop: a step is one model call and what it asks for."""
        limit, step = self._agent.config.max_steps, 0
        while True:
            if limit and step == limit:
                self._break_off(STEPS_USED_UP % limit, MAX_TURN_REQUESTS)
            step += 1
            if self._has_outgrown_the_window():
                self._tell(self._compactor(asking).check())
            try:
                answer = asking.ask()
            except UserError as problem:
                if not self._answers_unreadable_call(problem):
                    outcome = self._compactor(asking).overflowed(problem)
                    if outcome is None:
                        raise
                    self._tell(outcome)
                continue
            self._agent.window.look(server, answered=True)
            stop_reason = self._act_on(answer)
            if stop_reason:
                return stop_reason

    def _has_outgrown_the_window(self) -> bool:
        window, session = self._agent.window.size, self._session
        return bool(window) and session.meter.used(session.messages) > estimate.limit(self._agent.config, window)

    def _compactor(self, asking: Asking):
        """The turn's Compactor: made when there is no room left, because most turns never need it."""
        if self._compacting is None:
            from mm.engine.compact import Compactor

            self._compacting = Compactor(self._agent, self._session, self._cancel, asking.count)
        return self._compacting

    def leave_in_order(self) -> None:
        """What holds on every path: no call without a result, no question without any answer, all of it saved."""
        session = self._session
        history.close_calls(session.messages, history.INTERRUPTED)
        history.drop_unanswered(session.messages)
        session.save(self._agent.model_name, self._cancel)

    def _accepted(self, prompt: str) -> bool:
        """Puts the question into the history, unless a hook denies it."""
        verdict = self._session.hooks.run("userPrompt", self._cancel, prompt=prompt)
        if verdict.denied:
            self._front.emit(Text(verdicts.DENIED % verdict.reason))
            return False
        if verdict.context:
            prompt = "%s\n\n%s" % (prompt, verdict.context)
        self._session.messages.append(history.user_message(prompt))
        return True

    def _tell(self, outcome) -> None:
        """Tells what became of a compaction, if there was one; breaks off when there is no room left."""
        if outcome is None:
            return
        if outcome.line:
            log.line("[acp] session %s: %s" % (self._session.id, outcome.line))
        if outcome.stop:
            # Not into the history, and the question goes too: a conversation that is too long must not grow by them.
            self.stopped = True
            self._front.emit(Text(outcome.stop))
            raise _BrokenOff(END_TURN)

    def _act_on(self, answer):
        """Does what the answer asks for; returns the stop reason where the turn ends with it, else None."""
        if answer.cut:
            self._go_on_after(answer.cut)
        elif answer.finish == "length":
            for place, call in answer.calls:
                self.calls.refuse(place, call, CUT)
            return MAX_TOKENS
        elif not answer.calls:
            return None if self._sent_on_by_hook() else END_TURN
        for place, call in answer.calls:
            self.calls.run(place, call)
            self._session.save_if_due(self._agent.model_name, self._cancel)
            if self.calls.malformed == MALFORMED_LIMIT:
                self._break_off(MALFORMED_CALLS % MALFORMED_LIMIT)
            if self.calls.looping():
                log.line(loops.LOG_LINE % self.calls.looping())
                self._break_off(loops.STOPPED % call.name)
        return None

    def _answers_unreadable_call(self, problem: UserError) -> bool:
        """Whether the server failed because it could not read the call that the model wrote, and it is asked again: behind a
        text, which is kept, with a note to the model, else the same once more. A server that speaks of the arguments of a call
        may mean one of the history: it is asked twice, the second time with the note."""
        kind = getattr(problem, "kind", None)
        limit = 1 if kind == "unreadable_call" else 2 if kind == "bad_history_arguments" and problem.status == 500 else 0
        if self._unreadable >= limit:
            return False
        self._unreadable += 1
        messages = self._session.messages
        said = messages[-1]["role"] == "assistant"
        if self._unreadable == 2 and not said:
            messages.append(history.nothing_said())
        if self._unreadable == 2 or said:
            messages.append(history.note(CALL_AGAIN if limit == 2 else CALL_ANEW))
        return True

    def _go_on_after(self, note: str) -> None:
        """The answer was cut off or there was none: once more, with a note that says why. The second time is the end."""
        self._repeated += note == loops.REPEATED_NOTE
        self._only_thought += note == ONLY_THOUGHT
        if self._only_thought == REPEATED_LIMIT:
            self._break_off(NO_ANSWER)
        if self._repeated == REPEATED_LIMIT:
            log.line(loops.LOG_LINE % "the answer")
            self._break_off(loops.STOPPED_TEXT)
        self._session.messages.append(history.note(note))

    def _sent_on_by_hook(self) -> bool:
        """Whether a turnEnd hook has sent the model on, with its reason as a message of the user's."""
        if self._sent_on == verdicts.TURN_END_LIMIT or not self._session.hooks.present("turnEnd"):
            return False
        verdict = self._session.hooks.run("turnEnd", self._cancel, answer=self._session.messages[-1]["content"],
                                          stop_reason=END_TURN)
        if verdict.denied:
            self._sent_on += 1
            self._session.messages.append(history.note(verdict.reason))
        return verdict.denied

    def _break_off(self, line: str, stop_reason: str = END_TURN) -> None:
        """Ends the turn with a line of mm's own, which is part of the answer and of the history. Raises _BrokenOff."""
        self.stopped = True
        history.close_calls(self._session.messages, history.INTERRUPTED)
        self._front.emit(Text(line))
        self._session.messages.append(history.assistant_message(line))
        raise _BrokenOff(stop_reason)
