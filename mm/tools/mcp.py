"""The tools of MCP servers: as the model is offered them, and what a call comes to.

A server's words are data from elsewhere: names are made of what a name may have, results are cleaned and cut
like a command's.
"""

from __future__ import annotations

import json
import re

from mm.conversation import estimate
from mm.json_text import is_deeper
from mm.peers.mcp import McpFailure
from mm.text import clean_terminal, one_line, plural, shown_whole, size
from mm.tools import registry
from mm.tools.input_schema import clean
from mm.tools.output import Output
from mm.tools.tool import ALWAYS, Action, Result, Tool, ToolError

PREFIX = "mcp__%s__"
NAME_LIMIT, DESCRIPTION_LIMIT = 64, 1000
# The part of the model's window that all of them together may take, and the tokens while the window is
# unknown.
WINDOW_PART, UNKNOWN_WINDOW = 6, 10_000

TOO_MANY = ("mcp: %d of %s are left out (%s), because together they would take more than %s: "
            "name those that are needed in mcp.%s.tools")
# Of a structured result: the values that are looked for in its text, the levels that are shown.
VALUES, LEVELS = 10_000, 100

SIXTH = "a sixth of the model's window of %d tokens"
FIXED = "%d tokens, and the model's window is not known" % UNKNOWN_WINDOW
MEDIA = "[%s %s, %s]"
RESOURCE = "[resource %s]"
UNKNOWN = "[%s]"
NOTHING = "[no output]"
FAILED_SILENTLY = "[mcp %s: %s failed without a word]"
NOT_SHOWN = ("[mcp %s: the arguments of %s are too long to be shown whole when the user is asked. "
             "Send less at a time]")
TOO_DEEP = "[structured content that is nested too deeply to be shown]"


def tools(servers, disabled, window: int) -> tuple:
    """(tools, line): the tools of a session's peers.mcp_pool.McpServers, except the `disabled` names and what
    has no room in a window of so many tokens, 0 while it is unknown. `line` says what was left out, None if
    nothing was."""
    made, names = [], set()
    for offer in servers.tools():
        name = _name(offer, names)
        names.add(name)
        if name not in disabled:
            made.append((offer.server.name, _tool(name, offer)))
    room = window // WINDOW_PART if window else UNKNOWN_WINDOW
    offered = _fitting(made, room)
    if len(offered) == len(made):
        return tuple(tool for _, tool in made), None
    counts = {}
    for server, tool in made:
        counts[server] = counts.get(server, 0) + (tool.name not in offered)
    limit = SIXTH % window if window else FIXED
    line = TOO_MANY % (len(made) - len(offered), plural(len(made), "MCP tool"), ", ".join(
        "%s: %d" % (server, count) for server, count in counts.items() if count), limit,
                       max(counts, key=counts.get))
    return tuple(tool for _, tool in made if tool.name in offered), line


def _fitting(made, room) -> set:
    """The names of the tools that fit into so many tokens. The servers take turns, so that each has some."""
    ranked, ranks, names = [], {}, set()
    for server, tool in made:
        ranks[server] = ranks.get(server, 0) + 1
        ranked.append((ranks[server], tool))
    for _, tool in sorted(ranked, key=lambda each: each[0]):  # stable
        weight = estimate.tokens(json.dumps(registry.to_wire([tool]), ensure_ascii=False))
        if weight <= room:
            room -= weight
            names.add(tool.name)
    return names


def _name(offer, taken):
    """`mcp__<server>__<tool>` in letters, digits, `_` and `-`; a number makes it one of its kind."""
    whole = re.sub("[^A-Za-z0-9_-]", "_", PREFIX % offer.server.name + offer.name)[:NAME_LIMIT]
    name, number = whole, 1
    while name in taken:
        number += 1
        end = "_%d" % number
        name = whole[:NAME_LIMIT - len(end)] + end
    return name


def _tool(name, offer):
    server = offer.server
    title = "%s: %s" % (server.name, one_line(offer.name))

    def prepare(arguments, context):
        def run(progress):
            try:
                answer = server.call(offer.name, arguments, context.cancel, progress)
            except McpFailure as failure:
                raise ToolError("[%s]" % failure) from None
            return _result(answer, offer, context)

        asks = ALWAYS if server.entry.permissions == "ask" else True
        text = json.dumps(arguments, ensure_ascii=False, indent=2)
        if (asks == ALWAYS or not context.config.yolo) and not shown_whole(text):
            raise ToolError(NOT_SHOWN % (server.name, one_line(offer.name)))
        return Action(title, run, asks=asks, text=text)

    description = clean_terminal(offer.description).strip()
    if len(description) > DESCRIPTION_LIMIT:
        description = description[:DESCRIPTION_LIMIT] + "…"
    return Tool(name, description, "other", (), "", prepare, clean(offer.schema))


def _result(answer, offer, context) -> Result:
    """The result of tools/call as the model reads it."""
    content, data = answer.get("content"), answer.get("structuredContent")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    said = [_part(part) for part in parts]
    if is_deeper(data, LEVELS):
        said.append(TOO_DEEP)
    elif data is not None and not _says_all(said, data):
        texts = sum(part.get("type") == "text" for part in parts)
        said.insert(texts, json.dumps(data, ensure_ascii=False, indent=2))
    text = clean_terminal("\n".join(said)).rstrip()
    if answer.get("isError") is True:
        text = text or FAILED_SILENTLY % (offer.server.name, one_line(offer.name))
        return Result.failed(_shown(text, context))
    return Result(_shown(text, context)) if text else Result.note(NOTHING)


def _says_all(said, data) -> bool:
    """Whether a part of a result is the structured data as JSON, or the parts have every text and number in
    it.
    """
    if any(_parsed(part) == data for part in said):
        return True
    whole, waiting, left = "\n".join(said), [data], VALUES
    while waiting and left:
        value, left = waiting.pop(), left - 1
        if isinstance(value, (dict, list)):
            waiting.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, (str, float)) or isinstance(value, int) and not isinstance(value, bool):
            if str(value) not in whole:
                return False
    return bool(said) and not waiting


def _parsed(text):
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


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
            return _media("resource %s" % _word(resource.get("uri")), resource, resource["blob"])
        named = (resource.get("uri"), resource.get("name"))
        return RESOURCE % " ".join(one_line(each) for each in named if isinstance(each, str))
    return UNKNOWN % _word(kind)


def _word(value) -> str:
    """A server's text in a line. What is not a text may be of any depth and size."""
    return one_line(value) if isinstance(value, str) else "unknown"


def _media(what, part, data):
    """What cannot be shown in text; `data` is base64."""
    data = data if isinstance(data, str) else ""
    return MEDIA % (what, _word(part.get("mimeType") or "of unknown type"),
                    size(len(data.rstrip("=")) * 3 // 4))


def _shown(text, context):
    """As much of it as the model may read; the whole goes to a log then."""
    output = Output()
    output.add(text.encode("utf-8"))
    output.close()
    try:
        return output.shown(context.shown_limit(context.config.bash_max_output))
    finally:
        output.forget()
