"""The language servers of a session: which one a file belongs to, started when it is first asked, shown the
files as they are.

A server must not answer from an old text: before every question each file that it has open is looked at
again, whoever changed it, mm's tools, a command or the user. So are the project's other files: not every
server looks at the disk again, and a rename would miss what a new file holds. What has changed there is
reported, and opened as well, because some (clangd) heed nothing else.
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
from mm.tools.tool import ToolError
from mm.tools.rename import NAME

# Servers that run at a time; ends after which a server is not started again.
SERVERS, FAILURES = 8, 3
# Of the files that have changed: how many are opened, and up to how many bytes.
OPENED, OPENED_SIZE = 20, 1024 * 1024

NO_SERVER = "[lsp: there is no language server for %s. There is one for %s]"
OFF = "%s is off after %d failures"


class LanguageServers:
    """`usable` are the languages that have a server on this machine (languages.Found). Every call may raise
    ToolError, ServerError and Cancelled."""

    def __init__(self, usable, cwd: str, environ: dict):
        self.usable = usable
        self.root = os.path.realpath(cwd)
        self._environ = environ
        # (language, project's root) -> LanguageServer, the most recently used last
        self._servers = OrderedDict()
        self._failed = {}  # the same -> the reason why it is not tried again
        self._ends = {}  # the same -> how often it has ended
        self._seen = {}  # (server, URI) -> the file's state when it was last shown
        self._sources = {}  # server -> (folder, the files of its languages in there as they last were)

    def close(self) -> None:
        """Ends all of them; returns at once. The next question starts them again."""
        servers, self._servers = self._servers, OrderedDict()
        self._seen, self._sources = {}, {}
        for server in servers.values():
            server.close()

    def open(self, context, place, cancel):
        """The server for the file, which it is shown along with all that it has open: (server, URI, what
        show() returned).
        """
        found, root = self._language(place)
        data = files.read(NAME, place)
        if data is None:
            raise ToolError(similar.missing(NAME, place, context.folder, cancel))
        text = files.decode(NAME, place, data, "search it").text
        server = self._running(found, root, cancel)
        uri = uris.to_uri(place.real)
        self._look_again(context, server, found.extensions, uri)
        shown = server.files.show(uri, found.extensions[_extension(place.real)], text)
        server.files.use(uri)
        self._seen[server, uri] = _state(place.real)
        return server, uri, shown

    def _language(self, place):
        """The language of a file and the root of its project."""
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
            server = self._started(key, found, root, cancel)
        self._servers[key] = server
        while len(self._servers) > SERVERS:
            self._drop(self._servers.popitem(last=False)[1])
        return server

    def _drop(self, server):
        server.close()
        self._sources.pop(server, None)
        self._seen = {key: state for key, state in self._seen.items() if key[0] is not server}

    def _started(self, key, found, root, cancel):
        server = LanguageServer(_name(found), found.argv, root, uris.to_uri(root), self._environ,
                                found.options)
        folder = root if uris.is_inside(root, self.root) else self.root
        sources = languages.sources(folder, found.extensions)  # what comes while it starts is reported again
        try:
            server.start(cancel)
        except ServerError as problem:
            self._failed[key] = str(problem)
            raise
        self._sources[server] = folder, sources
        return server

    def _look_again(self, context, server, extensions, asked):
        """Shows the server what has become of its open files, but the one that is `asked` about, and of the
        others in its project.
        """
        sources, changes = self._changed_since(server, extensions)
        if changes:
            server.files.changed_on_disk(changes)
        opened = [uri for uri, kind in changes if kind != DELETED
                  and _is_small_source(uris.to_path(uri), extensions)][:OPENED]
        for uri in list(server.files) + opened:
            path = uris.to_path(uri)
            state = _state(path)
            if uri != asked and self._seen.get((server, uri)) != state:
                self._show(context, server, uri, path, extensions.get(_extension(path)))
                self._seen[server, uri] = state
        self._sources[server] = sources  # only now: who is cancelled midway begins anew

    def _changed_since(self, server, extensions):
        """The project's files as they are now, and (URI, what happened) for those that the server has not
        open.
        """
        folder, before = self._sources[server]
        now = languages.sources(folder, extensions)
        changes = {}
        for path in sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path)):
            kind = CREATED if path not in before else CHANGED if path in now else DELETED
            if kind != DELETED or not os.path.lexists(path):  # the look may not have come so far this time
                changes[uris.to_uri(path)] = kind
        open_files = set(server.files)
        return (folder, now), [change for change in changes.items() if change[0] not in open_files]

    def _show(self, context, server, uri, path, language):
        text = text_of(context, path)
        if text is not None:
            server.files.show(uri, language, text)
        elif uri in server.files:
            server.files.forget(uri)
            server.files.changed_on_disk([(uri, DELETED)])


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


def _is_small_source(path, extensions):
    state = _state(path)
    return _extension(path) in extensions and state is not None and state[1] <= OPENED_SIZE
