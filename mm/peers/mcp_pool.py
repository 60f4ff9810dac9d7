"""The MCP servers of this process. Sessions of one folder with the same configuration share them; the last
session to leave ends them.

    McpPool.join(entries, cwd, environ)     a session's place among those that use the same servers
    McpServers                              the servers as one session sees them, with its own list of tools
"""

from __future__ import annotations

import threading

from mm import log
from mm.cancel import Cancel, Deadline
from mm.peers.mcp import LISTING, START, STARTING, STILL_STARTING, McpServer
from mm.peers.program import GRACE
from mm.secrecy import without_own

# Seconds that the first turn waits for servers that are still starting.
FIRST_TURN = 5
WAITING = "mcp: waiting for %s"


class McpPool:
    """Who uses which servers. A start may take `seconds`."""

    def __init__(self, seconds: float = START):
        self._seconds = seconds
        self._lock = threading.Lock()
        self._shared, self._closed = [], False

    def join(self, entries: dict, cwd: str, environ) -> McpServers:
        """The servers of `entries` (entries.McpServer by name) for one session in the folder `cwd`. Starts
        nothing."""
        return McpServers(self, entries, cwd, without_own(environ))

    def take(self, session: McpServers) -> list:
        """The servers that the session shares with others like it, from now on as one of their users."""
        with self._lock:
            like = (session.entries, session.cwd)
            shared = next((each for each in self._shared if (each.entries, each.cwd) == like), None)
            if shared is None:
                shared = _Shared(session, self._seconds)
                self._shared.append(shared)
            shared.users.add(session)
            if self._closed:
                shared.close()
            return shared.servers

    def leave(self, session: McpServers) -> None:
        """Ends the servers that nobody uses any more; returns at once."""
        with self._lock:
            for shared in self._shared:
                shared.users.discard(session)
            unused = [shared for shared in self._shared if not shared.users]
            self._shared = [shared for shared in self._shared if shared.users]
        for shared in unused:
            shared.close()

    def close(self, seconds: float = GRACE) -> None:
        """The process ends: closes the stdin of all servers, and gives them `seconds` to end."""
        with self._lock:
            ending, self._shared, self._closed = self._shared, [], True
        for shared in ending:
            shared.close()
        deadline = Deadline(seconds)
        for server in [server for shared in ending for server in shared.servers]:
            server.wait_for_end(max(deadline.left(), 0))


class _Shared:
    """The servers of one folder and configuration, and the sessions (McpServers) that use them."""

    def __init__(self, session, seconds):
        self.entries, self.cwd, self.users = session.entries, session.cwd, set()
        self.servers = [McpServer(name, entry, session.cwd, session.environ, seconds)
                        for name, entry in session.entries.items()]

    def close(self) -> None:
        for server in self.servers:
            server.close()


class McpServers:
    """The servers as one session uses them. They report what is wrong with them in log lines, never by an
    exception."""

    def __init__(self, pool: McpPool, entries: dict, cwd: str, environ: dict):
        self.entries, self.cwd, self.environ = entries, cwd, environ
        self._pool, self._servers, self._offers = pool, [], None

    def begin(self) -> None:
        """A conversation begins, the first one or one after /new: starts the servers that do not run, and
        asks those again whose tools have changed, on threads of their own."""
        self._servers, self._offers = self._servers or self._pool.take(self), None
        for server in self._servers:
            server.begin()

    def ready(self, cancel: Cancel, seconds: float = FIRST_TURN) -> None:
        """Waits for those that are still starting, `seconds` at most. Raises Cancelled."""
        deadline, starting = Deadline(seconds), self.starting()
        if starting:
            log.line(WAITING % ", ".join(server.name for server in starting))
        for server in starting:
            server.settle(cancel, max(deadline.left(), 0))
        for server in self.starting():
            server.say(STILL_STARTING)

    def starting(self) -> list:
        """Those that start, or are asked for their tools again."""
        return [server for server in self._servers if server.state in (STARTING, LISTING)]

    def tools(self) -> tuple:
        """What they offer (mcp.Offer), in the order of the configuration: always the same until begin()."""
        if self._offers is None:
            self._offers = tuple(offer for server in self._servers for offer in server.offers or ())
        return self._offers

    @property
    def problems(self) -> dict:
        """Why servers do not run, by their names."""
        return {server.name: str(server.problem) for server in self._servers if server.problem}

    def close(self) -> None:
        """The session ends."""
        self._pool.leave(self)
