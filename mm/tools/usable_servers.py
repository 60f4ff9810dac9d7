"""Which language servers a session may use: those that are on this machine, for files in its folder, and
allowed to run.

A server may run code of the project. If the user wants to be asked before anything runs, the folder must be
trusted.
"""

from __future__ import annotations

import os

from mm import log, safe_files
from mm.peers import languages
from mm.wire import programs

WAITS = ("the language server %s may run code of this project, so it waits until you trust the folder: "
         "mm --trust")
NOT_ON_PATH = "lsp.%s: %s is not there, so it is not used"


def here(config, folder: str, environ) -> list:
    """The servers (languages.Found) that are on this machine; empty if none of them is for a file in the
    folder."""
    if config.lsp is False:
        return []
    for name in missing(config, folder, environ):
        log.line(NOT_ON_PATH % (name, config.lsp[name].argv[0]))
    found = languages.candidates(config.lsp, lambda program: _find(program, config, folder, environ))
    return found if present(found, folder) else []


def missing(config, folder: str, environ) -> list:
    """The names of the configuration's servers whose program is not there or may not be used."""
    return [name for name, entry in (config.lsp or {}).items()
            if _find(entry.argv[0], config, folder, environ) is None]


def _find(program, config, folder, environ):
    path = programs.find(program, folder, environ)
    if path and os.path.dirname(program) and safe_files.is_inside(folder, path):
        return path if config.trusts(folder, environ) else None  # the project's own program
    return path


def present(found, folder: str) -> list:
    """Those of the servers that are for a file in the folder."""
    extensions = languages.present(folder, {extension for each in found for extension in each.extensions})
    return [each for each in found if set(each.extensions) & set(extensions)]


def waiting(config, folder: str, environ, found) -> str | None:
    """The line about servers that wait until the folder is trusted; None if none do."""
    if config.yolo or config.trusts(folder, environ):
        return None
    return WAITS % ", ".join(os.path.basename(each.argv[0]) for each in present(found, folder))
