"""plan, as it is offered; the plan itself and what a call does are in planning, which is loaded with the first call."""

from __future__ import annotations

from mm.tools.tool import Parameter, Tool


def prepare(arguments, space):
    from mm.tools import planning

    return planning.prepare(arguments, space)


TOOL = Tool(
    "plan",
    "Keep the plan of a task of several steps; the user sees it. Start it once, then mark each step as you finish it."
    " Not for small tasks.",
    "other",
    (
        Parameter("action", "string", "", choices=("show", "start", "next", "done", "skip", "add", "stop")),
        Parameter("steps", "array", "start: 2 to 20 of them", False, ("items", "tasks")),
        Parameter("title", "string", "start: what it is about", False),
        Parameter("step", "integer", "done, skip: its number", False, ("number", "id", "index")),
        Parameter("text", "string", "add: the new step", False),
        Parameter("after", "integer", "add: behind this step, else last", False),
        Parameter("note", "string", "next, done, skip, stop: a remark or the reason", False, ("reason", "remark")),
    ),
    "action",
    prepare,
)
