"""`--check`: what mm sees, a line each, and what to do about what it does not see.

    ok  server    Ollama at http://127.0.0.1:11434/v1, found at its usual port
    --  window    4096 tokens, agents need 16000 or more:
                  OLLAMA_CONTEXT_LENGTH=32768 ollama serve
    !!  tools     …

`!!` is what keeps mm from doing its work, `--` what could be better. Each question to the server has an end,
and the long ones say when. A command stands alone on its line, so that it can be copied. The questions are
asked in a thread of their own, so that the main thread can take a Ctrl-C at any moment.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections import namedtuple

from mm import __version__, log
from mm.cancel import Cancel, Cancelled
from mm.config.config import HOOKS_WAIT
from mm.errors import UserError
from mm.fronts import trial
from mm.fronts.lines import Colors
from mm.model import http, known_servers, probe, find, window
from mm.notices import Notices
from mm.text import one_line, plural
from mm.wire import programs

OK, NOTE, BAD = "ok", "--", "!!"
COLORS = {OK: 32, NOTE: 33, BAD: 31}
# `mark` is OK, NOTE or BAD, or "" where the line goes on with the one before it.
Row = namedtuple("Row", "mark subject text")

NONE_CONFIGURED = "none configured"
LINE_LIMIT = 500  # characters
GOODBYE = 1.0

READY = 'mm -p "what does this project do?" here, or an editor: mm --editor NAME'
NOT_READY = "fix what is marked !! and run mm --check again (mm --demo … works without a model)"
INSTALL = "nothing that serves models is installed; this installs it, with a model:"
AGAIN = "then mm --check again"
# Where the command for a larger window is not the whole story.
WINDOW_TOO = {"ollama": ("if Ollama runs as a service, set the context length in the app's settings, or:",
                         "systemctl edit ollama",
                         'with Environment="OLLAMA_CONTEXT_LENGTH=32768" below [Service], then:',
                         "systemctl restart ollama")}
NO_BYTE_CODE = "from %s, without byte code for this Python: sh zipapp.sh, with it on the PATH, adds it"
LOADING = "the server is still loading its model; run mm --check again when it has"


def check(config, folder: str, demo: bool, color: str, environ=os.environ) -> int:
    """Prints the lines for mm started in `folder`; returns 1 if a turn could not do its work, else 0."""
    colors, cancel, rows = Colors(sys.stdout, color), Cancel(), queue.Queue()

    def run() -> None:
        try:
            for row in _rows(config, folder, demo, environ, cancel):
                rows.put(row)
        except Cancelled:
            pass
        except Exception:
            log.traceback()
            rows.put(Row(BAD, "mm", "a bug in mm, its traceback is above"))
        rows.put(None)

    threading.Thread(target=run, name="check", daemon=True).start()
    failed = False
    try:
        for row in iter(lambda: _next(rows), None):
            failed = failed or row.mark == BAD
            _print(colors, row)
        _print(colors, Row(BAD, "not ready", NOT_READY) if failed else Row(OK, "ready", READY))
    finally:
        cancel.cancel()
        log.flush(GOODBYE)
    return 1 if failed else 0


def _next(rows: queue.Queue):
    while True:
        try:
            # a wait without a limit would not let a Ctrl-C through on every system
            return rows.get(timeout=0.1)
        except queue.Empty:
            pass


def _print(colors: Colors, row: Row) -> None:
    mark = colors.mark(row.mark, COLORS[row.mark]) if row.mark else "  "
    line = "%s  %-9s %s\n" % (mark, row.subject, one_line(row.text, LINE_LIMIT))
    sys.stdout.buffer.write(line.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _rows(config, folder, demo, environ, cancel):
    yield _python()
    yield from _files(config)
    yield from _model_server(config, demo, environ, cancel)
    yield from _instructions(config, folder)
    yield from _skills(config, folder, environ)
    yield _hooks(config)
    yield _sessions(config)
    yield from _mcp(config, folder, environ, cancel)
    yield _lsp(config, folder, environ)
    yield _agents(config, folder, environ)


def _python() -> Row:
    import zipimport

    import mm

    loader = mm.__spec__.loader
    archive = getattr(loader, "archive", None)
    mark, how = OK, "from the clone in %s" % os.path.dirname(os.path.dirname(os.path.abspath(mm.__file__)))
    if archive:
        how = "from %s, with byte code for this Python" % archive
        if isinstance(loader, zipimport.zipimporter):
            mark, how = NOTE, NO_BYTE_CODE % archive
    return Row(mark, "python", "%d.%d.%d (%s), mm v%s %s"
               % (*sys.version_info[:3], sys.executable, __version__, how))


def _files(config):
    there = [(path, how) for path, how in config.files if how != "not there"]
    for path, how in there:
        good = how in ("read", "trusted")
        yield Row(OK if good else NOTE, "config", "%s: %s%s" % (path, how, "" if good else " (mm --trust)"))
    if not there:
        yield Row(OK, "config", "no file, which is fine (%s)" % ", ".join(path for path, _ in config.files))
    for warning in config.warnings:
        if warning != HOOKS_WAIT:
            yield Row(NOTE, "config", warning)


def _model_server(config, demo, environ, cancel):
    """The server, its models, the window, whether tools work, how fast it is."""
    try:
        found = find.locate(config, demo, cancel, environ)
        said = probe.ask(found.server, "/models", cancel)
    except UserError as problem:
        if isinstance(problem, find.NothingRuns):
            yield Row(BAD, "server", problem.short)
            yield from _ways_to_start(problem)
        else:
            yield Row(BAD, "server", str(problem))
        return
    server, names = found.server, find.names_in(said.value) or []
    if not server.product:
        product = known_servers.of_models(said.value, said.software)
        server = server._replace(product=product and product.key)
    yield Row(OK, "server", _described(server, found.origin))
    for note in found.notes:
        yield Row(NOTE, "server", note)
    yield from _model(server, names, is_loading=said.status == 503)
    tried = trial.ask(server, cancel)
    yield from _window(config, server, cancel)
    yield Row(BAD if tried.failed else OK if tried.real else NOTE, "tools", tried.tools)
    if tried.speed:
        yield Row(OK, "speed", tried.speed)


def _described(server, origin) -> str:
    if origin == find.DEMO:
        return "the demo model at %s: a script, no language model" % server.url
    product = known_servers.of_key(server.product)
    how = {find.SET: "set by you", None: "found at its usual port"}.get(origin, "found by %s" % origin)
    return "%s at %s, %s" % (product.title if product else "a server", http.shown(server.url), how)


def _ways_to_start(problem):
    """What a newcomer can do: start what is installed, else install something."""
    for way in problem.ways:
        yield Row("", "", way.about + ":" if way.about else INSTALL)
        yield Row("", "", way.command)
    yield Row("", "", AGAIN)


def _model(server, names, is_loading: bool):
    if is_loading:
        yield Row(NOTE, "model", LOADING)
    elif names and server.model not in names and server.model + ":latest" not in names:
        yield Row(NOTE, "model", '"%s" is not among what the server lists: %s'
                  % (server.model, ", ".join(names[:9])))
        product = known_servers.of_key(server.product)
        if product and product.pull:
            yield Row("", "", known_servers.with_model(product.pull, server.model))
    else:
        yield Row(OK, "model", find.among(server.model, names)
                  + (", --model NAME takes another" if len(names) > 1 else ""))


def _window(config, server, cancel):
    tokens, product = config.model_context_window, None
    if not tokens:
        tokens, product = window.ask_size(server, cancel)
    if not tokens:
        yield Row(NOTE, "window", "the server does not say: set model.contextWindow, or long conversations "
                                  "will fail")
    elif tokens < window.SMALL_WINDOW:
        ways = window.ways_out(server, product, tokens)
        yield Row(NOTE, "window", "%d tokens, agents need 16000 or more: %s"
                  % (tokens, "" if ways else window.NO_WAY_OUT))
        for line in (*ways, *WINDOW_TOO.get(server.product or product, ())):
            yield Row("", "", line)
    else:
        yield Row(OK, "window", "%d tokens" % tokens)


def _instructions(config, folder):
    """The files that every session here begins with."""
    from mm.engine.instructions import Instructions

    notices = Notices()
    found = Instructions(folder, notices).files(config.user_folder, config.model_context_window)
    yield Row(OK, "AGENTS.md", ", ".join(path for path, _ in found) or "none")
    for line in notices.take():
        yield Row(NOTE, "AGENTS.md", line)


def _skills(config, folder, environ):
    from mm.fronts.acp import commands
    from mm.skills import catalogue

    skills, warnings, _ = catalogue.find(folder, config, environ)
    shown = [skill.name + (" (allowed-tools: %s; not enforced)" % ", ".join(skill.allowed_tools)
                           if skill.allowed_tools else "")
             for skill in skills]
    yield Row(OK, "skills", ", ".join(shown) or "none")
    for line in warnings + tuple(commands.hidden(skills)):
        yield Row(NOTE, "skills", line)


def _hooks(config) -> Row:
    if config.hooks_wait:
        return Row(NOTE, "hooks", HOOKS_WAIT)
    shown = ["%s: %d" % (event, len(hooks)) for event, hooks in config.hooks.items() if hooks]
    return Row(OK, "hooks", ", ".join(shown) or "none")


def _sessions(config) -> Row:
    if not config.sessions_enabled:
        return Row(OK, "sessions", "not kept (sessions.enabled)")
    return Row(OK, "sessions", "kept in %s of the session's folder" % config.sessions_dir)


def _mcp(config, folder: str, environ, cancel):
    """Starts the MCP servers, as a session does."""
    if not config.mcp:
        yield Row(OK, "mcp", NONE_CONFIGURED)
        return
    from mm.peers import mcp, mcp_pool

    pool = mcp_pool.McpPool()
    started = pool.join(config.mcp, folder, environ)
    started.begin()
    try:
        started.ready(cancel, mcp.START)
        offered = [offer.server.name for offer in started.tools()]
        problems = started.problems
    finally:
        pool.close()
    for name in config.mcp:
        if name in problems:
            yield Row(NOTE, "mcp", problems[name])
        else:
            yield Row(OK if name in offered else NOTE, "mcp",
                      "%s (%s)" % (name, plural(offered.count(name), "tool")))


def _lsp(config, folder: str, environ) -> Row:
    """The language servers that sessions here can use; none of them is started."""
    if config.lsp is False or "lsp" in config.tools_disabled:
        return Row(OK, "lsp", "off")
    from mm.peers import languages

    missing = ["%s (%s: not found)" % (name, entry.argv[0]) for name, entry in config.lsp.items()
               if not programs.find(entry.argv[0], folder, environ)]
    found = languages.here(config, folder, environ)
    waits = languages.waiting(config, folder, environ, found) if found else None
    if waits:
        return Row(NOTE, "lsp", waits)
    shown = ["%s (%s)" % (each.name, os.path.basename(each.argv[0]))
             for each in languages.present(found, folder)]
    return Row(NOTE if missing else OK, "lsp",
               ", ".join(shown + missing) or "no language server on PATH for what is in this folder")


def _agents(config, folder: str, environ) -> Row:
    """The agents that the configuration names, and which of them are not there."""
    missing = [name for name, entry in config.agents.items()
               if not programs.find(entry.argv[0], folder, environ)]
    shown = ["%s (%s%s)" % (name, entry.argv[0], ": not found" if name in missing else "")
             for name, entry in config.agents.items()]
    return Row(NOTE if missing else OK, "agents", ", ".join(shown) or NONE_CONFIGURED)
