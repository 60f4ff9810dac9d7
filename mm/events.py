"""The events that a front end receives, and what it asks its user: a permission or a form. Values, no I/O.

Every ToolPending is followed by exactly one ToolEnded with the same `ref`, on every path. A front end is any
object with three methods:

    emit(event)                  shows an event; must not raise
    ask(permission, cancel)      asks the user; returns ALLOW, ALLOW_ALWAYS, REJECT, NEVER, a Rejected
                                 or UNASKED; raises Cancelled
    fill_in(form, cancel)        asks the user; returns a FormAnswer; raises Cancelled

A front end whose user sees each Waiting has a true attribute `shows_waits`; the log then leaves them out.
"""

from __future__ import annotations

from collections import namedtuple

# The four answers to a permission, by their option ids on the wire.
ALLOW, ALLOW_ALWAYS, REJECT, NEVER = "allow", "allow_always", "reject", "never"

# Two more answers that only mm's own front ends give: a rejection with the user's words, which the model
# reads, and the answer of a front end that has nobody to ask.
Rejected = namedtuple("Rejected", "words")
UNASKED = "unasked"

# How a tool call ended.
COMPLETED, FAILED = "completed", "failed"

# A piece of the model's answer; its whitespace is unchanged.
Text = namedtuple("Text", "text")

# The answer since the last tool call is void: mm cut it and asks for another one. `line` tells people why.
AnswerCut = namedtuple("AnswerCut", "line")

# A piece of the model's reasoning.
Thought = namedtuple("Thought", "text")

# One file's change: `path` absolute, `old` None for a new file, both whole texts with \n line ends.
Diff = namedtuple("Diff", "path old new")

# What a wait for the model server is about ("the model is loading", "reading the prompt, 45 %") and how many
# seconds it has taken. Emitted every second, from a thread of its own, until the wait is over.
Waiting = namedtuple("Waiting", "doing seconds")

# A call that the model made, before anything ran. `ref` is "call_1", "call_2", …; `kind` one of ACP's tool
# kinds; `arguments` a dict; `paths` the absolute paths that it touches.
ToolPending = namedtuple("ToolPending", "ref name title kind arguments paths")

# Permission was given; the tool runs.
ToolStarted = namedtuple("ToolStarted", "ref")

# The end of what a running tool has written so far, cleaned.
ToolOutput = namedtuple("ToolOutput", "ref tail")

# The call is over. `output` is what the model reads; `diff` a Diff or None; `prose` says that the output is
# text for people, not a program's output.
ToolEnded = namedtuple("ToolEnded", "ref status output diff prose")

# The tokens of the model's context window that the conversation takes, and the window's size, 0 if unknown.
WindowUse = namedtuple("WindowUse", "used size")

# What a front end is asked before a gated tool runs: the pending call and its effect, as a Diff or as text.
Permission = namedtuple("Permission", "pending diff text")

# What a front end asks the user for a running call (`ref`), or for the agent that this call asked: `message`
# is one line, `schema` a JSON Schema of one flat object whose properties are the questions, as in ACP's form
# mode.
Form = namedtuple("Form", "ref message schema")

# The user's answer: `content` holds the values by property name if `action` is ACCEPTED.
FormAnswer = namedtuple("FormAnswer", "action content")
FormAnswer.__new__.__defaults__ = ({},)
ACCEPTED, DECLINED, FORM_CANCELLED, UNAVAILABLE = "accept", "decline", "cancel", "unavailable"

# The plan as the user sees it: `entries` are (text, status) with status "pending", "in_progress" or
# "completed".
PlanChanged = namedtuple("PlanChanged", "entries")
