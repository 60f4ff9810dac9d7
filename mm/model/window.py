"""The context window of the model: what the server allocated, not what the model was trained for.

Each kind of server reports it elsewhere, and servers imitate one another and answer 200 to anything. So an
answer counts by its shape alone: a whole number above zero in the field that this kind of server uses. The
refusal of a prompt that was too long is the last source, and the surest.

`Window` is what the process knows of it. Questions run in a daemon thread and delay no request; `size` may be
read from any thread at any time. What the user should know of the window is logged at once, and kept as
`news` for a front end that has an answer to show it below: most editors hide the log.
"""

from __future__ import annotations

import re
import threading

from mm import log
from mm.cancel import Cancel
from mm.model import known_servers, probe
from mm.model.http import ModelError, Server
from mm.model.probe import at, listed, root_of

# Below this an agent cannot do much: the tools and a file or two fill it.
SMALL_WINDOW = 16_000
SMALL = "⚠️ the server gives this model only %d tokens of context; agents need 16000 or more: %s"
# The first two numbers: tokens.
TRUNCATED = ("⚠️ the server seems to have cut the prompt silently: it read %d tokens of about %d. What was "
             "said first may be lost; it needs a larger window: %s")
# A prompt counts as cut if the server has read less than this part of the estimate (mm.conversation.estimate
# is off by no more), or, if it keeps one half of its window, less than the second.
_CUT, _CUT_TO_HALF = 0.6, 0.75
# The windows that servers have by default, for one that does not report its own.
_USUAL_WINDOWS = tuple(1024 << power for power in range(1, 8))
NO_WAY_OUT = "pick a model with a larger window"
# How long the end of an answer waits for questions that run. A server on this machine answers within
# milliseconds.
NEWS_SECONDS = 0.3
UNKNOWN = ("⚠️ the model server does not report its context window: the conversation is not compressed "
           "automatically (set model.contextWindow)")


class Window:
    """What is known of the window of one model server. `configured`: what the user set, 0 for nothing."""

    def __init__(self, configured: int = 0):
        self._configured = configured
        self._reported = self._learned = 0
        self._product = None  # the key of the product that the server showed to be
        self._lock = threading.Lock()
        self._running = None  # the thread that asks
        self._ahead = False  # whether it was asked before a prompt needed it
        self._silent = True  # nothing is said before a prompt needs it
        self._suspected = None  # a report of tokens that is still to be compared with the window
        self._said = self._said_truncated = False
        self._news = []

    @property
    def size(self) -> int:
        """Tokens, 0 while unknown: as set, else as reported; less if a refusal showed so."""
        known = self._configured or self._reported
        return min(known, self._learned) if known and self._learned else known or self._learned

    def look(self, server: Server, answered: bool = False) -> None:
        """Asks the server in the background, unless the window is known or being asked for.

        Some servers know only once the model is loaded, so it is called before the first request of a turn,
        and again with `answered` after a request has been answered. If the window is still unknown then, or
        is small, that is said once. A small one is asked for in each turn: the user may have restarted the
        server with a larger one.
        """
        with self._lock:
            self._silent = False
            ahead, self._ahead = self._ahead, False
            if self.size and (answered or ahead):
                self._report(server)
            elif not self._configured and (self.size < SMALL_WINDOW if self.size else not self._said):
                self._start(server, answered)

    def look_ahead(self, server: Server) -> None:
        """Asks the server before the first prompt, which then need not."""
        with self._lock:
            if not self.size and self._silent:
                self._ahead = True
                self._start(server, False)

    def learn(self, problem, server: Server):
        """Takes the error of a request; returns the failures.Overflow, None if it is about anything else.

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
        """Takes the tokens of a prompt as the server counted them (None or 0 if it did not) and as mm
        estimated them.

        A prompt that was cut silently is reported once, as soon as the window is known.
        """
        if not reported:
            return
        with self._lock:
            self._suspected = (reported, estimated)
            if not (self._running and self._running.is_alive()):
                self._report_truncated(server)

    def wait(self, seconds: float) -> None:
        """Waits until the questions that run have been answered."""
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
            self._running = threading.Thread(target=self._look, args=(server, answered), name="window",
                                             daemon=True)
            self._running.start()

    def _look(self, server: Server, answered: bool) -> None:
        size, product = 0, None
        try:
            size, product = ask_size(server, Cancel())
        except Exception:
            log.traceback()
        with self._lock:
            if self._reported and size not in (0, self._reported):
                self._learned = 0  # from the server as it was before
            self._reported, self._product = size or self._reported, product or self._product
            if answered or self.size:
                self._report(server)
            self._report_truncated(server)

    def _report(self, server: Server) -> None:
        if self._said or self._silent:
            return
        self._said = True
        if not self.size:
            log.line(UNKNOWN)
        elif self.size < SMALL_WINDOW:
            self._say(SMALL % (self.size, self._way_out(server)), new=not self._configured)

    def _report_truncated(self, server: Server) -> None:
        if self._suspected and not self._said_truncated and truncated(*self._suspected, self.size):
            self._said_truncated = True
            self._say(TRUNCATED % (*self._suspected, self._way_out(server)))

    def _way_out(self, server: Server) -> str:
        return way_out(server, self._product, self.size)

    def _say(self, line: str, new: bool = True) -> None:
        """`new`: whether the user has not set it that way."""
        log.line(line)
        if new:
            self._news.append(line)


def way_out(server: Server, product=None, window: int = 0) -> str:
    """The command that gives the model a larger window than `window` on this very server. `product`: its key,
    as far as a question about the window showed it."""
    return " or ".join(ways_out(server, product, window)) or NO_WAY_OUT


def ways_out(server: Server, product=None, window: int = 0) -> list:
    """The commands of way_out, the best first; empty if there are none."""
    known = known_servers.of_key(server.product or product) or known_servers.of_url(server.url)
    return known_servers.larger_window(known, server.model, window)


def truncated(reported: int, estimated: int, window: int) -> bool:
    """Whether a server that counted `reported` tokens has silently cut a prompt of about `estimated`.

    Far fewer tokens than were sent are not enough: some servers count only what they had not read before. So
    the prompt cannot have fitted, or the count is what Ollama keeps of one: half of its window and two.
    """
    halves = [size // 2 + 2 for size in ((window,) if window else _USUAL_WINDOWS)]
    if any(abs(reported - half) <= 2 for half in halves):
        return reported < _CUT_TO_HALF * estimated and estimated > _CUT_TO_HALF * window
    return 0 < window < estimated and 0 < reported < _CUT * estimated


def ask_size(server: Server, cancel: Cancel) -> tuple:
    """Asks the server for its window: (tokens, 0 if it does not say; the key of its product if the answer
    shows it).

    Raises Cancelled, and nothing else.
    """
    if server.product == "llama-cpp-python":
        # it never says, and a question for its models breaks off the answer that it is writing
        return 0, server.product
    root = server._replace(url=root_of(server.url))
    model = server.model or ""
    for question, product in ((_llama_cpp, "llama.cpp"), (_ollama, "ollama"), (_openai, None),
                              (_lm_studio, "lmstudio"), (_slots, "llama.cpp")):
        try:
            size = question(root, server, model, cancel)
        except ModelError:
            return 0, None  # nobody is there
        if size:
            return size, product
    return 0, None


def _ask(server: Server, path: str, cancel: Cancel, body=None):
    return probe.ask(server, path, cancel, body).value


def _llama_cpp(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    settings = at(_ask(root, "/props", cancel), "default_generation_settings")
    if isinstance(settings, dict) and not _size(at(settings, "n_ctx")) and model:
        # A router has no window itself: it is asked for the model's.
        from urllib.parse import quote

        settings = at(_ask(root, "/props?model=" + quote(model, safe=""), cancel),
                      "default_generation_settings")
    return _size(at(settings, "n_ctx"))


def _slots(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    """An old llama.cpp, which says it nowhere else."""
    return _first(listed(_ask(root, "/slots", cancel)), lambda each: True, "n_ctx")


def _ollama(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    running = at(_ask(root, "/api/ps", cancel), "models")
    if not isinstance(running, list):
        return 0
    names = (model, model + ":latest")
    size = _first(running, lambda each: at(each, "name") in names or at(each, "model") in names,
                  "context_length")
    if size or not model:
        return size
    # Not loaded yet: what it will be loaded with, if the model file says so. Its maximum is something else.
    parameters = at(_ask(root, "/api/show", cancel, {"model": model}), "parameters")
    found = re.search(r"^\s*num_ctx\s+(\d{1,9})\s*$", parameters, re.MULTILINE) if isinstance(parameters,
                                                                                              str) else None
    return int(found.group(1)) if found else 0


def _openai(root: Server, server: Server, model: str, cancel: Cancel) -> int:
    """vLLM and SGLang, llama.cpp if /props is closed, Docker Model Runner."""
    entries = listed(at(_ask(server, "/models", cancel), "data"))
    mine = [each for each in entries if at(each, "id") == model] or (entries if len(entries) == 1 else [])
    if not mine:
        return 0
    entry = mine[0]
    if at(entry, "dmr") is not None or "/engines/" in server.url:
        size = _docker(root, model, cancel)
        if size:
            return size
    return _size(at(entry, "max_model_len")) or _size(at(entry, "meta", "n_ctx")) or \
        _size(at(entry, "dmr", "context_window"))


def _docker(root: Server, model: str, cancel: Cancel) -> int:
    """What was configured for the model; it wins over what the model was packaged with."""
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
