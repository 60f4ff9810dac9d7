"""The tools of MCP servers: as the model is told of them, and what a call comes to.

A server's words are data from elsewhere: names are made of what a name may have, results are cleaned and cut like a command's.
"""

from __future__ import annotations

import json
import re

from mm import log
from mm.conversation import estimate
from mm.peers.mcp import Failure
from mm.text import clean_terminal, head_and_tail, one_line, plural, size
from mm.tools import logs, registry
from mm.tools.bash import SHOWN_LINES
from mm.tools.input_schema import clean
from mm.tools.tool import ALWAYS, Action, Result, Tool, ToolError

PREFIX = "mcp__%s__"
NAME_LIMIT, DESCRIPTION_LIMIT = 64, 1000
# The part of the model's window that the schemas may take without a warning.
WINDOW_PART = 6

HEAVY = ("mcp: %s take about %d tokens, more than a sixth of the model's window of %d; most are of %s (%s, %s): "
         "name those that are needed in mcp.%s.tools")
MEDIA = "[%s %s, %s]"
RESOURCE = "[resource %s]"
UNKNOWN = "[%s]"
NOTHING = "[no output]"
FAILED_SILENTLY = "[mcp %s: %s failed without a word]"
LEFT_OUT = "[… %s left out; %s …]"
IN_LOG = "everything is in %s, use read_file or grep on it"
NO_LOG = "no log could be written: %s"


def tools(servers) -> tuple:
    """The tools of a session's peers.mcp.Servers."""
    made, names = [], set()
    for offer in servers.tools():
        name = _name(offer, names)
        names.add(name)
        made.append(_tool(name, offer))
    return tuple(made)


def _name(offer, taken):
    """`mcp__<server>__<tool>` in letters, digits, `_` and `-`; a number makes it one of its kind."""
    name = re.sub("[^A-Za-z0-9_-]", "_", PREFIX % offer.server.name + offer.name)[:NAME_LIMIT]
    number, whole = 1, name
    while name in taken:
        number += 1
        end = "_%d" % number
        name = whole[:NAME_LIMIT - len(end)] + end
    return name


def _tool(name, offer):
    server = offer.server
    title = "%s: %s" % (server.name, one_line(offer.name))

    def prepare(arguments, space):
        def run(cancel, progress):
            try:
                answer = server.call(offer.name, arguments, cancel, progress)
            except Failure as failure:
                raise ToolError("[%s]" % failure) from None
            return _result(answer, offer, space)

        asks = ALWAYS if server.entry.permissions == "ask" else True
        return Action(title, (), asks, None, json.dumps(arguments, ensure_ascii=False, indent=2), run)

    description = offer.description.strip()
    if len(description) > DESCRIPTION_LIMIT:
        description = description[:DESCRIPTION_LIMIT] + "…"
    return Tool(name, description, "other", (), "", prepare, clean(offer.schema))


def weigh(tools, servers, window: int) -> None:
    """Warns of `tools` that fill the model's `window` in tokens; `servers` are the names of those that they are of."""
    by_server = {}
    for tool in tools:
        of = max((name for name in servers if tool.name.startswith(PREFIX % name)), key=len, default=None)
        if of is not None:
            by_server.setdefault(of, []).extend(registry.to_wire([tool]))
    weights = {server: estimate.tokens(json.dumps(wire, ensure_ascii=False)) for server, wire in by_server.items()}
    total = sum(weights.values())
    if total * WINDOW_PART > window:
        biggest = max(weights, key=weights.get)
        wire = by_server[biggest]
        count = plural(sum(map(len, by_server.values())), "MCP tool")
        log.line(HEAVY % (count, total, window, biggest, plural(len(wire), "tool"),
                          size(len(json.dumps(wire, ensure_ascii=False).encode("utf-8", "replace"))), biggest))


def _result(answer, offer, space):
    """The result of tools/call as the model reads it."""
    content = answer.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    said = [_part(part) for part in parts]
    if answer.get("structuredContent") is not None and not any(part.get("type") == "text" for part in parts):
        said.insert(0, json.dumps(answer["structuredContent"], ensure_ascii=False, indent=2))
    text = clean_terminal("\n".join(said)).rstrip()
    failed = answer.get("isError") is True
    if failed:
        return Result.failed(_shown(text or FAILED_SILENTLY % (offer.server.name, one_line(offer.name)), space))
    return Result(_shown(text, space)) if text else Result.note(NOTHING)


def _part(part):
    """One content block in text."""
    kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return part["text"]
    if kind in ("image", "audio"):
        return _media(kind, part, part.get("data"))
    resource = part.get("resource") if kind == "resource" else part if kind == "resource_link" else None
    if isinstance(resource, dict):
        if isinstance(resource.get("text"), str):
            return resource["text"]
        if resource.get("blob") is not None:
            return _media("resource %s" % one_line(str(resource.get("uri"))), resource, resource["blob"])
        named = (resource.get("uri"), resource.get("name"))
        return RESOURCE % " ".join(one_line(each) for each in named if isinstance(each, str))
    return UNKNOWN % one_line(str(kind))


def _media(what, part, data):
    """What cannot be shown in text; `data` is base64."""
    data = data if isinstance(data, str) else ""
    return MEDIA % (what, one_line(str(part.get("mimeType") or "of unknown type")), size(len(data.rstrip("=")) * 3 // 4))


def _shown(text, space):
    """As much of it as the model may read; the whole goes to a file then."""
    head, tail = head_and_tail(text, space.shown_limit(space.config.bash_max_output), SHOWN_LINES)
    shown = "\n".join(head)
    if not tail and shown == text:
        return text
    left = size(max(len(text.encode("utf-8")) - len("\n".join(head + tail).encode("utf-8")), 0))
    return "\n".join(head + [LEFT_OUT % (left, _spill(text))] + tail)


def _spill(text):
    """Writes a log with the whole text; says where, or why not."""
    try:
        path, file = logs.new_log()
        with file:
            view = memoryview(text.encode("utf-8"))
            while view:
                view = view[file.write(view):]
    except OSError as error:
        return NO_LOG % (error.strerror or error)
    return IN_LOG % path
