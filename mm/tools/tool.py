"""What a tool is: a value with a description, parameters and one function, `prepare`.

A call takes three steps, and only the last one changes anything:

    parse_arguments(tool, arguments) what the model sent -> a dict that fits the parameters, or BadArguments
    tool.prepare(arguments, context) -> an Action: title, paths, the diff it would make; or ToolError
    action.run(progress)             -> a Result; or ToolError, or Cancelled

The permission dialog comes before the third step, and shows the Action.
"""

from __future__ import annotations

from collections import namedtuple

from mm.events import COMPLETED, FAILED

# `kind` is ACP's tool kind: "execute", "read", "edit", "fetch", "other". `parameters` is a tuple of
# Parameter. `subject` names the parameter that the title shows ("bash: ls -la"), or makes that text of the
# arguments. `schema` is None, or a
# JSON Schema that is sent to the model instead of `parameters`: that of an MCP tool, which checks its
# arguments itself.
# A tool that is not `offered` is only there to answer a model that calls it anyway.
Tool = namedtuple("Tool", "name description kind parameters subject prepare schema offered",
                  defaults=(None, True))

# `type` is "string", "integer", "number", "boolean" or "array". `aliases` are other names that models use for
# it. `choices` are the values that the model is offered, any value if there are none; the tool answers the
# others. `items` is what an array holds: a tuple of Parameters for flat objects, else texts.
Parameter = namedtuple("Parameter", "name type description required aliases choices items",
                       defaults=(True, (), (), ()))

# What a call will do. `title` is one line. `run(progress)` does it; `progress(tail)` may be called with the
# cleaned end of the output so far, from any thread, until run returns. `paths` are absolute. `asks` says
# whether the gate asks when yolo is off; ALWAYS: also when it is on. `diff` is an events.Diff or None and
# `text` a str or None, for the dialog. `kind` is the tool's, unless the call has its own.
Action = namedtuple("Action", "title run paths asks diff text kind", defaults=((), False, None, None, None))
ALWAYS = "always"

# What a result shows of a file, in characters, if the model's window is not smaller.
SHOWN = 40000


class Result(namedtuple("Result", "output status diff prose", defaults=(COMPLETED, None, False))):
    """What became of a call. `output` is what the model reads; `status` is events.COMPLETED or FAILED; `diff`
    an events.Diff or None; `prose` as in events.ToolEnded. Whoever makes the text says so: the output of a
    program may look like anything.
    """

    __slots__ = ()

    @classmethod
    def note(cls, text: str, status: str = COMPLETED) -> Result:
        """mm's own words. They quote nothing: a name or a message from elsewhere could be Markdown."""
        return cls(text, status, None, True)

    @classmethod
    def failed(cls, text: str) -> Result:
        """Why there is no result, as a ToolError says it."""
        return cls(text, FAILED)


class ToolError(Exception):
    """The call has failed; the message, in square brackets, says to the model what to do."""


class BadArguments(ToolError):
    """The arguments are not a JSON object, or do not fit the parameters: nothing was tried."""
