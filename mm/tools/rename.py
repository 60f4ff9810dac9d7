"""A rename as a language server wants it: edits of the text of many files, computed in memory, shown, and
then written.

    plan(edit, …)     a WorkspaceEdit -> FileChanges; touches nothing; ToolError if it does not fit
    apply(changes)    writes the files one by one; if one cannot be written, the others get their bytes back
"""

from __future__ import annotations

import os
from collections import namedtuple

from mm.peers import uris
from mm.text import one_line, plural
from mm.tools import files
from mm.tools.document import Document, with_newlines
from mm.tools.positions import Lines, is_position, last_part, word
from mm.tools.tool import ToolError

NAME = "lsp"

OUTSIDE = "[lsp: the rename would change %s, which is outside of the working directory. Nothing was changed]"
OVERLAP = "[lsp: %s sent edits of %s that overlap. Nothing was changed]"
STALE = "[lsp: %s's edit does not fit %s as it is now. Nothing was changed, try again]"
UNKNOWN = "[lsp: %s sent an edit of %s that mm does not know. Nothing was changed]"
FILES = "[lsp: %s would create, move or delete files, too, which is left to bash. Nothing was changed]"
GONE = "[lsp: %s wants to change %s, which does not exist. Nothing was changed]"
RESTORED = "%s\n[nothing was changed: what had been written was put back]"
NOT_RESTORED = "%s\n[these files could not be put back and are changed: %s]"

# One file: its bytes before and after, and how many places change in it.
FileChange = namedtuple("FileChange", "place before after count")


def plan(edit, server, context, symbol: str, new_name: str) -> list:
    """The FileChanges of a server's WorkspaceEdit, none if it changes nothing. Raises ToolError."""
    edits_of = {}
    for uri, version, edits in _edits(edit, server.name):
        place = _place(uri, context)
        known = server.files.version(uris.to_uri(place.real))
        if known is not None and version not in (None, known):
            raise ToolError(STALE % (server.name, place.given))
        others = edits_of.setdefault(place.real, (place, []))[1]
        if others != edits:  # else it is a file with two names, edited under both
            others += edits
    planner = _Planner(server, symbol, new_name)
    changes = []
    for place, edits in edits_of.values():
        context.cancel.check()
        change = planner.change(place, edits)
        if change.after != change.before:
            files.check_writable(NAME, place)
            changes.append(change)
    return changes


def _edits(edit, server_name):
    """(URI, version, text edits) for each document in a WorkspaceEdit."""
    edit = edit if isinstance(edit, dict) else {}
    operations, changes = edit.get("documentChanges"), edit.get("changes")
    if isinstance(operations, list):
        for operation in filter(_is_object, operations):
            document = operation.get("textDocument")
            if not isinstance(document, dict):
                raise ToolError(FILES % server_name)
            yield document.get("uri"), document.get("version"), _objects(operation.get("edits"))
    elif isinstance(changes, dict):
        for uri, edits in changes.items():
            yield uri, None, _objects(edits)


def _place(uri, context):
    path = uris.to_path(uri)
    if path is None:
        raise ToolError(OUTSIDE % one_line(uri if isinstance(uri, str) else "something", 300))
    place, root = context.resolve(NAME, path), os.path.realpath(context.folder)
    if not uris.is_inside(place.real, root):
        raise ToolError(OUTSIDE % one_line(path, 300))
    inside = os.path.relpath(place.real, root)
    return place._replace(given=one_line(inside, 300), location=os.path.join(context.folder, inside))


class _Planner:
    """Knows what is renamed, and so what an edit must touch: a server may count columns in a way of its own,
    or know an old text.
    """

    def __init__(self, server, symbol, new_name):
        self._server, self._old, self._new_name = server, last_part(symbol).lower(), new_name
        self._new_word = word(last_part(new_name))

    def change(self, place, edits) -> FileChange:
        before = files.read(NAME, place)
        if before is None:
            raise ToolError(GONE % (self._server.name, place.given))
        decoded = files.decode(NAME, place, before, "change it")
        text, lines = decoded.text, Lines(decoded.text)
        if self._server.files.text(uris.to_uri(place.real)) not in (None, text):
            raise ToolError(STALE % (self._server.name, place.given))
        newline, named, pieces = Document(text).newline, {}, []
        for edit in edits:
            start, end, new = self._span(edit, lines, place, named, bool(decoded.bom))
            pieces += _pieces(text, start, end, new, newline)
        pieces.sort(key=lambda piece: piece[:2])  # stable: insertions at one place keep their order
        if any(after[0] < before[1] for before, after in zip(pieces, pieces[1:])):
            raise ToolError(OVERLAP % (self._server.name, place.given))
        written, position, count = [], 0, 0
        for start, end, new in pieces:
            written += (text[position:start], new)
            count += max(self._occurrences(new) - self._occurrences(text[start:end]), 1)
            position = end
        after = files.encode(NAME, place, "".join(written) + text[position:], decoded)
        return FileChange(place, before, after, count)

    def _span(self, edit, lines, place, named, marked):
        """(start, end, new text) of a text edit. `named` remembers which lines hold the old name: there may
        be very many edits. `marked`: the file begins with a byte order mark."""
        a_range, new = edit.get("range"), edit.get("newText")
        first, last = (a_range.get(which) if isinstance(a_range, dict) else None
                       for which in ("start", "end"))
        if not (is_position(first) and is_position(last) and isinstance(new, str)):
            raise ToolError(UNKNOWN % (self._server.name, place.given))
        start, end = self._offsets(lines, first, last, marked)
        new = new.lstrip("\ufeff") if marked and start == 0 else new
        around = lines.place(start)[0], lines.place(end)[0]
        if around not in named:
            named[around] = self._old in lines.whole(start, end).lower()
        replaced = lines.text[start:end].lower()
        misses = new == self._new_name and self._old not in replaced
        if end < start or misses or (replaced and not named[around]):
            raise ToolError(STALE % (self._server.name, place.given))
        return start, end, new

    def _offsets(self, lines, first, last, marked):
        """The offsets of two positions. Some servers (clangd, pyright, pylsp) count a byte order mark as a
        character of the first line.
        """
        found = None
        for mark in (0, 1) if marked else (0,):
            shifted = (dict(each, character=each["character"] - (0 if each["line"] else mark))
                       for each in (first, last))
            start, end = (lines.offset(each, self._server.encoding) for each in shifted)
            found = found or (start, end)
            if self._old in lines.text[start:end].lower():
                return start, end
        return found

    def _occurrences(self, text) -> int:
        return len(self._new_word.findall(text))


def _pieces(text, start, end, new, newline) -> list:
    """What differs: some servers (pylsp) replace the whole file, and only the lines that change count, each
    with its own line end.
    """
    before, after = Lines(text[start:end]), Lines(new)
    if len(before) == 1 or len(before) != len(after):
        return [(start, end, with_newlines(new, newline) if "\n" in new else new)]
    pairs = ((start + before.starts[index], before.line(index), after.line(index))
             for index in range(len(before)))
    return [(at, at + len(was), now) for at, was, now in pairs if was != now]


def summary(changes) -> str:
    """`14 places in 5 files`."""
    return "%s in %s" % (plural(sum(change.count for change in changes), "place"),
                         plural(len(changes), "file"))


def listing(changes) -> list:
    """A line for each file: `src/a.py: 3`."""
    return ["%s: %d" % (change.place.given, change.count) for change in changes]


def apply(changes, context) -> None:
    """Writes all files, or none. Raises ToolError. It cannot be cancelled once it has begun to write."""
    for change in changes:
        files.unchanged(NAME, change.place, change.before)
    context.cancel.check()
    written = []
    try:
        for change in changes:
            written.append(change)
            files.replace(NAME, change.place, change.after)
    except ToolError as problem:
        left = _put_back(written)
        raise ToolError(NOT_RESTORED % (problem, ", ".join(left)) if left else RESTORED % problem) from None
    for change in changes:
        real, before = change.place.real, files.digest(change.before)
        if context.seen.last_known(real) == before:
            context.seen.edited(real, before, files.digest(change.after))
        context.seen.failed_edits.pop(real, None)


def _put_back(changes) -> list:
    """Gives the files their old bytes; returns the names of those for which that failed."""
    left = []
    for change in changes:
        try:
            if files.read(NAME, change.place) != change.before:
                files.replace(NAME, change.place, change.before)
        except ToolError:
            left.append(change.place.given)
    return left


def _is_object(value) -> bool:
    return isinstance(value, dict)


def _objects(values) -> list:
    return list(filter(_is_object, values)) if isinstance(values, list) else []
