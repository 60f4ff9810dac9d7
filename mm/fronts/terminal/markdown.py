"""Marks the code blocks and headings of an answer that streams, line by line; nothing is taken away or shown
again. Pure."""

from __future__ import annotations

import re

# The parameters of the terminal's colours: plain, bold, faint, cyan.
PLAIN, HEADING, FENCE, CODE = "", "1", "2", "36"

# The beginning of a line that may still become a fence or a heading.
_UNDECIDED = re.compile(r" {0,3}(?:`*|~*|#{0,6})")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class Markdown:
    """Takes the pieces of one answer and gives them back as (style, text) pairs. A few characters at the
    beginning of a line are held back until it is known what the line is."""

    def __init__(self):
        self._held = ""
        self._style = None  # of the current line; None at its beginning
        self._fence = ""  # the fence that opened the code block, "" outside of one

    def feed(self, piece: str) -> list:
        """The pairs that can be shown by now."""
        pairs = []
        for part in re.findall(r"[^\n]*\n|[^\n]+", piece):
            if self._style is None:
                part, self._held = self._held + part, ""
                if _UNDECIDED.fullmatch(part):
                    self._held = part
                    continue
                self._style = self._decide(part)
            pairs.append((self._style, part))
            if part.endswith("\n"):
                self._style = None
        return pairs

    def rest(self) -> list:
        """The pairs that were held back: the answer is over, or something else is shown now."""
        held, self._held = self._held, ""
        return [(PLAIN, held)] if held else []

    def _decide(self, line: str) -> str:
        fence = _FENCE.match(line)
        if self._fence:
            if fence and fence[1].startswith(self._fence) and not line[fence.end():].strip():
                self._fence = ""
                return FENCE
            return CODE
        if fence:
            self._fence = fence[1]
            return FENCE
        return HEADING if _HEADING.match(line) else PLAIN
