"""ask_user, as it is offered; what a call does is in questions, which is loaded with the first call."""

from __future__ import annotations

from mm.text import one_line
from mm.tools.tool import Parameter, Tool


def subject(arguments):
    """The first question: what a call is called."""
    questions = arguments.get("questions") or [{}]
    return one_line(questions[0].get("question") or "")


def prepare(arguments, space):
    from mm.tools import questions

    return questions.prepare(arguments, space)


TOOL = Tool(
    "ask_user",
    "Ask the user what only they can decide, 1 to 4 questions at once. Never for what you can find out, nor for permission.",
    "other",
    (
        Parameter("questions", "array", "", items=(
            Parameter("question", "string", "", True, ("text", "title", "prompt")),
            Parameter("type", "string", "choice with options, else text", False,
                      ("kind",), ("choice", "multi", "text", "confirm")),
            Parameter("options", "array", "2 to 8, for choice and multi", False, ("choices",)),
            Parameter("default", "string", "The likely answer", False),
        )),
    ),
    subject,
    prepare,
)
