"""A session on its connection: its unanswered prompts, its commands, its loading.

Nothing here makes the reading thread wait: a prompt waits for its turn on a thread of its own, and a session
loads on a thread of its own.
"""

from __future__ import annotations

import threading

from mm import log
from mm.wire.messages import INTERNAL_ERROR, INVALID_PARAMS
from mm.wire.peer import Closed

COMMANDS_DELAY = 0.05  # seconds; some clients drop what follows the answer to session/new too soon
NO_THREAD = "the system lets mm start no more threads"
UNKNOWN = "unknown session %s"
REPLAYED = "[acp] session %s loaded from %s: %d message(s) replayed"
SERVERS_IGNORED = "the editor's MCP servers are not used (%d): mm starts those of its own configuration."


class OpenSession:
    """`session` is the engine's Session; None until opened(), and if it cannot be loaded.

    `supports_forms`: whether the client can show a form. `servers`: the number of MCP servers that the client
    sent, which mm ignores.
    """

    def __init__(self, session_id: str, peer, process, supports_forms: bool, servers: int):
        self.id = session_id
        self.session = None
        self.peer, self.process, self.supports_forms = peer, process, supports_forms
        self._servers = servers
        self._lock = threading.Lock()
        self._announcing = threading.Lock()
        self._ready = False
        self._replaced = None  # the OpenSession that got this id back because this one could not be loaded
        self._requests = set()  # the prompts and the load that their threads are not done with
        self._parked = []  # (request, blocks) of the prompts that came during the load
        self._announced = self._warned = False

    def opened(self, session) -> None:
        """From now on prompts can run: the parked ones first."""
        from mm.config.config import HOOKS_WAIT

        for warning in self.process.config.warnings:
            if warning != HOOKS_WAIT:  # which is shown before the answer
                session.notices.add(warning)
        if self._servers:
            session.notices.add(SERVERS_IGNORED % self._servers)
        self.session = session
        with self._lock:
            self._ready = True
            parked = [(request, blocks, self.process.queue.ticket()) for request, blocks in self._parked]
        for prompt in parked:
            self._start(*prompt)

    def _give_way(self, replaced) -> None:
        """The session cannot be loaded: its prompts go to `replaced`, or are refused if that is None."""
        with self._lock:
            self.session, self._ready, self._replaced = None, True, replaced
            for request, blocks in self._parked:
                self._requests.discard(request)
                if replaced:
                    replaced.prompt(request, blocks)
        for request, _ in [] if replaced else self._parked:
            self._refuse(request, UNKNOWN % self.id)

    def update(self, body: dict) -> None:
        self.peer.notify("session/update", {"sessionId": self.id, "update": body})

    def announce_soon(self) -> None:
        """Sends the commands after the answer to session/new; a prompt that comes sooner sends them."""
        timer = threading.Timer(COMMANDS_DELAY, self._follow)
        timer.daemon = True
        timer.start()

    def _follow(self) -> None:
        self.announce()
        self._warm_up()

    def _warm_up(self) -> None:
        """Loads what a first prompt needs and finds the server, so that the prompt only has to ask it."""
        try:
            from mm.fronts.acp import prompting  # noqa: F401 (imported only to be loaded)

            self.process.warm_up()
        except Exception:
            log.traceback()

    def announce(self) -> None:
        """Sends the list of commands, once."""
        with self._announcing:  # held while sending, so that the second caller finds them sent
            if self._announced:
                return
            self._announced = True
            from mm.fronts.acp import commands, updates

            skills = self.session.skills()
            for line in commands.hidden(skills):
                log.line(line)
            try:
                self.update(updates.commands(commands.available(skills)))
            except Closed:
                pass

    def warn(self) -> None:
        """Says once, before the first answer, that the hooks that the user may rely on do not run."""
        if self.process.config.hooks_wait and not self._warned:
            self._warned = True
            from mm.config.config import HOOKS_WAIT
            from mm.fronts.acp import updates

            self.update(updates.chunk(HOOKS_WAIT + "\n\n"))

    def busy(self) -> bool:
        """Whether it loads or has an unanswered prompt; false once the client has the last answer."""
        with self._lock:
            return not all(request.answered for request in self._requests)

    def prompt(self, request, blocks: list) -> None:
        """Answers the request from a thread of its own, in its turn."""
        with self._lock:
            if not self._ready:
                self._requests.add(request)
                self._parked.append((request, blocks))
                return
            opened = self.session is not None
            if opened:
                self._requests.add(request)
                ticket = self.process.queue.ticket()  # taken here, so that turns come in the order of arrival
        if opened:
            self._start(request, blocks, ticket)
        elif self._replaced:
            self._replaced.prompt(request, blocks)
        else:
            self._refuse(request, UNKNOWN % self.id)

    def _start(self, request, blocks: list, ticket) -> None:
        try:
            threading.Thread(target=self._answer, args=(request, blocks, ticket), daemon=True).start()
        except RuntimeError:
            ticket.leave()  # otherwise nobody after it would ever have a turn
            self._done_with(request)
            _fail_without_thread(request)

    def _answer(self, request, blocks: list, ticket) -> None:
        from mm.fronts.acp import prompting

        try:
            prompting.answer(self, request, blocks, ticket)
        finally:
            ticket.leave()
            self._done_with(request)

    def load(self, request, cwd: str, replaced, put_back) -> None:
        """Loads and replays the session on a thread of its own.

        `replaced` is the OpenSession that had the id, or None; if the load fails, `put_back()` gives it back.
        """
        self._requests.add(request)
        try:
            threading.Thread(target=self._load, args=(request, cwd, replaced, put_back), daemon=True).start()
        except RuntimeError:
            put_back()
            _fail_without_thread(request)

    def _load(self, request, cwd: str, replaced, put_back) -> None:
        from mm.conversation.store import SessionError
        from mm.fronts.acp import prompting

        try:
            self.session = self.process.load_session(self.id, cwd)
            self._replay(self.session)
            request.answer({})
            self.opened(self.session)
            if replaced:
                replaced.session.end()  # nobody can reach it any more, and its servers would stay
        except Closed:
            pass
        except SessionError as problem:
            put_back()  # before the answer, because the client may then load it again at once
            self._refuse(request, str(problem))
            self._give_way(replaced)
        except Exception:
            log.traceback()
            put_back()
            prompting.fail(request, prompting.BUG)
            self._give_way(replaced)
        self._done_with(request)
        self._warm_up()

    def _replay(self, session) -> None:
        from mm.events import PlanChanged
        from mm.fronts.acp import replay, updates
        from mm.tools import registry

        messages, config = session.messages, self.process.config
        self.process.number_above(replay.highest_ref(messages))
        tools = registry.built_in(config, session.skills()) + registry.reaching(config, session.cwd)
        for update in replay.updates(messages, tools):
            self.update(update)
        plan = session.seen.plan
        if plan:
            self.update(updates.update(PlanChanged(plan.entries())))
        self.announce()
        log.line(REPLAYED % (self.id, session.store.folder, len(messages)))

    def _refuse(self, request, why: str) -> None:
        request.fail(INVALID_PARAMS, "Invalid params: " + why, {"sessionId": self.id, "error": why})

    def cancel(self) -> None:
        """Cancels the running prompt and the waiting ones, but not the next one."""
        with self._lock:
            requests = list(self._requests)
        for request in requests:
            request.cancel.cancel()

    def end(self) -> list:
        """The process ends: if the session has something to do then, returns the threads that do it.

        The sessions end side by side, so that one cannot use up the time of the others.
        """
        session = self.session
        if not (session and session.has_end_hooks()):
            return []
        thread = threading.Thread(target=session.end, daemon=True)
        thread.start()
        return [thread]

    def _done_with(self, request) -> None:
        with self._lock:
            self._requests.discard(request)


def _fail_without_thread(request) -> None:
    request.fail(INTERNAL_ERROR, "Internal error: " + NO_THREAD, {"error": NO_THREAD})
