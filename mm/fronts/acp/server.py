"""The ACP agent: the protocol's methods over stdin and stdout, until the client closes stdin.

The main thread reads stdin, answers short requests at once and delivers cancels; each prompt has a thread of
its own and waits there for its turn. A Cancel belongs to one prompt (`request.cancel`), so a cancel that
comes too late finds nothing and does no harm. When stdin ends, or the client stops reading, every prompt is
cancelled, every child is ended and the process exits, whatever still hangs.

Everything that the answer to `initialize` does not need is imported after it.
"""

from __future__ import annotations

import os
import sys
import threading

from mm import __version__, log
from mm.wire import streams
from mm.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from mm.wire.peer import Peer

PROTOCOL_VERSION = 1
GOODBYE = 0.4  # seconds for cancelled turns to answer, and for the log to be read


def serve(config, demo: bool = False, trace=None, tap=None) -> int:
    """Speaks ACP on stdin and stdout until stdin ends; returns the exit code.

    `trace(direction, line)` gets every line in both directions, `tap` every model request (model.chat).
    """
    read, write = claim_streams()
    if os.environ.get("MM_TRACE"):
        from mm.fronts.acp.trace import both, open_trace
        from mm.secrecy import all_secrets

        trace = both(trace, open_trace(os.environ["MM_TRACE"], all_secrets(config, os.environ)))
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
    """(read, write) for the protocol's streams, which nothing else in the process can reach afterwards.

    The descriptors are duplicated; then 1 points at stderr and 0 at the null device, so that no stray print
    and no child can write to the protocol or read from it. Children do not inherit the duplicates.
    """
    source, sink = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdout = sys.stderr

    return streams.Reader(source), streams.write_to(sink)


class Server:
    """One client's connection and its sessions."""

    def __init__(self, read, write, config, demo: bool = False, trace=None, tap=None):
        self.config = config
        self._demo, self._tap = demo, tap
        self._wake_on_signals = read.wake_on_signals
        self._process = None
        self.peer = Peer(read, write, self._serve, self._notified, trace=trace)
        self.peer.on_close(self._client_is_gone)
        self._closing = False
        self._supports_forms = False
        self._sessions = {}
        self._methods = {
            "initialize": self._initialize,
            "authenticate": lambda request: request.answer({}),
            "session/new": self._new_session,
            "session/prompt": self._prompt,
        }
        if config.sessions_enabled:
            self._methods["session/load"] = self._load_session

    def banner(self) -> str:
        yolo = "on" if self.config.yolo else "off"
        model = "demo" if self._demo else self.config.model_name or "no model yet"
        return "mm v%s · %s · yolo %s" % (__version__, model, yolo)

    @property
    def process(self):
        """What the sessions share, an engine.process.Process; made for the first session."""
        if self._process is None:
            from mm.engine.process import Process

            self._process = Process(self.config, self._demo, self._tap, can_ask=True)
        return self._process

    def close(self) -> None:
        """Cancels every prompt, lets it answer, and ends every child.

        Takes a second at most, and two more each for hooks that hang and for MCP servers that do not end.
        """
        self._closing = True
        open_sessions = list(self._sessions.values())
        for open_session in open_sessions:
            open_session.cancel()
        self.peer.flush(GOODBYE)
        self.peer.close()
        for thread in [thread for open_session in open_sessions for thread in open_session.end()]:
            thread.join()
        if self._process:
            self._process.close()
        child = sys.modules.get("mm.wire.child")
        if child:
            child.end_all()
        log.flush(GOODBYE)

    def _client_is_gone(self) -> None:
        """A write has failed: takes the main thread out of its read of stdin, as a SIGTERM does."""
        if not self._closing:
            import signal

            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)
            else:
                os.kill(os.getpid(), signal.SIGTERM)

    def _serve(self, request) -> None:
        method = self._methods.get(request.method)
        if method is None:
            name = request.method
            raise RpcError(METHOD_NOT_FOUND, "Method not found: %s" % name, {"method": name})
        method(request)

    def _notified(self, method: str, params) -> None:
        if method == "session/cancel":
            open_session = self._session_or_none(params.get("sessionId"))
            if open_session:
                open_session.cancel()

    def _initialize(self, request) -> None:
        params, info = request.params, request.params.get("clientInfo")
        info = info if isinstance(info, dict) else {}
        self._supports_forms = supports_forms(params.get("clientCapabilities"))
        agent_info = {"name": self.config.acp_name, "version": "v" + __version__}
        if self.config.acp_title:
            agent_info["title"] = self.config.acp_title
        request.answer({
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": {"loadSession": True} if self.config.sessions_enabled else {},
            "agentInfo": agent_info,
            "authMethods": [],
        })
        # After the answer, which would otherwise wait for the line to be written.
        log.line("[acp] client %s %s, protocol %s, elicitation(form)=%s" % (
            info.get("name", "unknown"), info.get("version", "unknown"), params.get("protocolVersion"),
            "true" if self._supports_forms else "false",
        ))
        _end_in_order_on_signals()
        self._wake_on_signals()

    def _new_session(self, request) -> None:
        cwd, servers = _folder(request.params), _servers(request.params)
        session = self.process.new_session(cwd)
        open_session = self._open(session.id, servers)
        open_session.opened(session)
        log.line("[acp] session %s: new, %s, %d MCP server(s) ignored" % (session.id, cwd, servers))
        request.answer({"sessionId": session.id})
        open_session.announce_soon()

    def _load_session(self, request) -> None:
        """Loads on a thread of its own; prompts for the session that come meanwhile wait."""
        session_id, cwd = request.params.get("sessionId"), _folder(request.params)
        if not isinstance(session_id, str):
            raise _invalid("sessionId", "must be a string, got %s" % _shown(session_id))
        replaced = self._sessions.get(session_id)
        if replaced and replaced.busy():
            raise unknown(session_id, "a turn is running")

        def put_back() -> None:
            if replaced:
                self._sessions[session_id] = replaced
            else:
                self._sessions.pop(session_id, None)

        self._open(session_id, _servers(request.params)).load(request, cwd, replaced, put_back)

    def _open(self, session_id: str, servers: int):
        """A new OpenSession under this id; `servers`: the number of MCP servers in the request."""
        from mm.fronts.acp.open_session import OpenSession

        open_session = OpenSession(session_id, self.peer, self.process, self._supports_forms, servers)
        self._sessions[session_id] = open_session
        return open_session

    def _prompt(self, request) -> None:
        session_id = request.params.get("sessionId")
        open_session = self._session_or_none(session_id)
        if not open_session:
            raise unknown(session_id, "unknown session %s" % _shown(session_id))
        blocks = request.params.get("prompt")
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise _invalid("prompt", "must be a list of content blocks")
        open_session.prompt(request, blocks)

    def _session_or_none(self, session_id):
        return self._sessions.get(session_id) if isinstance(session_id, str) else None


def supports_forms(capabilities) -> bool:
    """Whether the client takes forms (`elicitation/create`): `elicitation.form` is present and not null."""
    elicitation = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(elicitation, dict) and elicitation.get("form") is not None


def _end_in_order_on_signals() -> None:
    """Lets SIGTERM end the process as the end of stdin does: the handler raises out of the read of stdin."""
    import signal

    def stop(number, _frame):
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), stop)


def unknown(session_id, why: str) -> RpcError:
    """The `invalid params` error that carries the session's id."""
    return RpcError(INVALID_PARAMS, "Invalid params: " + why, {"sessionId": session_id, "error": why})


def _folder(params: dict) -> str:
    """The session's folder, from the params of session/new and session/load."""
    cwd = params.get("cwd")
    if not isinstance(cwd, str) or not os.path.isabs(cwd) or not os.path.isdir(cwd):
        raise _invalid("cwd", "must be the absolute path of an existing folder, got %s" % _shown(cwd))
    # If the path has a link in it, a `..` after the link does not lead where its text says.
    return cwd if os.pardir in cwd.split(os.sep) else os.path.normpath(cwd)


def _servers(params: dict) -> int:
    servers = params.get("mcpServers")
    return len(servers) if isinstance(servers, (list, dict)) else 0


def _invalid(field: str, why: str) -> RpcError:
    line = "%s %s" % (field, why)
    return RpcError(INVALID_PARAMS, "Invalid params: " + line, {"field": field, "error": line})


def _shown(value) -> str:
    """A client's value as an error line shows it."""
    try:
        text = repr(value)
    except RecursionError:
        text = type(value).__name__
    return text if len(text) <= 100 else text[:100] + "…"
