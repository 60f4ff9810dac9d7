"""A server's edit of many files: computed in memory, shown, applied as a whole or not at all.

    plan(edit, …)     a WorkspaceEdit -> Changes; touches nothing; ToolError where it does not fit what is on disk
    apply(changes)    writes them one by one, each in one step; a failure midway puts back what was written
"""

from __future__ import annotations

import os
import stat
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
UNKNOWN = "[lsp: %s sent an edit that mm does not know (%s). Nothing was changed]"
FOLDER = "[lsp: %s would move or delete the folder %s. Nothing was changed; use bash]"
EXISTS = "[lsp: %s would overwrite %s. Nothing was changed]"
GONE = "[lsp: %s wants to change %s, which does not exist. Nothing was changed]"
RESTORED = "%s\n[nothing was changed: what had been written was put back]"
NOT_RESTORED = "%s\n[these files could not be put back and are changed: %s]"

# What becomes of one file: its bytes before and after, None where it does not exist; how many places change in it; the real path
# of the file that it was, whose mode it takes over, or None.
Change = namedtuple("Change", "place before after count origin")


class _Draft:
    """A file as the edit leaves it: `decoded` None where it does not exist (any more), `edited` the path by which it was edited
    first and these edits."""

    __slots__ = ("place", "before", "decoded", "data", "count", "origin", "edited")

    def __init__(self, place, before, decoded):
        self.place, self.before, self.data, self.decoded = place, before, before, decoded
        self.count, self.origin, self.edited = 0, None, (None, None)


class _Plan:
    """`shown(path)` is the text that the server was shown of an open file and its version, (None, None) for others."""

    def __init__(self, server_name, encoding, context, symbol, new_name, shown):
        self._server, self._encoding, self._context = server_name, encoding, context
        self._old, self._new, self._shown = last_part(symbol).lower(), word(last_part(new_name)), shown
        self._new_name = new_name
        self._drafts = {}
        self._root = os.path.realpath(context.folder)

    def draft(self, uri):
        path = uris.to_path(uri)
        if path is None:
            raise ToolError(OUTSIDE % one_line(str(uri), 300))
        place = self._context.resolve(NAME, path)
        if place.real not in self._drafts:
            if not uris.is_inside(place.real, self._root):
                raise ToolError(OUTSIDE % one_line(path, 300))
            inside = os.path.relpath(place.real, self._root)
            place = place._replace(given=one_line(inside, 300), location=os.path.join(self._context.folder, inside))
            if os.path.isdir(place.real):
                raise ToolError(FOLDER % (self._server, place.given))
            before = files.read(NAME, place)
            decoded = None if before is None else files.decode(NAME, place, before, "change it")
            self._drafts[place.real] = _Draft(place, before, decoded)
        return self._drafts[place.real]

    def operation(self, operation):
        kind = operation.get("kind")
        if kind is None and isinstance(operation.get("textDocument"), dict):
            document = operation["textDocument"]
            self.edit(document.get("uri"), document.get("version"), operation.get("edits"))
        elif kind == "create":
            draft = self.draft(operation.get("uri"))
            if self._free(draft, operation):
                draft.decoded, draft.data = files.Decoded("", "utf-8", b""), b""
        elif kind == "rename":
            old, new = self.draft(operation.get("oldUri")), self.draft(operation.get("newUri"))
            if old.decoded is None:
                raise ToolError(GONE % (self._server, old.place.given))
            if old is not new and self._free(new, operation):
                new.decoded, new.data, new.count = old.decoded, old.data, old.count
                new.origin = old.origin or old.place.real
                old.decoded = old.data = None
        elif kind == "delete":
            draft = self.draft(operation.get("uri"))
            if draft.decoded is None and not _option(operation, "ignoreIfNotExists"):
                raise ToolError(GONE % (self._server, draft.place.given))
            draft.decoded = draft.data = None
        else:
            raise ToolError(UNKNOWN % (self._server, one_line(str(kind))))

    def _free(self, draft, operation):
        """Whether a file can come to be there; False where the server wants to leave one that is there."""
        if draft.decoded is not None and not _option(operation, "overwrite"):
            if _option(operation, "ignoreIfExists"):
                return False
            raise ToolError(EXISTS % (self._server, draft.place.given))
        return True

    def edit(self, uri, version, edits):
        draft = self.draft(uri)
        if draft.decoded is None:
            raise ToolError(GONE % (self._server, draft.place.given))
        self._context.cancel.check()
        text, lines = draft.decoded.text, Lines(draft.decoded.text)
        shown, known = self._shown(draft.place.real)
        fits = is_plain(draft.decoded) if shown is None else shown == text and (version is None or version == known)
        if not (fits or draft.origin or draft.count):  # then what was shown is not what this edit is about
            raise ToolError(STALE % (self._server, draft.place.given))
        edits, path = _dicts(edits), uris.to_path(uri)
        if draft.edited[1] == edits and draft.edited[0] != path:
            return  # a file with two names, edited under both
        draft.edited = (path, edits) if draft.edited[0] is None else draft.edited
        spans = self._spans(draft, lines, edits)
        pieces = [piece for span in spans for piece in _pieces(text, span)]
        done, position = [], 0
        for start, end, new in pieces:
            done += (text[position:start], new)
            position = end
        text = "".join(done) + text[position:]
        draft.count += self._counted(lines, Lines(text), len(pieces))
        draft.decoded = draft.decoded._replace(text=text)
        draft.data = files.encode(NAME, draft.place, text, draft.decoded)

    def _counted(self, before, after, pieces):
        """How many places change: a server may send several pieces for one name, or one for a whole file."""
        if len(before) != len(after):
            return pieces
        lines = ((before.line(index), after.line(index)) for index in range(len(before)))
        return sum(max(self._occurrences(now) - self._occurrences(was), 1) for was, now in lines if was != now)

    def _occurrences(self, line):
        return len(self._new.findall(line))

    def _spans(self, draft, lines, edits):
        """The edits as (start, end, new text), in order, none overlapping, with the file's own line ends. None is far from the
        name. There may be very many, and in one line."""
        newline, named, spans = Document(lines.text).newline, {}, []
        for edit in edits:
            self._context.cancel.check()
            first, last, new = self._parts(edit)
            start, end = lines.offset(first, self._encoding), lines.offset(last, self._encoding)
            around = lines.place(start)[0], lines.place(end)[0]
            if around not in named:
                named[around] = self._old in lines.whole(start, end).lower()
            if end < start or first != last and not named[around] or self._misses(lines.text[start:end], new):
                raise ToolError(STALE % (self._server, draft.place.given))
            if start == 0 and draft.decoded.bom:
                new = new.lstrip("\ufeff")  # some (pylsp) take the mark for a part of the text
            spans.append((start, end, with_newlines(new, newline) if "\n" in new else new))
        spans.sort(key=lambda span: span[:2])  # stable: insertions at one place keep their order
        if any(after[0] < before[1] for before, after in zip(spans, spans[1:])):
            raise ToolError(OVERLAP % (self._server, draft.place.given))
        return spans

    def _misses(self, old, new):
        """Whether the new name would take the place of something else: the server counts columns in a way of its own."""
        return new == self._new_name and len(old) == len(self._old) and old.lower() != self._old

    def _parts(self, edit):
        """The two positions and the new text of a text edit."""
        a_range, new = edit.get("range"), edit.get("newText")
        first, last = (a_range.get(which) if isinstance(a_range, dict) else None for which in ("start", "end"))
        if not (is_position(first) and is_position(last) and isinstance(new, str)):
            raise ToolError(UNKNOWN % (self._server, "a text edit without a range"))
        return first, last, new

    def changes(self):
        drafts = [draft for draft in self._drafts.values() if draft.data != draft.before]
        for draft in drafts:
            files.check_writable(NAME, draft.place)
        return [Change(draft.place, draft.before, draft.data, draft.count, draft.origin) for draft in drafts]


def is_plain(decoded) -> bool:
    """Whether everybody who reads the file counts its characters alike. Some take a byte order mark for one (clangd, pyright), and
    what is not UTF-8 is read in many ways. Of other files a server must be shown the text."""
    return decoded.encoding == "utf-8" and not decoded.bom


def edited(edit) -> list:
    """The paths of the files whose text a WorkspaceEdit changes."""
    edit = edit if isinstance(edit, dict) else {}
    operations, changes = edit.get("documentChanges"), edit.get("changes")
    if isinstance(operations, list):
        documents = [each.get("textDocument") for each in _dicts(operations)]
        found = [document.get("uri") for document in _dicts(documents)]
    else:
        found = list(changes) if isinstance(changes, dict) else []
    return [path for path in map(uris.to_path, found) if path is not None]


def plan(edit, server_name, encoding, context, symbol, new_name, shown) -> list:
    """The Changes that a WorkspaceEdit makes, none where it makes none. Raises ToolError."""
    work = _Plan(server_name, encoding, context, symbol, new_name, shown)
    if not isinstance(edit, dict):
        return []
    operations = edit.get("documentChanges")
    if isinstance(operations, list):
        for operation in _dicts(operations):
            work.operation(operation)
    else:
        changes = edit.get("changes")
        for uri, edits in (changes if isinstance(changes, dict) else {}).items():
            work.edit(uri, None, edits)
    return work.changes()


def summary(changes) -> str:
    """`14 places in 5 files`."""
    return "%s in %s" % (plural(sum(change.count for change in changes), "place"), plural(len(changes), "file"))


def listing(changes) -> list:
    """A line for each file: what becomes of it, and how often it changes."""
    lines = []
    for change in changes:
        origin = change.origin and next((each.place.given for each in changes if each.place.real == change.origin), None)
        what = "deleted" if change.after is None else "moved from " + origin if origin else "new" if change.before is None else None
        if change.after is None and any(each.origin == change.place.real for each in changes):
            continue  # told where it goes
        parts = ([what] if what else []) + ([str(change.count)] if change.count else [])
        lines.append("%s: %s" % (change.place.given, ", ".join(parts)))
    return lines


def apply(changes, context) -> None:
    """Makes the changes: all, or none. Raises ToolError. It cannot be cancelled once it has begun to write."""
    for change in changes:
        files.unchanged(NAME, change.place, change.before)
    context.cancel.check()
    modes, done, folders = {}, [], _missing_folders(changes)
    try:
        for change in changes:
            if change.before is not None:
                modes[change.place.real] = stat.S_IMODE(os.stat(change.place.real).st_mode)
        for change in sorted(changes, key=lambda change: change.after is None):  # what is deleted goes last
            done.append(change)
            _put(change.place, change.after, modes.get(change.origin))
    except BaseException as problem:
        left = _put_back(done, modes)
        _remove(folders)
        if isinstance(problem, ToolError):
            raise ToolError(NOT_RESTORED % (problem, ", ".join(left)) if left else RESTORED % problem) from None
        raise
    _tell(changes, context)


def _tell(changes, context):
    """The model knows of each file what it knew, of one that has moved what it knew of the old one."""
    before = {change.place.real: files.digest(change.before) for change in changes if change.before is not None}
    whole = {real for real, digest in before.items() if context.seen.knows_whole(real, digest)}
    known = {real for real, digest in before.items() if context.seen.last_known(real) == digest}
    for change in changes:
        real, origin = change.place.real, change.origin or change.place.real
        if change.after is None:
            context.seen.forget(real)
        elif origin in whole:
            context.seen.saw_whole(real, files.digest(change.after))
        elif origin in known:
            context.seen.edited(real, before[origin], files.digest(change.after))
        context.seen.failed_edits.pop(real, None)


def _missing_folders(changes):
    """The folders that the changes will make, the innermost first."""
    missing = set()
    for change in changes:
        folder = os.path.dirname(change.place.real)
        while not os.path.lexists(folder):
            missing.add(folder)
            folder = os.path.dirname(folder)
    return sorted(missing, key=len, reverse=True)


def _remove(folders):
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:
            pass  # it was never made, or somebody else has put something there


def _pieces(text, span):
    """What differs: some servers (pylsp) replace the whole file, and only the lines that change are to count as changed."""
    start, end, new = span
    before, after = Lines(text[start:end]), Lines(new)
    if len(before) == 1 or len(before) != len(after):
        return [span]
    pairs = ((start + before.starts[index], before.line(index), after.line(index)) for index in range(len(before)))
    return [(at, at + len(was), now) for at, was, now in pairs if was != now]


def _put(place, data, mode):
    """Makes the file hold `data`, None: makes it go; `mode` where it is not to be its own."""
    try:
        if data is None:
            os.unlink(place.real)
            return
        files.replace(NAME, place, data)
        if mode is not None:
            os.chmod(place.real, mode)
    except OSError as error:
        raise files.failure(NAME, place, error) from None


def _put_back(changes, modes):
    """Undoes what was done of the changes, the last first; returns the names of the files for which that failed."""
    left = []
    for change in reversed(changes):
        if change.before is None and not os.path.lexists(change.place.real):
            continue  # it was never made
        try:
            if files.read(NAME, change.place) != change.before:
                _put(change.place, change.before, modes.get(change.place.real))
        except ToolError:
            left.append(change.place.given)
    return left


def _dicts(values):
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _option(operation, name) -> bool:
    options = operation.get("options")
    return isinstance(options, dict) and options.get(name) is True
