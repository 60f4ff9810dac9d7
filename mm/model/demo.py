"""The demo model: a script that answers as a model server would, so that everything but the model is the real
thing.

It is deterministic. It reads the last user message, does what the directives in it say (DIRECTIVES, one a
line), and answers in words that name them if there is none. docs/demo.md has the table; a test keeps the
two alike.
"""

from __future__ import annotations

import json
import re
import time
from collections import namedtuple

from mm.model import demo_tour
from mm.model.loopback import DONE, EVENT_STREAM, Loopback, Reply, error_reply, sse

MODEL = "demo"

GREETING = "I am mm's demo model: a script, not a language model."
HELP = "I do what a line of your message says:\n\n%s\n\nOr ask me to list the files, or for a `tour`."
NOT_OFFERED = "the tool %s is not offered here"
FAILURE = "the demo model was asked to fail"

# `slow:` writes about twenty words a second, at most this many.
SECONDS_A_WORD = 0.05
MAX_WORDS = 10_000

# How many lines of a tool's answer are repeated, and how long each may be.
_LINES_SHOWN = 12
_LINE_SHOWN = 80

# How much of the conversation a summary repeats.
_FACTS = 20
_FACT_SHOWN = 200
_SAID = "the user said: "

# What the last user message must hold to be the request for a summary that /compact makes.
_SUMMARY = re.compile(r"(?i)\b(summar|hand-?over)"), re.compile(r"(?i)\bconversation\b")

# The beginning of a message in which a wish is looked for: what is piped in after it may be long.
_LOOKED_AT = 1000
_LIST_FILES = re.compile(r"(?i)\b(list|show|see|what)\b.*\b(files|folder|directory)\b|^\s*ls\s*$")

_WORDS = re.compile(r"\s*\S+|\s+")

# One line of the table: the word before the colon, what follows it, the tool it calls (None: none; MCP_TOOL:
# one of a server's), what it does in the words of the documentation, and `act`, which takes what follows and
# returns the tool's arguments, a _Step, a _Call, or None if it cannot be read.
Directive = namedtuple("Directive", "word argument tool does act")

# What an answer is made of besides calls.
_Step = namedtuple("_Step", "thought text slow status")
_Step.__new__.__defaults__ = ("", "", 0, 0)

# A call of a tool that the directive itself names.
_Call = namedtuple("_Call", "tool arguments")
MCP_TOOL = "mcp__"  # how the names of all tools of MCP servers begin


def _breaks(text: str) -> str:
    """A directive is one line; \\n in it stands for a line break."""
    return text.replace("\\n", "\n")


def _write(text: str):
    path, sign, content = text.partition(" = ")
    return {"path": path.strip(), "content": _breaks(content)} if sign and path.strip() else None


def _edit(text: str):
    path, sign, change = text.partition(" = ")
    old, arrow, new = change.partition(" -> ")
    if not (sign and arrow and path.strip() and old):
        return None
    return {"path": path.strip(), "old_string": _breaks(old), "new_string": _breaks(new)}


def _ask(text: str):
    question, *options = [part.strip() for part in text.split("|")]
    if not question:
        return None
    kind = {"type": "choice", "options": options} if options else {"type": "text"}
    return {"questions": [dict(kind, question=question)]}


def _plan(text: str):
    steps = [step.strip() for step in text.split(";") if step.strip()]
    return {"action": "start", "steps": steps} if steps else None


def _lsp(text: str):
    names = ("action", "path", "symbol", "new_name")
    return dict(zip(names, text.split())) if 1 <= len(text.split()) <= len(names) else None


def _mcp(text: str):
    server, _, rest = text.partition(" ")
    tool, _, given = rest.strip().partition(" ")
    try:
        arguments = json.loads(given or "{}")
    except ValueError:
        return None
    if not (tool and isinstance(arguments, dict)):
        return None
    return _Call("%s%s__%s" % (MCP_TOOL, server, tool), arguments)


def _agent(text: str):
    name, _, question = (part.strip() for part in text.partition(" "))
    return {"agent": name, "prompt": question} if question else None


def _fetch(text: str):
    url, _, path = (part.strip() for part in text.partition(" -> "))
    return dict({"url": url}, **({"output": path} if path else {})) if url else None


def _think(text: str):
    return _Step(thought=text) if text else None


def _slow(text: str):
    return _Step(slow=min(int(text), MAX_WORDS)) if text.isdecimal() and int(text) else None


def _fail(text: str):
    return _Step(status=int(text)) if text.isdecimal() and 400 <= int(text) <= 599 else None


def _one(parameter: str):
    return lambda text: {parameter: text} if text else None


DIRECTIVES = (
    Directive("run", "CMD", "bash",
              "calls `bash` with the command CMD", _one("command")),
    Directive("read", "PATH", "read_file",
              "calls `read_file` for PATH", _one("path")),
    Directive("write", "PATH = TEXT", "write_file",
              "calls `write_file`: PATH gets TEXT, in which `\\n` is a line break", _write),
    Directive("edit", "PATH = OLD -> NEW", "edit_file",
              "calls `edit_file`: OLD in PATH becomes NEW, `\\n` as above", _edit),
    Directive("ask", "QUESTION | A | B", "ask_user",
              "calls `ask_user`: one question with its options; none: free text", _ask),
    Directive("plan", "A; B; C", "plan",
              "calls `plan` and starts one with these steps", _plan),
    Directive("skill", "NAME", "read_skill",
              "calls `read_skill` for NAME", _one("name")),
    Directive("fetch", "URL -> PATH", "fetch_content",
              "calls `fetch_content`: shows the page, or saves it to PATH if one is given", _fetch),
    Directive("lsp", "ACTION PATH SYMBOL", "lsp",
              "calls `lsp`, e.g. `lsp: definition a.py main`; for `rename` the new name follows", _lsp),
    Directive("mcp", "SERVER TOOL JSON", MCP_TOOL,
              "calls that tool of an MCP server with the arguments in JSON", _mcp),
    Directive("agent", "NAME QUESTION", "ask_agent",
              "calls `ask_agent`: puts QUESTION to the agent NAME", _agent),
    Directive("think", "TEXT", None,
              "reasons TEXT before it answers", _think),
    Directive("slow", "N", None,
              "answers in N (a number) words, about twenty a second", _slow),
    Directive("fail", "STATUS (400 to 599)", None,
              "answers with that HTTP status", _fail),
)

_BY_WORD = {directive.word: directive for directive in DIRECTIVES}
_LINE = re.compile(r"(%s):(?!//)(.*)" % "|".join(_BY_WORD))


def start() -> Loopback:
    """Serves the demo model on 127.0.0.1."""
    return Loopback(reply, MODEL)


def reply(request: dict) -> Reply:
    """The answer to one request for a completion, streamed word by word."""
    messages = [message for message in request.get("messages") or () if isinstance(message, dict)]
    offered = {_function(tool).get("name") for tool in request.get("tools") or ()}
    last = messages[-1] if messages else {}
    if last.get("role") == "tool":
        said = [_text(message) for message in messages if message.get("role") == "user"]
        on_tour = said and demo_tour.wanted(said[-1])
        step, calls = _Step(text=_about_results(messages) + ("\n\n" + demo_tour.NEXT if on_tour else "")), []
    elif last.get("role") == "user" and all(part.search(_text(last)) for part in _SUMMARY):
        step, calls = _Step(text=_summary(messages)), []
    elif demo_tour.wanted(_text(last)):
        found = demo_tour.step([dict(message, content=_text(message)) for message in messages])
        step, calls = _Step(found.thought, found.text), [call for call in found.calls if call[0] in offered]
    else:
        roles = [message.get("role") for message in messages]
        step, calls = _obey(_text(last), offered, is_first="assistant" not in roles)
    if step.status:
        return error_reply(step.status, FAILURE)
    return Reply(200, EVENT_STREAM, _stream(step, calls, _size(messages, request.get("tools"))))


def _obey(text: str, offered: set, is_first: bool):
    """What the directives in a user message come to: a _Step, and the calls as (tool, arguments)."""
    matches = map(_LINE.fullmatch, map(str.strip, text.splitlines()))
    found = [(match[1], match[2].strip()) for match in matches if match]
    if not found and _LIST_FILES.search(text[:_LOOKED_AT]):
        found = [("run", "ls")]
    thoughts, said, calls, slow = [], [], [], 0
    for word, argument in found:
        directive = _BY_WORD[word]
        wanted = directive.act(argument)
        tool = wanted.tool if type(wanted) is _Call else directive.tool
        if tool and not _is_offered(tool, offered):
            said.append(NOT_OFFERED % tool)
        elif wanted is None:
            said.append(f"`{word}:` wants {directive.argument}")
        elif type(wanted) is _Call:
            calls.append(wanted)
        elif directive.tool:
            calls.append((directive.tool, wanted))
        elif wanted.status:
            return wanted, []
        else:
            slow += wanted.slow
            thoughts += [wanted.thought] if wanted.thought else []
    if calls:
        said.append("I call " + ", ".join(name for name, _ in calls) + ".")
    elif thoughts and not said and not slow:
        said.append("I have thought about it.")
    elif not found:
        said.append(_help(offered))
    if is_first:
        said.insert(0, GREETING)
    return _Step("\n".join(thoughts), "\n".join(said), slow), calls


def _help(offered: set) -> str:
    lines = [f"- `{directive.word}: {directive.argument}` {directive.does}" for directive in DIRECTIVES
             if not directive.tool or _is_offered(directive.tool, offered)]
    return HELP % "\n".join(lines)


def _is_offered(tool: str, offered: set) -> bool:
    return any(name.startswith(MCP_TOOL) for name in offered) if tool == MCP_TOOL else tool in offered


def _about_results(messages: list) -> str:
    """A sentence for each tool result since the last answer."""
    names = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            names[call.get("id")] = _function(call).get("name")
    sentences = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        name = message.get("name") or names.get(message.get("tool_call_id")) or "the tool"
        sentences.insert(0, _about_result(name, _text(message)))
    return "\n\n".join(sentences)


def _about_result(name: str, output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    shown = [line if len(line) <= _LINE_SHOWN else line[:_LINE_SHOWN - 1] + "…"
             for line in lines[:_LINES_SHOWN]]
    if len(lines) < 2:
        return f"{name} answered: {shown[0].strip()}" if shown else f"{name} answered nothing."
    how_many = f"{len(lines)} lines"
    if len(lines) > _LINES_SHOWN:
        how_many += f", the first {_LINES_SHOWN} of them"
    return f"{name} answered {how_many}:\n\n" + "\n".join(shown)


def _summary(messages: list) -> str:
    """A hand-over that repeats what the user said and which tools were called; the demo model understands
    nothing."""
    users = [_text(message) for message in messages[:-1] if message.get("role") == "user"]
    if not users:  # the conversation may also come as a transcript inside the request itself
        users = re.findall(r"(?m)^user: *(.+)", _text(messages[-1]))
    facts = []
    for text in users:  # one of them may be an earlier summary
        facts += re.findall(rf"(?m)^- {_SAID}(.+)", text) or [" ".join(text.split())[:_FACT_SHOWN]]
    called = [_function(call).get("name") or "" for message in messages for call in message.get("tool_calls")
              or ()]
    done = [f"{name} was called {called.count(name)} time(s)" for name in dict.fromkeys(called)]
    parts = (("Goal", [_SAID + fact for fact in facts[:1]]),
             ("Rules from the user", [_SAID + fact for fact in facts[1:][-_FACTS:]]), ("Done", done),
             ("Next step", ["wait for the user"]))
    return "\n\n".join("\n".join([head, *(f"- {line}" for line in lines)]) for head, lines in parts if lines)


def _stream(step: _Step, calls: list, prompt_size: int):
    """The events of one answer. When the client hangs up, the server closes this generator while it waits."""
    words = 0
    yield _chunk({"role": "assistant", "content": ""})
    for word in _WORDS.findall(step.thought):
        words += 1
        yield _chunk({"reasoning_content": word})
    thought = words
    for word in _WORDS.findall(step.text + ("\n\n" if step.text and step.slow else "")):
        words += 1
        yield _chunk({"content": word})
    for number in range(1, step.slow + 1):
        words += 1
        yield _chunk({"content": f"{number}" if number == 1 else f" {number}"})
        time.sleep(SECONDS_A_WORD)
    for index, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": ""}
        yield _chunk({"tool_calls": [{"index": index, "id": f"demo_{index}", "type": "function",
                                      "function": function}]})
        for piece in _WORDS.findall(json.dumps(arguments, ensure_ascii=False)):
            words += 1
            yield _chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield _chunk({}, "tool_calls" if calls else "stop")
    usage = {"prompt_tokens": prompt_size, "completion_tokens": words, "total_tokens": prompt_size + words}
    if thought:
        usage["completion_tokens_details"] = {"reasoning_tokens": thought}
    yield sse({"object": "chat.completion.chunk", "model": MODEL, "choices": [], "usage": usage})
    yield DONE


def _chunk(delta: dict, finish=None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return sse({"id": "demo", "object": "chat.completion.chunk", "created": 0, "model": MODEL,
                "choices": [choice]})


def _size(messages: list, tools) -> int:
    """Tokens, at four characters each: the same request always counts the same."""
    return max(1, len(json.dumps([messages, tools])) // 4)


def _function(call) -> dict:
    function = call.get("function") if isinstance(call, dict) else None
    return function if isinstance(function, dict) else {}


def _text(message: dict) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
