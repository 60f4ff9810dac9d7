"""lsp: what a language server knows of the code: where names are defined and used, what is wrong, and a name changed everywhere.

Here is the tool as it is offered; what a call does is in lsp_call.
"""

from __future__ import annotations

import os

from mm import log
from mm.peers import languages
from mm.tools.lsp_actions import ACTIONS, NAME
from mm.tools.tool import Parameter, Tool
from mm.wire import programs

NOT_ON_PATH = "lsp.%s: %s is not there, so it is not used"

DESCRIPTION = ("Ask the language server: where a name is defined or used, its type, a file's symbols or errors. "
               "rename changes a name in all files.")
PARAMETERS = (
    Parameter("action", "string", "", True, ("operation", "command"), tuple(ACTIONS)),
    Parameter("path", "string", "File, needed but for find", False, ("file_path", "filename", "file")),
    Parameter("symbol", "string", "Name as it stands in the file", False, ("name", "old_name")),
    Parameter("line", "integer", "Line of the symbol, if known", False, ("line_number",)),
    Parameter("query", "string", "For find: a part of a name", False, ("pattern", "search")),
    Parameter("new_name", "string", "For rename", False, ("to", "new")),
)


def tool(config, cwd: str, environ) -> Tool | None:
    """The tool, for the languages that are in the folder; None where they have no server here, or may have none.

    A server runs code of the project's choice. Where the user wants to be asked before anything runs, the folder must be trusted.
    """
    if config.lsp is False or not (config.yolo or config.trusts(cwd, environ)):
        return None

    def find(program):
        return programs.find(program, cwd, environ)

    for name, entry in config.lsp.items():
        if find(entry.argv[0]) is None:
            log.line(NOT_ON_PATH % (name, entry.argv[0]))
    usable = languages.candidates(config.lsp, find)
    if not languages.present(cwd, {extension for found in usable for extension in found.extensions}):
        return None
    servers = []

    def prepare(arguments, space):
        from mm.tools import language_servers, lsp_call  # with all that belongs to them: many sessions never ask

        if not servers:
            servers.append(language_servers.LanguageServers(usable, cwd, environ))
        return lsp_call.prepare(servers[0], arguments, space)

    return Tool(NAME, DESCRIPTION, "read", PARAMETERS, _subject, prepare)


def _subject(arguments) -> str:
    """What a call is called by: its action, and what it is about."""
    what = arguments.get("symbol") or arguments.get("query") or arguments.get("path") or ""
    return " ".join(filter(None, (arguments.get("action"), what)))
