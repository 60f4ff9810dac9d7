"""Whether a model calls tools, and how fast it is: asked with one small tool and a wish that needs it."""

from __future__ import annotations

import json
import threading
import time
from collections import namedtuple

from mm import log
from mm.cancel import Cancel, Cancelled
from mm.errors import UserError
from mm.events import Text, Thought
from mm.model import chat, known_servers, probe
from mm.text import one_line

# One answer, a model that has to be loaded first included.
SECONDS = 120
ASKING = "asking the model for a tool call (at most %g s, Ctrl-C ends it)"
# Characters after which an answer is no longer a call.
LONG_ANSWER = 4000

TOOL = {"type": "function", "function": {
    "name": "bash", "description": "Runs a shell command and returns its output.",
    "parameters": {"type": "object", "properties": {"command": {"type": "string",
                                                                "description": "the command"}},
                   "required": ["command"]}}}
SYSTEM = "You are a coding agent. Use the tool bash to look at files. Never guess what it would print."
# The second wish where the first was answered in words.
WISHES = ("list the files here", "Call the tool bash now, with the command ls. Write nothing else.")
# Fewer tokens or seconds say nothing about speed.
LEAST_TOKENS, LEAST_SECONDS = 8, 0.1

REAL = "real tool calls, streamed (it called %s)"
RECOVERED = "the model writes its calls into the text, where mm finds them (it called %s)"
NONE = "no tool call came, so mm can only talk with this model: %s"
DROPPED = ("the model's chat template leaves tools out (the server says so): "
           "start it with one that knows tools")
OTHER_MODEL = "the server can read calls: take a model that is trained for tools, or a larger one"
TOO_SLOW = "no tool call came in %g s: a smaller model, or more of it on the graphics card, would be faster"

# `tools` and `speed` are the texts of their lines, `speed` "" where nothing was measured; `real`: the server
# sent calls as such.
Trial = namedtuple("Trial", "failed real tools speed")


def ask(server, cancel: Cancel, seconds: float = SECONDS) -> Trial:
    """Asks for a tool call, and once more if none came. Nothing is run. Raises Cancelled."""
    log.line(ASKING % seconds)
    if server.temperature is None:
        server = server._replace(temperature=0)  # what the model can do, not what it happens to do
    answer = None
    try:
        for wish in WISHES:
            answer = _Answer(server, wish, [TOOL], cancel, seconds)
            if answer.calls:
                break
    except UserError as problem:
        return Trial(True, False, str(problem), "")
    except _Late:
        return Trial(True, False, TOO_SLOW % seconds, "")
    speed = answer.speed()
    if not answer.calls:
        return Trial(True, False, NONE % _reason(server, answer, cancel), speed)
    name, arguments = answer.calls[0]
    called = one_line("%s %s" % (name, arguments if isinstance(arguments, str) else json.dumps(arguments)),
                      100)
    return Trial(False, answer.structured, (REAL if answer.structured else RECOVERED) % called, speed)


def _reason(server, answer, cancel: Cancel) -> str:
    """What it said instead, and what to do about it."""
    product = known_servers.of_key(server.product)
    remedy = product.tools if product else ""
    if product is None or product.key == "llama.cpp":
        root = server._replace(url=probe.root_of(server.url))
        able = probe.at(probe.ask(root, "/props", cancel).value, "chat_template_caps", "supports_tools")
        if able is False:
            return DROPPED
        remedy = OTHER_MODEL if able else remedy
    said = "it said “%s”" % one_line(answer.text, 80) if answer.text.strip() else "it said nothing"
    return "; ".join(filter(None, (said, remedy)))


def _rate(count, seconds: float) -> float:
    return count / seconds if count and count >= LEAST_TOKENS and seconds >= LEAST_SECONDS else 0


class _Late(Exception):
    """The time for an answer is over."""


class _Answer:
    """One answer, read to its end: what was called and said, and when. It taps its own stream."""

    def __init__(self, server, wish: str, tools: list, cancel: Cancel, seconds: float):
        self.calls, self.text, self.usage = [], "", None
        self.structured, self.timings = False, None
        self.begun = self.ended = 0.0  # seconds after the request: the first piece, the last one
        if server.product == "llama.cpp":  # else a second check would measure its cache
            server = server._replace(extra=dict(server.extra or {}, cache_prompt=False))
        late = Cancel()
        timer = threading.Timer(seconds, late.cancel)
        timer.daemon = True
        timer.start()
        try:
            with cancel.on_cancel(late.cancel):
                self._read(chat.complete(server, [{"role": "system", "content": SYSTEM},
                                                  {"role": "user", "content": wish}],
                                         tools, late, self))
        except Cancelled:
            cancel.check()
            raise _Late() from None
        finally:
            timer.cancel()

    def _read(self, pieces) -> None:
        start = time.monotonic()
        for piece in pieces:
            self.ended = time.monotonic() - start
            self.begun = self.begun or self.ended
            kind = type(piece)
            if kind in (Text, Thought):
                self.text += piece.text
                if len(self.text) > LONG_ANSWER:
                    pieces.close()
                    return
            elif kind is chat.ToolCall:
                self.calls.append(piece)
            elif kind is chat.Usage:
                self.usage = piece

    def speed(self) -> str:
        """As the server measured it, else by mm's own clock; "" if the answer was too short for that."""
        how = "as the server measured"
        rates = [probe.at(self.timings, name) for name in ("prompt_per_second", "predicted_per_second")]
        if not any(isinstance(rate, (int, float)) and rate > 0 for rate in rates):
            how, usage = "by mm's clock", self.usage
            rates = [_rate(usage.input, self.begun), _rate(usage.output, self.ended - self.begun)] if usage else []
        parts = ["%s %.3g tokens/s" % (name, rate) for name, rate in zip(("prompt", "answer"), rates)
                 if isinstance(rate, (int, float)) and rate > 0]
        return "%s (%s)" % (", ".join(parts), how) if parts else ""

    # As the tap of a request.

    def request(self, body: dict) -> None:
        pass

    def status(self, code: int, body: str) -> None:
        pass

    def data(self, line: str) -> None:
        try:
            event = json.loads(line.partition("data:")[2] if line.startswith("data:") else line)
        except ValueError:
            return
        self.timings = probe.at(event, "timings") or self.timings
        for choice in probe.listed(probe.at(event, "choices")):
            self.structured = self.structured or any(
                probe.at(choice, part, "tool_calls") for part in ("delta", "message"))
