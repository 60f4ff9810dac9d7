"""Flow: text with a structure, written piece by piece, as lines in the manner of Markdown. Pure.

Whoever writes may forget to close what he opened, or close what he never opened: pages do both.
"""

from __future__ import annotations

import re

from mm.text import fence

# How deep lists and quotations are drawn in one another.
_DRAWN = 8
# A region stands for the whole page when it has more text than this.
_LEAST = 200
_BLANKS = re.compile("[ \t\n\r\f\xa0]+")
# The texts of links that only point at their own place.
_SIGNS = ("¶", "#", "§", "🔗", "")


class Flow:
    """`size` counts the characters so far."""

    def __init__(self):
        self.size = 0
        self._lines = []
        self._pieces = []     # of the line under way
        self._link = None     # (the index of its first piece, its URL)
        self._code = None     # the index of its first piece
        self._code_depth = 0
        self._pre = None      # the pieces of preformatted text
        self._language = ""
        self._heading = ""
        self._lists = []      # of each open one: None, or the number of the item to come
        self._marker = ""     # of the item whose first line is to come
        self._quotes = 0
        self._tables = []     # of each open one: the number of cells in the row so far, None where it is no table but a layout
        self._depths = []     # of each open table: how many lists are around it
        self._regions = {}    # name -> [first line, behind the last line or None], …

    # Text

    def add(self, text: str) -> None:
        (self._pieces if self._pre is None else self._pre).append(text)
        self.size += len(text)

    def line(self) -> None:
        """What follows stands on a line of its own, in a cell behind a blank."""
        if self._pre is not None:
            if self._pre and not self._pre[-1].endswith("\n"):
                self._pre.append("\n")
        elif self._in_cell():
            self._pieces.append(" ")
        else:
            self._flush()

    def line_break(self) -> None:
        if self._pre is not None:
            self._pre.append("\n")
        elif self._pieces or self._in_cell():
            self.line()
        else:
            self.gap()

    def gap(self) -> None:
        """What follows stands behind an empty line, in a list on a line of its own."""
        self.line()
        if self._pre is None and not self._in_cell() and not self._lists and self._lines and self._lines[-1]:
            self._lines.append("")

    def heading(self, signs: str) -> None:
        self.gap()
        if not self._in_cell():
            self._heading = signs

    def _flush(self):
        """Ends the line under way, wherever it stands."""
        in_link, in_code = self._link, self._code is not None
        self._end_code()
        told = self.close_link()
        text = _folded("".join(self._pieces)).strip()
        self._pieces = []
        if in_link:
            self._link = (0, None if told else in_link[1])  # only its first line has the URL
        if in_code:
            self._code = 0
        if text:
            self._put(self._heading + text)
        self._heading = ""

    def _put(self, text):
        """One finished line, with the signs of the lists and the quotations around it."""
        levels = self._lists[:_DRAWN]
        outer = levels[:-1] if self._marker else levels
        indent = "".join("  " if number is None else "   " for number in outer)
        line = ("> " * min(self._quotes, _DRAWN) + indent + self._marker + text).rstrip()
        self._marker = ""
        self._lines.append(line)
        self.size += len(line) - len(text) + 1

    # Within a line

    def open_link(self, url) -> None:
        """`url` is "" within the page, None where it is not worth showing."""
        self.close_link()
        if self._pre is None and self._code is None:
            self._link = (len(self._pieces), url)

    def close_link(self) -> bool:
        """Whether there was a text to carry the URL."""
        if self._link is None:
            return False
        start, url = self._link
        self._link = None
        raw = "".join(self._pieces[start:])
        text = _folded(raw).strip()
        if url == "" and text in _SIGNS:
            del self._pieces[start:]
        elif url and text:
            shown = url if text in (url, url.partition("://")[2]) else f"[{text}]({url})"
            before, after = " " * raw[0].isspace(), " " * raw[-1].isspace()
            self._pieces[start:] = [before + shown + after]
            self.size += len(shown) - len(text)
        return bool(text)

    def open_code(self, language: str) -> None:
        if self._pre is not None:
            self._language = self._language or language
            return
        self._code_depth += 1
        if self._code is None:
            self._code = len(self._pieces)

    def close_code(self) -> None:
        self._code_depth = max(0, self._code_depth - 1)
        if not self._code_depth:
            self._end_code()

    def _end_code(self):
        if self._code is None:
            return
        raw = "".join(self._pieces[self._code:])
        text = _folded(raw).strip()
        if text:
            ticks = "``" if "`" in text else "`"
            text = f" {text} " if text[0] == "`" or text[-1] == "`" else text
            before, after = " " * raw[0].isspace(), " " * raw[-1].isspace()
            self._pieces[self._code:] = [before + ticks + text + ticks + after]
        self._code = None

    # Blocks

    def open_pre(self, language: str) -> None:
        if self._pre is None:
            self._flush()
            if self._in_cell():
                self._tables[-1] = 0  # its lines stand for themselves, and so does the next cell
            self._pre, self._language = [], language

    def close_pre(self) -> None:
        if self._pre is None:
            return
        text, self._pre = "".join(self._pre).strip("\n"), None
        if not text.strip():
            return
        self.gap()
        ticks, _, rest = fence(text).partition("\n")
        for line in [ticks + self._language] + rest.split("\n"):
            self._put(line)
        self.gap()

    def open_list(self, start) -> None:
        self.gap()
        self._lists.append(int(start) if start and start.isdecimal() and len(start) < 9 else None if start is None else 1)

    def close_list(self) -> None:
        self.line()
        if self._lists:
            self._lists.pop()
        self._marker = ""
        self.gap()

    def item(self, marker: str = "") -> None:
        """The next item of the innermost list."""
        self.line()
        if self._pre is not None:
            return
        number = self._lists[-1] if self._lists else None
        if number is not None and not marker:
            marker = f"{number}. "
            self._lists[-1] += 1
        if self._in_cell():
            self._pieces.append("- ")
        else:
            self._marker = marker or "- "

    def open_quote(self) -> None:
        self.gap()
        self._quotes += 1

    def close_quote(self) -> None:
        self.line()
        self._quotes = max(0, self._quotes - 1)
        self.gap()

    def open_table(self) -> None:
        if self._pre is not None:
            return
        self._lay_out()
        self.gap()
        self._tables.append(0)
        self._depths.append(len(self._lists))

    def close_table(self) -> None:
        self.row()
        if self._tables:
            self._tables.pop()
            self._depths.pop()
        self.gap()

    def row(self) -> None:
        """The row ends, and another one may begin."""
        self._end_cell()
        if not self._in_cell():
            return self.line()
        if not "".join(self._pieces).strip(" |\n\t\xa0"):
            self._pieces = []
        self._flush()
        self._tables[-1] = 0

    def cell(self) -> None:
        """The next cell of the row."""
        if not self._tables or self._tables[-1] is None or self._pre is not None:
            return self.line()
        self._end_cell()
        self._end_code()
        self.close_link()
        self._pieces.append(" | " if self._tables[-1] else "")
        self._tables[-1] += 1

    def _end_cell(self):
        """What was opened in a cell ends with it."""
        if self._tables and self._pre is None:
            del self._lists[self._depths[-1]:]

    def _in_cell(self):
        return bool(self._tables and self._tables[-1])

    def _lay_out(self):
        """The tables around are no tables: something stands in their cells that no line of cells can hold."""
        if self._tables:
            while self._pieces and not self._pieces[-1].strip(" |"):
                self._pieces.pop()
            self._flush()
            self._tables = [None] * len(self._tables)

    def open_region(self, name: str) -> None:
        self._lay_out()
        self.gap()
        self._regions.setdefault(name, []).append([len(self._lines), None])

    def close_region(self, name: str) -> None:
        self.gap()
        for region in reversed(self._regions.get(name, ())):
            if region[1] is None:
                region[1] = len(self._lines)
                break

    # The whole

    def text(self) -> str:
        """The main region if there is enough in it, else the articles, else everything."""
        self.close_pre()
        self._flush()
        for name in ("main", "article"):
            covered, lines = 0, []
            for first, last in self._regions.get(name, ()):
                end = len(self._lines) if last is None else last
                lines += self._lines[max(first, covered):end]
                covered = max(covered, end)
            text = "\n".join(lines).strip("\n")
            if len(text) > _LEAST:
                return text
        return "\n".join(self._lines).strip("\n")


def _folded(text):
    return _BLANKS.sub(" ", text)
