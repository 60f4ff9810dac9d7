"""One conversation with the user: where it works, what was said, what was granted, what it has used."""

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

    `messages` is the history (conversation.history); the turn that runs owns it, turns never run together. `usage` are the
    totals of all model calls, empty until a server has counted anything. What the first turn makes (open) stays the same,
    byte for byte, because later requests must begin like the earlier ones. `store` is None where sessions are not kept.
    `notices` takes the lines that the user should read but that are not part of an answer. `mcp_pool` (peers.mcp_pool) holds the
    MCP servers that it shares with other sessions, None for servers of its own.
    """

    def __init__(self, session_id: str, cwd: str, config, store=None, saved=None, can_ask: bool = False, mcp_pool=None):
        self.id = session_id
        self.cwd = cwd
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
        self.system = self.mcp_servers = None
        self._mcp_pool = mcp_pool
        self.tools, self.wire_tools = None, []
        self._reaching, self._fitted_to = None, 0
        self.meter = self.hooks = self.instructions = None
        self._config, self._can_ask = config, can_ask
        self._skills = None
        self._looking = threading.Lock()
        self._told_unsaved = False

    def skills(self) -> tuple:
        """The skills that can be used here; looked for once."""
        with self._looking:
            if self._skills is None:
                from mm.skills import catalogue

                found = catalogue.find(self.cwd, self._config, os.environ)
                self._skills = found.skills
                for line in found.warnings:
                    log.line(line)
                for line in found.left_out:
                    self.notices.add(line)
            return self._skills

    def open(self, cancel, window: int) -> None:
        """Makes what the first turn needs, once; `window`: the model's context in tokens, 0 while unknown. Raises Cancelled."""
        if self.system is None:
            self._begin(cancel, window)
        if self.tools is None:
            self._gather_tools(cancel, window)
        elif self.mcp_servers and window and not self._fitted_to:  # mostly unknown before the first answer
            self._list_tools(window)

    def _begin(self, cancel, window: int) -> None:
        from mm import replacing
        from mm.engine.verdict import NoHooks
        from mm.engine import instructions
        from mm.engine.prompt import system_prompt
        from mm.skills import invocation

        replacing.remove_remains()
        config = self._config
        self.hooks = NoHooks()
        if any(config.hooks.values()):
            from mm.engine.hooks import Hooks

            self.hooks = Hooks(config, self.id, self.cwd, self.store.path if self.store else None)
        verdict = self.hooks.run("sessionStart", cancel, source=self.source)
        given = instructions.of_session(self.cwd, config.user_folder, window, self.notices)
        system = system_prompt(config.acp_name, self.cwd, given)
        system += invocation.prompt_section(self.skills())
        if verdict.context:
            system += "\n\n" + verdict.context
        self.instructions = instructions.Below(self.cwd, self.notices)
        self.system = system

    def _gather_tools(self, cancel, window: int) -> None:
        """The tools as the model is told of them, from here on the same in every request."""
        from mm.tools import registry

        if self._reaching is None:
            self._reaching = registry.reaching(self._config, self.cwd, notices=self.notices)
        if self.start_mcp_servers():
            self.mcp_servers.ready(cancel)
        self._list_tools(window)

    def _list_tools(self, window: int) -> None:
        """`window` limits what the tools of MCP servers take of it."""
        from mm.conversation.estimate import Meter
        from mm.tools import registry

        tools = registry.built_in(self._config, self.skills(), self._can_ask) + self._reaching
        if self.mcp_servers:
            from mm.tools import mcp

            offered, left_out = mcp.tools(self.mcp_servers, self._config.tools_disabled, window)
            tools += offered
            if left_out:
                log.line(left_out)
                self.notices.add(left_out)
        wire_tools, self._fitted_to = registry.to_wire(tools), window
        if self.tools is None or wire_tools != self.wire_tools:
            self.tools, self.wire_tools, self.meter = tools, wire_tools, Meter(self.system, wire_tools)

    def start_mcp_servers(self):
        """Starts the MCP servers, once, on threads of their own; returns them, None if there are none."""
        if self.mcp_servers is None and self._config.mcp:
            from mm.peers.mcp_pool import McpPool

            pool = self._mcp_pool or McpPool()
            self.mcp_servers = pool.join(self._config.mcp, self.cwd, os.environ)
            self.mcp_servers.begin()
        return self.mcp_servers

    def _plan_to_save(self):
        return self.seen.plan.saved() if self.seen.plan else None

    def end(self) -> None:
        """Tells the hooks that the session ends, if it ever began, and takes leave of its programs; takes two seconds at most."""
        if self.hooks:
            self.hooks.run("sessionEnd", Cancel())
        self.seen.close()
        if self.mcp_servers:
            self.mcp_servers.close()

    def count(self, usage) -> None:
        """Adds a model call's counts (chat.Usage) to the totals."""
        for name in usage._fields:
            count = getattr(usage, name)
            if count is not None:
                self.usage[name] = self.usage.get(name, 0) + count

    def clear(self) -> None:
        """Forgets what was said and seen. Id, folder, grants and totals stay."""
        self.messages.clear()
        self.title = None
        self.seen.close()
        self.seen = Seen()
        if self.instructions:
            self.instructions.forget()
        if self.meter:  # a first turn that was cancelled while it waited for a server has made none
            self.meter.forget()
        if self.mcp_servers:  # what they offer may have changed since the list was frozen
            self.mcp_servers.begin()
            self.tools = None

    def keep_copy(self, new_id: str, model: str):
        """Keeps what was said so far under another id; returns the id, None where sessions are not kept. Raises OSError."""
        return self.store.copy_as(new_id, self.messages, self.usage, self._titled(), model,
                                  self._plan_to_save()) if self.store else None

    def save(self, model: str, cancel=None) -> None:
        """Writes the session file; what goes wrong is said once and tried again at the next save. `cancel`: the turn's."""
        if not self.store:
            return
        try:
            news = self.store.save(self.messages, self.usage, self._titled(), model, self._plan_to_save(), cancel)
        except OSError as problem:
            if not self._told_unsaved:
                log.line("[acp] session %s is not saved: %s" % (self.id, problem.strerror or problem))
            self._told_unsaved = True
            return
        self._told_unsaved = False
        if news:
            log.line("[acp] " + news)
            if self.hooks:
                self.hooks.transcript = self.store.path

    def save_if_due(self, model: str, cancel) -> None:
        """During a long turn: what it has done so far must survive a crash."""
        if self.store and self.store.due():
            self.save(model, cancel)

    def _titled(self):
        """The title: the beginning of the first question; None before there is one."""
        if self.title is None and self.messages:
            from mm.text import one_line

            self.title = one_line(self.messages[0]["content"], TITLE_LIMIT)
        return self.title
