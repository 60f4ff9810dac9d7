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
from mm.model.text_calls.openers import RECIPIENTS
from mm.model.text_calls.scanner import Disproved, Source

# The messages before a call or the final answer. `said`: [(Text or Thought, text)]; `length`: the characters
# that they take; `calls`: [(name, arguments)], None if the final answer follows.
Messages = namedtuple("Messages", "said length calls")

_CHANNELS = ("analysis", "commentary", "final")
_NEXT = re.compile(r"assistant(analysis|commentary|final| to=)")
# A word of prose goes on with one of these; the text of a message begins with none of them.
_PROSE = " \t\r\n_-.,:;!?)'/="

_ARGUMENTS = re.compile(r"(?=\{)")
_HEADER_LENGTH = 120
_RECIPIENT = re.compile(r"([\w.\-]+)(?:\s|<\|\w+\|>|commentary|analysis|json|code)*")
_GLUED = re.compile(r"(?:commentary|analysis|json|code)\Z")


def messages(source: Source, opener: str) -> Messages:
    """The messages of an answer that begins with one of openers.HEADERS."""
    said, length, channel = [], 0, opener
    if channel == "assistant":
        channel = source.need(*_CHANNELS, " to=")
    while channel != "final":
        if channel == " to=" or source.take(" to="):
            return Messages(said, length, calls(source, ""))
        if not said and source.comes(_PROSE):
            raise Disproved
        text, following = source.until(_NEXT)
        said.append((Thought if channel == "analysis" else Text, text))
        length, channel = len(opener) + source.at - len(following), following[len("assistant"):]
    return Messages(said, length, None)


def calls(source: Source, _) -> list:
    """[(name, arguments)] of one call or several, read from the first recipient on."""
    found, more = [], True
    while more:
        tool = _recipient(source, source.before(_ARGUMENTS, _HEADER_LENGTH))
        found.append((tool, source.json(False)))
        source.space()
        more = source.take(*RECIPIENTS)
    return found


def _recipient(source: Source, header: str) -> str:
    """The known tool that a header names; the words after it may be glued to its name."""
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
