"""The slash commands of the editor's menu: what is listed, and what `session/prompt` intercepts."""

from __future__ import annotations

# (name, description), as they are listed.
COMMANDS = (
    ("new", "Clear the history and start a new session"),
    ("compact", "Compress the history now, keeping the last turns"),
)

NOT_THERE_YET = "/%s is not there yet: it comes with a later version of mm."


def named(text: str):
    """The name of the command that the prompt's text is, exactly; None for any other text."""
    text = text.strip()
    for name, _ in COMMANDS:
        if text == "/" + name:
            return name
    return None


def run(name: str) -> str:
    """Executes a command without the model; returns the one line that answers it."""
    return NOT_THERE_YET % name
