"""ask_user: puts one to four questions to the user, in one form of the front end's, and waits."""

from __future__ import annotations

from mm.events import ACCEPTED, COMPLETED, DECLINED, FAILED, FORM_CANCELLED, Form
from mm.text import folded, one_line, replace_surrogates
from mm.tools.tool import Action, Result, ToolError

NAME = "ask_user"

CHOICE, MULTI, TEXT, CONFIRM = "choice", "multi", "text", "confirm"
TYPES = (CHOICE, MULTI, TEXT, CONFIRM)
MOST_QUESTIONS, LEAST_OPTIONS, MOST_OPTIONS, OPTION_LENGTH, QUESTION_LENGTH = 4, 2, 8, 100, 300
ANSWER_LENGTH = 10_000

# What the model reads.
NOBODY = "[nobody can be asked here: decide yourself and say what you assumed]"
USER_DECLINED = "[the user declined to answer]"
USER_CANCELLED = "[the user cancelled the question]"
NO_ANSWER = "[no answer]"
ANSWER = "q%d %s: %s"
# What the user sees if there are several questions.
MANY_QUESTIONS = "The agent has %d questions for you."


def prepare(arguments, context):
    questions = [_checked(question, number) for number, question in enumerate(arguments["questions"], 1)]
    if not 1 <= len(questions) <= MOST_QUESTIONS:
        raise ToolError(f"[{NAME}: ask 1 to {MOST_QUESTIONS} questions, not {len(questions)}]")
    message = questions[0]["question"] if len(questions) == 1 else MANY_QUESTIONS % len(questions)
    title = f"{NAME}: {one_line(arguments['questions'][0]['question'])}"
    return Action(title, lambda progress: _run(context, message, questions))


def _run(context, message, questions):
    answer = context.front.fill_in(Form(context.ref, message, schema(questions)), context.cancel)
    if answer.action == ACCEPTED:
        lines = [ANSWER % (number, question["question"], _said(question, answer.content.get(f"q{number}")))
                 for number, question in enumerate(questions, 1)]
        return Result("\n".join(lines), prose=True)
    said = {DECLINED: USER_DECLINED, FORM_CANCELLED: USER_CANCELLED}.get(answer.action, NOBODY)
    return Result.note(said, FAILED if said is NOBODY else COMPLETED)


def _checked(given, number):
    """A question as it is asked: with a type, and with everything within its limits. Raises ToolError."""
    question = dict(given, question=folded(given["question"]))
    options = [folded(option) for option in given.get("options") or ()]
    kind = question["type"] = (given.get("type") or (CHOICE if options else TEXT)).strip().lower()
    question["options"] = options

    def refuse(why):
        raise ToolError(f"[{NAME}: question {number}: {why}]")

    if kind not in TYPES:
        refuse(f'there is no type "{one_line(kind, 40)}"; types: {", ".join(TYPES)}')
    if not question["question"]:
        refuse("it is empty")
    if len(question["question"]) > QUESTION_LENGTH:
        refuse(f"it has more than {QUESTION_LENGTH} characters")
    if kind in (CHOICE, MULTI):
        if not LEAST_OPTIONS <= len(options) <= MOST_OPTIONS:
            refuse(f'"{kind}" needs {LEAST_OPTIONS} to {MOST_OPTIONS} options')
        if not all(options) or len(set(options)) < len(options):
            refuse("each option needs a text of its own")
        if max(map(len, options)) > OPTION_LENGTH:
            refuse(f"an option has more than {OPTION_LENGTH} characters")
    if "default" in given:
        question["default"] = _default(kind, options, given["default"].strip(), refuse)
    return question


def _default(kind, options, given, refuse):
    """The default in the type that the form has for it."""
    if kind == CONFIRM:
        values = {"true": True, "yes": True, "false": False, "no": False}
        if given.lower() not in values:
            refuse('its default must be "yes" or "no"')
        return values[given.lower()]
    if kind == TEXT:
        return given
    chosen = [given]
    if kind != CHOICE and given not in options:
        chosen = [part.strip() for part in given.split(",") if part.strip()]
    if not set(chosen) <= set(options):
        refuse("its default is none of the options")
    return given if kind == CHOICE else chosen


def schema(questions) -> dict:
    """The form as JSON Schema: one property a question, q1, q2, …, all of them required."""
    properties = {f"q{number}": _property(question) for number, question in enumerate(questions, 1)}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _property(question):
    title, options = question["question"], question["options"]
    field = {
        CHOICE: {"type": "string", "title": title, "enum": options},
        MULTI: {"type": "array", "title": title, "items": {"type": "string", "enum": options}},
        TEXT: {"type": "string", "title": title},
        CONFIRM: {"type": "boolean", "title": title},
    }[question["type"]]
    return dict(field, default=question["default"]) if "default" in question else field


def _said(question, value):
    """An answer in words. A value that is not an option is passed on as it was typed."""
    kind = question["type"]
    if kind == CONFIRM:
        return {"true": "yes", "false": "no"}.get(str(value).lower(), NO_ANSWER)
    if kind == MULTI:
        chosen = [value] if isinstance(value, str) else value
        if not isinstance(chosen, list) or not all(isinstance(option, str) for option in chosen):
            return NO_ANSWER
        return ", ".join(map(_typed, chosen[:MOST_OPTIONS])) or "none of them"
    return _typed(value) or NO_ANSWER if isinstance(value, str) else NO_ANSWER


def _typed(text):
    return replace_surrogates(text).strip()[:ANSWER_LENGTH]
