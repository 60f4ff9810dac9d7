"""The command line: arguments -> one front end, and the exit code.

The options are read by the table below and not by argparse, whose import alone would take half of the time that the
answer to `initialize` may take. The table also makes the usage text and is what docs/ is checked against.
"""

from __future__ import annotations

import os
import sys
from collections import namedtuple

from mm import __version__
from mm.errors import UserError

# `argument` is the name of the value that must follow, two names for two values, or None for a switch; `field` and `value` are
# what a switch sets.
Option = namedtuple("Option", "names argument field value help")

OPTIONS = (
    Option(("-acp", "--acp"), None, "front", "acp", "be an ACP agent on stdin and stdout, for an editor"),
    Option(("-p",), "QUESTION", "question", None, "answer one question and exit; piped stdin is added to it"),
    Option(("--ask",), "AGENT QUESTION", "ask", None, "ask another ACP agent, one of `agents` or a command line; piped stdin is added"),
    Option(("--check",), None, "front", "check", "say what mm sees, whether tools work and how fast the model is, and what to do"),
    Option(("--demo",), None, "demo", True, "use the built-in scripted model instead of a model server"),
    Option(("--editor",), "NAME", "editor", None, "print the block to paste into an editor's settings"),
    Option(("--record",), "FILE", "record", None, "with -acp: also write a transcript of the session to FILE"),
    Option(("--replay",), "FILE", "replay", None, "play a transcript against this mm and print the first difference"),
    Option(("--trust",), None, "front", "trust", "trust the configuration of the folder mm is started in"),
    Option(("--config-schema",), None, "front", "schema", "print the JSON Schema of the configuration"),
    Option(("--version",), None, "front", "version", "print the version"),
    Option(("-h", "--help"), None, "front", "help", "print this text"),
    Option(("--config",), "FILE", "config", None, "read this configuration file alone"),
    Option(("--cwd",), "DIR", "cwd", None, "start in this folder"),
    Option(("--model",), "NAME", "model", None, "the model's name"),
    Option(("--url",), "URL", "url", None, "the model server's base URL, ending in /v1"),
    Option(("--yolo",), None, "yolo", True, "run tools without asking"),
    Option(("--no-yolo",), None, "yolo", False, "ask before a tool changes or runs anything"),
    Option(("--color",), "WHEN", "color", None, "always, never or auto"),
)

# The fields that say what mm is to do; one of them is given.
WHAT_TO_DO = ("front", "question", "ask", "editor", "replay")
COLORS = ("always", "never", "auto")
DEMO_WINDOW = 32_768  # tokens; a script has none, but what is shown of a window should show something
FAILED, USAGE, CANCELLED, BROKEN_PIPE = 1, 2, 130, 141


def main(argv: list) -> int:
    """Runs mm with the arguments behind its name; returns the exit code. Prints no traceback for a UserError."""
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
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", errors="backslashreplace", closefd=False))


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
    """The options given, by field. Raises UserError for an unknown option or a missing value."""
    known = {name: option for option in OPTIONS for name in option.names}
    given, position = {}, 0
    while position < len(argv):
        name, equals, value = argv[position].partition("=")
        position += 1
        option = known.get(name)
        if option is None:
            raise _unknown(argv[position - 1], known)
        if option.argument is None:
            if equals:
                raise UserError("%s takes no value" % name, USAGE)
            value = option.value
        else:
            values = [value] if equals else []
            missing = len(option.argument.split()) - len(values)
            values += argv[position:position + missing]
            position += missing
            if position > len(argv):
                raise UserError("%s needs a value: %s %s" % (name, name, option.argument), USAGE)
            value = values[0] if len(values) == 1 else tuple(values)
        if option.field in WHAT_TO_DO:
            for other in WHAT_TO_DO:
                if given.get(other, value) != value or other in given and other != option.field:
                    raise UserError("%s cannot be combined with %s" % (name, _name_of(other, given[other])), USAGE)
        given[option.field] = value
    if given.get("color", "auto") not in COLORS:
        raise UserError("--color must be one of %s, got %r" % (", ".join(COLORS), given["color"]), USAGE)
    return given


def usage() -> str:
    """What --help prints."""
    lines = ["usage: mm -acp | mm -p QUESTION | mm --check | mm OPTION…", ""]
    for option in OPTIONS:
        left = ", ".join(option.names) + (" " + option.argument if option.argument else "")
        lines.append("  %-20s %s" % (left, option.help))
    return "\n".join(lines)


def _run(given: dict) -> int:
    front = given.get("front")
    if front == "version":
        return _print("v" + __version__)
    if front == "help":
        return _print(usage())
    if front == "schema":
        return _schema()
    if "editor" in given:
        from mm.fronts import editors

        return _print(editors.settings(given["editor"]))
    if "replay" in given:
        from mm.fronts import player

        return player.replay(given["replay"], cwd=_start_folder(given) if "cwd" in given else None)
    folder = _start_folder(given)
    if front == "trust":
        from mm.config import trust

        return _print(trust.trust(folder))
    if front not in ("acp", "check") and "question" not in given and "ask" not in given:
        if given:
            print("mm: say what to do: -p QUESTION or -acp goes with these options", file=sys.stderr)
        print(usage(), file=sys.stderr)
        return USAGE
    return _converse(given, folder)


def _converse(given: dict, folder: str) -> int:
    """The front ends that talk with the model."""
    from mm.config import config

    overrides = {key: given[field] for field, key in _OVERRIDES.items() if field in given}
    settings = config.load(folder, os.environ, given.get("config"), overrides)
    demo = given.get("demo", False)
    if demo and not settings.model_context_window:
        settings = settings.replace(model_context_window=DEMO_WINDOW)
    trace, tap = None, None
    if "record" in given:
        from mm import log
        from mm.fronts.recorder import Recorder

        if given.get("front") != "acp":
            raise UserError("--record needs -acp: a transcript is what an editor and mm say to each other", USAGE)
        tap = Recorder(given["record"], folder, settings)
        trace, log.tap = tap.trace, tap.stderr
    if given.get("front") == "check":
        from mm.fronts import check

        return check.check(settings, folder, demo, given.get("color", "auto"))
    if given.get("front") == "acp":
        from mm.fronts.acp import server

        return server.serve(settings, demo, trace, tap)
    if "ask" in given:
        from mm.fronts import ask

        return ask.answer(settings, *given["ask"], folder, given.get("color", "auto"))
    from mm.fronts import once

    return once.answer(settings, demo, given["question"], folder, given.get("color", "auto"), tap)


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


def _schema() -> int:
    import json

    from mm.config import config

    return _print(json.dumps(config.config_schema(), indent=2, ensure_ascii=False))


def _print(text: str) -> int:
    print(text)
    sys.stdout.flush()
    return 0


def _name_of(field: str, value) -> str:
    """The option that was given: it takes a value, or it is the switch for this one."""
    return next(option.names[0] for option in OPTIONS if option.field == field and (option.argument or option.value == value))


def _unknown(argument: str, known) -> UserError:
    import difflib

    if not argument.startswith("-"):
        return UserError("%r is no option; a question goes behind -p, in quotes: mm -p \"…\"" % argument, USAGE)
    close = difflib.get_close_matches(argument.partition("=")[0], known, 1, 0.75)
    meant = " (did you mean %s?)" % close[0] if close else ""
    return UserError("unknown option %s%s; mm --help lists them" % (argument, meant), USAGE)
