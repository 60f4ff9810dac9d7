"""The model server of this process: found once for all who need it at the same time, and what was learned of
it.

A warm-up and a prompt may both need it: whoever comes first starts the search, and the others wait for its
result. Nothing is logged before a prompt has the server.
"""

from __future__ import annotations

import os
import threading

from mm import log
from mm.cancel import Cancel, Cancelled
from mm.errors import UserError
from mm.model.learned import Learned


class Connection:
    """`demo`: the built-in scripted model answers; `candidates`: where to look for a server
    that is not set, None for the usual ones.

    Cheap to make: what it needs is loaded with the first use.
    """

    def __init__(self, config, demo: bool = False, candidates=None, environ=os.environ):
        self._config, self._demo, self._candidates, self._environ = config, demo, candidates, environ
        self._lock = threading.Lock()
        self._search = None  # the one that runs
        self._found = None  # a find.Found
        self._unlogged = ()  # its lines, until a prompt has the server
        self._window = None
        self.learned = Learned()

    @property
    def model_name(self) -> str:
        """The model's name as far as it is known; "" before that."""
        found = self._found
        if found:
            return found.server.model
        return "demo" if self._demo else self._config.model_name or ""

    @property
    def window(self):
        """What is known of the model's context window, a window.Window."""
        if self._window is None:
            from mm.model.window import Window

            with self._lock:
                self._window = self._window or Window(self._config.model_context_window)
        return self._window

    def server(self, cancel: Cancel):
        """The model server, an http.Server. Raises UserError if none answers, Cancelled.

        One that was found, not set, and does not listen any more is looked for again.
        """
        from mm.model import find

        found = self._found
        if found and found.origin not in (find.SET, find.DEMO) and find.refuses(found.server.url, cancel):
            self._forget()
        found = self._look(cancel)
        with self._lock:
            lines, self._unlogged = self._unlogged, ()
        for line in lines:
            log.line(line)
        return found.server

    def warm_up(self) -> None:
        """Loads what a first request needs, finds the server and its window; raises and logs nothing."""
        from mm.model import chat, window  # noqa: F401 (loaded is what they should be)

        try:
            self.window.look_ahead(self._look(Cancel()).server)
        except (UserError, Cancelled):
            pass  # the prompt says it

    def failed(self, problem: UserError) -> None:
        """Takes the error that ended a turn: a model that has gone, and was not set, is chosen anew."""
        chosen = not self._config.model_name and not self._demo
        if chosen and getattr(problem, "kind", None) == "model_not_found":
            self._forget()

    def _forget(self) -> None:
        with self._lock:
            self._found = self._window = None
            self.learned = Learned()

    def _look(self, cancel: Cancel):
        done = threading.Event()  # one for each who waits, because a Cancel sets what it waits for
        with self._lock:
            if self._found:
                return self._found
            if self._search is None:
                self._search = _Search()
                threading.Thread(target=self._find, args=(self._search,), name="find", daemon=True).start()
            search = self._search
            search.waiting.append(done)
        cancel.wait(done)
        if search.error:
            raise search.error
        return search.found

    def _find(self, search: _Search) -> None:
        """Runs in the search's thread."""
        from mm.model import find

        try:
            search.found = find.locate(self._config, self._demo, Cancel(), self._environ, self._candidates)
        except Exception as error:  # whoever waits raises it
            search.error = error
        with self._lock:
            self._search, self._found, found = None, search.found, search.found
            self._unlogged = tuple(filter(None, (found.line, *found.notes))) if found else ()
            for done in search.waiting:
                done.set()


class _Search:
    """A search, and the events of those who wait for it."""

    def __init__(self):
        self.found = self.error = None
        self.waiting = []
