"""gpt-oss's messages after their special tokens were dropped, as some servers send them (pure).

    analysisThe user wants the files.assistantcommentary to=functions.bash json{"command": "ls"}
    analysisThey said hello.assistantfinalHello!

Without the tokens only the words of the headers are left. One counts if an answer begins with it, or if a
line begins with it and it names a recipient. A header that no other one follows, or that names no known tool,
is prose.
"""

from __future__ import annotations

import re
from collections import namedtuple

from mm.events import Text, Thought
from mm.model.text_calls.scanner import (Disproved, Source, before, is_next, json_value, needed, one_of, space,
                                         until)
from mm.model.text_calls.openers import RECIPIENTS

# The messages before a call or the final answer. `said`: [(Text or Thought, text)]; `length`: the characters
# that they take; `calls`: [(name, arguments)], None if the final answer follows.
Messages = namedtuple("Messages", "said length calls")

_CHANNELS = ("analysis", "commentary", "final")
_NEXT = re.compile(r"assistant(analysis|commentary|final| to=)")
_LONGEST_NEXT = len("assistantcommentary")
# A word of prose goes on with one of these, the text of a message begins with none of them.
_PROSE = " \t\r\n_-.,:;!?)'/="

_ARGUMENTS = re.compile(r"(?=\{)")
_HEADER_LENGTH = 120
_RECIPIENT = re.compile(r"([\w.\-]+)(?:\s|<\|\w+\|>|commentary|analysis|json|code)*")
_GLUED = re.compile(r"(?:commentary|analysis|json|code)\Z")


def messages(source: Source, opener: str):
    """The messages of an answer that begins with one of openers.HEADERS, as Messages."""
    said, length, channel, taken = [], 0, opener, len(opener)
    if channel == "assistant":
        channel = yield from needed(source, *_CHANNELS, " to=")
        taken += len(channel)
    while channel != "final":
        if channel == " to=" or (yield from one_of(source, (" to=",))):
            return Messages(said, length, (yield from calls(source, "")))
        if not said and (yield from is_next(source, _PROSE)):
            raise Disproved
        text, following = yield from until(source, _NEXT, _LONGEST_NEXT)
        said.append((Thought if channel == "analysis" else Text, text))
        length, channel = taken + len(text), following[len("assistant"):]
        taken = length + len(following)
    return Messages(said, length, None)


def calls(source: Source, _):
    """[(name, arguments)] of one call or several, read from the first recipient on."""
    found, more = [], True
    while more:
        tool = _recipient(source, (yield from before(source, _ARGUMENTS, _HEADER_LENGTH)))
        found.append((tool, (yield from json_value(source, False))))
        yield from space(source)
        more = yield from one_of(source, RECIPIENTS)
    return found


def _recipient(source: Source, header: str) -> str:
    """The known tool that a header names; the words after it may stand right at its name."""
    found = _RECIPIENT.fullmatch(header)
    name = found.group(1) if found else ""
    while True:
        try:
            return source.known(name)
        except Disproved:
            shorter = _GLUED.sub("", name)
            if shorter == name:
                raise
            name = shorter
