"""A stored conversation as the updates of a `session/load`. Pure.

A call is shown as a live one is (updates.py), made from the same events, but in a single notification whose
status is `completed` even if the call had failed. Nothing here runs a tool or looks at the disk: the title
and kind are those that were kept with the result; if there are none, they come from the call's name and
arguments alone.
"""

from __future__ import annotations

import json
import re

from mm.conversation import history
from mm.json_text import encoded_size
from mm.events import COMPLETED, FAILED, Diff, ToolEnded, ToolPending
from mm.fronts.acp.updates import OUTPUT_LIMIT, chunk, cut, update
from mm.text import one_line
from mm.tools import registry
from mm.tools.arguments import parse_arguments
from mm.tools.tool import ToolError

SUMMARY_SIGN = "🗜️ "
KEPT_TITLE = 400  # characters of a title from a session file, which may hold anything

# The most bytes of JSON of a replayed call, so that its line stays under 64 KiB, and the sizes to which its
# output is cut, step by step, until it fits. A replayed call has its arguments, its output twice and a diff
# in one line; a live one has them in two.
CALL_BYTES = 62 * 1024
OUTPUT_STEPS = (16 * 1024, 8 * 1024, 1024)

_REF = re.compile("call_([0-9]{1,15})")


def updates(messages: list, tools):
    """The `update` of each element of the stored history, in order. `tools` give titles and kinds."""
    for position, message in enumerate(messages):
        if history.is_note(message):
            continue  # it is between mm and the model, and the user has never seen it
        if message["role"] == "user":
            yield _said_by_user(message)
        elif message["role"] == "assistant":
            if message["content"]:
                yield chunk(message["content"])
            calls = message.get("calls")
            if calls:
                results = _results(messages, position + 1)
                for call in calls:
                    yield _call(call, results.get(call["ref"]), tools)


def highest_ref(messages: list) -> int:
    """The highest N of a `call_N` in the history, else 0: the numbers of new calls continue above it."""
    refs = [call["ref"] for message in messages if message["role"] == "assistant"
            for call in message.get("calls") or ()]
    refs += [message["call"] for message in messages if message["role"] == "tool"]
    return max((int(found.group(1)) for found in map(_REF.fullmatch, refs) if found), default=0)


def _said_by_user(message):
    if history.is_summary(message):
        return chunk(SUMMARY_SIGN + message["content"])
    return chunk(message["content"], "user_message_chunk")


def _results(messages, position):
    """The results that directly follow an assistant message, by reference: those that the model gets."""
    results = {}
    while position < len(messages) and messages[position]["role"] == "tool":
        results.setdefault(messages[position]["call"], messages[position])
        position += 1
    return results


def _call(call, result, tools):
    pending = _pending(call, tools)
    if result is None:
        return dict(update(pending), status=FAILED)
    shown = update(_as_kept(pending, result))
    shown["status"] = COMPLETED
    diff = result.get("diff")
    changed = update(_ended(call, "", diff=Diff(**diff)))["content"] if diff else []
    whole = _with_output(shown, call, result, result["content"], changed)
    for size in OUTPUT_STEPS:
        if _fits(whole, call):
            break
        whole = _with_output(shown, call, result, cut(result["content"], OUTPUT_LIMIT, size), changed)
    return whole


def _with_output(shown, call, result, output, changed):
    ended = update(_ended(call, output, prose=result.get("prose") is True))
    return dict(shown, content=ended["content"] + changed, rawOutput=ended["rawOutput"])


def _fits(whole, call):
    """Whether the call's line stays short enough. Encoding takes time and is nearly always avoided."""
    characters = 2 * len(whole["rawOutput"]["output"]) + len(call["arguments"]) + len(whole["title"])
    if len(whole["content"]) == 1 and 6 * characters < CALL_BYTES // 2:
        return True  # no diff; a character takes at most six bytes, and the other half is enough for the rest
    return encoded_size(whole) <= CALL_BYTES


def _pending(call, tools):
    """The call's ToolPending as the engine would emit it, except for what only the disk knows."""
    given = json.loads(call["arguments"])
    try:
        tool = registry.find(tools, call["name"])
        values = parse_arguments(tool, given)
    except ToolError:
        name = call["name"]
        kind, title = _of_mcp_tool(name) or (registry.kind_of(tools, name), one_line(name))
        return ToolPending(call["ref"], call["name"], title, kind, given, ())
    return ToolPending(call["ref"], tool.name, registry.call_title(tool, values), tool.kind, values, ())


def _as_kept(pending, result):
    """The call with the title and kind that it had when it was made, as far as they were kept."""
    title, kind = result.get("title"), result.get("toolKind")
    if isinstance(title, str) and title.strip():
        pending = pending._replace(title=one_line(title, KEPT_TITLE))
    return pending._replace(kind=kind) if isinstance(kind, str) else pending


def _of_mcp_tool(name):
    """(kind, title) of an MCP server's tool by its name: a replay starts no server. Else None."""
    parts = name.split("__", 2)
    if len(parts) < 3 or parts[0] != "mcp":
        return None
    return "other", one_line("%s: %s" % (parts[1], parts[2]))


def _ended(call, output, diff=None, prose=False):
    return ToolEnded(call["ref"], COMPLETED, output, diff, prose)
