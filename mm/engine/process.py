"""What all sessions of this process share: the configuration, the model server, the MCP servers, the numbers
of the calls, and the line of turns."""

from __future__ import annotations

import os
import threading

from mm import log
from mm.engine.queue import TurnQueue
from mm.engine.session import Session, new_id
from mm.model.connection import Connection

LEADS_OUTSIDE = "⚠️ %s leads out of the folder through a link: sessions are not kept"


class Process:
    """The process's own state. Nothing slow happens when it is made.

    `demo`: answer with the built-in scripted model instead of a server. `can_ask`: whether the front end has
    a user who can be asked. `candidates`: where to look for a server that is not configured, None for the
    usual ones. `tap` is as for chat.complete.
    """

    def __init__(self, config, demo: bool = False, tap=None, can_ask: bool = False, candidates=None):
        self.config = config
        self.queue = TurnQueue()
        self.tap = tap
        self.can_ask = can_ask
        self._mcp_pool = None
        self.model = Connection(config, demo, candidates)
        self._warm = False
        self._numbering = threading.Lock()
        self._last_number = 0

    def warm_up(self) -> None:
        """Loads what a first prompt needs and finds the model server, once. Logs nothing."""
        with self._numbering:
            done, self._warm = self._warm, True
        if not done:
            from mm.engine import prepared, turn  # noqa: F401 (imported only to be loaded)
            from mm.peers import languages  # noqa: F401

            self.model.warm_up()

    def new_session(self, cwd: str) -> Session:
        """A session in `cwd`; if sessions are kept, its file is there when this returns."""
        session_id, store = new_id(), None
        folder = self._sessions_folder(cwd)
        if folder:
            from mm.conversation import store as stores

            store = stores.create(folder, session_id, cwd)
        session = Session(session_id, cwd, self.config, store, can_ask=self.can_ask, mcp_pool=self._pool())
        session.save(self.model.model_name)
        return session

    def load_session(self, session_id: str, cwd: str) -> Session:
        """A session as it was saved. Raises SessionError."""
        from mm.conversation import store as stores

        folder = self._sessions_folder(cwd)
        if not folder:
            raise stores.SessionError(LEADS_OUTSIDE % self.config.sessions_dir)
        store, saved = stores.open(folder, session_id, cwd)
        return Session(session_id, cwd, self.config, store, saved, self.can_ask, self._pool())

    def _pool(self):
        """The MCP servers of all sessions; None if the configuration has none."""
        if self._mcp_pool is None and self.config.mcp:
            from mm.peers.mcp_pool import McpPool

            self._mcp_pool = McpPool()
        return self._mcp_pool

    def close(self) -> None:
        """Ends the MCP servers; takes two seconds if one of them does not end by itself."""
        if self._mcp_pool:
            self._mcp_pool.close()

    def kept_sessions(self, cwd: str, most: int) -> list:
        """The sessions kept for `cwd` (store.Kept), the last one saved first; at most `most`."""
        folder = self._sessions_folder(cwd)
        if not folder:
            return []
        from mm.conversation import store as stores

        return stores.kept(folder, cwd, most)

    def _sessions_folder(self, cwd: str):
        """Where sessions of `cwd` are kept; None if they are not, or if a link leads out of the folder."""
        if not self.config.sessions_enabled:
            return None
        from mm import safe_files

        folder = self.config.sessions_dir
        if safe_files.names_inside(cwd, folder) and not safe_files.is_inside(cwd, folder):
            log.line(LEADS_OUTSIDE % folder)
            return None
        return os.path.join(cwd, os.path.expanduser(folder))

    def next_ref(self) -> str:
        """The next call identifier; the numbers are never reset."""
        with self._numbering:
            self._last_number += 1
            return "call_%d" % self._last_number

    def number_above(self, highest: int) -> None:
        """Continues above the numbers in a session that was loaded."""
        with self._numbering:
            self._last_number = max(self._last_number, highest)
