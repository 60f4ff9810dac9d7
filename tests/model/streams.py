"""What the tests of the model room share: the sample streams and the ways to cut them, and a server to
ask.
"""

from __future__ import annotations

import json
import os

from mm.cancel import Cancel
from mm.events import Text, Thought
from mm.model import call_arguments, chat, sse
from mm.model.answer import Answer, Misread

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "model-streams")
SIZES = (1, 2, 3, 7, 64)


def tool(called: str, **types) -> dict:
    """A tool as a request names it: its parameters and their types."""
    properties = {key: {"type": kind} if kind else {} for key, kind in types.items()}
    return {"type": "function", "function": {"name": called,
                                             "parameters": {"type": "object", "properties": properties}}}


# The tools of the requests that the samples answer.
TOOLS = [tool("bash", command="string", timeout="integer"), tool("read_file", path="string", lines="array"),
         tool("write_file", path="string", content="string"), tool("list_jobs")]


def expected() -> dict:
    """Name -> what comes of the sample of that name."""
    with open(os.path.join(FOLDER, "expected.json"), encoding="utf-8") as file:
        return json.load(file)


def sample(name: str) -> bytes:
    with open(os.path.join(FOLDER, name + ".sse"), "rb") as file:
        return file.read()


def cuts(body: bytes):
    """(how it is cut, the pieces): whole, and in pieces of each size."""
    yield "whole", [body]
    for size in SIZES:
        yield f"{size} bytes", [body[at:at + size] for at in range(0, len(body), size)]


def parse(pieces, tools=()):
    """(events, the Answer, whether it is complete) of a body in pieces, as a completion takes it."""
    answer, decoder, events = Answer(tools), sse.Decoder(), []
    for piece in [*pieces, b""]:
        for chunk in decoder.feed(piece) if piece else decoder.end():
            events += answer.take(chunk)
            if answer.error is not None:
                return events + answer.broken(), answer, False
    complete = bool(answer.finish or decoder.done or answer.whole)
    return events + (answer.end() if complete else answer.broken()), answer, complete


def server(url: str, **more) -> chat.Server:
    return chat.Server(url, "m")._replace(**more)


def ask(server: chat.Server, cancel=None, messages=(), tools=(), tap=None, **more) -> list:
    """All that one completion yields."""
    return list(chat.complete(server, list(messages), list(tools), cancel or Cancel(), tap, **more))


def digest(events) -> dict:
    """Events in the words of expected.json."""
    text, reasoning, calls, found = "", "", [], {"usage": None, "finish": None}
    for event in events:
        if isinstance(event, Text):
            text += event.text
        elif isinstance(event, Thought):
            reasoning += event.text
        elif isinstance(event, Misread):
            text, reasoning = "", reasoning + text
        elif isinstance(event, chat.ToolCall):
            calls.append({"name": event.name, "arguments": call_arguments.read(event.arguments).value})
        elif isinstance(event, chat.Usage):
            found["usage"] = list(event)
        elif isinstance(event, chat.Finish):
            found["finish"] = event.reason
    return dict(found, text=text, reasoning=reasoning, calls=calls)
