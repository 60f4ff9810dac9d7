"""What the user is asked in a terminal: whether a tool may run, and the questions of a form, one by one."""

from __future__ import annotations

import math
import os

from mm.events import (
    ACCEPTED, ALLOW, ALLOW_ALWAYS, DECLINED, FORM_CANCELLED, NEVER, REJECT, FormAnswer, Rejected,
)
from mm.fronts.typed import decoded
from mm.text import folded, visible

RUN_IT = "Run it? [y]es [a]lways [n]o ne[v]er,", "or say what to do instead: "
ANSWERS = {"y": ALLOW, "yes": ALLOW, "a": ALLOW_ALWAYS, "always": ALLOW_ALWAYS, "n": REJECT, "no": REJECT,
           "v": NEVER, "never": NEVER}

HOW = "Enter: the [default] · ^C: take it back · ^D: decline"
YES, NO = ("y", "yes", "true"), ("n", "no", "false")
NUMBERS = {"integer": (int, "a whole number"), "number": (float, "a number")}
TERMINAL = "/dev/tty"
LOOK_UP = 0.1  # seconds between two looks at the cancel


def permit(permission, screen, display, read):
    """The answer to a permission. `read(prompt)` reads a line; its KeyboardInterrupt passes through."""
    display.end_text()
    if permission.diff is not None:
        display.show_change(permission.diff)
    else:
        _show_call(permission, screen)
    question = " ".join(RUN_IT)
    while True:
        if len(question) + 10 > screen.columns:  # two lines if one would be broken
            screen.line(RUN_IT[0])
            question = RUN_IT[1]
        try:
            answer = folded(read(question))
        except EOFError:
            return REJECT
        if answer:
            return ANSWERS.get(answer.lower()) or Rejected(answer)


def _show_call(permission, screen) -> None:
    """What the call would do, unless the title that stands above says all of it."""
    pending = permission.pending
    text = visible(permission.text or "")
    if pending.name != "bash":
        screen.line(pending.title, "1")
    if text and (pending.name != "bash" or text != pending.title.partition(": ")[2]):
        for line in text.splitlines():
            screen.line("  " + line)


def fill_in(form, screen, display, read) -> FormAnswer:
    """The answer to a form: each question is asked until its answer fits."""
    display.end_text()
    message = visible(folded(form.message))
    screen.line("? " + message, "1")
    screen.line(HOW, "2")
    content, required = {}, _list(form.schema.get("required"))
    try:
        for name, told in form.schema["properties"].items():
            value = _field(name, told, name in required, message, screen, read)
            if value is not None:
                content[name] = value
    except KeyboardInterrupt:
        screen.line("")
        return FormAnswer(FORM_CANCELLED)
    except EOFError:
        screen.line("")
        return FormAnswer(DECLINED)
    return FormAnswer(ACCEPTED, content)


def _field(name: str, told: dict, required: bool, message: str, screen, read):
    """The value of one question; None if it was left out. `message` has been shown above it."""
    options = _options(told)
    title = visible(folded(str(told.get("title") or name)))
    if title != message:
        screen.line(title)
    if told.get("type") == "array" and options:
        screen.line("  (several, with commas between them)", "2")
    if told.get("description"):
        screen.line("  " + visible(folded(str(told["description"]))), "2")
    for number, (_, label) in enumerate(options, 1):
        screen.line("  %d. %s" % (number, visible(folded(label))))
    default = told.get("default")
    prompt = "> " if default is None else "[%s] > " % visible(folded(_shown(default)))
    while True:
        answer = read(prompt).strip()
        if not answer and (default is not None or not required):
            return default
        try:
            return _value(answer, str(told.get("type")), [value for value, _ in options])
        except ValueError as problem:
            screen.line(str(problem), "33")


def _options(told: dict) -> list:
    """(value, label) of a question's choices."""
    given = told.get("items") if told.get("type") == "array" else told
    given = given if isinstance(given, dict) else {}
    titled = [option for key in ("oneOf", "anyOf") for option in _list(given.get(key))
              if isinstance(option, dict) and isinstance(option.get("const"), str)]
    plain = [option for option in _list(given.get("enum")) if isinstance(option, str)]
    return ([(option["const"], str(option.get("title") or option["const"])) for option in titled]
            or [(option, option) for option in plain])


def _list(value) -> list:
    return value if isinstance(value, list) else []


def _shown(default) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return ", ".join(map(str, default)) if isinstance(default, list) else str(default)


def _value(answer: str, kind: str, options: list):
    """What the answer means to a question of this type. Raises ValueError, which says what is wrong with it.
    """
    if kind == "boolean":
        if answer.lower() not in YES + NO:
            raise ValueError("yes or no, please")
        return answer.lower() in YES
    if kind in NUMBERS:
        make, name = NUMBERS[kind]
        try:
            value = make(answer)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ValueError("%s, please" % name)
        return value
    if kind == "array":
        parts = [answer] if answer in options else filter(None, map(str.strip, answer.split(",")))
        return list(dict.fromkeys(_choice(part, options) for part in parts))
    return _choice(answer, options)


def _choice(answer: str, options: list) -> str:
    """The option with this number, name or beginning; any text if there are none. Raises ValueError."""
    if answer in options or answer and not options:
        return answer
    if answer.isdecimal() and 0 < int(answer) <= len(options):
        return options[int(answer) - 1]
    found = [option for option in options if answer and option.lower().startswith(answer.lower())]
    if len(found) != 1:
        raise ValueError("a number from 1 to %d, please" % len(options) if options else "an answer, please")
    return found[0]


def terminal_reader(screen, cancel):
    """`read(prompt)` for the user of the terminal that mm runs in, even if stdin and stdout are pipes; None
    if there is no terminal or mm runs in its background, where a read would stop it."""
    try:
        with open(TERMINAL, "rb", buffering=0) as terminal:
            if os.tcgetpgrp(terminal.fileno()) != os.getpgrp():
                return None
    except OSError:
        return None
    return lambda prompt: _read_line(prompt, screen, cancel)


def _read_line(prompt: str, screen, cancel) -> str:
    """Raises EOFError and Cancelled."""
    import select

    with screen.typing(), open(TERMINAL, "r+b", buffering=0) as terminal:
        terminal.write(prompt.encode())
        while not select.select([terminal], [], [], LOOK_UP)[0]:
            cancel.check()
        line = terminal.readline()
    if not line:
        raise EOFError
    return decoded(line).rstrip("\n")
