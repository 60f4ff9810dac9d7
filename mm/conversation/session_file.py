"""The session file's text: a conversation as JSON, and back. Pure.

One header key and one message a line, so that a file can be read and compared by people and a line that was made once is
kept. What a newer patch or a person added to the header or to a message is kept on rewrite. The file
may come with a hostile repository, so this is the one place where its values are checked: a file whose roles, texts or
references are not such is refused; the arguments of a call become an object; counts, diffs, titles and the like, which
only people look at, are left out if they are not what they should be.
"""

from __future__ import annotations

import json
import re
from collections import namedtuple

from mm import json_text
from mm.model import call_arguments
from mm.events import COMPLETED, FAILED
from mm.text import replace_surrogates

# What this mm writes. A lower version (or none) is the same with fewer header keys: only `messages` is needed.
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
NOT_READABLE_JSON = "the session file is not JSON that mm reads: nested too deeply, a number too large, or NaN"
WRONG_SHAPE = "the session file is not a conversation: %s"
NEWER = "the session file was written by a newer mm (version %s)"

# A conversation as it is kept. `messages` as in conversation.history, a tool message also with "status" and "diff"
# ({"path", "old", "new"}) where the front end told them; `usage` {name: count}; `title`, `created` and `model`
# texts or None; `plan` as the plan tool keeps it, or None.
Saved = namedtuple("Saved", "messages usage title created model plan")

_OWN_KEYS = ("version", "id", "cwd", "created", "updated", "model", "title", "usage", "plan", "messages")
# Around the messages in the files that render() makes, where each message is one line.
_BEFORE, _BETWEEN, _AFTER = b'"messages":[\n', b",\n", b"\n]\n}\n"
# How a lone surrogate is escaped, among other things.
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_ROLES = ("user", "assistant", "tool")
_NOTHING = type(None)


class SessionError(Exception):
    """Why a session cannot be loaded: one line, without the session's id."""


def parse(data: bytes) -> tuple:
    """(Saved, header, lines) of a file's bytes. Raises SessionError.

    `header` holds the cwd (a text or None) and the keys that are not ours; `lines` has for each message its line in the
    file, where it is one that render() may be given again, or None.
    """
    document, lines = _by_lines(data) or _whole(data)
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
    messages = document.get("messages")
    _check(messages, (list,), "messages", "a list")
    lines = lines or [None] * len(messages)
    for place, message in enumerate(messages):
        if _mend(message, "messages[%d]" % place):
            lines[place] = None
    header = {key: value for key, value in document.items() if key not in _OWN_KEYS}
    header["cwd"] = document.get("cwd")
    saved = Saved(messages, _counts(document.get("usage")), document.get("title"), document.get("created"),
                  document.get("model"), document.get("plan"))
    return saved, header, lines


def render(header: dict, lines: list) -> bytes:
    """The file: `header` without its messages, and the lines of message_line()."""
    keys = dict(header, version=VERSION)
    ordered = [key for key in _OWN_KEYS if key in keys] + [key for key in keys if key not in _OWN_KEYS]
    head = ",\n".join("%s:%s" % (_encode(key), _encode(keys[key])) for key in ordered)
    before = b"{\n" + _to_utf8(head) + _BETWEEN + _BEFORE
    return b"".join((before, _BETWEEN.join(lines), _AFTER if lines else _AFTER[1:]))


def message_line(message: dict) -> bytes:
    """The message as one line of JSON, lone surrogates as U+FFFD."""
    return _to_utf8(_encode(message))


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


_decode = json_text.decoder().decode


def _to_utf8(text):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return replace_surrogates(text).encode("utf-8")


def _by_lines(data):
    """(document, lines) of a file as render() makes it, or None: each line between the brackets is a whole value then."""
    before = data.find(_BEFORE)
    if before < 0 or not data.endswith(_AFTER) or _may_hold_surrogates(data):
        return None
    lines = data[before + len(_BEFORE):-len(_AFTER)].split(_BETWEEN)
    try:
        document = _decode(data[:before].decode("utf-8") + '"messages":[]}')
        document["messages"] = [_decode(line.decode("utf-8")) for line in lines]
    except (ValueError, RecursionError):
        return None
    return document, lines


def _whole(data):
    """(document, None) of any file."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SessionError(NOT_UTF8 % (data.count(b"\n", 0, error.start) + 1)) from None
    try:
        document = _decode(text)
        if _may_hold_surrogates(data):
            # Pairs have become one character by now; what is left a server would refuse.
            document = _decode(_to_utf8(_encode(document)).decode("utf-8"))
        return document, None
    except json.JSONDecodeError as error:
        raise SessionError(NOT_JSON % (error.lineno, error.colno)) from None
    except (ValueError, RecursionError):
        raise SessionError(NOT_READABLE_JSON) from None


def _may_hold_surrogates(data):
    return b"\\u" in data and _SURROGATE_ESCAPE.search(data) is not None


def _check(value, types, where, what):
    if type(value) not in types:
        raise SessionError(WRONG_SHAPE % ("%s must be %s" % (where, what)))


def _check_reference(value, where):
    """Clients take it for the name of a call: one long line of it, or a control character, is a hostile file's."""
    if type(value) is not str or len(value) > LONGEST_REFERENCE or not value.isprintable():
        raise SessionError(WRONG_SHAPE % ("%s must be a text of at most %d printable characters" % (where, LONGEST_REFERENCE)))


def _counts(usage):
    """The counts of tokens that can be added to; they are for the user alone, so any other is left out."""
    if type(usage) is not dict:
        return {}
    return {name: count for name, count in usage.items() if type(count) is int and 0 <= count <= HIGHEST_COUNT}


def _mend(message, where):
    """Checks the message and makes what is in it such as others rely on; returns whether anything changed."""
    _check(message, (dict,), where, "an object")
    role = message.get("role")
    if role not in _ROLES:
        raise SessionError(WRONG_SHAPE % ("%s.role must be one of %s" % (where, ", ".join(_ROLES))))
    _check(message.get("content"), (str,), where + ".content", "text")
    # Only an assistant's message has calls; whoever counts calls does not look at the role.
    changed = role != "assistant" and message.pop("calls", None) is not None
    if role == "user":
        _check(message.get("kind"), (str, _NOTHING), where + ".kind", "text")
    elif role == "tool":
        return _mend_result(message, where) or changed
    else:
        _check(message.get("reasoning"), (str, _NOTHING), where + ".reasoning", "text")
        calls = message.get("calls")
        _check(calls, (list, _NOTHING), where + ".calls", "a list")
        return any([_mend_call(call, "%s.calls[%d]" % (where, place)) for place, call in enumerate(calls or ())])
    return changed


def _mend_result(message, where):
    _check_reference(message.get("call"), where + ".call")
    _check(message.get("name"), (str,), where + ".name", "text")
    wrong = [key for key, fits in _SHOWN.items() if key in message and not fits(message[key])]
    for key in wrong:
        del message[key]
    return bool(wrong)


def _is_text(value):
    return type(value) is str


def _is_switch(value):
    return type(value) is bool


def _is_diff(value):
    return (type(value) is dict and set(value) == {"path", "old", "new"} and _is_text(value["path"])
            and len(value["path"]) <= LONGEST_PATH and type(value["old"]) in (str, _NOTHING) and _is_text(value["new"]))


# What a result has for the user alone: it is left out if it is not what it should be.
_SHOWN = {"status": (COMPLETED, FAILED).__contains__, "diff": _is_diff, "prose": _is_switch,
          "title": _is_text, "toolKind": _is_text}


def _mend_call(call, where):
    _check(call, (dict,), where, "an object")
    _check_reference(call.get("ref"), where + ".ref")
    _check(call.get("name"), (str,), where + ".name", "text")
    given = call.get("arguments")
    try:
        if type(given) is str and type(_decode(given)) is dict:
            return False
    except (ValueError, RecursionError):
        pass
    call["arguments"] = call_arguments.read(given).text
    return True
