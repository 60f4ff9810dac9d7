"""The transcript format: lines of text -> Line values, and the comparison of an expected line with a real
one. Pure.

docs/transcripts.md is the reference of the format. player.py plays a transcript, recorder.py writes one,
script.py turns its `=` lines into a model's answer. Lines in the short form become lines in the long form
here (shorthand.py).
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections import namedtuple

from mm.errors import UserError
from mm.transcripts import shorthand
from mm.transcripts.placeholders import MARKED, marked, unmark

# `number` counts from 1 in the file; `sign` is one of SIGNS; `text` is what follows it, placeholders as
# written; `value` is the marked JSON of "<", "<*" and "~" lines, the plain JSON of an "=" line (None for a
# raw stream line), a Directive or None for "#", None otherwise.
Line = namedtuple("Line", "number sign text value")

# A comment that sets something up: `# cwd: file notes.md one line`. `value` is what _DIRECTIVES makes of the
# rest.
Directive = namedtuple("Directive", "name value")

# A file, folder or link to be made: `kind` is one of those words, `content` the text or the link's target.
Entry = namedtuple("Entry", "kind name content")

# Where two JSON values part: `path` like "params.update.content[0].text"; `expected` and `got` are JSON, or
# words.
Difference = namedtuple("Difference", "path expected got")

# Stands for a key or an element that is not there.
NOTHING = object()

SIGNS = (">", "<", "<*", "!", "~", "=", "#")

# What a comment can set up.
SETTINGS = ("cwd", "home", "args", "config", "model", "env", "stderr", "usage", "stdin", "restart",
            "deadline")

# What an object on an "=" line may hold; script.py says what each does.
SCRIPT_KEYS = ("text", "thought", "call", "usage", "finish", "status", "body", "pause", "hang", "drop")

# A line of an event stream.
STREAM_LINE = re.compile(r"(?:data|event|id|retry|error|):")

# The contract's session id, `20260916-101530-4f2a9c1e`.
SESSION_ID = r"\d{8}-\d{6}-[0-9a-f]{8}"

# How much of a value a report shows.
SHOWN = 400

_SIGN = re.compile(r"(<\*|[><!~=#])(?:[ \t]+(.*)|)$", re.DOTALL)
_DIRECTIVE = re.compile(r"(%s):\s*(.*)$" % "|".join(SETTINGS), re.DOTALL)


def parse(text: str) -> list:
    """The lines of a transcript as a list of Line, blank ones left out.

    A line that starts with a blank continues the one before it. Raises UserError naming the line.
    """
    lines, short = [], shorthand.Shorthand()
    for number, written in _joined(text):
        found = _SIGN.match(written)
        if found is None:
            raise _wrong(number, "starts with none of " + " ".join(SIGNS))
        long = short.lines(found.group(1), found.group(2) or "")
        if long[0][0] == "=" and not any(line.sign == "~" for line in lines):
            raise _wrong(number, "is a model's answer without a request: write ~ above it")
        lines += [Line(number, sign, rest, _value(number, sign, rest)) for sign, rest in long]
    return lines


def groups(lines) -> list:
    """The model's part: a list of (the "~" line, its "=" lines), one for each request, in order."""
    result = []
    for line in lines:
        if line.sign == "~":
            result.append((line, []))
        elif line.sign == "=":
            result[-1][1].append(line)
    return result


def directives(lines, name: str) -> list:
    """The values of all directives of that name, in order."""
    return [line.value.value for line in lines if line.sign == "#" and line.value and line.value.name == name]


def sends(line: Line) -> bool:
    """Whether the client does something: sends a line, closes the agent's stdin, or starts the agent anew."""
    return line.sign == ">" or _sets(line, "stdin") or restarts(line)


def restarts(line: Line) -> bool:
    """Whether the agent ends here and is started again (`# restart: …`)."""
    return _sets(line, "restart")


def _sets(line: Line, name: str) -> bool:
    return line.sign == "#" and line.value is not None and line.value.name == name


def compare(expected, actual, names: dict, subset: bool = False):
    """The first Difference between a marked value and a real one, or None when they are the same.

    `names` maps "cwd", "home" and the ids met so far to what they stand for; ids met for the first time are
    added, but only when there is no difference. With `subset`, an object is compared in the keys named, and a
    list with the last elements of the real one.
    """
    met = dict(names)
    difference = _compare(expected, actual, met, subset, "")
    if difference is None:
        names.update(met)
    return difference


def compare_text(expected: str, actual: str, names: dict) -> bool:
    """Whether a line of text is the expected one, in which placeholders stand as they are written."""
    return compare(marked(expected), actual, names) is None


def is_live_output(message) -> bool:
    """Whether a message shows what a running command has written so far: how many of them come is a matter of
    time."""
    update = update_of(message)
    return (update.get("sessionUpdate") == "tool_call_update" and update.get("status") == "in_progress"
            and "content" in update)


def update_of(message) -> dict:
    """The update in a session/update; empty for any other message."""
    params = message.get("params") if isinstance(message, dict) else None
    update = params.get("update") if isinstance(params, dict) else None
    return update if isinstance(update, dict) else {}


# ---------------------------------------------------------------- reading


def _joined(text: str):
    """(number of the first line, text) of each line with those that continue it."""
    number, parts = 0, []
    for count, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        if not line.strip():
            continue
        if line[0] in " \t":
            if not parts:
                raise _wrong(count, "continues a line, but there is none before it")
            parts.append(line.strip())
            continue
        if parts:
            yield number, " ".join(parts)
        number, parts = count, [line]
    if parts:
        yield number, " ".join(parts)


def _value(number: int, sign: str, rest: str):
    if sign in ("<", "<*", "~"):
        return _json(number, marked(rest))
    if sign == "=":
        return _script(number, rest)
    if sign == "#":
        return _directive(number, rest)
    return None


def _script(number: int, rest: str):
    """The object of an "=" line, or None for a line of the stream as it is."""
    if not rest.startswith("{"):
        if STREAM_LINE.match(rest):
            return None
        raise _wrong(number, "is neither an object nor a line of an event stream (data: …)")
    value = _json(number, rest)
    for key in value:
        if key not in SCRIPT_KEYS:
            raise _wrong(number, "has the unknown key \"{}\"; there are {}".format(key,
                                                                                   ", ".join(SCRIPT_KEYS)))
    return value


def _directive(number: int, rest: str):
    found = _DIRECTIVE.match(rest)
    if found is None:
        return None
    name, argument = found.groups()
    try:
        return Directive(name, _DIRECTIVES[name](argument))
    except (ValueError, RecursionError) as error:
        raise _wrong(number, "# {}: {}".format(name, error)) from None


def _entry(argument: str) -> Entry:
    kind, rest = (argument.split(None, 1) + ["", ""])[:2]
    name, rest = _word(rest)
    if kind not in ("file", "folder", "link") or not name:
        raise ValueError("needs `file NAME TEXT`, `folder NAME` or `link NAME TARGET`")
    # A transcript comes with a bug report: it makes files in its own folders only.
    if name.startswith(("/", "\\", "~")) or ":" in name or ".." in re.split(r"[/\\]", name):
        raise ValueError("{} is not below the folder".format(name))
    if rest.startswith('"'):
        content = json.loads(rest)
    else:
        content = rest + "\n" if kind == "file" else rest
    return Entry(kind, name, content)


def _word(text: str):
    """(first word, the rest): the word may be a JSON string."""
    if text.startswith('"'):
        word, end = json.JSONDecoder().raw_decode(text)
        return word, text[end:].strip()
    word, _, rest = text.partition(" ")
    return word, rest.strip()


def _object(argument: str) -> dict:
    value = json.loads(argument)
    if not isinstance(value, dict):
        raise ValueError("needs a JSON object")
    return value


def _variable(argument: str):
    name, equals, value = argument.partition("=")
    if not name or not equals:
        raise ValueError("needs NAME=VALUE")
    return name, value


def _only(*words: str):
    def argument_is(argument: str) -> str:
        if argument not in words:
            raise ValueError("can only be " + " or ".join("`{}`".format(word) for word in words))
        return argument

    return argument_is


_DIRECTIVES = {
    "cwd": _entry,
    "home": _entry,
    "args": shlex.split,
    "config": _object,
    "model": str,
    "env": _variable,
    "stderr": _only("all"),
    "usage": _only("ignored"),
    "stdin": _only("closed"),
    "restart": _only("ended", "killed"),
    "deadline": float,
}


def _json(number: int, text: str):
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(number, "is not JSON: {}".format(error)) from None


def _wrong(number: int, what: str) -> UserError:
    return UserError("transcript line {} {}".format(number, what), exit_code=2)


# ---------------------------------------------------------------- comparing


def _compare(expected, actual, names, subset, path):
    if isinstance(expected, dict) and isinstance(actual, dict):
        keys = [*expected, *(key for key in actual if key not in expected and not subset)]
        parts = [(path + "." + key if path else key, expected.get(key, NOTHING), actual.get(key, NOTHING))
                 for key in keys]
    elif isinstance(expected, list) and isinstance(actual, list):
        start = max(len(actual) - len(expected), 0) if subset else 0
        parts = [("{}[{}]".format(path, start + index), *pair) for index, pair in enumerate(
            itertools.zip_longest(expected, actual[start:], fillvalue=NOTHING))]
    elif isinstance(expected, str):
        return _compare_string(expected, actual, names, path)
    else:
        same = expected == actual and (type(expected) is type(actual) or _is_number(expected)
                                       and _is_number(actual))
        return None if same else _difference(path, expected, actual)
    return next(filter(None, (_compare(*pair, names, subset, inner) for inner, *pair in parts)), None)


def _compare_string(expected, actual, names, path):
    whole = MARKED.fullmatch(expected)
    if whole and (whole.group(1) == "any" or (whole.group(1) == "n" and _is_number(actual))):
        return None
    if not isinstance(actual, str):
        return _difference(path, expected, actual)
    if not MARKED.search(expected):
        return None if expected == actual else _difference(path, expected, actual)
    pattern, new = _pattern(expected, names)
    found = re.fullmatch(pattern, actual, re.DOTALL)
    if found is None:
        return _difference(path, expected, actual)
    for name in new:
        if found.group(name) in [value for other, value in names.items() if other.startswith("id")]:
            return Difference(path, "an id for <{}> that is not one of the others".format(name), show(actual))
        names[name] = found.group(name)
    return None


def _pattern(expected, names):
    """(regular expression, the ids it meets for the first time) of a string with placeholders."""
    pattern, new = [], []
    for index, piece in enumerate(MARKED.split(expected)):
        if index % 2 == 0:
            pattern.append(re.escape(piece))
        elif piece == "any":
            pattern.append(".*?")
        elif piece == "n":
            pattern.append(r"\d+(?:[.,]\d+)*")
        elif piece in names:
            pattern.append(re.escape(names[piece]))
        elif piece in new:
            pattern.append("(?P={})".format(piece))
        elif piece.startswith("id"):
            new.append(piece)
            pattern.append("(?P<{}>{})".format(piece, SESSION_ID))
        else:
            pattern.append(re.escape("<" + piece + ">"))
    return "".join(pattern), new


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _difference(path, expected, actual) -> Difference:
    if isinstance(expected, str) and isinstance(actual, str) and max(len(expected), len(actual)) > SHOWN:
        # Of two long texts, the place of the first difference.
        same = next((i for i, pair in enumerate(zip(expected, actual)) if pair[0] != pair[1]),
                    min(len(expected), len(actual)))
        start = max(same - SHOWN // 4, 0)
        expected, actual = (("…" if start else "") + text[start:start + SHOWN] for text in (expected, actual))
    return Difference(path, show(expected), show(actual))


def show(value) -> str:
    """A value as a report shows it: JSON with placeholders as they are written, cut."""
    if value is NOTHING:
        return "nothing"
    text = unmark(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 2 * SHOWN else text[:2 * SHOWN] + "…"
