"""What the tests of the model room share: the sample streams and the ways to cut them, and a server to ask."""

from __future__ import annotations

import json
import os

from mm.cancel import Cancel
from mm.events import Text, Thought
from mm.model import chat

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "model-streams")
SIZES = (1, 2, 3, 7, 64)


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


def server(url: str, **more) -> chat.Server:
    return chat.Server(url, "m", None, {}, 0, None, None, {})._replace(**more)


def ask(server: chat.Server, cancel=None, messages=(), tools=(), tap=None) -> list:
    """All that one completion yields."""
    return list(chat.complete(server, list(messages), list(tools), cancel or Cancel(), tap))


def digest(events) -> dict:
    """Events in the words of expected.json."""
    usage = [list(event) for event in events if isinstance(event, chat.Usage)]
    finishes = [event.reason for event in events if isinstance(event, chat.Finish)]
    return {
        "text": "".join(event.text for event in events if isinstance(event, Text)),
        "reasoning": "".join(event.text for event in events if isinstance(event, Thought)),
        "calls": [{"name": event.name, "arguments": _object(event.arguments)} for event in events if isinstance(event, chat.ToolCall)],
        "usage": usage[0] if usage else None,
        "finish": finishes[0] if finishes else None,
    }


def _object(arguments):
    return arguments if isinstance(arguments, dict) else json.loads(arguments or "{}")
