"""What a recorded transcript must not hold: values that change from run to run, and secrets. Pure.

Volatile values become placeholders (transcript.mark), so that a replay passes; secrets become MASKED where the line is sent
in a replay, and `<any>` where it is compared.

A model streams its words in pieces, and a path or a key may be cut anywhere. `Pieces` therefore holds a piece back as long
as the text so far may be the beginning of something known, and joins pieces where it was.
"""

from __future__ import annotations

import os
import re

from mm.fronts.transcript import SESSION_ID, mark
from mm.secrecy import MASKED, SECRET_NAME, SHORTEST_SECRET

# Names, of variables only: for a key of a JSON object they are harmless.
_SECRET_VARIABLE = re.compile(r"(?:^|_)(?:key|auth|pwd|pat)$", re.IGNORECASE)
# These hold folders.
_NO_SECRETS = ("PWD", "OLDPWD")

# What is a secret wherever it stands.
_KNOWN_SECRETS = re.compile(
    r"(?<=bearer )[\w.~+/=-]{8,}|\bsk-[\w-]{16,}|\bgh[opsu]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bhf_\w{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bxox[abprs]-[\w-]{10,}|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", re.IGNORECASE | re.DOTALL)

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


class Redaction:
    """The values known so far, and what stands for them."""

    def __init__(self, home: str = "", secrets=()):
        self._known = {}  # text -> what is written for it, None for a secret
        self._ids = {}
        self._pattern = None  # of what is known; made anew when something is added
        self._shortest = 0
        if is_private_folder(home):
            self.add_folder(home, mark("home"))
        for secret in secrets:
            self.add_secret(secret)

    def add_folder(self, path: str, instead: str) -> None:
        """`instead` is written for `path`, and for what its links lead to."""
        for known in (path, os.path.realpath(path)):
            self._known.setdefault(known, instead)
        self._pattern = None

    def add_secret(self, secret) -> None:
        if isinstance(secret, str) and len(secret) >= SHORTEST_SECRET:
            self._known[secret] = None
            self._pattern = None

    def sent(self, value):
        """A value that a replay sends, without what must not be in it."""
        return self._value(value, True)

    def compared(self, value):
        """A value that a replay compares with the real one."""
        return self._value(value, False)

    def may_go_on(self, text: str) -> bool:
        """Whether the end of `text` is the beginning of a known value."""
        for known in self._known:
            start = text.find(known[0], max(len(text) - len(known) + 1, 0))
            while start >= 0:
                if known.startswith(text[start:]):
                    return True
                start = text.find(known[0], start + 1)
        return False

    def crosses(self, pieces) -> bool:
        """Whether a known value goes from one of the pieces into the next."""
        ends, end = set(), 0
        for piece in pieces:
            end += len(piece)
            ends.add(end)
        return any(found.start() < edge < found.end() for found in self._regex().finditer("".join(pieces)) for edge in ends)

    def _value(self, value, sent):
        if isinstance(value, str):
            return self._text(value, sent)
        if isinstance(value, list):
            return [self._value(each, sent) for each in value]
        if isinstance(value, dict):
            return {key: self._field(key, each, sent) for key, each in value.items()}
        return value

    def _field(self, key, value, sent):
        if isinstance(value, str) and value and SECRET_NAME.search(key):
            return MASKED if sent else _ANY
        return self._value(value, sent)

    def _text(self, text, sent):
        pattern = self._regex()
        if len(text) < self._shortest:  # nothing to be found: nearly all pieces of a stream
            return text
        masked = MASKED if sent else _ANY

        def known(found):
            instead = self._known[found.group(0)]
            return masked if instead is None else instead

        text = pattern.sub(known, text)
        text = _KNOWN_SECRETS.sub(masked, text)
        if not sent:
            for pattern, placeholder in _CHANGING:
                text = pattern.sub(placeholder, text)
        return _SESSION_ID.sub(lambda found: self._session(found.group(0), sent), text)

    def _session(self, session_id, sent):
        """An id that mm has said stands for itself by a placeholder; one that only the client knows cannot be replayed."""
        if session_id not in self._ids and not sent:
            self._ids[session_id] = mark("id" + (str(len(self._ids) + 1) if self._ids else ""))
        return self._ids.get(session_id, session_id)

    def _regex(self):
        if self._pattern is None:
            longest_first = sorted(self._known, key=len, reverse=True)
            # A folder ends at the end of a name: /home/ann is no part of /home/anna.
            parts = [re.escape(known) + ("" if self._known[known] is None else r"(?![\w-])") for known in longest_first]
            self._pattern = re.compile("|".join(parts) or r"(?!)")
            self._shortest = min([len(known) for known in longest_first] + [SHORTEST_SECRET])
        return self._pattern


class Pieces:
    """A text that comes in pieces, each with a line that it belongs to.

    `write(line, text)` is told every line with its piece, in order, as soon as no known value can go on behind it; the
    pieces that a known value crosses come as one, with the first of their lines, and the others come with "".
    """

    def __init__(self, redaction: Redaction, write):
        self._redaction = redaction
        self._write = write
        self._key = None
        self._held = []

    def add(self, key, line, text: str) -> None:
        """`key` says which text the piece belongs to: with another one the former text is over."""
        if key != self._key:
            self.flush()
            self._key = key
        self._held.append((line, text))
        if not self._redaction.may_go_on("".join(text for _, text in self._held)):
            self.flush()

    def flush(self) -> None:
        held, self._held = self._held, []
        texts = [text for _, text in held]
        if len(held) > 1 and self._redaction.crosses(texts):
            texts = ["".join(texts)] + [""] * (len(held) - 1)
        for (line, _), text in zip(held, texts):
            self._write(line, text)


def secrets_of(environ) -> list:
    """The values of the variables that look secret."""
    return [value for name, value in environ.items()
            if name not in _NO_SECRETS and (SECRET_NAME.search(name) or _SECRET_VARIABLE.search(name))]


def configured_secrets(config) -> list:
    """What the configuration holds that is secret: the key, the headers, and what programs are given by such names."""
    given = [secret for entry in [*config.mcp.values(), *config.agents.values()] for secret in secrets_of(entry.env)]
    return [config.model_api_key, *(config.model_headers or {}).values(), *given]


def is_private_folder(path: str) -> bool:
    """Whether a path says something about the user; "/" would be found everywhere."""
    return os.path.isabs(path) and os.path.dirname(path) != path
