"""A form (mm.events.Form) in the protocol: `elicitation/create`, or dialogs if a client has no forms. Pure.

Some clients show a permission's options by their kind alone ("Allow once"), so the content of a dialog lists
the choices too. All texts of a form are made visible for the person who fills it in, and the choices in the
answer are turned back into those that were offered.
"""

from __future__ import annotations

from collections import namedtuple

from mm.events import ACCEPTED, DECLINED, FORM_CANCELLED, UNAVAILABLE, Form, FormAnswer
from mm.fronts.acp.updates import all_visible
from mm.text import one_line, visible

DECLINE = "decline"
YES_AND_NO = ("Yes", "No")
# The most dialogs for one form, and choices in one dialog; the most characters of a question and of a choice.
MOST_DIALOGS, MOST_CHOICES, QUESTION_LENGTH, CHOICE_LENGTH = 10, 50, 300, 100

# One question as a dialog: the property that it answers, its params, and the value of each option.
Dialog = namedtuple("Dialog", "name params values")


def request(session_id: str, form: Form) -> dict:
    """The params of `elicitation/create`."""
    scope = {"sessionId": session_id, "toolCallId": form.ref}
    return dict(scope, mode="form", message=visible(form.message), requestedSchema=_shown(form.schema),
                _meta={"mm.elicitationScope": scope})


def _shown(schema: dict) -> dict:
    """The form's schema with all its texts visible.

    Names of fields stay, because the answer uses them. A field without a title is shown by its name: if that
    hides something, the field gets a title.
    """
    schema = all_visible(schema, names=str)
    for name, question in schema["properties"].items():
        if not question.get("title") and visible(name) != name:
            question["title"] = visible(name)
    return schema


def answer(result, form: Form) -> FormAnswer:
    """What the client answered to `form`; anything that is not an answer cancels the form."""
    result = result if isinstance(result, dict) else {}
    content = result.get("content")
    if result.get("action") == ACCEPTED:
        content = content if isinstance(content, dict) else {}
        return FormAnswer(ACCEPTED, {name: _offered(value, form.schema["properties"].get(name))
                                     for name, value in content.items()})
    return FormAnswer(DECLINED if result.get("action") == DECLINED else FORM_CANCELLED)


def _offered(value, question):
    """The choice that was offered, for a choice as it was shown."""
    if not isinstance(question, dict):
        return value
    if isinstance(value, list):
        return [_offered(each, question.get("items")) for each in value]
    options = [option for kind in ("oneOf", "anyOf") for option in _list(question.get(kind))
               if isinstance(option, dict)]
    choices = _list(question.get("enum")) + [option.get("const") for option in options]
    return next((choice for choice in choices if isinstance(choice, str) and visible(choice) == value), value)


def dialogs(session_id: str, form: Form):
    """One Dialog for each question; None if a question has no fixed choices, or if there are too many."""
    questions = form.schema["properties"]
    if len(questions) > MOST_DIALOGS:
        return None
    asked = []
    for name, question in questions.items():
        choices, values = _choices(question)
        if not 0 < len(values) <= MOST_CHOICES:
            return None
        title = one_line(question.get("title") or name, QUESTION_LENGTH)
        names = [one_line(choice, CHOICE_LENGTH) for choice in choices]
        asked.append(Dialog(name, _permission(session_id, form.ref, title, names), values))
    return asked


def _choices(question) -> tuple:
    """(names, values) of a question's fixed choices; both are empty if it has none."""
    if question.get("type") == "boolean":
        return YES_AND_NO, (True, False)
    if question.get("type") != "string":
        return (), ()
    options = [option for option in question.get("oneOf") or () if isinstance(option.get("const"), str)]
    if options:
        names = [str(option.get("title") or option["const"]) for option in options]
        return names, [option["const"] for option in options]
    return question.get("enum") or (), question.get("enum") or ()


def chosen(dialog: Dialog, result) -> FormAnswer:
    """The choice in a dialog, as the answer to a form with this question alone."""
    outcome = result.get("outcome") if isinstance(result, dict) else None
    outcome = outcome if isinstance(outcome, dict) else {}
    option = outcome.get("optionId") if outcome.get("outcome") == "selected" else None
    if option == DECLINE:
        return FormAnswer(DECLINED)
    for number, value in enumerate(dialog.values):
        if option == str(number):
            return FormAnswer(ACCEPTED, {dialog.name: value})
    return FormAnswer(FORM_CANCELLED)  # never the first option, which may be the harmful one


def _permission(session_id: str, ref: str, question: str, choices) -> dict:
    listed = "\n".join("%d. %s" % (number, choice) for number, choice in enumerate(choices, 1))
    call = {"toolCallId": ref, "title": "? " + question, "kind": "other",
            "content": [{"type": "content", "content": {"type": "text", "text": listed}}]}
    options = [{"optionId": str(number), "kind": "allow_once", "name": choice}
               for number, choice in enumerate(choices)]
    options.append({"optionId": DECLINE, "kind": "reject_once", "name": "Decline"})
    return {"sessionId": session_id, "toolCall": call, "options": options}


def ask(session_id: str, form: Form, supported: bool, request_of, cancel) -> FormAnswer:
    """Asks it in the way that the client supports; `request_of(method, params, cancel)` sends a request."""
    if supported:
        try:
            params = request(session_id, form)
        except RecursionError:
            return FormAnswer(UNAVAILABLE)
        return answer(request_of("elicitation/create", params, cancel), form)
    asked = dialogs(session_id, form)
    if not asked:
        return FormAnswer(UNAVAILABLE)
    content = {}
    for dialog in asked:
        given = chosen(dialog, request_of("session/request_permission", dialog.params, cancel))
        if given.action != ACCEPTED:
            return given
        content.update(given.content)
    return FormAnswer(ACCEPTED, content)


def _list(value) -> list:
    return value if isinstance(value, list) else []
