"""What is done about a request that failed before the first word of its answer: waiting, mending, another try, or the error.

What helped is remembered for the process, by the server's URL: the next request begins with it. The rules stand in
failures.RULES, in docs/errors.md with their lines.
"""

from __future__ import annotations

import time

from mm.cancel import Cancel
from mm.model.http import ModelError, Server, shown
from mm.model.waits import BUSY, LOADING, Clock, Listener, Wait

# Between the tries, in seconds; then the last again and again.
PAUSES = (1, 2, 4, 5)
# A model that has not been loaded after this will not be.
LOADING_SECONDS = 600
# So many times a busy server is asked again, and so many seconds it may ask for before it is.
BUSY_TRIES, LONGEST_PAUSE = 5, 600

WELL = "%s; the second try went well"
TAKEN = "%s takes requests %s: from now on they are sent so"
LEFT_OUT = '⚠️ %s cannot take a schema of the MCP server %s (%s): its tools are left out. Name the tool at fault in tools.disabled.'
FOUND_AT = "%s answers at %s: from now on it is asked there"

# What helped, by the URL that was set: (the URL to ask, the mendings).
_helped = {}


class Attempts:
    """The tries of one request. `server` is the one to ask, `mendings` what to do with the request before."""

    def __init__(self, server: Server, cancel: Cancel, listener: Listener):
        url, self.mendings = _helped.get(server.url, (server.url, ()))
        self.server = server._replace(url=url)
        self._set_url = server.url
        self._cancel, self._listener = cancel, listener
        self._kept = ()  # the mendings from before a schema was refused
        self._without = None  # what is still to be tried against a schema: tuples of mendings
        self._refused = ""  # the server's words about that schema
        self._tries = {}  # kind -> how often it came
        self._since = {}  # kind -> the time of the first
        self._waits = {}
        self._forgiven = []
        self._misled = None  # what was wrong with the URL that was set

    def mended(self, body: dict) -> dict:
        """The request as this server takes it; the same object where nothing is changed."""
        if not self.mendings:
            return body
        from mm.model import mending

        return mending.mended(body, self.mendings)

    def succeeded(self) -> None:
        """The server answers: what was changed for that is kept."""
        for error in self._forgiven:
            self._listener.log(WELL % error)
        url, mendings = _helped.get(self._set_url, (self._set_url, ()))
        if url != self.server.url:
            self._listener.log(FOUND_AT % (shown(url), shown(self.server.url)))
        for name in self.mendings[len(mendings):]:
            self._tell_mended(name)
        _helped[self._set_url] = self.server.url, self.mendings

    def _tell_mended(self, name: str) -> None:
        from mm.model import mending

        left_out = mending.server_left_out(name)
        if left_out:
            self._listener.notice(LEFT_OUT % (shown(self.server.url), left_out, self._refused))
        else:
            self._listener.log(TAKEN % (shown(self.server.url), name))

    def failed(self, error: ModelError, body: dict) -> None:
        """Returns when the request is worth another try, after a wait if need be; else raises the error to show.

        `body` is what was sent. Raises Cancelled at once, also while it waits.
        """
        from mm.model import failures

        self._cancel.check()
        again = failures.RULES[error.kind].again if error.kind in failures.RULES else failures.NEVER
        if again == failures.WAITING:
            self._wait(error)
        elif again == failures.MENDED:
            self._mend(error, body)
        elif again == failures.ONCE and not 400 <= (error.status or 0) < 500 and error.kind not in self._tries:
            self._tries[error.kind] = 1
            self._forgiven.append(error)
        else:
            raise self._shown(error)

    def _wait(self, error: ModelError) -> None:
        kind = error.kind
        count = self._tries[kind] = self._tries.get(kind, 0) + 1
        since = self._since.setdefault(kind, time.monotonic())
        waited = time.monotonic() - since
        seconds = pause(kind, count, waited, error.retry_after)
        if seconds is None:
            raise self._shown(error)
        if kind not in self._waits:
            self._waits[kind] = Wait(LOADING if kind == "loading" else BUSY, self._listener)
        with Clock(self._waits[kind], since):
            self._cancel.sleep(seconds)

    def _mend(self, error: ModelError, body: dict) -> None:
        if error.kind == "wrong_url":
            url = self.server.url.rstrip("/")
            if self.server.url != self._set_url or url.endswith("/v1"):
                raise self._shown(error)
            self.server, self._misled = self.server._replace(url=url + "/v1"), error
            return
        from mm.model import mending

        if error.kind == "schema":
            self._leave_out(error, body)
            return
        for name in mending.wanted(error, body, self.server.extra or {}):
            if name not in self.mendings:
                mendings = (*self.mendings, name)
                if mending.mended(body, mendings) != body:
                    self.mendings = mendings
                    return
        raise self._shown(error)

    def _leave_out(self, error: ModelError, body: dict) -> None:
        """The next try against a schema that the server cannot take; raises the error when there is none."""
        from mm.model import mending

        if self._without is None:
            self._without, self._kept = mending.without_servers(error, body), self.mendings
            self._refused = error.words
        if not self._without:
            raise self._shown(error)
        self.mendings = (*self._kept, *self._without.pop(0))

    def _shown(self, error: ModelError) -> ModelError:
        """The error to raise: what is wrong with the URL that was set tells more than what is wrong with the guess."""
        return self._misled if self._misled and error.kind in ("wrong_url", "redirect", "dropped", "protocol") else error


def pause(kind: str, count: int, waited: float, retry_after: float | None):
    """Seconds before the next try after failure number `count`, `waited` seconds after the first; None: no more tries."""
    usual = PAUSES[min(count, len(PAUSES)) - 1]
    if kind == "loading":
        return usual if waited < LOADING_SECONDS else None
    seconds = usual if retry_after is None else retry_after
    return seconds if count <= BUSY_TRIES and seconds <= LONGEST_PAUSE else None


def seconds_in(retry_after: str):
    """The seconds that a Retry-After header asks for, a number or a date; None where it says nothing."""
    text = retry_after.strip()
    try:
        return max(0.0, float(text)) if text[:1].isdigit() else max(0.0, _moment(text) - time.time())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _moment(text: str) -> float:
    from email.utils import parsedate_to_datetime

    return parsedate_to_datetime(text).timestamp()
