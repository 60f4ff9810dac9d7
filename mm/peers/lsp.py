"""A language server, as mm is its client: https://microsoft.github.io/language-server-protocol. Started,
asked, ended.

Threads: those of its Program. The reader answers the server's own requests from memory and keeps what the
server publishes; `news` guards that, and is notified of every notification. The caller's thread asks and
waits; a session makes one call at a time. Every wait ends with its Cancel, with a time limit or with the
connection. The peer's writer does all writing, because a server that does not read would hold up whoever
writes.
"""

from __future__ import annotations

import os
import threading
import time

from mm.cancel import Cancel, Cancelled, Deadline
from mm.peers import uris
from mm.peers.lsp_files import OpenFiles
from mm.peers.program import Program, shown
from mm.secrecy import without_own
from mm.text import one_line
from mm.wire.framing import HEADERS
from mm.wire.messages import METHOD_NOT_FOUND, RemoteError
from mm.wire.peer import Closed, TimedOut

# Seconds: for an answer; for the first one after the start, and for the one to `initialize`; for `shutdown`.
LIMIT, FIRST_LIMIT, SHUTDOWN = 20, 60, 2
# Seconds that a server which has just started gets to say that it is indexing; to have done with it.
SETTLE, INDEXING_LIMIT = 0.5, 20
# Work in progress of which nothing was heard for so many seconds is over: there are servers that never say
# so. So much of it is kept.
SILENT, WORKS = 60, 1000
# What the protocol calls "content modified": so many tries in all, after so many seconds each.
CONTENT_MODIFIED, TRIES, PAUSE = -32801, 3, 0.2

NOT_STARTED = "%s did not start: %s"
ENDED = "%s ended (%s)"
NO_ANSWER = "%s did not answer in %g s"
INDEXING = "%s is still indexing, try again"
REFUSED = "%s: %s"

_NOTHING_TO_SAY = ("client/registerCapability", "client/unregisterCapability",
                   "window/workDoneProgress/create", "window/showMessageRequest")

_CAPABILITIES = {
    "general": {"positionEncodings": ["utf-32", "utf-16"]},
    "textDocument": {
        "synchronization": {"didSave": True},
        "hover": {"contentFormat": ["plaintext", "markdown"]},
        "definition": {"linkSupport": True},
        "references": {},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "rename": {"prepareSupport": True},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {},
    },
    "workspace": {
        "workspaceFolders": True, "configuration": True, "symbol": {},
        "workspaceEdit": {"documentChanges": True},
    },
    "window": {"workDoneProgress": True},
}


class ServerError(Exception):
    """Why there is no answer, in one line without brackets."""


class Refused(ServerError):
    """The server answered with an error: another question may go better."""


class LanguageServer:
    """The server for the project in the folder `root`. `name` is what messages call it; `options` go with
    `initialize`. start() once; `files` are what it is shown, `capabilities` and `encoding` what it said of
    itself."""

    def __init__(self, name: str, argv, root: str, environ: dict, options=None):
        self.name, self.root = name, root
        self.capabilities, self.encoding = {}, "utf-16"
        self.news = threading.Condition()
        self.files = OpenFiles(self)
        self._argv, self._environ, self._options = argv, environ, options
        self._folder = {"uri": uris.to_uri(root), "name": os.path.basename(root) or root}
        self._program = None
        self._asked = self._answered = False  # a first question
        self._indexing = {}  # the tokens of work in progress, and when each was heard of last
        self._started_at = 0.0

    # Its life

    def start(self, cancel: Cancel) -> None:
        """Starts the program and shakes hands. Raises ServerError, after which it is of no use, and
        Cancelled.
        """
        try:
            self._program = Program("lsp " + self.name, self._argv, self.root, without_own(self._environ),
                                    self._serve, self._notified, HEADERS)
        except (OSError, ValueError) as error:
            raise ServerError(NOT_STARTED % (self.name, getattr(error, "strerror", None) or error)) from None
        self._program.peer.on_close(self._wake)
        try:
            answer = self._request("initialize", {
                "processId": os.getpid(), "clientInfo": {"name": "mm"}, "rootPath": self.root,
                "rootUri": self._folder["uri"], "workspaceFolders": [self._folder],
                "capabilities": _CAPABILITIES, "initializationOptions": self._options}, cancel, FIRST_LIMIT)
        except BaseException as problem:
            self._program.close()
            if isinstance(problem, (RemoteError, ServerError)):
                reason = one_line(str(problem).replace(self.name, "it", 1), 200)
                raise ServerError(NOT_STARTED % (self.name, reason)) from None
            raise
        self.capabilities = as_dict(as_dict(answer).get("capabilities"))
        self.encoding = self.capabilities.get("positionEncoding") or "utf-16"
        self.tell("initialized", {})
        self._started_at = time.monotonic()

    @property
    def alive(self) -> bool:
        return self._program is not None and not self._program.peer.closed and self._program.alive()

    def close(self) -> None:
        """Takes leave of it; returns at once."""
        if self.alive:
            threading.Thread(target=self._take_leave, name="lsp %s leave" % self.name, daemon=True).start()
        elif self._program is not None:
            self._program.close()

    def _take_leave(self):
        try:
            self._request("shutdown", None, Cancel(), SHUTDOWN)
            self.tell("exit", None)
            self._program.peer.flush(SHUTDOWN)
        except (ServerError, RemoteError):
            pass  # it is ended all the same
        self._program.close()

    def death(self) -> ServerError:
        ending = self._program.ending()
        return ServerError(ENDED % (self.name, ending.how) + (": " + ending.said if ending.said else ""))

    # Talking

    def ask(self, method: str, params, cancel: Cancel):
        """The result. Raises ServerError (Refused if the server says no) and Cancelled."""
        for attempt in range(TRIES):
            limit, self._asked = LIMIT if self._asked else FIRST_LIMIT, True
            try:
                result = self._request(method, params, cancel, limit)
            except RemoteError as error:
                self._answered = True
                if error.code != CONTENT_MODIFIED or attempt == TRIES - 1:
                    raise Refused(REFUSED % (self.name, one_line(error.message, 200))) from None
                cancel.sleep(PAUSE)
            else:
                self._answered = True
                return result

    def _request(self, method, params, cancel, seconds):
        try:
            return self._program.peer.request(method, params, cancel, _cancel_request, Deadline(seconds))
        except TimedOut:
            first = not self._answered and self._started_at
            raise ServerError(INDEXING % self.name if first else NO_ANSWER % (self.name, seconds)) from None
        except Closed:
            raise self.death() from None

    def tell(self, method: str, params) -> None:
        """Sends a notification; returns at once. If the server is gone, the next question reports it."""
        self._program.peer.post(method, params)

    def settle(self, cancel: Cancel) -> bool:
        """Waits until it has no work in progress, INDEXING_LIMIT seconds at most; returns whether it has
        none.

        A question about a whole project that is still being read gets a part of the answer. A server that has
        just started is given a moment to say that it reads.
        """
        begin = self._started_at + SETTLE
        self.wait_until(lambda: max(begin, self._busy_until()), INDEXING_LIMIT, cancel)
        self.files.catch_up(cancel)
        with self.news:
            return self._busy_until() <= time.monotonic()

    def _busy_until(self) -> float:
        """When its work in progress counts as over if nothing is heard of it; the caller holds `news`."""
        return max(self._indexing.values(), default=-SILENT) + SILENT

    def wait_until(self, due, seconds: float, cancel: Cancel) -> None:
        """Waits for the moment that `due()` names, None: not known yet, at most `seconds`.

        Raises Cancelled, and ServerError if the server ends.
        """
        deadline = time.monotonic() + seconds
        with cancel.on_cancel(self._wake), self.news:
            while self.alive and not cancel.cancelled:
                moment, now = due(), time.monotonic()
                until = deadline if moment is None else min(moment, deadline)
                if now >= until:
                    break
                self.news.wait(until - now)
        cancel.check()
        if not self.alive:
            raise self.death()

    def _wake(self):
        with self.news:
            self.news.notify_all()

    # What comes from it, on the reader

    def _serve(self, request) -> None:
        if request.method == "workspace/configuration":
            request.answer([None] * len(as_list(request.params.get("items"))))
        elif request.method == "workspace/workspaceFolders":
            request.answer([self._folder])
        elif request.method == "workspace/applyEdit":
            request.answer({"applied": False})
        elif request.method in _NOTHING_TO_SAY:
            request.answer(None)
        else:
            request.fail(METHOD_NOT_FOUND, "Method not found: " + one_line(request.method))

    def _notified(self, method, params) -> None:
        with self.news:
            if method == "textDocument/publishDiagnostics":
                self.files.published(params.get("uri"), params.get("version"),
                                     as_list(params.get("diagnostics")))
            elif method == "$/progress":
                kind, token = as_dict(params.get("value")).get("kind"), shown(params.get("token"))
                begins = kind == "begin" and len(self._indexing) < WORKS
                if begins or kind == "report" and token in self._indexing:
                    self._indexing[token] = time.monotonic()
                elif kind == "end":
                    self._indexing.pop(token, None)
            self.news.notify_all()


def _cancel_request(number):
    return "$/cancelRequest", {"id": number}


def as_dict(value) -> dict:
    return value if isinstance(value, dict) else {}


def as_list(value) -> list:
    return value if isinstance(value, list) else []
