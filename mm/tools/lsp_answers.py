"""What language servers answer, as the model reads it: relative paths, lines and columns from 1.

The protocol lets a server choose between several shapes for most answers; here they become one.
"""

from __future__ import annotations

import os
from collections import namedtuple

from mm.peers import uris
from mm.text import clean_terminal, cut_line, one_line
from mm.tools.positions import start_line

# Places, symbols and diagnostics that are shown; characters of a source line, of a hover.
PLACES, SYMBOLS, DIAGNOSTICS = 50, 200, 20
LINE, HOVER = 200, 6000
# Levels of an outline.
LEVELS = 20
MORE = "[… %d more]"

KINDS = ("file", "module", "namespace", "package", "class", "method", "property", "field", "constructor",
         "enum", "interface", "function", "variable", "constant", "string", "number", "boolean", "array",
         "object", "key", "null", "enum member", "struct", "event", "operator", "type parameter")
SEVERITIES = ("error", "warning", "info", "hint")

Location = namedtuple("Location", "uri line")


def locations(answer) -> list:
    """The Locations in an answer to definition or references, each once; of a link, that of the name."""
    found = {}
    for each in map(_object, answer if isinstance(answer, list) else [answer]):
        uri = each.get("targetUri") or each.get("uri")
        a_range = each.get("targetSelectionRange") or each.get("targetRange") or each.get("range")
        if isinstance(uri, str):
            found[Location(uri, start_line(a_range))] = True
    return list(found)


def shown_path(uri: str, root: str) -> str:
    """The path that a URI names, relative if it is below `root`; another URI as it is."""
    path = uris.to_path(uri)
    if path is None:
        return one_line(uri, 300)
    return os.path.relpath(path, root).replace(os.sep, "/") if uris.is_inside(path, root) else path


def places(found, root: str, source) -> str:
    """Locations with their source lines (`source(uri, line)`), by file, the folder's own files first."""
    outside = {each.uri: os.path.isabs(shown_path(each.uri, root)) for each in found}
    order = {uri: number for number, uri in enumerate(sorted(outside, key=outside.get))}  # stable
    ordered = sorted(found, key=lambda each: (order[each.uri], each.line))
    lines = []
    for uri, line in ordered[:PLACES]:
        shown = cut_line(source(uri, line).strip(), LINE)
        lines.append("%s:%d: %s" % (shown_path(uri, root), line + 1, shown))
    return _with_more(lines, len(found), PLACES)


def hover(answer) -> str:
    """The text of a hover, "" if there is none."""
    contents = _object(answer).get("contents")
    parts = map(_hover_part, contents if isinstance(contents, list) else [contents])
    text = clean_terminal("\n\n".join(filter(None, parts)))
    if len(text) <= HOVER:
        return text
    return "%s…\n[… %d more characters]" % (text[:HOVER], len(text) - HOVER)


def _hover_part(part) -> str:
    value = _object(part).get("value") if isinstance(part, dict) else part
    language = _object(part).get("language")
    if not isinstance(value, str) or not value.strip():
        return ""
    return "```%s\n%s\n```" % (language, value.strip("\n")) if isinstance(language, str) else value.strip()


def outline(answer) -> str:
    """The symbols of a file, each indented below the one that holds it; "" if there are none."""
    lines = []

    def add(symbols, level):
        symbols = filter(None, map(_object, symbols if isinstance(symbols, list) else []))
        for symbol in sorted(symbols, key=_symbol_line):
            lines.append("%d: %s%s" % (_symbol_line(symbol) + 1, "  " * level, _named(symbol)))
            if level < LEVELS:
                add(symbol.get("children"), level + 1)

    add(answer, 0)
    return _with_more(lines, len(lines), SYMBOLS)


def _symbol_line(symbol) -> int:
    whole = symbol.get("range") or _object(symbol.get("location")).get("range")
    return start_line(symbol.get("selectionRange") or whole)


def _named(symbol) -> str:
    kind, inside = symbol.get("kind"), _text(symbol.get("containerName"))
    name = KINDS[kind - 1] if isinstance(kind, int) and 0 < kind <= len(KINDS) else "symbol"
    called = one_line(_text(symbol.get("name"))) or "(no name)"
    return "%s %s%s" % (name, called, " in " + one_line(inside) if inside else "")


def found_symbols(answers, root: str) -> str:
    """Symbols of a whole workspace, those in the folder first; "" if there are none."""
    outside = {}  # line -> whether it is about a file outside of the folder
    for symbol in map(_object, answers):
        location = _object(symbol.get("location"))
        if isinstance(location.get("uri"), str):
            path = shown_path(location["uri"], root)
            line = "%s:%d: %s" % (path, start_line(location.get("range")) + 1, _named(symbol))
            outside[line] = os.path.isabs(path)
    ordered = sorted(outside, key=outside.get)  # stable: the server's order is by how well they fit
    return _with_more(ordered, len(ordered), PLACES)


def diagnostics(found, path: str, place) -> str:
    """A file's diagnostics, errors first, "" if there are none. `place(position)` gives (line, column)."""
    rows = []
    for each in filter(None, map(_object, found)):
        severity = each.get("severity")
        number = severity - 1 if isinstance(severity, int) and 0 < severity <= len(SEVERITIES) else 0
        line, column = place(_object(each.get("range")).get("start"))
        rows.append((number, line, column, _message(each)))
    lines = ["%s:%d:%d %s: %s" % (path, line + 1, column + 1, SEVERITIES[number], message)
             for number, line, column, message in sorted(rows)]
    return _with_more(lines, len(lines), DIAGNOSTICS)


def _message(diagnostic) -> str:
    words = clean_terminal(_text(diagnostic.get("message"))).split()
    text = one_line(" ".join(words), 300) or "(no message)"
    code = diagnostic.get("code")
    code = str(code) if isinstance(code, int) and abs(code) < 10 ** 15 else _text(code)
    return "%s [%s]" % (text, one_line(code)) if code else text


def _object(value) -> dict:
    return value if isinstance(value, dict) else {}


def _text(value) -> str:
    return value if isinstance(value, str) else ""


def _with_more(lines, count, limit) -> str:
    return "\n".join(lines[:limit] + ([MORE % (count - limit)] if count > limit else []))
