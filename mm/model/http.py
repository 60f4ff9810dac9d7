"""One HTTP exchange with a model server, which another thread can end at any moment
(mm.wire.cancellable_socket).

Proxies and redirects are not followed: a proxy from the environment would be asked for 127.0.0.1 too, and a
redirected POST becomes a GET. The key goes to the one host it was set for.
"""

from __future__ import annotations

import errno
import functools
import re
import socket
import time
from collections import namedtuple

from mm import __version__, urls
from mm.cancel import Cancel, Deadline
from mm.errors import UserError
from mm.model import refusal
from mm.wire import http1
from mm.wire.cancellable_socket import CONNECT_SECONDS, CancellableSocket, ConnectTimeout

# `url`: without a slash at its end; `headers`: a dict or None; `timeout`: seconds without a byte, 0 for none;
# `temperature` and `max_tokens`: None unless set; `extra`: a dict that is merged into the request, or None;
# `product`: the key of a known_servers.Product, None if it is not known.
Server = namedtuple("Server", "url model api_key headers timeout temperature max_tokens extra product")
Server.__new__.__defaults__ = (None, None, None, 0, None, None, None, None)

_TICK_SECONDS = 1

# A refusal's body has this long to come; without it the status is all there is to show.
REFUSAL_SECONDS = 10

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile("[\t\x20-\x7e\xa0-\xff]*")
_USER_OR_QUERY = re.compile(r"[^/?#]*@|[?#].*", re.DOTALL)

NOT_A_URL = "%s is not the URL of a model server; one looks like http://127.0.0.1:8080/v1"
HOLDS_A_USER = "the URL of %s holds a user name: set it in model.apiKey or model.headers"
NOT_A_HEADER_NAME = "model.headers: %s is not a header name"
NOT_A_HEADER_VALUE = "%s holds a character that cannot be in a header (a line break?)"
ANSWERS_AT = "%s answers at %s: it is asked there from now on"


class ModelError(UserError):
    """The model server did not answer as it should.

    `kind`: one of failures.RULES, or "url" or "header" for a configuration that cannot be used. `status`: the
    HTTP status, if there was an answer. `numbers`: those of the failures.Failure ("prompt", "window",
    "model", "field"), as far as the server gave them; `words`: its own. `retry_after`: the seconds after
    which it wants to be asked again, None if it did not say.
    """

    def __init__(self, message: str, kind: str, status: int | None = None, exit_code: int = 1,
                 numbers: dict | None = None, words: str = "", retry_after: float | None = None):
        super().__init__(message, exit_code)
        self.kind = kind
        self.status = status
        self.numbers = numbers or {}
        self.words = words
        self.retry_after = retry_after


def failure(server: Server, kind: str, words: str = "", status: int | None = None, **more) -> ModelError:
    """The ModelError of a kind, with its line."""
    from mm.model import failures

    return error_of(server, failures.Failure(kind, {}, words, status), **more)


def error_of(server: Server, found: failures.Failure, retry_after: float | None = None, **more) -> ModelError:
    """The ModelError of a Failure, with its line."""
    from mm.model import failures

    secrets = secrets_of(server)
    text = failures.line(found, shown(server.url), failures.product_of(server, found.words), secrets,
                         has_key=bool(server.api_key), **more)
    return ModelError(text, found.kind, found.status, numbers=found.numbers,
                      words=refusal.one_line(found.words, secrets), retry_after=retry_after)


def shown(url: str) -> str:
    """The address as messages name it: without a user, a password, a query."""
    return refusal.one_line(_USER_OR_QUERY.sub("", url).rstrip("/"), limit=200)


def secrets_of(server: Server) -> list[str]:
    """What must not appear in any text; short values are words, not secrets."""
    from urllib.parse import quote

    from mm.secrecy import SHORTEST_SECRET

    values = [server.api_key or "", *(str(value) for value in (server.headers or {}).values())]
    values += [value.rpartition(" ")[2] for value in values]  # the part of "Bearer abc" that a server quotes
    values += [quote(value, safe="") for value in values]
    return sorted({value for value in values if len(value) >= SHORTEST_SECRET}, key=len, reverse=True)


class Exchange:
    """An answer whose head has come. Read it until b"", close it in any case; closing drops the
    connection.
    """

    def __init__(self, response: http1.Response, receiver: _Receiver, sock: CancellableSocket, registration,
                 cancel: Cancel, server: Server):
        self.status = response.status
        self.cut = None  # the ModelError that says why the body ended, if it did not end well
        self.header = response.header
        self._response, self._receiver, self._socket = response, receiver, sock
        self._registration = registration
        self._cancel = cancel
        self._server = server

    def read(self) -> bytes:
        """What has come since, at least a byte; b"" where the body ends, which `cut` may explain.

        Raises ModelError if a time-out is set and over, and Cancelled.
        """
        try:
            data = self._response.read()
        except OSError as error:
            self._cancel.check()
            self.cut = _explained(error, self._server, self._socket, in_answer=True)
            if self.cut.kind == "timeout":
                raise self.cut from None
            return b""
        self._cancel.check()  # the kernel may still hold bytes from before the shutdown
        return data

    def stop_ticking(self) -> None:
        """The answer has begun: its pauses are not reported."""
        self._receiver.tick = None

    def hurry(self, seconds: float) -> None:
        """From here on no byte within this time is a time-out too."""
        self._socket.set_timeout(min(seconds, self._socket.seconds or seconds))

    def read_text(self, limit: int, seconds: float) -> str:
        """A short body that should be there at once: what came of it within the time and the limit."""
        end = time.monotonic() + seconds
        body = data = b"."
        try:
            while data and len(body) <= limit and time.monotonic() < end:
                self._socket.set_timeout(max(0.01, end - time.monotonic()))
                data = self.read()
                body += data
        except ModelError:
            pass  # its beginning is what counts
        return body[1:limit + 1].decode("utf-8", "replace")

    def close(self) -> None:
        self._registration.forget()
        self._socket.close()

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *_) -> None:
        self.close()


class _Receiver:
    """Receives from a socket; calls `tick()`, if there is one, every second, also while only comments
    come.
    """

    def __init__(self, sock, tick):
        self._sock, self.tick = sock, tick
        self._next = time.monotonic() + _TICK_SECONDS

    def recv(self, size: int) -> bytes:
        if not self.tick:
            return self._sock.recv(size)
        limit, data = self._sock.gettimeout(), None
        silent = Deadline(limit or float("inf"))
        try:
            while data is None:
                self._sock.settimeout(max(0.001, min(self._next - time.monotonic(), silent.left())))
                try:
                    data = self._sock.recv(size)
                except socket.timeout:
                    if silent.left() <= 0:
                        raise
                if time.monotonic() >= self._next:
                    self._next = time.monotonic() + _TICK_SECONDS
                    self.tick()
            return data
        finally:
            self._sock.settimeout(limit)


def send(server: Server, path: str, body: bytes | None, cancel: Cancel,
         timeout: float | None = None, tick=None) -> Exchange:
    """Sends one request, a GET without a body, and waits for the head of the answer, whatever its status is.

    `tick()` is called every second while nothing comes, until the Exchange is told to stop that. Raises
    ModelError if there is no answer, or a redirect, and Cancelled.
    """
    cancel.check()
    parts = _checked(server.url)
    target = _target(urls.split(server.url.rstrip("/") + path))
    data = http1.request("GET" if body is None else "POST", _host_header(parts), target, _headers(server),
                         body)
    sock = CancellableSocket(cancel, server.timeout if timeout is None else timeout)
    registration = cancel.on_cancel(sock.shut)
    try:
        receiver = _Receiver(_sent(sock, parts, data), tick)
        response = http1.Response(receiver)
    except BaseException as error:
        registration.forget()
        sock.close()
        if not isinstance(error, (OSError, http1.NotHttp)):
            raise
        cancel.check()
        raise _explained(error, server, sock, in_answer=False) from None
    exchange = Exchange(response, receiver, sock, registration, cancel, server)
    if cancel.cancelled or 300 <= exchange.status < 400:
        exchange.close()
        cancel.check()
        raise _redirected(exchange, server)
    return exchange


def _sent(sock: CancellableSocket, parts, data: bytes):
    """The connected socket on which the request has been sent."""
    secure = parts.scheme == "https"
    connected = sock.connect(parts.host, parts.port or (443 if secure else 80))
    if secure:
        connected = sock.secure(connected, parts.host)
    try:
        # Head and body in one piece: the server wakes once. What waits below TLS says nothing about what can
        # be sent.
        connected.sendall(data) if secure else sock.send(data)
    except (BrokenPipeError, ConnectionResetError, ConnectionAbortedError):
        pass  # the server has refused before it read the whole body, and its reason is there to be read
    return connected


def _host_header(parts) -> str:
    host = "[%s]" % parts.host if ":" in parts.host else parts.host
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    return "%s:%d" % (host, parts.port) if parts.port else host


def _target(parts) -> str:
    return (parts.path or "/") + ("?" + parts.query if parts.query else "")


def _checked(url: str):
    """The parts of a URL that can be asked. Raises ModelError."""
    try:
        parts = urls.split(url)
        usable = (parts.scheme in ("http", "https") and parts.host and parts.port != 0 and url.isprintable()
                  and " " not in url and parts.path.isascii() and parts.query.isascii())
        _host_header(parts) if usable else None
    except ValueError:
        usable = False
    if not usable:
        raise ModelError(NOT_A_URL % shown(url), "url", exit_code=2)
    if "@" in parts.address:
        raise ModelError(HOLDS_A_USER % shown(url), "url", exit_code=2)
    return parts


def _headers(server: Server) -> dict:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json",
               "User-Agent": "mm/" + __version__}
    if server.api_key:
        headers["Authorization"] = "Bearer " + server.api_key
    own = server.headers or {}
    for name, value in own.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ModelError(NOT_A_HEADER_NAME % refusal.one_line(repr(name), limit=80), "header",
                             exit_code=2)
        headers = {known: kept for known, kept in headers.items() if known.lower() != name.lower()}
        headers[name] = str(value)
    for name, value in headers.items():
        if not _HEADER_VALUE.fullmatch(value):
            key = "model.apiKey" if name == "Authorization" and name not in own else "model.headers." + name
            raise ModelError(NOT_A_HEADER_VALUE % key, "header", exit_code=2)
    return headers


def _redirected(exchange: Exchange, server: Server) -> ModelError:
    location = exchange.header("Location")
    from urllib.parse import urljoin

    target = shown(urljoin(server.url, location)) if location else "another URL"
    return failure(server, "redirect", target, exchange.status)


def _explained(error: Exception, server: Server, sock: CancellableSocket, in_answer: bool) -> ModelError:
    """The ModelError for what a socket call raised."""
    number = getattr(error, "errno", None)
    if isinstance(error, ConnectionRefusedError):
        return failure(server, "refused")
    if isinstance(error, socket.gaierror):
        return failure(server, "name", urls.split(server.url).host)
    if isinstance(error, ConnectTimeout):
        return failure(server, "unreachable", f"no answer in {CONNECT_SECONDS} s")
    if type(error).__module__ == "ssl" and not in_answer:
        words = str(getattr(error, "verify_message", "") or error.reason or "")
        hint = " (does it speak http?)" if "WRONG_VERSION" in words or "EOF" in words else ""
        return failure(server, "tls", words + hint)
    if isinstance(error, socket.timeout) and number != errno.ETIMEDOUT:
        return failure(server, "timeout", f"{sock.seconds:g}")
    if isinstance(error, ConnectionError) or isinstance(error, OSError) and in_answer:
        where = "in the middle of its answer" if in_answer else "without an answer"
        return failure(server, "dropped", where=where)
    if isinstance(error, OSError):
        return failure(server, "unreachable", (error.strerror or str(error) or type(error).__name__).lower())
    return failure(server, "protocol")
