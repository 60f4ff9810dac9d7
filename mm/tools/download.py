"""What a URL leads to: the addresses are checked, redirects followed, limits kept.

Each hop looks its host's addresses up once, checks them all, and connects to those very addresses; a name
server that answers differently a moment later is not asked again. Where the environment names a proxy, that
looks the name up, and the name is all that can be checked.

Everything waits on one Cancel of the download's own, which the turn's Cancel cancels and so does the clock:
whatever it waits for then ends in the same way (mm.wire.cancellable_socket), and which of the two it was is
asked last. Looking up a name cannot be interrupted, so a thread of its own does it, which nobody waits for
any longer then.
"""

from __future__ import annotations

import base64
import socket
import threading
import urllib.parse
import urllib.request
import zlib
from collections import namedtuple

from mm import __version__
from mm.cancel import Cancel, Cancelled
from mm.wire import http1
from mm.wire.cancellable_socket import CONNECT_SECONDS, CancellableSocket, ConnectTimeout, look_up
from mm.text import one_line
from mm.tools import addresses
from mm.tools.addresses import shown
from mm.tools.tool import ToolError

NAME = "fetch_content"

# Seconds without a byte, seconds in all, and bytes of a body, as they come and decompressed.
Limits = namedtuple("Limits", "silence total size")
LIMITS = Limits(CONNECT_SECONDS, 60, 5 * 1024 * 1024)
REDIRECTS = 5

# What was found: the URL that answered in the end, its status, `header(name)`, the body decompressed, and
# whether it is whole.
Answer = namedtuple("Answer", "url status header body whole")

# `resolve` is called as socket.getaddrinfo is, `environ` names the proxies, `allow_private` turns the check
# off.
Way = namedtuple("Way", "resolve environ allow_private limits")

_Proxy = namedtuple("_Proxy", "host port authorization")

_REDIRECTING = (301, 302, 303, 307, 308)
_HEADERS = {
    "User-Agent": f"mm/{__version__}",
    "Accept": "text/html, text/markdown;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}

PRIVATE = (f"[{NAME}: %s is a private address (%s). "
           "Use bash with curl for a local server, or set fetch.allowPrivate.]")
TOO_MANY = f"[{NAME}: %s redirects more than {REDIRECTS} times]"
NOT_SECURE = f"[{NAME}: %s redirects from https to http: %s]"
TOO_SLOW = f"[{NAME}: %s took longer than %g s]"


def get(url: str, way: Way, cancel: Cancel, unwanted) -> Answer:
    """The answer to a GET, any status but a redirect. Raises ToolError and Cancelled.

    Its body is left out if `unwanted(header)`.
    """
    stop = Cancel()
    clock = threading.Timer(way.limits.total, stop.cancel)
    clock.daemon = True
    clock.start()
    try:
        with cancel.on_cancel(stop.cancel):
            return _follow(place(url), way, stop, unwanted)
    except Cancelled:
        cancel.check()
        raise ToolError(TOO_SLOW % (shown(url), way.limits.total)) from None
    finally:
        clock.cancel()


def place(url: str) -> addresses.Place:
    """The URL in parts. Raises ToolError."""
    try:
        return addresses.parse(url)
    except ValueError as problem:
        raise ToolError(f"[{NAME}: {shown(url) or 'the empty text'} {problem}]") from None


def _follow(first, way, stop, unwanted):
    here = first
    for _ in range(REDIRECTS + 1):
        answer, location = _hop(here, way, stop, unwanted)
        if answer is not None:
            return answer
        there = place(_joined(here.url, location))
        if here.tls and not there.tls:
            raise ToolError(NOT_SECURE % (shown(here.url), shown(there.url)))
        here = there
    raise ToolError(TOO_MANY % shown(first.url))


def _joined(base, location):
    try:
        return urllib.parse.urljoin(base, location)
    except ValueError:
        return location  # place() says what is wrong with it


def _hop(here, way, stop, unwanted):
    """One request: (Answer, None), or (None, where it redirects to)."""
    proxy = _proxy(here, way.environ)
    found = _checked(here, proxy, way, stop)
    sock = CancellableSocket(stop, way.limits.silence)
    response = None
    with stop.on_cancel(sock.shut):
        try:
            response = _ask(here, proxy, found, sock)
            stop.check()
            location = response.header("Location")
            if response.status in _REDIRECTING and location:
                return None, _in_ascii(location)
            body, whole = b"", False
            if not unwanted(response.header):
                body, whole = _body(response, way.limits.size, stop)
            return Answer(here.url, response.status, response.header, body, whole), None
        except (OSError, http1.NotHttp, zlib.error) as error:
            stop.check()
            why = _explained(error, here, proxy, way.limits.silence, response)
            raise ToolError(f"[{NAME}: {why}]") from None
        finally:
            sock.close()


def _in_ascii(location):
    """A header is read as Latin-1; servers that do not encode a Location write UTF-8."""
    try:
        return location.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return location


# Where to


def _proxy(here, environ):
    """The proxy that the environment names for the URL, or None."""
    scheme = "https" if here.tls else "http"
    named, around = (environ.get(name + "_proxy") or environ.get((name + "_proxy").upper())
                     for name in (scheme, "no"))
    address = f"{here.host}:{here.port}"
    if not named or around and urllib.request.proxy_bypass_environment(address, {"no": around}):
        return None
    try:
        parts = urllib.parse.urlsplit(named if "://" in named else "http://" + named)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme != "http":
        raise ToolError(f"[{NAME}: the proxy in {scheme}_proxy is not of the form http://host:port]")
    user, password = map(urllib.parse.unquote, (parts.username or "", parts.password or ""))
    login = f"{user}:{password}" if user else ""
    return _Proxy(host, port or 80, "Basic " + base64.b64encode(login.encode()).decode() if login else "")


def _checked(here, proxy, way, stop):
    """The addresses to connect to, all of them allowed. Raises ToolError."""
    if proxy:
        if not way.allow_private and addresses.is_private_name(here.host):
            raise ToolError(PRIVATE % (here.host, "by its name"))
        return [proxy.host]  # whoever set it trusts it, whatever its address
    found = _look_up(here, way.resolve, stop)
    for address in () if way.allow_private else found:
        if not addresses.is_public(address):
            raise ToolError(PRIVATE % (here.host, address))
    return found


def _look_up(here, resolve, stop):
    try:
        answers = [entry[4][0] for entry in look_up(here.host, here.port, stop, resolve)]
    except OSError:
        answers = []
    if not answers:
        raise ToolError(f"[{NAME}: cannot resolve {here.host}]")
    return answers


def _ask(here, proxy, found, sock):
    """Asks the host that was meant at one of its addresses; returns the http1.Response."""
    connected = _connect(found, proxy.port if proxy else here.port, sock)
    host = f"[{here.host}]" if ":" in here.host else here.host
    authority = host if here.port == (443 if here.tls else 80) else f"{host}:{here.port}"
    headers, target = dict(_HEADERS), here.target
    authorization = {"Proxy-Authorization": proxy.authorization} if proxy and proxy.authorization else {}
    if here.tls:
        if proxy:
            _tunnel(connected, f"{host}:{here.port}", authorization)
        connected = sock.secure(connected, here.host)
    elif proxy:
        headers.update(authorization)
        target = f"http://{authority}{target}"
    connected.sendall(http1.request("GET", authority, target, headers, None))
    return http1.Response(connected)


def _connect(found, port, sock):
    for left, address in enumerate(found, 1 - len(found)):
        try:
            return sock.connect(address, port)
        except OSError:
            if left == 0:
                raise


def _tunnel(connected, authority, headers):
    connected.sendall(http1.request("CONNECT", authority, authority, headers, None))
    status = http1.Response(connected).status
    if status != 200:
        raise OSError(f"it refuses a tunnel: HTTP {status}")


# What comes


def _body(response, limit, stop):
    """The body, decompressed, up to the limit; and whether that is all of it."""
    decoder = _decoder(response.header("Content-Encoding"))
    parts, size, raw = [], 0, 0
    while True:
        data = response.read()
        stop.check()  # after a shutdown the end of the stream is not that of the body
        if not data:
            break
        raw += len(data)
        part = decoder.feed(data, limit - size + 1)
        parts.append(part)
        size += len(part)
        if size > limit or raw > limit:
            return b"".join(parts)[:limit], False
    if not decoder.complete:
        raise http1.Cut("the compressed body is not complete")
    return b"".join(parts), True


class _Plain:
    complete = True

    def feed(self, data, most):
        return data[:most]


class _Compressed:
    """gzip, in one part or several, zlib, or the bare deflate that some servers send in its place."""

    def __init__(self):
        self._inner, self._begun = zlib.decompressobj(47), False
        self.complete = True

    def feed(self, data, most):
        """At most `most` bytes; when there would be more, the rest is lost: the caller stops there."""
        out = []
        while data and most > 0:
            if self._inner.eof:
                if not data.startswith(b"\x1f"):
                    break  # padding, which everybody ignores
                self._inner = zlib.decompressobj(31)
            try:
                part = self._inner.decompress(data, most)
            except zlib.error:
                if self._begun:
                    raise
                self._inner = zlib.decompressobj(-15)
                part = self._inner.decompress(data, most)
            self._begun = True
            out.append(part)
            most -= len(part)
            data = self._inner.unused_data
        self.complete = self._inner.eof
        return b"".join(out)


def _decoder(encoding):
    names = [name for name in encoding.lower().replace(" ", "").split(",") if name not in ("", "identity")]
    if not names:
        return _Plain()
    if len(names) > 1 or names[0] not in ("gzip", "x-gzip", "deflate"):
        raise ToolError(f"[{NAME}: the body is encoded in {one_line(encoding, 40)}, which was not asked for]")
    return _Compressed()


def _explained(error, here, proxy, silence, response):
    """The line for what surfaced in a socket call, with the response if there was one."""
    host = f"the proxy {proxy.host}" if proxy else here.host
    if isinstance(error, socket.gaierror):
        return f"cannot resolve {host}"
    if isinstance(error, ConnectionRefusedError):
        return f"{host} refuses connections on port {proxy.port if proxy else here.port}"
    if isinstance(error, ConnectTimeout):
        return f"{host} does not answer ({CONNECT_SECONDS} s)"
    if isinstance(error, socket.timeout):
        return f"no byte from {host} for {silence:g} s"
    if type(error).__module__ == "ssl":
        reason = getattr(error, "verify_message", "") or error.reason or "no reason given"
        return f"the TLS connection to {here.host} failed: {one_line(str(reason))}"
    if isinstance(error, zlib.error):
        return f"{shown(here.url)}: the compressed body is damaged"
    if isinstance(error, ConnectionError):
        when = "in the middle of its answer" if response else "without an answer"
        return f"{host} closed the connection {when}"
    if isinstance(error, OSError):
        return f"{host}: {one_line(error.strerror or str(error) or type(error).__name__)}"
    return f"{host} does not answer in HTTP"
