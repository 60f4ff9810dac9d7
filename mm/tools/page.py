"""A web page as text that a model reads: headings, lists, tables, code and links in the manner of Markdown.
Pure.

html.parser is the reader. On broken markup it takes time that grows with the square of the page, and it
cannot be interrupted from outside; so what may be long without a tag (programs, styles, comments, data in
attributes) is taken out before, it is fed in pieces, and at each tag it looks whether somebody cancels and
how much time it has used.
"""

from __future__ import annotations

import html
import re
import time
import urllib.parse
from collections import namedtuple
from html.parser import HTMLParser

from mm.text import clean_terminal, fence, one_line

# Characters of a page that are read, at a time, and that may be left between two pieces; seconds of this
# thread's CPU.
READ, PIECE, REST, CPU_SECONDS = 1024 * 1024, 8 * 1024, 16 * 1024, 3
# What the text may grow to: links that are made absolute are longer.
TEXT_LIMIT = 4 * READ

BROKEN = "[page cut: its markup is broken]"
LONG = "[page cut: only its first 1 MB is read]"

# `title` is one line or "", `note` one of the two above or None.
Page = namedtuple("Page", "title text note")

# A reference to a character by a number of this many digits: there is no such character, or the number begins
# with zeros. Python refuses, or takes very long, to read a number of thousands of digits.
_NUMBER = re.compile("&#(?:([0-9]{8,})|([xX])([0-9a-fA-F]{8,}));?")
_TITLE = re.compile(r"<title\b[^<>]*>", re.IGNORECASE)
_TITLE_END = re.compile(r"</title", re.IGNORECASE)
_TITLE_PROBE = 64 * 1024

# The tag with at most 200 quoted attributes: each takes memory.
_DROPPED = re.compile(
    r"<!--|<(script|style|noscript|svg|template|iframe)\b[^<>\"']*"
    r"(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*){0,200}>", re.IGNORECASE)
_COMMENT_END = re.compile("--!?>")
_DATA = re.compile(r"data:[\w/+.;=,%-]{200,}")
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight-source)-([\w+#-]+)")

_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_LISTS, _CODE, _REGIONS = ("ul", "ol", "menu"), ("code", "kbd", "samp", "tt"), ("main", "article")
# A region stands for the whole page if it has more characters than this.
_REGION_LEAST = 200
# A line ends before and after these tags; an empty line follows these; and these stay out of the row of a table.
_LINES = frozenset(
    "br div body html figcaption caption summary option legend center tr td th li dt dd".split())
_GAPS = frozenset(
    "p section header footer nav aside figure details hr dl form fieldset address blockquote".split())
_BLOCKS = frozenset(("table", "pre") + _REGIONS + _LISTS + tuple(_HEADINGS))
_LINE, _GAP = 1, 2
_CELL = " | "
# How deep lists and quotations are drawn in one another.
_DRAWN = 8
_NOT_LINKED = re.compile(r"(?!https?:|mailto:|ftp:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
# The texts of links that only point at their own place.
_SIGNS = ("¶", "#", "§", "🔗")


class _Enough(Exception):
    """The page is not read any further; the note says why."""


def read(markup: str, url: str, check) -> Page:
    """`url` is what links are relative to; `check()` is called often and may raise."""
    title, markup = _split_title(markup.replace("\r\n", "\n").replace("\r", "\n"))
    end = time.thread_time() + CPU_SECONDS

    def look():
        check()
        if time.thread_time() > end:
            raise _Enough(BROKEN)

    reader = _Reader(url, look)
    note = None
    try:
        # the numbers last: "&#<!-- -->999" is one now
        markup = _with_short_numbers(_without_programs(markup, look))
        note = LONG if len(markup) > READ else None
        for start in range(0, min(len(markup), READ), PIECE):
            look()  # there may be no tag in it
            reader.feed(markup[start:min(start + PIECE, READ)])
            if len(reader.rawdata) > REST:
                raise _Enough(BROKEN)
        reader.close()
    except _Enough as enough:
        note = str(enough)
    return Page(title, clean_terminal(reader.text()), note)


def _with_short_numbers(markup):
    return _NUMBER.sub(_short_number, markup)


def _short_number(found):
    digits = (found[1] or found[3]).lstrip("0") or "0"
    return "&#%s%s;" % (found[2] or "", digits) if len(digits) < 8 else "\ufffd"


def _split_title(markup):
    """The title, which may hold anything but its own end, and the page without it."""
    start = _TITLE.search(markup, 0, _TITLE_PROBE)
    end = start and _TITLE_END.search(markup, start.end(), start.end() + _TITLE_PROBE)
    if not end:
        return "", markup
    title = " ".join(html.unescape(_with_short_numbers(markup[start.end():end.start()])).split())
    return one_line(clean_terminal(title), 300), markup[:start.start()] + markup[end.start():]


def _without_programs(markup, look):
    """The page without what nobody reads, in linear time: an element that never ends stays."""
    kept, position, ends = [], 0, {}
    for start in iter(lambda: _DROPPED.search(markup, position), None):
        look()
        name = (start.group(1) or "").lower()
        kept.append(markup[position:start.start()])
        position = start.end()
        if start.group().endswith("/>") and name == "svg":
            continue
        pattern = re.compile(f"</{name}\\b[^<>]*>", re.IGNORECASE) if name else _COMMENT_END
        end = ends.get(name, True) and pattern.search(markup, start.start() + 2 if not name else position)
        ends[name] = bool(end)
        if end:
            position = end.end()
        elif name in ("script", "style"):
            return "".join(kept)  # a browser shows nothing of what follows either
    kept.append(markup[position:])
    return _DATA.sub("data:", "".join(kept))


class _Reader(HTMLParser):
    """Turns tags into lines. A page may close what it never opened, and never close what it opened.

    A line ends only when the next text comes, so that the cells of a row can share one.
    """

    def __init__(self, url, look):
        super().__init__(convert_charrefs=True)
        self._base, self._look_around = url, look
        self._size = 0                       # characters so far
        self._lines = []                     # (text, the regions that it is in)
        self._pieces, self._break = [], 0    # of the line under way; what ends it: 0, _LINE, _GAP
        self._begin = self._opened = ""      # what the next line, and the next text, begins with
        self._link, self._code = None, None  # the URL of the open link, "" within the page; the tag of open code
        self._pre, self._language = None, ""  # the pieces of preformatted text
        self._lists = []                     # of each open one: None, or the number of its next item
        self._open = dict.fromkeys(("table", "blockquote") + _REGIONS, 0)

    def updatepos(self, i, j):
        """html.parser calls this after each tag, to count lines, which nobody asks for."""
        self._look_around()
        if self._size > TEXT_LIMIT:
            raise _Enough(LONG)
        return j

    def parse_html_declaration(self, i):
        return self.rawdata.find(">", i) + 1 or -1

    parse_pi = parse_comment = parse_html_declaration  # the Pythons differ on them, and some raise

    def handle_data(self, data):
        self._size += len(data)
        if self._pre is not None:
            self._pre.append(data)
        elif not data.strip():
            if self._pieces and not self._break:
                self._pieces.append(" ")
        elif self._link != "" or data.strip() not in _SIGNS:
            self._end_line()
            if self._opened:  # a blank stands outside of a link and of code
                data = " " * data[0].isspace() + self._opened + data.lstrip()
            self._pieces.append(data)
            self._opened = ""

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag in ("td", "th") and self._open["table"] and self._pieces:
            self._close_code()
            self._close_link()
            self._pieces.append(_CELL)
            self._break = 0
        else:
            self._break_line(tag)
        if self._pre is not None:
            self._language = self._language or _language(attributes)
        elif tag == "a":
            self._open_link((attributes.get("href") or "").strip())
        elif tag in _CODE and not self._code:
            self._code = tag
            self._opened += "`"
        elif tag == "img":
            self.handle_data(attributes.get("alt") or "")
        elif tag == "base":
            self._base = self._absolute(attributes.get("href") or "") or self._base
        elif tag == "li":
            self._item()
        elif tag in _BLOCKS or tag == "blockquote":
            self._open_block(tag, attributes)

    def _open_block(self, tag, attributes):
        self._end_line()
        self._begin += _HEADINGS.get(tag, "")
        if tag in self._open:
            self._open[tag] += 1
        elif tag in _LISTS:
            self._lists.append(1 if tag == "ol" else None)
        elif tag == "pre":
            self._pre, self._language = [], _language(attributes)

    def _item(self):
        self._end_line()
        number = self._lists[-1] if self._lists else None
        sign = "- " if number is None else f"{number}. "
        if self._pieces:  # in a row
            self._pieces.append(sign)
        else:
            self._begin = sign
        if number is not None:
            self._lists[-1] += 1

    def handle_endtag(self, tag):
        if tag == "pre":
            self._close_pre()
        self._break_line(tag)
        if tag == "a":
            self._close_link()
        elif tag in _CODE:
            self._close_code()
        elif (tag in _BLOCKS or tag in self._open) and self._pre is None:
            self._end_line()
            if tag in self._open:
                self._open[tag] = max(0, self._open[tag] - 1)
                self._lists = [] if tag == "table" else self._lists  # what a cell left open ends with it
            elif tag in _LISTS:
                self._lists[-1:], self._begin = [], ""
                self._break_line(tag)
            elif tag in _HEADINGS:
                self._begin = ""

    # Lines

    def _break_line(self, tag):
        """What follows the tag stands on another line, unless the tag is the first in a cell."""
        if tag not in _LINES and tag not in _GAPS and tag not in _BLOCKS:
            return
        if self._pre is not None:
            if self._pre and not self._pre[-1].endswith("\n"):
                self._pre.append("\n")
            return
        if self._pieces[-1:] == [_CELL]:
            if tag not in _BLOCKS and tag != "tr":
                return
            self._pieces.pop()
        is_gap = tag in _BLOCKS or tag in _GAPS and not self._open["table"] or tag == "br" and self._break
        self._break = max(self._break, _GAP if is_gap and not self._lists else _LINE)
        if tag == "tr":
            self._end_line()

    def _end_line(self):
        """Ends the line under way if that is due. A link or code whose text is still to come goes on."""
        if not self._break:
            return
        if not self._opened:
            self._close_code()
            self._close_link()
        text = " ".join("".join(self._pieces).split())
        self._pieces = []
        if text:
            self._put(text)
        if self._break == _GAP and self._lines and self._lines[-1][0]:
            self._lines.append(("", self._regions()))
        self._break = 0

    def _put(self, text):
        """One finished line, with the signs of the lists and quotations around it."""
        levels = self._lists[:_DRAWN][:-1 if self._begin[-2:] in ("- ", ". ") else None]
        indent = "".join("  " if number is None else "   " for number in levels)
        line = "> " * min(self._open["blockquote"], _DRAWN) + indent + self._begin + text
        self._begin = ""
        self._lines.append((line.rstrip(), self._regions()))
        self._size += len(line) - len(text) + 1

    def _regions(self):
        return [tag for tag in _REGIONS if self._open[tag]]

    # Links and code

    def _open_link(self, href):
        self._close_link()
        url = "" if href.startswith("#") else self._absolute(href)
        if not self._code:
            self._link = url
            self._opened += "[" if url else ""

    def _absolute(self, href):
        """The whole URL, None if there is none to be shown."""
        if not href or _NOT_LINKED.match(href) or len(href) > 1000:
            return None
        try:
            return "%20".join(urllib.parse.urljoin(self._base, href).split())
        except ValueError:
            return None

    def _close_link(self):
        url, self._link = self._link, None
        if url:
            self._close_code()
            self._close("[", f"]({url})")

    def _close_code(self):
        if self._code:
            self._code = None
            self._close("`", "`")

    def _close(self, begin, end):
        """The sign follows the text, and the blank that the text ends with follows the sign."""
        if begin in self._opened:
            self._opened = self._opened.replace(begin, "")  # there was no text
        elif self._pieces:
            last = self._pieces.pop()
            self._pieces += [last.rstrip() + end, " " * last[-1:].isspace()]
            self._size += len(end)

    def _close_pre(self):
        text, self._pre = "".join(self._pre or ()).strip("\n"), None
        if text.strip():
            ticks, _, rest = fence(text).partition("\n")
            for line in [ticks + self._language] + rest.split("\n"):
                self._put(line)

    def text(self):
        """The main region if there is enough in it, else the articles, else everything."""
        self._close_pre()
        self._break = _LINE
        self._opened = ""
        self._end_line()
        for region in _REGIONS:
            text = "\n".join(line for line, regions in self._lines if region in regions).strip("\n")
            if len(text) > _REGION_LEAST:
                return text
        return "\n".join(line for line, _ in self._lines).strip("\n")


def _language(attributes):
    found = _LANGUAGE.search(attributes.get("class") or "")
    return found.group(1) if found else ""
