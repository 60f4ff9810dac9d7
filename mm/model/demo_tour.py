"""The demo model's tour of mm: what it says and calls when the user says `tour`, and then `next`. Pure, but
for the folder it names."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections import namedtuple

# One step: what is said and thought, and the calls as (tool, arguments).
TourStep = namedtuple("TourStep", "text thought calls")
TourStep.__new__.__defaults__ = ("", ())

NEXT = "Say `next` to go on."
_WISH = re.compile(r"(?i)\s*(tour|next)\s*[.!]?\s*")
_STEP = re.compile(r"(?m)^# (\d+) of \d+: ")


def wanted(text: str) -> bool:
    """Whether a message of the user's asks for the tour, or for its next step."""
    return _WISH.fullmatch(text) is not None


def step(messages: list) -> TourStep:
    """The step that the conversation has come to; the last user message wants it."""
    text = messages[-1]["content"]
    said = [int(number) for message in messages if message.get("role") == "assistant"
            and isinstance(message.get("content"), str)
            for number in _STEP.findall(message["content"])]
    number = 0 if text.strip().lower().startswith("tour") or not said else said[-1]
    steps = _steps(os.path.join(tempfile.gettempdir(), "mm-tour-" + os.urandom(4).hex()))
    if number >= len(steps):
        return TourStep("The tour is over. Say `tour` to see it again, or leave with `/exit`.")
    title, found = steps[number]
    ending = "" if found.calls or number + 1 == len(steps) else "\n\n" + NEXT
    return found._replace(text="# %d of %d: %s\n\n%s%s" % (number + 1, len(steps), title, found.text, ending))


def _steps(folder: str) -> tuple:
    path = os.path.join(folder, "hello.py")
    return (
        ("the chat", TourStep(
            "I am a script that stands in for a model; all else is real. You type after `>`, I answer here, "
            "and above that you see\n"
            "what I run and change. Leave with `/exit` or Ctrl-D at any time.")),
        ("a command", TourStep(
            "I run commands with bash. With `mm --no-yolo` you are asked before each one, and may say what "
            "to do instead.",
            calls=(("bash", {"command": "echo hello; uname -s"}),))),
        ("a change", TourStep(
            "I write a file, and then I change it. What changes is shown as a diff; with `--no-yolo` before "
            "it is made.",
            calls=(("write_file", {"path": path, "content": "def greet():\n    print('hello')\n"}),
                   ("edit_file", {"path": path, "old_string": "hello", "new_string": "hello, world"}),
                   ("bash", {"command": "cat %s && rm -r %s" % (shlex.quote(path), shlex.quote(folder))})))),
        ("a question", TourStep(
            "When something is unclear I can ask you. Answer with a number or with a word.",
            calls=(("ask_user", {"questions": [{"question": "Which one do you like?", "type": "choice",
                                                "options": ["red", "green", "blue"]}]}),))),
        ("a plan", TourStep(
            "A longer task gets a plan; `/plan` shows it again.",
            calls=(("plan", {"action": "start", "steps": ["look at the code", "fix it", "run the tests"]}),
                   ))),
        ("a cancel", TourStep(
            "This command takes half a minute. Press Ctrl-C: it ends at once, with all that it started. Then "
            "say `next`.",
            calls=(("bash", {"command": "echo waiting; sleep 30"}),))),
        ("an answer", TourStep(
            "Reasoning is shown in the line that waits. Code is marked as it "
            "streams:\n\n```python\nprint('hello')\n```",
            thought="I could say a lot about this. " * 3)),
        ("all the rest", TourStep(
            "- `@README.md` points me at a file, `$bg-jobs` or `/bg-jobs` at a skill; Tab completes both\n"
            "- `\"\"\"` begins and ends a message of several lines\n"
            "- `/help` lists the commands: `/new`, `/compact`, `/ask`, `/sessions`\n"
            "- `mm --check` says which model server mm finds here, and what to do if there is none\n\n"
            "That was the tour. `list the files`, or `help`, shows what else this script can do.")),
    )
