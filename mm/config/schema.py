"""The shapes of mm.config.keys at work: checking values against them, and writing them down as JSON Schema
and as a table.

`check` knows the few words of JSON Schema that mm.config.keys uses. Imported only when there is something to
check.
"""

from __future__ import annotations

import json
import re

from mm.config.config_file import failure, shown
from mm.config.keys import KEYS, matches

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_TYPES = {"boolean": bool, "string": str, "array": list, "object": dict}
_NOUNS = {"boolean": "true or false", "string": "text", "array": "a list", "object": "an object"}


def config_schema() -> dict:
    """The JSON Schema (draft 2020-12) of a configuration file."""
    root = {"$schema": DRAFT, "title": "Configuration of mm", "type": "object",
            "properties": {"$schema": {"type": "string",
                                       "description": "For the editor; mm does not read it."}},
            "additionalProperties": False}
    for key in KEYS:
        place = root
        *groups, last = key.name.split(".")
        for group in groups:
            place = place["properties"].setdefault(
                group, {"type": "object", "properties": {}, "additionalProperties": False})
        place["properties"][last] = dict(key.shape, description=key.meaning)
        if key.default is not None:
            place["properties"][last]["default"] = key.default
    return root


def check_document(document: dict, source: str, regexes: bool = True) -> None:
    """Raises UserError if a file's content does not fit. `regexes`: compile regular expressions, too."""
    _Check(source, regexes).check(document, config_schema(), "", False)


def check_value(value, shape: dict, name: str, source: str) -> None:
    """Raises UserError where one key's value does not fit."""
    _Check(source, True).check(value, shape, name, False)


def allowed(shape: dict) -> str:
    """What a shape admits, in words."""
    if "title" in shape:
        return shape["title"]
    if "enum" in shape:
        return " or ".join(json.dumps(value) for value in shape["enum"])
    kind = shape["type"]
    if kind in ("integer", "number"):
        noun = "a whole number" if kind == "integer" else "a number"
        return "%s from %s to %s" % (noun, shape["minimum"], shape["maximum"])
    if kind == "array":
        return ("a list of %s" % _each(shape["items"])) + (", not empty" if shape.get("minItems") else "")
    if kind == "string" and "maxLength" in shape:
        return "text of at most %d characters, not empty" % shape["maxLength"]
    return _NOUNS[kind] + (", not empty" if shape.get("minLength") else "")


def _each(items):
    if "title" in items:
        return "items that are each " + items["title"]
    return "objects" if items["type"] == "object" else "texts"


class _Check:
    """One walk through a value. `source` is the file, variable or option that it came from."""

    def __init__(self, source, regexes):
        self._source = source
        self._regexes = regexes

    def check(self, value, shape, name, secret):
        secret = secret or shape.get("writeOnly", False)
        if not _has_type(value, shape) or not _in_range(value, shape):
            raise self._wrong(value, shape, name, secret)
        if "anyOf" in shape:
            self._any_of(value, shape, name, secret)
        if isinstance(value, str):
            self._text(value, shape, name, secret)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self.check(item, shape.get("items", {}), "%s[%d]" % (name, index), secret)
        elif isinstance(value, dict):
            self._object(value, shape, name, secret)

    def _any_of(self, value, shape, name, secret):
        fitting = [branch for branch in shape["anyOf"] if _has_type(value, branch)
                   and _in_range(value, branch)]
        for branch in fitting:
            # The one branch for a list or an object shows best which part of it is wrong.
            if not isinstance(value, str) or matches(value, branch):
                self.check(value, branch, name, secret)
                return
        raise self._wrong(value, shape, name, secret)

    def _text(self, value, shape, name, secret):
        if not matches(value, shape):
            raise self._wrong(value, shape, name, secret)
        if self._regexes and shape.get("format") == "regex":
            try:
                re.compile(value)
            except (re.error, OverflowError, RecursionError, ValueError) as error:
                raise failure(self._source, "%s: got %s, which is not a regular expression: %s"
                              % (shown(name), _got(value, secret), shown(str(error)))) from None

    def _object(self, value, shape, name, secret):
        properties = shape.get("properties", {})
        others = shape.get("additionalProperties", True)
        for key, item in value.items():
            self._key(key, shape, name)
            path = "%s.%s" % (name, key) if name else key
            if key in properties:
                self.check(item, properties[key], path, secret)
            elif others is False:
                raise self._unknown(path, name, properties)
            else:
                self.check(item, {} if others is True else others, path, secret)
        for key in shape.get("required", ()):
            if key not in value:
                raise failure(self._source, "%s: got no \"%s\", allowed: %s"
                              % (shown(name), key, allowed(properties[key])))

    def _key(self, key, shape, name):
        names = shape.get("propertyNames")
        if names and (not matches(key, names) or key in names.get("not", {}).get("enum", ())):
            raise failure(self._source, "%s: got the key %s, allowed: %s"
                          % (shown(name), _got(key, False), names["title"]))

    def _wrong(self, value, shape, name, secret):
        hint = ""
        if name == "model.url" and isinstance(value, str):
            value, hint = _url_without_secrets(value), _url_hint(value, shape)
        label = "" if _is_one_value(self._source) else shown(name) + ": "
        return failure(self._source, "%sgot %s, allowed: %s%s"
                       % (label, _got(value, secret), allowed(shape), hint))

    def _unknown(self, path, group, properties):
        known = "unknown key \"%s\"" % shown(path, 80)
        hint = _FROM_ELSEWHERE.get(path) or (_FROM_ELSEWHERE.get("mcp.*." + path.rpartition(".")[2])
                                             if path.startswith("mcp.") else None)
        if hint:
            return failure(self._source, "%s; %s" % (known, hint))
        names = sorted(properties)
        return failure(self._source, "%s%s; allowed%s: %s" % (
            known, _did_you_mean(path, group, names), " in " + shown(group) if group else "",
            ", ".join(names)))


_SERVERS = "mm's way is {\"mcp\": {\"NAME\": {\"command\": \"…\", \"args\": […]}}} (docs/mcp.md)"
_EVENT = "mm's event is \"%s\": [{\"command\": \"…\", \"match\": \"…\"}] (docs/hooks.md)"
_NO_URL = "mm speaks with MCP servers over stdio alone: \"command\" starts one (docs/mcp.md)"
_ALL_STDIO = "leave it out: every server is a program that mm starts and speaks with over stdio"
# What people bring along from other programs' files, and mm's way.
_FROM_ELSEWHERE = dict.fromkeys(("mcpServers", "mcp_servers", "context_servers", "mcp.servers.command"),
                                _SERVERS)
_FROM_ELSEWHERE.update({"mcp.*.url": _NO_URL, "mcp.*.httpUrl": _NO_URL, "mcp.*.headers": _NO_URL,
                        "mcp.*.type": _ALL_STDIO, "mcp.*.transport": _ALL_STDIO})
_FROM_ELSEWHERE.update(("hooks." + theirs, _EVENT % ours) for theirs, ours in (
    ("PreToolUse", "preToolCall"), ("PostToolUse", "postToolCall"), ("UserPromptSubmit", "userPrompt"),
    ("Stop", "turnEnd"), ("SessionStart", "sessionStart"), ("SessionEnd", "sessionEnd"),
    ("PreCompact", "preCompact"), ("BeforeTool", "preToolCall"), ("AfterTool", "postToolCall")))
_FROM_ELSEWHERE.update(dict.fromkeys(("permissions", "allowedTools", "disallowedTools"),
                                     "mm has \"yolo\": false, which asks, \"tools.disabled\" and hooks "
                                     "(docs/configuration.md)"))


def _is_one_value(source) -> bool:
    """Whether the source is a flag or a variable, which names the key itself."""
    return source.startswith("--") or source.startswith("MM_")


def _has_type(value, shape):
    if "const" in shape:
        return value is shape["const"]
    if "enum" in shape:
        return isinstance(value, str) and value in shape["enum"]
    kind = shape.get("type")
    if kind is None:
        return True
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, _TYPES[kind])


def _in_range(value, shape):
    if isinstance(value, (int, float)) and "minimum" in shape:
        return shape["minimum"] <= value <= shape["maximum"]
    if isinstance(value, list):
        return len(value) >= shape.get("minItems", 0)
    return True


def _got(value, secret):
    """The value as an error may show it: cut, and only its type where it may be or hold a secret."""
    if value is None or isinstance(value, (bool, int, float)):
        return shown(json.dumps(value), 60) if not secret else "another type"
    if isinstance(value, str):
        return "text that does not fit" if secret else '"%s"' % shown(value, 60)
    return "a list" if isinstance(value, list) else "an object"


def _url_without_secrets(url):
    return re.sub(r"(?s)[?#].*", "?…", re.sub(r"//[^/]*@", "//…@", url))


def _url_hint(url, shape):
    fixed = re.sub(r"/+$", "", re.sub(r"/(chat/completions|models)/?$", "", url))
    for attempt in (fixed, "http://" + fixed):
        if matches(attempt, shape):
            return "; did you mean \"%s\"?" % shown(attempt)
    return ""


def _did_you_mean(path, group, names):
    from difflib import get_close_matches

    everything = [key.name for key in KEYS]
    if path in everything:
        return ", which is written nested: {\"%s\": …" % path.replace(".", "\": {\"")
    last = path.rpartition(".")[2][:80].lower()
    candidates = {name.lower(): group + "." + name if group else name for name in names}
    if not group:
        # "url" at the top may be meant for "model.url".
        for name in everything:
            candidates.setdefault(name.rpartition(".")[2].lower(), name)
    close = get_close_matches(last, list(candidates), 1, 0.7)
    return ", did you mean \"%s\"?" % candidates[close[0]] if close else ""
