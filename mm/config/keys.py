"""The keys of the configuration: the one table that makes its values, its JSON Schema and its page in docs/.

Almost data only. A shape is a JSON Schema fragment of the few words that mm.config.schema knows, so what is
checked and what `mm --config-schema` prints cannot differ. `title` is what an error says is allowed where the
other words do not say it well; `writeOnly` marks what may hold a secret and so is never repeated in a
message.
"""

from __future__ import annotations

import re
from collections import namedtuple

# `name` as written in a file, with dots for nesting. `default` None means unset, and `shown` is how the
# documentation writes the default where the value itself does not say it. `entries` names what the keys of a
# map are ("<event>"): a map is overridden entry by entry. `trust` is what an untrusted folder's file may do
# with the key.
Key = namedtuple("Key", "name shape default meaning shown entries trust")
Key.__new__.__defaults__ = (None, None, "no")

# What an untrusted folder's file may do: nothing; anything; only switch off; add to a list; lower a limit;
# name folders inside its own.
NO, ANY, ONLY_FALSE = "no", "any", "only false"
ONLY_ADD, ONLY_LOWER, ONLY_INSIDE = "only add", "only lower", "only inside"

# The limits where 0 means none, so that every other number is lower.
NO_LIMIT_AT_ZERO = frozenset({"maxSteps", "model.maxReasoning", "model.timeout"})

HOOK_TIMEOUT, MCP_TIMEOUT = 10, 60
EVENTS = ("sessionStart", "userPrompt", "preToolCall", "postToolCall", "turnEnd", "preCompact", "sessionEnd")
TOOL_EVENTS = ("preToolCall", "postToolCall")
# What a hook that fails does: a guard that cannot speak must not open the door.
ON_FAILURE = {event: "deny" if event == "preToolCall" else "allow" for event in EVENTS}
TOOLS = ("bash", "read_file", "write_file", "edit_file", "fetch_content", "read_skill", "ask_user",
         "ask_agent", "plan", "lsp")

DAY = 86400
MANY = 100_000_000

BOOLEAN = {"type": "boolean"}
# Patterns end with END, because to Python `$` also matches before a last line break. No file, program or
# variable can hold a NUL or half of a surrogate pair.
END = "$(?!\\n)"
_CHARACTERS = "[^\\u0000\\ud800-\\udfff]"
TEXT = {"type": "string", "minLength": 1, "pattern": "^" + _CHARACTERS + "+" + END}
MAYBE_EMPTY = {"type": "string", "pattern": "^" + _CHARACTERS + "*" + END}


def _whole(low, high):
    return {"type": "integer", "minimum": low, "maximum": high}


def _number(low, high):
    return {"type": "number", "minimum": low, "maximum": high}


def _texts(**more):
    return dict({"type": "array", "items": TEXT}, **more)


# A value that goes into an HTTP header: visible Latin-1, spaces and tabs inside, no line break (RFC 9110,
# 5.5).
HEADER_VALUE = {"type": "string", "minLength": 1, "maxLength": 8000,
                "pattern": "^[!-~\\u00a1-\\u00ff]([\\t -~\\u00a0-\\u00ff]*[!-~\\u00a1-\\u00ff])?" + END,
                "title": "text of one line in Latin-1, or \"$NAME\" to read it from the environment",
                "writeOnly": True}
HEADERS = {"type": "object", "propertyNames": {"pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+" + END,
                                               "title": "a header's name"},
           "additionalProperties": HEADER_VALUE, "writeOnly": True}

_PORT = "(:([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
URL = {"type": "string", "maxLength": 2000,
       "pattern": "^(?!.*/(chat/completions|models)/*$)https?://(\\[[0-9A-Fa-f:.]+\\]|[0-9A-Za-z._~-]+)"
       + _PORT +
                  "(/[0-9A-Za-z._~%!$&'()*+,;=:@-]*)*" + END,
       "title": "a base URL such as \"http://127.0.0.1:8080/v1\", without user name, query or fragment"}

ENVIRONMENT = {"type": "object", "propertyNames": {"pattern": "^[^=\\u0000\\ud800-\\udfff]+" + END,
                                                   "title": "a variable's name"},
               "additionalProperties": dict(MAYBE_EMPTY, writeOnly=True), "writeOnly": True}
COMMAND = {"anyOf": [TEXT, _texts(minItems=1)],
           "title": "a program, or the whole command line as a list of texts"}
ARGUMENTS = {"type": "array", "items": dict(MAYBE_EMPTY, writeOnly=True), "writeOnly": True}

EXTRA = {"type": "object", "writeOnly": True,
         "propertyNames": {"not": {"enum": ["model", "messages", "tools", "stream"]},
                           "title": "any field but model, messages, tools and stream"}}


def _entry(required, **properties):
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _hooks(event):
    properties = {"command": TEXT}
    if event in TOOL_EVENTS:
        properties["match"] = dict(TEXT, maxLength=1000, format="regex",
                                   title="a regular expression for whole tool names")
    properties["timeout"] = dict(_number(0.1, 3600), default=HOOK_TIMEOUT)
    properties["onFailure"] = {"enum": ["deny", "allow"], "default": ON_FAILURE[event]}
    return {"type": "array", "items": _entry(["command"], **properties)}


HOOKS = {"type": "object", "properties": {event: _hooks(event) for event in EVENTS},
         "additionalProperties": False}
NAME = {"pattern": "^[A-Za-z0-9_-]{1,40}" + END,
        "title": "a name of at most 40 letters, digits, \"_\" and \"-\""}
MCP = {"type": "object", "propertyNames": NAME, "additionalProperties": _entry(
    ["command"], command=COMMAND, args=ARGUMENTS, env=ENVIRONMENT, permissions={"enum": ["ask"]},
    tools=_texts(), timeout=dict(_number(0.1, DAY), default=MCP_TIMEOUT))}
AGENTS = {"type": "object", "propertyNames": NAME, "additionalProperties": _entry(
    ["command"], command=COMMAND, args=ARGUMENTS, env=ENVIRONMENT, cwd=TEXT, description=TEXT)}
EXTENSION = {"type": "string", "pattern": "^\\.[^/\\\\\\u0000\\ud800-\\udfff]+" + END,
             "title": "an extension with its dot, such as \".py\""}
LSP = {"anyOf": [{"const": False}, {"type": "object",
                                    "propertyNames": {"pattern": TEXT["pattern"], "title": "a language"},
                                   "additionalProperties": _entry(
    ["command", "extensions"], command=COMMAND,
    extensions={"type": "array", "minItems": 1, "items": EXTENSION})}],
    "title": "false, or an object with one entry a language"}

TOOL_NAME = {"type": "string", "anyOf": [{"enum": list(TOOLS)}, {"pattern": "^mcp__[A-Za-z0-9_-]+" + END}],
             "title": "a tool of mm (" + ", ".join(TOOLS) + ") or mcp__<server>__<tool>"}
# One line without control characters: these texts come from the project too, and go into the system prompt.
AGENT_NAME = {"type": "string", "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff]{1,64}" + END,
              "title": "one line of 1 to 64 characters"}
AGENT_TITLE = {"type": "string", "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff]{0,200}" + END,
               "title": "one line of at most 200 characters"}

KEYS = (
    Key("model.url", URL, None,
        "Base URL of the model server; without `/v1` both are tried. Unset: the first local server that answers.",
        "found"),
    Key("model.name", dict(TEXT, maxLength=500), None,
        "Name of the model.", "the loaded one, else the first"),
    Key("model.apiKey", HEADER_VALUE, None,
        "Sent as `Authorization: Bearer`. `\"$NAME\"` reads the environment; never logged.", "none"),
    Key("model.headers", HEADERS, {},
        "Headers of every request, by name. `\"$NAME\"` reads the environment; never logged.", "none"),
    Key("model.contextWindow", _whole(0, MANY), 0,
        "Tokens of the context window; 0: ask the server.", "probe"),
    Key("model.temperature", _number(0, 2), None, "Sent only when set."),
    Key("model.maxTokens", _whole(1, MANY), None, "Sent only when set.", trust=ONLY_LOWER),
    Key("model.extra", EXTRA, {},
        "Fields merged into every request; cannot set model, messages, tools, stream.", "none"),
    Key("model.maxReasoning", _whole(0, MANY), 24000,
        "Characters of reasoning after which it is cut; 0: never.", trust=ONLY_LOWER),
    Key("model.timeout", _number(0, DAY), 0,
        "Seconds without a byte after which a request fails; 0: none.", trust=ONLY_LOWER),
    Key("yolo", BOOLEAN, True, "Run every tool without asking; `false` asks.", trust=ONLY_FALSE),
    Key("maxSteps", _whole(0, 1_000_000), 100, "Model calls a turn; 0: no limit.", trust=ONLY_LOWER),
    Key("acp.name", AGENT_NAME, "bob", "`agentInfo.name`, and the name in the system prompt.", trust=ANY),
    Key("acp.title", AGENT_TITLE, "Bob (bash-first agent)", "`agentInfo.title`; empty: none.", trust=ANY),
    Key("acp.thoughts", BOOLEAN, True, "Reasoning goes out as `agent_thought_chunk`.", trust=ANY),
    Key("sessions.enabled", BOOLEAN, False, "Keep sessions on disk and offer `session/load`.", trust=ANY),
    Key("sessions.dir", dict(TEXT, maxLength=500), ".mm/sessions",
        "Where, relative to the session's folder.", trust=ONLY_INSIDE),
    Key("context.threshold", _number(0.1, 1), 0.8,
        "Part of the window that may be used before it is compacted.", trust=ANY),
    Key("context.keepLastTurns", _whole(0, 1000), 2, "Turns that a compaction keeps.", trust=ANY),
    Key("context.reserve", _whole(0, MANY), None,
        "Tokens kept free for the answer.", "min(4096, window/8)", trust=ANY),
    Key("loop.enabled", BOOLEAN, True, "Stop a model that repeats itself."),
    Key("loop.repeats", _whole(2, 100), 3, "Equal calls in a row that count as a loop.", trust=ONLY_LOWER),
    Key("bash.timeout", _number(1, DAY), 120,
        "Seconds a command may run; never more than `bash.maxTimeout`.", trust=ONLY_LOWER),
    Key("bash.maxTimeout", _number(1, DAY), 600, "Seconds the model may ask for.", trust=ONLY_LOWER),
    Key("bash.maxOutput", _whole(100, 10_000_000), 30000,
        "Characters of a command's output that the model is shown.", trust=ONLY_LOWER),
    Key("bash.shell", TEXT, "bash", "The shell that runs commands and hooks."),
    Key("skills.dirs", _texts(), [],
        "Folders searched for skills before the standard ones.", trust=ONLY_INSIDE),
    Key("hooks", HOOKS, {},
        "`[{command, match?, timeout?, onFailure?}]`; `match` for the tool events only.", "[]", "<event>"),
    Key("mcp", MCP, {},
        "`{command, args?, env?, permissions?: \"ask\", tools?, timeout?}`", entries="<name>"),
    Key("agents", AGENTS, {}, "`{command, args?, env?, cwd?, description?}`", entries="<name>"),
    Key("askAgent.maxDepth", _whole(0, 10), 2, "Agents that may ask agents in turn.", trust=ONLY_LOWER),
    Key("askAgent.idleTimeout", _number(1, DAY), 600,
        "Seconds without a message from an asked agent.", trust=ONLY_LOWER),
    Key("lsp", LSP, {}, "`{command, extensions}`; `\"lsp\": false` turns it off.", "detected", "<language>"),
    Key("fetch.allowPrivate", BOOLEAN, False, "`fetch_content` may reach private addresses."),
    Key("tools.disabled", {"type": "array", "items": TOOL_NAME}, [],
        "Tools that are not offered to the model.", trust=ONLY_ADD),
)

BY_NAME = {key.name: key for key in KEYS}


def matches(text: str, shape: dict) -> bool:
    """Whether a text has the length and the pattern of a shape."""
    if not shape.get("minLength", 0) <= len(text) <= shape.get("maxLength", len(text)):
        return False
    if shape.get("pattern") == TEXT["pattern"] and text.isprintable():
        return True  # compiling the pattern takes longer, and this is asked at most starts
    return re.search(shape.get("pattern", ""), text) is not None
