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
_LISTS, _CODE = ("ul", "ol", "menu"), ("code", "kbd", "samp", "tt")
# These stand for the whole page if they have more characters than that.
_REGIONS, _REGION_LEAST = ("main", "article"), 200
# The tags before and after which a line ends, and those where an empty line follows.
_LINE, _GAP = 1, 2
_BREAKS = dict.fromkeys(
    "br div body html figcaption caption summary option legend center thead tbody tfoot tr td th li dt dd"
    .split(), _LINE)
_BREAKS.update(dict.fromkeys(
    "p section header footer nav aside figure details hr dl form fieldset address".split(), _GAP))
# Of these the ones that change what lines look like; in the cell of a table they begin a new line.
_STRUCTURE = ("blockquote", "table", "pre") + _REGIONS + _LISTS + tuple(_HEADINGS)
_BREAKS.update(dict.fromkeys(_STRUCTURE, _GAP))
_CELL = " | "
# How deep lists and quotations are drawn in one another.
_DRAWN = 8
_NOT_LINKED = re.compile(r"(?!https?:|mailto:|ftp:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
# The texts of links that only point at their own place.
_SIGNS = ("¶", "#", "§", "🔗")
_BLANKS = re.compile("[ \t\n\r\f\xa0]+")


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
    """The page without what nobody reads. An element that never ends stays: the time is linear in the
    page."""
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
        self._size = 0                           # characters so far
        self._lines = []
        self._pieces = []                        # of the line under way
        self._break = 0                          # what stands between it and the next text: 0, _LINE, _GAP
        self._begin = self._opened = ""          # what the next line, and the next text, begins with
        self._link, self._in_code = None, False  # the URL of the open link, "" within the page
        self._pre, self._language = None, ""     # the pieces of preformatted text
        self._lists = []                         # of each open one: None, or the number of its next item
        self._quotes = 0                         # how many are open
        self._tables = []                        # of each open one: how many lists are around it
        # name -> [[first line, the line after the last one or None], …]
        self._regions = {}

    # Overridden to look around, and for declarations, on which the Pythons differ and some raise.

    def parse_starttag(self, i):
        self._look()
        return super().parse_starttag(i)

    def parse_endtag(self, i):
        self._look()
        return super().parse_endtag(i)

    def parse_html_declaration(self, i):
        self._look()
        return self.rawdata.find(">", i) + 1 or -1

    parse_pi = parse_comment = parse_html_declaration

    def _look(self):
        self._look_around()
        if self._size > TEXT_LIMIT:
            raise _Enough(LONG)

    def handle_data(self, data):
        self._size += len(data)
        if self._pre is not None:
            self._pre.append(data)
        elif data.strip():
            if self._link != "" or data.strip() not in _SIGNS:
                self._new_line()
                # stands outside of a link and of code
                blank = " " if self._opened and data[0].isspace() else ""
                self._pieces += [blank, self._opened, data.lstrip() if self._opened else data]
                self._opened = ""
        elif self._pieces and not self._break:
            self._pieces.append(" ")

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        is_cell = tag in ("td", "th") and bool(self._tables and self._pieces)
        if not is_cell:
            self._end_line(tag)
        if self._pre is not None:
            self._language = self._language or (_language(attributes) if tag == "code" else "")
        elif is_cell:
            self._close_spans()
            self._break = 0
            self._pieces.append(_CELL)
            del self._lists[self._tables[-1]:]
        elif tag == "a":
            self._open_link((attributes.get("href") or "").strip())
        elif tag in _CODE and not self._in_code:
            self._in_code = True
            self._opened += "`"
        elif tag == "img":
            self.handle_data(attributes.get("alt") or "")
        elif tag == "base":
            self._base = self._absolute(attributes.get("href") or "") or self._base
        elif tag in _STRUCTURE:
            self._open(tag, attributes)
        elif tag in ("li", "dd"):
            self._item(tag)
        elif tag == "tr":
            self._end_row()

    def _open(self, tag, attributes):
        self._new_line()
        self._begin += _HEADINGS.get(tag, "")
        self._quotes += tag == "blockquote"
        if tag == "table":
            self._tables.append(len(self._lists))
        elif tag in _LISTS:
            self._lists.append(_first_number(attributes.get("start")) if tag == "ol" else None)
        elif tag == "pre":
            self._pre, self._language = [], _language(attributes)
        elif tag in _REGIONS:
            self._regions.setdefault(tag, []).append([len(self._lines), None])

    def _item(self, tag):
        self._new_line()
        sign = ": " if tag == "dd" else "- "
        if tag == "li" and self._lists and self._lists[-1] is not None:
            sign = f"{self._lists[-1]}. "
            self._lists[-1] += 1
        if self._pieces:
            self._pieces.append(sign)
        else:
            self._begin = sign

    def handle_endtag(self, tag):
        if tag == "pre":
            self._close_pre()
        self._end_line(tag)
        if tag == "a":
            self._close_link()
        elif tag in _CODE:
            self._close_code()
        elif tag == "tr":
            self._end_row()
        elif tag in _STRUCTURE and self._pre is None:
            self._new_line()
            if tag in _LISTS or tag in _HEADINGS:
                self._begin = ""
            if tag in _LISTS and self._lists[self._tables[-1] if self._tables else 0:]:
                self._lists.pop()
                self._end_line(tag)
            self._quotes = max(0, self._quotes - (tag == "blockquote"))
            if tag == "table" and self._tables:
                del self._lists[self._tables.pop():]
            for region in [one for one in self._regions.get(tag, ()) if one[1] is None][-1:]:
                region[1] = len(self._lines)

    def _end_row(self):
        self._new_line()
        if self._tables:
            del self._lists[self._tables[-1]:]

    def _end_line(self, tag):
        """What follows the tag stands on another line. The first tags of a cell end none."""
        how = _BREAKS.get(tag, 0)
        if not how:
            return
        if self._pre is not None:
            if self._pre and not self._pre[-1].endswith("\n"):
                self._pre.append("\n")
            return
        if self._pieces[-1:] == [_CELL]:
            if tag not in _STRUCTURE and tag != "tr":
                return
            self._pieces.pop()
        if tag == "br" and self._break:
            how = _GAP
        self._break = max(self._break, _LINE if self._lists or self._tables and tag not in _STRUCTURE
                          else how)

    def _new_line(self):
        """Ends the line under way if that is due."""
        if not self._break:
            return
        if "[" not in self._opened:  # else its text is still to come
            self._close_link()
        if "`" not in self._opened:
            self._close_code()
        text = _BLANKS.sub(" ", "".join(self._pieces)).strip()
        self._pieces = []
        if text:
            self._put(text)
        if self._break == _GAP and self._lines and self._lines[-1]:
            self._lines.append("")
        self._break = 0

    def _put(self, text):
        """One finished line, with the signs of the lists and quotations around it."""
        is_item = self._begin[-2:] in ("- ", ". ", ": ")
        levels = self._lists[:_DRAWN][:-1 if is_item else None]
        indent = "".join("  " if number is None else "   " for number in levels)
        line = ("> " * min(self._quotes, _DRAWN) + indent + self._begin + text).rstrip()
        self._begin = ""
        self._lines.append(line)
        self._size += len(line) - len(text) + 1

    def _open_link(self, href):
        self._close_link()
        url = "" if href.startswith("#") else self._absolute(href)
        if not self._in_code:
            self._link = url
            self._opened += "[" if url else ""

    def _close_link(self):
        url, self._link = self._link, None
        if url and "[" in self._opened:
            self._opened = self._opened.replace("[", "")  # it had no text
        elif url:
            self._close_code()
            self._append(f"]({url})")
            self._size += len(url)

    def _close_code(self):
        if self._in_code and not self._opened.endswith("`"):
            self._append("`")
        self._opened = self._opened.replace("`", "")
        self._in_code = False

    def _append(self, sign):
        """The sign follows the text, and the blank that the text ends with follows the sign."""
        last = self._pieces.pop() if self._pieces else ""
        self._pieces += [last.rstrip(), sign, " " if last[-1:].isspace() else ""]

    def _close_spans(self):
        self._close_code()
        self._close_link()

    def _absolute(self, href):
        """The whole URL, None if there is none to be shown."""
        if not href or _NOT_LINKED.match(href) or len(href) > 1000:
            return None
        try:
            return "%20".join(urllib.parse.urljoin(self._base, href).split())
        except ValueError:
            return None

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
        self._close_spans()
        self._new_line()
        for name in _REGIONS:
            covered, lines = 0, []
            for first, last in self._regions.get(name, ()):
                end = len(self._lines) if last is None else last
                lines += self._lines[max(first, covered):end]
                covered = max(covered, end)
            text = "\n".join(lines).strip("\n")
            if len(text) > _REGION_LEAST:
                return text
        return "\n".join(self._lines).strip("\n")


def _first_number(start):
    return int(start) if start and start.isdecimal() and len(start) < 9 else 1


def _language(attributes):
    found = _LANGUAGE.search(attributes.get("class") or "")
    return found.group(1) if found else ""
