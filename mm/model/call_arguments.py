"""The arguments of a tool call, from the text that the model wrote to one JSON object (pure).

Read generously if only one object can be meant: in a fence, as a string that holds the object, with bare line
ends inside strings, with a sentence, an end marker of the model's template or the very same object after it.
A second object that differs or is cut, and whatever else looks like the rest of a broken object, is refused:
what would run may not be what was meant.
"""

from __future__ import annotations

import json
import re
from collections import namedtuple

from mm import json_text
from mm.model.text_calls.openers import CALLS

# `value`: the arguments, a dict, or None if they cannot be read; then `problem` says why, in a few words with
# the place. `text`: a JSON object to keep for them: the model's own text if that is one, `{}` for what cannot
# be read.
Reading = namedtuple("Reading", "value problem text", defaults=("{}",))

# What may stand before the object: a fence with a word, a byte order mark, what models of OpenAI's put before
# JSON.
_BEFORE = re.compile(r"(?:\s|\ufeff|<\|constrain\|>|<\|message\|>|```\w*|json(?=[\s{<]))*")
# Where another object begins: also one that is cut after its bracket.
_OBJECT = re.compile(r"\{\s*(?:[\"'}]|\Z)")
# What decides where a JSON value ends: brackets and quotes, escapes with what they escape, and what it cannot
# hold.
_SIGNS = re.compile(r'\\(?:.|\Z)|["{}\[\]<]', re.DOTALL)
# Only a sentence or a marker may follow; an object that was broken by a quote goes on with one of these.
_REST_OF_OBJECT = re.compile(r"\s*[\"',:\]]")
# The end of a fence, and a bracket too many: that of the object around the arguments.
_HARMLESS = " \t\r\n`}"


def read(raw) -> Reading:
    """`raw`: the text as it was streamed, None, or a dict if the server sent an object."""
    value, text = raw, ""
    try:
        given = json_text.read(raw) if isinstance(raw, str) else None
        if isinstance(given, dict):
            return Reading(given, "", raw)
    except ValueError:
        pass
    try:
        for _ in range(2):
            if isinstance(value, str):  # some servers encode the object twice
                text = value
                value = _first_value(text) if text.strip() else {}
    except ValueError as error:
        what = str(getattr(error, "msg", error)).replace(" starting at", "")
        return Reading(None, "%s at %s" % (what, _place(text, getattr(error, "pos", 0))))
    except RecursionError:
        return Reading(None, "nested too deeply at column 1")
    if value is None:
        value = {}
    if not isinstance(value, dict):
        return Reading(None, "an object is expected at column 1")
    return Reading(value, "", json_text.encode(value))


def _first_value(text: str):
    """The value that the text begins with. Raises ValueError if what follows it is more than a few words."""
    at = _BEFORE.match(text).end()
    value, end = _DECODER.raw_decode(text, at)
    if isinstance(value, dict):
        _check_rest(text, end, value)
    elif text[end:].strip(" \t\r\n`"):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def _check_rest(text: str, at: int, value: dict) -> None:
    """Raises ValueError if `text[at:]` may be a part of what was meant."""
    found = _OBJECT.search(text, at)
    while found:
        _check_words(text, at, found.start())
        try:
            another, at = _DECODER.raw_decode(text, found.start())
        except ValueError:
            raise json.JSONDecodeError("a second object that cannot be read", text, found.start()) from None
        if not _is_same(value, another):
            raise json.JSONDecodeError("a second, different object", text, found.start())
        found = _OBJECT.search(text, at)
    _check_words(text, at, len(text))


def _check_words(text: str, at: int, end: int) -> None:
    """Raises ValueError unless `text[at:end]` reads like words, a marker or the end of a fence."""
    words = text[at:end]
    if not words.strip(_HARMLESS):
        return
    if _REST_OF_OBJECT.match(words) or _closes_more(words) or any(opener in words for opener in CALLS):
        raise json.JSONDecodeError("Extra data", text, at)


def _closes_more(words: str) -> bool:
    """Whether a bracket closes in the words that was opened before them."""
    depth = 0
    for sign in re.findall(r"[{}]", words):
        depth += 1 if sign == "{" else -1
        if depth < 0:
            return True
    return False


def _is_same(first: dict, second: dict) -> bool:
    """Whether both are the same JSON, in which 1 and true differ."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _place(text: str, at: int) -> str:
    line, begin = text.count("\n", 0, at) + 1, text.rfind("\n", 0, at) + 1
    return "%scolumn %d" % ("line %d, " % line if line > 1 else "", at - begin + 1)


# Not strict: line ends and tabs within strings may be bare.
_DECODER = json_text.decoder(strict=False)


def clean_name(name: str) -> str:
    """A tool's name without what leaks of a model's own markup: `functions.bash<|channel|>commentary` is
    bash.
    """
    name = name.partition("<|")[0].strip()
    return name[len("functions."):] if name.startswith("functions.") else name


class Brackets:
    """Finds the end of a JSON value that streams in. `done`: it was found; `wrong`: the text cannot be
    JSON.
    """

    def __init__(self):
        self.done = self.wrong = self._in_string = self._escaped = False
        self._depth = 0

    def feed(self, text: str, at: int = 0):
        """The index after the value's end, or of what is wrong; None if `text[at:]` has neither."""
        if self._escaped and at < len(text):
            self._escaped = False
            at += 1
        for found in _SIGNS.finditer(text, at):
            sign = found.group()
            if self._in_string:
                self._escaped = sign == "\\"  # at the end of the text; what it escapes comes next
                self._in_string = sign != '"'
            elif sign == '"':
                self._in_string = True
            elif sign in ("{", "["):
                self._depth += 1
            elif sign in ("}", "]") and self._depth:
                self._depth -= 1
            else:
                self.wrong = True
                return found.start()
            if sign in ('"', "}", "]") and not self._in_string and not self._depth:
                self.done = True
                return found.end()
        return None
