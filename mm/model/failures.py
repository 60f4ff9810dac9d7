"""Why a model server did not answer: from a status and the server's own words to a kind, and from there to
one line (pure).

The words decide before the status does, because servers do not agree on statuses: llama.cpp answers 500 if
the template or the tools are at fault, LM Studio puts errors under 200, mlx-lm gives 404 to whatever failed.
docs/errors.md has the table.
"""

from __future__ import annotations

import json
import re
from collections import namedtuple

from mm.model import known_servers, refusal
from mm.model.fields import REASONING_FIELDS

# `numbers`: what the words say in figures and names: "prompt" and "window" in tokens, "model", "field".
# `words`: the server's own, as they came.
Failure = namedtuple("Failure", "kind numbers words status")

# What a prompt that is too long is recognised by: tokens of the window and of the prompt, 0 if the server
# does not say.
Overflow = namedtuple("Overflow", "window prompt")

# When a request is made again; each only before the first word of an answer.
NEVER = "no"
ONCE = "once"  # as it is, never after a status 4xx
WAITING = "after a pause, again and again"
FIXED = "once, changed"  # without what the server refused, if there is any of it
SHORTENED = "once, shortened"  # by the engine
REPEATED = "once, by the turn"  # what was said before is kept

Rule = namedtuple("Rule", "line again")

UNREADABLE = ("the model server at {address} could not read what its model wrote ({words}): send the prompt "
              "again, lower model.temperature, or update the server")
TEMPLATE = "the model's chat template refused the conversation: {words}"

# The line for each kind, and when the request is made again.
RULES = {
    "refused": Rule("no model server at {address} (connection refused): start it{start}, or set the URL "
                    "(--url or MM_URL)",
                    NEVER),
    "name": Rule('cannot resolve "{words}" ({address}): check MM_URL or --url', NEVER),
    "unreachable": Rule("no model server at {address} ({words}): check MM_URL or --url", NEVER),
    "tls": Rule("{address}: the TLS connection failed: {words}", NEVER),
    "protocol": Rule("{address} answers, but not in HTTP: is it the model server's port?", NEVER),
    "redirect": Rule("{address} answered {status}: it redirects to {words}; use that URL", NEVER),
    "proxy": Rule("a proxy at {address} answered {status}: is the model server behind it running?", NEVER),
    "wrong_url": Rule("{address} answers, but not as an OpenAI API ({status}: {words}): {url}", FIXED),
    "loading": Rule("the model at {address} is still loading: {words}", WAITING),
    "busy": Rule("{address} is busy ({status}): {words}", WAITING),
    "model_not_found": Rule('model "{model}" is not on this server{models}{pull}', NEVER),
    "model_not_loaded": Rule("no model loaded in {title}: {load}", NEVER),
    "tools_unsupported": Rule("this model has no tool support here: {tools}", NEVER),
    "context_overflow": Rule("the prompt{prompt} does not fit the server's window{window}: /compact, or "
                             "{larger_window}",
                             SHORTENED),
    "request_too_large": Rule("the request is too large for {address} ({status}): /compact", SHORTENED),
    "template": Rule(TEMPLATE, FIXED),
    "trailing_assistant": Rule(TEMPLATE, FIXED),
    "bad_history_arguments": Rule("{address} cannot read the arguments of a tool call ({status}): {words}",
                                  FIXED),
    "unreadable_call": Rule(UNREADABLE, REPEATED),
    "unreadable_answer": Rule(UNREADABLE, NEVER),
    "schema": Rule("{address} cannot take the schema of a tool ({status}: {words}): name the tool in "
                   "tools.disabled", FIXED),
    "auth": Rule("{address} {key} ({status}): set MM_API_KEY or model.apiKey", NEVER),
    "backend_missing": Rule("{address} lacks what this model runs on: {words}", NEVER),
    "server_crash": Rule("the model server at {address} failed{where} ({status}): {words}", ONCE),
    "dropped": Rule("the model server at {address} closed the connection {where}", ONCE),
    "empty": Rule("{address} ended its answer ({status}) before the first word: {words}", NEVER),
    "timeout": Rule("no byte from {address} for {words} s (model.timeout)", NEVER),
    "bad_request": Rule("{address} refused the request ({status}): {words}", FIXED),
}

# Fields of mm's requests that some servers do not know.
_FIELDS = re.compile(r"\b(%s)\b" % "|".join(("stream_options", *REASONING_FIELDS)))

# How to load a model that the first request does not load.
_LOAD = {"lmstudio": "lms load <model>", "llama.cpp": "restart llama-server without --no-models-autoload"}

# How much of a text is searched: an error may repeat the whole request after its words.
_SEARCHED = 2000

_MODELS_SHOWN = 5


def of_body(status: int, body: str) -> Failure:
    """The failure that a refusal's status and body mean."""
    text = body[:refusal.MAX_BODY].strip()
    words = refusal.words_of_body(text)
    if refusal.is_page(text):
        return Failure(_of_page(status), {}, words, status)
    try:
        return _failure(json.loads(text), words, status, is_json=True)
    except (ValueError, RecursionError):
        return _failure(None, words, status)


def of_value(value, status: int) -> Failure:
    """The failure that an `error` in the place of an answer means; `status` is the answer's."""
    return _failure(value, refusal.words_of_value(value), refusal.status_of_value(value, status),
                    is_json=True)


def overflow(text: str):
    """The Overflow that a server's words are about; None if they are about anything else."""
    if not _OVERFLOW.search(text):
        return None
    window, prompt = _first_number(_WINDOW_WORDS, text), _first_number(_PROMPT_WORDS, text)
    if _ANSWER_TOO_LARGE.search(text) and 2 * prompt < window:
        return None  # the room that was asked for the answer is what does not fit
    return Overflow(window, prompt)


def product_of(server, words: str = ""):
    """The Product of a server: known, betrayed by its words, or usual for its address; or None."""
    product = known_servers.of_key(server.product)
    for key, sign in _SIGNS:
        product = product or (known_servers.of_key(key) if sign.search(words) else None)
    product = product or known_servers.of_url(server.url)
    return product or (known_servers.of_key("llama.cpp") if "exceed_context_size" in words else None)


def line(failure: Failure, address: str, product=None, secrets=(), **more) -> str:
    """The one line of a failure. `more`: `has_key`, `models` (the names on the server), `where`."""
    numbers, kind = failure.numbers, failure.kind
    words = _shown_words(kind, failure.words, secrets)
    model = refusal.one_line(str(numbers.get("model") or ""), secrets, 100)
    names = [refusal.one_line(name, secrets, 100) for name in more.get("models") or ()]
    return RULES[kind].line.format(
        address=address, status=failure.status, words=words or "no reason given", model=model,
        where=more.get("where", ""), title=product.title if product else address,
        start=" (%s)" % product.start if product else "",
        url="is it the model server's port?" if address.endswith("/v1") else "does the URL end in /v1?",
        models=_listed(names), pull=_pull(product, model, names),
        load=known_servers.with_model(_LOAD[product.key], model) if product and product.key in _LOAD
        else words, tools=product.tools if product else "pick a model that was trained for tools",
        prompt=" (%d tokens)" % numbers["prompt"] if numbers.get("prompt") else "",
        window=" (%d)" % numbers["window"] if numbers.get("window") else "",
        larger_window=_larger_window(product, numbers.get("window", 0)),
        key="does not take the API key" if more.get("has_key") else "wants an API key")


def _listed(names: list) -> str:
    more = ", …" if len(names) > _MODELS_SHOWN else ""
    return "; it has: %s%s" % (", ".join(names[:_MODELS_SHOWN]), more) if names else ""


def _pull(product, model: str, names: list) -> str:
    """How to get the model, or another one."""
    choose = "; choose one with --model" if names else ""
    if not product or not product.pull:
        return choose
    return "%s: %s" % (choose and choose + ", or", known_servers.with_model(product.pull, model))


def _larger_window(product, window: int) -> str:
    commands = " / ".join(known_servers.larger_window(product, window=window))
    return "restart with a larger one (%s)" % commands if commands else "pick a model with a larger one"


def _shown_words(kind: str, words: str, secrets) -> str:
    """The part of the server's words that says most."""
    if kind in ("template", "trailing_assistant"):
        words = words.rpartition("Exception:")[2]
    elif kind == "server_crash":
        words = next((each for each in words.split("\n") if each.strip(" \r\t-")), "")
        return refusal.one_line(words, secrets, 200)
    return refusal.one_line(words, secrets)


def _failure(value, words: str, status: int, is_json: bool = False) -> Failure:
    said = words + _marks(value)
    said = said if len(said) <= _SEARCHED else said[:_SEARCHED // 2] + " " + said[-_SEARCHED // 2:]
    found = overflow(said) if status != 429 else None
    if found:
        return Failure("context_overflow", {name: count for name, count in found._asdict().items() if count},
                       words, status)
    kind = next((kind for kind, pattern, fits in _WORDS if fits(status) and pattern.search(said)), None)
    kind = kind or _of_status(status, said, is_json)
    numbers = {}
    if kind == "model_not_found":
        named = next(filter(None, _MODEL.search(said).groups()), None) if _MODEL.search(said) else None
        numbers = {"model": named} if named else {}
    elif kind == "bad_request":
        field = _FIELDS.search(refusal.json_of(value) if is_json else words)
        numbers = {"field": field.group()} if field else {}
    return Failure(kind, numbers, words, status)


def _marks(value) -> str:
    """What comes beside the words: a type, a code, numbers."""
    if isinstance(value, dict):
        value = value["error"] if isinstance(value.get("error"), dict) else value
        return "".join(f"\n{name}: {each}" for name, each in value.items()
                       if name not in ("message", "error") and isinstance(each, (str, int))
                       and len(str(each)) < 100)
    return ""


def _of_page(status: int) -> str:
    """For a web page: a proxy's, or that of something else."""
    if status in (502, 504):
        return "proxy"
    return "wrong_url" if status in (200, 404, 405) else _of_status(status, "", False)


def _of_status(status: int, said: str, is_json: bool) -> str:
    """The kind if the words say nothing that is known."""
    if status == 401 or status == 403 and not said.strip():
        return "auth"
    if status in (404, 405) and not is_json:
        return "wrong_url"
    if status in (502, 504) and not is_json:
        return "proxy"
    named = {413: "request_too_large", 429: "busy", 503: "busy"}.get(status)
    return named or ("bad_request" if 400 <= status < 500 else "server_crash")


def _any(status: int) -> bool:
    return True


def _not_the_request(status: int) -> bool:
    """Whether the server does not say that the request is at fault."""
    return status == 429 or not 400 <= status < 500


def _first_number(patterns, text: str) -> int:
    found = next(filter(None, (pattern.search(text) for pattern in patterns)), None)
    return int(found.group(1)) if found else 0


def _patterns(*texts) -> tuple:
    return tuple(re.compile(text, re.IGNORECASE) for text in texts)


# How the servers say that a prompt is too long, and where they put the figures.
_OVERFLOW = re.compile("|".join((
    "exceed_context_size", "context_length_exceeded", "context shift is disabled", "context the overflows",
    "exceeds? the (available |model'?s? )?(maximum )?context", "model's context length is only",
    "(maximum|longer than the|greater than the|reached|exceeds?( the)?|exceeded( the)?|longer than the "
    "model'?s) "
    "context (length|size|window)", "context (length|size|window) (has been |was |is )?(exceeded|too small)",
    "maximum (allowed|model|input) length", "max_seq_len", r"n_keep: \d+ >= n_ctx", "prompt too long",
    r"(prompt|input|request|context|conversation) (is|was) too (long|large: \d+ tokens)", "too many tokens",
    "no user query found in messages", "max_tokens must be at least 1, got -")), re.IGNORECASE)
_ANSWER_TOO_LARGE = re.compile(r"max_(completion_)?tokens\b.{0,60}too large", re.IGNORECASE)
_WINDOW_WORDS = _patterns(
    r'"?n_ctx"?\s*[:=]\s*(\d{1,9})', r"context (?:length|size|window)(?: is| of)?(?: only)? (\d{1,9})",
    r"context (?:length|size|window) \((\d{1,9})", r">\s*(\d{1,9}) maximum",
    r"(?:maximum (?:allowed |model |input )?length|max_seq_len)(?: of| is)? \(?(\d{1,9})")
_PROMPT_WORDS = _patterns(
    r'"?n_prompt_tokens"?\s*[:=]\s*(\d{1,9})', r"(?:request|input|input length) \((\d{1,9}) tokens",
    r"n_keep: (\d{1,9})", r"\((\d{1,9}) in the messages",
    r"(?:has|have|contains|requested|passed) (\d{1,9}) (?:input )?tokens",
    r"prompt is too long: (\d{1,9}) tokens", r"requested tokens \((\d{1,9})\)",
    r"prompt \(length (\d{1,9})\)", r"prompt length (\d{1,9})", r"keep the first (\d{1,9}) tokens")

_MODEL = re.compile(
    r"""models?:? ["'`]?([^\s"'`,]{1,200})["'`]? """
    r"""(?:is not found|was not found|could not be found|not found|does not exist|doesn't exist)"""
    r"""|(?:invalid|unknown|no such) model(?: identifier| name)?:? ["'`]([^\s"'`,]{1,200})"""
    r"""|([^\s"'`]{1,200}) is not a local folder and is not a valid model identifier""", re.IGNORECASE)

# The other kinds by their words, the first that fits: (kind, whether it can have this status, words).
_WORDS = tuple((kind, re.compile("|".join(texts), re.IGNORECASE), fits) for kind, fits, *texts in (
    ("unreadable_call", _any, r"failed to parse (the )?(input at pos|tool calls?:)",
     "error parsing tool call", "unexpected empty grammar stack",
     "model produced output that does not match"),
    ("schema", _any, r"\bgrammar\b", "json[ _]schema", "(invalid|unsupported|unrecognized) (json )?schema",
     "exceeds sane defaults", "failed to initialize samplers", "invalid_function_parameters"),
    ("bad_history_arguments", _any, "parse tool call arguments", "invalid tool call arguments"),
    ("trailing_assistant", _any, "response prefill", "assistant messages? at the end",
     "(last|final) (message|turn|role).{0,60}assistant", "last role user or tool"),
    ("tools_unsupported", _any, "not support (the )?(use of )?(tool|function)", "tools param requires",
     "tool choice requires", "tool (calling|use|choice)s? (is|are) not supported",
     "(tools|functions) (is|are) not supported", "tool use is not supported"),
    ("template", _any, "jinja", "chat[ _]template", "roles must alternate", r"while executing \w+ at line",
     "(system|role).{0,20} not supported", "system message must be", "roles? (is|are) supported",
     "unexpected role"),
    ("backend_missing", _any, "backend .{1,40} is not (installed|available)", "install-runner"),
    ("request_too_large", _any, "(request|request entity|payload|request body|body) (is )?too large"),
    ("model_not_loaded", _any, "no models? (is |are |is currently )?loaded", "model (is |was )?not loaded",
     r"model (is |was |has been )?unloaded\b"),
    ("server_crash", _not_the_request,
     r"\b(fail(ed|ure)|unable|error|could not|cannot|can't)( to| while| in)? load",
     r"(not enough|insufficient|out of) (\w+ ){0,2}memory", "unexpectedly stopped", r"\bcrash",
     "process (has )?terminated", "engine.{0,20} (is dead|died)", "cuda error"),
    ("loading", _not_the_request, r"\bloading (the |a )?model", "warming up", "model is not ready",
     r"model (is |is still |still |is being |is currently )?load(ing|ed)\b"),
    ("model_not_found", _any, _MODEL.pattern, "model[_ ]not[_ ]found", "repository not found"),
    ("wrong_url", _any, "unexpected endpoint", "(unknown|no such|invalid) (endpoint|route|page|path|url)",
     "cannot (post|get) /", "file not found", "detail: not found", "method not allowed",
     "404 page not found"),
    ("auth", lambda status: status in (401, 403), "api[ _-]?key", "unauthori[sz]ed", "authentication",
     "not authenticated", "forbidden", "credential"),
    ("busy", _not_the_request, r"\b(busy|overloaded)\b", "too many requests", "rate limit",
     "pending requests", r"(no|all) .{0,20}slots?\b"),
))

# What names the product of a server in its words.
_SIGNS = tuple((key, re.compile(text, re.IGNORECASE)) for key, text in (
    ("docker", r"docker model"), ("ollama", r"\bollama\b"), ("lmstudio", r"\blms\b|lm studio|n_keep: "),
    ("vllm", r"--enable-auto-tool-choice|\bvllm\b"), ("llama.cpp", r"--jinja|llama-server")))
