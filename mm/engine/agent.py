"""What all sessions of this process share: the configuration, the model server, the numbers of the calls, the line."""

from __future__ import annotations

import os
import threading

from mm import log
from mm.cancel import Cancel
from mm.engine.queue import TurnQueue
from mm.engine.session import Session, new_id
from mm.errors import UserError

# The origin of a server (servers.Found) that is the script.
DEMO = "demo"
LEADS_OUTSIDE = "⚠️ %s leads out of the folder through a link: sessions are not kept"


class Agent:
    """The process's own state. `demo`: answer with the built-in scripted model instead of a server; `can_ask`: whether the
    front end has a user who can be asked; `places`: where to look for a server that is not set, None for the usual places.

    Nothing slow happens when it is made: the model server is looked at by the first turn, in that turn's thread.
    """

    def __init__(self, config, demo: bool = False, tap=None, can_ask: bool = False, places=None):
        self.config = config
        self.queue = TurnQueue()
        self.tap = tap
        self.can_ask = can_ask
        self._mcp_pool = None
        self._demo, self._places = demo, places
        self._server = None
        self._was_found = False
        self._window = None
        self._numbering = threading.Lock()
        self._last_number = 0

    def new_session(self, cwd: str) -> Session:
        """A session in `cwd`; its file is there when this returns, where sessions are kept."""
        session_id, store = new_id(), None
        folder = self._sessions_folder(cwd)
        if folder:
            from mm.conversation import store as stores

            store = stores.create(folder, session_id, cwd)
        session = Session(session_id, cwd, self.config, store, can_ask=self.can_ask, mcp_pool=self._pool())
        session.save(self.model_name)
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
        """The process ends: so do the MCP servers. Takes two seconds if one of them does not end by itself."""
        if self._mcp_pool:
            self._mcp_pool.close()

    def kept_sessions(self, cwd: str, most: int) -> list:
        """The sessions that are kept for `cwd`, a store.Kept each, the one that was saved last first; at most so many."""
        folder = self._sessions_folder(cwd)
        if not folder:
            return []
        from mm.conversation import store as stores

        return stores.kept(folder, cwd, most)

    def _sessions_folder(self, cwd: str):
        """Where sessions of `cwd` are kept; None where they are not, or where a link leads out of the folder."""
        if not self.config.sessions_enabled:
            return None
        from mm import safe_files

        folder = self.config.sessions_dir
        if safe_files.names_inside(cwd, folder) and not safe_files.is_inside(cwd, folder):
            log.line(LEADS_OUTSIDE % folder)
            return None
        return os.path.join(cwd, os.path.expanduser(folder))

    def next_ref(self) -> str:
        """The next call identifier: numbered per process, never reset."""
        with self._numbering:
            self._last_number += 1
            return "call_%d" % self._last_number

    def number_above(self, highest: int) -> None:
        """Goes on numbering above the calls of a session that was loaded."""
        with self._numbering:
            self._last_number = max(self._last_number, highest)

    @property
    def model_name(self) -> str:
        """The model's name as far as it is known; "" before that."""
        if self._server:
            return self._server.model
        return "demo" if self._demo else self.config.model_name or ""

    def server(self, cancel: Cancel):
        """The model server as a chat.Server. Raises UserError when none answers, Cancelled.

        One that was found, not set, and does not listen any more is looked for again.
        """
        from mm.model import servers

        if self._server and self._was_found and servers.refuses(self._server.url, cancel):
            self._server = self._window = None
        if self._server is None:
            found = locate(self.config, self._demo, cancel, places=self._places)
            for line in (found.line, *found.notes):
                if line:
                    log.line(line)
            self._server, self._was_found = found.server, found.origin not in (servers.SET, DEMO)
        return self._server

    def failed(self, problem: UserError) -> None:
        """Takes the error that ended a turn. A model that was not set, and is not there any more, is chosen anew."""
        if getattr(problem, "kind", None) == "model_not_found" and not self.config.model_name and not self._demo:
            self._server = self._window = None

    @property
    def window(self):
        """What is known of the model's context window, a window.Window."""
        if self._window is None:
            from mm.model.window import Window

            self._window = Window(self.config.model_context_window)
        return self._window


def locate(config, demo: bool, cancel: Cancel, environ=os.environ, places=None):
    """The model server, a servers.Found. Raises UserError when none answers, Cancelled."""
    from mm.model import servers

    if not demo:
        return servers.find(config, environ, cancel, places)
    from mm.model import demo as script
    from mm.model.http import Server

    return servers.Found(Server(script.start().url, script.MODEL, None, {}, 0, None, None, {}), DEMO)
