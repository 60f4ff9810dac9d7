"""How calls that were written as text are read while they stream in (pure): the pieces that all formats are
made of.

A format is a generator over a Source. It takes text, yields when it needs more, returns what it has read and
raises Disproved if the text cannot be what it looked like. Every piece looks at each character a bounded
number of times, and where it stops does not depend on how the text was cut: a Source never keeps more than a
few characters unread.
"""

from __future__ import annotations

import json
import re

from mm.model import call_arguments

_ENDS = re.compile(r'["\\{}\[\]<]')
_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[\w.\-]{1,64}")
_LONGEST_NAME = 65  # and the character that shows where it ends

# What a call in JSON may begin with: its name, if that comes first, or what shows that it is not such an
# object.
_HEAD = re.compile(r'(?:\[\s*)?(?:\{\s*(?:"name"\s*:\s*"([^"\\]*)"|[^\s"}])|(?<=\[)\s*[^\s{\[])')
_HEAD_LENGTH = 200

_decode = json.JSONDecoder(strict=False).decode

_CALL_KEYS = {"name", "arguments", "parameters", "type", "function", "id"}


class Disproved(Exception):
    """What looked like a call is not one. What was taken until here is prose."""


class Tools:
    """The tools of a request: their names, and what their parameters are made of."""

    def __init__(self, wire=()):
        self._types = {}
        for tool in wire:
            function = tool.get("function") or {}
            parameters = function.get("parameters")
            properties = parameters.get("properties") if isinstance(parameters, dict) else None
            self._types[_plain(function.get("name") or "")] = {
                name: schema.get("type") if isinstance(schema, dict) else None
                for name, schema in (properties.items() if isinstance(properties, dict) else ())}

    def __bool__(self):
        return bool(self._types)

    def __contains__(self, name) -> bool:
        return isinstance(name, str) and _plain(name) in self._types

    def parameters(self, name: str) -> list:
        return list(self._types[_plain(name)])

    def fitted(self, name: str, arguments: dict) -> dict:
        """Values that came as text, each in its parameter's type if it can be of that type."""
        types = self._types[_plain(name)]
        return {key: _fitted(value, types.get(key)) for key, value in arguments.items()}


class Source:
    """Text that is read while it comes in: the part that is here, and how far it was taken."""

    __slots__ = ("text", "at", "ended", "tools", "name")

    def __init__(self, tools: Tools):
        self.text, self.at, self.ended, self.tools = "", 0, False, tools
        self.name = ""  # the known tool that the call in hand has named

    def known(self, name: str) -> str:
        """The name of a known tool, without what stands around it."""
        name = clean_name(name)
        if name not in self.tools:
            raise Disproved
        self.name = name
        return name


class Brackets:
    """Finds the end of a JSON value. `done` once it was found, `wrong` if the text cannot be JSON."""

    __slots__ = ("done", "wrong", "_depth", "_in_string", "_escaped")

    def __init__(self):
        self.done = self.wrong = self._in_string = self._escaped = False
        self._depth = 0

    def feed(self, text: str, at: int = 0):
        """The index after the value's end, or of what is wrong; None if there is neither in `text[at:]`."""
        if self._escaped and at < len(text):
            self._escaped = False
            at += 1
        while True:
            found = _ENDS.search(text, at)
            if not found:
                return None
            sign, at = found.group(), found.end()
            if self._in_string:
                if sign == "\\":
                    self._escaped = at == len(text)
                    at += 1
                elif sign == '"':
                    self._in_string = False
                    self.done = not self._depth
            elif sign == '"':
                self._in_string = True
            elif sign in "{[":
                self._depth += 1
            elif sign in "}]" and self._depth:
                self._depth -= 1
                self.done = not self._depth
            else:
                self.wrong = True
                return at - 1
            if self.done:
                return at


def clean_name(name: str) -> str:
    """Without what leaks of a model's own markup: `functions.bash<|channel|>commentary` is bash."""
    name = name.partition("<|")[0].strip()
    return name[len("functions."):] if name.startswith("functions.") else name


def space(source: Source):
    """The whitespace that comes next."""
    pieces = []
    while True:
        end = _SPACE.match(source.text, source.at).end()
        pieces.append(source.text[source.at:end])
        source.at = end
        if end < len(source.text) or source.ended:
            return "".join(pieces)
        yield


def one_of(source: Source, options: tuple):
    """The first of the options that the text goes on with, taken; "" if it does with none."""
    while True:
        text, at = source.text, source.at
        left = "" if source.ended else text[at:at + 64]
        for option in options:
            if text.startswith(option, at):
                source.at += len(option)
                return option
            if not source.ended and len(left) < len(option) and option.startswith(left):
                break  # it may still come
        else:
            return ""
        yield


def is_next(source: Source, signs: str):
    """Whether the next character is one of these. It is not taken."""
    while source.at == len(source.text) and not source.ended:
        yield
    return source.at < len(source.text) and source.text[source.at] in signs


def needed(source: Source, *options):
    """One of the options, or there is no call."""
    option = yield from one_of(source, options)
    if not option:
        raise Disproved
    return option


def name(source: Source):
    """The name of a known tool."""
    while len(source.text) - source.at < _LONGEST_NAME and not source.ended:
        found = _NAME.match(source.text, source.at)
        if found and found.end() < len(source.text) or not found and source.at < len(source.text):
            break
        yield
    found = _NAME.match(source.text, source.at)
    known = source.known(found.group() if found else "")
    source.at = found.end()
    return known


def before(source: Source, pattern, limit: int):
    """The text before the first match of `pattern`, both taken, if they stand within `limit` characters."""
    while True:
        found = pattern.search(source.text, source.at, source.at + limit)
        if found:
            text, source.at = source.text[source.at:found.start()], found.end()
            return text
        if source.ended or len(source.text) - source.at >= limit:
            raise Disproved
        yield


def until(source: Source, pattern, longest: int, or_end: bool = False):
    """(the text before the first match of `pattern`, the match), both taken, however far away it is.

    No match is longer than `longest`. Without one there is no call, or, with `or_end`, ("all that is left",
    "").
    """
    pieces = []
    while True:
        found = pattern.search(source.text, source.at)
        end = found.start() if found else len(source.text)
        if not found and not source.ended:
            end = max(source.at, end - longest + 1)
        pieces.append(source.text[source.at:end])
        source.at = found.end() if found else end
        if found or source.ended and or_end:
            return "".join(pieces), found.group() if found else ""
        if source.ended:
            raise Disproved
        yield


def raw_value(source: Source, closer, longest: int, following: tuple):
    """(a value that is not quoted, what follows its closer, taken too; "" at the end of the text).

    A closer that nothing of its kind follows is part of the value.
    """
    pieces = []
    while True:
        text, closed = yield from until(source, closer, longest)
        gap = yield from space(source)
        mark = yield from one_of(source, following)
        pieces.append(text)
        if mark or source.ended and source.at == len(source.text):
            return "".join(pieces), mark
        pieces += [closed, gap]


def json_value(source: Source, names_tool: bool):
    """A JSON object or array. With `names_tool`, one that begins with a name has to begin with that of a
    known tool."""
    brackets, pieces, size = Brackets(), [], 0
    while True:
        start = source.at
        end = brackets.feed(source.text, start)
        source.at = len(source.text) if end is None else end
        pieces.append(source.text[start:source.at])
        if size < _HEAD_LENGTH:
            _check_head(source, "".join(pieces), size, names_tool)
        size += source.at - start
        if brackets.wrong:
            raise Disproved
        if brackets.done:
            return decoded("".join(pieces))
        if source.ended:
            raise Disproved
        yield


def _check_head(source: Source, text: str, seen: int, names_tool: bool) -> None:
    """Gives up on `text`, of which `seen` characters were looked at before, if its beginning shows that it is
    not a call."""
    found = _HEAD.match(text[:_HEAD_LENGTH])
    if not found or found.end() <= seen or found.group(1) is not None and not names_tool:
        return
    try:
        if found.group(1) is None:
            raise Disproved
        source.known(found.group(1))
    except Disproved:
        source.at -= len(text) - found.end()
        raise


def decoded(text: str):
    """The JSON value of a text, read as generously as any call's arguments: strings may go over several
    lines."""
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        raise Disproved from None


def calls_in(source: Source, value, only: bool = False) -> list:
    """[(name, arguments)] of the JSON that a model writes for one call or for several.

    `only`: nothing but the JSON says that it is a call, so it must not be anything else, as the description
    of a tool is.
    """
    if isinstance(value, list):
        if not value:
            raise Disproved
        return [call for item in value for call in calls_in(source, item if isinstance(item, dict) else None,
                                                            only)]
    if not isinstance(value, dict) or only and not _CALL_KEYS.issuperset(value):
        raise Disproved
    if isinstance(value.get("function"), dict):
        return calls_in(source, value["function"], only)
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        arguments = call_arguments.read(arguments).value
        if arguments is None:
            raise Disproved
    if arguments is None and not only:
        arguments = {}
    if not isinstance(value.get("name"), str) or not isinstance(arguments, dict):
        raise Disproved
    return [(source.known(value["name"]), arguments)]


def _fitted(value: str, kind):
    if kind is None or kind == "string" or isinstance(kind, list) and "string" in kind:
        return value
    text = value.strip()
    try:
        found = decoded(text.lower() if text in ("True", "False", "None") else text)
    except Disproved:
        return value
    return value if isinstance(found, str) else found


def _plain(name: str) -> str:
    return name.replace("-", "_").lower()
