"""One conversation with the user: its folder, what was said, what was granted, and what it has used."""

from __future__ import annotations

import os
import threading
import time

from mm import log
from mm.cancel import Cancel
from mm.engine.gate import Gate
from mm.notices import Notices
from mm.tools.context import Seen

NEW, LOADED = "new", "load"
TITLE_LIMIT = 80


def new_id() -> str:
    """A time-sortable session id, `20260916-101530-4f2a9c1e`."""
    return time.strftime("%Y%m%d-%H%M%S-") + os.urandom(4).hex()


class Session:
    """The state of one conversation.

    `messages` is the history (conversation.history); the running turn owns it, and turns never run at the
    same time. `usage` are the totals of all model requests, empty until a server has reported a count.
    `prepared` is what the first prompt has made, a prepared.Prepared, and None before. `store` is None if
    sessions are not kept. `seen` is what the tools keep (tools.context). `notices` takes lines that the user
    should read but that are not part of an answer. `mcp_pool` (peers.mcp_pool) has the MCP servers that
    sessions share; None for servers of its own.
    """

    def __init__(self, session_id: str, cwd: str, config, store=None, saved=None, can_ask: bool = False,
                 mcp_pool=None):
        self.id = session_id
        self.cwd = cwd
        self.config, self.can_ask = config, can_ask
        self.store = store
        self.source = LOADED if saved else NEW
        self.messages = list(saved.messages) if saved else []
        self.usage = dict(saved.usage) if saved else {}
        self.title = saved.title if saved else None
        self.seen = Seen()
        if saved and saved.plan:
            from mm.tools import plan

            self.seen.plan = plan.restored(saved.plan)
        self.gate = Gate(config.yolo)
        self.notices = Notices()
        self.prepared = None
        self.mcp_servers = None
        self._mcp_pool = mcp_pool
        self._tools_may_differ = False
        self._skills = None
        self._looking = threading.Lock()
        self._save_failed = False

    def skills(self) -> tuple:
        """The skills that can be used here; they are looked for once."""
        with self._looking:
            if self._skills is None:
                from mm.skills import catalogue

                found = catalogue.find(self.cwd, self.config, os.environ)
                self._skills = found.skills
                for line in found.warnings:
                    log.line(line)
                for line in found.left_out:
                    self.notices.add(line, logged=True)
            return self._skills

    def prepare(self, cancel, window: int) -> None:
        """Makes `prepared` with the first prompt; `window` as for prepared.prepare. Raises Cancelled."""
        from mm import replacing
        from mm.engine import prepared

        if self.prepared is None:
            replacing.remove_remains()
            self.prepared = prepared.prepare(self, cancel, window)
        elif self._tools_may_differ or self.mcp_servers and window and not self.prepared.window:
            self.prepared = prepared.with_new_tools(self.prepared, self, cancel, window)
        self._tools_may_differ = False

    def start_mcp_servers(self):
        """Starts the MCP servers, once, in their own threads; returns them, None if there are none."""
        if self.mcp_servers is None and self.config.mcp:
            from mm.peers.mcp_pool import McpPool

            pool = self._mcp_pool or McpPool()
            self.mcp_servers = pool.join(self.config.mcp, self.cwd, os.environ)
            self.mcp_servers.begin()
        return self.mcp_servers

    def _plan_to_save(self):
        return self.seen.plan.saved() if self.seen.plan else None

    def end(self) -> None:
        """Runs the sessionEnd hooks and ends the programs; takes two seconds at most."""
        if self.prepared:
            self.prepared.hooks.run("sessionEnd", Cancel())
        self.seen.close()
        if self.mcp_servers:
            self.mcp_servers.close()

    def has_end_hooks(self) -> bool:
        """Whether its end runs hooks."""
        return bool(self.prepared) and self.prepared.hooks.present("sessionEnd")

    def tokens(self) -> int:
        """Tokens of the model's window that it takes, as a front end shows them."""
        return self.prepared.meter.shown(self.messages) if self.prepared else 0

    def count(self, usage) -> None:
        """Adds a request's counts (chat.Usage) to the totals."""
        for name in usage._fields:
            count = getattr(usage, name)
            if count is not None:
                self.usage[name] = self.usage.get(name, 0) + count

    def clear(self) -> None:
        """Forgets what was said and seen. The id, the folder, the grants and the totals stay."""
        self.messages.clear()
        self.title = None
        self.seen.close()
        self.seen = Seen()
        if self.prepared:
            self.prepared.instructions.forget()
            self.prepared.meter.forget()
        if self.mcp_servers:  # what they offer may have changed since the list was frozen
            self.mcp_servers.begin()
            self._tools_may_differ = True

    def keep_copy(self, new_id: str, model: str):
        """Keeps a copy under another id; returns the id, None if sessions are not kept. Raises OSError."""
        return self.store.copy_as(new_id, self.messages, self.usage, self._titled(), model,
                                  self._plan_to_save()) if self.store else None

    def save(self, model: str, cancel=None) -> None:
        """Writes the session file. A failure is logged once, and the next save tries again."""
        if not self.store:
            return
        try:
            news = self.store.save(self.messages, self.usage, self._titled(), model, self._plan_to_save(),
                                   cancel)
        except OSError as problem:
            if not self._save_failed:
                log.line("[acp] session %s is not saved: %s" % (self.id, problem.strerror or problem))
            self._save_failed = True
            return
        self._save_failed = False
        if news:
            log.line("[acp] " + news)
            if self.prepared:
                self.prepared.hooks.transcript = self.store.path

    def save_if_due(self, model: str, cancel) -> None:
        """Saves during a long turn: what it has done so far must survive a crash."""
        if self.store and self.store.due():
            self.save(model, cancel)

    def _titled(self):
        """The title: the beginning of the first question; None before there is one."""
        if self.title is None and self.messages:
            from mm.text import one_line

            self.title = one_line(self.messages[0]["content"], TITLE_LIMIT)
        return self.title
