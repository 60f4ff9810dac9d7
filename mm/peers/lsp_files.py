"""The files that a language server is shown, and what it finds wrong with them.

A server must never speak of an old text: before it is asked anything, the caller shows it every open file as
it is on disk. What it has published about a file is forgotten *before* the file's change is sent. Only what
comes after that counts, and if the server names versions, only what is about the version that was sent.

published() runs on the reader, all else on the caller's thread; the server's `news` guards what both touch.
"""

from __future__ import annotations

import time
from collections import OrderedDict

from mm.cancel import Cancel
from mm.peers import uris

# At most so many files are open at a time.
OPEN_FILES = 50
# Seconds for the diagnostics of a file; for the first ones of a server; for a server to read what it was
# sent; for what it says when a file is closed.
PATIENCE, FIRST_PATIENCE, READING, CLOSING = 5, 20, 2, 0.5
# Seconds without news after which diagnostics are complete: if there are some; if there are none, which
# is also what some servers say before they have looked.
QUIET, QUIET_EMPTY = 0.3, 1.0

# What happened to a file on disk, as the protocol numbers it.
CREATED, CHANGED, DELETED = 1, 2, 3


class _File:
    """An open file as the server knows it. `found` is the last list that was published about this text, or
    None, at `when`; `known` the last one about any text of the file."""

    __slots__ = ("language", "text", "version", "found", "when", "known")

    def __init__(self, language, text, version, known=None):
        self.language, self.text, self.version, self.known = language, text, version, known
        self.found, self.when = None, 0.0


class OpenFiles:
    """The open files of a server (lsp.LanguageServer), by their URIs as uris.to_uri() makes them. All may
    raise its ServerError, and Cancelled.
    """

    def __init__(self, server):
        self._server = server
        self._files = OrderedDict()  # the most recently used last
        # the last one given: they never begin anew, so that no two texts of a file share one
        self._versions = 0
        self._names_versions = False
        self._patience = FIRST_PATIENCE
        self._unread = set()  # URIs of files whose text was sent and of which nothing was heard since
        self._heard = None  # the path of the file of which something was published last

    def __iter__(self):
        return iter(list(self._files))

    def text(self, uri):
        """The file's text as the server knows it; None if it is not open."""
        return self._files[uri].text if uri in self._files else None

    def version(self, uri):
        """The number of that text; None if it is not open."""
        return self._files[uri].version if uri in self._files else None

    def show(self, uri: str, language: str, text: str) -> bool:
        """The file has this text: opens it or sends the change. Returns whether it was opened."""
        file = self._files.get(uri)
        if file is None:
            self._open(uri, language, text)
            return True
        if file.text != text:
            self._change(uri, text)
            sync = self._server.capabilities.get("textDocumentSync")
            save = sync.get("save") if isinstance(sync, dict) else None
            more = {"text": text} if isinstance(save, dict) and save.get("includeText") else {}
            self._server.tell("textDocument/didSave", dict(textDocument={"uri": uri}, **more))
            self.changed_on_disk([(uri, CHANGED)])
        return False

    def use(self, uri: str) -> None:
        """Makes the file the most recently used one, and closes the others beyond OPEN_FILES."""
        self._files.move_to_end(uri)
        while len(self._files) > OPEN_FILES:
            self.forget(next(iter(self._files)))

    def forget(self, uri: str) -> None:
        with self._server.news:
            del self._files[uri]
        self._server.tell("textDocument/didClose", {"textDocument": {"uri": uri}})

    def changed_on_disk(self, changes) -> None:
        """`changes`: pairs of a URI and CREATED, CHANGED or DELETED."""
        reported = [{"uri": uri, "type": kind} for uri, kind in changes]
        self._server.tell("workspace/didChangeWatchedFiles", {"changes": reported})

    def diagnostics(self, uri: str, just_opened: bool, cancel: Cancel) -> tuple:
        """(found, is_new): the list of what the server finds wrong with the file. Not `is_new`: it reports
        nothing in time, and this is what it reported before, None if it never did.

        What was published before may be old though the text is not, because other files have changed since.
        So the server is made to look again in the one way that all heed: the file is closed and opened. They
        ignore the same text (clangd), or are silent if the list stays the same (typescript-language-server).
        """
        if self._server.capabilities.get("diagnosticProvider"):
            report = self._server.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}}, cancel)
            found = report.get("items") if isinstance(report, dict) else None
            return (found if isinstance(found, list) else []), True
        if not just_opened:
            self._open_again(uri, cancel)
        file = self._files[uri]
        self._server.wait_until(lambda: self._quiet_at(file), self._patience, cancel)
        if file.found is None:
            return file.known, False
        self._patience = PATIENCE
        return file.found, True

    def catch_up(self, cancel: Cancel) -> None:
        """Waits until the server has read what it was sent, as far as that can be seen.

        Some (clangd) answer from what they knew before. They have read a text when they publish what they
        find wrong with it.
        """
        unread, self._unread = self._unread, set()
        files = [self._files[uri] for uri in unread if uri in self._files and self._names_versions]
        self._server.wait_until(lambda: 0 if all(file.found is not None for file in files) else None,
                                READING, cancel)

    def published(self, uri, version, found: list) -> None:
        """On the reader, which holds `news`."""
        path = uris.to_path(uri)
        file = self._files.get(uris.to_uri(path)) if path else None
        named = isinstance(version, int)
        self._heard = path
        self._names_versions = self._names_versions or named
        if file is not None and named == self._names_versions:
            file.known = found
            if not named or version >= file.version:
                file.found, file.when = found, time.monotonic()

    def _open(self, uri, language, text, known=None):
        self._versions += 1
        with self._server.news:
            self._files[uri] = _File(language, text, self._versions, known)
        self._unread.add(uri)
        self._server.tell("textDocument/didOpen", {"textDocument": {
            "uri": uri, "languageId": language, "version": self._versions, "text": text}})

    def _change(self, uri, text):
        self._versions += 1
        with self._server.news:
            file = self._files[uri]
            file.text, file.version, file.found = text, self._versions, None
        self._unread.add(uri)
        self._server.tell("textDocument/didChange", {
            "textDocument": {"uri": uri, "version": file.version}, "contentChanges": [{"text": text}]})

    def _open_again(self, uri, cancel):
        file = self._files[uri]
        self._heard = None
        self.forget(uri)
        if not self._names_versions:  # what it says of the closing must not be taken for the opening's
            path = uris.to_path(uri)
            self._server.wait_until(lambda: 0 if self._heard == path else None, CLOSING, cancel)
        self._open(uri, file.language, file.text, file.known)

    def _quiet_at(self, file):
        """When what was published about the file will be complete; None while there is nothing."""
        return None if file.found is None else file.when + (QUIET if file.found else QUIET_EMPTY)
