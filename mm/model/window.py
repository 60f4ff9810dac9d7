"""The context window of the model: what the server allocated, not what the model was trained for.

Each kind of server tells it in another place, and servers imitate one another and answer 200 to anything, so an answer counts
by its shape alone: a whole number above zero where this kind of server puts it. A refusal of a prompt that was too long is the
last source, and the surest.

`Window` is the process's knowledge of it. The probe runs in a daemon thread of its own and delays nothing; `size` may be read
from any thread at any time.
"""

from __future__ import annotations

import json
import re
import threading
import urllib.parse
from collections import namedtuple

from mm import log
from mm.cancel import Cancel, Cancelled
from mm.model import http
from mm.model.http import ModelError, Server

# A question of the probe is given up after this: the next is asked.
QUESTION_SECONDS = 2

_MAX_ANSWER = 4 * 1024 * 1024

# Below this an agent cannot do much: the tools and a file or two fill it.
SMALL_WINDOW = 8192
SMALL = ("⚠️ the server gives this model only %d tokens of context; agents need 16000 or more (llama-server -c 32768, "
         "OLLAMA_CONTEXT_LENGTH=32768 ollama serve, lms load --context-length 32768)")
UNKNOWN = ("⚠️ the model server does not tell its context window: the conversation is not compressed by itself "
           "(set model.contextWindow)")

# What a refusal says of a prompt that was too long: tokens of the window and of the prompt, 0 where it does not say.
Overflow = namedtuple("Overflow", "window prompt")


class Window:
    """What is known of the window of one model server. `configured`: what the user set, 0 for nothing."""

    def __init__(self, configured: int = 0):
        self._configured = configured
        self._probed = self._learned = 0
        self._lock = threading.Lock()
        self._running = None  # the thread that asks
        self._told = False

    @property
    def size(self) -> int:
        """Tokens; 0 while unknown. What the user set, else what the server said; less where a refusal taught so."""
        known = self._configured or self._probed
        return min(known, self._learned) if known and self._learned else known or self._learned

    def look(self, server: Server, answered: bool = False) -> None:
        """Asks the server in the background, unless the window is known or being asked for.

        Some servers know only once the model is loaded: so it is called before the first request, and again with `answered`
        when a request has been answered. What is still unknown then, or small, is said once on stderr.
        """
        with self._lock:
            if self.size:
                if answered:
                    self._tell()
            elif not self._told:
                self._start(server, answered)

    def learn(self, text: str, server: Server):
        """Takes what the server said when it refused; returns the Overflow, None where it is about anything else.

        A server that does not say how large its window is is asked again.
        """
        overflow = learned_from(text)
        if overflow and overflow.window:
            self._learned = overflow.window
        elif overflow:
            with self._lock:
                self._start(server, True)
        return overflow

    def wait(self, seconds: float) -> None:
        """Waits until a probe that is running has ended."""
        running = self._running
        if running:
            running.join(seconds)

    def _start(self, server: Server, answered: bool) -> None:
        if not (self._running and self._running.is_alive()):
            self._running = threading.Thread(target=self._look, args=(server, answered), name="window", daemon=True)
            self._running.start()

    def _look(self, server: Server, answered: bool) -> None:
        try:
            self._probed = probe(server, Cancel()) or self._probed
        except Exception:
            log.traceback()
        with self._lock:
            if answered or self.size:
                self._tell()

    def _tell(self) -> None:
        if self._told:
            return
        self._told = True
        if not self.size:
            log.line(UNKNOWN)
        elif self.size < SMALL_WINDOW:
            log.line(SMALL % self.size)


def learned_from(text: str):
    """The Overflow that a server's words are about; None where they are about anything else."""
    if not _OVERFLOW.search(text):
        return None
    window, prompt = _first_number(_WINDOW_WORDS, text), _first_number(_PROMPT_WORDS, text)
    return Overflow(window, prompt)


def probe(server: Server, cancel: Cancel) -> int:
    """Asks the server for its window: tokens, 0 where it does not tell. Raises Cancelled, and nothing else."""
    root = server._replace(url=_root(server.url))
    model = server.model or ""
    for question in (_llama_cpp, _ollama, _openai, _lm_studio):
        try:
            size = question(root, server, model, cancel)
        except ModelError:
            return 0  # nobody there
        if size:
            return size
    return 0


def _llama_cpp(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    props = _ask(root, "/props", cancel)
    settings = _at(props, "default_generation_settings")
    if isinstance(settings, dict) and not _size(_at(settings, "n_ctx")) and model:
        # A router has no window of its own: it is asked for the model's.
        settings = _at(_ask(root, "/props?model=" + urllib.parse.quote(model, safe=""), cancel), "default_generation_settings")
    return _size(_at(settings, "n_ctx"))


def _ollama(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    running = _at(_ask(root, "/api/ps", cancel), "models")
    if not isinstance(running, list):
        return 0
    names = (model, model + ":latest")
    size = _first(running, lambda each: _at(each, "name") in names or _at(each, "model") in names, "context_length")
    if size or not model:
        return size
    # Not loaded yet: what it will be loaded with, if the model file says so. The model's maximum is something else.
    parameters = _at(_ask(root, "/api/show", cancel, {"model": model}), "parameters")
    found = re.search(r"^\s*num_ctx\s+(\d{1,9})\s*$", parameters, re.MULTILINE) if isinstance(parameters, str) else None
    return int(found.group(1)) if found else 0


def _openai(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    """vLLM and SGLang, llama.cpp where /props is closed, Docker Model Runner."""
    listed = _at(_ask(server, "/models", cancel), "data")
    listed = listed if isinstance(listed, list) else []
    mine = [each for each in listed if _at(each, "id") == model] or (listed if len(listed) == 1 else [])
    if not mine:
        return 0
    entry = mine[0]
    if _at(entry, "dmr") is not None or "/engines/" in server.url:
        size = _docker(root, model, cancel)
        if size:
            return size
    return _size(_at(entry, "max_model_len")) or _size(_at(entry, "meta", "n_ctx")) or _size(_at(entry, "dmr", "context_window"))


def _docker(root: Server, model: str, cancel: Cancel) -> int:
    """What was configured for the model, which wins over what it was packaged with."""
    configured = _ask(root, "/engines/_configure", cancel)
    for each in configured if isinstance(configured, list) else ():
        if model and model in (_at(each, "Model"), _at(each, "ModelID")):
            return _size(_at(each, "Config", "context-size"))
    return 0


def _lm_studio(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    models = _at(_ask(root, "/api/v1/models", cancel), "models")
    for each in models if isinstance(models, list) else ():
        instances = _at(each, "loaded_instances")
        for instance in instances if isinstance(instances, list) else ():
            size = _size(_at(instance, "config", "context_length"))
            if size and model in (_at(each, "key"), _at(instance, "id")):
                return size
    models = _at(_ask(root, "/api/v0/models", cancel), "data")
    return _first(models, lambda each: _at(each, "id") == model, "loaded_context_length") if isinstance(models, list) else 0


def _first(entries: list, fits, field: str) -> int:
    return next((_size(_at(each, field)) for each in entries if fits(each) and _size(_at(each, field))), 0)


def _ask(server: Server, path: str, cancel: Cancel, question=None):
    """The JSON value of the answer, whatever its status; None where there is none in time. Raises ModelError if nobody is there."""
    cancel.check()
    late = Cancel()
    timer = threading.Timer(QUESTION_SECONDS, late.cancel)
    timer.daemon = True
    body = None if question is None else json.dumps(question).encode("ascii")
    with cancel.on_cancel(late.cancel):
        timer.start()
        try:
            with http.send(server, path, body, late, timeout=QUESTION_SECONDS) as exchange:
                return json.loads(exchange.read_text(_MAX_ANSWER, QUESTION_SECONDS))
        except Cancelled:
            cancel.check()
            return None
        except ModelError as error:
            if error.kind in ("dropped", "timeout", "redirect", "protocol"):
                return None
            raise
        except (ValueError, RecursionError):
            return None
        finally:
            timer.cancel()


def _root(url: str) -> str:
    """The server's address without the part of its OpenAI interface."""
    parts = urllib.parse.urlsplit(url)
    path = re.sub(r"(/engines(/[^/]+)?)?/v1/?$", "", parts.path)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _at(value, *names):
    """value[name][name]…, None where that is not there."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _size(value) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9 else 0


def _first_number(patterns, text: str) -> int:
    for pattern in patterns:
        found = pattern.search(text)
        if found:
            return int(found.group(1))
    return 0


def _patterns(*texts):
    return tuple(re.compile(text, re.IGNORECASE) for text in texts)


# The words for a prompt that is too long, as the servers say it (see the table in the tests).
_OVERFLOW = re.compile(
    r"exceed_context_size|context_length_exceeded|exceeds? the (available |model'?s? )?(maximum )?context|context shift is disabled"
    r"|(maximum|longer than the|greater than the|reached|exceeds? the|exceeded the) context (length|size|window)"
    r"|n_keep: \d+ >= n_ctx|(prompt|input|request|context|conversation) (is|was) too (long|large)|too many tokens"
    r"|no user query found in messages|max_tokens must be at least 1, got -", re.IGNORECASE)
_WINDOW_WORDS = _patterns(
    r'"?n_ctx"?\s*[:=]\s*(\d{1,9})', r"context (?:length|size|window)(?: is| of)? (\d{1,9})",
    r"context (?:length|size|window) \((\d{1,9})", r">\s*(\d{1,9}) maximum")
_PROMPT_WORDS = _patterns(
    r'"?n_prompt_tokens"?\s*[:=]\s*(\d{1,9})', r"request \((\d{1,9}) tokens", r"n_keep: (\d{1,9})",
    r"\((\d{1,9}) in the messages", r"(?:has|have|contains|requested) (\d{1,9}) (?:input )?tokens",
    r"prompt is too long: (\d{1,9}) tokens")
