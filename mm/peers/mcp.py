"""An MCP server over stdio, as its client: https://modelcontextprotocol.io. What it offers, and calls of it.

There are two ways of talking. The revisions up to 2025-11-25 begin with a handshake; the one of 2026-07-28
has none, and every request says in its `_meta` what a handshake would have said. Servers know one or both:
the handshake is tried first, and a server that refuses it is talked to in the other way.

Threads: one while the server starts or is asked for its tools again, so that only the first turn waits for
that, and only for a moment; beyond that those of its Program. Any number of calls may run at a time, of
several sessions.
"""

from __future__ import annotations

import json
import threading
import time
from collections import namedtuple

import mm
from mm import log
from mm.cancel import Cancel, Cancelled, Deadline
from mm.peers.program import Program, shown
from mm.text import one_line
from mm.wire.framing import Framing, LineFramer, encode_line
from mm.wire.messages import METHOD_NOT_FOUND, RemoteError, RpcError
from mm.wire.peer import Closed, TimedOut

# The revisions with a handshake, the newest is asked for; the one without.
REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
STATELESS = "2026-07-28"
CLIENT = {"name": "mm", "version": mm.__version__}

# What a server is doing. It was never started; it starts; it takes calls; it takes calls while it is asked
# for its tools again; it has ended or did not start, and starts again with the next call; it has failed too
# often; nobody uses it any more.
NEW, STARTING, READY, LISTING = "new", "starting", "ready", "listing"
ENDED, OFF, CLOSED = "ended", "off", "closed"

# Seconds: for a start with everything that belongs to it; for a call in all, whatever its progress; between
# two looks at a running call's progress; after which a start has worked, and earlier failures no longer
# count.
START, TOTAL, LIVE, STEADY = 20, 600, 0.25, 60
# Pages of a list of tools, and tools in all; failures in a row.
PAGES, TOOLS, FAILURES = 20, 1000, 3

OFF_AFTER = "is off after %d failures" % FAILURES
NO_START = "cannot start %s: %s"
SLOW_START = "it did not answer within %g s"
STILL_STARTING = "it is still starting; its tools are there after /new"
SERVER_ENDED = "the server ended (%s)"
REVISION = "it speaks MCP %s, which mm does not know"
REFUSED = "%s failed: %s"
SILENT = "no word of %s for %g s, it was cancelled"
TOO_LONG = "%s was cancelled after %g s"
ASKS_BACK = "%s asks for more than a tool call can give, which mm does not support"
MANY_TOOLS = "it lists more than %d pages or %d tools, the rest is left out" % (PAGES, TOOLS)
SAME_PAGE = "it names a page of its tools a second time: its list ends there"
NO_SUCH_TOOL = 'it has no tool "%s", which mcp.%s.tools names'
CHANGED = "its tools have changed; /new takes them over"

# A tool of a server: its name for the server, its description and its input schema as they came.
Offer = namedtuple("Offer", "server name description schema")


class McpFailure(Exception):
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
        is_batch = any(isinstance(message, dict) for message in batch)
        return [encode_line(message) for message in batch] if is_batch else [line]
    except (ValueError, RecursionError):
        return [line]


LINES = Framing(BatchFramer, encode_line)


class CallLimit:
    """How long a call may still take: `idle` seconds since the last word of it, and `total` in all."""

    def __init__(self, idle, progress, total=TOTAL, clock=time.monotonic):
        self._idle, self._total, self._progress, self._clock = idle, max(total, idle), progress, clock
        self._begin = self._heard = clock()
        self._news = None

    def heard(self, news: str) -> None:
        """On the reader: there is progress."""
        self._heard, self._news = self._clock(), news

    def left(self) -> float:
        """For Peer.request(); passes the news on, too, on the thread that waits."""
        news, self._news = self._news, None
        if news:
            self._progress(news)
        now = self._clock()
        return min(self._heard + self._idle - now, self._begin + self._total - now, LIVE)

    def why(self, tool: str) -> str:
        """The sentence when the time is over."""
        if self._clock() >= self._begin + self._total:
            return TOO_LONG % (tool, self._total)
        return SILENT % (tool, self._idle)


class McpServer:
    """One configured server (`entry` is an entries.McpServer). `offers` is None until it has listed its
    tools; `problem` is why it does not run, or None. A start may take `seconds`; `clock` decides whether a
    start has worked."""

    def __init__(self, name: str, entry, cwd: str, environ: dict, seconds: float = START,
                 clock=time.monotonic):
        self.name, self.entry = name, entry
        self.state, self.offers, self.problem = NEW, None, None
        self._cwd, self._environ, self._seconds, self._clock = cwd, dict(environ, **entry.env), seconds, clock
        self._life = Cancel()
        self._lock = threading.Lock()
        # whether its thread runs, and the events of those who wait for the end of it
        self._busy, self._waiting = False, []
        self._program, self._failures, self._started_at = None, 0, clock()
        self._meta = {}  # of every request
        self._limits, self._calls = {}, 0  # the CallLimits of running calls, by their progress tokens
        self._changed = False

    # Its life

    def begin(self) -> None:
        """A conversation begins: starts a server that does not run, asks again for changed tools."""
        if self.state in (NEW, ENDED, OFF):
            self._failures = 0
            self._start()
        elif self.state == READY and self._changed:
            self._start()

    def close(self) -> None:
        """Ends it; returns at once."""
        with self._lock:
            self.state = CLOSED
            self._life.cancel()
        if self._program is not None:
            self._program.close()

    def settle(self, cancel: Cancel, seconds: float | None = None) -> None:
        """Waits until it neither starts nor is asked for its tools, at most `seconds`. Raises Cancelled."""
        done = threading.Event()  # one for each who waits, because a cancel sets it
        with self._lock:
            if not self._busy:
                return
            self._waiting.append(done)
        cancel.wait(done, seconds)

    def wait_for_end(self, seconds: float) -> None:
        """Waits until the program of the closed server has ended, at most `seconds`."""
        if self._program is not None:
            self._program.wait(seconds)

    def _start(self) -> None:
        """On a thread: starts it unless it runs, and asks for its tools."""
        with self._lock:
            if self._busy or self.state == CLOSED:
                return
            self.state, self._busy = LISTING if self.state == READY else STARTING, True
        try:
            threading.Thread(target=self._gather_tools, name="mcp %s start" % self.name, daemon=True).start()
        except RuntimeError as error:
            self._settled(self._failure(str(error)))

    def _gather_tools(self) -> None:
        limit, problem = Deadline(self._seconds), self._failure("it was closed")
        try:
            if self.state == STARTING:
                self._introduce(self._launch(), limit)
            self._changed = False
            self.offers = self._wanted(self._list(limit))
            problem = None
        except Cancelled:
            pass
        except TimedOut:
            problem = self._failure(SLOW_START % self._seconds)
        except RemoteError as error:
            problem = self._refusal("tools/list", error)
        except McpFailure as failure:
            problem = failure
        finally:
            self._settled(problem)

    def _settled(self, problem) -> None:
        """A start, or the question for its tools, is over. One that still runs keeps the tools it had."""
        with self._lock:
            self._changed = self._changed or problem is not None
            if self.state == STARTING and problem or self.state == LISTING and not self._program.alive():
                self._fails(problem or self._failure(_why(self._program)))
            elif self.state in (STARTING, LISTING):
                self.state, self.problem = READY, None
                if problem:
                    log.line(str(problem))
            if self.state != READY and self._program is not None:
                self._program.close()
            self._busy, waiting, self._waiting = False, self._waiting, []
        for done in waiting:
            done.set()

    def _fails(self, problem: McpFailure) -> None:
        """It has ended, or could not start. After a minute of work, earlier failures no longer count.

        The caller holds the lock."""
        log.line(str(problem))
        self._failures = 1 if self._clock() - self._started_at >= STEADY else self._failures + 1
        self.state, self.problem = OFF if self._failures >= FAILURES else ENDED, problem

    def _ended(self, program) -> None:
        """It is over, and nobody asked for that. While it starts, the start reports it."""
        problem = self._failure(_why(program))
        with self._lock:
            if program is self._program and self.state in (READY, LISTING):
                self._fails(problem)
        program.close()

    def _launch(self) -> Program:
        with self._lock:
            self._life.check()
            self._started_at = self._clock()
            try:
                self._program = Program("mcp " + self.name, self.entry.argv, self._cwd, self._environ, _serve,
                                        self._notified, LINES, self._ended)
            except (OSError, ValueError, RuntimeError) as error:
                reason = getattr(error, "strerror", None) or error
                raise self._failure(NO_START % (self.entry.argv[0], reason)) from None
            return self._program

    def _introduce(self, program, limit) -> None:
        """The handshake, or, with a server that refuses it, the way without."""
        self._meta = {}
        params = {"protocolVersion": REVISIONS[0], "capabilities": {}, "clientInfo": CLIENT}
        try:
            revision = self._ask(program, "initialize", params, self._life, limit).get("protocolVersion")
        except RemoteError as refusal:
            self._meta = {"io.modelcontextprotocol/protocolVersion": STATELESS,
                          "io.modelcontextprotocol/clientCapabilities": {},
                          "io.modelcontextprotocol/clientInfo": CLIENT}
            try:
                self._ask(program, "server/discover", {}, self._life, limit)
            except RemoteError:
                raise self._refusal("initialize", refusal) from None
            return
        if revision not in REVISIONS:
            raise self._failure(REVISION % shown(revision))
        program.peer.post("notifications/initialized", {})

    # Its tools

    def _list(self, limit) -> list:
        """All that it lists, as it came, page by page."""
        tools, cursors = [], [None]
        while True:
            params = {"cursor": cursors[-1]} if cursors[-1] else {}
            try:
                page = self._ask(self._program, "tools/list", params, self._life, limit)
            except RemoteError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
                return tools  # it offers other things
            listed = page.get("tools")
            tools += [tool for tool in listed if isinstance(tool, dict)] if isinstance(listed, list) else []
            cursor = page.get("nextCursor")
            if not cursor or not isinstance(cursor, str):
                break
            if cursor in cursors:
                self.say(SAME_PAGE)
                break
            cursors.append(cursor)
            if len(cursors) > PAGES or len(tools) > TOOLS:
                break
        if len(cursors) > PAGES or len(tools) > TOOLS:
            self.say(MANY_TOOLS)
        return tools[:TOOLS]

    def _wanted(self, tools) -> tuple:
        """The tools that the configuration names, all if it names none; the first of two with one name."""
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

    # A call

    def call(self, tool: str, arguments: dict, cancel: Cancel, progress) -> dict:
        """The result of tools/call. Starts a server that has ended. Raises McpFailure and Cancelled."""
        program, name = self._running(cancel), one_line(tool)
        limit = CallLimit(self.entry.timeout, progress)
        with self._lock:
            self._calls += 1
            token = self._calls
            self._limits[token] = limit
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": token}}

        def cancelled(number):
            reason = "cancelled" if cancel.cancelled else "timeout"
            return "notifications/cancelled", {"requestId": number, "reason": reason}

        try:
            result = self._ask(program, "tools/call", params, cancel, limit, cancelled)
        except TimedOut:
            raise self._failure(limit.why(name)) from None
        except RemoteError as error:
            raise self._refusal(tool, error) from None
        finally:
            del self._limits[token]
        if result.get("resultType") == "input_required":
            raise self._failure(ASKS_BACK % name)
        return result

    def _running(self, cancel) -> Program:
        """The program, started if need be. The start goes on when the call that waits for it is cancelled."""
        if self.state == ENDED:
            self._start()
        if self.state == STARTING:
            self.settle(cancel)
        self._life.check()
        if self.state == OFF:
            raise self._failure(OFF_AFTER, "")
        if self.state not in (READY, LISTING):
            raise self.problem
        return self._program

    def _ask(self, program, method, params, cancel, limit, cancel_notice=None) -> dict:
        """One request in the server's own way. Raises RemoteError, TimedOut, Cancelled and McpFailure."""
        if self._meta:
            params = dict(params, _meta=dict(self._meta, **params.get("_meta", {})))
        try:
            result = program.peer.request(method, params, cancel, cancel_notice, limit)
        except Closed:
            self._life.check()
            self._ended(program)
            raise self._failure(_why(program)) from None
        return result if isinstance(result, dict) else {}

    def _notified(self, method, params) -> None:
        if method == "notifications/progress":
            token = params.get("progressToken")
            limit = self._limits.get(token) if isinstance(token, int) else None
            if limit is not None:
                limit.heard(_news(params))
        elif method == "notifications/tools/list_changed" and not self._changed:
            self._changed = True
            if self.offers is not None:
                self.say(CHANGED)

    # What it says of itself

    def _refusal(self, what, error) -> McpFailure:
        return self._failure(REFUSED % (one_line(what), one_line(error.message, 500)))

    def _failure(self, what, colon=":") -> McpFailure:
        return McpFailure("mcp %s%s %s" % (self.name, colon, what))

    def say(self, what: str) -> None:
        """A log line about it."""
        log.line(str(self._failure(what)))


def _why(program) -> str:
    """The sentence for a program that is over."""
    ending = program.ending()
    return SERVER_ENDED % ending.how + (": " + ending.said if ending.said else "")


def _serve(request) -> None:
    """What servers may ask of a client that has no capabilities."""
    if request.method != "ping":
        raise RpcError(METHOD_NOT_FOUND, "Method not found")
    request.answer({})


def _news(params) -> str:
    """A progress notification in a line: `3/10 reading`."""
    numbers = [shown(params[name]) for name in ("progress", "total")
               if isinstance(params.get(name), (int, float))]
    message = params.get("message")
    return " ".join(filter(None, ["/".join(numbers), one_line(message) if isinstance(message, str) else ""]))
