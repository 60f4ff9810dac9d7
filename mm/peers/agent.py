"""Asking another ACP agent, as its client. Each question starts a program of its own, without earlier state.

    ask     starts the program: initialize, session/new, session/prompt -> an Answer, or AgentFailed

The caller's thread holds the conversation; after a cancel it waits a moment for the agent to end in order.
The program has the threads of program.py, and each dialog with the user one of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections import namedtuple

from mm import __version__, log
from mm.cancel import Cancel, Cancelled
from mm.events import ALLOW, REJECT
from mm.peers import acp_client
from mm.peers.program import Program, shown
from mm.secrecy import without_own
from mm.text import clean_terminal, one_line, shown_whole
from mm.wire.messages import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RemoteError, RpcError
from mm.wire.peer import Closed, TimedOut

PROTOCOL_VERSION = 1
# No files and no terminals of the client's: an asked agent has its own.
CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False,
                "elicitation": {"form": {}}}
DEPTH, TRACE = "MM_AGENT_DEPTH", "MM_TRACE"
AUTH_REQUIRED = -32000

# Seconds: for the answer to `initialize`; for the answer to a cancelled prompt. Then the caller goes on, and
# the program is closed: the end of its stdin, two seconds later TERM, and KILL five seconds after the cancel.
INITIALIZE_LIMIT, CANCEL_LIMIT = 30, 1
LOOK = 0.25  # seconds between two looks at a growing answer, and at the time that is left
MOST_DIALOGS = 20

TOO_DEEP = "too deep (%d)"
NO_START = "%s cannot be started: %s: %s"
ENDED = "%s ended %s"
NO_ANSWER = "%s did not answer %s within %g s"
SILENT = "%s was silent for %g s"
REFUSED = "%s refused %s: %s"
SIGN_IN = "%s wants you to sign in first: start it once by hand (%s)"
OTHER_VERSION = "%s speaks version %s of the protocol, mm speaks %d"
NO_SESSION = "%s gave no session id"
NOT_SHOWN = "%s was rejected: it is too long to be shown whole"
NOBODY = "nobody can be asked here"
NO_FORM = "Invalid params: a form with a message and the schema of one flat object is expected"

# What an agent said: all of it, and what followed its last tool call; why it stopped, the number of its tool
# calls, and its tokens,
# None if it did not count.
Answer = namedtuple("Answer", "text last stop_reason calls tokens")

# Who asks: `front` is asked what the agent asks, for the running call `ref` of `tool`; `yolo` answers
# permissions without it. `seen(title, tail)` is called with what the agent does: a tool call's title, else
# None, and what was said last, None while a dialog is open; on the reader.
Asker = namedtuple("Asker", "front ref tool yolo seen")


class AgentFailed(Exception):
    """Why there is no answer, in one line; `said` is what was said until then."""

    def __init__(self, reason: str, said: str = ""):
        super().__init__(reason)
        self.said = said


def depth(environ) -> int:
    """How many agents have asked one another until this mm was asked."""
    given = environ.get(DEPTH, "")
    return int(given) if given.isdecimal() else 0


def too_deep(config, environ):
    """The reason why this mm may not ask other agents, None if it may."""
    return TOO_DEEP % config.ask_agent_max_depth if depth(environ) >= config.ask_agent_max_depth else None


def ask(name: str, entry, prompt: str, cwd: str, asker: Asker, config, environ, cancel: Cancel) -> Answer:
    """Asks the agent `name` (`entry` is an entries.Agent) in the folder `cwd`. Raises AgentFailed and
    Cancelled.

    After a cancel the agent gets `session/cancel`; if that does not help, it is ended with all that it
    started.
    """
    cancel.check()
    problem = too_deep(config, environ)
    if problem:
        raise AgentFailed(problem)
    variables = without_own(environ)
    variables.pop(TRACE, None)  # two conversations in one file could not be told apart
    if not asker.yolo:
        variables["MM_YOLO"] = "false"  # an asked mm must not be freer than this one
    variables.update(entry.env)
    variables[DEPTH] = str(depth(environ) + 1)
    folder = os.path.normpath(os.path.join(cwd, entry.cwd or "."))
    talk = _Talk(name, entry, folder, variables, asker, config.ask_agent_idle_timeout, cancel)
    return talk.hold(prompt)


class _Talk:
    """A started agent and the conversation with it, on the caller's thread."""

    def __init__(self, name, entry, cwd, variables, asker, idle_limit, cancel):
        self._name, self._argv, self._cwd, self._asker, self._cancel = name, entry.argv, cwd, asker, cancel
        self._idle_limit = self._limit = idle_limit
        self._heard = self._looked = 0
        self._session = None
        self._words, self._calls = acp_client.Words(), acp_client.ToolCalls()
        self._asking, self._counting, self._dialogs = threading.Lock(), threading.Lock(), 0
        try:
            self._program = Program("agent " + name, entry.argv, cwd, variables, self._serve, self._notified)
        except (OSError, ValueError) as error:
            named = getattr(error, "filename", None) or entry.argv[0]
            raise AgentFailed(NO_START % (name, named, getattr(error, "strerror", None) or error)) from None
        self._peer = self._program.peer

    def hold(self, prompt: str) -> Answer:
        """The whole conversation; the program is about to end when this returns."""
        try:
            with self._cancel.on_cancel(self._call_off):
                answer = self._converse(prompt)
            self._cancel.check()
            return answer
        except AgentFailed as failure:
            self._cancel.check()
            raise AgentFailed(str(failure), clean_terminal(self._words.last())) from None
        finally:
            self._program.close()

    def _call_off(self) -> None:
        """The turn is cancelled: the agent has a moment to answer in order."""
        if self._session:
            self._heard, self._limit = time.monotonic(), CANCEL_LIMIT
            self._peer.post("session/cancel", {"sessionId": self._session})
        else:
            self._program.close()

    def _converse(self, prompt: str) -> Answer:
        hello = self._request("initialize", min(INITIALIZE_LIMIT, self._idle_limit),
                              protocolVersion=PROTOCOL_VERSION, clientCapabilities=CAPABILITIES,
                              clientInfo={"name": "mm", "version": "v" + __version__})
        if hello.get("protocolVersion") != PROTOCOL_VERSION:
            version = shown(hello.get("protocolVersion"))
            raise AgentFailed(OTHER_VERSION % (self._name, version, PROTOCOL_VERSION))
        made = self._request("session/new", self._idle_limit, cwd=self._cwd, mcpServers=[])
        session = made.get("sessionId")
        if not isinstance(session, str):
            raise AgentFailed(NO_SESSION % self._name)
        self._session = session
        text = [{"type": "text", "text": prompt}]
        result = self._request("session/prompt", self._idle_limit, sessionId=session, prompt=text)
        stop_reason = one_line(acp_client.text(result.get("stopReason")) or "no stop reason")
        return Answer(clean_terminal(self._words.all()), clean_terminal(self._words.last()), stop_reason,
                      len(self._calls), acp_client.tokens(result))

    def _request(self, method: str, limit: float, **params) -> dict:
        """The result of a request, an object. Raises AgentFailed, Cancelled."""
        self._cancel.check()
        self._heard, self._limit = time.monotonic(), limit
        try:
            result = self._peer.request(method, params, Cancel(), limit=self)
        except Closed:
            self._cancel.check()
            raise self._ended() from None
        except RemoteError as error:
            if error.code == AUTH_REQUIRED:
                raise AgentFailed(SIGN_IN % (self._name, " ".join(self._argv))) from None
            raise AgentFailed(REFUSED % (self._name, method, acp_client.reason(error))) from None
        except TimedOut:
            if self._session:
                raise AgentFailed(SILENT % (self._name, limit)) from None
            raise AgentFailed(NO_ANSWER % (self._name, method, limit)) from None
        return result if isinstance(result, dict) else {}

    def _ended(self) -> AgentFailed:
        ending = self._program.ending()
        how = "with " + ending.how if ending.how.startswith(("exit code", "signal")) else "(%s)" % ending.how
        reason = ENDED % (self._name, how)
        return AgentFailed("%s: %s" % (reason, ending.said) if ending.said else reason)

    def left(self) -> float:
        """For Peer.request(): asked again and again, because a cancel leaves less time. An agent that waits
        for the user need not say anything."""
        if self._dialogs and not self._cancel.cancelled:
            return LOOK
        return min(self._heard + self._limit - time.monotonic(), LOOK)

    # What the agent says and asks, all on the reader

    def _notified(self, method: str, params: dict) -> None:
        update = params.get("update")
        is_ours = method == "session/update" and params.get("sessionId") in (self._session, None)
        if not is_ours or not isinstance(update, dict):
            return
        self._hear()
        kind, title = update.get("sessionUpdate"), None
        if kind == "agent_message_chunk":
            self._words.say(acp_client.text_of(update.get("content")), update.get("messageId"))
        elif kind in ("tool_call", "tool_call_update"):
            if kind == "tool_call":
                self._words.call()
            title = self._calls.update(update)
        else:
            return
        now = time.monotonic()
        if title or now - self._looked >= LOOK:
            self._looked = now
            self._asker.seen(title, None if self._dialogs else self._words.tail())

    def _hear(self) -> None:
        if not self._cancel.cancelled:  # then nothing gives it more time
            self._heard = time.monotonic()

    def _serve(self, request) -> None:
        self._hear()
        if request.method == "session/request_permission":
            call = request.params.get("toolCall")
            self._permit(request, self._calls.completed(call if isinstance(call, dict) else {}))
        elif request.method == "elicitation/create":
            form = acp_client.form(self._name, self._asker.ref, request.params)
            if form is None:
                raise RpcError(INVALID_PARAMS, NO_FORM)

            def fill_in(cancel):
                return acp_client.filled_in(self._asker.front.fill_in(form, cancel))

            self._ask_user(request, fill_in, acp_client.FORM_CANCELLED)
        else:
            raise RpcError(METHOD_NOT_FOUND, "Method not found: %s" % request.method)

    def _permit(self, request, call: dict) -> None:
        options, asker = acp_client.options_of(request.params), self._asker
        if asker.yolo:
            request.answer(acp_client.chosen(options, ALLOW))
            return
        question = acp_client.question(self._name, asker.ref, call, options)
        permission = acp_client.permission(self._name, asker.ref, asker.tool, call)
        if permission.text and not shown_whole(permission.text):  # what is allowed must have been seen
            log.line(NOT_SHOWN % permission.pending.title)
            request.answer(acp_client.chosen(options, REJECT))
            return

        def put(cancel):
            if question:
                return acp_client.answered(options, asker.front.fill_in(question, cancel))
            return acp_client.chosen(options, asker.front.ask(permission, cancel))

        self._ask_user(request, put, acp_client.CANCELLED)

    def _ask_user(self, request, put, cancelled: dict) -> None:
        """Answers `request` with what `put(cancel)` makes of the user's answer, on a thread of its own."""
        with self._counting:
            if self._dialogs == MOST_DIALOGS:
                raise RpcError(INTERNAL_ERROR, "too many questions at a time")
            self._dialogs += 1
        threading.Thread(target=self._dialog, args=(request, put, cancelled), name="agent dialog",
                         daemon=True).start()

    def _dialog(self, request, put, cancelled: dict) -> None:
        result = None
        try:
            with self._asking, self._cancel.on_cancel(request.cancel.cancel):  # one dialog at a time
                request.cancel.check()
                result = put(request.cancel)
        except Cancelled:
            result = cancelled
        except Exception:
            log.traceback()
        with self._counting:
            self._dialogs -= 1
        self._hear()
        if result is None:
            request.fail(INTERNAL_ERROR, NOBODY)
        else:
            request.answer(result)
