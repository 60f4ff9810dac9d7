"""The actions of the tool lsp: one table. Pure."""

from __future__ import annotations

from collections import namedtuple

NAME = "lsp"

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
