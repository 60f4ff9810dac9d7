"""A web page as text that a model reads: headings, lists, tables, code and links in the manner of Markdown. Pure.

html.parser is the reader. On broken markup it takes time that grows with the square of the page, and it cannot be
interrupted from outside; so what may be long without a tag (programs, styles, comments, data in attributes) is taken out
before, it is fed in pieces, and at each tag it looks whether somebody cancels and how much time it has used.
"""

from __future__ import annotations

import html
import re
import time
import urllib.parse
from collections import namedtuple
from html.parser import HTMLParser

from mm.text import clean_terminal, one_line
from mm.tools.flow import Flow

# Characters of a page that are read, at a time, and that may be left between two pieces; seconds of this thread's CPU.
READ, PIECE, REST, CPU_SECONDS = 1024 * 1024, 8 * 1024, 16 * 1024, 3
# What the text may grow to: links that are made absolute are longer.
TEXT_LIMIT = 4 * READ

BROKEN = "[page cut: its markup is broken]"
LONG = "[page cut: only its first 1 MB is read]"

# `title` is one line or "", `note` one of the two above or None.
Page = namedtuple("Page", "title text note")

# A reference to a character by a number of so many digits: there is none, or it is written with zeros in front. Python
# refuses, or takes very long, to read a number of thousands of digits.
_NUMBER = re.compile("&#(?:([0-9]{8,})|([xX])([0-9a-fA-F]{8,}));?")
_TITLE = re.compile(r"<title\b[^<>]*>", re.IGNORECASE)
_TITLE_END = re.compile(r"</title", re.IGNORECASE)
_TITLE_PROBE = 64 * 1024

# The tag with so many quoted attributes at most: each takes memory.
_DROPPED = re.compile(r"<!--|<(script|style|noscript|svg|template|iframe)\b[^<>\"']*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*){0,200}>", re.IGNORECASE)
_COMMENT_END = re.compile("--!?>")
_DATA = re.compile(r"data:[\w/+.;=,%-]{200,}")
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight-source)-([\w+#-]+)")

_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_PARAGRAPHS = {"p", "section", "header", "footer", "nav", "aside", "figure", "details", "hr", "dl", "form", "fieldset", "address"}
_LINES = {"div", "body", "html", "figcaption", "caption", "summary", "option", "legend", "center", "thead", "tbody", "tfoot", "dt"}
_CODE = {"code", "kbd", "samp", "tt"}
_PREFERRED = ("main", "article")
_NOT_LINKED = re.compile(r"(?!https?:|mailto:|ftp:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)


class _Enough(Exception):
    """The page is not read any further; the note tells why."""


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
        markup = _with_short_numbers(_without_programs(markup, look))  # the numbers last: "&#<!-- -->999" is one now
        note = LONG if len(markup) > READ else None
        for start in range(0, min(len(markup), READ), PIECE):
            look()  # there may be no tag in it
            reader.feed(markup[start:min(start + PIECE, READ)])
            if len(reader.rawdata) > REST:
                raise _Enough(BROKEN)
        reader.close()
    except _Enough as enough:
        note = str(enough)
    return Page(title, clean_terminal(reader.flow.text()), note)


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
    return one_line(title, 300), markup[:start.start()] + markup[end.start():]


def _without_programs(markup, look):
    """The page without what nobody reads. An element that never ends stays: the time is linear in the page."""
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
    """Turns tags into calls of the Flow."""

    def __init__(self, url, look):
        super().__init__(convert_charrefs=True)
        self.flow = Flow()
        self._base = url
        self._look_around = look

    def _look(self):
        self._look_around()
        if self.flow.size > TEXT_LIMIT:
            raise _Enough(LONG)

    # Overridden for the look, and for declarations, on which the Pythons differ and some raise.

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

    def handle_data(self, data):
        self.flow.add(data)

    def handle_starttag(self, tag, attrs):
        flow = self.flow
        if tag in _HEADINGS:
            flow.heading(_HEADINGS[tag])
        elif tag in _PARAGRAPHS:
            flow.gap()
        elif tag in _LINES:
            flow.line()
        elif tag in _CODE:
            flow.open_code(_language(attrs))
        elif tag in _PREFERRED:
            flow.open_region(tag)
        elif tag in _STARTS:
            _STARTS[tag](self, dict(attrs))

    def handle_endtag(self, tag):
        flow = self.flow
        if tag in _HEADINGS or tag in _PARAGRAPHS:
            flow.gap()
        elif tag in _LINES or tag in ("li", "dd"):
            flow.line()
        elif tag in _CODE:
            flow.close_code()
        elif tag in _PREFERRED:
            flow.close_region(tag)
        elif tag in _ENDS:
            _ENDS[tag](flow)

    def _base_is(self, attributes):
        self._base = self._absolute(attributes.get("href") or "") or self._base

    def _link(self, attributes):
        href = (attributes.get("href") or "").strip()
        if href.startswith("#"):
            self.flow.open_link("")  # within the page: the text alone, and not even that of a sign
        else:
            self.flow.open_link(self._absolute(href))

    def _absolute(self, href):
        """The whole URL, None where there is none to be shown."""
        if not href or _NOT_LINKED.match(href) or len(href) > 1000:
            return None
        try:
            return "%20".join(urllib.parse.urljoin(self._base, href).split())
        except ValueError:
            return None


def _language(attributes):
    found = _LANGUAGE.search(dict(attributes).get("class") or "")
    return found.group(1) if found else ""


_STARTS = {
    "a": _Reader._link,
    "base": _Reader._base_is,
    "blockquote": lambda reader, _: reader.flow.open_quote(),
    "br": lambda reader, _: reader.flow.line_break(),
    "dd": lambda reader, _: reader.flow.item(": "),
    "img": lambda reader, attributes: reader.flow.add(attributes.get("alt") or ""),
    "li": lambda reader, _: reader.flow.item(),
    "menu": lambda reader, _: reader.flow.open_list(None),
    "ol": lambda reader, attributes: reader.flow.open_list(attributes.get("start") or "1"),
    "pre": lambda reader, attributes: reader.flow.open_pre(_language(attributes.items())),
    "table": lambda reader, _: reader.flow.open_table(),
    "td": lambda reader, _: reader.flow.cell(),
    "th": lambda reader, _: reader.flow.cell(),
    "tr": lambda reader, _: reader.flow.row(),
    "ul": lambda reader, _: reader.flow.open_list(None),
}
_ENDS = {
    "a": Flow.close_link,
    "blockquote": Flow.close_quote,
    "menu": Flow.close_list,
    "ol": Flow.close_list,
    "pre": Flow.close_pre,
    "table": Flow.close_table,
    "tr": Flow.row,
    "ul": Flow.close_list,
}
