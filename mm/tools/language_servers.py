"""The language servers of a session: each is started when it is first asked, and shown the files as they are.

A server must not answer from an old text: before every question each file that it has open is looked at
again, whoever changed it: mm's tools, a command or the user. So are the project's other files, because not
every server looks at the disk again, and a rename would miss what a new file holds. A change there is
reported, and the file is opened as well, because some servers (clangd) heed nothing else.
"""

from __future__ import annotations

import os
from collections import OrderedDict

from mm import safe_files
from mm.peers import languages, uris
from mm.peers.lsp import LanguageServer, ServerError
from mm.peers.lsp_files import CHANGED, CREATED, DELETED
from mm.text import one_line
from mm.tools import files, similar
from mm.tools.rename import NAME
from mm.tools.tool import ToolError

# Servers that run at a time; ends after which a server is not started again.
SERVERS, FAILURES = 8, 3
# Of the files that have changed: how many are opened, and up to how many bytes.
OPENED, OPENED_SIZE = 20, 1024 * 1024

NO_SERVER = "[lsp: there is no language server for %s. There is one for %s]"
OFF = "%s is off after %d failures"


class LanguageServers:
    """`usable` are the languages that have a server on this machine (languages.Found). Every call may raise
    ToolError, ServerError and Cancelled."""

    def __init__(self, usable, folder: str, environ: dict):
        self.usable = usable
        self.root = os.path.realpath(folder)
        self._environ = environ
        # (language, project's root) -> LanguageServer, the last used at the end
        self._servers = OrderedDict()
        self._problems = {}  # the same -> why it is not started again
        self._ends = {}  # the same -> how often it has ended
        self._shown = {}  # server -> {URI: the file's state when the server was last shown it}
        self._sources = {}  # server -> the files of its languages in its folder, as they last were

    def close(self) -> None:
        """Ends all of them; returns at once. The next question starts them again."""
        for server in list(self._servers.values()):
            self._end(server)
        self._servers.clear()

    def _end(self, server) -> None:
        server.close()
        del self._shown[server], self._sources[server]

    def open(self, context, place) -> tuple:
        """(server, URI, whether it was just opened): the server for a file, which it is shown."""
        found, root = self._language(place)
        data = files.read(NAME, place)
        if data is None:
            raise ToolError(similar.missing(NAME, place, context.folder, context.cancel))
        text = files.decode(NAME, place, data, "search it").text
        server = self._running(found, root, context.cancel)
        uri = uris.to_uri(place.real)
        self._look_again(context, server, found.extensions, uri)
        just_opened = server.files.show(uri, found.extensions[_extension(place.real)], text)
        server.files.use(uri)
        self._shown[server][uri] = _state(place.real)
        return server, uri, just_opened

    def _language(self, place) -> tuple:
        """The language of a file (languages.Found) and the root of its project."""
        extension = _extension(place.real)
        for found in self.usable:
            if extension in found.extensions:
                root = languages.root_of(place.real, found.markers, safe_files.folders_up_from(self.root))
                if root or not found.marked:
                    return found, root or self.root
        known = ", ".join("%s (%s)" % (found.name, _name(found)) for found in self.usable if not found.marked)
        raise ToolError(NO_SERVER % (extension + " files" if extension else one_line(place.given), known))

    def _running(self, found, root, cancel):
        key = (found.name, root)
        server = self._servers.pop(key, None)
        if server is not None and not server.alive:
            self._end(server)
            server, self._ends[key] = None, self._ends.get(key, 0) + 1
            if self._ends[key] == FAILURES:
                self._problems[key] = OFF % (_name(found), FAILURES)
        if server is None:
            server = self._started(key, found, root, cancel)
        self._servers[key] = server
        if len(self._servers) > SERVERS:
            self._end(self._servers.popitem(last=False)[1])
        return server

    def _started(self, key, found, root, cancel):
        if key in self._problems:
            raise ServerError(self._problems[key])
        server = LanguageServer(_name(found), found.argv, root, self._environ, found.options)
        sources = self._look(server, found.extensions)  # what comes while it starts is reported again
        try:
            server.start(cancel)
        except ServerError as problem:
            self._problems[key] = str(problem)
            raise
        self._shown[server], self._sources[server] = {}, sources
        return server

    def _look(self, server, extensions) -> dict:
        folder = server.root if uris.is_inside(server.root, self.root) else self.root
        return languages.sources(folder, extensions)

    def _look_again(self, context, server, extensions, asked) -> None:
        """Shows the server what has become of its open files (except `asked`) and of its project's."""
        before, now = self._sources[server], self._look(server, extensions)
        self._sources[server] = now
        is_open = set(server.files)
        changes = [(path, kind) for path, kind in _changes(before, now) if uris.to_uri(path) not in is_open]
        if changes:
            server.files.changed_on_disk([(uris.to_uri(path), kind) for path, kind in changes])
        opened = [path for path, kind in changes if kind != DELETED and now[path][1] <= OPENED_SIZE]
        for path in list(map(uris.to_path, server.files)) + opened[:OPENED]:
            uri, state = uris.to_uri(path), _state(path)
            if uri != asked and self._shown[server].get(uri) != state:
                self._show(context, server, uri, path, extensions.get(_extension(path)))
                self._shown[server][uri] = state

    def _show(self, context, server, uri, path, language) -> None:
        text = text_of(context, path)
        if text is not None:
            server.files.show(uri, language, text)
        elif uri in server.files:
            server.files.forget(uri)
            server.files.changed_on_disk([(uri, DELETED)])


def _changes(before, now) -> list:
    """(path, what happened) for each of the files that differ."""
    changes = []
    for path in sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path)):
        kind = CREATED if path not in before else CHANGED if path in now else DELETED
        if kind != DELETED or not os.path.lexists(path):  # the look may not have come so far this time
            changes.append((path, kind))
    return changes


def text_of(context, path: str) -> str | None:
    """The text of any file, None if it has none that could be shown."""
    try:
        place = context.resolve(NAME, path)
        data = files.read(NAME, place)
        return None if data is None else files.decode(NAME, place, data, "search it").text
    except ToolError:
        return None


def _extension(path):
    return os.path.splitext(path)[1]


def _name(found):
    return os.path.splitext(os.path.basename(found.argv[0]))[0]


def _state(path):
    """What differs when a file has changed; None if there is none."""
    try:
        return languages.state(os.stat(path))
    except OSError:
        return None
