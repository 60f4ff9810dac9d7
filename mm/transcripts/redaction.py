"""What a recorded transcript must not hold: values that change from run to run, and secrets (mm.secrecy).

Volatile values become placeholders (placeholders.mark), so that a replay passes; secrets become MASKED where
a replay sends the line, and `<any>` where it compares it.
"""

from __future__ import annotations

import os
import re

from mm.transcripts.placeholders import mark
from mm.transcripts.transcript import SESSION_ID
from mm.secrecy import MASKED, Known, mask

_N, _ANY = mark("n"), mark("any")

# What changes from run to run in mm's own texts.
_CHANGING = (
    (re.compile(r"(?<=process group )\d+"), _N),
    (re.compile(r"(?<=kill -- -)\d+"), _N),
    (re.compile(r"(?:/[^\s\"'/]+)+/mm-[a-z0-9_]{8}(?=/)"), _ANY),
    (re.compile(r"\(\d[\d.,]*k? tokens, \d[\d.,]*s\)"), "({} tokens, {}s)".format(_N, _N)),
    (re.compile(r"^mm v\S+"), "mm v" + _ANY),
    (re.compile(r"(?<=http://127\.0\.0\.1:)\d+"), _N),
)

_SESSION_ID = re.compile(r"(?<![\w-])" + SESSION_ID + r"(?![\w-])")


class Redaction(Known):
    """The values known so far, and what stands for them."""

    def __init__(self, home: str = "", secrets=()):
        super().__init__(secrets)
        self._ids = {}
        if is_private_folder(home):
            self.add_folder(home, mark("home"))

    def add_folder(self, path: str, instead: str) -> None:
        """`instead` is written for `path`, and for what its links lead to."""
        for known in (path, os.path.realpath(path)):
            self.add(known, instead)

    def sent(self, value):
        """A value that a replay sends, without what must not be in it."""
        return mask(value, lambda text: self._session_ids(self.hidden(text), True))

    def compared(self, value):
        """A value that a replay compares with the real one."""
        return mask(value, self._compared, _ANY)

    def _compared(self, text: str) -> str:
        text = self.hidden(text, _ANY)
        for pattern, placeholder in _CHANGING:
            text = pattern.sub(placeholder, text)
        return self._session_ids(text, False)

    def _session_ids(self, text: str, sent: bool) -> str:
        return _SESSION_ID.sub(lambda found: self._session(found.group(0), sent), text)

    def _session(self, session_id, sent):
        """An id that mm has said stands for itself by a placeholder; one that only the client knows cannot be
        replayed."""
        if session_id not in self._ids and not sent:
            self._ids[session_id] = mark("id" + (str(len(self._ids) + 1) if self._ids else ""))
        return self._ids.get(session_id, session_id)


def is_private_folder(path: str) -> bool:
    """Whether a path says something about the user; "/" would be found everywhere."""
    return os.path.isabs(path) and os.path.dirname(path) != path
