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

# `argument` is the name of the value that must follow, two names for two values, or None for a switch. If it
# ends in `…`, the words that are not options belong to it. `field` and `value` are what a switch sets.
Option = namedtuple("Option", "names argument field value help")

OPTIONS = (
    Option(("-p",), "QUESTION…", "question", None, "answer this question and what is piped in, and exit"),
    Option(("-c", "--continue"), None, "go_on", True, "go on with the last session of this folder"),
    Option(("-acp", "--acp"), None, "front", "acp", "be an ACP agent on stdin and stdout, for an editor"),
    Option(("--editor",), "NAME", "editor", None, "print the block to paste into an editor's settings"),
    Option(("--ask",), "AGENT QUESTION…", "ask", None, "ask another agent: a name, or a command line"),
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
WHAT_TO_DO = ("front", "question", "ask", "editor", "replay")
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
    """The options given, by field; the words of a question that belong to no option are in "words".

    Raises UserError for an unknown option or a missing value.
    """
    known = {name: option for option in OPTIONS for name in option.names}
    given, words, position = {}, [], 0
    while position < len(argv):
        argument = argv[position]
        name, equals, value = argument.partition("=")
        position += 1
        option = known.get(name)
        if argument == "--":
            words += argv[position:]
            break
        if option is None:
            if argument.startswith("-") and not argument[1:2].isspace():
                raise _unknown(argument, known)
            words.append(argument)
            continue
        if option.argument is None:
            if equals:
                raise UserError("%s takes no value" % name, USAGE)
            value = option.value
        else:
            value, position = _values(option, name, [value] if equals else [], argv, position, known)
        _refuse_two_things_to_do(given, option, name, value)
        given[option.field] = value
    _add_words(given, words)
    if given.get("color", "auto") not in COLORS:
        raise UserError("--color must be one of %s, got %r" % (", ".join(COLORS), given["color"]), USAGE)
    return given


def _values(option, name: str, values: list, argv: list, position: int, known: dict) -> tuple:
    """(the value or values of an option, the position after them)."""
    missing = len(option.argument.split()) - len(values)
    values += argv[position:position + missing]
    position += missing
    if option.field == "question" and (position > len(argv) or values[0] == "--"
                                       or values[0].partition("=")[0] in known):
        return "", position - missing  # the question comes later, or on stdin
    if position > len(argv):
        raise UserError("%s needs a value: %s %s" % (name, name, option.argument.rstrip("…")), USAGE)
    return values[0] if len(values) == 1 else tuple(values), position


def _refuse_two_things_to_do(given: dict, option, name: str, value) -> None:
    if option.field in WHAT_TO_DO:
        for other in WHAT_TO_DO:
            if given.get(other, value) != value or other in given and other != option.field:
                raise UserError("%s cannot be combined with %s" % (name, _name_of(other, given[other])),
                                USAGE)


def _add_words(given: dict, words: list) -> None:
    """The words without an option are the rest of the question, or the question."""
    if "question" in given:
        given["question"] = " ".join(filter(None, [given["question"], *words]))
    elif "ask" in given:
        given["ask"] = given["ask"][0], " ".join([given["ask"][1], *words])
    elif words == ["help"] and not given:
        given["front"] = "help"
    elif words:
        for other in WHAT_TO_DO:
            if other in given:
                raise UserError("%s takes no question, got %r" % (_name_of(other, given[other]), words[0]),
                                USAGE)
        given["words"] = " ".join(words)


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
        return _schema()
    if "editor" in given:
        from mm.fronts import editors

        return _print(editors.settings(given["editor"]))
    if "replay" in given:
        from mm.fronts import editors
        from mm.transcripts import player

        return player.replay(given["replay"], [sys.executable, *editors.FLAGS, editors.program()],
                             cwd=_start_folder(given) if "cwd" in given else None)
    folder = _start_folder(given)
    if front == "trust":
        from mm.config import trust

        return _print(trust.trust(folder))
    if "go_on" in given and (front or "ask" in given):
        raise UserError("-c goes with the chat or -p alone", USAGE)
    if not front and "question" not in given and "ask" not in given and not _is_chat(given):
        if given:
            print("mm: say what to do: a question, -p or -acp goes with these options", file=sys.stderr)
        print(usage(), file=sys.stderr)
        return USAGE
    return _converse(given, folder)


def _is_chat(given: dict) -> bool:
    """Whether there is a terminal to chat in. Without one, the words or what is piped in become the question
    of -p."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        given["front"] = "chat"
        return True
    from mm.fronts import once

    question = given.get("words") or once.piped(sys.stdin)
    if question.strip():
        given["question"] = question
    return "question" in given


def _converse(given: dict, folder: str) -> int:
    """The front ends that talk with the model."""
    from mm.config import config

    overrides = {key: given[field] for field, key in _OVERRIDES.items() if field in given}
    settings = config.load(folder, os.environ, given.get("config"), overrides)
    demo = given.get("demo", False)
    if demo and not settings.model_context_window:
        settings = settings.replace(model_context_window=DEMO_WINDOW)
    front, color = given.get("front"), given.get("color", "auto")
    if "record" in given:
        return _recorded(given, settings, folder)
    if front == "check":
        from mm.fronts import check

        return check.check(settings, folder, demo, color)
    if front == "acp":
        from mm.fronts.acp import server

        if sys.stdin.isatty():
            print(FOR_EDITORS, file=sys.stderr)
        return server.serve(settings, demo)
    if "ask" in given:
        from mm.fronts import ask_agent

        return ask_agent.answer(settings, *map(_as_typed, given["ask"]), folder, color)
    if front == "chat":
        from mm.fronts.terminal import chat

        return chat.chat(settings, demo, folder, color, _as_typed(given.get("words", "")), "go_on" in given)
    from mm.fronts import once

    return once.answer(settings, demo, _as_typed(given["question"]), folder, color, "go_on" in given)


def _as_typed(question: str) -> str:
    from mm.fronts.typed import as_typed

    return as_typed(question)


def _recorded(given: dict, settings, folder: str) -> int:
    """The front ends whose transcript can be written: an editor's, and -p as an editor would have it."""
    from mm import log
    from mm.transcripts.recorder import Recorder

    if given.get("front") != "acp" and "question" not in given:
        raise UserError("--record needs -acp or -p: a transcript is what an editor and mm say to each other",
                        USAGE)
    tap, demo = Recorder(given["record"], folder, settings), given.get("demo", False)
    if "question" in given:
        from mm.fronts import once

        question, color = _as_typed(given["question"]), given.get("color", "auto")
        return once.answer(settings, demo, question, folder, color, "go_on" in given, tap)
    log.tap = tap.stderr
    from mm.fronts.acp import server

    return server.serve(settings, demo, tap.trace, tap)


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

    from mm.config import schema

    return _print(json.dumps(schema.config_schema(), indent=2, ensure_ascii=False))


def _print(text: str) -> int:
    print(text)
    sys.stdout.flush()
    return 0


def _name_of(field: str, value) -> str:
    """The option that was given: it takes a value, or it is the switch for this one."""
    return next(option.names[0] for option in OPTIONS if option.field == field
                and (option.argument or option.value == value))


def _unknown(argument: str, known) -> UserError:
    import difflib

    close = difflib.get_close_matches(argument.partition("=")[0], known, 1, 0.75)
    meant = " (did you mean %s?)" % close[0] if close else ""
    return UserError("unknown option %s%s; mm --help lists them" % (argument, meant), USAGE)
