"""lsp: what a language server knows of the code: where names are defined and used, what is wrong, and a name changed everywhere.

Here is the tool as it is offered; what a call does is in lsp_call.
"""

from __future__ import annotations

import os

from mm import inside, log
from mm.peers import languages
from mm.tools.lsp_actions import ACTIONS, NAME
from mm.tools.tool import Parameter, Tool
from mm.wire import programs

WAITS = "the language server %s may run code of this project, so it waits until you trust the folder: mm --trust"
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


def tool(config, cwd: str, environ, notices=None) -> Tool | None:
    """The tool, for the languages that are in the folder; None if no server for them is here, or may be started.

    A server may run code of the project. If the user wants to be asked before anything runs, the folder must be trusted; `notices` is
    told what waits for that. A server that is there is started by the first call, never before.
    """
    found = usable(config, cwd, environ)
    if not found:
        return None
    waits = waiting(config, cwd, environ, found)
    if waits:
        if notices:
            notices.add(waits)
        return None
    servers = []

    def prepare(arguments, space):
        from mm.tools import language_servers, lsp_call  # with all that belongs to them: many sessions never ask

        if not servers:
            servers.append(language_servers.LanguageServers(found, cwd, environ))
        return lsp_call.prepare(servers[0], arguments, space)

    return Tool(NAME, DESCRIPTION, "read", PARAMETERS, _subject, prepare)


def usable(config, cwd: str, environ) -> list:
    """The servers (languages.Found) that are on this machine; empty if none of them is for a file in the folder."""
    if config.lsp is False:
        return []

    def find(program):
        path = programs.find(program, cwd, environ)
        if path and os.path.dirname(program) and inside.is_inside(cwd, path) and not config.trusts(cwd, environ):
            return None  # the project's own program
        return path

    for name, entry in config.lsp.items():
        if find(entry.argv[0]) is None:
            log.line(NOT_ON_PATH % (name, entry.argv[0]))
    found = languages.candidates(config.lsp, find)
    return found if present(found, cwd) else []


def present(found, cwd: str) -> list:
    """Those of the servers that are for a file in the folder."""
    extensions = languages.present(cwd, {extension for each in found for extension in each.extensions})
    return [each for each in found if set(each.extensions) & set(extensions)]


def waiting(config, cwd: str, environ, found) -> str | None:
    """The line about servers that wait until the folder is trusted; None if none do."""
    if config.yolo or config.trusts(cwd, environ):
        return None
    return WAITS % ", ".join(os.path.basename(each.argv[0]) for each in present(found, cwd))


def _subject(arguments) -> str:
    """What a call is called by: its action, and what it is about."""
    what = arguments.get("symbol") or arguments.get("query") or arguments.get("path") or ""
    return " ".join(filter(None, (arguments.get("action"), what)))
