"""A session on its connection: its prompts that are not answered yet, its commands, its loading.

Nothing here waits on the thread that reads: a prompt waits for the loading and for its turn in a thread of its own.
"""

from __future__ import annotations

import threading

from mm import log
from mm.wire.peer import INTERNAL_ERROR, INVALID_PARAMS, Closed

COMMANDS_DELAY = 0.05  # seconds; some clients drop what follows the answer to session/new too closely
NO_THREAD = "the system lets mm start no more threads"
REPLAYED = "[acp] session %s loaded from %s: %d message(s) replayed"


class OpenSession:
    """`session` is the engine's, None until opened() or as long as it loads; prompts that come meanwhile wait."""

    def __init__(self, server, session_id: str):
        self.id = session_id
        self.session = None
        self.peer = server.peer
        self.supports_forms = server.supports_forms
        self._server, self._agent = server, server.agent
        self._lock = threading.Lock()
        self._announcing = threading.Lock()
        self._ready = False
        self._requests = set()  # its prompts and its loading, until their threads are done with them
        self._waiting = []  # prompts that came while it loads, as _start() takes them
        self._announced = self._warned = False

    def opened(self, session) -> None:
        """From now on prompts can run; `session` None: they are told that there is no such session."""
        with self._lock:
            self.session, self._ready = session, True
            waiting, self._waiting = self._waiting, []
        for prompt in waiting:
            self._start(*prompt)

    def update(self, body: dict) -> None:
        self.peer.notify("session/update", {"sessionId": self.id, "update": body})

    def announce_soon(self) -> None:
        """The commands follow the answer to session/new, unless a prompt comes first and announces them."""
        timer = threading.Timer(COMMANDS_DELAY, self.announce)
        timer.daemon = True
        timer.start()

    def announce(self) -> None:
        with self._announcing:  # held while sending: whoever comes second must find them sent
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
        """Says in front of the first answer that the hooks which the user may rely on do not guard; once."""
        if self._agent.config.hooks_wait and not self._warned:
            self._warned = True
            from mm.config.config import HOOKS_WAIT
            from mm.fronts.acp import updates

            self.update(updates.chunk(HOOKS_WAIT + "\n\n"))

    def busy(self) -> bool:
        """Whether it loads, or a prompt is not answered yet. A client that has read the last answer is not told so."""
        with self._lock:
            return not all(request.answered for request in self._requests)

    def prompt(self, request, blocks: list) -> None:
        """Takes a place in the line and answers the request from a thread of its own."""
        prompt = request, blocks, self._agent.queue.ticket()
        with self._lock:
            self._requests.add(request)
            if not self._ready:
                self._waiting.append(prompt)
                return
        self._start(*prompt)

    def _start(self, request, blocks: list, ticket) -> None:
        try:
            threading.Thread(target=self._run, args=(request, blocks, ticket), daemon=True).start()
        except RuntimeError:
            ticket.leave()  # else nobody behind it would ever have a turn
            self._done_with(request)
            request.fail(INTERNAL_ERROR, "Internal error: " + NO_THREAD, {"error": NO_THREAD})

    def load(self, request, cwd: str, replaced) -> None:
        """Loads and replays the session in a thread of its own; `replaced` is the OpenSession that had its id, or None."""
        self._requests.add(request)
        threading.Thread(target=self._load, args=(request, cwd, replaced), daemon=True).start()

    def _load(self, request, cwd: str, replaced) -> None:
        from mm.conversation.store import SessionError

        session = None
        try:
            session = self._agent.load_session(self.id, cwd)
            self.session = session
            self._replay(session)
            request.answer({})
        except SessionError as problem:
            self._server.put_back(self.id, replaced)
            self._refuse(request, str(problem))
        except Closed:
            pass
        except Exception:
            log.traceback()
            self._server.put_back(self.id, replaced)
            session = None
            from mm.fronts.acp import prompting

            prompting.fail(request, prompting.BUG)
        finally:
            self.opened(session)
            self._done_with(request)
        if session and replaced and replaced.session:
            replaced.session.end()  # nobody can reach it any more, and its servers would run on

    def _replay(self, session) -> None:
        from mm.events import PlanChanged
        from mm.fronts.acp import replay, updates
        from mm.tools import registry

        messages = session.messages
        self._agent.number_above(replay.highest_ref(messages))
        config = self._agent.config
        tools = registry.built_in(config, session.skills()) + registry.reaching(config, session.cwd)
        for update in replay.updates(messages, tools):
            self.update(update)
        plan = session.plan()
        if plan:
            self.update(updates.update(PlanChanged(plan.entries())))
        self.announce()
        log.line(REPLAYED % (self.id, session.store.folder, len(messages)))

    def _refuse(self, request, why: str) -> None:
        request.fail(INVALID_PARAMS, "Invalid params: " + why, {"sessionId": self.id, "error": why})

    def cancel(self) -> None:
        """Cancels the running prompt and the waiting ones; the next one is not touched."""
        with self._lock:
            requests = list(self._requests)
        for request in requests:
            request.cancel.cancel()

    def end(self) -> list:
        """The process ends: takes leave of the servers, and tells the hooks, if there are any, in the thread that is returned: one
        session's must not cost the others their time."""
        session = self.session
        if not (session and session.hooks and session.hooks.present("sessionEnd")):
            return []
        thread = threading.Thread(target=session.end, daemon=True)
        thread.start()
        return [thread]

    def _run(self, request, blocks: list, ticket) -> None:
        from mm.fronts.acp import prompting

        try:
            if self.session is None:
                self._refuse(request, "unknown session %s" % self.id)
            else:
                prompting.answer(self, self._agent, request, blocks, ticket)
        finally:
            ticket.leave()
            self._done_with(request)

    def _done_with(self, request) -> None:
        with self._lock:
            self._requests.discard(request)
