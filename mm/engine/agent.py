"""What all sessions of this process share: the configuration, the model server, the numbers of the calls, the line."""

from __future__ import annotations

import os
import threading

from mm import log
from mm.cancel import Cancel
from mm.engine.queue import TurnQueue
from mm.engine.session import Session, new_id

LEADS_OUTSIDE = "⚠️ %s leads out of the folder through a link: sessions are not kept"


class Agent:
    """The process's own state. `demo`: answer with the built-in scripted model instead of a server; `can_ask`: whether the
    front end has a user who can be asked.

    Nothing slow happens when it is made: the model server is looked at by the first turn, in that turn's thread.
    """

    def __init__(self, config, demo: bool = False, tap=None, can_ask: bool = False):
        self.config = config
        self.queue = TurnQueue()
        self.tap = tap
        self.can_ask = can_ask
        self._demo = demo
        self._server = None
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
        session = Session(session_id, cwd, self.config, store, can_ask=self.can_ask)
        session.save(self.model_name)
        return session

    def load_session(self, session_id: str, cwd: str) -> Session:
        """A session as it was saved. Raises SessionError."""
        from mm.conversation import store as stores

        folder = self._sessions_folder(cwd)
        if not folder:
            raise stores.SessionError(LEADS_OUTSIDE % self.config.sessions_dir)
        store, saved = stores.open(folder, session_id, cwd)
        return Session(session_id, cwd, self.config, store, saved, self.can_ask)

    def _sessions_folder(self, cwd: str):
        """Where sessions of `cwd` are kept; None where they are not, or where a link leads out of the folder."""
        if not self.config.sessions_enabled:
            return None
        from mm import trust

        folder = self.config.sessions_dir
        if trust.names_inside(cwd, folder) and not trust.is_inside(cwd, folder):
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
        """The model server as a chat.Server. Raises UserError when none answers, Cancelled."""
        if self._server is None:
            self._server = self._find_server(cancel)
        return self._server

    @property
    def window(self):
        """What is known of the model's context window, a window.Window."""
        if self._window is None:
            from mm.model.window import Window

            self._window = Window(self.config.model_context_window)
        return self._window

    def _find_server(self, cancel: Cancel):
        from mm.model import servers
        from mm.model.chat import Server

        config = self.config
        if self._demo:
            from mm.model import demo

            return Server(demo.start().url, "demo", None, {}, 0, None, None, {})
        server = Server(
            url=config.model_url or servers.DEFAULT_URL,
            model=config.model_name,
            api_key=config.model_api_key,
            headers=config.model_headers,
            timeout=config.model_timeout,
            temperature=config.model_temperature,
            max_tokens=config.model_max_tokens,
            extra=config.model_extra,
        )
        if server.model:
            return server
        return server._replace(model=servers.first_model(server, cancel) or servers.ANY_MODEL)
