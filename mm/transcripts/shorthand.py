"""The short form of lines that most transcripts have: `> prompt: hello` in place of 120 characters of JSON.
Pure.

FORMS has them all. A `{field}` stands in the short line and in the JSON. The fields `request`, `prompt` and
`session` are in the JSON alone: they follow from the lines above.
"""

from __future__ import annotations

import json
import re
from collections import namedtuple

from mm.transcripts.placeholders import mark, marked, written

# `short` is a line without its sign, `long` the (sign, message) of each line that it stands for.
Form = namedtuple("Form", "sign short long pattern")

# What a field may be in a short line. TEXT is the rest of the line, or a JSON string.
_FIELDS = {"text": r".+", "line": r".+?", "ref": r"call_\d+", "n": r"\d+|" + mark("n"),
           "size": r"\d+|" + mark("n"), "word": r"\w+", "ended": r"completed|failed", "json": r"\{.*\}",
           "path": r"\S+"}
_NUMBERS = ("n", "size")
_FIELD = re.compile(r"\{(\w+)\}")

_OPTIONS = [{"optionId": option, "kind": kind, "name": name} for option, kind, name in (
    ("allow", "allow_once", "Allow"), ("allow_always", "allow_always", "Always allow"),
    ("reject", "reject_once", "Reject"), ("never", "reject_always", "Never allow"))]


def _form(sign, short, *messages, signs=""):
    pattern = "".join("(?P<%s>%s)" % (piece, _FIELDS[piece]) if index % 2 else re.escape(piece)
                      for index, piece in enumerate(_FIELD.split(short)))
    return Form(sign, short, list(zip(signs.split() or sign * len(messages), messages)),
                re.compile(pattern + r"\Z", re.DOTALL))


def _request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _update(name, **fields):
    return {"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": "{session}", "update": dict({"sessionUpdate": name}, **fields)}}


def _answer(number, **answer):
    return dict({"jsonrpc": "2.0", "id": number}, **answer)


def _content(text):
    return [{"type": "content", "content": {"type": "text", "text": text}}]


def _chunk(kind):
    return _update(kind, content={"type": "text", "text": "{text}"})


def _call(title, kind, given, **more):
    return _update("tool_call", toolCallId="{ref}", title=title, kind=kind, status="pending", rawInput=given,
                   **more)


def _ended(status, content):
    return _update("tool_call_update", toolCallId="{ref}", status=status, content=_content(content),
                   rawOutput={"output": "{text}"})


def _session(name):
    return (_request("{request}", "session/new", cwd=mark("cwd"), mcpServers=[]),
            _answer("{request}", result={"sessionId": name}),
            {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": name, "update": {
                "sessionUpdate": "available_commands_update", "availableCommands": mark("any")}}})


_FENCED = "```\n{text}\n```"
_RUNS = _update("tool_call_update", toolCallId="{ref}", status="in_progress")
_BASH = {"toolCallId": "{ref}", "title": "bash: {line}", "kind": "execute", "rawInput": {"command": "{line}"},
         "content": _content("```\n{line}\n```")}

FORMS = (
    _form("#", "session", *_session(mark("id")), signs="> < <*"),
    _form("#", "session {n}", *_session(mark("id{n}")), signs="> < <*"),
    _form(">", "prompt: {text}", _request("{request}", "session/prompt", sessionId="{session}",
                                          prompt=[{"type": "text", "text": "{text}"}])),
    _form(">", "cancel", {"jsonrpc": "2.0", "method": "session/cancel",
                          "params": {"sessionId": "{session}"}}),
    _form(">", "answer {n}: {word}", _answer("{n}",
                                             result={"outcome": {"outcome": "selected",
                                                                 "optionId": "{word}"}})),
    _form("<", "text: {text}", _chunk("agent_message_chunk")),
    _form("<", "thought: {text}", _chunk("agent_thought_chunk")),
    _form("<", "user: {text}", _chunk("user_message_chunk")),
    _form("<", "{ref} runs", _RUNS),
    _form("<", "{ref} ran: {text}", _RUNS, _ended("completed", _FENCED)),
    _form("<", "{ref} ran, plain: {text}", _RUNS, _ended("completed", "{text}")),
    _form("<", "{ref} {ended}: {text}", _ended("{ended}", _FENCED)),
    _form("<", "{ref} {ended}, plain: {text}", _ended("{ended}", "{text}")),
    _form("<", "{ref} {line} ({word}) {json} at {path}",
          _call("{line}", "{word}", "{json}", locations=[{"path": "{path}"}])),
    _form("<", "{ref} {line} ({word}) {json}", _call("{line}", "{word}", "{json}")),
    _form("<", "{ref} bash: {line}", _call("bash: {line}", "execute", {"command": "{line}"})),
    _form("<", "asks {n}: {ref} bash: {line}", _request(
        "{n}", "session/request_permission", sessionId="{session}", toolCall=_BASH, options=_OPTIONS)),
    _form("<", "usage: {n} of {size}", _update("usage_update", used="{n}", size="{size}")),
    _form("<", "done: {word}", _answer("{prompt}", result={"stopReason": "{word}"})),
    _form("<", "done: {word} {json}", _answer("{prompt}",
                                              result={"stopReason": "{word}", "usage": "{json}"})),
    _form("<", "error: {text}", _answer("{prompt}", error={
        "code": -32603, "message": "Internal error: {text}", "data": {"error": "{text}"}})),
    _form("~", "", {}),
    _form("=", "text: {text}", {"text": "{text}"}),
    _form("=", "thought: {text}", {"thought": "{text}"}),
    _form("=", "bash: {text}", {"call": {"name": "bash", "arguments": {"command": "{text}"}}}),
    _form("=", "{word} {json}", {"call": {"name": "{word}", "arguments": "{json}"}}),
)


class Shorthand:
    """Reads and writes the short form, line by line from the beginning of a transcript."""

    def __init__(self):
        self._known = {"request": 0, "prompt": 0, "session": mark("id")}  # the last ones

    def lines(self, sign: str, text: str) -> list:
        """[(sign, text)] in the long form for a line in either form."""
        long = [(sign, written(message)) for sign,
                message in self._read(sign, marked(text))] or [(sign, text)]
        for each in long:
            self._notice(*each)
        return long

    def session(self, request, answer) -> tuple:
        """The short form of these two lines of a new session and of the commands that follow them; or
        None.
        """
        found = re.search(r"<(id\d*)>", answer[1])
        commands = _filled(FORMS[1].long[2][1], {"n": found.group(1)[2:]}) if found else None
        return self.shortened(request, answer, ("<*", written(commands))) if found else None

    def shortened(self, *lines) -> tuple:
        """(sign, text) of the short form of these lines in the long form; None if they have none."""
        try:
            messages = [(sign, json.loads(marked(text))) for sign, text in lines]
        except (ValueError, RecursionError):
            return None
        found = []
        for form in FORMS:
            values = {}
            if [sign for sign, _ in form.long] == [sign for sign, _ in lines] and all(
                    _fits(template, message, values)
                    for (_, template), (_, message) in zip(form.long, messages)):
                short = _FIELD.sub(lambda found: _shown(found.group(1), values), form.short)
                # Whatever else the lines hold, the short form must say all of it.
                if self._read(form.sign, marked(short)) == messages:
                    found.append((form.sign, short))
        return min(found, key=lambda line: len(line[1]), default=None)

    def _read(self, sign, text) -> list:
        """(sign, message) of each line that a short one stands for, none for a line in the long form."""
        for form in FORMS:
            found = form.pattern.match(text) if form.sign == sign and not text.startswith("{") else None
            values = _values(found.groupdict()) if found else None
            if values is not None:
                values.update(self._known, request=self._known["request"] + 1)
                return [(sign, _filled(message, values)) for sign, message in form.long]
        return []

    def _notice(self, sign, text) -> None:
        """What follows from a line for later ones."""
        try:
            message = json.loads(marked(text)) if sign in "><" else None
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict):
            return
        params, result = (message.get(key) if isinstance(message.get(key), dict) else {}
                          for key in ("params", "result"))
        if sign == ">" and isinstance(message.get("id"), int) and "method" in message:
            self._known["request"] = message["id"]
            if message["method"] == "session/prompt":
                self._known["prompt"] = message["id"]
        session = params.get("sessionId") if sign == ">" else result.get("sessionId")
        self._known["session"] = session or self._known["session"]


def _filled(template, values):
    if isinstance(template, dict):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    whole = _FIELD.fullmatch(template) if isinstance(template, str) else None
    if whole:
        return values[whole.group(1)]
    return _FIELD.sub(lambda found: str(values[found.group(1)]), template) if isinstance(template,
                                                                                         str) else template


def _fits(template, value, values) -> bool:
    """Whether a message may be a filled template; `values` takes what is in its fields."""
    if isinstance(template, dict):
        return isinstance(value, dict) and set(template) == set(value) and all(
            _fits(template[key], value[key], values) for key in template)
    if isinstance(template, list):
        return isinstance(value, list) and len(template) == len(value) and all(
            _fits(*pair, values) for pair in zip(template, value))
    whole = _FIELD.fullmatch(template) if isinstance(template, str) else None
    if whole:
        values.setdefault(whole.group(1), value)
        return True
    if isinstance(template, str) and isinstance(value, str):
        pieces = _FIELD.split(template)
        pattern = "".join("(?P<%s>.*)" % piece if index % 2 else re.escape(piece) for index,
                          piece in enumerate(pieces))
        found = re.fullmatch(pattern, value, re.DOTALL)
        for name, part in found.groupdict().items() if found else ():
            values.setdefault(name, part)
        return bool(found)
    return template == value


def _values(given):
    """The values of the fields of a short line; None if it is not one."""
    try:
        return {name: json.loads(text) if name == "json" or name == "text" and text.startswith('"')
                else int(text) if name in _NUMBERS and text.isdigit() else text for name,
                text in given.items()}
    except (ValueError, RecursionError):
        return None


def _shown(name, values) -> str:
    """A field's value as a short line has it."""
    quoted = written(values.get(name))
    plain = quoted[1:-1]
    if name == "text":
        return quoted if not plain or "\\" in plain or plain != plain.strip() else plain
    return plain if quoted.startswith('"') else quoted
