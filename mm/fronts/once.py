"""`-p`: one turn, one answer, and what happens on the way on stderr.

If stdout is a pipe, it carries the answer alone: what follows the last tool call. In a terminal the answer
streams, and what the tools do is shown between its pieces. Nobody is asked, unless there is a terminal to ask
in.

The turn runs in a thread of its own, so that the main thread can take a Ctrl-C at any moment.
"""

from __future__ import annotations

import os
import sys
import threading

from mm import log
from mm.cancel import Cancel
from mm.engine.process import Process
from mm.engine.turn import CANCELLED, MAX_TOKENS, run_turn
from mm.errors import UserError
from mm.events import UNASKED, UNAVAILABLE, AnswerCut, FormAnswer, Text, ToolPending
from mm.fronts.lines import Colors
from mm.fronts.mentions import attachments, mentioned_paths
from mm.fronts.terminal.commands import last_session, unknown
from mm.fronts.terminal.display import CUT, Display
from mm.fronts.terminal.screen import Screen
from mm.fronts.typed import with_stdin
from mm.skills import catalogue, invocation
from mm.wire import child

NO_QUESTION = "there is no question: give one after -p or on stdin"
NOT_FOR_P = "/%s is not a skill, and -p takes no commands: they belong to the chat (docs/terminal.md)"
NOBODY_TO_ASK = "mm: %s needs a permission and there is nobody to ask (use --yolo)"
ALWAYS_ASKS = "mm: %s always asks for a permission and there is nobody to ask (mcp.<server>.permissions)"
GOODBYE = 1.0
STOPPED = 3  # the exit code where mm broke off the work


def answer(config, demo: bool, question: str, folder: str, color: str, go_on: bool = False, tap=None) -> int:
    """Answers `question`, with what is piped into stdin after it, from `folder`; returns the exit code.

    `go_on`: with the folder's last session. Raises UserError when the turn failed, KeyboardInterrupt after a
    Ctrl-C.
    """
    typed = with_stdin(question, sys.stdin)
    prompt = typed + attachments(mentioned_paths(question, folder))
    if not typed.strip():
        raise UserError(NO_QUESTION, 2)
    if question.startswith("/"):
        _refuse_commands(question, config, folder)
    screen = _screen(color)
    for warning in config.warnings:
        log.line("mm: " + warning)
    process = Process(config, demo, tap, can_ask=bool(tap))  # an editor is what a transcript is played by
    front = _Front(screen, Colors(sys.stderr, color), folder, config.yolo)
    cancel, outcomes = Cancel(), []

    def run() -> None:
        try:
            session = last_session(process, folder) if go_on else process.new_session(folder)
            outcomes.append(_turn(process, session, prompt, front, cancel, tap and (tap, typed)))
        except UserError as problem:
            outcomes.append(problem)

    try:
        with front.waiting():
            to_its_end(run, cancel, GOODBYE)
    except KeyboardInterrupt:
        front.write_answer()  # what was said until then
        raise
    finally:
        process.close()
        child.end_all()
        log.flush(GOODBYE)
    return _report(front, outcomes)


def _screen(color: str) -> Screen:
    """The terminal, if stdout or stderr is one. The log goes there, too, if it would anyway."""
    screen = Screen(sys.stdout if sys.stdout.isatty() else sys.stderr, color)
    if sys.stderr.isatty():
        log.sink = screen.line
    return screen


def _turn(process, session, prompt: str, front, cancel: Cancel, recorded):
    """One turn with all that goes before and after it; returns its Outcome. `recorded`: None, or (a recorder,
    what the user typed)."""
    skills = session.skills()
    said = invocation.with_uses(invocation.without_slash(prompt, skills, ()), skills)
    transcript = None
    if recorded:
        from mm.fronts.transcribed import Transcribed

        tap, typed = recorded
        transcript = Transcribed(front, tap.trace, session, typed, session.config.acp_thoughts)
    outcome = run_turn(process, session, said, transcript or front, cancel)
    if transcript:
        transcript.end(outcome, process.model.window.size)
    process.model.window.news()  # which a quick answer would be over before: what it says goes to stderr
    for line in session.notices.take(logged=False):
        log.line("mm: " + line)
    session.end()
    return outcome


def _refuse_commands(question: str, config, folder: str) -> None:
    """Raises UserError for a command of the chat and for an unknown one."""
    skills = catalogue.find(folder, config, os.environ).skills
    name = unknown(question, [skill.name for skill in skills])
    if name:
        raise UserError(NOT_FOR_P % name, 2)


def to_its_end(work, cancel: Cancel, goodbye: float) -> None:
    """Runs `work()` in a thread, so that this one can take a Ctrl-C: that cancels, and gives it `goodbye`
    seconds.

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
    if isinstance(outcome, UserError):
        raise outcome
    front.write_answer()
    if outcome.error:
        raise outcome.error
    if outcome.stop_reason == CANCELLED:
        return 130
    if outcome.stop_reason == MAX_TOKENS:
        log.line("mm: " + CUT)
        log.flush(GOODBYE)
    return STOPPED if outcome.stopped or outcome.stop_reason == MAX_TOKENS else 0


class _Front:
    """Shows the answer as it streams, or keeps it until it is complete; reports on stderr what the tools do.
    """

    def __init__(self, screen: Screen, colors: Colors, folder: str, yolo: bool):
        self._screen, self._yolo = screen, yolo
        self._streams = sys.stdout.isatty()
        self._answer = []
        self.shows_waits = screen.rewrites
        self._colored = bool(colors.bold)
        self._display = Display(screen, folder, self._tell, diffs=False)

    def _tell(self, line: str, style: str = "") -> None:
        log.line(line, style if self._colored else "")

    def waiting(self):
        """While the turn runs the terminal says what mm waits for."""
        return self._display.waiting()

    def write_answer(self) -> None:
        """The text after the last tool call, ended by one newline, unless it has been shown."""
        text = "".join(self._answer).strip("\n")
        if text and not self._streams:
            sys.stdout.buffer.write((text + "\n").encode("utf-8", "replace"))
            sys.stdout.buffer.flush()

    def emit(self, event) -> None:
        kind = type(event)
        if kind is Text:
            self._answer.append(event.text)
            if not self._streams:
                return
        elif kind is ToolPending or kind is AnswerCut:
            self._answer.clear()
        self._display.emit(event)

    def ask(self, permission, cancel):
        from mm.fronts.terminal import dialogs

        read = dialogs.terminal_reader(self._screen, cancel) if sys.stderr.isatty() else None
        if read:
            return dialogs.permit(permission, self._screen, self._display, read)
        log.line((ALWAYS_ASKS if self._yolo else NOBODY_TO_ASK) % permission.pending.name)
        return UNASKED

    def fill_in(self, form, cancel) -> FormAnswer:
        return FormAnswer(UNAVAILABLE)
