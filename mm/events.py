"""All that a front end is told (events) and asked (a permission, a form). Values only, no I/O.

The engine emits events in pairs: every ToolPending is followed by exactly one ToolEnded with the same `ref`, on every
path. A front end is any object with two methods:

    emit(event)                  told; must not raise
    ask(permission, cancel)      asked; returns ALLOW, ALLOW_ALWAYS, REJECT, NEVER, a Rejected or UNASKED; raises Cancelled
    fill_in(form, cancel)        asked; returns a FormAnswer, raises Cancelled

and, where its user sees each Waiting, an attribute `shows_waits` that is true: the log then says nothing of them.
"""

from __future__ import annotations

from collections import namedtuple

# The four answers to a permission, by their option ids on the wire.
ALLOW, ALLOW_ALWAYS, REJECT, NEVER = "allow", "allow_always", "reject", "never"

# Two more answers that only mm's own front ends give: a rejection with what the user wants instead, for the model to read, and
# the answer of a front end that has nobody to ask.
Rejected = namedtuple("Rejected", "words")
UNASKED = "unasked"

# How a tool call ended.
COMPLETED, FAILED = "completed", "failed"

# A piece of the model's answer, whitespace as it came.
Text = namedtuple("Text", "text")

# What was said since the last tool call is void: mm cut the answer and asks for another one. `line` says why, for people.
AnswerCut = namedtuple("AnswerCut", "line")

# A piece of the model's reasoning.
Thought = namedtuple("Thought", "text")

# One file's change: `path` absolute, `old` None for a new file, both whole texts with \n line ends.
Diff = namedtuple("Diff", "path old new")

# What the wait for the model server is about ("the model is loading", "reading the prompt, 45 %"), and the seconds that it has
# taken. Comes every second, from a thread of its own, until something else does.
Waiting = namedtuple("Waiting", "doing seconds")

# A call the model made, before anything ran. `ref` is "call_1", "call_2", …; `kind` one of ACP's tool kinds; `arguments`
# a dict; `paths` the absolute paths it touches.
ToolPending = namedtuple("ToolPending", "ref name title kind arguments paths")

# Permission was given, the tool runs.
ToolStarted = namedtuple("ToolStarted", "ref")

# The last part of what a running tool has written so far, cleaned.
ToolOutput = namedtuple("ToolOutput", "ref tail")

# The call is over. `output` is what the model reads; `diff` a Diff or None; `prose` says that the output is text for
# people, not a program's output.
ToolEnded = namedtuple("ToolEnded", "ref status output diff prose")

# Tokens of the model's context window that the conversation takes, and the window's size, 0 while unknown.
WindowUse = namedtuple("WindowUse", "used size")

# What a front end is asked before a gated tool runs: the pending call and what it would do, as a Diff or as text.
Permission = namedtuple("Permission", "pending diff text")

# What a front end asks the user on behalf of a running call (`ref`), or of an agent that was asked by it: `message` is one line,
# `schema` a JSON Schema of one flat object whose properties are the questions, as ACP's form mode has it.
Form = namedtuple("Form", "ref message schema")

# The user's answer: `content` holds the values by property name where `action` is ACCEPTED.
FormAnswer = namedtuple("FormAnswer", "action content")
FormAnswer.__new__.__defaults__ = ({},)
ACCEPTED, DECLINED, FORM_CANCELLED, UNAVAILABLE = "accept", "decline", "cancel", "unavailable"

# The plan as the user sees it: `entries` are (text, status) with status "pending", "in_progress" or "completed".
PlanChanged = namedtuple("PlanChanged", "entries")
