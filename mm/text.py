"""Text for people and models: cleaned of control sequences, made visible, cut to a limit, fenced. Pure.

    clean             for all text that goes to an editor, a terminal or stderr: no control sequences
    Cleaner           the same for a text that streams
    clean_terminal    for the output of programs: also does what a terminal does with `\\r`
    visible           for all text that a person decides on: nothing in it is hidden, moved or out of sight
"""

from __future__ import annotations

import re

from mm.json_text import encoded_size

# The longest line that is shown whole, in characters.
LINE_LIMIT = 2000
# How much of a command or a path a title shows.
TITLE_LIMIT = 120

# The most that a dialog shows of a text: characters, and bytes of JSON.
DIALOG_CHARACTERS, DIALOG_BYTES = 16_000, 24 * 1024

# Escape sequences as ECMA-48 defines them. Here none of them spans lines, so that cleaning keeps the number
# of lines and an unfinished sequence cannot swallow the text after it.
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
# An escape sequence that a text begins but does not end.
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b\n]*\x1b?|[PX^_][^\x1b\n]*\x1b?|[ -/]*)?\Z")
# No program sends a longer one.
_LONGEST_ESCAPE = 4096
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_UNCLEAN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

# What a person cannot see, or what moves the text after it: control characters, soft hyphens, fillers,
# zero-width and bidirectional characters, line and paragraph separators, invisible operators, the BOM,
# annotations, tags, lone surrogates.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]")
# The longest runs of blanks, of empty lines and of combining marks that are shown unchanged.
MOST_BLANKS, MOST_EMPTY_LINES, MOST_MARKS = 80, 10, 8
_BLANKS = re.compile("[ \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]{%d,}" % (MOST_BLANKS + 1))
_EMPTY_LINES = re.compile("\n(?:[ \t]*\n){%d,}" % (MOST_EMPTY_LINES + 1))
_MAY_HOLD_MARKS = re.compile("[^\x00-\x7f]{%d,}" % (MOST_MARKS + 1))

_MARKUP = re.compile(r"[\[\]<>`]")


def clean(text: str) -> str:
    """`text` without escape sequences and control characters; lines and tabs stay."""
    if text.isprintable() or not _UNCLEAN.search(text):
        return text
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return replace_surrogates(_CONTROLS.sub("", text))


class Cleaner:
    """Cleans a text that comes in pieces, even if a sequence is split between two of them."""

    __slots__ = ("_held",)

    def __init__(self):
        self._held = ""

    def feed(self, piece: str) -> str:
        """Returns the part of the text so far that can be shown and has not been returned yet."""
        if not self._held and (piece.isprintable() or not _UNCLEAN.search(piece)):
            return piece  # nearly all pieces
        text, self._held = self._held + piece, ""
        begun = _UNFINISHED.search(text)
        if begun and len(text) - begun.start() <= _LONGEST_ESCAPE:
            text, self._held = text[:begun.start()], text[begun.start():]
        return clean(text)

    def rest(self) -> str:
        """The text is over: returns the part that was held back."""
        held, self._held = self._held, ""
        return clean(held)


def visible(text: str) -> str:
    """`text` with an escape such as `\\u202e` for each character that cannot be seen, and a mark such as
    `[960 blanks]` for what would push the rest out of sight: a long run of blanks, of empty lines or of
    combining marks."""
    text = _UNSEEN.sub(_escaped, text)
    text = _BLANKS.sub(lambda run: "[%d blanks]" % len(run.group()), text)
    text = _EMPTY_LINES.sub(lambda run: "\n[%d empty lines]\n" % (run.group().count("\n") - 1), text)
    return text if text.isascii() else _MAY_HOLD_MARKS.sub(_marks_folded, text)


def shown_whole(text: str) -> bool:
    """Whether a dialog shows all of `text` once it is visible: a person must not allow what was left out."""
    text = visible(text)
    return len(text) <= DIALOG_CHARACTERS and encoded_size(text) <= DIALOG_BYTES


def _escaped(found) -> str:
    code = ord(found.group())
    return "\\x%02x" % code if code < 0x100 else "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code


def _marks_folded(found) -> str:
    import itertools
    import unicodedata

    shown = []
    for is_mark, run in itertools.groupby(found.group(),
                                          lambda each: unicodedata.category(each) in ("Mn", "Me")):
        run = "".join(run)
        shown.append("[%d combining marks]" % len(run) if is_mark and len(run) > MOST_MARKS else run)
    return "".join(shown)


def clean_terminal(text: str) -> str:
    """Roughly what a terminal leaves on the screen: no escapes; of a line with bare `\\r`, only the end."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        lines = (line.rstrip("\r") for line in text.split("\n"))
        text = "\n".join(line[line.rfind("\r") + 1:] for line in lines)
    return replace_surrogates(_CONTROLS.sub("", text))


def replace_surrogates(text: str) -> str:
    """`text` with U+FFFD in place of each lone surrogate, which no encoding can hold."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def cut_line(line: str, limit: int = LINE_LIMIT) -> str:
    """The beginning of a long line, and how many characters are missing."""
    return line if len(line) <= limit else f"{line[:limit]}… [+{len(line) - limit} chars]"


def cut_middle(line: str, limit: int = LINE_LIMIT) -> str:
    """Both ends of a long line, and how many characters are missing between them."""
    if len(line) <= limit:
        return line
    head, tail = limit // 2, limit - limit // 2
    return f"{line[:head]}… [+{len(line) - limit} chars] …{line[len(line) - tail:]}"


def head_and_tail(text: str, max_chars: int, max_lines: int, end: str | None = None) -> tuple:
    """A third of the limits for the beginning, two thirds for the end, in whole lines, long ones shortened.

    Returns (head, tail), two lists of lines; if all lines fit, they are in `head`. A caller that does not
    have the whole text gives its beginning and its `end`; something is then always left out between them.
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


# What a reader of Markdown fetches: images, and the HTML elements that load something.
_EMBEDDED = re.compile(
    r"!(?=\[)|<(?=(?:img|image|picture|video|audio|source|svg|iframe|object|embed|link|style|script)\b)",
    re.IGNORECASE)


def without_images(text: str) -> str:
    """Foreign Markdown without what an editor would load: a picture's server would learn who reads it."""
    return _EMBEDDED.sub(lambda found: "!\\" if found[0] == "!" else "&lt;", text)


def literal(line: str) -> str:
    """A line that Markdown shows as it is: everything in it that may be markup is escaped."""
    return _MARKUP.sub(r"\\\g<0>", line)


def one_line(text: str, limit: int = TITLE_LIMIT) -> str:
    """The first line that is not blank, visible, at most `limit` characters; `…` means there was more."""
    text = text.strip()
    first = text.split("\n", 1)[0]
    line = visible(first.replace("\t", " ").rstrip())
    if len(line) <= limit:
        return line if first == text else line + "…"
    return line[:limit] + "…"


def folded(text: str) -> str:
    """The whole text on one line, visible, each run of white space as one space."""
    return visible(" ".join(text.split()))


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
