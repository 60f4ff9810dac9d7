"""JSON as it goes out to a client, and its size. Pure."""

from __future__ import annotations

import json

# A made encoder: json.dumps makes one each time that its arguments are not the defaults.
encode = json.JSONEncoder(ensure_ascii=False).encode


def encoded_size(value) -> int:
    """Bytes of the value's JSON."""
    return len(encode(value).encode("utf-8", "replace"))
