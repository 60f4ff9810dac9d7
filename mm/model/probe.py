"""One short question to a model server about itself, which it has a few seconds to answer.

Servers imitate one another and answer 200 to anything, so a status decides nothing: the caller looks at the
shape of the answer.
"""

from __future__ import annotations

import json
import re
import threading
from collections import namedtuple

from mm import urls
from mm.cancel import Cancel, Cancelled
from mm.model import http
from mm.model.http import ModelError, Server

# An answer that takes longer does not count.
QUESTION_SECONDS = 2

_MAX_ANSWER = 4 * 1024 * 1024

# `value`: the JSON value of the answer, None if it is not JSON or did not come in time; `software`: its
# Server header.
Said = namedtuple("Said", "value status software")
NOTHING = Said(None, 0, "")


def ask(server: Server, path: str, cancel: Cancel, body=None, seconds: float = QUESTION_SECONDS) -> Said:
    """What the server answers, whatever the status. Raises ModelError if nobody is there, and Cancelled."""
    cancel.check()
    late = Cancel()
    timer = threading.Timer(seconds, late.cancel)
    timer.daemon = True
    data = None if body is None else json.dumps(body).encode("ascii")
    with cancel.on_cancel(late.cancel):
        timer.start()
        try:
            with http.send(server, path, data, late, timeout=seconds) as exchange:
                said = Said(None, exchange.status, exchange.header("Server"))
                return said._replace(value=json.loads(exchange.read_text(_MAX_ANSWER, seconds)))
        except Cancelled:
            cancel.check()
            return NOTHING
        except ModelError as error:
            if error.kind in ("dropped", "timeout", "redirect", "protocol"):
                return NOTHING
            raise
        except (ValueError, RecursionError):
            return said
        finally:
            timer.cancel()


def at(value, *names):
    """value[name][name]…, None if there is no such value."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def listed(value) -> list:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def root_of(url: str) -> str:
    """The server's address without the path of its OpenAI interface."""
    parts = urls.split(url)
    path = re.sub(r"(/engines(/[^/]+)?)?/v1/?$", "", parts.path)
    return "%s://%s%s" % (parts.scheme, parts.address, path)
