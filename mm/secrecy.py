"""What looks secret, and JSON values without it. Pure."""

from __future__ import annotations

import re

MASKED = "[masked]"
# Shorter values are words, such as "true" or "none", which would be masked wherever they occur.
SHORTEST_SECRET = 6

# Names, of variables, keys and headers, whose values are secret.
SECRET_NAME = re.compile(
    r"api_?-?key|access_?-?key|private_?-?key|token|secret|passw|passphrase|credential|authorization|cookie", re.IGNORECASE)

# mm's own secrets: no program that it starts needs them, and no output should show them.
_OWN = ("MM_API_KEY",)


def without_own(environ) -> dict:
    """The environment for the programs that mm starts for others."""
    return {name: value for name, value in environ.items() if name not in _OWN}


def mask(value):
    """A JSON value with MASKED for every text under a name that looks secret: `{"apiKey": text}`, and
    `{"name": "API_KEY", "value": text}` as editors write variables and headers."""
    if isinstance(value, list):
        return [mask(each) for each in value]
    if not isinstance(value, dict):
        return value
    masked = {key: MASKED if isinstance(each, str) and SECRET_NAME.search(key) else mask(each)
              for key, each in value.items()}
    if isinstance(value.get("name"), str) and isinstance(value.get("value"), str) and SECRET_NAME.search(value["name"]):
        masked["value"] = MASKED
    return masked
