"""The parts of an http URL. Python's urllib.parse takes half a megabyte that a prompt can do without."""

from __future__ import annotations

import functools
import re
from collections import namedtuple

_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL)
_ADDRESS = re.compile(r"(?:.*@)?(\[[0-9A-Fa-f:.]+(?:%[^\]]*)?\]|[^:\[\]]*)(?::([0-9]{0,5}))?")


# `scheme` is in small letters; `address` is what stands between `//` and the path. `host` is without the
# brackets of an IPv6 address, in small letters; `port` a number, or None.
Url = namedtuple("Url", "scheme address path query host port")


@functools.lru_cache(maxsize=64)  # every request asks for the same few
def split(url: str) -> Url:
    """Raises ValueError if the address cannot be one: a wrong port, half a bracket."""
    scheme, address, path, query = (part or "" for part in _URL.fullmatch(url).groups())
    found = _ADDRESS.fullmatch(address)
    if not found or int(found.group(2) or 0) > 65535 or not _is_name(found.group(1)):
        raise ValueError("not an address: %s" % address)
    host, port = found.groups()
    return Url(scheme.lower(), address, path, query, host.strip("[]").lower(), int(port) if port else None)


def _is_name(host: str) -> bool:
    """Whether no character beyond ASCII may be read as one that ends a host, as U+2100 is read as `a/c`."""
    return host.isascii() or all(sign.isalnum() or sign in "-." for sign in host)
