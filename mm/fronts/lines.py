"""What a tool call looks like in lines of a terminal. Pure, but for what Colors asks its stream."""

from __future__ import annotations

import os

from mm.events import ToolEnded, ToolPending

SHOWN_LINES = 8


class Colors:
    """Bold and dim for one stream: on a terminal that wants them, or as `--color` says."""

    def __init__(self, stream, when: str):
        wanted = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._on = when == "always" or when == "auto" and wanted

    @property
    def bold(self) -> str:
        """The `style` of log.line for a bold line."""
        return "1" if self._on else ""

    @property
    def dim(self) -> str:
        """The `style` of log.line for a faint line."""
        return "2" if self._on else ""

    def mark(self, text: str, code: int) -> str:
        """`text` in the terminal's colour of that number (31 red, 32 green, 33 yellow)."""
        return "\x1b[%dm%s\x1b[0m" % (code, text) if self._on else text


def opening(pending: ToolPending) -> str:
    """What is shown when a call begins: `$ command` for a command, nothing for a tool that is over at once."""
    if pending.name != "bash":
        return ""
    tool, colon, command = pending.title.partition(": ")
    return "$ " + command if colon else tool  # without a command it was denied, or could not be read


def closing(pending: ToolPending, ended: ToolEnded) -> str:
    """What is shown when a call has ended, unless its opening was: `✎ path (+3 −1)`, or the call's title."""
    if pending.name == "bash":
        return ""
    if ended.diff is not None:
        return "✎ %s (+%d −%d)" % ((pending.title.partition(": ")[2],) + changed_lines(ended.diff))
    return pending.title


def tool_lines(ended: ToolEnded) -> list:
    """The first lines of the output, and how many more there are; nothing for a change, whose title says it."""
    if ended.diff is not None:
        return []
    lines = ended.output.splitlines()
    if len(lines) <= SHOWN_LINES + 1:
        return lines
    return lines[:SHOWN_LINES] + ["… %d more lines" % (len(lines) - SHOWN_LINES)]


def changed_lines(diff) -> tuple:
    """(added, removed) lines of a Diff."""
    import difflib

    old, new = (diff.old or "").splitlines(), diff.new.splitlines()
    changes = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]  # less the two header lines
    return sum(line.startswith("+") for line in changes), sum(line.startswith("-") for line in changes)
