"""Asking another ACP agent, as its client. Each question starts a program of its own, without earlier state.

    ask     starts the program: initialize, session/new, session/prompt -> an Answer, or AgentFailed

Threads of a question, beside those of the program (program.py). The caller waits for the end or the cancel.
The *talk* sends the requests and waits for their answers, with the time limits; it goes on for a moment after
a cancel, so that the agent can end in order. A dialog with the user has a thread of its own. All but the
caller's are daemons and end with the program.
"""

from __future__ import annotations

import os
import threading
import time
from collections import namedtuple

from mm import __version__, log
from mm.cancel import Cancel, Cancelled
from mm.events import ALLOW
from mm.peers import acp_client
from mm.peers.program import Program, shown
from mm.secrecy import without_own
from mm.text import clean_terminal, one_line
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
PROGRESS_INTERVAL = 0.25  # seconds between two looks at a growing answer
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
BUG = "a bug in mm, its traceback is in the log"
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
    """A started agent and the conversation with it."""

    def __init__(self, name, entry, cwd, variables, asker, idle_limit, cancel):
        self._name, self._argv, self._cwd, self._asker, self._cancel = name, entry.argv, cwd, asker, cancel
        self._idle_limit = self._limit = idle_limit
        self._heard = self._looked = 0
        self._session = self._outcome = None
        self._words, self._calls = acp_client.Words(), acp_client.ToolCalls()
        self._asking, self._counting, self._dialogs = threading.Lock(), threading.Lock(), 0
        try:
            self._program = Program("agent " + name, entry.argv, cwd, variables, self._serve, self._notified)
        except (OSError, ValueError) as error:
            named = getattr(error, "filename", None) or entry.argv[0]
            why = getattr(error, "strerror", None) or error
            raise AgentFailed(NO_START % (name, named, why)) from None
        self._peer = self._program.peer

    def _thread(self, work, *arguments) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, name="agent " + self._name, daemon=True)
        thread.start()
        return thread

    def hold(self, prompt: str) -> Answer:
        """The whole conversation; the program is about to end when this returns."""
        over = threading.Event()
        talk = self._thread(self._talk, prompt, over)
        try:
            self._cancel.wait(over)
        except Cancelled:
            self._thread(self._call_off, talk)
            talk.join(CANCEL_LIMIT)
            raise
        self._program.close()
        if isinstance(self._outcome, Answer):
            return self._outcome
        raise AgentFailed(self._outcome, clean_terminal(self._words.last()))

    def _call_off(self, talk: threading.Thread) -> None:
        """Ends the cancelled talk in order, and then the program."""
        if self._session:
            self._peer.post("session/cancel", {"sessionId": self._session})
            talk.join(CANCEL_LIMIT)
        self._program.close()

    # The talk

    def _talk(self, prompt: str, over: threading.Event) -> None:
        try:
            self._outcome = self._converse(prompt)
        except AgentFailed as failure:
            self._outcome = str(failure)
        except Cancelled:
            pass  # between two requests; nobody waits for an outcome
        except Exception:
            log.traceback()
            self._outcome = BUG
        over.set()

    def _converse(self, prompt: str) -> Answer:
        hello = self._request("initialize", min(INITIALIZE_LIMIT, self._idle_limit),
                              protocolVersion=PROTOCOL_VERSION, clientCapabilities=CAPABILITIES,
                              clientInfo={"name": "mm", "version": "v" + __version__})
        if hello.get("protocolVersion") != PROTOCOL_VERSION:
            raise AgentFailed(OTHER_VERSION % (self._name, shown(hello.get("protocolVersion")),
                                               PROTOCOL_VERSION))
        session = self._request("session/new", self._idle_limit, cwd=self._cwd,
                                mcpServers=[]).get("sessionId")
        if not isinstance(session, str):
            raise AgentFailed(NO_SESSION % self._name)
        self._session = session
        self._cancel.check()
        result = self._request("session/prompt", self._idle_limit, sessionId=session,
                               prompt=[{"type": "text", "text": prompt}])
        stop_reason = one_line(acp_client.text(result.get("stopReason")) or "no stop reason")
        return Answer(clean_terminal(self._words.all()), clean_terminal(self._words.last()), stop_reason,
                      len(self._calls), acp_client.tokens(result))

    def _request(self, method: str, limit: float, **params) -> dict:
        """The result of a request, an object. Raises AgentFailed."""
        self._heard, self._limit = time.monotonic(), limit
        try:
            result = self._peer.request(method, params, Cancel(), limit=self)
        except Closed:
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
        """Seconds in which it must say something; while it waits for the user it need not."""
        return self._limit if self._dialogs else self._heard + self._limit - time.monotonic()

    # What the agent says and asks, all on the reader

    def _notified(self, method: str, params: dict) -> None:
        update = params.get("update")
        is_ours = method == "session/update" and params.get("sessionId") in (self._session, None)
        if not is_ours or not isinstance(update, dict):
            return
        self._heard = time.monotonic()
        kind, title = update.get("sessionUpdate"), None
        if kind == "agent_message_chunk":
            self._words.say(acp_client.text_of(update.get("content")), update.get("messageId"))
        elif kind in ("tool_call", "tool_call_update"):
            if kind == "tool_call":
                self._words.call()
            title = self._calls.update(update)
        else:
            return
        if title or self._heard - self._looked >= PROGRESS_INTERVAL:
            self._looked = self._heard
            self._asker.seen(title, None if self._dialogs else self._words.tail())

    def _serve(self, request) -> None:
        self._heard = time.monotonic()
        call = request.params.get("toolCall")
        if request.method == "session/request_permission":
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

        def put(cancel):
            if question:
                return acp_client.answered(options, asker.front.fill_in(question, cancel))
            return acp_client.chosen(options, asker.front.ask(permission, cancel))

        self._ask_user(request, put, acp_client.CANCELLED)

    def _ask_user(self, request, put, cancelled: dict) -> None:
        """Answers `request` with what `put(cancel)` makes of the user's answer, on a thread of its own, one
        after the other.
        """
        with self._counting:
            if self._dialogs == MOST_DIALOGS:
                raise RpcError(INTERNAL_ERROR, "too many questions at a time")
            self._dialogs += 1
        self._thread(self._dialog, request, put, cancelled)

    def _dialog(self, request, put, cancelled: dict) -> None:
        result = None
        try:
            with self._asking, self._cancel.on_cancel(request.cancel.cancel):
                request.cancel.check()
                result = put(request.cancel)
        except Cancelled:
            result = cancelled
        except Exception:
            log.traceback()
        with self._counting:
            self._dialogs -= 1
            self._heard = time.monotonic()
        if result is None:
            request.fail(INTERNAL_ERROR, NOBODY)
        else:
            request.answer(result)
