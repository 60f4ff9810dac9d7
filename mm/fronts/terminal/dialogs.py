"""What the user is asked in a terminal: whether a tool may run, and the questions of a form, one after the
other."""

from __future__ import annotations

from mm.events import (
    ACCEPTED, ALLOW, ALLOW_ALWAYS, DECLINED, FORM_CANCELLED, NEVER, REJECT, FormAnswer, Rejected,
)
from mm.text import folded, visible

RUN_IT = "Run it? [y]es [a]lways [n]o ne[v]er,", "or say what to do instead: "
ANSWERS = {"y": ALLOW, "yes": ALLOW, "a": ALLOW_ALWAYS, "always": ALLOW_ALWAYS, "n": REJECT, "no": REJECT,
           "v": NEVER, "never": NEVER}

HOW = "Enter: the [default] · ^C: take it back · ^D: decline"
YES, NO = ("y", "yes", "true"), ("n", "no", "false")
NUMBERS = {"integer": int, "number": float}


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
    prompt = _hint(told) + ("[%s] " % visible(folded(_shown(default))) if default is not None else "") + "> "
    while True:
        answer = read(prompt).strip()
        if not answer and default is not None:
            return default
        if not answer and not required:
            return None
        value, problem = _read(answer, told, [value for value, _ in options])
        if not problem:
            return value
        screen.line(problem, "33")


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


def _hint(told: dict) -> str:
    return {"boolean": "yes or no ", "integer": "a whole number ",
            "number": "a number "}.get(str(told.get("type")), "")


def _shown(default) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return ", ".join(map(str, default)) if isinstance(default, list) else str(default)


def _read(answer: str, told: dict, options: list) -> tuple:
    """(value, None), or (None, what is wrong with the answer)."""
    kind = str(told.get("type"))
    if kind == "boolean":
        answer = answer.lower()
        return (answer in YES, None) if answer in YES + NO else (None, "yes or no, please")
    if kind in NUMBERS:
        return _number(answer, told, NUMBERS[kind])
    if kind == "array":
        parts = [part.strip() for part in answer.split(",") if part.strip()]
        return _several([answer] if answer in options else parts, options)
    if options:
        return _choice(answer, options)
    if not answer:
        return None, "an answer is needed"
    return _text(answer, told)


def _choice(answer: str, options: list) -> tuple:
    if answer in options:
        return answer, None
    if answer.isdecimal() and 0 < int(answer) <= len(options):
        return options[int(answer) - 1], None
    found = [option for option in options if answer and option.lower().startswith(answer.lower())]
    return (found[0], None) if len(found) == 1 else (None, "a number from 1 to %d, please" % len(options))


def _several(parts: list, options: list) -> tuple:
    chosen = []
    for part in parts:
        value, problem = _choice(part, options) if options else (part, None)
        if problem:
            return None, "numbers from 1 to %d with commas between them, please" % len(options)
        chosen += [value] if value not in chosen else []
    return chosen, None


def _number(answer: str, told: dict, kind) -> tuple:
    try:
        value = kind(answer)
        if value - value:  # NaN and infinity, which JSON does not have
            raise ValueError
    except ValueError:
        return None, _hint(told).strip() + ", please"
    least, most = told.get("minimum"), told.get("maximum")
    if isinstance(least, (int, float)) and value < least:
        return None, "at least %s, please" % least
    if isinstance(most, (int, float)) and value > most:
        return None, "at most %s, please" % most
    return value, None


def _text(answer: str, told: dict) -> tuple:
    least, most = told.get("minLength"), told.get("maxLength")
    if isinstance(least, int) and len(answer) < least:
        return None, "at least %d characters, please" % least
    if isinstance(most, int) and len(answer) > most:
        return None, "at most %d characters, please" % most
    return answer, None
