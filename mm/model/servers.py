"""Which model a server has."""

from __future__ import annotations

import json

from mm.cancel import Cancel
from mm.model import http
from mm.model.http import ModelError, Server

# Where a model server is expected: llama.cpp's default, by number because `localhost` is ::1 first on many systems.
DEFAULT_URL = "http://127.0.0.1:8080/v1"

# What is asked for where neither the user nor the server names a model. Servers with one model ignore the name.
ANY_MODEL = "default"

# A server that is busy with an answer and serves one request at a time does not list its models: then mm just asks.
_SECONDS = 10

_MAX_LIST = 4 * 1024 * 1024

# Models that cannot chat carry one of these in their name.
_NO_CHAT = ("embed", "rerank")


def first_model(server: Server, cancel: Cancel) -> str | None:
    """The id of the first model that can chat; None where the server does not say.

    Raises ModelError where nothing can be reached, and Cancelled.
    """
    try:
        with http.send(server, "/models", None, cancel, timeout=_SECONDS) as exchange:
            if exchange.status != 200:
                return None
            body = exchange.read_text(_MAX_LIST, _SECONDS)
    except ModelError as error:
        if error.kind in ("dropped", "timeout", "redirect"):
            return None  # the completion will tell better what is wrong
        raise
    return _first_id(body)


def _first_id(body: str) -> str | None:
    try:
        models = json.loads(body)["data"]
        names = [model["id"] for model in models if isinstance(model["id"], str) and model["id"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    chatting = [name for name in names if not any(mark in name.lower() for mark in _NO_CHAT)]
    return (chatting or names or [None])[0]
