"""A stream of server-sent events: bytes in, JSON objects out (pure).

Written for what model servers really send, which is looser than the standard and sometimes not SSE at all:

- Only \\n ends a line, \\r before it is dropped. U+2028 and U+0085 stand raw inside the JSON of some servers.
- A line is decoded when it is complete: a read may end in the middle of a character.
- Each data line that is an object by itself is one event, blank line or not; else it waits for the next data
  lines, and what a blank line finds unfinished is dropped.
- An error may be a separate field (`error: {…}`), an event of that name, or a bare JSON line. All come out as
  `{"error": …}`.
- A body that begins with `{` is one JSON object over any number of lines: the server ignored `stream`.
"""

from __future__ import annotations

import json
import re

_parse = json.JSONDecoder().raw_decode

# What stands for an error that is announced and not described.
_NO_WORDS = "an error without a description"

# The most bytes of an event: a longer one does not end.
LONGEST = 32 * 1024 * 1024

# How much of a body's beginning is kept, to be shown.
_KEPT = 65536

# What may stand before a body's first word. Some servers send comments as long as they have nothing to say.
_NOTHING = re.compile(r"(?:[\s\ufeff]|:[^\n]*(?:\n|\Z))*")

# How far mlx-lm is with reading the prompt, in a comment.
_PROGRESS = re.compile(r"^:\s*keepalive (\d{1,9})/(\d{1,9})\s*$", re.MULTILINE)

# How often an event over several lines is tried before its blank line: without a limit the work would be
# quadratic.
_MAX_TRIES = 32


class Decoder:
    """Turns one body into objects. `done`: [DONE] has come; `endless`: an event was too long."""

    def __init__(self, tap=None):
        """`tap(line)`, if given, is given each object as the one data line that makes it, and the [DONE]."""
        self.done = self.endless = False
        self.dropped = 0  # events that were not JSON objects
        self.progress = None  # {"processed", "total"}, in tokens, if a comment before the first event said so
        self.beginning = ""  # the first lines that came, as they came, without comments
        self._tap = tap
        self._rest = []  # pieces of the line that is not complete yet
        self._held = []  # data lines of an event that is not complete yet
        self._waiting = 0  # the bytes in both
        self._event = ""
        self._is_json = False

    def feed(self, data: bytes) -> list:
        """The objects that are complete with these bytes."""
        if self.done or self.endless:
            return []
        self._waiting += len(data)
        if self._waiting > LONGEST:
            self.endless, self._rest, self._held = True, [], []
            return []
        end = data.rfind(b"\n") + 1
        if not end or self._is_json:
            self._rest.append(data)
            return []
        self._rest.append(data[:end])
        text = b"".join(self._rest).decode("utf-8", "replace")
        self._rest = [data[end:]] if end < len(data) else []
        objects = self._lines(text)
        if not self._held and not self._is_json:
            self._waiting = len(data) - end
        return objects

    def end(self) -> list:
        """The objects that only the end of the body completes. With a newline missing, or none needed."""
        if self.done:
            return []
        text = b"".join(self._rest).decode("utf-8", "replace")
        self._rest = []
        if self._is_json:
            return self._whole(text)
        objects = self._lines(text) if text else []
        if self._is_json and not self.done:  # found out only now: one line without a newline
            return objects + self.end()
        self._blank(objects)
        return objects

    def _lines(self, text: str) -> list:
        objects = []
        if not self.beginning:
            nothing = _NOTHING.match(text).group()
            for found in _PROGRESS.finditer(nothing):
                self.progress = {"processed": int(found.group(1)), "total": int(found.group(2))}
            text = text[len(nothing):]
            if not text:
                return objects
            self.beginning = text[:_KEPT]
            if text[0] == "{":
                self._is_json = True
                self._rest.insert(0, text.encode("utf-8"))
                return objects
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()  # nothing follows the last newline
        for line in lines:
            # The one shape that nearly all lines have goes the short way.
            if line.startswith("data: {") and not self._held and not self._event:
                try:
                    value, end = _parse(line, 6)
                except (ValueError, RecursionError):
                    self._line(line, objects)
                    continue
                if end != len(line) and line[end:].strip():
                    self._line(line, objects)
                    continue
                if self._tap:
                    self._tap(line.rstrip("\r"))
                objects.append(value)
            elif line or self._held or self._event:
                self._line(line, objects)
                if self.done:
                    break
        return objects

    def _line(self, line: str, objects: list) -> None:
        line = line[:-1] if line.endswith("\r") else line
        if not line:
            self._blank(objects)
            return
        name, _, value = line.partition(":")
        if name == "data":
            self._data(value.strip(), objects)
        elif name == "event":
            self._event = value.strip()
        elif name == "error":
            self._emit({"error": _loads(value) or value.strip() or _NO_WORDS}, objects)
        elif line[0] == "{":
            value = _loads(line)
            if isinstance(value, dict):
                self._emit(value, objects)

    def _data(self, value: str, objects: list) -> None:
        if value == "[DONE]":
            self.done = True
            if self._tap:
                self._tap("data: [DONE]")
            return
        if not value:
            return
        self._held.append(value)
        if value[-1] == "}" and len(self._held) <= _MAX_TRIES:
            self._complete(objects)

    def _blank(self, objects: list) -> None:
        """A blank line, or the end of the body: the event is over."""
        if self._held and not self._complete(objects):
            self._held = []
            self.dropped += 1
        if self._event == "error":  # an error without a word is an error
            self._emit({"error": _NO_WORDS}, objects)
        self._event = ""

    def _complete(self, objects: list) -> bool:
        value = _loads("\n".join(self._held))
        if not isinstance(value, dict):
            value = _loads(self._held[-1])  # the lines before it were never an event's beginning
            if not isinstance(value, dict) or not ("choices" in value or "error" in value):
                return False
            self.dropped += 1
        self._held = []
        if self._event == "error":
            self._event = ""
            value = value if value.get("error") else {"error": value}
        self._emit(value, objects)
        return True

    def _whole(self, text: str) -> list:
        """A body that began with `{`: one object, or one a line."""
        value = _loads(text)
        objects = []
        for value in [value] if value is not None else map(_loads, text.split("\n")):
            if isinstance(value, dict):
                self._emit(value, objects)
        return objects

    def _emit(self, value: dict, objects: list) -> None:
        objects.append(value)
        if self._tap:
            try:
                self._tap("data: " + json.dumps(value))
            except RecursionError:
                pass  # it could just be read


def _loads(text: str):
    """The JSON value, or None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
