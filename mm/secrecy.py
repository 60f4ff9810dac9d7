"""What is secret, and how texts, JSON values and streams are written without it. Pure.

`$MM_TRACE` and `--record` share this one list. A model streams its words in pieces, and a key may be cut
anywhere: `Pieces` holds a piece back while the text so far may end with the beginning of a known text, and
joins the pieces that a known text crosses.
"""

from __future__ import annotations

import json
import re

MASKED = "[masked]"
# Shorter values are words such as "true" or "none", which would be masked wherever they occur.
SHORTEST_SECRET = 6

# The names of variables, keys and headers whose values are secret.
SECRET_NAME = re.compile(
    r"api_?-?key|access_?-?key|private_?-?key|token|secret|passw|passphrase|credential|authorization|cookie",
    re.IGNORECASE)
# The same for variables only: as keys of a JSON object these names are harmless.
_SECRET_VARIABLE = re.compile(r"(?:^|_)(?:key|auth|pwd|pat)$", re.IGNORECASE)
# These hold folders.
_NO_SECRETS = ("PWD", "OLDPWD")

# What shows by itself that it is a secret.
_TELLTALE = re.compile(
    r"(?<=bearer )[\w.~+/=-]{8,}|\bsk-[\w-]{16,}|\bgh[opsu]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"
    r"|\bhf_\w{20,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bxox[abprs]-[\w-]{10,}"
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
    re.IGNORECASE | re.DOTALL)

# mm's own secrets: the programs that it starts do not need them, and no output should show them.
_OWN = ("MM_API_KEY",)


def without_own(environ) -> dict:
    """The environment for the programs that mm starts, without mm's own secrets."""
    return {name: value for name, value in environ.items() if name not in _OWN}


def secrets_of(environ) -> list:
    """The values of the variables whose names look secret."""
    return [value for name, value in environ.items()
            if name not in _NO_SECRETS and (SECRET_NAME.search(name) or _SECRET_VARIABLE.search(name))]


def all_secrets(config, environ) -> list:
    """The texts that no trace and no recording may hold.

    They are the secrets of the environment, and from the configuration (which may be None) the key, the
    headers and the secret variables of the programs in it.
    """
    found = secrets_of(environ)
    if config is not None:
        found += [config.model_api_key, *(config.model_headers or {}).values()]
        for entry in [*config.mcp.values(), *config.agents.values()]:
            found += secrets_of(entry.env)
    return [secret for secret in found if isinstance(secret, str) and len(secret) >= SHORTEST_SECRET]


def mask_servers(message) -> list:
    """Masks, in place, the variables and headers that a client gives MCP servers in `session/new` or
    `session/load`.

    Returns the values that were masked.
    """
    params = message.get("params") if isinstance(message, dict) else None
    servers = params.get("mcpServers") if isinstance(params, dict) else None
    found = []
    for server in servers if isinstance(servers, list) else []:
        for field in ("env", "headers"):
            pairs = server.get(field) if isinstance(server, dict) else None
            for pair in pairs if isinstance(pairs, list) else []:
                if isinstance(pair, dict) and "value" in pair:
                    found.append(pair["value"])
                    pair["value"] = MASKED
    return found


def mask(value, text, masked=MASKED):
    """A JSON value with `text(each)` for its texts and keys, and `masked` for a text under a name that looks
    secret.

    Such a text stands in `{"apiKey": text}`, or in `{"name": "API_KEY", "value": text}` as editors write
    variables and headers.
    """
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return [mask(each, text, masked) for each in value]
    if not isinstance(value, dict):
        return value
    shown = {text(key): masked if isinstance(each, str) and each and SECRET_NAME.search(key)
             else mask(each, text, masked)
             for key, each in value.items()}
    name, given = value.get("name"), value.get("value")
    if isinstance(name, str) and isinstance(given, str) and given and SECRET_NAME.search(name):
        shown[text("value")] = masked
    return shown


def escaped_forms(text: str) -> set:
    """The text, and how it stands in JSON, and in JSON that is a text of other JSON, as a call's arguments
    are.
    """
    forms = {text}
    for _ in range(2):
        forms |= {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in forms
                  for ascii_only in (True, False)}
    return forms


class Known:
    """Texts that must not be written as they are, and what is written in their place; secrets are masked."""

    def __init__(self, secrets=()):
        self._instead = {}  # text -> what is written in its place, None for a secret
        self._pattern = None  # matches the texts; made again after one is added
        for secret in secrets:
            self.add(secret)

    def add(self, text, instead=None) -> None:
        """Adds a text: with `instead` one that ends with its word, else a secret, unless it is too short."""
        if isinstance(text, str) and (instead is not None or len(text) >= SHORTEST_SECRET):
            for form in escaped_forms(text):
                self._instead.setdefault(form, instead)
            self._pattern = None

    def hidden(self, text: str, masked: str = MASKED) -> str:
        """`text` without the known texts, and without what shows by itself that it is a secret."""
        if len(text) < SHORTEST_SECRET and not any(known in text for known in self._instead):
            return text  # nearly all pieces of a stream
        instead = self._instead
        text = self._regex().sub(lambda found: instead[found.group()] or masked, text)
        return _TELLTALE.sub(masked, text)

    def may_go_on(self, text: str) -> bool:
        """Whether `text` ends with the beginning of a known text."""
        for known in self._instead:
            start = text.find(known[0], max(len(text) - len(known) + 1, 0))
            while start >= 0:
                if known.startswith(text[start:]):
                    return True
                start = text.find(known[0], start + 1)
        return False

    def crosses(self, pieces) -> bool:
        """Whether a known text goes from one of the pieces into the next."""
        ends, end = set(), 0
        for piece in pieces:
            end += len(piece)
            ends.add(end)
        whole = "".join(pieces)
        return any(found.start() < edge < found.end() for found in self._regex().finditer(whole)
                   for edge in ends)

    def _regex(self):
        if self._pattern is None:
            longest_first = sorted(self._instead, key=len, reverse=True)
            # A folder ends where its name ends: /home/ann is not in /home/anna.
            parts = [re.escape(known) + ("" if self._instead[known] is None else r"(?![\w-])")
                     for known in longest_first]
            self._pattern = re.compile("|".join(parts) or r"(?!)")
        return self._pattern


class Pieces:
    """A text that comes in pieces; each piece belongs to a line.

    `write(line, text)` gets every line with its piece, in order, as soon as no known text can continue after
    it. The pieces that a known text crosses are written as one, with the first of their lines; the other
    lines get "".
    """

    def __init__(self, known: Known, write):
        self._known, self._write = known, write
        self._key = None
        self._held = []

    def add(self, key, line, text: str) -> None:
        """`key` names the text that the piece belongs to: a new key ends the text before it."""
        if key != self._key:
            self.flush()
            self._key = key
        self._held.append((line, text))
        if not self._known.may_go_on("".join(text for _, text in self._held)):
            self.flush()

    def flush(self) -> None:
        held, self._held = self._held, []
        texts = [text for _, text in held]
        if len(held) > 1 and self._known.crosses(texts):
            texts = ["".join(texts)] + [""] * (len(held) - 1)
        for (line, _), text in zip(held, texts):
            self._write(line, text)
