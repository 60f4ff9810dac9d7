"""The short way to write the lines that most transcripts have: `> prompt: hello` for a request of 120
characters. Pure.

    # session                    a new session in <cwd>: the request, its answer and the commands (# session 2: the next one)
    > prompt: TEXT               session/prompt in the session of the line before
    > cancel                     session/cancel
    > answer 3: OPTION           the answer to the agent's request 3: the option selected
    < text: TEXT                 agent_message_chunk; thought: and user: likewise
    < call_1 bash: ls            tool_call, pending. Further parts may follow the title, in this order: (KIND), a JSON object
                                 for its rawInput, and `at PATH` for its one location
    < call_1 runs                tool_call_update: in_progress
    < call_1 completed: TEXT     its end, with TEXT as fenced content and as rawOutput; failed: likewise
    < call_1 completed, plain: TEXT   the same, not fenced
    < call_1 ran: TEXT           runs, then completed; ran, plain: likewise
    < asks 3: call_1             session/request_permission for that call of bash, with id 3 and the usual options
    < usage: 110 of 8192         usage_update
    < done: end_turn             the answer to the last prompt; a JSON object behind it is its usage
    < error: TEXT                the same, an internal error
    ~                            any request to the model
    = text: TEXT                 thought: likewise
    = bash: ls                   the model calls bash with this
    = NAME {json}                the model calls this tool with these arguments

TEXT is the rest of the line, or a JSON string. Ids of requests count up from 1, those of sessions are <id>,
<id2>, ….
"""

from __future__ import annotations

import json
import re

from mm.transcripts.placeholders import mark, marked, unmark, written

SETTING = re.compile(r"session(?: (\d+))?$")
_KINDS = {"bash": "execute", "read_file": "read", "read_skill": "read", "write_file": "edit", "edit_file": "edit",
          "fetch_content": "fetch"}
_CHUNKS = {"text": "agent_message_chunk", "thought": "agent_thought_chunk", "user": "user_message_chunk"}
_OPTIONS = [{"optionId": option, "kind": kind, "name": name} for option, kind, name in (
    ("allow", "allow_once", "Allow"), ("allow_always", "allow_always", "Always allow"),
    ("reject", "reject_once", "Reject"), ("never", "reject_always", "Never allow"))]

_ID = re.compile(mark(r"id(\d*)") + "$")
_TEXT = re.compile(r"(text|thought|user): (.*)$", re.DOTALL)
_CALL = re.compile(r"(call_\d+) (.*?)(?: \((\w+)\))?(?: (\{.*\}))?(?: at (\S+))?$", re.DOTALL)
_STEP = re.compile(r"(call_\d+) (?:runs|(completed|failed|ran)(, plain|): (.*))$", re.DOTALL)
_ASKS = re.compile(r"asks (\d+): (call_\d+)$")
_USAGE = re.compile(r"usage: (\d+|%s) of (\d+|%s)$" % (mark("n"), mark("n")))
_DONE = re.compile(r"done: (\w+)(?: (\{.*\}))?$", re.DOTALL)
_ANSWER = re.compile(r"answer (\d+): (\w+)$")
_MODEL_CALL = re.compile(r"(\w+) (\{.*\})$", re.DOTALL)


class Shorthand:
    """Reads and writes the short form line by line; what a line leaves out follows from those before it."""

    def __init__(self):
        self._request = 0  # the client's last one
        self._prompt = 0  # the request that was its last prompt
        self._session = mark("id")
        self._calls = {}  # reference: the tool_call

    def lines(self, sign: str, text: str) -> list:
        """[(sign, text)] in the long form for one line, which may be in either. Raises ValueError for a
        broken one."""
        made = list(self._made(sign, marked(text)))
        found = [(sign, written(message)) for sign, message in made] or [(sign, text)]
        for each in found:
            self._notice(*each)
        return found

    # ---------------------------------------------------------------- reading

    def _made(self, sign, text):
        """(sign, message) of each line that a line in the short form stands for; nothing for the long form.
        """
        if sign == "#":
            found = SETTING.match(text)
            return self._new_session(found.group(1)) if found else ()
        if sign == "~":
            return () if text else [(sign, {})]
        read = {">": self._sent, "<": self._received, "=": self._answered}.get(sign)
        return [(sign, message) for message in read(text)] if read and not text.startswith("{") else ()

    def _new_session(self, number):
        self._session = mark("id%s" % (number or ""))
        params = {"cwd": mark("cwd"), "mcpServers": []}
        commands = self._update("available_commands_update", availableCommands=mark("any"))
        return [(">", _request(self._request + 1, "session/new", params)),
                ("<", {"jsonrpc": "2.0", "id": self._request + 1, "result": {"sessionId": self._session}}),
                ("<*", commands)]

    def _sent(self, text):
        if text.startswith("prompt: "):
            prompt = [{"type": "text", "text": _read(text[len("prompt: "):])}]
            yield _request(self._request + 1, "session/prompt", {"sessionId": self._session, "prompt": prompt})
        elif text == "cancel":
            yield {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": self._session}}
        elif _ANSWER.match(text):
            number, option = _ANSWER.match(text).groups()
            yield {"jsonrpc": "2.0", "id": int(number), "result": {"outcome": {"outcome": "selected", "optionId": option}}}

    def _received(self, text):
        for pattern, read in ((_TEXT, self._chunk), (_STEP, self._step), (_CALL, self._call), (_ASKS, self._asks),
                              (_USAGE, self._used), (_DONE, self._done)):
            found = pattern.match(text)
            if found:
                yield from read(*found.groups())
                return
        if text.startswith("error: "):
            error = _read(text[len("error: "):])
            yield {"jsonrpc": "2.0", "id": self._prompt, "error": {
                "code": -32603, "message": "Internal error: " + error, "data": {"error": error}}}

    def _chunk(self, word, text):
        yield self._update(_CHUNKS[word], content={"type": "text", "text": _read(text)})

    def _call(self, ref, title, kind, given, path):
        name, _, rest = title.partition(": ")
        given = json.loads(given) if given else {"command": rest}
        locations = {"locations": [{"path": path}]} if path else {}
        yield self._update("tool_call", toolCallId=ref, title=title, kind=kind or _KINDS.get(name, "other"),
                           status="pending", rawInput=given, **locations)

    def _step(self, ref, end, plain, text):
        if end in (None, "ran"):
            yield self._update("tool_call_update", toolCallId=ref, status="in_progress")
        if end:
            output = _read(text)
            content = output if plain else "```\n%s\n```" % output
            yield self._update("tool_call_update", toolCallId=ref, status="failed" if end == "failed" else "completed",
                               content=[_content(content)], rawOutput={"output": output})

    def _asks(self, number, ref):
        call = self._calls.get(ref)
        if not isinstance(call, dict) or "command" not in call["rawInput"]:
            raise ValueError("asks for %s, which is not a call of bash above this line" % ref)
        shown = {key: call[key] for key in ("toolCallId", "title", "kind", "rawInput")}
        shown["content"] = [_content("```\n%s\n```" % call["rawInput"]["command"])]
        yield _request(int(number), "session/request_permission",
                       {"sessionId": self._session, "toolCall": shown, "options": _OPTIONS})

    def _used(self, used, size):
        used, size = (int(each) if each.isdigit() else each for each in (used, size))
        yield self._update("usage_update", used=used, size=size)

    def _done(self, reason, usage):
        result = dict({"stopReason": reason}, **({"usage": json.loads(usage)} if usage else {}))
        yield {"jsonrpc": "2.0", "id": self._prompt, "result": result}

    def _answered(self, text):
        call = _MODEL_CALL.match(text)
        word, colon, rest = text.partition(": ")
        if call:
            yield {"call": {"name": call.group(1), "arguments": json.loads(call.group(2))}}
        elif colon and word in ("text", "thought"):
            yield {word: _read(rest)}
        elif colon and word == "bash":
            yield {"call": {"name": "bash", "arguments": {"command": _read(rest)}}}

    # ---------------------------------------------------------------- writing

    def shortened(self, sign: str, text: str) -> str:
        """A line of the long form in the short form, or the text as it is where there is none."""
        try:
            message = json.loads(marked(text))
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict):
            # Whatever else the message holds, the short form must say all of it.
            text = next((short for short in self._candidates(sign, message) if self._says(sign, short, message)), text)
        try:
            self.lines(sign, text)  # for what later lines leave out
        except ValueError:
            pass  # a broken line of the client's
        return text

    def session(self, request: str, answer: str) -> str:
        """`session` or `session N` if these two lines open a session in that way, else ""."""
        try:
            asked, answered = json.loads(marked(request)), json.loads(marked(answer))
        except (ValueError, RecursionError):
            return ""
        found = _ID.match(str(_in(answered, "result", "sessionId")))
        if not found or list(self._new_session(found.group(1)))[:2] != [(">", asked), ("<", answered)]:
            return ""
        short = "session" + (" " + found.group(1) if found.group(1) else "")
        self.lines("#", short)
        return short

    def _says(self, sign, short, message):
        try:
            return list(self._made(sign, marked(short))) == [(sign, message)]
        except ValueError:
            return False

    def _candidates(self, sign, message):
        if sign == "~" and not message:
            yield ""
        elif sign == "=" and len(message) == 1:
            yield from _short_answer(*next(iter(message.items())))
        elif sign == ">":
            yield from _short_request(message)
        elif sign == "<" and "result" in message:
            result = message["result"] if isinstance(message["result"], dict) else {}
            yield "done: %s%s" % (result.get("stopReason"), _json_behind(result.get("usage")))
        elif sign == "<" and "error" in message:
            yield "error: " + _text(_in(message, "error", "data", "error"))
        elif sign == "<" and message.get("method") == "session/request_permission":
            yield "asks %s: %s" % (message.get("id"), _in(message, "params", "toolCall", "toolCallId"))
        elif sign == "<":
            yield from _short_update(_in(message, "params", "update"))

    def _update(self, name, **fields):
        update = dict({"sessionUpdate": name}, **fields)
        return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": self._session, "update": update}}

    def _notice(self, sign, text):
        """What later lines may leave out, from a line in the long form."""
        try:
            message = json.loads(marked(text)) if sign in "><" else None
        except (ValueError, RecursionError):
            return
        params = message.get("params") if isinstance(message, dict) else None
        if not isinstance(params, dict):
            return
        if sign == ">" and isinstance(message.get("id"), int):
            self._request = message["id"]
            if message.get("method") == "session/prompt":
                self._prompt = message["id"]
            if message.get("method") in ("session/prompt", "session/load"):
                self._session = params.get("sessionId")
        update = params.get("update")
        if sign == "<" and isinstance(update, dict) and update.get("sessionUpdate") == "tool_call":
            if isinstance(update.get("rawInput"), dict) and {"toolCallId", "title", "kind"} <= set(update):
                self._calls[str(update["toolCallId"])] = update


def _request(number, method, params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _content(text):
    return {"type": "content", "content": {"type": "text", "text": text}}


def _read(text: str) -> str:
    """TEXT as a line has it."""
    if not text.startswith('"'):
        return text
    value = json.loads(text)
    if not isinstance(value, str):
        raise ValueError("has a text that is not one JSON string")
    return value


def _text(value) -> str:
    """TEXT as a line has it: as it is, or as a JSON string where that would be read as something else."""
    quoted = written(value) if isinstance(value, str) else '""'
    plain = quoted[1:-1]
    return quoted if not plain or "\\" in plain or plain != plain.strip() else plain


def _json_behind(value) -> str:
    return "" if value is None else " " + written(value)


def _in(value, *keys):
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _short_request(message):
    prompt = _in(message, "params", "prompt")
    if message.get("method") == "session/cancel":
        yield "cancel"
    elif isinstance(prompt, list) and len(prompt) == 1:
        yield "prompt: " + _text(_in(prompt[0], "text"))
    elif "result" in message:
        yield "answer %s: %s" % (message.get("id"), _in(message, "result", "outcome", "optionId"))


def _short_answer(key, value):
    if key in ("text", "thought"):
        yield "%s: %s" % (key, _text(value))
    elif key == "call":
        yield "bash: " + _text(_in(value, "arguments", "command"))
        yield "%s %s" % (_in(value, "name"), written(_in(value, "arguments")))


def _short_update(update):
    kind, ref = _in(update, "sessionUpdate"), _in(update, "toolCallId")
    for word, name in _CHUNKS.items():
        if kind == name:
            yield "%s: %s" % (word, _text(_in(update, "content", "text")))
    if kind == "usage_update":
        yield unmark("usage: %s of %s" % (_in(update, "used"), _in(update, "size")))
    elif kind == "tool_call":
        title, locations = _in(update, "title"), _in(update, "locations")
        place = " at %s" % _in(locations[0], "path") if isinstance(locations, list) and locations else ""
        for kind in ("", " (%s)" % _in(update, "kind")):
            yield unmark("%s %s%s%s" % (ref, title, kind, place))
            yield unmark("%s %s%s%s%s" % (ref, title, kind, _json_behind(_in(update, "rawInput")), place))
    elif kind == "tool_call_update":
        yield "%s runs" % ref
        for plain in ("", ", plain"):
            yield "%s %s%s: %s" % (ref, _in(update, "status"), plain, _text(_in(update, "rawOutput", "output")))
