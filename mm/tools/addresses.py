"""Which URLs and addresses a page may be fetched from. Pure.

Our own table of networks says what is public: `is_global` differs between the Pythons, and says yes to
multicast and to private addresses in the guise of IPv6 ones. `ipaddress` only parses.

Source: the IANA special-purpose address registries for IPv4 and IPv6, with what is shut down or for
documentation; the names are those of RFC 6762 (appendix G), RFC 6761 and RFC 8375.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import urllib.parse
from collections import namedtuple

from mm.text import one_line

# A URL in parts: `host` in ASCII, without brackets and final dot, `target` the path and the query, encoded.
Place = namedtuple("Place", "url tls host port target")

_URL_SHOWN = 300
_URL_LIMIT = 8000
_LABEL_LIMIT = 63

_GITHUB_FILE = re.compile(r"https?://(?:www\.)?github\.com/([^/?#]+/[^/?#]+)/blob/([^?#]+)", re.IGNORECASE)
_NUMBERS = re.compile(r"[0-9a-fx.]+", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]*:[0-9a-f:.]*", re.IGNORECASE)


def _networks(text):
    return tuple(map(ipaddress.ip_network, text.split()))


_NOT_PUBLIC_4 = _networks("""
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24
    224.0.0.0/4 240.0.0.0/4""")
# Of IPv6 only this is handed out; loopback, unique local, link-local, site-local, multicast and what is
# deprecated lie outside.
_GLOBAL_6 = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC_6 = _networks("2001::/23 2001:db8::/32 2620:4f:8000::/48 3fff::/20")
# Networks whose addresses hold IPv4 addresses that are reached in their stead: how far to the right, and what
# is flipped.
_EMBEDDING = tuple((ipaddress.ip_network(network), places) for network, places in (
    ("::ffff:0:0/96", ((0, 0),)),                    # mapped
    ("64:ff9b::/96", ((0, 0),)),                     # NAT64
    ("2002::/16", ((80, 0),)),                       # 6to4
    ("2001::/32", ((64, 0), (0, 0xFFFFFFFF))),       # Teredo: its server, and the client, all bits flipped
))
_PRIVATE_NAMES = {"localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home",
                  "lan", "home.arpa"}


def parse(url: str) -> Place:
    """Raises ValueError with the reason, a phrase that follows the URL."""
    url = url.strip()
    if not url.isprintable() or len(url) > _URL_LIMIT:
        raise ValueError("is not a URL")
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError("does not begin with http:// or https://")
    if "@" in parts.netloc:
        raise ValueError("holds a user name: leave it out")
    tls = parts.scheme == "https"
    target = urllib.parse.quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    if parts.query:
        target += "?" + urllib.parse.quote(parts.query, safe="/%:@!$&'()*+,;=~?")
    if port == 0:
        raise ValueError("is not a URL")
    return Place(url, tls, _host(parts.hostname), port or (443 if tls else 80), target)


def _host(name):
    name = name or ""
    try:
        host = name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError:
        host = ""
    host = host.rstrip(".")  # only now: there are other full stops, which have become dots
    if not _HOST.fullmatch(host) or not all(0 < len(label) <= _LABEL_LIMIT for label in host.split(".")):
        raise ValueError("does not name a host")
    return host.lower()


def raw(url: str) -> str:
    """The file itself where `url` is the page that GitHub shows it in."""
    page = _GITHUB_FILE.match(url.strip())
    return page.expand(r"https://raw.githubusercontent.com/\1/\2") if page else url


def shown(url: str) -> str:
    """The URL as messages name it."""
    return one_line(url, _URL_SHOWN)


def is_public(address: str) -> bool:
    """Whether the numeric address, and each IPv4 address in it, is one of the open Internet's."""
    return _is_public(ipaddress.ip_address(address.partition("%")[0]))


def _is_public(address):
    if address.version == 4:
        return not any(address in network for network in _NOT_PUBLIC_4)
    for network, places in _EMBEDDING:
        if address in network:
            inner = ((int(address) >> shift & 0xFFFFFFFF) ^ flipped for shift, flipped in places)
            return all(map(_is_public, map(ipaddress.IPv4Address, inner)))
    return address in _GLOBAL_6 and not any(address in network for network in _NOT_PUBLIC_6)


def is_private_name(host: str) -> bool:
    """Whether a host is private by its name alone, which is all that is known behind a proxy."""
    address = _literal(host)
    if address is not None:
        return not is_public(address)
    labels = host.split(".")
    return len(labels) == 1 or bool(_PRIVATE_NAMES & {labels[-1], ".".join(labels[-2:])})


def _literal(host):
    """The address that a host is, in any form that systems take; None for a name."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host)) if _NUMBERS.fullmatch(host) else None
    except OSError:
        return None
