"""plan: the steps of a longer task, which the user sees.

The model names steps by number and never rewrites the whole list. The Plan belongs to the session
(`seen.plan`) and is saved with it; the front end is told each change.
"""

from __future__ import annotations

from mm.events import PlanChanged
from mm.text import folded, one_line
from mm.tools.offers import PLAN_ACTIONS
from mm.tools.tool import Action, Result, ToolError

NAME = "plan"
SHOW, START, NEXT, DONE, SKIP, ADD, STOP = PLAN_ACTIONS

# Steps of a plan at its start and at most, and their length.
LEAST_STEPS, MOST_STEPS, MOST_ADDED, STEP_LENGTH = 2, 20, 40, 200
# After this many calls of other tools the model is reminded of the step in progress.
CALLS_UNTIL_REMINDER = 15

PENDING, IN_PROGRESS, FINISHED, SKIPPED = "pending", "in_progress", "completed", "skipped"
SIGNS = {PENDING: "·", IN_PROGRESS: "▶", FINISHED: "✓", SKIPPED: "–"}

# What the model reads.
PROGRESS = "[plan: %d of %d done]"
ALL_DONE = "[plan finished]"
STOPPED = "[plan stopped%s]"
NONE = '[plan: there is no plan; "start" one with its steps]'
UNFINISHED = '[plan: %s of the present plan %s unfinished. Use "stop" first, or "add".]'
NO_SUCH_STEP = "[plan: there is no step %d; the plan has %d]"
NO_ACTION = '[plan: there is no action "%s"; actions: %s]'
NEEDS = '[plan: "%s" needs "%s"]'
HOW_MANY = "[plan: a plan has %d to %d steps, not %d]"
TOO_MANY = "[plan: a plan has at most %d steps]"
REMINDER = '[plan: step %d "%s" is still in progress]'


class Plan:
    """`steps`: [{"text", "status", "note"?}], in order; at most one of them is in progress."""

    def __init__(self, steps=(), title: str = ""):
        self.title = title
        self.steps = list(steps)
        self._calls = 0  # since the last action

    def saved(self) -> dict:
        """The plan as the session file keeps it."""
        return {"title": self.title, "steps": self.steps}

    def entries(self) -> tuple:
        """The plan as the user sees it: (text, status) each."""
        return tuple((step["text"], FINISHED if step["status"] == SKIPPED else step["status"])
                     for step in self.steps)

    def is_finished(self) -> bool:
        return not self.open_steps()

    def open_steps(self) -> list:
        """The numbers of the steps that are neither done nor skipped."""
        return [number for number, step in enumerate(self.steps, 1)
                if step["status"] in (PENDING, IN_PROGRESS)]

    def in_progress(self) -> int:
        """The number of the step in progress, 0 if there is none."""
        return next((number for number, step in enumerate(self.steps, 1) if step["status"] == IN_PROGRESS), 0)

    def close(self, number: int, status: str, note: str) -> None:
        """Ends a step; if no other is in progress then, the first open one is."""
        step = self.steps[number - 1]
        step["status"] = status
        if note:
            step["note"] = note
        self.go_on()

    def go_on(self) -> None:
        waiting = self.open_steps()
        if waiting and not self.in_progress():
            self.steps[waiting[0] - 1]["status"] = IN_PROGRESS

    def text(self) -> str:
        """What every action answers: one line for each step, then the progress."""
        done = sum(step["status"] == FINISHED for step in self.steps)
        last = ALL_DONE if self.is_finished() else PROGRESS % (done, len(self.steps))
        title = [self.title] if self.title else []
        return "\n".join(title + [_line(number, step) for number, step in enumerate(self.steps, 1)] + [last])

    def acted(self) -> None:
        self._calls = 0

    def reminder(self):
        """Counts a call of another tool; returns a line for the model now and then, else None."""
        number = self.in_progress()
        self._calls += 1
        if not number or self._calls < CALLS_UNTIL_REMINDER:
            return None
        self._calls = 0
        return REMINDER % (number, self.steps[number - 1]["text"])


def restored(saved):
    """The Plan in a session file, which may be hostile; None if there is none that can be read."""
    steps = saved.get("steps") if isinstance(saved, dict) else None
    if not isinstance(steps, list) or not 0 < len(steps) <= MOST_ADDED or not all(map(_is_step, steps)):
        return None
    title = saved.get("title")
    plan = Plan([_shortened(step) for step in steps], _step_text(title) if isinstance(title, str) else "")
    for step in plan.steps[plan.in_progress():]:
        if step["status"] == IN_PROGRESS:  # there is one at a time
            step["status"] = PENDING
    return plan


def _is_step(step) -> bool:
    return isinstance(step, dict) and all(isinstance(step.get(key, ""), str)
                                          for key in ("text", "status", "note")) and (
        bool(_step_text(step.get("text", ""))) and step.get("status") in SIGNS)


def _shortened(step) -> dict:
    kept = {"text": _step_text(step["text"]), "status": step["status"]}
    return dict(kept, note=_step_text(step["note"])) if step.get("note") else kept


def _line(number, step):
    text = "skipped: " + step["text"] if step["status"] == SKIPPED else step["text"]
    note = f" ({step['note']})" if step.get("note") else ""
    return f"{number} {SIGNS[step['status']]} {text}{note}"


def prepare(arguments, context):
    action = arguments["action"].strip().lower()
    if action not in PLAN_ACTIONS:
        raise ToolError(NO_ACTION % (one_line(action, 40), ", ".join(PLAN_ACTIONS)))

    def run(progress):
        output = _ACT[action](context, arguments)
        if context.seen.plan:
            context.seen.plan.acted()
        if action != SHOW:
            context.front.emit(PlanChanged(context.seen.plan.entries() if context.seen.plan else ()))
        return Result(output, prose=True)

    return Action(f"{NAME}: {action}", run, asks=action != SHOW, text=_shown(action, arguments))


def _shown(action, arguments):
    """What the permission dialog shows of a change."""
    lines = ["%s: %s" % (name, value) for name, value in arguments.items() if name not in ("action", "steps")]
    return "\n".join([action] + lines + list(arguments.get("steps", ())))


def _show(context, arguments):
    return _present(context).text()


def _start(context, arguments):
    if context.seen.plan and not context.seen.plan.is_finished():
        numbers = context.seen.plan.open_steps()
        several = len(numbers) > 1
        raise ToolError(UNFINISHED % ("steps " + _ranges(numbers) if several else "step %d" % numbers[0],
                                      "are" if several else "is"))
    steps = [_step_text(text) for text in arguments.get("steps", ())]
    steps = [text for text in steps if text]
    if not LEAST_STEPS <= len(steps) <= MOST_STEPS:
        raise ToolError(HOW_MANY % (LEAST_STEPS, MOST_STEPS, len(steps)))
    context.seen.plan = Plan([{"text": text, "status": PENDING} for text in steps],
                             _step_text(arguments.get("title", "")))
    context.seen.plan.go_on()
    return context.seen.plan.text()


def _next(context, arguments):
    plan = _present(context)
    plan.go_on()
    if plan.in_progress():
        plan.close(plan.in_progress(), FINISHED, _note(arguments))
    return plan.text()


def _done(context, arguments):
    return _close(context, arguments, DONE, FINISHED)


def _skip(context, arguments):
    return _close(context, arguments, SKIP, SKIPPED)


def _close(context, arguments, action, status):
    plan = _present(context)
    number = _needed(arguments, action, "step")
    if not 1 <= number <= len(plan.steps):
        raise ToolError(NO_SUCH_STEP % (number, len(plan.steps)))
    plan.close(number, status, _note(arguments))
    return plan.text()


def _add(context, arguments):
    plan = _present(context)
    text = _step_text(_needed(arguments, ADD, "text"))
    if not text:
        raise ToolError(NEEDS % (ADD, "text"))
    if len(plan.steps) >= MOST_ADDED:
        raise ToolError(TOO_MANY % MOST_ADDED)
    after = arguments.get("after", len(plan.steps))
    if not 0 <= after <= len(plan.steps):
        raise ToolError(NO_SUCH_STEP % (after, len(plan.steps)))
    plan.steps.insert(after, {"text": text, "status": PENDING})
    plan.go_on()
    return plan.text()


def _stop(context, arguments):
    _present(context)
    context.seen.plan = None
    return STOPPED % (": " + _note(arguments) if _note(arguments) else "")


def _present(context):
    if not context.seen.plan:
        raise ToolError(NONE)
    return context.seen.plan


def _needed(arguments, action, name):
    if name not in arguments:
        raise ToolError(NEEDS % (action, name))
    return arguments[name]


def _note(arguments):
    return _step_text(arguments.get("note", ""))


def _step_text(text):
    return one_line(folded(text), STEP_LENGTH)


def _ranges(numbers):
    """`2-4` for 2, 3, 4; `2, 4-5` for 2, 4, 5."""
    ranges = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(first) if first == last else "%d-%d" % (first, last) for first, last in ranges)


_ACT = {SHOW: _show, START: _start, NEXT: _next, DONE: _done, SKIP: _skip, ADD: _add, STOP: _stop}
