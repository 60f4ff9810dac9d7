"""Finds the model server: the one that the user has set, or else the first that runs here and answers as one.

All candidates are asked at once, each by a daemon thread. Their answers count in the order of the candidates:
an earlier one that is slow is waited for until its time is over. Whether something is a model server is
decided by the shape of its answer alone, because LM Studio answers 200 to anything and other programs listen
on the same ports.

A server that was found, not set, is on this machine or in a private network, and gets neither the key nor the
headers.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import namedtuple

from mm import urls
from mm.cancel import Cancel, Cancelled, Deadline
from mm.errors import UserError
from mm.model import http, known_servers, probe, refusal
from mm.model.candidates import candidates as usual_candidates
from mm.model.http import ModelError, Server
from mm.model.probe import at, listed, root_of
from mm.wire.cancellable_socket import look_up

# What is asked for if neither the user nor the server names a model. Servers with one model ignore the name.
ANY_MODEL = "default"

# A candidate has the first time to accept a connection, and the second to list its models.
CONNECT_SECONDS, LIST_SECONDS = 0.2, probe.QUESTION_SECONDS

# A server that the user has set may be busy with an answer and list its models late. Without a model to
# choose it is asked only to recognise it, which is not worth a long wait.
_SET_SECONDS, _RECOGNISE_SECONDS = 10, 1

_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")

# Models that cannot chat have one of these in their name.
_NO_CHAT = ("embed", "rerank")

FOUND = "model: %s · %s · another one: --model NAME%s"
NAMES_SHOWN = 5
NONE_RUNS = "no model server is running here (%s)"
HELP = "%s: %s. Or name one with --url, or try --demo%s"
START_IT, INSTALL_ONE = "%s, start it: %s", "nothing that serves models is installed, this installs it: %s"
WANTS_KEY = ("the model server at %s wants an API key, and mm sends one only to a URL that you set: "
             "MM_API_KEY=… mm --url %s")
NO_MODEL = "the server at %s has no model that can chat%s"
TOO_SLOW = "%s accepts connections and did not list its models in %g s (--url %s asks it all the same)"
NOT_NEAR = "%s is not used: %s is neither this machine nor in a private network (MM_URL or --url sets it)"

# What was found. `origin`: the variable that named it, None for a usual port, SET or DEMO; `line`: for the
# log, "" if mm has chosen nothing; `notes`: lines about another address than the one set, and about
# candidates that cannot be used.
Found = namedtuple("Found", "server origin line notes")
Found.__new__.__defaults__ = ("", ())
SET, DEMO = "set", "demo"

# What is at a candidate's address.
NOBODY, FAR, SLOW, OTHER, LOCKED, EMPTY, GOOD = "nobody", "far", "slow", "other", "locked", "empty", "good"


class NothingRuns(UserError):
    """None of the candidates that may be used has anything to do with a model server.

    `short`: the line without the help; `ways`: the installed.Ways to start a server.
    """

    def __init__(self, message: str, short: str, ways: list):
        super().__init__(message)
        self.short, self.ways = short, ways


class Sighting:
    """What a thread has seen of one candidate. `done` is set when it has ended."""

    def __init__(self, candidate, seconds: float):
        self.candidate, self.seconds = candidate, seconds
        self.state = NOBODY
        self.listing, self.models, self.product = None, (), None
        self.done = threading.Event()


def locate(config, demo: bool, cancel: Cancel, environ=os.environ, candidates=None) -> Found:
    """The model server, or the built-in script's. Raises UserError if none answers, and Cancelled."""
    if not demo:
        return find_server(config, environ, cancel, candidates)
    from mm.model import demo as script

    return Found(Server(script.start().url, script.MODEL), DEMO)


def find_server(config, environ, cancel: Cancel, candidates=None, seconds: float = LIST_SECONDS) -> Found:
    """The server to ask, with the model. `candidates`: where to look instead of the usual ones; `seconds`:
    for a list of models.

    A URL that is set is the only candidate. Raises UserError, one line with what to do, if there is no
    server, and Cancelled.
    """
    server = Server(config.model_url, config.model_name, config.model_api_key, config.model_headers,
                    config.model_timeout, config.model_temperature, config.model_max_tokens,
                    config.model_extra)
    if server.url:
        return _set(server, cancel)
    server = server._replace(api_key=None, headers={})
    sightings = look_around(server, usual_candidates(environ) if candidates is None else candidates, cancel,
                            seconds)
    best = next((each for each in sightings if each.state == GOOD), None)
    passed_over = [line for line in map(_line_about, sightings) if line]
    if best is None:
        raise _nothing(sightings, environ)
    server = server._replace(url=best.candidate.url, product=best.product)
    server = _with_model(server, best.models, best.listing, cancel)
    title = known_servers.of_key(best.product).title if best.product else "a server"
    line = FOUND % (among(server.model, best.models), "%s at %s" % (title, http.shown(server.url)),
                    " or --url URL")
    return Found(server, best.candidate.origin, line, tuple(passed_over))


def look_around(server: Server, candidates, cancel: Cancel, seconds: float) -> list:
    """A Sighting for each candidate up to the first good one. Raises Cancelled.

    Takes as long as the slowest of those, and never longer than CONNECT_SECONDS and `seconds`.
    """
    over, deadline = Cancel(), Deadline(CONNECT_SECONDS + seconds)
    sightings = [Sighting(candidate, seconds) for candidate in candidates]
    try:
        for sighting in sightings:
            threading.Thread(target=_look, args=(sighting, server, over), name="search", daemon=True).start()
        for count, sighting in enumerate(sightings, 1):
            cancel.wait(sighting.done, max(0, deadline.left()))
            if sighting.state == GOOD:
                return sightings[:count]
        return sightings
    finally:
        over.cancel()  # threads that still wait for an answer end at once


def refuses(url: str, cancel: Cancel) -> bool:
    """Whether nobody listens at the address any more. Raises Cancelled."""
    try:
        _connect(_addressed(url, cancel))
    except ConnectionRefusedError:
        return True
    except OSError:
        pass  # busy, or a name that is slow to be resolved
    return False


def is_near(address: str) -> bool:
    """Whether an IP address is this machine's own or a private network's."""
    import ipaddress

    number = ipaddress.ip_address(address.partition("%")[0])
    number = getattr(number, "ipv4_mapped", None) or number
    return number.is_loopback or any(number in ipaddress.ip_network(network) for network in _PRIVATE)


def names_in(listing):
    """The names of the models in an answer to /models, a list; None if it is not such an answer."""
    models, is_list = at(listing, "data"), at(listing, "object") == "list"
    if models is None and is_list and "data" in listing:  # Ollama without a model
        models = []
    if not isinstance(models, list):
        return None
    names = [each["id"] for each in models if isinstance(at(each, "id"), str) and each["id"]]
    return names if names or not models and is_list else None


def among(model: str, names) -> str:
    """The model, and what could be chosen instead."""
    others = [name for name in names if name != model and _can_chat(name)]
    more = ", …" if len(others) > NAMES_SHOWN else ""
    there = " (also there: %s%s)" % (", ".join(others[:NAMES_SHOWN]), more) if others else ""
    return refusal.one_line(model + there)


def loaded_models(server: Server, listing, cancel: Cancel) -> list:
    """The names of the models that the server has in memory, as far as it says so."""
    entries = listed(at(listing, "data"))
    if any(at(each, "status", "value") for each in entries):  # llama.cpp as a router
        return [at(each, "id") for each in entries if at(each, "status", "value") == "loaded"]
    root, loaded = server._replace(url=root_of(server.url)), []
    try:
        if server.product in ("ollama", None):
            for each in listed(at(probe.ask(root, "/api/ps", cancel).value, "models")):
                loaded += [at(each, "name"), at(each, "model")]
        if server.product in ("lmstudio", None) and not loaded:
            for each in listed(at(probe.ask(root, "/api/v1/models", cancel).value, "models")):
                instances = listed(at(each, "loaded_instances"))
                loaded += [at(each, "key"), *(at(instance, "id")
                                              for instance in instances)] if instances else []
            if not loaded:
                entries = listed(at(probe.ask(root, "/api/v0/models", cancel).value, "data"))
                loaded = [at(each, "id") for each in entries if at(each, "state") == "loaded"]
    except ModelError:
        pass  # gone
    return loaded


def _set(server: Server, cancel: Cancel) -> Found:
    """The server that the user has set. The list of its models shows which product it is, and whether `/v1`
    is missing at the end of its URL."""
    url, named = server.url, bool(server.model)
    try:
        server, said = _with_path(server, cancel)
    except ModelError:
        if not named:
            raise
        return Found(server, SET)  # the request itself says better what is wrong
    names, product = names_in(said.value) or (), known_servers.of_models(said.value, said.software)
    server = _with_model(server._replace(product=product and product.key), names, said.value, cancel)
    line = FOUND % (among(server.model, names), http.shown(server.url),
                    "") if len(names) > 1 and not named else ""
    moved = (http.ANSWERS_AT % (http.shown(url), http.shown(server.url)),) if server.url != url else ()
    return Found(server, SET, line, moved)


def _with_path(server: Server, cancel: Cancel) -> tuple:
    """(the server, its answer to /models), with `/v1` at the end of its URL if it lists models only there."""
    seconds = _RECOGNISE_SECONDS if server.model else _SET_SECONDS
    said = probe.ask(server, "/models", cancel, seconds=seconds)
    if said.status and names_in(said.value) is None and not server.url.endswith("/v1"):
        longer = server._replace(url=server.url + "/v1")
        found = probe.ask(longer, "/models", cancel, seconds=seconds)
        if names_in(found.value) is not None:
            return longer, found
    return server, said


def _with_model(server: Server, names, listing, cancel: Cancel) -> Server:
    """The server with the model to ask for."""
    if server.model or not names:
        return server._replace(model=server.model or ANY_MODEL)
    chatting = [name for name in names if _can_chat(name)] or list(names)
    model = chatting[0]
    if len(chatting) > 1:
        loaded = loaded_models(server, listing, cancel)
        model = next((name for name in chatting if name in loaded), model)
    return server._replace(model=model)


def _look(sighting: Sighting, server: Server, over: Cancel) -> None:
    url = sighting.candidate.url
    try:
        addresses = _addressed(url, over)
        if not all(is_near(address[4][0]) for address in addresses):
            sighting.state = FAR
            return
        _connect(addresses)
        sighting.state, begin = SLOW, time.monotonic()
        said = probe.ask(server._replace(url=url), "/models", over, seconds=sighting.seconds)
        if said.status:
            _judge(sighting, said, server.model)
        elif time.monotonic() - begin < sighting.seconds / 2:
            sighting.state = OTHER  # it hung up, or speaks something else
    except (OSError, ValueError, ModelError, Cancelled):
        pass  # nobody is there, or nobody waits any more
    finally:
        sighting.done.set()


def _judge(sighting: Sighting, said, wanted) -> None:
    """By the shape of the answer. `wanted`: the model that the user has set, or None."""
    names, value = names_in(said.value), said.value
    if names is not None:
        sighting.state = GOOD if wanted in names or any(map(_can_chat, names)) else EMPTY
    elif isinstance(value, dict) and said.status in (401, 403) and ("error" in value or "detail" in value):
        sighting.state = LOCKED
    elif at(value, "error") and said.status == 503 and "loading" in refusal.words_of_value(value).lower():
        sighting.state = GOOD  # the request itself waits until the model is there
    else:
        sighting.state = OTHER
    # A usual port says nothing if several products share it.
    product = known_servers.of_models(value, said.software) or known_servers.alone_at(sighting.candidate.product)
    sighting.listing, sighting.models = value, tuple(names or ())
    sighting.product = product and product.key


def _can_chat(name: str) -> bool:
    return not any(mark in name.lower() for mark in _NO_CHAT)


def _line_about(sighting: Sighting) -> str | None:
    """The line about a candidate that is a model server and cannot be used."""
    url = http.shown(sighting.candidate.url)
    if sighting.state == LOCKED:
        return WANTS_KEY % (url, url)
    if sighting.state == EMPTY:
        return NO_MODEL % (url, _first_model(known_servers.of_key(sighting.product)))
    if sighting.state == SLOW:
        return TOO_SLOW % (url, sighting.seconds, url)
    if sighting.state == FAR:
        return NOT_NEAR % (sighting.candidate.origin, urls.split(url).host)
    return None


def _first_model(product) -> str:
    """How a server without a model gets one."""
    if product and product.pull:
        return ": " + known_servers.with_model(product.pull, known_servers.FIRST_MODEL[product.key])
    return ": restart it with one (%s)" % product.start if product else ""


def _nothing(sightings, environ) -> UserError:
    """Which candidates cannot be used and why; else where mm looked, and how to start a server."""
    lines = [(each.state, line) for each, line in zip(sightings, map(_line_about, sightings)) if line]
    if any(state != FAR for state, _ in lines):
        return UserError("; ".join(line for _, line in lines))
    from mm.model import installed

    looked_at = (urls.split(each.candidate.url).address for each in sightings if each.state != FAR)
    ports = ", ".join(dict.fromkeys(name.replace("127.0.0.1", "") for name in looked_at))
    ways = installed.ways(environ, os.getcwd())
    help_line = START_IT % ways[0] if ways[0].about else INSTALL_ONE % ways[0].command
    short = NONE_RUNS % ports
    return NothingRuns(HELP % (short, help_line, "".join("; " + line for _, line in lines)), short, ways)


def _addressed(url: str, cancel: Cancel) -> list:
    parts = urls.split(url)
    return look_up(parts.host, parts.port or (443 if parts.scheme == "https" else 80), cancel)


def _connect(addresses: list) -> None:
    """Raises OSError if none of the addresses accepts a connection in time."""
    failure = OSError("no address")
    for family, kind, protocol, _, address in addresses:
        with socket.socket(family, kind, protocol) as sock:
            sock.settimeout(CONNECT_SECONDS)
            try:
                return sock.connect(address)
            except OSError as error:
                failure = error
    raise failure
