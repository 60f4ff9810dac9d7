"""MCP servers over stdio, as their client: https://modelcontextprotocol.io. What they offer, and calls of it.

Two ways of talking. The revisions up to 2025-11-25 begin with a handshake; the one of 2026-07-28 has none, every request says in
its `_meta` what a handshake would have. Servers know one or both: the handshake is tried first, and one that refuses it is talked
to in the other way.

Threads: one per server while it starts, so that nothing waits for them but the first turn, for a moment; beyond that those of its
Program. A session makes one call at a time. A server that has ended starts again with the next call, in that call's thread.
"""

from __future__ import annotations

import json
import threading
import time
from collections import namedtuple

import mm
from mm import log
from mm.cancel import Cancel, Cancelled
from mm.peers.program import Program
from mm.secrecy import without_own
from mm.text import one_line
from mm.wire.framing import Framing, LineFramer, encode_line
from mm.wire.peer import METHOD_NOT_FOUND, Closed, RemoteError, RpcError, TimedOut

# The revisions with a handshake, the newest is asked for; the one without.
REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
STATELESS = "2026-07-28"
CLIENT = {"name": "mm", "version": mm.__version__}
# Seconds: for a start with everything that belongs to it; for the first turn to wait; for a call in all, whatever its progress.
START, FIRST_TURN, TOTAL = 20, 5, 600
# Seconds between two looks at a running call's progress.
LIVE = 0.25
# Pages of a list of tools; starts of one server.
PAGES, STARTS = 20, 3

OFF = "is off after %d failures" % STARTS
NO_START = "cannot start %s: %s"
SLOW_START = "it did not answer within %g s"
BUSY = "it is still starting, try again"
STILL_STARTING = "it is still starting; its tools are there after /new"
ENDED = "the server ended (%s)"
REVISION = "it speaks MCP %s, which mm does not know"
REFUSED = "%s failed: %s"
SILENT = "no word of %s for %g s, it was cancelled"
TOO_LONG = "%s was cancelled after %g s"
ASKS_BACK = "%s asks for more than a tool call can give, which mm does not support"
MANY_PAGES = "it lists more than %d pages of tools, the rest is left out" % PAGES
NO_SUCH_TOOL = 'it has no tool "%s", which mcp.%s.tools names'
CHANGED = "its tools have changed; /new takes them over"
WAITING = "mcp: waiting for %s"

# A tool of a server: its names for the server's part, its description and its input schema as they came.
Offer = namedtuple("Offer", "server name description schema")


class Failure(Exception):
    """Why a server cannot do what was asked; begins with `mcp <name>`."""


class BatchFramer(LineFramer):
    """Lines, and the messages of a batch one by one: the revision 2025-03-26 has arrays of messages."""

    def feed(self, data: bytes) -> list:
        return [message for line in super().feed(data) for message in _messages(line)]


def _messages(line):
    if not line.lstrip().startswith(b"["):
        return [line]
    try:
        batch = json.loads(line)
        return [encode_line(message) for message in batch] if any(isinstance(message, dict) for message in batch) else [line]
    except (ValueError, RecursionError):
        return [line]


LINES = Framing(BatchFramer, encode_line)


class _Patience:
    """How long a call may still take: `idle` seconds since the last word of it, and `total` in all."""

    def __init__(self, token, idle, told, total=TOTAL):
        self.token = token
        self._idle, self._total, self._told = idle, max(total, idle), told
        self._begin = self._heard = time.monotonic()
        self._news = None

    def heard(self, news: str) -> None:
        """On the reader: there is progress."""
        self._heard, self._news = time.monotonic(), news

    def left(self) -> float:
        """For Peer.request(); tells the news too, on the thread that waits."""
        news, self._news = self._news, None
        if news:
            self._told(news)
        now = time.monotonic()
        return min(self._heard + self._idle - now, self._begin + self._total - now, LIVE)

    def why(self, tool: str) -> str:
        """The sentence when the time is over."""
        if time.monotonic() >= self._begin + self._total:
            return TOO_LONG % (tool, self._total)
        return SILENT % (tool, self._idle)


class Server:
    """One configured server. `offers` is None until it has listed its tools; `settled`: its start has come to an end, for
    better or worse. `news()` is called then. A start may take `seconds`."""

    def __init__(self, name: str, entry, cwd: str, environ: dict, news, seconds: float):
        self.name, self.entry, self._seconds = name, entry, seconds
        self.offers, self.settled = None, False
        self._cwd, self._environ, self._news = cwd, dict(environ, **entry.env), news
        self._life = Cancel()
        self._lock = threading.Lock()
        self._program, self._starts = None, 0
        self._running = None  # the program whose end comes as a surprise
        self._meta = {}  # of every request
        self._patience, self._calls = None, 0
        self._changed = False

    def start(self) -> None:
        """Starts it and asks for its tools, on a thread."""
        self.settled = False
        threading.Thread(target=self._start, name="mcp %s start" % self.name, daemon=True).start()

    def renew(self) -> None:
        """Asks again for its tools where they have changed or are not known."""
        if self.settled and (self._changed or self.offers is None):
            self.start()

    def close(self) -> None:
        with self._lock:
            self._life.cancel()
            if self._program is not None:
                self._program.close()

    def call(self, tool: str, arguments: dict, cancel: Cancel, progress) -> dict:
        """The result of tools/call. Starts the server again where it has ended. Raises Failure and Cancelled."""
        if not self.settled:
            raise self._failure(BUSY)
        self._connect(cancel)
        self._running = self._program
        self._calls += 1
        self._patience = patience = _Patience(self._calls, self.entry.timeout, progress)
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": patience.token}}
        try:
            result = self._ask("tools/call", params, cancel, patience.left, lambda number: (
                "notifications/cancelled", {"requestId": number, "reason": "cancelled" if cancel.cancelled else "timeout"}))
        except TimedOut:
            raise self._failure(patience.why(one_line(tool))) from None
        except RemoteError as error:
            raise self._refusal(tool, error) from None
        finally:
            self._patience = None
        if result.get("resultType") == "input_required":
            raise self._failure(ASKS_BACK % one_line(tool))
        return result

    def _start(self):
        listed = False
        try:
            left = _until(self._seconds)
            self._running = None
            self._connect(self._life, left)
            self._changed = False
            self.offers = self._wanted(self._list(left))
            self._running, listed = self._program, True
        except Cancelled:
            pass
        except TimedOut:
            self.say(SLOW_START % self._seconds)
        except RemoteError as error:
            log.line(str(self._refusal("tools/list", error)))
        except Failure as failure:
            log.line(str(failure))
        finally:
            self._changed = self._changed or not listed
            if self.offers is None and self._program is not None:
                self._program.close()
            self.settled = True
            self._news()

    def _connect(self, cancel, left=None):
        """Makes sure that it runs and that both sides have introduced themselves."""
        if self._program is not None and self._program.alive():
            return
        with self._lock:
            self._life.check()
            if self._program is not None:
                self._program.close()
            if self._starts == STARTS:
                raise self._failure(OFF, "")
            self._starts += 1
            try:
                self._program = Program("mcp " + self.name, self.entry.argv, self._cwd, self._environ, _serve, self._notified,
                                        LINES, self._ended)
            except (OSError, ValueError) as error:
                raise self._failure(NO_START % (self.entry.argv[0], getattr(error, "strerror", None) or error)) from None
        shaken = False
        try:
            self._shake(cancel, left or _until(self._seconds))
            shaken = True
        except TimedOut:
            raise self._failure(SLOW_START % self._seconds) from None
        except Cancelled:
            self._starts -= 1  # that was no failure of its
            raise
        finally:
            if not shaken:
                self._program.close()

    def _shake(self, cancel, left):
        self._meta = {}
        try:
            answer = self._ask("initialize", {"protocolVersion": REVISIONS[0], "capabilities": {}, "clientInfo": CLIENT}, cancel, left)
        except RemoteError as refusal:
            self._do_without(refusal, cancel, left)
            return
        revision = answer.get("protocolVersion")
        if revision not in REVISIONS:
            raise self._failure(REVISION % one_line(str(revision)))
        try:
            self._program.peer.notify("notifications/initialized", {})
        except Closed:
            raise self._failure(_why(self._program)) from None

    def _do_without(self, refusal, cancel, left):
        """The way without a handshake, for a server that has refused one; what it offers it says all the same."""
        self._meta = {"io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {},
                      "io.modelcontextprotocol/clientInfo": CLIENT}
        try:
            self._ask("server/discover", {}, cancel, left)
        except RemoteError:
            raise self._refusal("initialize", refusal) from None

    def _list(self, left):
        tools, cursor = [], None
        for _ in range(PAGES):
            try:
                page = self._ask("tools/list", {"cursor": cursor} if cursor else {}, self._life, left)
            except RemoteError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
                return tools  # it offers other things
            listed = page.get("tools")
            tools += [tool for tool in listed if isinstance(tool, dict)] if isinstance(listed, list) else []
            cursor = page.get("nextCursor")
            if not cursor or not isinstance(cursor, str):
                return tools
        self.say(MANY_PAGES)
        return tools

    def _wanted(self, tools):
        """The tools that the configuration names, all where it names none; the first of two with one name."""
        offers = {}
        for tool in tools:
            name, description = tool.get("name"), tool.get("description")
            description = description if isinstance(description, str) else ""
            if isinstance(name, str) and name:
                offers.setdefault(name, Offer(self, name, description, tool.get("inputSchema")))
        if self.entry.tools is None:
            return tuple(offers.values())
        for name in self.entry.tools:
            if name not in offers:
                self.say(NO_SUCH_TOOL % (one_line(name), self.name))
        return tuple(offer for offer in offers.values() if offer.name in self.entry.tools)

    def _ask(self, method, params, cancel, left, cancel_notice=None):
        """One request in the way that this server wants. Raises RemoteError, TimedOut, Cancelled and Failure."""
        if self._meta:
            params = dict(params, _meta=dict(self._meta, **params.get("_meta", {})))
        program = self._program
        try:
            result = program.peer.request(method, params, cancel, cancel_notice, left)
        except Closed:
            self._life.check()
            raise self._failure(_why(program)) from None
        return result if isinstance(result, dict) else {}

    def _notified(self, method, params):
        patience = self._patience
        if method == "notifications/progress" and patience is not None and params.get("progressToken") == patience.token:
            patience.heard(_news(params))
        elif method == "notifications/tools/list_changed" and not self._changed:
            self._changed = True
            if self.offers is not None:
                self.say(CHANGED)

    def _ended(self, program):
        """It is over, and nobody told it to be. Of one that is still starting its start speaks."""
        if program is self._running:
            self.say(_why(program))

    def _refusal(self, what, error):
        return self._failure(REFUSED % (one_line(what), one_line(error.message, 500)))

    def _failure(self, what, colon=":"):
        return Failure("mcp %s%s %s" % (self.name, colon, what))

    def say(self, what: str) -> None:
        """A log line of it."""
        log.line(str(self._failure(what)))


class Servers:
    """The servers of a session, none of them started. They say what is wrong with them in log lines, never by an exception."""

    def __init__(self, config, cwd: str, environ, seconds: float = START):
        environ = without_own(environ)
        self._settled = threading.Event()
        self._servers = [Server(name, entry, cwd, environ, self._settled.set, seconds) for name, entry in config.mcp.items()]
        self._offers = None

    def start(self) -> None:
        """Starts them all, on threads of their own."""
        for server in self._servers:
            server.start()

    def ready(self, cancel: Cancel, seconds: float = FIRST_TURN) -> None:
        """Waits for those that are still starting, `seconds` at most. Raises Cancelled."""
        deadline = time.monotonic() + seconds
        if self._starting():
            log.line(WAITING % ", ".join(server.name for server in self._starting()))
        while self._starting() and time.monotonic() < deadline:
            self._settled.clear()
            if self._starting():
                cancel.wait(self._settled, deadline - time.monotonic())
        for server in self._starting():
            server.say(STILL_STARTING)

    def _starting(self):
        return [server for server in self._servers if not server.settled]

    def tools(self) -> tuple:
        """What they offer (Offer), in the order of the configuration: the same from the first time on, until renew()."""
        if self._offers is None:
            self._offers = tuple(offer for server in self._servers for offer in server.offers or ())
        return self._offers

    def renew(self) -> None:
        """The conversation begins anew: so may tools(), with what has changed and who is late. ready() waits for the answers."""
        self._offers = None
        for server in self._servers:
            server.renew()

    def close(self) -> None:
        for server in self._servers:
            server.close()


def _until(seconds):
    """For Peer.request(): the seconds left of so many."""
    deadline = time.monotonic() + seconds
    return lambda: deadline - time.monotonic()


def _why(program):
    """The sentence for a program that is over."""
    ending = program.ending()
    return ENDED % ending.how + (": " + ending.said if ending.said else "")


def _serve(request):
    """What servers may ask of a client that has no capabilities."""
    if request.method != "ping":
        raise RpcError(METHOD_NOT_FOUND, "Method not found")
    request.answer({})


def _news(params):
    """A progress notification in a line: `3/10 reading`."""
    numbers = [str(params[name]) for name in ("progress", "total") if isinstance(params.get(name), (int, float))]
    message = params.get("message")
    return " ".join(filter(None, ["/".join(numbers), one_line(message) if isinstance(message, str) else ""]))
