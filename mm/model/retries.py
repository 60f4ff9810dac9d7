"""What is done about a request that failed before the first word of its answer: a wait, a fix, another try,
or the error.

What helped is kept in the server's Learned: the next request begins with it. The rules are in failures.RULES,
and in docs/errors.md with their lines.
"""

from __future__ import annotations

import time

from mm.cancel import Cancel
from mm.model.learned import Learned
from mm.model.http import ANSWERS_AT, ModelError, Server, shown
from mm.model.waits import BUSY, LOADING, Listener, Wait

# Between the tries, in seconds; then the last again and again.
PAUSES = (1, 2, 4, 5)
# A model that has not been loaded after this will not be.
LOADING_SECONDS = 600
# How often a busy server is asked again, and the longest pause that it may ask for.
BUSY_TRIES, LONGEST_PAUSE = 5, 600

SECOND_TRY = "%s; the second try succeeded"
FIXED = "%s accepts requests only %s: they are sent that way from now on"
LEFT_OUT = ("⚠️ %s cannot take a schema of the MCP server %s (%s): its tools are left out. "
            "Name the tool at fault in tools.disabled.")


class Attempts:
    """The tries of one request. `server` is the one to ask."""

    def __init__(self, server: Server, cancel: Cancel, listener: Listener, learned: Learned):
        self.server = server._replace(url=learned.url or server.url)
        self._set_url = server.url
        self._cancel, self._listener, self._learned = cancel, listener, learned
        self._fixes = learned.fixes
        self._without = None  # what is still to be tried against a schema: tuples of fixes
        self._body = {}  # the request before any fix
        self._count = {}  # kind -> how often it came
        self._waits = {}  # kind -> the Wait
        self._forgiven = []  # errors after which the second try may succeed
        self._misled = None  # what was wrong with the URL that was set

    def fixed(self, body: dict) -> dict:
        """The request as this server takes it; the same object if nothing is changed."""
        self._body = body
        if not self._fixes:
            return body
        from mm.model import fixes

        return fixes.fixed(body, self._fixes)

    def succeeded(self) -> None:
        """The server answers: what was changed for that is kept."""
        learned = self._learned
        for error in self._forgiven:
            self._listener.log(SECOND_TRY % error)
        if self.server.url != (learned.url or self._set_url):
            self._listener.log(ANSWERS_AT % (shown(self._set_url), shown(self.server.url)))
        for fix in self._fixes:
            self._report(fix)
        learned.url, learned.fixes = self.server.url, self._fixes

    def _report(self, fix: str) -> None:
        """Logs a fix once; that tools were left out is said in each session that has them."""
        from mm.model import fixes

        address, left_out = shown(self.server.url), fixes.server_left_out(fix)
        if left_out and fixes.fixed(self._body, (fix,)) is not self._body:
            self._listener.notice(LEFT_OUT % (address, left_out, self._learned.refused))
        elif not left_out and fix not in self._learned.fixes:
            self._listener.log(FIXED % (address, fix))

    def failed(self, error: ModelError, body: dict) -> None:
        """Returns if the request is worth another try, after a wait if need be; else raises the error to
        show.

        `body` is what was sent. Raises Cancelled at once, also while it waits.
        """
        from mm.model import failures

        self._cancel.check()
        again = failures.RULES[error.kind].again if error.kind in failures.RULES else failures.NEVER
        count = self._count[error.kind] = self._count.get(error.kind, 0) + 1
        if again == failures.WAITING:
            self._wait(error, count)
        elif again == failures.FIXED and self._fix(error, body):
            pass
        elif again == failures.ONCE and not 400 <= (error.status or 0) < 500 and count == 1:
            self._forgiven.append(error)
        elif self._misled and error.kind in ("wrong_url", "redirect", "dropped", "protocol"):
            # what is wrong with the URL that was set helps more than what is wrong with the guess
            raise self._misled
        else:
            raise error

    def _wait(self, error: ModelError, count: int) -> None:
        kind = error.kind
        wait = self._waits.get(kind) or Wait(LOADING if kind == "loading" else BUSY, self._listener)
        self._waits[kind] = wait
        seconds = pause(kind, count, wait.age, error.retry_after)
        if seconds is None:
            raise error
        wait.pause(seconds, self._cancel)

    def _fix(self, error: ModelError, body: dict) -> bool:
        """Changes what may help; False if there is nothing left to change."""
        from mm.model import fixes

        if error.kind == "wrong_url":
            url = self.server.url.rstrip("/")
            if self.server.url != self._set_url or url.endswith("/v1"):
                return False
            self.server, self._misled = self.server._replace(url=url + "/v1"), error
            return True
        if error.kind == "schema":
            if self._without is None:
                self._without, self._learned.refused = fixes.without_servers(error, body), error.words
            if not self._without:
                return False
            self._fixes = (*self._learned.fixes, *self._without.pop(0))
            return True
        for fix in fixes.wanted(error, body, self.server.extra or {}):
            tried = (*self._fixes, fix)
            if fix not in self._fixes and fixes.fixed(body, tried) != body:
                self._fixes = tried
                return True
        return False


def pause(kind: str, count: int, waited: float, retry_after: float | None):
    """Seconds before try `count` + 1, `waited` seconds after the first failure; None: no more tries."""
    usual = PAUSES[min(count, len(PAUSES)) - 1]
    if kind == "loading":
        return usual if waited < LOADING_SECONDS else None
    seconds = usual if retry_after is None else retry_after
    return seconds if count <= BUSY_TRIES and seconds <= LONGEST_PAUSE else None


def seconds_in(retry_after: str):
    """The seconds that a Retry-After header asks for, a number or a date; None if it says nothing."""
    text = retry_after.strip()
    try:
        return max(0.0, float(text)) if text[:1].isdigit() else max(0.0, _moment(text) - time.time())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _moment(text: str) -> float:
    from email.utils import parsedate_to_datetime

    return parsedate_to_datetime(text).timestamp()
