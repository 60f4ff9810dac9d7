"""Writes the transcript of a live session: `mm --record FILE -acp`. docs/transcripts.md is the reference of
the format.

It gets the lines of the protocol (trace), of stderr (stderr) and of the model server (request, data,
status), from whatever thread they pass through; one lock keeps them in the order in which they came. Each
line is written at once, so that a process that is killed leaves what happened until then. Two things are held
back for a moment: pieces of a streamed text that may be the beginning of a path or a secret (secrecy.Pieces),
and a cancel (_release).

Nothing here ends or blocks the session: when the file cannot be written, one line on stderr says so and
recording is over.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
import threading

from mm import __version__, log
from mm.errors import UserError
from mm.transcripts import transcript
from mm.transcripts.shorthand import Shorthand
from mm.transcripts.redaction import Redaction, is_private_folder
from mm.transcripts.placeholders import escape, mark, unmark, written
from mm.model import find, waits, window
from mm.secrecy import MASKED, Pieces, all_secrets, mask_servers

HEADER = "# Recorded by mm v{} (Python {}, {}). Play it with: mm --replay FILE"
HEADER_START = HEADER.partition("{")[0]

# What a thread of its own says whenever the model server has answered it, on stderr or below an answer; and
# what was found.
_AT_ANY_TIME = (window.UNKNOWN, *(line.partition("%")[0]
                                  for line in (window.SMALL, window.TRUNCATED, find.FOUND, waits.SHOWN)))

# What the configuration says that a replay must not or cannot repeat: addresses, secrets, programs, folders.
LEFT_OUT = ("model.url", "model.name", "model.apiKey", "model.headers", "hooks", "mcp", "agents", "lsp",
            "skills.dirs", "sessions.dir", "bash.shell")

# The fields of a request that the transcript's `~` line does not repeat.
_USUAL_FIELDS = ("model", "messages", "tools", "stream", "stream_options")
_PIECES = ("content", "reasoning_content", "reasoning", "thinking")


def _safely(method):
    """A failure while recording is one line on stderr, and the end of the recording."""

    @functools.wraps(method)
    def guarded(self, *arguments):
        with self._lock:
            if self._file is None:
                return
            try:
                method(self, *arguments)
                return
            except Exception as error:  # whatever it is, the session is worth more than its transcript
                why = "{}: {}".format(type(error).__name__, error)
                file, self._file = self._file, None
        try:
            file.close()
        except OSError:
            pass
        log.line("mm: recording stopped: " + why)

    return guarded


class Recorder:
    """The transcript of this process in the file `path`.

    `folder` is where mm was started; `config` its mm.config.Config, whose settings a replay repeats;
    `environ` says which values are secret. Raises UserError when the file cannot be written, or holds
    something that is not a recording.
    """

    def __init__(self, path: str, folder: str, config=None, environ=os.environ):
        # re-entrant: a line that is logged while recording comes back to stderr()
        self._lock = threading.RLock()
        self._file = _create(path)
        self._redaction = Redaction(os.path.expanduser("~"), all_secrets(config, environ))
        self._model_pieces = Pieces(self._redaction, self._write_data)
        self._chunk_pieces = Pieces(self._redaction, self._write_chunk)
        self._folders = []
        self._cancels = []  # lines held back
        self._streaming = False  # a model request has not got the end of its answer
        # the lines since a session/new that waits for its answer
        self._short, self._opening = Shorthand(), []
        self._messages, self._tools, self._model = [], [], None
        home = os.path.expanduser("~")
        if is_private_folder(folder) and not (home + os.sep).startswith(folder + os.sep):
            self._know_folder(folder)
        try:
            self._head(_settings(config) if config is not None else {})
        except OSError as error:
            raise UserError("--record {}: {}".format(path, error.strerror), exit_code=2) from None
        atexit.register(self.close)

    def _head(self, settings) -> None:
        self._line("#", HEADER.format(__version__, ".".join(map(str, sys.version_info[:3])),
                                      sys.platform)[2:])
        self._line("#", "usage: ignored")
        if settings:
            self._line("#", "config: " + written(self._redaction.sent(settings)))

    # ---------------------------------------------------------------- what happens

    @_safely
    def trace(self, direction: str, line: bytes) -> None:
        """A line of the protocol: "<" was received by mm, ">" was sent by it, as mm.wire.peer calls them."""
        text = line.decode("utf-8", "backslashreplace").rstrip("\r\n")
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            message = None
        if direction == "<":
            self._received(text, message)
        else:
            self._sent(message)

    @_safely
    def stderr(self, text: str) -> None:
        """A line on stderr."""
        if text.startswith(_AT_ANY_TIME):
            return
        self._release()
        self._line("!", unmark(self._redaction.compared(text)))

    @_safely
    def request(self, body: dict) -> None:
        """A request to the model server, before it is sent."""
        self._release()
        self._give_up_stream()
        if body.get("model") != self._model:
            self._model = body.get("model")
            self._line("#", self._plain("model: {}".format(self._model)))
        self._line("~", written(self._redaction.compared(self._new_parts(body))))
        self._streaming = True

    @_safely
    def data(self, line: str) -> None:
        """A line of the model server's stream."""
        event = _event(line)
        if event is None:
            self._model_pieces.flush()
            if line.startswith("data:") and line[5:].strip() == "[DONE]":
                self._streaming = False
            self._line("=", self._plain(line if transcript.STREAM_LINE.match(line) else "data: " + line))
            return
        if _is_last(event):
            self._streaming = False
        piece = _piece(event)
        if piece:
            place, name, key = piece
            self._model_pieces.add(key, (event, place, name, line), place[name])
        else:
            self._model_pieces.flush()
            self._write_event(event, line)

    @_safely
    def status(self, code: int, body: str) -> None:
        """A refusal of the model server, with all that it said."""
        self._release()
        self._line("=", written(self._redaction.sent({"status": code, "body": body})))
        self._streaming = False

    @_safely
    def close(self) -> None:
        """Writes what is held back. Whatever comes later is not recorded."""
        self._release()
        self._give_up_stream()
        for line in self._opening:
            self._write(*line)
        file, self._file = self._file, None
        file.close()

    # ---------------------------------------------------------------- the protocol

    def _received(self, text, message) -> None:
        method = message.get("method") if isinstance(message, dict) else None
        masked = method in ("session/new", "session/load") and self._look_at_session(message)
        if message is None:
            line = self._plain(text)
        else:
            redacted = self._redaction.sent(message)
            # As it came, where nothing had to be replaced: the way it is written may be what matters.
            line = escape(text) if redacted == message and not masked else written(redacted)
        if method in ("session/cancel", "$/cancel_request") and self._streaming:
            self._cancels.append(line)
            return
        self._release()
        self._line(">", line)

    def _sent(self, message) -> None:
        update = transcript.update_of(message)
        kind = update.get("sessionUpdate")
        if kind in ("agent_message_chunk", "agent_thought_chunk") and isinstance(update.get("content"), dict):
            content = update["content"]
            if isinstance(content.get("text"), str):
                content["text"] = _without_what_comes_any_time(content["text"])
                if not content["text"]:
                    return
                self._chunk_pieces.add((message["params"].get("sessionId"), kind), message, content["text"])
                return
        if transcript.is_live_output(message) or kind in ("usage_update", "available_commands_update"):
            return  # when they come is a matter of time, and what is in them one of the machine
        self._release()
        if isinstance(message, dict) and "error" in message:
            self._give_up_stream()
        message = self._redaction.compared(message)
        result = message.get("result")
        if isinstance(result, dict) and isinstance(result.get("agentInfo"), dict):
            result["agentInfo"]["version"] = mark("any")
        self._line("<", written(message))

    def _look_at_session(self, message) -> bool:
        """The session's folder becomes <cwd>; what its MCP servers are given may be secret: whether any was
        masked."""
        params = message.get("params")
        folder = params.get("cwd") if isinstance(params, dict) else None
        if isinstance(folder, str) and is_private_folder(folder) and os.path.isdir(folder):
            self._know_folder(os.path.normpath(folder))
        secrets = mask_servers(message)
        for secret in secrets:
            self._redaction.add(secret)
        return bool(secrets)

    def _know_folder(self, folder: str) -> None:
        """The first folder is <cwd>, others get a place below it."""
        if folder in self._folders:
            return
        below = ""
        if self._folders:
            inside = os.path.relpath(folder, self._folders[0])
            below = "other{}".format(len(self._folders)) if inside.startswith("..") else inside.replace(os.sep, "/")
            self._line("#", "cwd: folder " + json.dumps(below))
            below = "/" + below
        self._folders.append(folder)
        self._redaction.add_folder(folder, mark("cwd") + below)

    def _release(self) -> None:
        """Before anything but pieces of a stream is written: what was held back.

        A cancel in the middle of a stream is written after the chunks that were on their way when it came,
        and the stream ends there with a hang: in a replay the cancel is sent after exactly these chunks.
        """
        self._model_pieces.flush()
        self._chunk_pieces.flush()
        if not self._cancels:
            return
        if self._streaming:
            self._line("=", '{"hang":true}')
            self._streaming = False
        cancels, self._cancels = self._cancels, []
        for line in cancels:
            self._line(">", line)

    # ---------------------------------------------------------------- the model

    def _new_parts(self, body: dict) -> dict:
        """The parts of a request that the one before it did not have."""
        messages = body.get("messages") or []
        known, self._messages = self._messages, messages
        new = messages[len(known):] if messages[:len(known)] == known else messages
        parts = {"messages": [{"role": "system"} if each.get("role") == "system" else each for each in new]}
        tools = [tool.get("function", {}).get("name") for tool in body.get("tools") or []]
        if tools != self._tools:
            self._tools = tools
            parts["tools"] = [{"function": {"name": name}} for name in tools]
        parts.update((name, value) for name, value in body.items() if name not in _USUAL_FIELDS)
        return parts

    def _give_up_stream(self) -> None:
        """An answer that never came to its end: the connection broke."""
        if self._streaming:
            self._line("=", '{"drop":true}')
            self._streaming = False

    def _write_data(self, held, text) -> None:
        """A model_pieces line: the event with its piece, which may have become another one."""
        event, place, name, line = held
        same = place[name] == text
        place[name] = text
        self._write_event(event, line if same else None)

    def _write_event(self, event, line) -> None:
        redacted = self._redaction.sent(event)
        short = _short(redacted)
        if short:
            self._line("=", written(short))
        elif line is not None and redacted == event:
            self._line("=", escape(line))
        else:
            self._line("=", "data: " + written(redacted))

    def _write_chunk(self, message, text) -> None:
        """A chunk_pieces line."""
        if text:
            message["params"]["update"]["content"]["text"] = text
            self._line("<", written(self._redaction.compared(message)))

    # ---------------------------------------------------------------- the file

    def _plain(self, text: str) -> str:
        """Text that is not JSON and that a replay sends."""
        return unmark(self._redaction.sent(text))

    def _line(self, sign: str, text: str) -> None:
        """Writes a line, in the short form if there is one. A session/new waits for its answer."""
        self._opening.append((sign, text))
        opening = [line for line in self._opening if line[0] != "!"]
        if opening and opening[-1][0] == ">" and '"session/new"' in opening[-1][1] and len(opening) == 1:
            return
        lines, self._opening = self._opening, []
        session = self._short.session(*opening) if len(opening) == 2 else None
        if session:
            lines = [session] + [line for line in lines if line[0] == "!"]
        for line in lines:
            if line[0] in (">", "<", "~", "="):
                line = self._short.shortened(line) or line
            self._short.lines(*line)
            self._write(*line)

    def _write(self, sign: str, text: str) -> None:
        # One write for one line: a process that is killed leaves whole lines.
        line = (sign + " " + " ".join(text.split("\n")) if text else sign) + "\n"
        self._file.write(line.encode("utf-8", "backslashreplace"))


def _create(path: str):
    """The open file. Nothing that somebody else wrote is overwritten: the option may stand before a wrong
    name."""
    try:
        if os.path.exists(path) and os.path.getsize(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                if not file.readline().startswith(HEADER_START):
                    raise UserError("--record {}: the file exists and is not a recording of mm".format(path),
                                    exit_code=2)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise UserError("--record {}: {}".format(path, error.strerror), exit_code=2) from None
    return open(descriptor, "wb", buffering=0)


def _settings(config) -> dict:
    """What the configuration sets, as a configuration file says it."""
    from mm.config.config import attribute
    from mm.config.keys import KEYS

    settings = {}
    for key in KEYS:
        value = getattr(config, attribute(key.name))
        value = list(value) if isinstance(value, tuple) else value
        if key.name in LEFT_OUT or value == key.default:
            continue
        place = settings
        *groups, last = key.name.split(".")
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = value
    return settings


def _event(line):
    """The object in a line of the stream, None if there is none."""
    try:
        event = json.loads(line[5:]) if line.startswith("data:") else None
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _choice(event) -> dict:
    choices = event.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _is_last(event) -> bool:
    return bool(_choice(event).get("finish_reason") or event.get("error"))


def _short(event) -> dict:
    """An event that is a piece of text and nothing else, as an "=" line says it: all but a few of a stream's
    lines."""
    choice = _choice(event)
    delta = choice.get("delta")
    if len(event.get("choices") or ()) != 1 or event.get("usage") or event.get("error") or not isinstance(delta, dict):
        return {}
    key = {("content",): "text", ("reasoning_content",): "thought"}.get(tuple(delta))
    text = next(iter(delta.values()), None)
    return {key: text} if key and isinstance(text, str) and not choice.get("finish_reason") else {}


def _without_what_comes_any_time(text: str) -> str:
    """A chunk without the paragraphs of mm's own that depend on the server and on time: a replay has none."""
    if not text.lstrip().startswith("⚠️") and not text.startswith(_AT_ANY_TIME):
        return text
    return "\n\n".join(part for part in text.rstrip("\n").split("\n\n") if not part.startswith(_AT_ANY_TIME))


def _piece(event):
    """(the dict, the key in it, which text it belongs to) of the one piece of text in an event; None if there
    is none."""
    delta = _choice(event).get("delta")
    if not isinstance(delta, dict):
        return None
    found = [(delta, name, name) for name in _PIECES if isinstance(delta.get(name), str) and delta[name]]
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            # Only the first piece of a call has its id.
            which = call.get("id") if call.get("index") is None else call["index"]
            found.append((function, "arguments", ("call", which)))
    return found[0] if len(found) == 1 else None
