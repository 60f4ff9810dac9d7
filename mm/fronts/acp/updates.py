"""What the engine tells (mm.events) as the protocol's `session/update`s and permission requests. Pure.

Clients differ in what they can bear: some die of a line over 64 KiB, most render text as Markdown, several reject raw
values that are no objects. So everything that goes out is cut to a size here, program output is fenced, and the raw
fields are always objects.
"""

from __future__ import annotations

import json

from mm.events import (
    ALLOW, ALLOW_ALWAYS, NEVER, REJECT, Diff, Permission, Text, Thought, ToolEnded, ToolOutput, ToolPending, ToolStarted,
)
from mm.text import fence, is_note

# Characters of a tool's output in either place that shows it.
OUTPUT_LIMIT = 16_000
# Bytes of JSON: one output, the raw input, one side of a diff, one piece of the answer. Together under 64 KiB a line.
OUTPUT_BYTES = 24 * 1024
INPUT_BYTES = 24 * 1024
DIFF_BYTES = 16 * 1024
CHUNK_CHARACTERS = 8_000
# Lines shown around the changed region of a large diff.
DIFF_CONTEXT = 3

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
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def commands(available) -> dict:
    """`available`: (name, description) pairs."""
    listed = [{"name": name, "description": description} for name, description in available]
    return {"sessionUpdate": "available_commands_update", "availableCommands": listed}


def permission_request(session_id: str, permission: Permission) -> dict:
    """The params of `session/request_permission`: the pending call, and what it would do."""
    pending = permission.pending
    call = _call(pending)
    if permission.diff is not None:
        call["content"] = [_diff(permission.diff)]
    elif permission.text:
        call["content"] = [_text(fence(cut(permission.text, OUTPUT_LIMIT, OUTPUT_BYTES)))]
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
        # json.dumps escapes a NUL, so this mark cannot come from the session id.
        whole = json.dumps(
            {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session_id, "update": chunk("\0")}},
            separators=(",", ":"),
        )
        head, tail = whole.split('"\\u0000"')
        self._head, self._tail = head, tail + "\n"

    def encode(self, text: str) -> bytes:
        """The line for one chunk, with its end."""
        line = self._head + _encode_string(text) + self._tail
        try:
            return line.encode("utf-8")
        except UnicodeEncodeError:
            return line.encode("utf-8", "replace")


_encode_string = json.JSONEncoder(ensure_ascii=False).encode


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


def encoded_size(value) -> int:
    """Bytes of the value's JSON as it goes out."""
    return len(_encode_string(value).encode("utf-8", "replace"))


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
    """The arguments as they are, or with their long strings cut until they fit."""
    for limit in (None, 16_000, 4_000, 1_000, 100):
        shown = arguments if limit is None else {name: _shorter(value, limit) for name, value in arguments.items()}
        if encoded_size(shown) <= INPUT_BYTES:
            return shown
    return {}


def _shorter(value, limit: int):
    text = value if isinstance(value, str) else _encode_string(value)
    return value if len(text) <= limit else "%s… [+%d characters]" % (text[:limit], len(text) - limit)


def _started(event: ToolStarted) -> dict:
    return {"sessionUpdate": "tool_call_update", "toolCallId": event.ref, "status": "in_progress"}


def _output(event: ToolOutput) -> dict:
    return dict(_started(event), content=[_text(fence(cut(event.tail, OUTPUT_LIMIT, OUTPUT_BYTES)))])


def _ended(event: ToolEnded) -> dict:
    shown = cut(event.output, OUTPUT_LIMIT, OUTPUT_BYTES)
    if event.diff is not None:
        content = _diff(event.diff)
    else:
        content = _text(shown if event.prose or is_note(shown) else fence(shown))
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": event.ref,
        "status": event.status,
        "content": [content],
        "rawOutput": {"output": shown},
    }


def _text(text: str) -> dict:
    return {"type": "content", "content": {"type": "text", "text": text}}


def _diff(diff: Diff) -> dict:
    old, new = diff.old, diff.new
    if max(encoded_size(new), encoded_size(old or "")) > DIFF_BYTES:
        old, new = changed_region(old, new)
    shown = {"type": "diff", "path": diff.path, "newText": new}
    if old is not None:
        shown["oldText"] = old
    return shown


def changed_region(old, new: str):
    """(old, new) of the lines that differ, with a little context, each side cut at DIFF_BYTES; old may be None."""
    if old is None:
        return None, _cut_side(new)
    before, after = old.splitlines(True), new.splitlines(True)
    shortest = min(len(before), len(after))
    start = 0
    while start < shortest and before[start] == after[start]:
        start += 1
    end = 0
    while end < shortest - start and before[-1 - end] == after[-1 - end]:
        end += 1
    start, end = max(0, start - DIFF_CONTEXT), max(0, end - DIFF_CONTEXT)
    return tuple(_cut_side("".join(lines[start:len(lines) - end])) for lines in (before, after))


def _cut_side(text: str) -> str:
    """The beginning of the text that fits, with … behind it."""
    if encoded_size(text) <= DIFF_BYTES:
        return text
    keep = min(len(text), DIFF_BYTES)
    while encoded_size(text[:keep]) > DIFF_BYTES - 8:
        keep = keep * 9 // 10
    return text[:keep] + "…"


_UPDATES = {
    Text: lambda event: chunk(event.text),
    Thought: lambda event: chunk(event.text, "agent_thought_chunk"),
    ToolPending: _pending,
    ToolStarted: _started,
    ToolOutput: _output,
    ToolEnded: _ended,
}
