"""read_skill: the text of a skill, which the model reads before it does a task that the skill is about."""

from __future__ import annotations

import os

from mm import walk
from mm.skills import catalogue
from mm.text import one_line
from mm.tools.tool import SHOWN, Action, Result, ToolError

NAME = "read_skill"

UNKNOWN = '[no skill named "%s". Skills: %s]'
ALREADY_READ = '[skill "%s" is already above]'
DIRECTORY = "[skill directory: %s; paths in the skill are relative to it]"
FILES = "[files: %s]"
CUT = "[… %d more characters%s]"
CUT_IN_FILE = "; read them with read_file in %s"
FAILED = '[read_skill: the skill "%s" cannot be read: %s]'

# At most this many files are named, found among this many entries, this many levels below the skill's folder.
FILES_NAMED, ENTRIES_LOOKED_AT, DEPTH = 30, 2000, 3


def prepare(arguments, context, skills):
    """`skills`: the session's (catalogue.Skill)."""
    by_name = {skill.name: skill for skill in skills}
    asked = arguments["name"]
    skill = by_name.get(asked) or by_name.get(_plain(asked))
    if skill is None:
        offered = [skill.name for skill in skills if skill.model_may_call]
        raise ToolError(UNKNOWN % (one_line(asked), ", ".join(offered) or "none"))
    paths = () if skill.folder is None else (skill.path,)
    return Action(f"{NAME}: {one_line(asked)}", lambda progress: _run(skill, context), paths)


def _plain(name):
    """`$bg-jobs`, `/bg-jobs` and `BG_Jobs` mean bg-jobs."""
    return name.strip().lstrip("$/").replace("_", "-").lower()


def _run(skill, context):
    if skill.name in context.seen.skills_read:
        output = ALREADY_READ % skill.name
    else:
        output = _text(skill, context)
        context.seen.skills_read.add(skill.name)
    return Result(output, prose=True)


def _text(skill, context):
    """The skill as the model reads it: its body, then its folder and the other files in it."""
    try:
        body = catalogue.body(skill).rstrip()
    except OSError as error:
        raise ToolError(FAILED % (skill.name, error.strerror or error)) from None
    limit = context.shown_limit(SHOWN)
    parts = [body[:limit]] if body else []
    if len(body) > limit:
        where = CUT_IN_FILE % one_line(skill.path, 4096) if skill.folder else ""
        parts.append(CUT % (len(body) - limit, where))
    if skill.folder is not None:
        parts.append(DIRECTORY % one_line(skill.folder, 4096))
        beside = _files(skill)
        if beside:
            parts.append(FILES % ", ".join(beside[:FILES_NAMED] + ["…"] * (len(beside) > FILES_NAMED)))
    return "\n".join(parts)


def _files(skill):
    """The names of the other files in the skill's folder, relative and sorted; one more than is named at most."""
    names = [os.path.relpath(entry.path, skill.folder).replace(os.sep, "/")
             for entry in walk.entries(skill.folder, ENTRIES_LOOKED_AT, DEPTH)
             if entry.path != skill.path and entry.name[:1] != "." and not entry.is_dir(follow_symlinks=False)]
    names.sort(key=lambda name: (name.count("/"), name))
    return [one_line(name, 300) for name in names[:FILES_NAMED + 1]]
