"""What is changed in a request because one server refuses it otherwise (pure).

Each fix leaves the beginning of a request the same from call to call, so that what a server remembers of it
stays valid.
"""

from __future__ import annotations

import json
import re

from mm.model.fields import NOTHING_SAID, REASONING_FIELDS

# The fixes, in the words of the log: the server accepts requests only ….
NO_STREAM_OPTIONS = "without stream_options"
NO_REASONING = "without reasoning"
VALID_ARGUMENTS = "with {} for arguments that are not JSON"
NO_TRAILING_ASSISTANT = "without an answer at the end"
FLAT = "with one system message and the roles in turn"
NO_SYSTEM = "without a system message"
NO_TOOLS_OF = "without the tools of the MCP server "  # and its name

# What mm.tools.mcp names the tools of MCP servers.
_OF_MCP = re.compile(r"mcp__(.+?)__")
# How many servers are left out one at a time, to learn whose schema it is, before all of them are.
_MOST_ALONE = 4

_NO_SYSTEM_ROLE = re.compile(r"system.{0,40}not support|only user", re.IGNORECASE)


def fixed(body: dict, fixes) -> dict:
    """The body with these fixes; the same object if there is nothing to do."""
    changed = dict(body)
    if NO_STREAM_OPTIONS in fixes:
        changed.pop("stream_options", None)
    for name, change in _CHANGES:
        if name in fixes:
            changed["messages"] = change(changed["messages"])
    left_out = set(filter(None, map(server_left_out, fixes)))
    if left_out and "tools" in changed:
        changed["tools"] = [tool for tool in changed["tools"] if mcp_server(tool) not in left_out]
        if not changed["tools"]:
            del changed["tools"]
    return body if changed == body else changed


def wanted(problem, body: dict, extra: dict) -> list:
    """The fixes that may help, the best first. `extra`: what the user has set stays."""
    if problem.kind == "bad_request" and problem.status in (400, 422):
        field = problem.numbers.get("field")
        if field == "stream_options":
            return [] if field in extra else [NO_STREAM_OPTIONS]
        return [NO_REASONING] if field in REASONING_FIELDS else []
    if problem.kind == "template":
        return [NO_SYSTEM] if _NO_SYSTEM_ROLE.search(str(problem)) else [FLAT, NO_SYSTEM]
    return {"trailing_assistant": [NO_TRAILING_ASSISTANT],
            "bad_history_arguments": [VALID_ARGUMENTS]}.get(problem.kind, [])


def without_servers(problem, body: dict) -> list:
    """The fixes, a tuple a try, that may help against a schema that the server cannot take: those of the MCP
    server that its words name, else of each in turn, and at last of all of them."""
    tools = {}
    for tool in body.get("tools") or ():
        tools.setdefault(mcp_server(tool), []).append(tool["function"]["name"])
    tools.pop(None, None)
    names = [NO_TOOLS_OF + server for server in tools]
    named = [NO_TOOLS_OF + server for server in tools if any(name in problem.words for name in tools[server])]
    alone = [(name,) for name in (named or names)[:_MOST_ALONE]]
    return alone + [tuple(names)] if len(names) > 1 else alone


def server_left_out(fix: str) -> str:
    """The MCP server whose tools a fix leaves out; "" for any other fix."""
    return fix[len(NO_TOOLS_OF):] if fix.startswith(NO_TOOLS_OF) else ""


def mcp_server(tool: dict):
    """The name of the MCP server that a tool of a request is of; None for one of mm's own."""
    found = _OF_MCP.match(tool["function"]["name"])
    return found and found.group(1)


def _without_reasoning(messages: list) -> list:
    return [{name: value for name, value in message.items() if name not in REASONING_FIELDS}
            for message in messages]


def _with_valid_arguments(messages: list) -> list:
    return [dict(message, tool_calls=[_valid(call) for call in message["tool_calls"]])
            if message.get("tool_calls") else message for message in messages]


def _valid(call: dict) -> dict:
    """The call, with `{}` for arguments that strict parsers refuse: half characters, infinite numbers."""
    try:
        value = json.loads(call["function"]["arguments"])
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
        if isinstance(value, dict):
            return call
    except (ValueError, TypeError, RecursionError):
        pass
    return dict(call, function=dict(call["function"], arguments="{}"))


def _without_trailing_assistant(messages: list) -> list:
    end = len(messages)
    while end and messages[end - 1]["role"] == "assistant":
        end -= 1
    return messages[:end]


def _flat(messages: list) -> list:
    """One system message in front, roles in turn but for tool results, an answer before each question."""
    flat = []
    for message in messages:
        role, before = message["role"], flat[-1]["role"] if flat else ""
        if role == "system":
            continue
        if role == before != "tool":
            flat[-1] = _merged(flat[-1], message)
            continue
        if role == "user" and before == "tool":
            flat.append({"role": "assistant", "content": NOTHING_SAID})
        flat.append(message)
    systems = [message["content"] for message in messages if message["role"] == "system"]
    return [{"role": "system", "content": "\n\n".join(systems)}, *flat] if systems else flat


def _merged(first: dict, second: dict) -> dict:
    merged = dict(first)
    for name, value in second.items():
        if name == "tool_calls":
            merged[name] = first.get(name, []) + value
        elif name != "role":
            merged[name] = "\n\n".join(filter(None, (first.get(name), value)))
    return merged


def _without_system(messages: list) -> list:
    """What the system message says becomes the beginning of the first question."""
    first, *others = _flat(messages)
    if first["role"] != "system":
        return [first, *others]
    asking = dict(first, role="user")
    if others and others[0]["role"] == "user":
        return [_merged(asking, others[0]), *others[1:]]
    return [asking, *others]


_CHANGES = ((NO_REASONING, _without_reasoning), (VALID_ARGUMENTS, _with_valid_arguments),
            (NO_TRAILING_ASSISTANT, _without_trailing_assistant), (FLAT, _flat), (NO_SYSTEM, _without_system))
