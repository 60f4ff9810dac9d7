"""What an asked agent says, as values: its text, its tool calls, its permission requests and forms. Pure.

Agents differ: a permission request may name its call by the id alone, option ids are their own, a title may
come late. So the calls are kept by id, and an option is chosen by its kind.
"""

from __future__ import annotations

import re

from mm.diff import capped
from mm.json_text import encoded_size, is_deeper
from mm.events import (
    ACCEPTED, ALLOW, ALLOW_ALWAYS, DECLINED, NEVER, REJECT, UNAVAILABLE, Diff, Form, FormAnswer, Permission,
    ToolPending)
from mm.text import TITLE_LIMIT, one_line

# Characters of an answer that are kept, the last ones; of an answer that the user is shown while it grows; of
# a form's message.
TEXT_KEPT = 4_000_000
TAIL = 2_000
MESSAGE_LIMIT = 1_000
# Tool calls of which something is kept; levels of a form, or of a call's arguments.
CALLS_KEPT, LEVELS = 1_000, 20
# Bytes of a form, as JSON; choices of a question; paths of a call and their characters: clients die of long
# lines.
FORM_BYTES = 32 * 1024
MOST_CHOICES, MOST_PATHS, PATH_LENGTH = 50, 10, 1_000

# The kinds of option that do what the user said, the better one first.
KINDS = {ALLOW: ("allow_once", "allow_always"), ALLOW_ALWAYS: ("allow_always", "allow_once"),
         REJECT: ("reject_once", "reject_always"), NEVER: ("reject_always", "reject_once")}
OVER = ("completed", "failed")  # statuses of a call
CANCELLED = {"outcome": {"outcome": "cancelled"}}
FORM_CANCELLED = {"action": "cancel"}
# A text that is one fenced block: dialogs fence theirs.
_FENCED = re.compile(r"\A(`{3,})[^`\n]*\n(.*)\n\1\Z", re.DOTALL)
CHOICE = "choice"  # the property of a question that came as a permission request


class Words:
    """The text of an answer as it comes, cut into parts by the tool calls between."""

    def __init__(self):
        self._parts, self._size = [[]], 0
        self._message = None

    def say(self, piece: str, message=None) -> None:
        """`message`: the id of the message that the text is a piece of, if the agent gives one."""
        if message != self._message and self._parts[-1]:
            piece = "\n\n" + piece
        self._message = message
        self._parts[-1].append(piece)
        self._size += len(piece)
        if self._size > 2 * TEXT_KEPT:
            kept = self.all()[-TEXT_KEPT:]
            self._parts, self._size = [[kept]], len(kept)

    def call(self) -> None:
        """A tool call came: what is said from now on is another part."""
        if self._parts[-1]:
            self._parts.append([])

    def all(self) -> str:
        return "\n\n".join(filter(None, ("".join(part).strip() for part in self._parts)))

    def last(self) -> str:
        """What was said after the last tool call, or before it if nothing followed."""
        return next(filter(None, ("".join(part).strip() for part in reversed(self._parts))), "")

    def tail(self) -> str:
        """The end of what was said."""
        return self.all()[-TAIL:]


class ToolCalls:
    """The asked agent's tool calls by id, with all that is known of each."""

    def __init__(self):
        self._known, self._forgotten = {}, 0
        self._shown = set()

    def __len__(self):
        return len(self._known) + self._forgotten

    def update(self, update: dict) -> str | None:
        """Takes a `tool_call` or `tool_call_update`; returns the title if the call has just begun."""
        identifier = text(update.get("toolCallId"))
        call = self._known.setdefault(identifier, {})
        call.update((name, value) for name, value in update.items() if value is not None)
        if len(self._known) > CALLS_KEPT:
            del self._known[next(iter(self._known))]
            self._forgotten += 1
        if call.get("status") in OVER:  # what is kept is for a dialog before it runs
            for name in ("content", "rawInput", "rawOutput"):
                call.pop(name, None)
        if identifier in self._shown or call.get("status", "pending") == "pending":
            return None
        self._shown.add(identifier)
        return title_of(call)

    def completed(self, call: dict) -> dict:
        """The call of a permission request, with what is known of it besides."""
        known = self._known.get(text(call.get("toolCallId")), {})
        return dict(known, **{name: value for name, value in call.items() if value is not None})


def title_of(call: dict) -> str:
    return one_line(text(call.get("title"))) or one_line(text(call.get("kind"))) or "a tool call"


def text_of(content) -> str:
    """What a content block says, in text."""
    content = content if isinstance(content, dict) else {}
    kind = text(content.get("type"))
    said = content.get({"text": "text", "resource_link": "uri"}.get(kind))
    return said if isinstance(said, str) else "[%s]" % (one_line(kind) or "nothing")


def permission(agent: str, ref: str, tool: str, call: dict) -> Permission:
    """The asked agent's `call` as a permission of the running call `ref` of `tool`."""
    diffs, said = [], []
    for each in _list(call.get("content")):
        if each.get("type") == "diff" and text(each.get("path")) and isinstance(each.get("newText"), str):
            old = each.get("oldText")
            diffs.append(Diff(each["path"][:PATH_LENGTH], old if isinstance(old, str) else None,
                              each["newText"]))
        elif each.get("type") == "content":
            said.append(_FENCED.sub(r"\2", text_of(each.get("content"))))
    arguments = call.get("rawInput")
    paths = [each["path"] for each in _list(call.get("locations")) if isinstance(each.get("path"), str)]
    paths = tuple(path[:PATH_LENGTH] for path in paths[:MOST_PATHS])
    pending = ToolPending(ref, tool, titled(agent, title_of(call)), text(call.get("kind")) or "other",
                          arguments if isinstance(arguments, dict) and not is_deeper(arguments, LEVELS)
                          else {}, paths)
    if len(diffs) > 1:  # a dialog shows one
        said += map(_unified, diffs)
    return Permission(pending, diffs[0] if len(diffs) == 1 else None, "\n".join(said) or None)


def titled(agent: str, title: str) -> str:
    return "%s: %s" % (agent, one_line(title, TITLE_LIMIT))


def _unified(diff: Diff) -> str:
    import difflib

    diff = capped(diff)
    lines = difflib.unified_diff((diff.old or "").splitlines(), diff.new.splitlines(), diff.path, diff.path,
                                 n=1, lineterm="")
    return "\n".join(lines)


def options_of(params: dict) -> list:
    return [option for option in _list(params.get("options")) if isinstance(option.get("optionId"), str)]


def chosen(options: list, answer: str) -> dict:
    """The result of a permission request: the first option of the kind of the user's answer, else none."""
    for kind in KINDS.get(answer, KINDS[REJECT]):
        for option in options:
            if option.get("kind") == kind:
                return _selected(option)
    return CANCELLED


def _selected(option: dict) -> dict:
    return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}


def question(agent: str, ref: str, call: dict, options: list):
    """The form of a permission request that has several ways to say yes, and so is a question; else None."""
    answers = [option for option in options if option.get("kind") == "allow_once"]
    names = list(map(_option_name, answers))
    if len(set(names)) < 2:
        return None
    title = titled(agent, title_of(call))
    choice = {"type": "string", "title": title, "enum": list(dict.fromkeys(names))[:MOST_CHOICES]}
    return Form(ref, title, {"type": "object", "properties": {CHOICE: choice}, "required": [CHOICE]})


def _option_name(option: dict) -> str:
    return one_line(text(option.get("name")) or option["optionId"])


def answered(options: list, answer: FormAnswer) -> dict:
    """The result of a permission request that was asked as a question."""
    if answer.action == ACCEPTED:
        for option in options:
            if option.get("kind") == "allow_once" and answer.content.get(CHOICE) == _option_name(option):
                return _selected(option)
    return chosen(options, REJECT) if answer.action == DECLINED else CANCELLED


def form(agent: str, ref: str, params: dict):
    """The form of an `elicitation/create`, None if it cannot be shown."""
    schema, message = params.get("requestedSchema"), params.get("message")
    if params.get("mode", "form") != "form" or not isinstance(schema, dict) or not isinstance(message, str):
        return None
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties or not all(map(_is_question, properties.values())):
        return None
    if is_deeper(schema, LEVELS) or encoded_size(schema) > FORM_BYTES:
        return None
    # If a client has no forms, each question is a dialog of its own: it must say who asks, too.
    questions = {name: dict(schema, title=titled(agent, text(schema.get("title")) or name))
                 for name, schema in properties.items()}
    return Form(ref, "%s: %s" % (agent, one_line(message, MESSAGE_LIMIT)), dict(schema, properties=questions))


def _is_question(schema) -> bool:
    """Whether a property of a form is what a front end may rely on."""
    if not isinstance(schema, dict) or not isinstance(schema.get("title") or "", str):
        return False
    choices, options = schema.get("enum") or [], schema.get("oneOf") or []
    return (isinstance(choices, list) and all(isinstance(choice, str) for choice in choices)
            and isinstance(options, list) and all(isinstance(option, dict) for option in options))


def filled_in(answer: FormAnswer):
    """The result of an `elicitation/create`, None if nobody could be asked."""
    if answer.action == UNAVAILABLE:
        return None
    if answer.action == ACCEPTED:
        return {"action": ACCEPTED, "content": answer.content}
    return {"action": answer.action}


def reason(error) -> str:
    """Why an agent refused, from its error: some say it in the message, others in the data."""
    said = error.message.strip()
    data = error.data
    if isinstance(data, dict):
        said_in = ("details", "error", "message", "reason")
        data = next(filter(None, (text(data.get(name)) for name in said_in)), "")
    more = text(data).strip()
    if more and more not in said:
        said += ": " + more
    return one_line(said, 500)


def tokens(result: dict):
    """How many tokens the answer took, None if the agent did not count."""
    usage = result.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    total, *parts = (usage.get(name) for name in ("totalTokens", "inputTokens", "outputTokens"))
    return _count(total) or sum(map(_count, parts)) or None


def _count(value) -> int:
    return value if isinstance(value, int) and 0 < value < 10 ** 12 else 0


def text(value) -> str:
    """A text of the agent's, "" for what is not a text."""
    return value if isinstance(value, str) else ""


def _list(value) -> list:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
