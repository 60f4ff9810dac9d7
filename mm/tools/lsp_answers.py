"""What language servers answer, as the model reads it: paths relative to the folder, lines and columns from 1. Pure.

The protocol lets a server choose between several shapes for most answers; here they become one.
"""

from __future__ import annotations

import os
from collections import namedtuple

from mm.peers import uris
from mm.text import clean_terminal, cut_line, one_line
from mm.tools.positions import start_line

# At most so many places, symbols and diagnostics are shown; characters of a source line, of a hover.
PLACES, SYMBOLS, DIAGNOSTICS = 50, 200, 20
LINE, HOVER = 200, 6000
MORE = "[… %d more]"

KINDS = ("file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum", "interface",
         "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key", "null", "enum member",
         "struct", "event", "operator", "type parameter")
SEVERITIES = ("error", "warning", "info", "hint")

Location = namedtuple("Location", "uri line")


def locations(answer) -> list:
    """The Locations in an answer to definition or references, each once: of a link the name itself, not its comment."""
    found = {}
    for each in answer if isinstance(answer, list) else [answer]:
        if isinstance(each, dict):
            uri = each.get("targetUri") or each.get("uri")
            a_range = each.get("targetSelectionRange") or each.get("targetRange") or each.get("range")
            if isinstance(uri, str):
                found[Location(uri, start_line(a_range))] = True
    return list(found)


def shown_path(uri: str, root: str) -> str:
    """Relative where it is below `root`; a URI that is no file as it is."""
    path = uris.to_path(uri)
    if path is None:
        return one_line(uri, 300)
    return os.path.relpath(path, root).replace(os.sep, "/") if uris.is_inside(path, root) else path


def places(found, root: str, source) -> str:
    """Locations with their source lines, those of a file together, the folder's own files first. `source(uri, line)` -> text."""
    own = {each.uri: os.path.isabs(shown_path(each.uri, root)) for each in found}
    order = {uri: number for number, uri in enumerate(sorted(own, key=lambda uri: own[uri]))}  # stable
    found = sorted(found, key=lambda each: (order[each.uri], each.line))
    lines = ["%s:%d: %s" % (shown_path(each.uri, root), each.line + 1, cut_line(source(each.uri, each.line).strip(), LINE))
             for each in found[:PLACES]]
    return _with_more(lines, len(found), PLACES)


def hover(answer) -> str:
    """The text of a hover, "" where there is none."""
    contents = answer.get("contents") if isinstance(answer, dict) else None
    parts = [_hover_part(part) for part in (contents if isinstance(contents, list) else [contents])]
    text = clean_terminal("\n\n".join(part for part in parts if part))
    return text if len(text) <= HOVER else "%s…\n[… %d more characters]" % (text[:HOVER], len(text) - HOVER)


def _hover_part(part) -> str:
    if isinstance(part, dict):
        value = part.get("value")
        if isinstance(value, str) and isinstance(part.get("language"), str) and value.strip():
            return "```%s\n%s\n```" % (part["language"], value.strip("\n"))
        part = value
    return part.strip() if isinstance(part, str) else ""


def outline(answer) -> str:
    """The symbols of a file, indented by what holds what; "" where there are none."""
    lines = []

    def add(symbols, depth):
        for symbol in sorted((each for each in symbols if isinstance(each, dict)), key=_symbol_line):
            lines.append("%d: %s%s" % (_symbol_line(symbol) + 1, "  " * depth, _named(symbol)))
            if isinstance(symbol.get("children"), list) and depth < 20:
                add(symbol["children"], depth + 1)

    add(answer if isinstance(answer, list) else [], 0)
    return _with_more(lines[:SYMBOLS], len(lines), SYMBOLS)


def _symbol_line(symbol) -> int:
    location = symbol.get("location")
    return start_line(symbol.get("selectionRange") or symbol.get("range") or (location.get("range") if isinstance(location, dict) else None))


def _named(symbol) -> str:
    kind = symbol.get("kind")
    name = KINDS[kind - 1] if isinstance(kind, int) and 0 < kind <= len(KINDS) else "symbol"
    inside = symbol.get("containerName")
    return "%s %s%s" % (name, one_line(str(symbol.get("name"))), " in " + one_line(inside) if inside and isinstance(inside, str) else "")


def found_symbols(answers, root: str) -> str:
    """Symbols of a whole workspace, those in the folder first; "" where there are none."""
    lines = {}
    for symbol in answers:
        location = symbol.get("location") if isinstance(symbol, dict) else None
        if isinstance(location, dict) and isinstance(location.get("uri"), str):
            path = shown_path(location["uri"], root)
            line = "%s:%d: %s" % (path, start_line(location.get("range")) + 1, _named(symbol))
            lines[line] = os.path.isabs(path)
    ordered = sorted(lines, key=lambda line: lines[line])  # stable: the server's order is by how well they fit
    return _with_more(ordered[:PLACES], len(ordered), PLACES)


def diagnostics(found, path: str, column) -> str:
    """A file's diagnostics, errors first, "" where there are none. `column(position)` -> (line, column) from 0."""
    rows = []
    for each in found:
        if isinstance(each, dict):
            severity, a_range = each.get("severity"), each.get("range")
            number = severity - 1 if isinstance(severity, int) and 0 < severity <= len(SEVERITIES) else 0
            rows.append((number,) + column(a_range.get("start") if isinstance(a_range, dict) else None) + (_message(each),))
    rows.sort()
    lines = ["%s:%d:%d %s: %s" % (path, line + 1, place + 1, SEVERITIES[number], text) for number, line, place, text in rows]
    return _with_more(lines[:DIAGNOSTICS], len(lines), DIAGNOSTICS)


def _message(diagnostic) -> str:
    text = " ".join(str(diagnostic.get("message")).split())
    code = diagnostic.get("code")
    return one_line(text, 300) + (" [%s]" % one_line(str(code)) if isinstance(code, (str, int)) and code != "" else "")


def _with_more(lines, count, limit) -> str:
    return "\n".join(lines + ([MORE % (count - limit)] if count > limit else []))
