"""A call of lsp: what the server is asked, and what the model reads.

Navigation runs without a dialog. A rename is asked of the server while it is prepared, because the dialog
shows what it would change; nothing is written before the answer.
"""

from __future__ import annotations

from collections import namedtuple

from mm.peers import languages, uris
from mm.peers.lsp import INDEXING, Refused, ServerError
from mm.text import one_line
from mm.tools import lsp_answers, rename
from mm.tools.language_servers import LanguageServers, text_of
from mm.tools.positions import Lines, occurrences, units_of
from mm.tools.tool import SHOWN, Action, Result, ToolError
from mm.tools.rename import NAME

# What an action needs, what it asks the server, and which of the server's capabilities that is.
Question = namedtuple("Question", "needs method capability")
_AT_SYMBOL = ("path", "symbol")
ACTIONS = {
    "definition": Question(_AT_SYMBOL, "textDocument/definition", "definitionProvider"),
    "references": Question(_AT_SYMBOL, "textDocument/references", "referencesProvider"),
    "hover": Question(_AT_SYMBOL, "textDocument/hover", "hoverProvider"),
    "symbols": Question(("path",), "textDocument/documentSymbol", "documentSymbolProvider"),
    "find": Question(("query",), "workspace/symbol", "workspaceSymbolProvider"),
    "diagnostics": Question(("path",), None, None),
    "rename": Question(("path", "symbol", "new_name"), "textDocument/rename", "renameProvider"),
}

# Places that are tried if the model did not say which one it means.
TRIES = 5
# Languages that `find` searches.
LANGUAGES_SEARCHED = 3
# Lines that are named if a name is on another line; paths that the front end gets.
LINES_NAMED, PATHS_TOLD = 20, 50

NO_ACTION = "[lsp: there is no action %s. Actions: %s]"
NEEDS = '[lsp: %s needs "%s"]'
CANNOT = "[lsp: %s cannot do %s; use bash with grep]"
NOT_HERE = "[lsp: %s is not in %s]"
NOT_THERE = '[lsp: "%s" is not on line %d of %s; it is on lines %s]'
NOTHING = '[lsp: %s knows no %s of "%s" in %s]'
NO_SYMBOLS = "[lsp: %s finds no symbols in %s]"
NOT_FOUND = '[lsp: nothing is named like "%s"]'
NO_PROBLEMS = "[lsp: %s finds no problems in %s]"
NO_DIAGNOSTICS = "[lsp: no diagnostics yet from %s]"
NOTHING_NEW = "[%s reports nothing new: this is what it reported before]"
MAYBE_MORE = "[%s is still indexing: there may be more]"
NO_CHANGE = '[lsp: %s changes nothing to rename "%s"]'
WOULD_RENAME = "rename %s to %s: %s"
RENAMED = "[renamed %s to %s: %s]"


def prepare(arguments, context, usable, environ) -> Action:
    """`usable`: the language servers (languages.Found). Raises ToolError, Cancelled."""
    name = arguments["action"].strip().lower()
    action = ACTIONS.get(name)
    if action is None:
        raise ToolError(NO_ACTION % (one_line(arguments["action"]), ", ".join(ACTIONS)))
    for one, other in (("query", "symbol"), ("symbol", "query")):  # whichever it was called
        arguments = dict({one: arguments[other]} if other in arguments else {}, **arguments)
    for needed in action.needs:
        if not arguments.get(needed, "").strip():
            raise ToolError(NEEDS % (name, needed))
    if context.seen.language_servers is None:
        context.seen.language_servers = LanguageServers(usable, context.folder, environ)
    call = _Call(context, name, arguments)
    if name == "rename":
        return call.rename()
    paths = (call.place.location,) if call.place else ()
    return Action(call.title, call.run, paths)


class _Call:
    """One call: `arguments` as they were sent, for the action `name`."""

    def __init__(self, context, name, arguments):
        self._servers, self._context, self._cancel = context.seen.language_servers, context, context.cancel
        self._name, self._arguments = name, arguments
        self._action = ACTIONS[name]
        self._symbol = one_line(arguments.get("symbol", ""), 200)
        self.place = context.resolve(NAME, arguments["path"]) if arguments.get("path", "").strip() else None
        self._server = self._uri = self._just_opened = None
        self._sources = {}
        self.title = one_line("lsp: %s %s" % (name, self._subject()), 200)

    def _subject(self) -> str:
        what = one_line(self._arguments["query"]) if self._name == "find" else ""
        if "symbol" in self._action.needs:
            what = self._symbol
        if self._name == "rename":
            what += " to " + one_line(self._arguments["new_name"])
        return " in ".join(filter(None, (what, self.place and self.place.given)))

    def run(self, progress):
        try:
            output = getattr(self, "_" + self._name)()
        except ServerError as problem:
            raise ToolError("[lsp: %s]" % problem) from None
        return Result(self._fitting(output))

    # The actions

    def _definition(self):
        return self._places({}, "definition")

    def _references(self):
        return self._places({"context": {"includeDeclaration": True}}, "use")

    def _hover(self):
        self._open().files.catch_up(self._cancel)
        return self._at_symbol({}, lsp_answers.hover) or self._nothing("description")

    def _symbols(self):
        self._open()
        answer = self._ask({"textDocument": {"uri": self._uri}})
        return lsp_answers.outline(answer) or NO_SYMBOLS % (self._server.name, self.place.given)

    def _diagnostics(self):
        self._open()
        found, is_new = self._server.files.diagnostics(self._uri, self._just_opened, self._cancel)
        if found is None:
            return NO_DIAGNOSTICS % self._server.name
        lines = Lines(self._server.files.text(self._uri))

        def place(position):
            return lines.place(lines.offset(position, self._server.encoding))

        text = lsp_answers.diagnostics(found, lsp_answers.shown_path(self._uri, self._servers.root), place)
        text = text or NO_PROBLEMS % (self._server.name, self.place.given)
        return text if is_new else "%s\n%s" % (text, NOTHING_NEW % self._server.name)

    def _find(self):
        found, notes, refusals = [], [], []
        for place in [self.place] if self.place else self._one_file_a_language():
            self.place = place
            settled = self._open().settle(self._cancel)
            try:
                answer = self._ask({"query": self._arguments["query"]})
            except ToolError as refusal:
                refusals.append(refusal)
                continue
            found += answer if isinstance(answer, list) else []
            notes += [] if settled else [MAYBE_MORE % self._server.name]
        text = lsp_answers.found_symbols(found, self._servers.root)
        if not text and refusals:
            raise refusals[0]
        return "\n".join([text or NOT_FOUND % one_line(self._arguments["query"])] + notes)

    def _one_file_a_language(self):
        """A file for each server to begin with: some answer nothing before they have seen one."""
        extensions = {extension for found in self._servers.usable for extension in found.extensions}
        here = languages.first_files(self._servers.root, extensions)
        paths = []
        for found in self._servers.usable:
            path = next((path for extension, path in here.items() if extension in found.extensions), None)
            if path and path not in paths:
                paths.append(path)
        return [self._context.resolve(NAME, path) for path in paths[:LANGUAGES_SEARCHED]]

    def rename(self) -> Action:
        """The Action of a rename, with the server's edit in it."""
        symbol, new = self._symbol, self._arguments["new_name"].strip()
        try:
            if not self._open().settle(self._cancel):  # it would miss places
                raise ServerError(INDEXING % self._server.name)
            edit = self._at_symbol({"newName": new}, lambda answer: answer)
        except ServerError as problem:
            raise ToolError("[lsp: %s]" % problem) from None
        changes = rename.plan(edit, self._server, self._context, symbol, new)
        if not changes:
            raise ToolError(NO_CHANGE % (self._server.name, symbol))
        summary, listing = rename.summary(changes), rename.listing(changes)
        new = one_line(new)

        def run(progress):
            rename.apply(changes, self._context)
            output = "\n".join([RENAMED % (symbol, new, summary)] + listing)
            return Result(self._fitting(output))

        paths = tuple(change.place.location for change in changes[:PATHS_TOLD])
        text = "\n".join([WOULD_RENAME % (symbol, new, summary)] + listing)
        return Action(self.title, run, paths, asks=True, text=text, kind="edit")

    # Asking

    def _open(self):
        self._server, self._uri, self._just_opened = self._servers.open(self._context, self.place)
        return self._server

    def _ask(self, params):
        if not self._server.capabilities.get(self._action.capability):
            raise ToolError(CANNOT % (self._server.name, self._name))
        return self._server.ask(self._action.method, params, self._cancel)

    def _at_symbol(self, more, read):
        """What `read` makes of the first answer at a place of the symbol; None if there is none.

        The first places may be in a comment or a string: the server knows.
        """
        lines, refused = Lines(self._server.files.text(self._uri)), None
        for line, column in self._wanted(lines)[:TRIES]:
            position = {"line": line, "character": units_of(lines.line(line), column, self._server.encoding)}
            params = dict(more, textDocument={"uri": self._uri}, position=position)
            try:
                answer = read(self._ask(params))
            except Refused as problem:
                refused = refused or problem
                continue
            if answer:
                return answer
        if refused:
            raise refused
        return None

    def _wanted(self, lines):
        """The places that the model may mean."""
        asked = self._arguments.get("line")
        near = None if asked is None else asked - 1
        places, elsewhere = occurrences(lines, self._arguments["symbol"], near)
        if places:
            return places
        if not elsewhere:
            raise ToolError(NOT_HERE % ('"%s"' % self._symbol, self.place.given))
        named = ", ".join(str(line + 1) for line in elsewhere[:LINES_NAMED])
        named += ", …" if len(elsewhere) > LINES_NAMED else ""
        raise ToolError(NOT_THERE % (self._symbol, asked, self.place.given, named))

    def _places(self, more, what):
        settled = self._open().settle(self._cancel)
        found = self._at_symbol(more, lsp_answers.locations)
        if not found and not settled:
            raise ServerError(INDEXING % self._server.name)
        output = lsp_answers.places(found, self._servers.root, self._source) if found else self._nothing(what)
        return output if settled else "%s\n%s" % (output, MAYBE_MORE % self._server.name)

    def _nothing(self, what):
        return NOTHING % (self._server.name, what, self._symbol, self.place.given)

    def _fitting(self, output):
        """As much of it as the model's window takes, in whole lines."""
        limit = self._context.shown_limit(SHOWN)
        if len(output) <= limit:
            return output
        shown = output[:limit].rpartition("\n")[0] or output[:limit]
        return "%s\n%s" % (shown, lsp_answers.MORE % (output.count("\n") - shown.count("\n")))

    # Sources

    def _source(self, uri, line):
        """A line of any file, "" if it cannot be read."""
        if uri not in self._sources:
            self._cancel.check()
            path = uris.to_path(uri)
            self._sources[uri] = Lines(path and text_of(self._context, path) or "")
        return self._sources[uri].line(line)
