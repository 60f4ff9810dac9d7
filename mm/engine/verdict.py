"""What hooks say about an event, and what follows. A room of its own, because most sessions have no hooks and
need not load engine.hooks, which runs them.
"""

from __future__ import annotations

from collections import namedtuple

# What the model, or for userPrompt the user, reads after a denial; each takes the reason.
DENIED = "[denied by a hook: %s]"
HIDDEN = "[hidden by a hook: %s]"
# The title of a denied call; takes the tool's name.
DENIED_TITLE = "%s — denied by a hook"
# The first line of a result whose arguments a hook replaced.
ARGUMENTS_CHANGED = "[a hook changed the arguments]"

# What the hooks of an event said. `reason` and `context` are "" if there is none; `arguments` is a dict to
# use instead of the call's, not yet checked against the tool, or None.
Verdict = namedtuple("Verdict", "denied reason context arguments", defaults=(False, "", "", None))
NOTHING = Verdict()


class NoHooks:
    """Stands for hooks.Hooks if none are configured."""

    transcript = None

    def present(self, event: str) -> bool:
        return False

    def run(self, event: str, *_, **__) -> Verdict:
        return NOTHING
