"""`--ask`: one prompt to another agent, as `-p` is one to the model. Stdout carries the answer alone, what
the agent does goes to stderr, and nobody is asked: permissions are answered as `yolo` says, forms with an
error."""

from __future__ import annotations

import os
import sys

from mm import log
from mm.cancel import Cancel, Cancelled
from mm.config.entries import Agent
from mm.errors import UserError
from mm.events import REJECT, UNAVAILABLE, FormAnswer
from mm.fronts.lines import Colors
from mm.fronts.once import GOODBYE, NOBODY_TO_ASK, STOPPED, to_its_end
from mm.fronts.typed import with_stdin
from mm.peers import agent
from mm.wire import child, programs

USAGE, FAILED = 2, 1
# What a stop reason that is not `end_turn` comes to: the exit code, and what is said on stderr.
STOPS = {"max_tokens": STOPPED, "max_turn_requests": STOPPED}
STOPPED_BY = "%s stopped: %s"
NO_AGENT = "--ask %s: no agent of that name in the configuration (%s), and no such program"


def answer(config, name: str, question: str, folder: str, color: str) -> int:
    """Asks the agent `name`, one of the configuration's or a command line; returns the exit code.

    Raises UserError when there is no answer, KeyboardInterrupt after a Ctrl-C.
    """
    prompt = with_stdin(question, sys.stdin)
    if not prompt.strip():
        raise UserError("there is no question: give one after the agent or on stdin", USAGE)
    for warning in config.warnings:
        log.line("mm: " + warning)
    name, entry = _entry(config, name, folder)
    asker = agent.Asker(_Front(), "", name, config.yolo, _titles(Colors(sys.stderr, color)))
    cancel, outcomes = Cancel(), []

    def run() -> None:
        try:
            outcomes.append(agent.ask(name, entry, prompt, folder, asker, config, os.environ, cancel))
        except (agent.AgentFailed, Cancelled) as end:
            outcomes.append(end)

    try:
        to_its_end(run, cancel, agent.CANCEL_LIMIT + GOODBYE)
    finally:
        child.end_all()
        log.flush(GOODBYE)
    return _report(name, outcomes)


def _entry(config, name: str, folder: str) -> tuple:
    """(name, entry) of a configured agent, or of a command line."""
    if name in config.agents:
        return name, config.agents[name]
    import shlex

    try:
        argv = shlex.split(name)
    except ValueError as problem:
        raise UserError("--ask %s: %s" % (name, problem), USAGE) from None
    program = os.path.expanduser(argv[0]) if argv else ""
    if not (program and programs.find(program, folder)):
        raise UserError(NO_AGENT % (name, ", ".join(config.agents) or "it names none"), USAGE)
    return os.path.basename(program), Agent(tuple(argv), {}, None, None)


def _titles(colors: Colors):
    def seen(title, tail) -> None:
        if title:
            log.line(title, colors.bold)

    return seen


def _report(name: str, outcomes: list) -> int:
    if not outcomes:
        raise UserError("a bug in mm, its traceback is above")
    outcome = outcomes[0]
    if isinstance(outcome, Cancelled):
        raise KeyboardInterrupt
    said = outcome.last if isinstance(outcome, agent.Answer) else outcome.said
    if said:
        sys.stdout.buffer.write((said + "\n").encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    if not isinstance(outcome, agent.Answer):
        raise UserError(str(outcome))
    if outcome.stop_reason != "end_turn":
        raise UserError(STOPPED_BY % (name, outcome.stop_reason), STOPS.get(outcome.stop_reason, FAILED))
    return 0


class _Front:
    """Nobody to ask."""

    def emit(self, event) -> None:
        pass

    def ask(self, permission, cancel) -> str:
        log.line(NOBODY_TO_ASK % permission.pending.title)
        return REJECT

    def fill_in(self, form, cancel) -> FormAnswer:
        return FormAnswer(UNAVAILABLE)
