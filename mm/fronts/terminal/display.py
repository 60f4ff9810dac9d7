"""What the engine reports (mm.events), on the screen."""

from __future__ import annotations

import contextlib
import os
import time

from mm.diff import capped
from mm.events import (
    COMPLETED, AnswerCut, PlanChanged, Text, Thought, ToolEnded, ToolOutput, ToolPending, ToolStarted,
    Waiting, WindowUse,
)
from mm.fronts.lines import closing, opening, tool_lines
from mm.fronts.terminal.markdown import Markdown
from mm.fronts.terminal.screen import cut, width
from mm.text import Cleaner, clean, visible

WAITING, THINKING, WRITING, RUNNING = "waiting for the model", "thinking", "writing", "running"
BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"
DIFF_LINES, DIFF_CONTEXT = 40, 2
LAST_LINE_END = "(the end of the last line)"
DIFF_WORK = 25_000_000  # old lines times new lines that may be compared with each other
CUT = "the answer was cut at the server's length limit (model.maxTokens, or what the server allows)"
MORE_LINES = "… %d more lines"
# Tools whose result the user has seen in another way: answered, or as a plan.
SEEN = ("ask_user", "plan")
MARKS = {"completed": "✓", "in_progress": "▶", "pending": "·"}


class Display:
    """The events of one turn of a session in `folder`. `tell(line, style)` writes a line about what is done:
    Screen.line, or another place; `diffs`: whether changes are shown after they were made."""

    def __init__(self, screen, folder: str, tell=None, diffs: bool = True):
        self._screen, self._folder = screen, folder
        self._tell, self._diffs = tell or screen.line, diffs
        self._status = Status()
        self._cleaner, self._markdown = Cleaner(), Markdown()
        self._pending = {}
        self._shown = set()  # paths whose change a dialog has shown
        self._kinds = {
            Text: self._text, Thought: self._thought, AnswerCut: self._cut, ToolPending: self._announced,
            ToolStarted: lambda event: self._status.begin(RUNNING),
            ToolOutput: lambda event: self._status.tail("\n" + event.tail), ToolEnded: self._ended,
            PlanChanged: self._plan, WindowUse: lambda event: self._status.used(event.used),
            Waiting: lambda event: self._status.wait(event.doing, event.seconds),
        }

    @contextlib.contextmanager
    def waiting(self):
        """While the turn runs the screen says what mm waits for."""
        self._screen.waiting(self._status)
        try:
            yield
        finally:
            self.end_text()
            self._screen.waiting(None)

    def emit(self, event) -> None:
        show = self._kinds.get(type(event))
        if show:
            show(event)

    def end_text(self) -> None:
        """The answer is over, or something else is shown now."""
        self._write(self._cleaner.rest())
        for style, text in self._markdown.rest():
            self._screen.text(text, style)
        self._markdown = Markdown()
        self._screen.fresh()

    def show_change(self, diff) -> None:
        """A change, before the user decides about it."""
        self._shown.add(diff.path)
        inside = diff.path.startswith(os.path.join(self._folder, ""))
        path = os.path.relpath(diff.path, self._folder) if inside else diff.path
        self._screen.line("✎ " + visible(path), BOLD)
        for style, line in diff_lines(diff):  # all of it: what is not shown would be approved unseen
            self._screen.line("  " + line.expandtabs(4), style)

    def _text(self, event) -> None:
        self._status.begin(WRITING, tokens=1)
        self._write(self._cleaner.feed(event.text))

    def _write(self, text: str) -> None:
        for style, piece in self._markdown.feed(text):
            self._screen.text(piece, style)

    def _thought(self, event) -> None:
        self._status.begin(THINKING, tokens=1)  # a piece of a stream is about a token
        self._status.tail(clean(event.text))

    def _cut(self, event) -> None:
        self.end_text()
        self._tell(event.line, YELLOW)

    def _announced(self, event) -> None:
        self.end_text()
        self._pending[event.ref] = event
        if opening(event):
            self._tell(opening(event), BOLD)

    def _ended(self, event) -> None:
        self._status.begin(WAITING)
        pending = self._pending.pop(event.ref)
        if pending.name in SEEN and event.status == COMPLETED:
            return
        if closing(pending, event):
            self._tell(closing(pending, event), BOLD)
        if self._diffs and event.diff is not None and event.diff.path not in self._shown:
            lines = diff_lines(capped(event.diff))
            more = len(lines) - DIFF_LINES
            self._lines(lines if more <= 1 else lines[:DIFF_LINES] + [(DIM, MORE_LINES % more)])
        self._lines((DIM, line) for line in tool_lines(event))

    def _plan(self, event) -> None:
        self._lines((DIM if state == "completed" else "", "%s %s" % (MARKS.get(state, "·"), visible(text)))
                    for text, state in event.entries)

    def _lines(self, lines) -> None:
        for style, line in lines:
            if self._screen.is_terminal:
                line = cut("  " + clean(line).expandtabs(4), self._screen.columns - 1)
            self._tell(line, style)


class Status:
    """What the status line says: what mm waits for, how long, how many tokens, and the end of what is thought
    or printed. Callable as Screen.waiting() wants it."""

    def __init__(self):
        self._doing, self._since = WAITING, time.monotonic()
        self._tail = ""
        self._used = self._more = 0

    def begin(self, doing: str, tokens: int = 0) -> None:
        """Another wait begins, or the same one goes on; the model has said so much more."""
        self._more += tokens
        if doing != self._doing:
            self._doing, self._since, self._tail = doing, time.monotonic(), ""

    def wait(self, doing: str, seconds: float) -> None:
        """The model server says what the wait is about, and how long it has taken."""
        self._doing, self._since = doing, time.monotonic() - seconds

    def tail(self, text: str) -> None:
        """What was thought or printed last."""
        self._tail = (self._tail + text)[-400:]

    def used(self, tokens: int) -> None:
        """The conversation takes so many tokens, by the server's count."""
        self._used, self._more = tokens, 0

    def __call__(self, columns: int) -> str:
        said = "%s %d s" % (self._doing, time.monotonic() - self._since)
        tokens = self._used + self._more
        if tokens:
            said += " · %s tokens" % (tokens if tokens < 1000 else "%.1fk" % (tokens / 1000))
        tail = " ".join(self._tail.split())
        room = columns - width(said) - 3
        if not tail or room < 10:
            return said
        while width(tail) > room:
            tail = tail[max(1, (len(tail) - room) // 2):]
        return "%s · %s" % (said, tail)


def diff_lines(diff) -> list:
    """(style, line) of all lines that change, with two around them."""
    old, new = _lines_of(diff.old or ""), _lines_of(diff.new)
    if len(old) * len(new) > DIFF_WORK:  # too much to look for what they have in common inside
        changes = _changed_part(old, new)
    else:
        import difflib

        changes = list(difflib.unified_diff(old, new, n=DIFF_CONTEXT, lineterm=""))[2:]  # less the header
    lines = [(DIM, "⋮") if line.startswith("@@") else ({"+": GREEN, "-": RED}.get(line[0], DIM), visible(line))
             for line in changes]
    if diff.old and diff.old.endswith("\n") != diff.new.endswith("\n"):
        lines.append((DIM, LAST_LINE_END))
    return lines[1:] if lines[:1] == [(DIM, "⋮")] else lines


def _lines_of(text: str) -> list:
    """The lines; they end with \\n and nothing else."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _changed_part(old: list, new: list) -> list:
    """The lines between the beginning and the end that both have, first the old ones and then the new ones."""
    start = len(os.path.commonprefix([old, new]))
    end = len(os.path.commonprefix([old[start:][::-1], new[start:][::-1]]))
    return (["-" + line for line in old[start:len(old) - end]]
            + ["+" + line for line in new[start:len(new) - end]])
