"""The slash commands of the editor's menu: what is listed, and what `session/prompt` intercepts or rewrites.

Only commands that are handled are listed. The two commands of mm are executed here; the command of a skill is
rewritten into the notation that makes the model read the skill.
"""

from __future__ import annotations

from mm import log
from mm.engine.session import new_id
from mm.events import PlanChanged
from mm.skills import invocation

# (name, description), as they are listed.
COMMANDS = (
    ("new", "Clear the history and start a new session"),
    ("compact", "Compress the history now, keeping the last turns"),
)
RESERVED = tuple(name for name, _ in COMMANDS)

NEW_SESSION = "🆕 New session: %d message(s) forgotten."
NOT_KEPT = "[new: failed, history kept: the conversation could not be saved: %s]"


def available(skills) -> list:
    """The listed commands, each as (name, description, hint or None)."""
    return [command + (None,) for command in COMMANDS] + invocation.commands(skills, RESERVED)


def hidden(skills) -> list:
    """A line for each skill that is not listed because a command has its name."""
    return invocation.hidden(skills, RESERVED)


def named(text: str):
    """The name of the command if the prompt's text is exactly one, else None."""
    text = text.strip()
    return text[1:] if text[:1] == "/" and text[1:] in RESERVED else None


def with_skills(text: str, skills) -> str:
    """The text for the model: a skill's `/name …` becomes `$name …`, followed by what `$name` means."""
    return invocation.with_uses(invocation.without_slash(text, skills, RESERVED), skills)


def run(name: str, process, session, front, cancel, say=log.line) -> str:
    """Executes a command; returns the line that answers it. `say` logs a line. Raises Cancelled."""
    had_plan = session.seen.plan is not None
    line = new(process, session, say) if name == "new" else compact(process, session, front, cancel, say)
    if had_plan and session.seen.plan is None:
        front.emit(PlanChanged(()))
    session.save(process.model.model_name)
    return line


def new(process, session, say) -> str:
    """Forgets the conversation; if sessions are kept, a copy is saved first."""
    count = len(session.messages)
    try:
        kept = session.keep_copy(new_id(), process.model.model_name) if count else None
    except OSError as problem:
        return NOT_KEPT % (problem.strerror or problem)
    if kept:
        say("[acp] session %s: previous conversation kept as %s" % (session.id, kept))
    session.clear()
    say("[acp] session %s: new session, %d message(s) forgotten" % (session.id, count))
    return NEW_SESSION % count


def compact(process, session, front, cancel, say) -> str:
    """Compresses the history, even if there is room left."""
    # Imported here because the list of commands is needed before the first prompt; the model's rooms are not.
    from mm.engine.compact import Compactor

    session.prepare(cancel, process.model.window.size)
    line = Compactor(process, session, front, cancel).forced().line
    say("[acp] session %s: /compact — %s" % (session.id, line))
    return line
