"""What several rooms must agree on about the messages of chat completions."""

from __future__ import annotations

# The fields in which servers send reasoning and take it back; some send the same text in two. The first is
# meant if a message names none.
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")

# Stands for an answer that was cut before its first word: many chat templates want an answer between two
# questions.
NOTHING_SAID = "[cut]"
