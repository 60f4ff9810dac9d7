"""The server under MM_REAL_URL as the tests see it, asked with nothing of mm's: what it is, what it can do, what it is doing."""

from __future__ import annotations

import functools
import json
import os
import sys
import unittest
import urllib.error
import urllib.request

from tests import support
from tests.real import NO_SERVER

# A small model on a busy processor reads the first prompt for half a minute, and waits for a slot before that.
PATIENCE = 300

# Asked at temperature 0, with the one tool: small models that know tools at all use them for this, told that they are an agent.
QUESTION = "list the files here"
SYSTEM = "You are a coding agent. Do the task with the tool."
BASH = {"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": {
    "type": "object", "properties": {"command": {"type": "string", "description": "the command"}}, "required": ["command"]}}}

_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def url() -> str:
    """The base URL, with its /v1."""
    named = os.environ["MM_REAL_URL"].rstrip("/")
    return named if named.endswith("/v1") else named + "/v1"


def get(path: str):
    """The JSON at a path of the server's root; None where there is none."""
    try:
        with _opener.open(url()[:-len("/v1")] + path, timeout=PATIENCE) as answer:
            return json.loads(answer.read())
    except (urllib.error.HTTPError, ValueError):
        return None


def stream(body: dict) -> list:
    """The events of a streamed completion."""
    request = urllib.request.Request(url() + "/chat/completions", json.dumps(dict(body, stream=True)).encode(),
                                     {"Content-Type": "application/json"})
    with _opener.open(request, timeout=PATIENCE) as answer:
        return [json.loads(line[6:]) for line in answer.read().split(b"\n") if line.startswith(b"data: {")]


@functools.lru_cache(maxsize=None)
def model() -> str:
    return get("/v1/models")["data"][0]["id"]


@functools.lru_cache(maxsize=None)
def window() -> int:
    """Tokens a conversation may have, 0 where the server does not tell."""
    return ((get("/props") or {}).get("default_generation_settings") or {}).get("n_ctx") or 0


@functools.lru_cache(maxsize=None)
def calls_tools() -> bool:
    """Whether a tool call comes when one is streamed."""
    events = stream({"model": model(), "tools": [BASH], "temperature": 0, "max_tokens": 60, "messages": [
        {"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]})
    return any((choice.get("delta") or {}).get("tool_calls") for event in events for choice in event.get("choices") or ())


@functools.lru_cache(maxsize=None)
def slots() -> int:
    """How many requests the server answers at once; 1 where it does not tell."""
    return len(get("/slots") or ()) or 1


def busy_slots():
    """How many conversations the server is at work on; None where it does not tell."""
    listed = get("/slots")
    return sum(bool(slot.get("is_processing")) for slot in listed) if isinstance(listed, list) else None


# Settings for an answer without tools: the window is for the text, and nothing is called.
WITHOUT_TOOLS = {"tools": {"disabled": ["ask_agent", "ask_user", "bash", "edit_file", "fetch_content", "lsp", "plan", "read_file",
                                        "read_skill", "write_file"]}}


def report(line: str) -> None:
    """A measure of this run, for who reads its output."""
    print("\n  " + line, file=sys.stderr)


class RealTest(unittest.TestCase):
    """A test that needs the server, and mm's settings for it."""

    @classmethod
    def setUpClass(cls):
        if not os.environ.get("MM_REAL_URL"):
            raise unittest.SkipTest(NO_SERVER)

    def tearDown(self):
        self.wait_idle()

    def client(self, cwd=None, **settings) -> support.Client:
        """A real `mm -acp` on this server, at temperature 0; `settings`: sections of its configuration."""
        return support.Client("--config", self.config(**settings), cwd=cwd)

    def config(self, **settings) -> str:
        """The path of a configuration file for this server."""
        settings["model"] = dict({"url": url(), "temperature": 0}, **settings.get("model", {}))
        path = os.path.join(support.scratch_folder(), "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file)
        return path

    def session(self, client) -> str:
        client.initialize()
        return client.new_session()

    def wait_idle(self, timeout: float = PATIENCE) -> None:
        """Waits until the server works on nothing, where it tells."""
        if busy_slots() is not None:
            support.wait_until(lambda: not busy_slots(), timeout, "an idle server")
