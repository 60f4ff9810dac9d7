"""The entries of the configuration's maps as values: hooks, MCP servers, agents, language servers.

`convert` is the one place where their JSON is turned into them. Imported only when a file has such entries.
"""

from __future__ import annotations

import os
from collections import namedtuple

from mm.config import places
from mm.config.keys import HOOK_TIMEOUT, MCP_TIMEOUT, ON_FAILURE

# `argv` is the whole command line, a tuple; `timeout` is in seconds. A hook's `match` is None for every tool,
# and `folder` is the folder of the file that declares it, where its relative commands start. A server's
# `tools` is None for all.
Hook = namedtuple("Hook", "command match timeout on_failure folder")
McpServer = namedtuple("McpServer", "argv env permissions tools timeout")
Agent = namedtuple("Agent", "argv env cwd description")
LanguageServer = namedtuple("LanguageServer", "argv extensions")


def convert(key: str, entries: dict, source: str, environ) -> dict:
    """The entries of the map `key`, checked JSON out of the file `source`, as values by the same names."""
    make = _MAKE[key]
    return {name: make(name, entry, source, environ) for name, entry in entries.items()}


def _hooks(event, hooks, source, environ):
    return tuple(Hook(hook["command"], hook.get("match"), hook.get("timeout", HOOK_TIMEOUT),
                      hook.get("onFailure", ON_FAILURE[event]), os.path.dirname(source)) for hook in hooks)


def _mcp_server(name, entry, source, environ):
    tools = entry.get("tools")
    return McpServer(_argv(entry), dict(entry.get("env", {})), entry.get("permissions"),
                     None if tools is None else tuple(tools), entry.get("timeout", MCP_TIMEOUT))


def _agent(name, entry, source, environ):
    cwd = entry.get("cwd")
    return Agent(_argv(entry), dict(entry.get("env", {})), cwd and places.expand(cwd, environ),
                 entry.get("description"))


def _language_server(name, entry, source, environ):
    return LanguageServer(_argv(entry), tuple(entry["extensions"]))


def _argv(entry):
    command = entry["command"]
    return tuple([command] if isinstance(command, str) else command) + tuple(entry.get("args", ()))


_MAKE = {"hooks": _hooks, "mcp": _mcp_server, "agents": _agent, "lsp": _language_server}
