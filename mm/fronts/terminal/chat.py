"""The chat: reads a message, has the engine run a turn, shows what it reports, and reads the next one.

The main thread reads the keyboard and takes signals; what a message asks for runs in a thread of its own
(desk). A Ctrl-C cancels it. A second one within two seconds, the end of the input, SIGTERM and the loss of
the terminal end mm and everything that it started.
"""

from __future__ import annotations

import sys

from mm import __version__, log
from mm.cancel import Cancel, Cancelled
from mm.engine.process import Process
from mm.errors import UserError
from mm.fronts.terminal import commands, stopping
from mm.fronts.terminal.desk import Desk, Interrupts, Leave
from mm.fronts.terminal.display import CUT, Display
from mm.fronts.terminal.keyboard import Keyboard, discard_typed
from mm.fronts.terminal.screen import Screen

GOODBYE = 1.0  # seconds that a turn gets to end when the user leaves
CANCELLED = 130
TOUR = "tour"  # what the demo model makes a guided tour of
DIM, RED, YELLOW, BOLD = "2", "31", "33", "1"
RECAP = "%d command(s) · %d file op(s) · %d skill(s)"


def chat(config, demo: bool, folder: str, color: str, question: str = "", go_on: bool = False,
         tap=None) -> int:
    """Chats until the user leaves; returns the exit code. `question`: the first message; `go_on`: with the
    folder's last session.

    Raises UserError if there is no session to go on with.
    """
    screen = Screen(sys.stdout, color)
    if sys.stderr.isatty():
        log.sink = lambda line, style: screen.line(line, style or DIM)
    process = Process(config, demo, tap, can_ask=True)
    talk = Chat(process, screen, commands.last_session(process, folder) if go_on
                else process.new_session(folder))
    return talk.hold(question or (TOUR if demo and not go_on else ""), demo)


class Chat:
    """One user at one terminal. `session` is replaced by /load; `listed` is what /sessions showed last."""

    def __init__(self, process, screen: Screen, session):
        self.process, self.screen, self.session = process, screen, session
        interrupts = Interrupts()
        self.desk = Desk(interrupts, self._interrupted)
        self.keyboard = Keyboard(screen, interrupts, self._completions)
        self._cancel = Cancel()
        self.listed = []

    def hold(self, question: str, demo: bool) -> int:
        """The whole chat; returns the exit code."""
        code = 0
        stopping.heed(self.keyboard.redraw)
        try:
            self._greet(demo)
            if self.session.messages:
                commands.show_end(self)
            if question:
                self.screen.line("> " + question, BOLD)
            self._talk(question)
        except (Leave, KeyboardInterrupt):
            code = CANCELLED
        except SystemExit as stop:  # a signal
            code = stop.code
        finally:
            self._leave()
        return code

    def run(self, work) -> None:
        """Runs `work(front, cancel)` so that a Ctrl-C cancels it. Raises Leave."""
        self._cancel = cancel = Cancel()
        display = Display(self.screen, self.session.cwd)
        front = _Front(self, display)

        def run() -> None:
            try:
                work(front, cancel)
            except Cancelled:
                pass
            except UserError as problem:
                self.fail(problem)

        with display.waiting():
            self.desk.run(run, cancel)

    def show(self, event) -> None:
        """Shows one event that is not part of a turn."""
        display = Display(self.screen, self.session.cwd)
        display.emit(event)
        display.end_text()

    def fail(self, problem) -> None:
        self.screen.line("mm: %s" % problem, RED)

    def _talk(self, text: str) -> None:
        while not self.screen.lost:
            try:
                text = text or self.keyboard.message()
            except EOFError:
                self.screen.text("\n")
                return
            except KeyboardInterrupt:
                self.screen.text("\n")
                self.desk.heed_interrupt()
                continue
            if text.strip() and commands.obey(self, text) == commands.EXIT:
                return
            text = ""

    def turn(self, text: str, front, cancel) -> None:
        """One turn of the model, with all that is shown of it."""
        from mm.engine.turn import MAX_TOKENS, run_turn
        from mm.fronts.acp.commands import with_skills
        from mm.fronts.mentions import with_mentions

        said, _ = with_mentions(text, self.session.cwd)
        outcome = run_turn(self.process, self.session, with_skills(said, self.session.skills()), front,
                           cancel)
        front.display.end_text()
        if outcome.error:
            self.fail(outcome.error)
        if outcome.stop_reason == MAX_TOKENS:
            self.screen.line(CUT, YELLOW)
        done = outcome.commands, outcome.file_operations, outcome.skills
        if any(done):
            self.screen.line(RECAP % done, DIM)
        if not cancel.cancelled:
            self.process.model.window.news()  # what it has to say goes to stderr
        for notice in self.session.notices.take(logged=False):
            log.line(notice, YELLOW if self.screen.colored else "")

    def _greet(self, demo: bool) -> None:
        config = self.process.config
        parts = ["mm v" + __version__, "demo" if demo else config.model_name or "the first model found",
                 "yolo on" if config.yolo else "yolo off", "/help"]
        self.screen.line(" · ".join(parts), DIM)
        for warning in config.warnings:
            log.line("mm: " + warning)

    def _completions(self, word: str, line: str) -> list:
        skills = [skill.name for skill in self.session.skills()]
        return commands.completions(word, line, skills, self.session.cwd)

    def _interrupted(self) -> None:
        self.screen.echoed("^C")
        self.screen.line("cancelled", DIM)

    def _leave(self) -> None:
        """Ends the turn, the session and all that was started; takes a second, and two more for hooks that
        hang."""
        self._cancel.cancel()
        self.desk.settle(GOODBYE)
        self.session.end()
        self.process.close()
        child = sys.modules.get("mm.wire.child")
        if child:  # else nothing was started
            child.end_all()
        log.flush(GOODBYE)


class _Front:
    """The user as the engine sees it (mm.events)."""

    def __init__(self, chat: Chat, display: Display):
        self._chat, self.display = chat, display
        self.emit, self.shows_waits = display.emit, chat.screen.rewrites

    def ask(self, permission, cancel):
        from mm.fronts.terminal.dialogs import permit

        return self._put(permit, permission, cancel, discard_typed)

    def fill_in(self, form, cancel):
        from mm.fronts.terminal.dialogs import fill_in

        return self._put(fill_in, form, cancel)

    def _put(self, dialog, question, cancel, before=lambda: None):
        def put():
            before()
            return dialog(question, self._chat.screen, self.display, self._chat.keyboard.line)

        return self._chat.desk.ask(put, cancel)
