"""Finds the model server: the one that the user has set, or else the first that runs here and answers as one.

All places are asked at once, each by a daemon thread of its own, and the answers are taken in the order of the places: an
earlier one that is slow is waited for, until its time is over. Whether something is a model server is told by the shape of
its answer alone, because LM Studio answers 200 to anything and other programs listen on the same ports.

A server that was found, and not set, is on this machine or in a private network, and gets no key and no headers.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
import urllib.parse
from collections import namedtuple

from mm.cancel import Cancel, Cancelled
from mm.errors import UserError
from mm.model import http, known_servers, probe, refusal
from mm.model.http import ModelError, Server
from mm.model.probe import at, listed, root_of
from mm.wire.cancellable_socket import look_up

# What is asked for where neither the user nor the server names a model. Servers with one model ignore the name.
ANY_MODEL = "default"

# For the search: a place that does not accept a connection in the first time, or does not list its models in the second
# (unless find is given another), is no server.
CONNECT_SECONDS, LIST_SECONDS = 0.2, probe.QUESTION_SECONDS

# A server that the user has set may be busy with an answer and list its models late: then mm just asks it.
_SET_SECONDS = 10
# What is only of use and not needed is waited for so long.
_PRODUCT_SECONDS = 1

_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")

# Models that cannot chat carry one of these in their name.
_NO_CHAT = ("embed", "rerank")

# Where Docker's model runner is, seen from a container, and what tells that mm is in one.
_DOCKER_INSIDE = "http://model-runner.docker.internal/engines/v1"
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")

FOUND = "model: %s · %s · another one: --model NAME%s"
NAMES_SHOWN = 5
NONE_RUNS = "no model server is running here (%s)"
HELP = "%s: %s. Or name one with --url, or try --demo%s"
START_IT, INSTALL_ONE = "%s, start it: %s", "nothing that serves models is installed, this does: %s"
WANTS_KEY = "the model server at %s wants an API key, and mm sends one only to a URL that you set: MM_API_KEY=… mm --url %s"
NO_MODEL = "the server at %s has no model that can chat%s"
TOO_SLOW = "%s accepts connections and did not list its models in %g s (--url %s asks it all the same)"
NOT_NEAR = "%s is not used: %s is neither this machine nor in a private network (MM_URL or --url sets it)"

# A place to look at. `origin` is the variable that named it, None for a usual port; `product` the key of what runs there.
Place = namedtuple("Place", "url origin product")
Place.__new__.__defaults__ = (None, None)
# What was found. `origin` as above, SET where the user has set the URL, DEMO for the built-in script; `line`: for the log, "" where mm has chosen nothing;
# `notes`: the lines about places that have something to do with a model server and cannot be used.
Found = namedtuple("Found", "server origin line notes")
Found.__new__.__defaults__ = ("", ())
SET, DEMO = "set", "demo"

# What is at a place.
NOBODY, FAR, SLOW, OTHER, LOCKED, EMPTY, GOOD = "nobody", "far", "slow", "other", "locked", "empty", "good"


class NothingRuns(UserError):
    """No place that may be used has anything to do with a model server. `short`: the line without the
    help; `ways`: the installed.Ways to start one."""

    def __init__(self, message: str, short: str, ways: list):
        super().__init__(message)
        self.short, self.ways = short, ways


class Sighting:
    """What is known of one place, while its thread looks at it: `done` is set when no more will be."""

    def __init__(self, place: Place, seconds: float):
        self.place, self.seconds = place, seconds
        self.state = NOBODY
        self.listing, self.models, self.product = None, (), None
        self.done = threading.Event()


def find_server(config, environ, cancel: Cancel, places=None, seconds: float = LIST_SECONDS) -> Found:
    """The server to ask, with the model. `places`: where to look instead of places_of(environ); `seconds`: for a list of models.

    Raises UserError, one line with what to do, where there is none, and Cancelled. A URL that is set counts alone.
    """
    server = Server(config.model_url, config.model_name, config.model_api_key, config.model_headers, config.model_timeout,
                    config.model_temperature, config.model_max_tokens, config.model_extra)
    if server.url:
        return _set(server, cancel)
    server = server._replace(api_key=None, headers={})
    sightings = look_around(server, places_of(environ) if places is None else places, cancel, seconds)
    best = next((each for each in sightings if each.state == GOOD), None)
    passed_over = [line for line in map(_told, sightings) if line]
    if best is None:
        raise _nothing(sightings, environ)
    server = _with_model(server._replace(url=best.place.url, product=best.product), best.models, best.listing, cancel)
    title = known_servers.of_key(best.product).title if best.product else "a server"
    line = FOUND % (among(server.model, best.models), "%s at %s" % (title, http.shown(server.url)), " or --url URL")
    return Found(server, best.place.origin, line, tuple(passed_over))


def locate(config, demo: bool, cancel: Cancel, environ=os.environ, places=None) -> Found:
    """The model server, or with `demo` the built-in script's. Raises UserError if none answers, and Cancelled."""
    if not demo:
        return find_server(config, environ, cancel, places)
    from mm.model import demo as script

    return Found(Server(script.start().url, script.MODEL), DEMO)


def places_of(environ) -> tuple:
    """The places to look at, in their order."""
    places = [Place(_openai_url(environ), "OPENAI_BASE_URL", None), Place(_ollama_url(environ), "OLLAMA_HOST", "ollama")]
    for product in known_servers.PRODUCTS:
        places.append(Place(product.url, None, product.key))
        if product.key == "docker" and any(map(os.path.exists, _CONTAINER_MARKS)):
            places.append(Place(_DOCKER_INSIDE, None, product.key))
    unique = {}
    for place in places:
        unique.setdefault(place.url, place)
    unique.pop(None, None)
    return tuple(unique.values())


def look_around(server: Server, places, cancel: Cancel, seconds: float) -> list:
    """A Sighting for each place up to the first good one. Raises Cancelled.

    Takes as long as the slowest of those, and never longer than CONNECT_SECONDS and `seconds`.
    """
    over, end = Cancel(), time.monotonic() + CONNECT_SECONDS + seconds
    sightings = [Sighting(place, seconds) for place in places]
    try:
        for sighting in sightings:
            threading.Thread(target=_look, args=(sighting, server, over), name="search", daemon=True).start()
        for count, sighting in enumerate(sightings, 1):
            cancel.wait(sighting.done, max(0, end - time.monotonic()))
            if sighting.state == GOOD:
                return sightings[:count]
        return sightings
    finally:
        over.cancel()  # whoever still waits for an answer ends at once


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


def _look(sighting: Sighting, server: Server, over: Cancel) -> None:
    url = sighting.place.url
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
        pass  # nobody there, or nobody waits any more
    finally:
        sighting.done.set()


def _judge(sighting: Sighting, said, wanted) -> None:
    """By the shape of the answer. `wanted`: the model that the user has set, or None."""
    names, place = names_in(said.value), sighting.place
    if names is not None:
        sighting.state = GOOD if wanted in names or any(map(_can_chat, names)) else EMPTY
    elif isinstance(said.value, dict) and said.status in (401, 403) and ("error" in said.value or "detail" in said.value):
        sighting.state = LOCKED
    elif at(said.value, "error") and said.status == 503 and "loading" in refusal.words_of_value(said.value).lower():
        sighting.state = GOOD  # the request itself waits until the model is there
    else:
        sighting.state = OTHER
    # A usual port alone tells nothing where several products share it.
    product = known_servers.of_models(said.value, said.software) or known_servers.alone_at(place.product)
    sighting.listing, sighting.models, sighting.product = said.value, tuple(names or ()), product and product.key


def names_in(listing):
    """The names of the models in an answer to /models, a list; None where it is no such answer."""
    models, is_list = at(listing, "data"), at(listing, "object") == "list"
    if models is None and is_list and "data" in listing:  # Ollama without a model
        models = []
    if not isinstance(models, list):
        return None
    names = [each["id"] for each in models if isinstance(at(each, "id"), str) and each["id"]]
    return names if names or not models and is_list else None


def _set(server: Server, cancel: Cancel) -> Found:
    """The server that the user has set, which is asked for its models: they say which product it is, and whether `/v1` is missing
    at the end of its URL."""
    url, named = server.url, bool(server.model)
    try:
        server, said = _with_path(server, cancel)
    except ModelError:
        if not named:
            raise
        return Found(server, SET)  # the request itself says better what is wrong
    names, product = names_in(said.value) or (), known_servers.of_models(said.value, said.software)
    server = _with_model(server._replace(product=product and product.key), names, said.value, cancel)
    line = FOUND % (among(server.model, names), http.shown(server.url), "") if len(names) > 1 and not named else ""
    moved = (http.ANSWERS_AT % (http.shown(url), http.shown(server.url)),) if server.url != url else ()
    return Found(server, SET, line, moved)


def _with_path(server: Server, cancel: Cancel) -> tuple:
    """(the server, its answer to /models) where the URL that was set lists models, or does with `/v1` at its end."""
    seconds = _PRODUCT_SECONDS if server.model else _SET_SECONDS
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


def among(model: str, names) -> str:
    """The model, and what could be chosen instead."""
    others = [name for name in names if name != model and _can_chat(name)]
    more = ", …" if len(others) > NAMES_SHOWN else ""
    return refusal.one_line(model + (" (also there: %s%s)" % (", ".join(others[:NAMES_SHOWN]), more) if others else ""))


def loaded_models(server: Server, listing, cancel: Cancel) -> list:
    """The names of the models that the server has in its memory, as far as it says so in the way of its product."""
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
                loaded += [at(each, "key"), *(at(instance, "id") for instance in instances)] if instances else []
            if not loaded:
                entries = listed(at(probe.ask(root, "/api/v0/models", cancel).value, "data"))
                loaded = [at(each, "id") for each in entries if at(each, "state") == "loaded"]
    except ModelError:
        pass  # gone
    return loaded


def _can_chat(name: str) -> bool:
    return not any(mark in name.lower() for mark in _NO_CHAT)


def _told(sighting: Sighting) -> str | None:
    """The line about a place where there is something and yet nothing to use."""
    url = http.shown(sighting.place.url)
    if sighting.state == LOCKED:
        return WANTS_KEY % (url, url)
    if sighting.state == EMPTY:
        return NO_MODEL % (url, _first_model(known_servers.of_key(sighting.product)))
    if sighting.state == SLOW:
        return TOO_SLOW % (url, sighting.seconds, url)
    if sighting.state == FAR:
        return NOT_NEAR % (sighting.place.origin, urllib.parse.urlsplit(url).hostname)
    return None


def _first_model(product) -> str:
    """How a server of this product, which has no model, gets one."""
    if product and product.pull:
        return ": " + known_servers.with_model(product.pull, known_servers.FIRST_MODEL[product.key])
    return ": restart it with one (%s)" % product.start if product else ""


def _nothing(sightings, environ) -> UserError:
    """What is there that cannot be used; if there is nothing, where it was looked and how to start a server."""
    lines = [(each.state, line) for each, line in zip(sightings, map(_told, sightings)) if line]
    if any(state != FAR for state, _ in lines):
        return UserError("; ".join(line for _, line in lines))
    looked_at = (urllib.parse.urlsplit(each.place.url).netloc for each in sightings if each.state != FAR)
    ports = ", ".join(dict.fromkeys(name.replace("127.0.0.1", "") for name in looked_at))
    from mm.model import installed

    ways = installed.ways(environ, os.getcwd())
    help_line = START_IT % ways[0] if ways[0].about else INSTALL_ONE % ways[0].command
    short = NONE_RUNS % ports
    return NothingRuns(HELP % (short, help_line, "".join("; " + line for _, line in lines)), short, ways)


def _addressed(url: str, cancel: Cancel) -> list:
    parts = urllib.parse.urlsplit(url)
    return look_up(parts.hostname, parts.port or (443 if parts.scheme == "https" else 80), cancel)


def _connect(addresses: list) -> None:
    """Raises OSError where none of the addresses takes a connection in time."""
    failure = OSError("no address")
    for family, kind, protocol, _, address in addresses:
        with socket.socket(family, kind, protocol) as sock:
            sock.settimeout(CONNECT_SECONDS)
            try:
                return sock.connect(address)
            except OSError as error:
                failure = error
    raise failure


def _openai_url(environ):
    """OPENAI_BASE_URL, with the /v1 that some leave out; None where it is no URL that could be asked."""
    url = (environ.get("OPENAI_BASE_URL") or "").strip().rstrip("/")
    parts = _parts(url)
    if not parts or parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
        return None
    return url if parts.path else url + "/v1"


def _ollama_url(environ):
    """OLLAMA_HOST as Ollama reads it, but for "every address" which is asked at this machine's own; None where unset, or
    where it is nothing that could be asked."""
    given = (environ.get("OLLAMA_HOST") or "").strip().strip("\"'").strip()
    scheme, _, rest = given.rpartition("://")
    place, _, path = rest.partition("/")
    usual_port = {"": "11434", "http": "80", "https": "443"}.get(scheme)
    if not given or usual_port is None or "@" in place:
        return None
    with_port = re.fullmatch(r"(\[.*\]|[^:]*):([^:\]]*)", place)
    host, port = with_port.groups() if with_port else (place, "")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        port = usual_port
    host = host.strip("[]")
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    path = re.sub(r"/?v1/?$", "", path).strip("/")
    url = "%s://%s:%s%s/v1" % (scheme or "http", "[%s]" % host if ":" in host else host, port, path and "/" + path)
    return url if _parts(url) else None


def _parts(url: str):
    """The parts of a URL, None where it is none."""
    try:
        parts = urllib.parse.urlsplit(url)
        parts.port  # a ValueError where it is none
        return parts
    except ValueError:
        return None
