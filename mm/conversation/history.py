"""The messages of a conversation, and their one translation into the model server's. Pure.

A message is a plain dict, the same in memory, in the session file and here:

    {"role": "user", "content": text, "kind": "summary" or "note"?, "facts": of a summary, from compaction?}
    {"role": "assistant", "content": text, "kind": "note"?, "reasoning": text?, "reasoningField": name?,
     "calls": [{"ref", "name", "arguments"}]?}
    {"role": "tool", "call": ref, "name": tool, "content": output, "status": "completed" or "failed"?,
     and if sessions are kept: "diff", "prose", "title", "toolKind"}

`ref` is the contract's call identifier ("call_1"). `arguments` is always the text of a JSON object: servers
refuse every later request that holds anything else. A message of kind "summary" stands for those that a
compaction took away; one of kind "note" comes from mm, neither from the user nor from the model. The server's
own shape exists only in what `to_wire` returns.
"""

from __future__ import annotations

from mm.events import FAILED
from mm.model.fields import NOTHING_SAID, REASONING_FIELDS

INTERRUPTED = "[no result: the turn was interrupted]"

SUMMARY, NOTE = MADE_BY_MM = ("summary", "note")
# What the model reads before and after a summary.
SUMMARY_HEAD = "[summary of the conversation so far]"
SUMMARY_END = "[end of the summary]"


def user_message(text: str) -> dict:
    return {"role": "user", "content": text}


def note(text: str) -> dict:
    """What mm says to the model in the user's role."""
    return dict(user_message(text), kind=NOTE)


def nothing_said(reasoning: str = "", field: str = "") -> dict:
    """The message of a model that said nothing, or whose answer was cut before its first word."""
    return dict(assistant_message(NOTHING_SAID, reasoning, (), field), kind=NOTE)


def assistant_message(text: str, reasoning: str = "", calls: list = (), field: str = "") -> dict:
    """`calls`: [{"ref", "name", "arguments"}]. `field`: where the server sent the reasoning, or ""."""
    message = {"role": "assistant", "content": text}
    if reasoning:
        message["reasoning"] = reasoning
        if field in REASONING_FIELDS[1:]:
            message["reasoningField"] = field
    if calls:
        message["calls"] = list(calls)
    return message


def tool_message(ref: str, name: str, output: str, **shown) -> dict:
    """`shown`: what is known beside the text: "status", "diff" ({"path", "old", "new"}), "prose", and "title"
    and "toolKind" as the call was announced. What is None or empty is left out."""
    message = {"role": "tool", "call": ref, "name": name, "content": output}
    message.update((key, value) for key, value in shown.items() if value)
    return message


def repaired(messages: list) -> list:
    """The messages as a server accepts them: each call has exactly one result, right after its message and in
    order.

    A missing result becomes INTERRUPTED. A result without a call is dropped, and so is an assistant message
    that says and calls nothing. repaired(repaired(x)) == repaired(x).
    """
    result, position = [], 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if message["role"] == "tool":
            continue
        if message["role"] != "assistant":
            result.append(message)
            continue
        calls = message.get("calls") or ()
        if not calls and not message["content"]:
            continue
        outputs = {}
        while position < len(messages) and messages[position]["role"] == "tool":
            outputs.setdefault(messages[position]["call"], messages[position])
            position += 1
        result.append(message)
        for call in calls:
            result.append(outputs.get(call["ref"]) or tool_message(call["ref"], call["name"], INTERRUPTED))
    return result


def close_calls(messages: list, text: str) -> None:
    """Gives every unanswered call of the last assistant message the result `text`, in place."""
    answered = set()
    for message in reversed(messages):
        if message["role"] == "tool":
            answered.add(message["call"])
            continue
        for call in message.get("calls") or ():
            if call["ref"] not in answered:
                messages.append(tool_message(call["ref"], call["name"], text, status=FAILED, prose=True))
        return


def drop_unanswered(messages: list) -> None:
    """Removes the questions and notes at the end that got no answer at all, in place. A summary stays."""
    while messages and messages[-1]["role"] == "user" and not is_summary(messages[-1]):
        messages.pop()


def to_wire(system: str, messages: list) -> list:
    """The `messages` of a chat-completions request: the system prompt, then the repaired conversation.

    A summary and the user message after it go out as one, because many chat templates refuse two user
    messages in a row. No request ever ends with the summary alone, so this changes no message that an earlier
    request has sent.
    """
    wire = [{"role": "system", "content": system}]
    after_summary = False
    for message in repaired(messages):
        if after_summary and message["role"] == "user":
            wire[-1] = joined(wire[-1], _to_wire(message)["content"])
        else:
            wire.append(_to_wire(message))
        after_summary = is_summary(message)
    return wire


def is_summary(message: dict) -> bool:
    return message.get("kind") == SUMMARY


def is_note(message: dict) -> bool:
    return message.get("kind") == NOTE


def joined(wire_message: dict, text: str) -> dict:
    """A user message of the wire with `text` added at its end."""
    return dict(wire_message, content=wire_message["content"] + "\n\n" + text)


def _to_wire(message: dict) -> dict:
    if message["role"] == "tool":
        return {"role": "tool", "tool_call_id": message["call"], "name": message["name"],
                "content": message["content"]}
    if is_summary(message):
        return {"role": "user", "content": "%s\n%s\n%s" % (SUMMARY_HEAD, message["content"], SUMMARY_END)}
    wire = {"role": message["role"], "content": message["content"]}
    if message.get("reasoning"):
        field = message.get("reasoningField")
        wire[field if field in REASONING_FIELDS else REASONING_FIELDS[0]] = message["reasoning"]
    if message.get("calls"):
        wire["tool_calls"] = [
            {"id": call["ref"], "type": "function",
             "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in message["calls"]
        ]
    return wire
