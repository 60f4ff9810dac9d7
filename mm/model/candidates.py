"""Where a model server may be: what the environment names, and the usual ports of this machine."""

from __future__ import annotations

import os
import re
from collections import namedtuple

from mm import urls
from mm.model import known_servers

# `origin`: the variable that names the URL, None for a usual port; `product`: the key of what is expected
# there, or None.
Candidate = namedtuple("Candidate", "url origin product")
Candidate.__new__.__defaults__ = (None, None)

# Where Docker's model runner is from inside a container, and the files that show that mm is in one.
_DOCKER_INSIDE = "http://model-runner.docker.internal/engines/v1"
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")

_OLLAMA_PORTS = {"": "11434", "http": "80", "https": "443"}


def candidates(environ) -> tuple:
    """The Candidates, in the order in which they count."""
    found = [Candidate(openai_url(environ), "OPENAI_BASE_URL"),
             Candidate(ollama_url(environ), "OLLAMA_HOST", "ollama")]
    for product in known_servers.PRODUCTS:
        found.append(Candidate(product.url, None, product.key))
        if product.key == "docker" and any(map(os.path.exists, _CONTAINER_MARKS)):
            found.append(Candidate(_DOCKER_INSIDE, None, product.key))
    unique = {}
    for candidate in found:
        unique.setdefault(candidate.url, candidate)
    unique.pop(None, None)
    return tuple(unique.values())


def openai_url(environ) -> str | None:
    """OPENAI_BASE_URL, with the /v1 that some leave out; None if it is not a URL that can be asked."""
    url = (environ.get("OPENAI_BASE_URL") or "").strip().rstrip("/")
    parts = parsed(url)
    if not parts or parts.scheme not in ("http", "https") or not parts.host:
        return None
    if "@" in parts.address or parts.query:
        return None
    return url if parts.path else url + "/v1"


def ollama_url(environ) -> str | None:
    """OLLAMA_HOST as Ollama reads it, None if it is unset or cannot be asked. "Every address" is asked at
    127.0.0.1.
    """
    given = (environ.get("OLLAMA_HOST") or "").strip().strip("\"'").strip()
    scheme, _, rest = given.rpartition("://")
    address, _, path = rest.partition("/")
    usual_port = _OLLAMA_PORTS.get(scheme)
    if not given or usual_port is None or "@" in address:
        return None
    with_port = re.fullmatch(r"(\[.*\]|[^:]*):([^:\]]*)", address)
    host, port = with_port.groups() if with_port else (address, "")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        port = usual_port
    host = host.strip("[]")
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    path = re.sub(r"/?v1/?$", "", path).strip("/")
    url = "%s://%s:%s%s/v1" % (scheme or "http", "[%s]" % host if ":" in host else host, port,
                               path and "/" + path)
    return url if parsed(url) else None


def parsed(url: str):
    """The parts of a URL, None if it is not one."""
    try:
        return urls.split(url)
    except ValueError:
        return None
