"""What the formats of calls are read with: a text, and how far it was taken (pure).

Reading stops in one of two ways. More: the text that is here does not decide it; it is read again from its
beginning when there is more. Disproved: it is not a call, and what was taken until there is prose.
"""

from __future__ import annotations

import re

from mm import json_text
from mm.model import call_arguments

_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[\w.\-]{0,64}")

# What a call in JSON may begin with: its name, if that comes first, or what shows that it is not such an
# object.
_HEAD = re.compile(r'(?:\[\s*)?(?:\{\s*(?:"name"\s*:\s*"([^"\\]*)"|[^\s"}])|(?<=\[)\s*[^\s{\[])')

_CALL_KEYS = {"name", "arguments", "parameters", "type", "function", "id"}

# Read as generously as any call's arguments: strings may have bare line ends.
_DECODER = json_text.decoder(strict=False)


class More(Exception):
    """The text does not decide yet."""


class Disproved(Exception):
    """What looked like a call is not one."""


class Tools:
    """The tools of a request: their names, and the types of their parameters."""

    def __init__(self, wire=()):
        self._types = {}
        for tool in wire:
            function = tool.get("function") or {}
            parameters = function.get("parameters")
            properties = parameters.get("properties") if isinstance(parameters, dict) else None
            self._types[_plain(function.get("name") or "")] = {
                name: schema.get("type") if isinstance(schema, dict) else None
                for name, schema in (properties.items() if isinstance(properties, dict) else ())}

    def __contains__(self, name) -> bool:
        return isinstance(name, str) and _plain(name) in self._types

    def parameters(self, name: str) -> list:
        return list(self._types[_plain(name)])

    def fitted(self, name: str, arguments: dict) -> dict:
        """Values that came as text, each in its parameter's type if it can be of that type."""
        types = self._types[_plain(name)]
        return {key: _fitted(value, types.get(key)) for key, value in arguments.items()}


class Source:
    """The text of one attempt to read a call. Methods raise More and Disproved."""

    def __init__(self, tools: Tools):
        self.tools = tools
        self.begin("", False)

    def begin(self, text: str, ended: bool) -> None:
        """`ended`: nothing follows the text."""
        self.text, self.at, self.ended = text, 0, ended
        self.name = ""  # the known tool that the call in hand has named

    def known(self, name: str) -> str:
        """The name of a known tool, without what leaks around it."""
        name = call_arguments.clean_name(name)
        if name not in self.tools:
            raise Disproved
        self.name = name
        return name

    def space(self) -> str:
        """The whitespace that comes next."""
        end = _SPACE.match(self.text, self.at).end()
        found, self.at = self.text[self.at:end], end
        if end == len(self.text):
            self._more()
        return found

    def take(self, *options: str) -> str:
        """The first of the options that comes next; "" if none does."""
        left = self.text[self.at:self.at + 64]
        for option in options:
            if left.startswith(option):
                self.at += len(option)
                return option
            if len(left) < len(option) and option.startswith(left):
                self._more()
        return ""

    def need(self, *options: str) -> str:
        return self.take(*options) or self.fail()

    def comes(self, signs: str) -> bool:
        """Whether the next character is one of these."""
        if self.at == len(self.text):
            self._more()
        return self.text[self.at:self.at + 1] in signs and self.at < len(self.text)

    def tool(self) -> str:
        """The name of a known tool."""
        end = _NAME.match(self.text, self.at).end()
        if end == len(self.text) and end - self.at < 64:
            self._more()
        known = self.known(self.text[self.at:end])
        self.at = end
        return known

    def before(self, pattern, limit: int) -> str:
        """The text before the first match of `pattern`, both taken, if they are within `limit` characters."""
        found = pattern.search(self.text, self.at, self.at + limit)
        if not found:
            if len(self.text) - self.at < limit:
                self._more()
            raise Disproved
        text, self.at = self.text[self.at:found.start()], found.end()
        return text

    def until(self, pattern, or_end: bool = False) -> tuple:
        """(the text before the first match of `pattern`, the match), both taken, however far away it is.

        If there is none it is not a call, or, with `or_end`, ("all that is left", "").
        """
        found = pattern.search(self.text, self.at)
        if not found:
            self._more()
        end = found.start() if found else len(self.text)
        text, self.at = self.text[self.at:end], found.end() if found else end
        if not found and not or_end:
            raise Disproved
        return text, found.group() if found else ""

    def raw_value(self, closer, following: tuple) -> tuple:
        """(a value that is not quoted, what follows its closer, also taken; "" at the end of the text).

        A closer that is followed by none of these is part of the value.
        """
        pieces = []
        while True:
            text, closed = self.until(closer)
            gap = self.space()
            mark = self.take(*following)
            pieces.append(text)
            if mark or self.at == len(self.text):
                return "".join(pieces), mark
            pieces += [closed, gap]

    def json(self, names_tool: bool):
        """A JSON object or array. With `names_tool`, one that begins with a name has to begin with a known
        tool's.
        """
        head = _HEAD.match(self.text, self.at)
        if head and (head.group(1) is None or names_tool):
            begin, self.at = self.at, head.end()
            self.known(head.group(1) or "")
            self.at = begin
        begin, brackets = self.at, call_arguments.Brackets()
        end = brackets.feed(self.text, begin)
        self.at = len(self.text) if end is None else end
        if end is None:
            self._more()
        return decoded(self.text[begin:self.at]) if brackets.done else self.fail()

    def fail(self):
        raise Disproved

    def _more(self) -> None:
        if not self.ended:
            raise More


def decoded(text: str):
    """The JSON value of a text."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise Disproved from None


def calls_in(source: Source, value, only: bool = False) -> list:
    """[(name, arguments)] of the JSON that a model writes for one call or for several.

    `only`: nothing else shows that it is a call, so it must not be anything else, such as the description of
    a tool.
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
        arguments = call_arguments.read(arguments).value or source.fail()
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
