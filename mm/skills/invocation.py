"""How skills are named: in the system prompt, as `$name` in a message, and as commands of an editor. Pure."""

from __future__ import annotations

import re

from mm.json_text import encoded_size
from mm.skills.catalogue import DESCRIPTION_LIMIT, NAME
from mm.text import one_line

INTRODUCTION = (
    "Skills are procedures. When a task matches one, call read_skill with its name before anything else and "
    "follow it. "
    '"$name text" in a message means: read the skill "name" and apply it to "text".')
USE = '[use the skill "%s" for this: call read_skill first]'
HINT = "parameters, if this skill needs any"
HIDDEN = 'skill "%s" is hidden by the command of that name'

# Characters of a description that stand in the system prompt.
PROMPT_LIMIT = 300
# The commands go to the editor in one line, and some editors die of one over 64 KiB: descriptions are cut to
# these lengths in turn until the list fits.
COMMANDS_BYTES, _COMMAND_LIMITS = 60 * 1024, (DESCRIPTION_LIMIT, PROMPT_LIMIT, 100, 20)
# What the names of the fields add to each command.
_FIELDS_BYTES = 50

_MENTION = re.compile(r"""(?<!\S)\$(%s)(?=[.,;:!?)\]"'…]*(?:\s|$))""" % NAME.pattern)
_COMMAND = re.compile(r"(\s*)/(%s)(?=\s|$)" % NAME.pattern)


def prompt_section(skills) -> str:
    """What the system prompt says of the skills, a blank line first; "" if there is nothing."""
    lines = ["- %s: %s" % (skill.name, one_line(skill.description, PROMPT_LIMIT)) for skill in skills
             if skill.model_may_call]
    return "\n".join(["\n", INTRODUCTION] + lines) if lines else ""


def with_uses(text: str, skills) -> str:
    """The user's text as it goes to the model: a line follows for each skill that it names as `$name`."""
    names = {skill.name for skill in skills}
    named = dict.fromkeys(name for name in _MENTION.findall(text) if name in names)
    return "\n".join([text] + [USE % name for name in named])


def without_slash(text: str, skills, reserved) -> str:
    """`/name rest` as `$name rest` if that is a skill and not a reserved command; any other text as it is."""
    command = _COMMAND.match(text)
    if not command or command[2] in reserved or all(skill.name != command[2] for skill in skills):
        return text
    return "%s$%s" % (command[1], text[command.start(2):])


def commands(skills, reserved) -> list:
    """(name, description, hint) of each skill that an editor can list as a command."""
    listed = []
    for limit in _COMMAND_LIMITS:
        listed = [(skill.name, one_line(skill.description, limit), HINT) for skill in skills
                  if skill.name not in reserved]
        if sum(encoded_size(each) + _FIELDS_BYTES for each in listed) <= COMMANDS_BYTES:
            break
    return listed


def hidden(skills, reserved) -> list:
    """The lines for the user about the skills that no editor lists, because a command has their name."""
    return [HIDDEN % skill.name for skill in skills if skill.name in reserved]
