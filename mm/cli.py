"""The command line: arguments -> one front end, and the exit code.

The options are read by the table below and not by argparse, whose import alone would take half of the time
that the answer to `initialize` may take. The table also makes the usage text and is what docs/ is checked
against.
"""

from __future__ import annotations

import os
import sys
from collections import namedtuple

from mm import __version__
from mm.errors import UserError

# `argument` is the name of the value that must follow, or None for a switch; `field` and `value` are what a
# switch sets.
Option = namedtuple("Option", "names argument field value help")

OPTIONS = (
    Option(("-p",), None, "front", "once", "answer the question, and what is piped in, and exit"),
    Option(("-c", "--continue"), None, "go_on", True, "go on with the last session of this folder"),
    Option(("-acp", "--acp"), None, "front", "acp", "be an ACP agent on stdin and stdout, for an editor"),
    Option(("--editor",), "NAME", "editor", None, "print the block to paste into an editor's settings"),
    Option(("--ask",), "AGENT", "ask", None, "ask another agent: a name, or a command line"),
    Option(("--check",), None, "front", "check", "say what mm sees, whether it works, and what to do"),
    Option(("--demo",), None, "demo", True, "use the built-in scripted model instead of a server"),
    Option(("--record",), "FILE", "record", None, "with -acp or -p: also write a transcript to FILE"),
    Option(("--replay",), "FILE", "replay", None, "play a transcript, print the first difference"),
    Option(("--trust",), None, "front", "trust", "trust the configuration of this folder"),
    Option(("--config-schema",), None, "front", "schema", "print the JSON Schema of the configuration"),
    Option(("-v", "-V", "--version"), None, "front", "version", "print the version"),
    Option(("-h", "--help"), None, "front", "help", "print this text"),
    Option(("--config",), "FILE", "config", None, "read this configuration file alone"),
    Option(("--cwd",), "DIR", "cwd", None, "start in this folder"),
    Option(("-m", "--model"), "NAME", "model", None, "the model's name"),
    Option(("--url",), "URL", "url", None, "the model server, such as http://127.0.0.1:8080"),
    Option(("--yolo",), None, "yolo", True, "run tools without asking"),
    Option(("--no-yolo",), None, "yolo", False, "ask before a tool changes or runs anything"),
    Option(("--color",), "WHEN", "color", None, "always, never or auto"),
)

EXAMPLES = """\
usage: mm [OPTION…] [QUESTION…]

  mm                                chat in this terminal
  mm fix the failing test           the same, beginning with this question
  git diff | mm -p "any bugs?"      one answer on stdout, for scripts and pipes
"""
MORE = "Getting started, the configuration and all else: docs/, or mm --check."

# The fields that say what mm is to do; one of them is given.
WHAT_TO_DO = ("front", "ask", "editor", "replay")
FOR_EDITORS = ("mm: -acp is for an editor, which speaks JSON here; in a terminal: mm, mm -p QUESTION, "
               "or mm --editor NAME. ^C leaves.")
COLORS = ("always", "never", "auto")
DEMO_WINDOW = 32_768  # tokens; a script has none, but what is shown of a window should show something
FAILED, USAGE, CANCELLED, BROKEN_PIPE = 1, 2, 130, 141


def main(argv: list) -> int:
    """Runs mm with the arguments after its name; returns the exit code. A UserError has no traceback."""
    _fill_missing_streams()
    _import_nothing_from_here()
    try:
        return _run(parse(argv))
    except UserError as problem:
        print("mm: %s" % problem, file=sys.stderr)
        return problem.exit_code
    except KeyboardInterrupt:
        return CANCELLED
    except BrokenPipeError:
        _give_up_stdout()
        return BROKEN_PIPE
    except OSError as problem:  # a full disk under stdout
        _give_up_stdout()
        print("mm: %s" % (problem.strerror or problem), file=sys.stderr)
        return FAILED


def _give_up_stdout() -> None:
    """The interpreter flushes stdout once more at exit; from now on that goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _fill_missing_streams() -> None:
    """A standard stream that was closed at the start becomes the null device.

    Else the next file that is opened gets its number, and what is meant for stderr is written into that file.
    """
    for descriptor, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", errors="backslashreplace",
                                    closefd=False))


def _import_nothing_from_here() -> None:
    """Takes the current folder out of the import path, where an empty entry of PYTHONPATH puts it.

    A project's own `subprocess.py` or folder `http` would be imported in the place of Python's.
    """
    try:
        here = os.getcwd()
    except OSError:
        here = ""  # it is gone
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [entry for entry in sys.path if entry and (entry == own or os.path.abspath(entry) != here)]


def script() -> None:
    """The entry point of an installed mm."""
    sys.exit(main(sys.argv[1:]))


def parse(argv: list) -> dict:
    """The options given, by field, and the words that are not options in "words".

    The argument after -p and after --ask AGENT is a word, whatever it looks like. Raises UserError for an
    unknown option or a missing value.
    """
    known = {name: option for option in OPTIONS for name in option.names}
    given, words, tasks, arguments, is_word = {}, [], {}, iter(argv), False
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if is_word or not argument.startswith("-") or argument[1:2].isspace():
            words.append(argument)
            is_word = False
            continue
        if argument == "--":
            words += arguments
            break
        option = known.get(name)
        if option is None:
            raise _unknown(argument, known)
        if option.argument is None:
            if equals:
                raise UserError("%s takes no value" % name, USAGE)
            value = option.value
        elif not equals:
            value = next(arguments, None)
            if value is None:
                raise UserError("%s needs a value: %s %s" % (name, name, option.argument), USAGE)
        if option.field in WHAT_TO_DO:
            tasks.setdefault((option.field, value), name)
        given[option.field] = value
        is_word = value == "once" or option.field == "ask"
    if words == ["help"] and not given:
        return {"front": "help"}
    _check_combination(given, words, list(tasks.values()))
    return dict(given, words=" ".join(words))


def _check_combination(given: dict, words: list, tasks: list) -> None:
    """Raises UserError if the options do not go together; `tasks` are the names of those in WHAT_TO_DO."""
    front = given.get("front")
    if len(tasks) > 1:
        raise UserError("%s cannot be combined with %s" % (tasks[1], tasks[0]), USAGE)
    if words and tasks and front != "once" and "ask" not in given:
        raise UserError("%s takes no question, got %r" % (tasks[0], words[0]), USAGE)
    if given.get("color", "auto") not in COLORS:
        raise UserError("--color must be one of %s, got %r" % (", ".join(COLORS), given["color"]), USAGE)
    if "go_on" in given and tasks and front != "once":
        raise UserError("-c goes with the chat or -p alone", USAGE)
    if "record" in given and front not in ("acp", "once"):
        raise UserError("--record needs -acp or -p: a transcript is what an editor and mm say to each other",
                        USAGE)


def usage() -> str:
    """What --help prints."""
    lines = [EXAMPLES]
    for option in OPTIONS:
        left = ", ".join(option.names) + (" " + option.argument if option.argument else "")
        lines.append("  %-23s %s" % (left, option.help))
    return "\n".join([*lines, "", MORE])


def _run(given: dict) -> int:
    front = given.get("front")
    if front == "version":
        return _print("v" + __version__)
    if front == "help":
        return _print(usage())
    if front == "schema":
        import json

        from mm.config import schema

        return _print(json.dumps(schema.config_schema(), indent=2, ensure_ascii=False))
    if "editor" in given or "replay" in given:
        from mm.fronts import editors

        if "editor" in given:
            return _print(editors.settings(given["editor"]))
        from mm.transcripts import player

        return player.replay(given["replay"], [sys.executable, *editors.FLAGS, editors.program()],
                             cwd=_start_folder(given) if "cwd" in given else None)
    folder = _start_folder(given)
    if front == "trust":
        from mm.config import trust

        return _print(trust.trust(folder))
    if not front and "ask" not in given:
        given["front"] = _chat_or_once(given)
    return _converse(given, folder) if given.get("front") != "help" else USAGE


def _chat_or_once(given: dict) -> str:
    """What mm is without an option that says it: the chat; without a terminal -p, if there is a question."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        return "chat"
    from mm.fronts import typed

    given["words"] = given["words"] or typed.piped(sys.stdin)
    if given["words"].strip():
        return "once"
    if len(given) > 1:
        print("mm: say what to do: a question, -p or -acp goes with these options", file=sys.stderr)
    print(usage(), file=sys.stderr)
    return "help"


def _converse(given: dict, folder: str) -> int:
    """The front ends that talk with a model or an agent."""
    from mm.config import config

    overrides = {key: given[field] for field, key in _OVERRIDES.items() if field in given}
    settings = config.load(folder, os.environ, given.get("config"), overrides)
    front, demo, color = given.get("front"), given.get("demo", False), given.get("color", "auto")
    if demo and not settings.model_context_window:
        settings = settings.replace(model_context_window=DEMO_WINDOW)
    if front == "check":
        from mm.fronts import check

        return check.check(settings, folder, demo, color)
    recorder = None
    if "record" in given:
        from mm.transcripts.recorder import Recorder

        recorder = Recorder(given["record"], folder, settings)
    if front == "acp":
        from mm import log
        from mm.fronts.acp import server

        if sys.stdin.isatty():
            print(FOR_EDITORS, file=sys.stderr)
        log.tap = recorder and recorder.stderr
        return server.serve(settings, demo, recorder and recorder.trace, recorder)
    from mm.fronts.typed import as_typed

    question, go_on = as_typed(given["words"]), "go_on" in given
    if "ask" in given:
        from mm.fronts import ask_agent

        return ask_agent.answer(settings, as_typed(given["ask"]), question, folder, color)
    if front == "chat":
        from mm.fronts.terminal import chat

        return chat.chat(settings, demo, folder, color, question, go_on)
    from mm.fronts import once

    return once.answer(settings, demo, question, folder, color, go_on, recorder)


_OVERRIDES = {"model": "model.name", "url": "model.url", "yolo": "yolo"}


def _start_folder(given: dict) -> str:
    if "cwd" not in given:
        try:
            return os.getcwd()
        except OSError as problem:
            raise UserError("the current folder: %s; use --cwd" % problem.strerror, USAGE) from None
    folder = os.path.abspath(os.path.expanduser(given["cwd"]))
    if not os.path.isdir(folder):
        what = "is not a folder" if os.path.exists(folder) else "no such folder"
        raise UserError("--cwd %s: %s" % (given["cwd"], what), USAGE)
    return folder


def _print(text: str) -> int:
    print(text)
    sys.stdout.flush()
    return 0


def _unknown(argument: str, known) -> UserError:
    import difflib

    close = difflib.get_close_matches(argument.partition("=")[0], known, 1, 0.75)
    meant = " (did you mean %s?)" % close[0] if close else ""
    return UserError("unknown option %s%s; mm --help lists them" % (argument, meant), USAGE)
