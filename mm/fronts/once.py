"""`-p`: one turn, one answer. Stdout carries the answer alone; what happens on the way goes to stderr; nobody is asked.

The turn runs in a thread of its own, so that the main thread can take a Ctrl-C at any moment.
"""

from __future__ import annotations

import os
import stat
import sys
import threading

from mm import log
from mm.cancel import Cancel
from mm.engine.agent import Agent
from mm.engine.turn import CANCELLED, run_turn
from mm.errors import UserError
from mm.events import UNASKED, UNAVAILABLE, FormAnswer, Text, ToolEnded, ToolPending
from mm.fronts.lines import Colors, closing, opening, tool_lines
from mm.skills import catalogue
from mm.text import fence
from mm.wire import child

SILENT_STDIN = 3.0  # seconds to wait for the first byte of a pipe that may have nothing to say
NOBODY_TO_ASK = "mm: %s needs a permission and there is nobody to ask (use --yolo)"
ALWAYS_ASKS = "mm: %s always asks for a permission and there is nobody to ask (mcp.<server>.permissions)"
GOODBYE = 1.0
STOPPED = 3  # the exit code where mm broke off the work


def answer(config, demo: bool, question: str, folder: str, color: str, go_on: bool = False, tap=None) -> int:
    """Answers `question`, with what is piped into stdin behind it, from `folder`; returns the exit code.

    Raises UserError when the turn failed, KeyboardInterrupt after a Ctrl-C.
    """
    prompt = with_stdin(question, sys.stdin)
    if not prompt.strip():
        raise UserError("there is no question: give one behind -p or on stdin", 2)
    for warning in config.warnings:
        log.line("mm: " + warning)
    agent = Agent(config, demo, tap)
    front = _Front(Colors(sys.stderr, color), config.yolo)
    cancel, sessions, outcomes = Cancel(), [], []

    def run() -> None:
        session = agent.new_session(folder)
        sessions.append(session)
        skills = session.skills()
        said = catalogue.mention(catalogue.slash(prompt, skills, ()), skills)
        outcomes.append(run_turn(agent, session, said, front, cancel))
        agent.window.news()  # which a quick answer would be over before: what it says goes to stderr
        for line in session.notices.take():
            log.line("mm: " + line)
        session.end()

    try:
        to_its_end(run, cancel, GOODBYE)
    finally:
        agent.close()
        child.end_all()
        log.flush(GOODBYE)
    return _report(front, outcomes)


def to_its_end(work, cancel: Cancel, goodbye: float) -> None:
    """Runs `work()` in a thread, so that this one can take a Ctrl-C: that cancels, and gives it `goodbye` seconds.

    Raises KeyboardInterrupt then. What `work` raises is a bug.
    """
    over = threading.Event()

    def run() -> None:
        try:
            work()
        except Exception:
            log.traceback()
        over.set()

    threading.Thread(target=run, daemon=True).start()
    try:
        # Not a join: up to Python 3.12 a Ctrl-C makes it believe that the thread has ended.
        while not over.wait(0.1):  # without a limit it would not let a Ctrl-C through on every system
            pass
    except KeyboardInterrupt:
        cancel.cancel()
        over.wait(goodbye)
        raise


def _report(front: _Front, outcomes: list) -> int:
    if not outcomes:
        raise UserError("a bug in mm, its traceback is above")
    outcome = outcomes[0]
    sys.stdout.buffer.write(front.answer().encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    if outcome.error:
        raise outcome.error
    if outcome.stop_reason == CANCELLED:
        return 130
    return STOPPED if outcome.stopped else 0


class _Front:
    """Collects the answer and tells stderr what the tools do."""

    def __init__(self, colors: Colors, yolo: bool):
        self._colors, self._yolo = colors, yolo
        self._answer = []
        self._pending = {}

    def answer(self) -> str:
        """The text behind the last tool call, ended by one newline."""
        text = "".join(self._answer).strip("\n")
        return text + "\n" if text else ""

    def emit(self, event) -> None:
        kind = type(event)
        if kind is Text:
            self._answer.append(event.text)
        elif kind is ToolPending:
            self._answer.clear()
            self._pending[event.ref] = event
            self._title(opening(event))
        elif kind is ToolEnded:
            pending = self._pending.pop(event.ref)
            self._title(closing(pending, event))
            for line in tool_lines(event):
                log.line(line, self._colors.dim)

    def _title(self, line: str) -> None:
        if line:
            log.line(line, self._colors.bold)

    def ask(self, permission, cancel) -> str:
        log.line((ALWAYS_ASKS if self._yolo else NOBODY_TO_ASK) % permission.pending.name)
        return UNASKED

    def fill_in(self, form, cancel) -> FormAnswer:
        return FormAnswer(UNAVAILABLE)


def with_stdin(question: str, stdin) -> str:
    """The question, followed by what was piped into stdin in a fence."""
    given = piped(stdin)
    if not given.strip():
        return question
    return "%s\n\n%s" % (question, fence(given.rstrip("\n"))) if question else given


def piped(stdin) -> str:
    """What is piped in, whole; "" for a terminal, the null device and a pipe that stays silent."""
    try:
        descriptor = stdin.fileno()
        mode = os.fstat(descriptor).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or none at all
        return ""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return ""
    if not stat.S_ISREG(mode) and _stays_silent(descriptor):
        log.line("mm: nothing came on stdin for %d seconds: going on without it" % SILENT_STDIN)
        return ""
    return stdin.buffer.read().decode("utf-8", "replace")


def _stays_silent(descriptor: int) -> bool:
    if os.name == "nt":  # select works on sockets alone there
        return False
    import select

    return not select.select([descriptor], [], [], SILENT_STDIN)[0]
