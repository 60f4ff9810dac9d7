"""The language servers of a session: which one a file belongs to, started when it is first asked, shown the files as they are.

A server must not answer from an old text: before every question each file that it has open is looked at again, whoever changed
it, mm's tools, a command or the user.
"""

from __future__ import annotations

import os
from collections import OrderedDict

from mm import repository
from mm.peers import languages, uris
from mm.peers.lsp import LanguageServer, ServerError
from mm.peers.lsp_files import CHANGED, CREATED, DELETED
from mm.text import one_line
from mm.tools import files, similar
from mm.tools.lsp_actions import NAME
from mm.tools.tool import ToolError

# At most so many servers run at a time; a server that has ended so often is not started again.
SERVERS, FAILURES = 8, 3
# At most so many files that a rename has changed are opened.
RENAMED_OPENED = 20

NO_SERVER = "[lsp: there is no language server for %s. There is one for %s]"
OFF = "%s is off after %d failures"


class LanguageServers:
    """`usable` are the languages that have a server on this machine (languages.Found). Every call may raise ToolError,
    ServerError and Cancelled."""

    def __init__(self, usable, cwd: str, environ: dict):
        self.usable = usable
        self.root = os.path.realpath(cwd)
        self._environ = environ
        self._servers = OrderedDict()  # (language, project's root) -> LanguageServer, the most recently used last
        self._failed = {}  # the same -> the reason why it is not tried again
        self._ends = {}  # the same -> how often it has ended
        self._seen = {}  # (server, URI) -> what told the file's state when it was last shown
        self._changes = {}  # server -> [(URI, what happened)], not told yet
        self._registered = False

    def close(self) -> None:
        """Ends all of them; returns at once. The next question starts them again."""
        self._registered = False
        servers, self._servers = self._servers, OrderedDict()
        self._seen, self._changes = {}, {}
        for server in servers.values():
            server.close()

    def open(self, space, place, cancel):
        """The server for the file, which it is shown along with all that it has open: (server, URI, what show() told)."""
        found, root = self._language(place)
        data = files.read(NAME, place)
        if data is None:
            raise ToolError(similar.missing(NAME, place, space.cwd, cancel))
        text = files.decode(NAME, place, data, "search it").text
        server = self._running(space, found, root, cancel)
        uri = uris.to_uri(place.real)
        self._look_again(space, server, found.extensions, uri, cancel)
        told = server.files.show(uri, found.extensions[_extension(place.real)], text, cancel)
        server.files.use(uri, cancel)
        self._seen[server, uri] = _state(place.real)
        return server, uri, told

    def changed(self, server, changes) -> None:
        """The files of these workspace_edit.Changes were written: the server is told before the next question."""
        told = self._changes.setdefault(server, [])
        for change in changes:
            kind = DELETED if change.after is None else CREATED if change.before is None else CHANGED
            told.append((uris.to_uri(change.place.real), kind))

    def _language(self, place):
        """The language of a file and the root of its project."""
        extension = _extension(place.real)
        for found in self.usable:
            if extension in found.extensions:
                root = languages.root_of(place.real, found.markers, repository.folders_up_from(self.root))
                if root or not found.marked:
                    return found, root or self.root
        known = ", ".join("%s (%s)" % (found.name, _name(found)) for found in self.usable if not found.marked)
        raise ToolError(NO_SERVER % (extension + " files" if extension else one_line(place.given), known))

    def _running(self, space, found, root, cancel):
        key = (found.name, root)
        if key in self._failed:
            raise ServerError(self._failed[key])
        server = self._servers.pop(key, None)
        if server is not None and not server.alive:
            self._drop(server)
            self._ends[key] = self._ends.get(key, 0) + 1
            server = None
        if server is None:
            if self._ends.get(key, 0) >= FAILURES:
                raise ServerError(OFF % (_name(found), FAILURES))
            server = self._started(space, key, found, root, cancel)
        self._servers[key] = server
        while len(self._servers) > SERVERS:
            self._drop(self._servers.popitem(last=False)[1])
        return server

    def _drop(self, server):
        server.close()
        self._changes.pop(server, None)
        self._seen = {key: state for key, state in self._seen.items() if key[0] is not server}

    def _started(self, space, key, found, root, cancel):
        server = LanguageServer(_name(found), found.argv, root, uris.to_uri(root), self._environ, found.options)
        try:
            server.start(cancel)
        except ServerError as problem:
            self._failed[key] = str(problem)
            raise
        if not self._registered:
            self._registered = True
            space.on_close(self.close)
        return server

    def _look_again(self, space, server, extensions, asked, cancel):
        """Shows the server what has become of its open files, but the one that is `asked` about, and of those that were renamed
        in: these are opened, because not every server looks at the disk again."""
        changes = [change for change in self._changes.pop(server, ()) if change[0] not in server.files]
        if changes:
            server.files.changed_on_disk(changes, cancel)
        renamed = [uri for uri, kind in changes if kind != DELETED and _extension(uris.to_path(uri)) in extensions][:RENAMED_OPENED]
        for uri in list(server.files) + renamed:
            path = uris.to_path(uri)
            state = _state(path)
            if uri != asked and self._seen.get((server, uri)) != state:
                self._show(space, server, uri, path, extensions.get(_extension(path)), cancel)
                self._seen[server, uri] = state

    def _show(self, space, server, uri, path, language, cancel):
        try:
            place = space.resolve(NAME, path)
            data = files.read(NAME, place)
            text = None if data is None else files.decode(NAME, place, data, "search it").text
        except ToolError:
            text = None  # it cannot be read any more
        if text is not None:
            server.files.show(uri, language, text, cancel)
        elif uri in server.files:
            server.files.forget(uri, cancel)
            server.files.changed_on_disk([(uri, DELETED)], cancel)


def _extension(path):
    return os.path.splitext(path)[1]


def _name(found):
    return os.path.splitext(os.path.basename(found.argv[0]))[0]


def _state(path):
    """What differs when a file has changed; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
