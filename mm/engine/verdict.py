"""What hooks say about an event, and what follows from it; engine.hooks runs them, where there are any.

A room of its own, because most sessions have no hooks and need not load what runs them.
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

# What the hooks of an event said. `reason` and `context` are "" where there is none; `arguments` a dict in the place of
# the call's, not yet checked against the tool, or None.
Verdict = namedtuple("Verdict", "denied reason context arguments")
NOTHING = Verdict(False, "", "", None)


class NoHooks:
    """In the place of hooks.Hooks where the configuration has none."""

    transcript = None

    def present(self, event: str) -> bool:
        return False

    def run(self, event: str, *_, **__) -> Verdict:
        return NOTHING
