"""Text for people and models: cleaned of terminal control, cut to a limit, fenced. Pure."""

from __future__ import annotations

import re

# The longest line that is shown whole, in characters.
LINE_LIMIT = 2000
# How much of a command or a path a title shows.
TITLE_LIMIT = 120

# Escape sequences as ECMA-48 writes them. None of them spans a line here, so that cleaning keeps the number of lines
# and an unfinished one cannot swallow what follows.
_ESCAPES = re.compile(
    r"""\x1b (?:
        \[ [0-?]* [ -/]* [@-~]?                          # CSI: colours, cursor
      | \] [^\x07\x1b\n]* (?: \x07 | \x1b\\ | \x1b?\Z )  # OSC: titles, links
      | [PX^_] [^\x1b\n]* \x1b\\                         # DCS, SOS, PM, APC
      | [ -/]+ [0-~]                                     # character sets
      | [0-~]                                            # two characters
    )""",
    re.VERBOSE,
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean_terminal(text: str) -> str:
    """What a terminal would have left on the screen, roughly: no escapes, of a line with bare `\\r` only the end."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        lines = (line.rstrip("\r") for line in text.split("\n"))
        text = "\n".join(line[line.rfind("\r") + 1:] for line in lines)
    return replace_surrogates(_CONTROLS.sub("", text))


def replace_surrogates(text: str) -> str:
    """`text` with U+FFFD for each lone surrogate, which no encoding can hold."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def cut_line(line: str, limit: int = LINE_LIMIT) -> str:
    """The beginning of a long line, and how much is missing."""
    return line if len(line) <= limit else f"{line[:limit]}… [+{len(line) - limit} chars]"


def cut_middle(line: str, limit: int = LINE_LIMIT) -> str:
    """Both ends of a long line, and how much is missing between them."""
    if len(line) <= limit:
        return line
    head, tail = limit // 2, limit - limit // 2
    return f"{line[:head]}… [+{len(line) - limit} chars] …{line[len(line) - tail:]}"


def head_and_tail(text: str, max_chars: int, max_lines: int, end: str | None = None) -> tuple:
    """A third of the limits for the beginning, two thirds for the end, in whole lines, the long ones cut in the middle.

    Returns (head, tail), two lists of lines; all lines are in `head` when they fit. Where not all of a text is at hand,
    `text` is its beginning and `end` its end; then there is always something left out between them.
    """
    line_limit = min(LINE_LIMIT, max_chars // 3)
    lines = [cut_middle(line, line_limit) for line in text.split("\n")]
    if end is None and len(lines) <= max_lines and sum(map(len, lines)) + len(lines) - 1 <= max_chars:
        return lines, []
    head = _within(lines, max_chars // 3, max_lines // 3)
    rest = lines[len(head):] if end is None else [cut_middle(line, line_limit) for line in end.split("\n")]
    tail = _within(reversed(rest), max_chars - max_chars // 3, max_lines - max_lines // 3)
    return head, tail[::-1]


def _within(lines, max_chars, max_lines):
    taken = []
    for line in lines:
        max_chars -= len(line) + 1
        if max_chars < 0 or len(taken) == max_lines:
            break
        taken.append(line)
    return taken


def fence(text: str) -> str:
    """`text` as a fenced code block, with a fence longer than any run of backticks in it."""
    longest = max(map(len, re.findall("`+", text))) if "```" in text else 0
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{ticks}"


def one_line(text: str, limit: int = TITLE_LIMIT) -> str:
    """The first line with something on it, at most `limit` characters; `…` follows when there was more."""
    text = text.strip()
    first = text.split("\n", 1)[0]
    line = replace_surrogates(_CONTROLS.sub(" ", first.replace("\t", " ")).rstrip())
    if len(line) <= limit:
        return line if first == text else line + "…"
    return line[:limit] + "…"


def folded(text: str) -> str:
    """All of the text on one line, its white space folded."""
    return replace_surrogates(_CONTROLS.sub(" ", " ".join(text.split())))


def is_note(text: str) -> bool:
    """Whether `text` is one line in square brackets: mm's own words, not a program's output or a file."""
    return text.startswith("[") and text.endswith("]") and "\n" not in text


def size(count: int) -> str:
    """A number of bytes for people: `812 bytes`, `56.7 KB`, `2.3 GB`."""
    if count < 1024:
        return plural(count, "byte")
    value = float(count)
    for unit in ("KB", "MB", "GB"):
        value /= 1024
        if value < 1023.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TB"


def plural(count: int, noun: str) -> str:
    """`1 line`, `3 lines`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
