"""The session file's text: a conversation as JSON, and back. Pure.

One header key and one message a line, so that people can read and compare files. What a newer mm or a person
has added to the header or to a message is kept on rewrite.

The file may come with a hostile repository, so this is the one place where its values are checked. A file
whose roles, texts or references are wrong is refused. The arguments of a call become an object. Counts,
diffs, titles and the like, which only people look at, are left out if they are wrong.
"""

from __future__ import annotations

import json
import re
from collections import namedtuple

from mm import json_text
from mm.events import COMPLETED, FAILED
from mm.model import call_arguments
from mm.text import replace_surrogates

# What this mm writes. A lower version (or none) is the same with fewer header keys: only `messages` is
# needed.
VERSION = 1
# Levels of nesting; ours have five.
MAX_DEPTH = 64
# The highest whole number that JavaScript, in which many clients are written, counts to.
HIGHEST_COUNT = 2 ** 53 - 1
# Characters of the reference of a call, and of the path of a diff.
LONGEST_REFERENCE, LONGEST_PATH = 200, 4096

# What is wrong with a session file, as the client reads it.
NOT_UTF8 = "the session file is not UTF-8 (line %d)"
NOT_JSON = "the session file is not JSON (line %d, column %d)"
NOT_READABLE_JSON = ("the session file is not JSON that mm reads: "
                     "nested too deeply, a number too large, or NaN")
WRONG_SHAPE = "the session file is not a conversation: %s"
NEWER = "the session file was written by a newer mm (version %s)"

# A conversation as it is kept. `messages` as in conversation.history; `usage` {name: count}; `title`,
# `created` and `model` texts or None; `plan` as the plan tool keeps it, or None.
Saved = namedtuple("Saved", "messages usage title created model plan")

OWN_KEYS = ("version", "id", "cwd", "created", "updated", "model", "title", "usage", "plan", "messages")
# How a lone surrogate is escaped, among other things.
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_BOM = b"\xef\xbb\xbf"
_ROLES = ("user", "assistant", "tool")
_NOTHING = type(None)


class SessionError(Exception):
    """Why a session cannot be loaded: one line, without the session's id."""


def parse(data: bytes) -> tuple:
    """(Saved, header) of a file's bytes; `header` holds the cwd, a text or None, and the keys that are not
    ours.

    Raises SessionError.
    """
    document = _decoded(data)
    if not isinstance(document, dict):
        raise SessionError(WRONG_SHAPE % "an object is expected")
    version = document.get("version", 0)
    if type(version) is not int or version < 0:
        raise SessionError(WRONG_SHAPE % "version must be a whole number")
    if version > VERSION:
        raise SessionError(NEWER % version)
    if json_text.is_deeper(document, MAX_DEPTH):
        raise SessionError(NOT_READABLE_JSON)
    for key in ("cwd", "created", "model", "title"):
        _check(document.get(key), (str, _NOTHING), key, "text")
    _check(document.get("plan"), (list, dict, _NOTHING), "plan", "a list, an object or null")
    _check(document.get("messages"), (list,), "messages", "a list")
    for place, message in enumerate(document["messages"]):
        _correct(message, "messages[%d]" % place)
    header = {key: value for key, value in document.items() if key not in OWN_KEYS}
    header["cwd"] = document.get("cwd")
    saved = Saved(document["messages"], _counts(document.get("usage")),
                  *(document.get(key) for key in ("title", "created", "model", "plan")))
    return saved, header


def render(header: dict, lines: list) -> bytes:
    """The file: `header` without its messages, and the lines of message_line()."""
    keys = dict(header, version=VERSION)
    ordered = [key for key in OWN_KEYS if key in keys] + [key for key in keys if key not in OWN_KEYS]
    head = "".join("%s:%s,\n" % (_encode(key), _encode(keys[key])) for key in ordered)
    end = b"\n]\n}\n" if lines else b"]\n}\n"
    return b"".join((b"{\n", _to_utf8(head), b'"messages":[\n', b",\n".join(lines), end))


def message_line(message: dict) -> bytes:
    """The message as one line of JSON, lone surrogates as U+FFFD."""
    return _to_utf8(_encode(message))


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _to_utf8(text):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return replace_surrogates(text).encode("utf-8")


def _decoded(data):
    try:
        document = json_text.read(data[len(_BOM) if data.startswith(_BOM) else 0:].decode("utf-8"))
        if b"\\u" in data and _SURROGATE_ESCAPE.search(data):
            # Pairs have become one character by now; what is left a server would refuse.
            document = json_text.read(_to_utf8(_encode(document)).decode("utf-8"))
        return document
    except UnicodeDecodeError as error:
        raise SessionError(NOT_UTF8 % (data.count(b"\n", 0, error.start) + 1)) from None
    except json.JSONDecodeError as error:
        raise SessionError(NOT_JSON % (error.lineno, error.colno)) from None
    except (ValueError, RecursionError):
        raise SessionError(NOT_READABLE_JSON) from None


def _check(value, types, where, what):
    if type(value) not in types:
        raise SessionError(WRONG_SHAPE % ("%s must be %s" % (where, what)))


def _check_reference(value, where):
    """Clients take it for the name of a call: very long ones are a hostile file's."""
    if type(value) is not str or len(value) > LONGEST_REFERENCE or not value.isprintable():
        what = "a text of at most %d printable characters" % LONGEST_REFERENCE
        raise SessionError(WRONG_SHAPE % ("%s must be %s" % (where, what)))


def _counts(usage):
    """The counts of tokens that can be added to; they are for the user alone, so any other is left out."""
    if type(usage) is not dict:
        return {}
    return {name: count for name, count in usage.items()
            if type(count) is int and 0 <= count <= HIGHEST_COUNT}


def _correct(message, where):
    """Checks the message, and makes what is in it such as others rely on."""
    _check(message, (dict,), where, "an object")
    role = message.get("role")
    if role not in _ROLES:
        raise SessionError(WRONG_SHAPE % ("%s.role must be one of %s" % (where, ", ".join(_ROLES))))
    _check(message.get("content"), (str,), where + ".content", "text")
    if role == "assistant":
        _check(message.get("reasoning"), (str, _NOTHING), where + ".reasoning", "text")
        _check(message.get("calls"), (list, _NOTHING), where + ".calls", "a list")
        for place, call in enumerate(message.get("calls") or ()):
            _correct_call(call, "%s.calls[%d]" % (where, place))
        return
    message.pop("calls", None)  # whoever looks for calls does not look at the role
    if role == "user":
        _check(message.get("kind"), (str, _NOTHING), where + ".kind", "text")
    else:
        _check_reference(message.get("call"), where + ".call")
        _check(message.get("name"), (str,), where + ".name", "text")
        for key in [key for key, fits in _SHOWN.items() if key in message and not fits(message[key])]:
            del message[key]


def _correct_call(call, where):
    _check(call, (dict,), where, "an object")
    _check_reference(call.get("ref"), where + ".ref")
    _check(call.get("name"), (str,), where + ".name", "text")
    call["arguments"] = call_arguments.read(call.get("arguments")).text


def _is_text(value):
    return type(value) is str


def _is_switch(value):
    return type(value) is bool


def _is_diff(value):
    return (type(value) is dict and set(value) == {"path", "old", "new"}
            and _is_text(value["path"]) and len(value["path"]) <= LONGEST_PATH
            and type(value["old"]) in (str, _NOTHING) and _is_text(value["new"]))


# What a result has for the user alone, and how it is known to be what it should be.
_SHOWN = {"status": (COMPLETED, FAILED).__contains__, "diff": _is_diff, "prose": _is_switch,
          "title": _is_text, "toolKind": _is_text}
