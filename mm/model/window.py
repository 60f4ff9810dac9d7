"""The context window of the model: what the server allocated, not what the model was trained for.

Each kind of server tells it in another place, and servers imitate one another and answer 200 to anything, so an answer counts
by its shape alone: a whole number above zero where this kind of server puts it. A refusal of a prompt that was too long is the
last source, and the surest.

`Window` is the process's knowledge of it. The probe runs in a daemon thread of its own and delays no request; `size` may be
read from any thread at any time. What the user should know of the window goes to the log at once, and waits as `news` for a
front end that has an answer to put it under: most editors hide the log.
"""

from __future__ import annotations

import re
import threading
import urllib.parse
from collections import namedtuple

from mm import log
from mm.cancel import Cancel
from mm.model import known_servers, probe
from mm.model.http import ModelError, Server
from mm.model.probe import at, listed, root_of

# Below this an agent cannot do much: the tools and a file or two fill it.
SMALL_WINDOW = 16_000
SMALL = "⚠️ the server gives this model only %d tokens of context; agents need 16000 or more: %s"
# The first three numbers: tokens.
TRUNCATED = ("⚠️ the server seems to have cut the prompt without a word: it has read %d tokens of about %d. What was said "
             "first may be lost; it needs a larger window: %s")
# It counts as cut when the server has read less than this part of the estimate (mm.conversation.estimate is that far off at
# most), or, where it keeps one half of its window and no more, less than the second.
_CUT, _CUT_TO_HALF = 0.6, 0.75
NO_WAY_OUT = "pick a model with a larger window"
# How long the end of an answer waits for a probe that the answer has begun. A server on this machine takes milliseconds.
NEWS_SECONDS = 0.3
UNKNOWN = ("⚠️ the model server does not tell its context window: the conversation is not compressed by itself "
           "(set model.contextWindow)")


class Window:
    """What is known of the window of one model server. `configured`: what the user set, 0 for nothing."""

    def __init__(self, configured: int = 0):
        self._configured = configured
        self._probed = self._learned = 0
        self._product = None  # the key of the make that the server showed to be
        self._lock = threading.Lock()
        self._running = None  # the thread that asks
        self._ahead = False  # whether it was asked for before a prompt needed it
        self._silent = True  # nothing is said before a prompt needs it
        self._suspected = None  # a report of tokens that is yet to be held against the window
        self._told = self._told_truncated = False
        self._news = []

    @property
    def size(self) -> int:
        """Tokens; 0 while unknown. What the user set, else what the server said; less where a refusal taught so."""
        known = self._configured or self._probed
        return min(known, self._learned) if known and self._learned else known or self._learned

    def look(self, server: Server, answered: bool = False) -> None:
        """Asks the server in the background, unless the window is known or being asked for.

        Some servers know only once the model is loaded: so it is called before the first request of a turn, and again with
        `answered` when a request has been answered. What is still unknown then, or small, is said once. A small one is asked
        for in each turn: the user may have started the server anew with a larger one.
        """
        with self._lock:
            self._silent = False
            ahead, self._ahead = self._ahead, False
            if self.size and (answered or ahead):
                self._tell(server)
            elif not self._configured and (self.size < SMALL_WINDOW if self.size else not self._told):
                self._start(server, answered)

    def look_ahead(self, server: Server) -> None:
        """Asks the server before the first prompt, which then need not."""
        with self._lock:
            if not self.size and self._silent:
                self._ahead = True
                self._start(server, False)

    def learn(self, problem, server: Server):
        """Takes the error of a request; returns the failures.Overflow, None where it is about anything else.

        A server that does not say how large its window is is asked again.
        """
        overflow = None
        if getattr(problem, "kind", None) in ("context_overflow", "request_too_large"):
            from mm.model.failures import Overflow

            overflow = Overflow(problem.numbers.get("window", 0), problem.numbers.get("prompt", 0))
        if overflow and overflow.window:
            self._learned = overflow.window
        elif overflow:
            with self._lock:
                self._start(server, True)
        return overflow

    def compare(self, reported, estimated: int, server: Server) -> None:
        """Takes the tokens of a prompt as the server counted them (None, 0: it did not) and as mm estimated them.

        A prompt that was cut in silence is told, once; while the window is being asked for, as soon as it is known.
        """
        if not reported:
            return
        with self._lock:
            self._suspected = (reported, estimated)
            if not (self._running and self._running.is_alive()):
                self._tell_truncated(server)

    def wait(self, seconds: float) -> None:
        """Waits until a probe that is running has ended."""
        running = self._running
        if running:
            running.join(seconds)

    def news(self) -> list:
        """The lines that the user has not been shown yet, each of them once."""
        self.wait(NEWS_SECONDS)
        with self._lock:
            news, self._news = self._news, []
        return news

    def _start(self, server: Server, answered: bool) -> None:
        if not (self._running and self._running.is_alive()):
            self._running = threading.Thread(target=self._look, args=(server, answered), name="window", daemon=True)
            self._running.start()

    def _look(self, server: Server, answered: bool) -> None:
        size, product = 0, None
        try:
            size, product = ask_size(server, Cancel())
        except Exception:
            log.traceback()
        with self._lock:
            if self._probed and size not in (0, self._probed):
                self._learned = 0  # of the server as it was before
            self._probed, self._product = size or self._probed, product or self._product
            if answered or self.size:
                self._tell(server)
            self._tell_truncated(server)

    def _tell(self, server: Server) -> None:
        if self._told or self._silent:
            return
        self._told = True
        if not self.size:
            log.line(UNKNOWN)
        elif self.size < SMALL_WINDOW:
            self._say(SMALL % (self.size, way_out(server, self._product, self.size)), new=not self._configured)

    def _tell_truncated(self, server: Server) -> None:
        if self._suspected and not self._told_truncated and truncated(*self._suspected, self.size):
            self._told_truncated = True
            self._say(TRUNCATED % (*self._suspected, way_out(server, self._product, self.size)))

    def _say(self, line: str, new: bool = True) -> None:
        """`new`: whether it is something that the user has not set so."""
        log.line(line)
        if new:
            self._news.append(line)


def way_out(server: Server, product=None, window: int = 0) -> str:
    """The command that gives the model a larger window than `window` on this very server; `product`: its key, as far as a
    probe showed it."""
    return " or ".join(ways_out(server, product, window)) or NO_WAY_OUT


def ways_out(server: Server, product=None, window: int = 0) -> list:
    """The commands for way_out, the best first; empty if there are none."""
    known = known_servers.of_key(server.product) or known_servers.of_key(product) or known_servers.of_url(server.url)
    return known_servers.larger_window(known, server.model, window)


def truncated(reported: int, estimated: int, window: int) -> bool:
    """Whether a server that counted `reported` tokens has cut a prompt of about `estimated`, without saying so.

    Far fewer tokens than were sent are not enough: some servers count only what they had not read before. So the prompt must
    not have fitted, or the count must be what Ollama keeps of a prompt: one half of its window and two.
    """
    if not window or not reported:
        return False
    if abs(reported - (window // 2 + 2)) <= 2:
        return reported < _CUT_TO_HALF * estimated and estimated > _CUT_TO_HALF * window
    return window < estimated and reported < _CUT * estimated


def ask_size(server: Server, cancel: Cancel) -> tuple:
    """Asks the server for its window: tokens, 0 where it does not tell, and the key of its make where the answer shows it.

    Raises Cancelled, and nothing else.
    """
    if server.product == "llama-cpp-python":
        return 0, server.product  # it tells it nowhere, and a question for its models breaks off the answer that it is writing
    root = server._replace(url=root_of(server.url))
    model = server.model or ""
    for question, product in ((_llama_cpp, "llama.cpp"), (_ollama, "ollama"), (_openai, None), (_lm_studio, "lmstudio"),
                            (_slots, "llama.cpp")):
        try:
            size = question(root, server, model, cancel)
        except ModelError:
            return 0, None  # nobody there
        if size:
            return size, product
    return 0, None


def _ask(server: Server, path: str, cancel: Cancel, body=None):
    return probe.ask(server, path, cancel, body).value


def _llama_cpp(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    settings = at(_ask(root, "/props", cancel), "default_generation_settings")
    if isinstance(settings, dict) and not _size(at(settings, "n_ctx")) and model:
        # A router has no window of its own: it is asked for the model's.
        settings = at(_ask(root, "/props?model=" + urllib.parse.quote(model, safe=""), cancel), "default_generation_settings")
    return _size(at(settings, "n_ctx"))


def _slots(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    """llama.cpp, an old one that says it nowhere else."""
    return _first(listed(_ask(root, "/slots", cancel)), lambda each: True, "n_ctx")


def _ollama(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    running = at(_ask(root, "/api/ps", cancel), "models")
    if not isinstance(running, list):
        return 0
    names = (model, model + ":latest")
    size = _first(running, lambda each: at(each, "name") in names or at(each, "model") in names, "context_length")
    if size or not model:
        return size
    # Not loaded yet: what it will be loaded with, if the model file says so. The model's maximum is something else.
    parameters = at(_ask(root, "/api/show", cancel, {"model": model}), "parameters")
    found = re.search(r"^\s*num_ctx\s+(\d{1,9})\s*$", parameters, re.MULTILINE) if isinstance(parameters, str) else None
    return int(found.group(1)) if found else 0


def _openai(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    """vLLM and SGLang, llama.cpp where /props is closed, Docker Model Runner."""
    entries = listed(at(_ask(server, "/models", cancel), "data"))
    mine = [each for each in entries if at(each, "id") == model] or (entries if len(entries) == 1 else [])
    if not mine:
        return 0
    entry = mine[0]
    if at(entry, "dmr") is not None or "/engines/" in server.url:
        size = _docker(root, model, cancel)
        if size:
            return size
    return _size(at(entry, "max_model_len")) or _size(at(entry, "meta", "n_ctx")) or _size(at(entry, "dmr", "context_window"))


def _docker(root: Server, model: str, cancel: Cancel) -> int:
    """What was configured for the model, which wins over what it was packaged with."""
    for each in listed(_ask(root, "/engines/_configure", cancel)):
        if model and model in (at(each, "Model"), at(each, "ModelID")):
            return _size(at(each, "Config", "context-size"))
    return 0


def _lm_studio(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    sizes = []
    for each in listed(at(_ask(root, "/api/v1/models", cancel), "models")):
        for instance in listed(at(each, "loaded_instances")):
            size = _size(at(instance, "config", "context_length"))
            if size and at(instance, "id") == model:
                return size
            if size and at(each, "key") == model:
                sizes.append(size)
    if sizes:
        return min(sizes)  # of several, it is not known which one answers
    entries = listed(at(_ask(root, "/api/v0/models", cancel), "data"))
    return _first(entries, lambda each: at(each, "id") == model, "loaded_context_length")


def _first(entries: list, fits, field: str) -> int:
    return next((_size(at(each, field)) for each in entries if fits(each) and _size(at(each, field))), 0)


def _size(value) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9 else 0
