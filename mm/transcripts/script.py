"""A transcript's `=` lines -> the answer of a model server, in the chat-completions stream that such servers
speak.

Pure but for the two waits a line can ask for: `pause` sleeps, `hang` blocks; both end at once when `stop` is
set.
"""

from __future__ import annotations

import json
import threading

from mm.transcripts.placeholders import fill
from mm.model.loopback import DONE, EVENT_STREAM, Reply, error_reply, sse


def reply(lines, names: dict, model: str, stop: threading.Event) -> Reply:
    """The answer that the "=" lines of one request describe; placeholders are filled from `names`.

    Blocks, until `stop` is set, if there is no line or the first one is a `hang`: the client then waits
    for the headers.
    """
    if not lines:
        stop.wait()
    script = [_Step(fill(line.text, names), line.value is None) for line in lines]
    waited = 0
    while waited < len(script) and _wait(script[waited], stop):
        waited += 1
    status = next((step.value["status"] for step in script if "status" in step.value), 200)
    if status != 200:
        return _error(status, [step.value["body"] for step in script if "body" in step.value])
    return Reply(200, EVENT_STREAM, _stream(script[waited:], model, stop))


class _Step:
    """One "=" line: a raw stream line, or an object."""

    def __init__(self, text: str, raw: bool):
        self.raw = text.encode("utf-8", "replace") + b"\n\n" if raw else None
        self.value = {} if raw else json.loads(text)


def _wait(step: _Step, stop: threading.Event) -> bool:
    """Does what a step that is nothing but a wait asks for; False if it is something else."""
    if step.value.get("hang") is True and len(step.value) == 1:
        stop.wait()
    elif list(step.value) == ["pause"]:
        stop.wait(step.value["pause"])
    else:
        return False
    return True


def _error(status: int, bodies: list) -> Reply:
    if not bodies:
        return error_reply(status, "scripted status {}".format(status))
    body = bodies[0] if isinstance(bodies[0], str) else json.dumps(bodies[0])
    return Reply(status, "application/json", (body.encode("utf-8", "replace"),))


def _stream(script, model, stop):
    """The pieces of the stream. What raw lines, a hang or a drop leave open is left open; else the end is
    added."""
    calls, finished, whole = 0, False, True
    for step in script:
        if step.raw is not None:
            yield step.raw
            whole = False
        for key, value in step.value.items():
            if key in ("text", "thought"):
                name = "content" if key == "text" else "reasoning_content"
                for piece in value if isinstance(value, list) else [value]:
                    yield _chunk(model, {name: piece})
            elif key == "call":
                for delta in _call(calls, value):
                    yield _chunk(model, {"tool_calls": [delta]})
                calls += 1
            elif key == "usage":
                yield sse({"object": "chat.completion.chunk", "model": model, "choices": [],
                           "usage": _usage(value)})
            elif key == "finish":
                yield _chunk(model, {}, value)
                finished = True
            elif key == "pause":
                stop.wait(value)
            elif key == "hang" and value:
                stop.wait()
                raise ConnectionAbortedError("the transcript is over")
            elif key == "drop" and value:
                # The connection ends without the last chunk of the body, as it does when a server dies.
                raise ConnectionAbortedError("dropped by the transcript")
    if whole and not finished:
        yield _chunk(model, {}, "tool_calls" if calls else "stop")
    if whole:
        yield DONE


def _chunk(model: str, delta: dict, finish=None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return sse({"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 0, "model": model,
                "choices": [choice]})


def _call(index: int, call: dict):
    """The deltas of one tool call: the first with its name, further ones if the arguments come in a list
    of pieces."""
    arguments = call.get("arguments", {})
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    first, *others = arguments if isinstance(arguments, list) else [arguments]
    function = {"name": call.get("name"), "arguments": first}
    yield {"index": index, "id": "scripted_{}".format(index + 1), "type": "function", "function": function}
    for piece in others:
        yield {"index": index, "function": {"arguments": piece}}


def _usage(usage: dict) -> dict:
    """`{"input", "output", "cached", "thought"}` in the words of the wire; anything else goes out as it is.
    """
    if "input" not in usage:
        return usage
    output = usage.get("output", 0)
    wire = {"prompt_tokens": usage["input"], "completion_tokens": output,
            "total_tokens": usage["input"] + output}
    if "cached" in usage:
        wire["prompt_tokens_details"] = {"cached_tokens": usage["cached"]}
    if "thought" in usage:
        wire["completion_tokens_details"] = {"reasoning_tokens": usage["thought"]}
    return wire
