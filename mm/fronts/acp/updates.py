"""What the engine tells (mm.events) as the protocol's `session/update`s and permission requests. Pure.

Clients differ in what they can bear: some die of a line over 64 KiB, most render text as Markdown, several reject raw
values that are no objects. So everything that goes out is cut to a size here, program output is fenced, and the raw
fields are always objects. What a person decides on is made visible: titles by those who make them, arguments, dialogs and diffs
here. All other text is cleaned; that of the answer is cleaned where it streams (mm.fronts.acp.prompting).
"""

from __future__ import annotations

from mm.events import (
    ALLOW, ALLOW_ALWAYS, NEVER, REJECT, AnswerCut, Diff, Permission, PlanChanged, Text, Thought, ToolEnded, ToolOutput, ToolPending,
    ToolStarted, WindowUse,
)
from mm.diff import capped
from mm.json_text import encode, encoded_size
from mm.text import DIALOG_BYTES, DIALOG_CHARACTERS, clean, fence, visible, without_images
from mm.wire import messages
from mm.wire.framing import encode_line, encode_string

# What is shown of a tool's output, in either place that shows it, and of a dialog's text: characters, and bytes of JSON. With
# both sides of a diff (mm.diff) under 64 KiB a line.
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
    """`available`: (name, description, hint or None) each."""
    listed = []
    for name, description, hint in available:
        command = {"name": name, "description": description}
        if hint:
            command["input"] = {"hint": hint}
        listed.append(command)
    return {"sessionUpdate": "available_commands_update", "availableCommands": listed}


def usage(totals: dict) -> dict:
    """The `usage` of a prompt's answer from a session's totals; what the server never reported is left out."""
    given, said = totals.get("input", 0), totals.get("output", 0)
    shown = {"inputTokens": given, "outputTokens": said, "totalTokens": given + said}
    for name, key in (("thought", "thoughtTokens"), ("cached", "cachedReadTokens")):
        if name in totals:
            shown[key] = totals[name]
    return shown


def permission_request(session_id: str, permission: Permission) -> dict:
    """The params of `session/request_permission`: the pending call, and what it would do."""
    pending = permission.pending
    call = _call(pending)
    if permission.diff is not None:
        call["content"] = [_diff(permission.diff)]
    elif permission.text:
        call["content"] = [_text(fence(cut(visible(permission.text), OUTPUT_LIMIT, OUTPUT_BYTES)))]
    options = [{"optionId": option, "kind": kind, "name": name} for option, kind, name in OPTIONS]
    return {"sessionId": session_id, "toolCall": call, "options": options}


def chosen_option(result) -> str:
    """The option of a permission answer: only `selected` with an option of ours is one, anything else rejects."""
    outcome = result.get("outcome") if isinstance(result, dict) else None
    if isinstance(outcome, dict) and outcome.get("outcome") == "selected":
        chosen = outcome.get("optionId")
        if chosen in [option for option, _, _ in OPTIONS]:
            return chosen
    return REJECT


class ChunkLine:
    """Ready-made lines for the streamed answer of one session: all of it but the text is encoded once."""

    def __init__(self, session_id: str):
        # JSON escapes a NUL, so this mark cannot come from the session id.
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "\0"}}
        params = {"sessionId": session_id, "update": update}
        self._head, self._tail = encode_line(messages.notice("session/update", params)).split(b'"\\u0000"')

    def encode(self, text: str) -> bytes:
        """The line for one chunk of a text that is clean, with its end."""
        return self._head + encode_string(text) + self._tail


def pieces(text: str):
    """The text in pieces small enough for one line each; nearly always itself alone."""
    if len(text) <= CHUNK_CHARACTERS:
        return (text,)
    return [text[start:start + CHUNK_CHARACTERS] for start in range(0, len(text), CHUNK_CHARACTERS)]


def cut(text: str, characters: int, size: int) -> str:
    """The text, cut in the middle to at most so many characters and so many bytes of JSON."""
    if len(text) <= characters and encoded_size(text) <= size:
        return text
    keep = min(characters, len(text))
    while True:
        left_out = len(text) - keep
        shorter = "%s\n[… %d characters left out …]\n%s" % (text[:keep // 3], left_out, text[len(text) - (keep - keep // 3):])
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
        call["locations"] = [{"path": path} for path in event.paths]
    return call


def _raw_input(arguments: dict) -> dict:
    """The arguments, visible, or with their long strings cut until they fit."""
    try:
        arguments = all_visible(arguments)
        for limit in (None, 16_000, 4_000, 1_000, 100):
            shown = arguments if limit is None else {name: _shorter(value, limit) for name, value in arguments.items()}
            if encoded_size(shown) <= INPUT_BYTES:
                return shown
    except RecursionError:
        pass  # nested as deeply as could just be read
    return {}


def all_visible(value, names=visible):
    """A JSON value with all of its texts visible; `names` is what becomes of the names of its fields."""
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
    shown = capped(Diff(visible(diff.path), None if diff.old is None else visible(diff.old), visible(diff.new)))
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
