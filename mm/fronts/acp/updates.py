"""The engine's events (mm.events) as the protocol's `session/update`s and permission requests. Pure.

Clients differ in what they can take: some die of a line over 64 KiB, most render text as Markdown, and
several reject raw values that are not objects. So everything that goes out is cut to a size, the output of
programs is fenced, and the raw fields are always objects. Whatever a person decides on is made visible
(mm.text): arguments, dialogs and diffs here, titles where they are made. All other text is cleaned; the
answer is cleaned as it streams (editor.py).
"""

from __future__ import annotations

from mm.events import (
    ALLOW, ALLOW_ALWAYS, NEVER, REJECT, AnswerCut, Diff, Permission, PlanChanged, Text, Thought, ToolEnded,
    ToolOutput, ToolPending, ToolStarted, WindowUse)
from mm.diff import capped
from mm.json_text import encode, encoded_size
from mm.text import DIALOG_BYTES, DIALOG_CHARACTERS, clean, fence, visible, without_images
from mm.wire import messages
from mm.wire.framing import encode_line, encode_string

# The most that is shown of a tool's output, in each of its two places, and of a dialog's text: characters,
# and bytes of JSON. Together with both sides of a diff (mm.diff), a line stays under 64 KiB.
OUTPUT_LIMIT, OUTPUT_BYTES = DIALOG_CHARACTERS, DIALOG_BYTES
INPUT_BYTES = 24 * 1024
CHUNK_CHARACTERS = 8_000
# The contract's four options, in order: id, kind, name on the button.
OPTIONS = (
    (ALLOW, "allow_once", "Allow"),
    (ALLOW_ALWAYS, "allow_always", "Always allow"),
    (REJECT, "reject_once", "Reject"),
    (NEVER, "reject_always", "Never allow"),
)

TOOL_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other")


def update(event) -> dict:
    """The `update` of one event."""
    return _UPDATES[type(event)](event)


def chunk(text: str, kind: str = "agent_message_chunk") -> dict:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": clean(text)}}


def commands(available) -> dict:
    """The list of commands; `available` holds (name, description, hint or None) for each."""
    listed = []
    for name, description, hint in available:
        command = {"name": name, "description": description}
        if hint:
            command["input"] = {"hint": hint}
        listed.append(command)
    return {"sessionUpdate": "available_commands_update", "availableCommands": listed}


def usage(totals: dict) -> dict:
    """The `usage` of a prompt's answer, from a session's totals; what no server reported is left out."""
    given, said = totals.get("input", 0), totals.get("output", 0)
    shown = {"inputTokens": given, "outputTokens": said, "totalTokens": given + said}
    for name, key in (("thought", "thoughtTokens"), ("cached", "cachedReadTokens")):
        if name in totals:
            shown[key] = totals[name]
    return shown


def permission_request(session_id: str, permission: Permission) -> dict:
    """The params of `session/request_permission`: the pending call and what it would do."""
    pending = permission.pending
    call = _call(pending)
    if permission.diff is not None:
        call["content"] = [_diff(permission.diff)]
    elif permission.text:
        call["content"] = [_text(fence(cut(visible(permission.text), OUTPUT_LIMIT, OUTPUT_BYTES)))]
    options = [{"optionId": option, "kind": kind, "name": name} for option, kind, name in OPTIONS]
    return {"sessionId": session_id, "toolCall": call, "options": options}


def chosen_option(result) -> str:
    """The option in the client's answer. Only `selected` with a known one counts; all else rejects."""
    outcome = result.get("outcome") if isinstance(result, dict) else None
    if isinstance(outcome, dict) and outcome.get("outcome") == "selected":
        chosen = outcome.get("optionId")
        if chosen in [option for option, _, _ in OPTIONS]:
            return chosen
    return REJECT


class ChunkLine:
    """Lines for the streamed answer of one session: everything except the text is encoded only once."""

    def __init__(self, session_id: str):
        # JSON escapes a NUL, so the session id cannot contain this mark.
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "\0"}}
        params = {"sessionId": session_id, "update": update}
        self._head, self._tail = encode_line(messages.notice("session/update", params)).split(b'"\\u0000"')

    def encode(self, text: str) -> bytes:
        """The line for one chunk of clean text, including the line end."""
        return self._head + encode_string(text) + self._tail


def pieces(text: str):
    """The text in pieces that fit into one line each; nearly always a single piece."""
    if len(text) <= CHUNK_CHARACTERS:
        return (text,)
    return [text[start:start + CHUNK_CHARACTERS] for start in range(0, len(text), CHUNK_CHARACTERS)]


def cut(text: str, characters: int, size: int) -> str:
    """The text, cut in the middle to at most `characters` characters and `size` bytes of JSON."""
    if len(text) <= characters and encoded_size(text) <= size:
        return text
    keep = min(characters, len(text))
    while True:
        left_out = len(text) - keep
        end = text[len(text) - (keep - keep // 3):]
        shorter = "%s\n[… %d characters left out …]\n%s" % (text[:keep // 3], left_out, end)
        taken = encoded_size(shorter)
        if len(shorter) <= characters and taken <= size:
            return shorter
        keep = max(0, min(keep - 60, keep * size // taken))


def _pending(event: ToolPending) -> dict:
    return dict({"sessionUpdate": "tool_call", "status": "pending"}, **_call(event))


def _call(event: ToolPending) -> dict:
    call = {
        "toolCallId": event.ref,
        "title": event.title,
        "kind": event.kind if event.kind in TOOL_KINDS else "execute",
        "rawInput": _raw_input(event.arguments),
    }
    if event.paths:
        # A path that shows something else than it holds is in the title, with escapes.
        call["locations"] = [{"path": path} for path in event.paths if visible(path) == path]
    return call


def _raw_input(arguments: dict) -> dict:
    """The arguments, made visible; long strings are cut until all of it fits."""
    try:
        arguments = all_visible(arguments)
        for limit in (None, 16_000, 4_000, 1_000, 100):
            shown = arguments
            if limit:
                shown = {name: _shorter(value, limit) for name, value in arguments.items()}
            if encoded_size(shown) <= INPUT_BYTES:
                return shown
    except RecursionError:
        pass  # nested so deeply that it could be read but not written
    return {}


def all_visible(value, names=visible):
    """A JSON value with all its texts visible; `names` is applied to the names of fields."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return [all_visible(each, names) for each in value]
    if isinstance(value, dict):
        return {names(name): all_visible(each, names) for name, each in value.items()}
    return value


def _shorter(value, limit: int):
    text = value if isinstance(value, str) else encode(value)
    return value if len(text) <= limit else "%s… [+%d characters]" % (text[:limit], len(text) - limit)


def _started(event: ToolStarted) -> dict:
    return {"sessionUpdate": "tool_call_update", "toolCallId": event.ref, "status": "in_progress"}


def _output(event: ToolOutput) -> dict:
    return dict(_started(event), content=[_text(fence(cut(clean(event.tail), OUTPUT_LIMIT, OUTPUT_BYTES)))])


def _ended(event: ToolEnded) -> dict:
    shown = cut(clean(event.output), OUTPUT_LIMIT, OUTPUT_BYTES)
    if event.diff is not None:
        content = _diff(event.diff)
    else:
        content = _text(without_images(shown) if event.prose else fence(shown))
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": event.ref,
        "status": event.status,
        "content": [content],
        "rawOutput": {"output": shown},
    }


def _plan(event: PlanChanged) -> dict:
    entries = [{"content": text, "priority": "medium", "status": status} for text, status in event.entries]
    return {"sessionUpdate": "plan", "entries": entries}


def _text(text: str) -> dict:
    return {"type": "content", "content": {"type": "text", "text": text}}


def _diff(diff: Diff) -> dict:
    old = None if diff.old is None else visible(diff.old)
    shown = capped(Diff(visible(diff.path), old, visible(diff.new)))
    content = {"type": "diff", "path": shown.path, "newText": shown.new}
    if shown.old is not None:
        content["oldText"] = shown.old
    return content


_UPDATES = {
    Text: lambda event: chunk(event.text),
    AnswerCut: lambda event: chunk("\n\n%s\n\n" % event.line),
    Thought: lambda event: chunk(event.text, "agent_thought_chunk"),
    ToolPending: _pending,
    ToolStarted: _started,
    ToolOutput: _output,
    ToolEnded: _ended,
    PlanChanged: _plan,
    WindowUse: lambda event: {"sessionUpdate": "usage_update", "used": event.used, "size": event.size},
}
