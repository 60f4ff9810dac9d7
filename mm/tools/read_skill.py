"""read_skill: the text of a skill, which the model reads before it does a task that the skill is about."""

from __future__ import annotations

import os
from itertools import islice

from mm.skills import catalogue
from mm.text import one_line
from mm.tools.tool import SHOWN, Action, Parameter, Result, Tool, ToolError

NAME = "read_skill"
DESCRIPTION = "Read a skill, a procedure for one kind of task. When one matches the task, read it before anything else."

UNKNOWN = '[no skill named "%s". Skills: %s]'
ALREADY_READ = '[skill "%s" is already above]'
DIRECTORY = "[skill directory: %s; paths in the skill are relative to it]"
FILES = "[files: %s]"
CUT = "[… %d more characters%s]"
CUT_IN_FILE = "; read them with read_file in %s"
FAILED = '[read_skill: the skill "%s" cannot be read: %s]'

# At most so many files are named, found among so many entries, in the skill's folder and so many levels below it.
FILES_NAMED, ENTRIES_LOOKED_AT, DEPTH = 30, 2000, 3
_NOT_LISTED = ("node_modules", "__pycache__")


def tool(skills) -> Tool:
    """The tool that reads these skills (catalogue.Skill), one at least.

    The names are told as an enum. A skill that the model may not choose by itself must not stand there, and can be read all
    the same once the user has named it; servers that hold the model to the enum would make that impossible, so with such
    a skill there is no enum, and the catalogue in the system prompt names the others.
    """
    by_name = {skill.name: skill for skill in skills}
    told = tuple(skill.name for skill in skills if skill.model_may_call)

    def prepare(arguments, space):
        asked = arguments["name"]
        skill = by_name.get(asked) or by_name.get(_plain(asked))
        if skill is None:
            raise ToolError(UNKNOWN % (one_line(asked), ", ".join(told) or "none"))
        paths = () if skill.folder is None else (skill.path,)
        return Action(f"{NAME}: {one_line(asked)}", paths, False, None, None, lambda cancel, progress: _run(skill, space))

    name = Parameter("name", "string", "Name of the skill", True, ("skill", "skill_name", "command"),
                     told if len(told) == len(by_name) else ())
    return Tool(NAME, DESCRIPTION, "read", (name,), "name", prepare)


def _plain(name):
    """`$bg-jobs`, `/bg-jobs` and `BG_Jobs` mean bg-jobs."""
    return name.strip().lstrip("$/").replace("_", "-").lower()


def _run(skill, space):
    if skill.name in space.skills_read:
        output = ALREADY_READ % skill.name
    else:
        output = _text(skill, space)
        space.skills_read.add(skill.name)
    return Result(output, prose=True)


def _text(skill, space):
    """The skill as the model reads it: its body, then where it lies and what lies there with it."""
    try:
        body = catalogue.body(skill).rstrip()
    except OSError as error:
        raise ToolError(FAILED % (skill.name, error.strerror or error)) from None
    limit = space.shown_limit(SHOWN)
    parts = [body[:limit]] if body else []
    if len(body) > limit:
        parts.append(CUT % (len(body) - limit, CUT_IN_FILE % one_line(skill.path, 4096) if skill.folder else ""))
    if skill.folder is not None:
        parts.append(DIRECTORY % one_line(skill.folder, 4096))
        beside = _files(skill)
        if beside:
            parts.append(FILES % ", ".join(beside[:FILES_NAMED] + ["…"] * (len(beside) > FILES_NAMED)))
    return "\n".join(parts)


def _files(skill):
    """The names of the files in the skill's folder but its own, relative and sorted; one more than are named at most."""
    found, looked_at = [], 0
    for folder, folders, names in os.walk(skill.folder):
        beneath = os.path.relpath(folder, skill.folder)
        depth = 0 if beneath == os.curdir else beneath.count(os.sep) + 1
        hidden = depth == DEPTH
        folders[:] = [] if hidden else sorted(name for name in folders if not name.startswith(".") and name not in _NOT_LISTED)
        paths = (os.path.normpath(os.path.join(beneath, name)) for name in sorted(names) if not name.startswith("."))
        found += (path for path in paths if os.path.join(skill.folder, path) != skill.path)
        looked_at += len(folders) + len(names)
        if looked_at > ENTRIES_LOOKED_AT or len(found) > FILES_NAMED:
            break
    return [one_line(path.replace(os.sep, "/"), 300) for path in islice(found, FILES_NAMED + 1)]
