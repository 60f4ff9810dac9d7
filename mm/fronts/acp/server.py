"""The ACP agent: the protocol's methods over stdin and stdout, until the client closes stdin.

Threads. The main thread reads stdin, answers the short requests at once and delivers cancels; each prompt runs in a
thread of its own and waits there for the process's turn. A cancel is the prompt's own (`request.cancel`), so one that
comes too late finds nothing and harms nothing. When stdin ends, or the client stops reading, every prompt is cancelled,
every child is ended and the process exits, whatever still hangs.

What the answer to `initialize` does not need is imported after it.
"""

from __future__ import annotations

import os
import sys
import threading

from mm import __version__, log
from mm.engine.agent import Agent
from mm.wire import streams
from mm.wire.peer import INVALID_PARAMS, METHOD_NOT_FOUND, Closed, Peer, RpcError

PROTOCOL_VERSION = 1
COMMANDS_DELAY = 0.05  # seconds; some clients drop what follows the answer to session/new too closely
GOODBYE = 0.4  # seconds that cancelled turns get to answer, and the log to be read


def serve(config, demo: bool = False, trace=None, tap=None) -> int:
    """Speaks ACP on stdin and stdout until stdin ends; returns the exit code.

    `trace(direction, line)` is told every line both ways, `tap` every model request (model.chat).
    """
    read, write = claim_streams()
    if os.environ.get("MM_TRACE"):
        from mm.fronts.acp.trace import both, open_trace

        trace = both(trace, open_trace(os.environ["MM_TRACE"]))
    server = Server(read, write, config, demo, trace, tap)
    log.line(server.banner())
    for warning in config.warnings:
        log.line(warning)
    try:
        server.peer.run()
        code = 0
    except KeyboardInterrupt:
        code = 130
    except SystemExit as stop:  # SIGTERM
        code = stop.code
    server.close()
    return code


def claim_streams():
    """(read, write) on the protocol's streams, which nothing else in the process can reach afterwards.

    The descriptors are duplicated away; 1 then points at stderr and 0 at the null device, so that no stray print and no
    child can write to the protocol or read from it. Children do not inherit the duplicates.
    """
    source, sink = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdout = sys.stderr

    return streams.read_from(source), streams.write_to(sink)


class Server:
    """One client's connection and its sessions."""

    def __init__(self, read, write, config, demo: bool = False, trace=None, tap=None):
        self.config = config
        self.agent = Agent(config, demo, tap)
        self.peer = Peer(read, write, self._serve, self._notified, trace=trace)
        self.peer.on_close(self._client_is_gone)
        self._closing = False
        self._sessions = {}
        self._methods = {
            "initialize": self._initialize,
            "authenticate": lambda request: request.answer({}),
            "session/new": self._new_session,
            "session/prompt": self._prompt,
        }

    def banner(self) -> str:
        yolo = "on" if self.config.yolo else "off"
        return "mm v%s · %s · yolo %s" % (__version__, self.agent.model_name or "no model yet", yolo)

    def close(self) -> None:
        """Cancels every prompt and lets it answer, ends every child; returns within about a second."""
        self._closing = True
        for open_session in list(self._sessions.values()):
            open_session.cancel()
        self.peer.flush(GOODBYE)
        self.peer.close()
        child = sys.modules.get("mm.wire.child")
        if child:
            child.end_all()
        log.flush(GOODBYE)

    def _client_is_gone(self) -> None:
        """Called where a write failed: takes the main thread out of its read of stdin, as a SIGTERM does."""
        if not self._closing:
            import signal

            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)
            else:
                os.kill(os.getpid(), signal.SIGTERM)

    def _serve(self, request) -> None:
        method = self._methods.get(request.method)
        if method is None:
            raise RpcError(METHOD_NOT_FOUND, "Method not found: %s" % request.method, {"method": request.method})
        method(request)

    def _notified(self, method: str, params) -> None:
        if method == "session/cancel":
            open_session = self._session_or_none(params.get("sessionId"))
            if open_session:
                open_session.cancel()

    def _initialize(self, request) -> None:
        params, info = request.params, request.params.get("clientInfo")
        info = info if isinstance(info, dict) else {}
        log.line("[acp] client %s %s, protocol %s, elicitation(form)=%s" % (
            info.get("name", "unknown"), info.get("version", "unknown"), params.get("protocolVersion"),
            "true" if supports_forms(params.get("clientCapabilities")) else "false",
        ))
        agent_info = {"name": self.config.acp_name, "version": "v" + __version__}
        if self.config.acp_title:
            agent_info["title"] = self.config.acp_title
        request.answer({
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": {},
            "agentInfo": agent_info,
            "authMethods": [],
        })
        _end_in_order_on_signals()

    def _new_session(self, request) -> None:
        cwd = request.params.get("cwd")
        if not isinstance(cwd, str) or not os.path.isabs(cwd) or not os.path.isdir(cwd):
            raise _invalid("cwd", "must be the absolute path of an existing folder, got %s" % _shown(cwd))
        servers = request.params.get("mcpServers")
        session = self.agent.new_session(os.path.normpath(cwd))
        open_session = _OpenSession(self, session)
        self._sessions[session.id] = open_session
        count = len(servers) if isinstance(servers, (list, dict)) else 0
        log.line("[acp] session %s: new, %s, %d MCP server(s) ignored" % (session.id, session.cwd, count))
        request.answer({"sessionId": session.id})
        open_session.announce_soon()

    def _prompt(self, request) -> None:
        session_id = request.params.get("sessionId")
        open_session = self._session_or_none(session_id)
        if not open_session:
            why = "unknown session %s" % _shown(session_id)
            raise RpcError(INVALID_PARAMS, "Invalid params: " + why, {"sessionId": session_id, "error": why})
        blocks = request.params.get("prompt")
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise _invalid("prompt", "must be a list of content blocks")
        open_session.prompt(request, blocks)

    def _session_or_none(self, session_id):
        return self._sessions.get(session_id) if isinstance(session_id, str) else None


class _OpenSession:
    """A session, its place on the connection and its prompts that are not answered yet."""

    def __init__(self, server: Server, session):
        self.session = session
        self._server = server
        self.peer = server.peer
        self._lock = threading.Lock()
        self._prompts = set()
        self._announced = False

    def announce_soon(self) -> None:
        """The commands follow the answer to session/new, unless a prompt comes first and announces them."""
        timer = threading.Timer(COMMANDS_DELAY, self.announce)
        timer.daemon = True
        timer.start()

    def announce(self) -> None:
        with self._lock:  # held while sending: whoever comes second must find them sent
            if self._announced:
                return
            self._announced = True
            from mm.fronts.acp import commands, updates

            try:
                self.update(updates.commands(commands.COMMANDS))
            except Closed:
                pass

    def update(self, body: dict) -> None:
        self.peer.notify("session/update", {"sessionId": self.session.id, "update": body})

    def prompt(self, request, blocks: list) -> None:
        """Takes a place in the line and answers the request from a thread of its own."""
        ticket = self._server.agent.queue.ticket()
        with self._lock:
            self._prompts.add(request)
        threading.Thread(target=self._run, args=(request, blocks, ticket), daemon=True).start()

    def cancel(self) -> None:
        """Cancels the running prompt and the waiting ones; the next one is not touched."""
        with self._lock:
            requests = list(self._prompts)
        for request in requests:
            request.cancel.cancel()

    def _run(self, request, blocks: list, ticket) -> None:
        from mm.fronts.acp import prompting

        try:
            prompting.answer(self, self._server.agent, request, blocks, ticket)
        finally:
            ticket.leave()
            with self._lock:
                self._prompts.discard(request)


def supports_forms(capabilities) -> bool:
    """Whether the client takes `elicitation/create` in form mode: `elicitation.form` is there and not null."""
    elicitation = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(elicitation, dict) and elicitation.get("form") is not None


def _end_in_order_on_signals() -> None:
    """SIGTERM ends the process the way the end of stdin does: the handler's exception leaves the read of stdin."""
    import signal

    def stop(number, _frame):
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), stop)


def _invalid(field: str, why: str) -> RpcError:
    line = "%s %s" % (field, why)
    return RpcError(INVALID_PARAMS, "Invalid params: " + line, {"field": field, "error": line})


def _shown(value) -> str:
    """A client's value for an error line."""
    text = repr(value)
    return text if len(text) <= 100 else text[:100] + "…"
