"""What all sessions of this process share: the configuration, the model server, the numbers of the calls, the line."""

from __future__ import annotations

import itertools

from mm.cancel import Cancel
from mm.engine.queue import TurnQueue
from mm.engine.session import Session, new_id


class Agent:
    """The process's own state. `demo`: answer with the built-in scripted model instead of a server.

    Nothing slow happens when it is made: the model server is looked at by the first turn, in that turn's thread.
    """

    def __init__(self, config, demo: bool = False, tap=None):
        self.config = config
        self.queue = TurnQueue()
        self.tap = tap
        self._demo = demo
        self._server = None
        self._call_numbers = itertools.count(1)

    def new_session(self, cwd: str) -> Session:
        return Session(new_id(), cwd, self.config.yolo)

    def next_ref(self) -> str:
        """The next call identifier: numbered per process, never reset."""
        return "call_%d" % next(self._call_numbers)

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
