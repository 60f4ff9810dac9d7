"""A stored conversation as the updates of a `session/load`: the contract's replay table. Pure.

A call is shown as mm.fronts.acp.updates shows a live one, made of the same events, but in one notification and `completed`:
the contract has it so even where the call had failed. Nothing here runs a tool or looks at a disk: title and kind are those that
are kept with the result, and where there are none they come from the name and the arguments alone.
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
KEPT_TITLE = 400  # characters of a title that is kept with a result: a file may say anything

# Bytes of JSON that a replayed call may take, so that its line stays under 64 KiB, and how small its output is cut, step
# by step, to reach that: arguments, output twice and a diff stand in one line here, live in two.
CALL_BYTES = 62 * 1024
OUTPUT_STEPS = (16 * 1024, 8 * 1024, 1024)

_REF = re.compile("call_([0-9]{1,15})")


def updates(messages: list, tools):
    """The `update` of each element of the stored history, in order. `tools` are the session's, for titles and kinds."""
    for position, message in enumerate(messages):
        if history.is_note(message):
            continue  # between mm and the model: the user has never seen it
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
    """The highest N of the `call_N` in the history, 0 where there is none: this process's calls go on above it."""
    refs = [call["ref"] for message in messages if message["role"] == "assistant"
            for call in message.get("calls") or ()]
    refs += [message["call"] for message in messages if message["role"] == "tool"]
    return max((int(found.group(1)) for found in map(_REF.fullmatch, refs) if found), default=0)


def _said_by_user(message):
    if history.is_summary(message):
        return chunk(SUMMARY_SIGN + message["content"])
    return chunk(message["content"], "user_message_chunk")


def _results(messages, position):
    """The results right behind an assistant message, by reference: the ones that the model is sent."""
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
    changed = update(_ended(call, "", diff=Diff(diff["path"], diff["old"], diff["new"])))["content"] if diff else []
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
    """Whether the call's line stays short enough; nearly always told without encoding it, which is what takes time."""
    characters = 2 * len(whole["rawOutput"]["output"]) + len(call["arguments"]) + len(whole["title"])
    if len(whole["content"]) == 1 and 6 * characters < CALL_BYTES // 2:
        return True  # no diff; a character takes six bytes at most, and the half is plenty for what stands around them
    return encoded_size(whole) <= CALL_BYTES


def _pending(call, tools):
    """The call's beginning as the engine would tell it, but for what only a look at the disk can say."""
    given = json.loads(call["arguments"])
    try:
        tool = registry.find(tools, call["name"])
        values = parse_arguments(tool, given)
    except ToolError:
        kind, title = _of_stranger(call["name"]) or (registry.kind_of(tools, call["name"]), one_line(call["name"]))
        return ToolPending(call["ref"], call["name"], title, kind, given, ())
    return ToolPending(call["ref"], tool.name, registry.call_title(tool, values), tool.kind, values, ())


def _as_kept(pending, result):
    """With title and kind as they were when the call was made, where they are kept."""
    title, kind = result.get("title"), result.get("toolKind")
    if isinstance(title, str) and title.strip():
        pending = pending._replace(title=one_line(title, KEPT_TITLE))
    return pending._replace(kind=kind) if isinstance(kind, str) else pending


def _of_stranger(name):
    """Kind and title of an MCP server's tool, as far as its name tells: the servers are not asked for a replay."""
    parts = name.split("__", 2)
    return ("other", one_line("%s: %s" % (parts[1], parts[2]))) if len(parts) == 3 and parts[0] == "mcp" else None


def _ended(call, output, diff=None, prose=False):
    return ToolEnded(call["ref"], COMPLETED, output, diff, prose)
