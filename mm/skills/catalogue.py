"""The skills of a session: where they are looked for, which of two with the same name counts, and what is said of them.

`find` reads the folders and the bundled skills; all else but `body` is pure. The files may come with a hostile
repository: nothing waits for them, everything is bounded, and of an untrusted folder two things are not taken: a skill in
the place of one of the user's own, and links that leave the folder.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections import namedtuple
from itertools import islice

from mm import safe_files
from mm.config import places
from mm.config.config_file import shown
from mm.skills import front_matter
from mm.text import one_line

# `folder` and `path` (of its SKILL.md) are absolute; a bundled skill has no folder. `model_may_call`: whether the model is
# told of it unasked. `allowed_tools`, a tuple of texts, is shown to people and not enforced.
Skill = namedtuple("Skill", "name description folder path model_may_call allowed_tools")

# The skills in the package, bundled/<name>/SKILL.md: named here because the zipapp has no folders to look through.
BUNDLED = ("bg-jobs",)
FILE_NAMES = ("SKILL.md", "skill.md")

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
NAME_LIMIT = 64
# Characters of a description that are kept, and that stand in the system prompt.
DESCRIPTION_LIMIT, CATALOGUE_LIMIT = 1024, 300
# The most skills from folders; how deep they may lie below one that is searched, and how many entries that may take.
SKILLS_LIMIT, DEPTH, ENTRIES_LIMIT = 200, 3, 5000
# Front matter must end within so many bytes; a whole file is read to this size.
HEAD_BYTES, FILE_BYTES = 64 * 1024, 1024 * 1024
# Warnings beyond so many are only counted.
WARNINGS_LIMIT = 20
# The commands go to the editor in one line, and some editors die of one over 64 KiB: descriptions are cut to these lengths in
# turn until they fit.
COMMANDS_BYTES, _COMMAND_LIMITS = 60 * 1024, (DESCRIPTION_LIMIT, CATALOGUE_LIMIT, 100, 20)

INTRODUCTION = (
    "Skills are procedures. When a task matches one, call read_skill with its name before anything else and follow it. "
    '"$name text" in a message means: read the skill "name" and apply it to "text".')
USE = '[use the skill "%s" for this: call read_skill first]'
HINT = "parameters, if this skill needs any"

HIDDEN = 'skill "%s" is hidden by the command of that name'
SHADOWED = 'skill "%s": %s is not used, %s comes first'
THE_BUNDLED_ONE = "the bundled one"
NO_NAME = "skill %s has no name, its folder's is used"
BAD_NAME = 'skill %s: "%s" is no name of a skill, its folder\'s is used'
OTHER_FOLDER = 'skill %s is named "%s", its folder is not'
NAMELESS = "skill %s is skipped: neither its name nor its folder's is made of a-z, 0-9 and single hyphens, at most 64"
NO_DESCRIPTION = "skill %s is skipped: it has no description"
NO_FRONT_MATTER = 'skill %s is skipped: it does not begin with front matter, a line "---"'
NOT_AT_THE_TOP = "skill %s: its front matter begins on line %d, other programs want it on line 1"
NOT_CLOSED = 'skill %s is skipped: no closing "---"'
UNREADABLE = "skill %s is skipped: %s"
LEADS_OUT = "skills: %s is skipped: a link leads out of the untrusted folder %s"
TOO_MANY = "skills: more than %d, %s is skipped and so are all that come later"
TOO_LARGE = "skills: %s is not searched to the end: it holds more than %d files and folders"
NOT_SEARCHED = "skills: %s is not searched: %s"
MORE_WARNINGS = "skills: %d more warnings"

_MENTION = re.compile(r"""(?<!\S)\$(%s)(?=[.,;:!?)\]"'…]*(?:\s|$))""" % NAME.pattern)
_COMMAND = re.compile(r"(\s*)/(%s)(?=\s|$)" % NAME.pattern)
_ALLOWED_TOOL = re.compile(r"[^\s,()\[\]\"']+(?:\([^()]*\))?")


def find(cwd: str, config, environ) -> tuple:
    """(skills, warnings) for a session in `cwd`: a tuple of Skill, sorted by name, and a tuple of lines for the user.

    There are none where the configuration takes away the tool that reads them.
    """
    if "read_skill" in config.tools_disabled:
        return (), ()
    search = _Search()
    early, late = _places(cwd, config, environ)
    for place in early:
        search.folder(place)
    search.bundled()
    for place in late:
        search.folder(place)
    return tuple(sorted(search.found.values(), key=lambda skill: skill.name)), search.lines()


def body(skill: Skill) -> str:
    """The skill's text without its front matter, as it stands now. Raises OSError."""
    text = _bundled_text(skill.name) if skill.folder is None else _decode(safe_files.read(skill.path, FILE_BYTES))
    try:
        return front_matter.body(text)
    except front_matter.NotClosed:
        return text


def prompt_section(skills) -> str:
    """What the system prompt says of the skills, a blank line first; "" where there is none that the model may choose."""
    lines = ["- %s: %s" % (skill.name, one_line(skill.description, CATALOGUE_LIMIT))
             for skill in skills if skill.model_may_call]
    return "\n".join(["\n", INTRODUCTION] + lines) if lines else ""


def mention(text: str, skills) -> str:
    """The user's text as it goes to the model: a line behind it for each skill that it names as `$name`."""
    names = {skill.name for skill in skills}
    named = dict.fromkeys(name for name in _MENTION.findall(text) if name in names)
    return "\n".join([text] + [USE % name for name in named])


def slash(text: str, skills, reserved) -> str:
    """`/name rest` as `$name rest` where that is a skill and no reserved command; any other text as it is."""
    command = _COMMAND.match(text)
    if not command or command[2] in reserved or all(skill.name != command[2] for skill in skills):
        return text
    return "%s$%s" % (command[1], text[command.start(2):])


def advertised(skills, reserved) -> list:
    """(name, description, hint) of each skill that an editor can list as a command."""
    listed = []
    for limit in _COMMAND_LIMITS:
        listed = [(skill.name, one_line(skill.description, limit), HINT) for skill in skills if skill.name not in reserved]
        # As the editor gets it, the field names counted.
        if sum(len(json.dumps(each, ensure_ascii=False).encode()) + 50 for each in listed) <= COMMANDS_BYTES:
            break
    return listed


def hidden(skills, reserved) -> list:
    """The lines for the user about the skills that no editor lists, because a command has their name."""
    return [HIDDEN % skill.name for skill in skills if skill.name in reserved]


# A folder to search. What is found must lie inside of `bound`, links resolved, where that is not None.
_Place = namedtuple("_Place", "path bound")


def _places(cwd, config, environ):
    """(early, late): the folders to search before the bundled skills and those to search behind them, in order.

    A project's are late unless the user trusts the folder that holds them and the session's.
    """
    count = len(config.skills_dirs) - len(config.untrusted_skills_dirs)
    early = [_Place(path, None) for path in config.skills_dirs[:count]]
    late = [_Place(path, config.folder) for path in config.skills_dirs[count:]]
    own = _own_folders(config, environ)
    project = safe_files.folders_up_from(cwd)
    trusted = {folder for folder in project if config.trusts(folder, environ)}
    for folder, name in [(folder, name) for folder in project for name in (".mm", ".agents")] + [(cwd, ".claude")]:
        path = os.path.join(folder, name, "skills")
        if os.path.realpath(path) in own:
            continue  # the project is the home folder
        if trusted.issuperset((folder, cwd)):
            early.append(_Place(path, None))
        else:
            late.append(_Place(path, project[-1]))
    return early + [_Place(path, None) for path in own.values()], late


def _own_folders(config, environ):
    """The user's own, in order: {real path: path}."""
    home = places.home(environ)
    paths = [os.path.join(config.user_folder, "skills")] if config.user_folder else []
    paths += [os.path.join(home, name, "skills") for name in (".agents", ".claude")] if home else []
    own = {}
    for path in paths:
        own.setdefault(os.path.realpath(path), path)
    return own


class _Search:
    """The skills found so far, by name: of two with the same name the first one counts."""

    def __init__(self):
        self.found = {}
        self._met = set()  # real paths: a skill that several links lead to is one
        self._warnings = []
        self._left = SKILLS_LIMIT

    def lines(self) -> tuple:
        """The warnings, the first of them if they are many."""
        more = len(self._warnings) - WARNINGS_LIMIT
        return tuple(self._warnings[:WARNINGS_LIMIT] + ([MORE_WARNINGS % more] if more > 0 else []))

    def bundled(self) -> None:
        for name in BUNDLED:
            path = _bundled_path(name)
            try:
                text = _bundled_text(name)
            except (OSError, ImportError) as error:  # zipimport's own error where the archive is not what it was
                self._warn(UNREADABLE, path, str(error))
            else:
                self._take(None, path, name, text)

    def folder(self, place: _Place) -> None:
        if not os.path.isdir(place.path) or self._leads_out(place.path, place.bound):
            return
        for folder, path in self._skill_files(place.path):
            if self._left < 0:
                return
            real = os.path.realpath(path)
            if real not in self._met and not self._leads_out(path, place.bound):
                self._met.add(real)
                self._read(folder, path)

    def _leads_out(self, path, bound):
        if bound is None:
            return False
        if safe_files.is_inside(bound, path):
            return False
        self._warn(LEADS_OUT, path, shown(bound))
        return True

    def _skill_files(self, root):
        """(folder, path of its SKILL.md) for each skill below `root`, sorted; what lies below a skill belongs to it."""
        left, waiting = ENTRIES_LIMIT, [(root, 0)]
        while waiting:
            folder, depth = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    entries = sorted(islice(entries, left + 1), key=lambda entry: entry.name)
            except OSError as error:
                self._warn(NOT_SEARCHED, folder, error.strerror or str(error))
                continue
            left -= len(entries)
            if left < 0:
                return self._warn(TOO_LARGE, root, ENTRIES_LIMIT)
            names = {entry.name for entry in entries}
            file_name = next((name for name in FILE_NAMES if depth and name in names), None)
            if file_name:
                yield folder, os.path.join(folder, file_name)
            elif depth < DEPTH:
                waiting += [(entry.path, depth + 1) for entry in reversed(entries) if _is_searched(entry)]

    def _read(self, folder, path):
        try:
            text = _decode(safe_files.read(path, HEAD_BYTES))
        except OSError as error:
            self._warn(UNREADABLE, path, error.strerror or str(error))
        else:
            self._take(folder, path, os.path.basename(folder), text)

    def _take(self, folder, path, folder_name, text):
        """Adds the skill in `text` unless something is in its way, which is told."""
        try:
            fields, line, _ = front_matter.read(text)
        except front_matter.NotClosed:
            return self._warn(NOT_CLOSED, path)
        if fields is None:
            return self._warn(NO_FRONT_MATTER, path)
        name = self._name(_plain(fields.get("name", "")), folder_name, path)
        description = one_line(" ".join(_plain(fields.get("description", "")).split()), DESCRIPTION_LIMIT)
        if not name:
            return None
        if not description:
            return self._warn(NO_DESCRIPTION, path)
        if line > 1:
            self._warn(NOT_AT_THE_TOP, path, line)
        winner = self.found.get(name)
        if winner:
            return self._warn(SHADOWED, name, shown(path), shown(winner.path) if winner.folder else THE_BUNDLED_ONE)
        if folder is not None:
            self._left -= 1
            if self._left < 0:
                return self._warn(TOO_MANY, SKILLS_LIMIT, shown(path))
        may_call = _plain(fields.get("disable-model-invocation", "")).lower() not in ("true", "yes", "on")
        allowed = tuple(_ALLOWED_TOOL.findall(_plain(fields.get("allowed-tools", ""))))
        self.found[name] = Skill(name, description, folder, path, may_call, allowed)
        return None

    def _name(self, given, folder_name, path):
        """The name that counts, None where there is none."""
        if _is_name(given):
            if given != folder_name:
                self._warn(OTHER_FOLDER, path, given)
            return given
        if not _is_name(folder_name):
            return self._warn(NAMELESS, path)
        if given:
            self._warn(BAD_NAME, path, shown(given, 80))
        else:
            self._warn(NO_NAME, path)
        return folder_name

    def _warn(self, text, first, *rest):
        self._warnings.append(text % ((shown(first) if isinstance(first, str) else first,) + rest))


def _is_searched(entry):
    if entry.name.startswith(".") or entry.name == "node_modules":
        return False
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _is_name(text):
    return len(text) <= NAME_LIMIT and NAME.fullmatch(text) is not None


def _plain(value):
    """A field of any shape as one text."""
    if isinstance(value, dict):
        value = ["%s: %s" % item for item in value.items()]
    return value if isinstance(value, str) else ", ".join(value)


def _decode(data):
    return data.decode("utf-8", "replace")


def _bundled_path(name):
    return os.path.join(os.path.dirname(__file__), "bundled", name, FILE_NAMES[0])


@functools.lru_cache(maxsize=None)
def _bundled_text(name):
    """From a file in a clone, from the archive in the zipapp: whatever loaded this module can read both. Raises OSError."""
    return _decode(__spec__.loader.get_data(_bundled_path(name)))
