"""The skills of a session: where they are looked for, and which of two with the same name counts.

The files may come with a hostile repository: nothing waits for them, everything is bounded, and an untrusted
folder can neither replace one of the user's skills nor lead out of itself by a link.
"""

from __future__ import annotations

import functools
import os
import re
from collections import namedtuple
from itertools import islice

from mm import safe_files
from mm.config import places
from mm.config.config_file import shown
from mm.skills import front_matter
from mm.text import one_line

# `folder` and `path` (of its SKILL.md) are absolute; a bundled skill has no folder. `model_may_call`: whether
# the system prompt lists it. `allowed_tools`, a tuple of texts, is shown to people and not enforced.
Skill = namedtuple("Skill", "name description folder path model_may_call allowed_tools")

# `skills` are sorted by name; `warnings` are lines for the log, and `left_out` those of them about skills
# that cannot be used.
Found = namedtuple("Found", "skills warnings left_out", defaults=((), (), ()))

# The skills in the package, bundled/<name>/SKILL.md: named here because the zipapp has no folders to look
# through.
BUNDLED = ("bg-jobs",)
FILE_NAMES = ("SKILL.md", "skill.md")

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
NAME_LIMIT = 64
# Characters of a description that are kept.
DESCRIPTION_LIMIT = 1024
# The most skills from folders; how deep they may lie below one that is searched, and how many entries that
# may take.
SKILLS_LIMIT, DEPTH, ENTRIES_LIMIT = 200, 3, 5000
# Front matter must end within this many bytes; a whole file is read to this size.
HEAD_BYTES, FILE_BYTES = 64 * 1024, 1024 * 1024
# Further warnings are only counted.
WARNINGS_LIMIT = 20

SKIPPED = "skill %s is skipped: %s"
NO_FRONT_MATTER = 'it does not begin with front matter, a line "---"'
NOT_CLOSED = 'no closing "---"'
NO_DESCRIPTION = "it has no description"
NAMELESS = "neither its name nor its folder's is made of a-z, 0-9 and single hyphens, at most 64"
NOT_AT_THE_TOP = "skill %s: its front matter begins on line %d, other programs want it on line 1"
NO_NAME = "skill %s has no name; its folder's name is used"
BAD_NAME = 'skill %s: "%s" is not a valid name; its folder\'s name is used'
OTHER_FOLDER = 'skill %s is named "%s", its folder is not'
SHADOWED = 'skill "%s": %s is not used, %s comes first'
THE_BUNDLED_ONE = "the bundled one"
LEADS_OUT = "skills: %s is skipped: a link leads out of the untrusted folder %s"
TOO_MANY = "skills: more than %d; %s and all that come later are skipped"
TOO_LARGE = "skills: %s is not searched to the end: it holds more than %d files and folders"
NOT_SEARCHED = "skills: %s is not searched: %s"
MORE_WARNINGS = "skills: %d more warnings"

_ALLOWED_TOOL = re.compile(r"[^\s,()\[\]\"']+(?:\([^()]*\))?")


def find(cwd: str, config, environ) -> Found:
    """The skills for a session in `cwd`; none if the configuration disables the tool that reads them."""
    if "read_skill" in config.tools_disabled:
        return Found()
    search = _Search()
    before, after = _places(cwd, config, environ)
    for place in before:
        search.folder(place)
    search.bundled()
    for place in after:
        search.folder(place)
    return search.result()


def body(skill: Skill) -> str:
    """The skill's text without its front matter, as it stands now. Raises OSError."""
    is_bundled = skill.folder is None
    text = _bundled_text(skill.name) if is_bundled else _decode(safe_files.read(skill.path, FILE_BYTES))
    try:
        return front_matter.body(text)
    except front_matter.NotClosed:
        return text


# A folder to search. What is found must lie inside of `bound`, links resolved, unless that is None.
_Place = namedtuple("_Place", "path bound")


def _places(cwd, config, environ):
    """The folders to search before the bundled skills, and those to search after them, in order.

    A project's come after them unless the user trusts both the folder that holds them and the session's.
    """
    count = len(config.skills_dirs) - len(config.untrusted_skills_dirs)
    before = [_Place(path, None) for path in config.skills_dirs[:count]]
    after = [_Place(path, config.folder) for path in config.skills_dirs[count:]]
    own = _own_folders(config, environ)
    project = safe_files.folders_up_from(cwd)
    trusted = {folder for folder in project if config.trusts(folder, environ)}
    for folder, name in [(folder, name) for folder in project
                         for name in (".mm", ".agents")] + [(cwd, ".claude")]:
        path = os.path.join(folder, name, "skills")
        if os.path.realpath(path) in own:
            continue  # the project is the home folder
        if trusted.issuperset((folder, cwd)):
            before.append(_Place(path, None))
        else:
            after.append(_Place(path, project[-1]))
    return before + [_Place(path, None) for path in own.values()], after


def _own_folders(config, environ):
    """The user's own, in order: {real path: path}."""
    home = places.home(environ)
    paths = [os.path.join(config.user_folder, "skills")] if config.user_folder else []
    paths += [os.path.join(home, name, "skills") for name in (".agents", ".claude")] if home else []
    own = {}
    for path in paths:
        own.setdefault(os.path.realpath(path), path)
    return own


class _Skipped(Exception):
    """The reason why a file is not a skill."""


class _Search:
    """The skills found so far, by name: of two with the same name the first one counts."""

    def __init__(self):
        self._found = {}
        self._met = set()  # real paths: a skill that several links lead to is one
        self._warnings, self._left_out = [], []
        self._left = SKILLS_LIMIT

    def result(self) -> Found:
        skills = tuple(sorted(self._found.values(), key=lambda skill: skill.name))
        return Found(skills, _first(self._warnings), _first(self._left_out))

    def bundled(self) -> None:
        for name in BUNDLED:
            self._take(None, _bundled_path(name), name, lambda: _bundled_text(name))

    def folder(self, place: _Place) -> None:
        if not os.path.isdir(place.path) or self._leads_out(place.path, place.bound):
            return
        for folder, path in self._skill_files(place.path):
            if self._left < 0:
                return
            real = os.path.realpath(path)
            if real not in self._met and not self._leads_out(path, place.bound):
                self._met.add(real)
                self._take(folder, path, os.path.basename(folder),
                           lambda: _decode(safe_files.read(path, HEAD_BYTES)))

    def _leads_out(self, path, bound):
        if bound is None or safe_files.is_inside(bound, path):
            return False
        self._leave_out(LEADS_OUT % (shown(path), shown(bound)))
        return True

    def _skill_files(self, root):
        """(folder, path of its SKILL.md) for each skill below `root`, sorted; none is inside another."""
        left, waiting = ENTRIES_LIMIT, [(root, 0)]
        while waiting:
            folder, depth = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    entries = sorted(islice(entries, left + 1), key=lambda entry: entry.name)
            except OSError as error:
                self._leave_out(NOT_SEARCHED % (shown(folder), error.strerror or error))
                continue
            left -= len(entries)
            if left < 0:
                return self._leave_out(TOO_LARGE % (shown(root), ENTRIES_LIMIT))
            names = {entry.name for entry in entries}
            file_name = next((name for name in FILE_NAMES if depth and name in names), None)
            if file_name:
                yield folder, os.path.join(folder, file_name)
            elif depth < DEPTH:
                waiting += [(entry.path, depth + 1) for entry in reversed(entries) if _is_searched(entry)]

    def _take(self, folder, path, folder_name, text):
        """Adds the skill in `text()`, unless the file is not one or its name is taken."""
        try:
            skill = self._read(folder, path, folder_name, text())
        except _Skipped as reason:
            return self._leave_out(SKIPPED % (shown(path), reason))
        except (OSError, ImportError) as error:  # ImportError: zipimport's own, if the archive was replaced
            return self._leave_out(SKIPPED % (shown(path), getattr(error, "strerror", None) or error))
        winner = self._found.get(skill.name)
        if winner:
            first = shown(winner.path) if winner.folder else THE_BUNDLED_ONE
            return self._warnings.append(SHADOWED % (skill.name, shown(path), first))
        if folder is not None:
            self._left -= 1
            if self._left < 0:
                return self._leave_out(TOO_MANY % (SKILLS_LIMIT, shown(path)))
        self._found[skill.name] = skill
        return None

    def _read(self, folder, path, folder_name, text):
        """The Skill in the text of a file. Raises _Skipped."""
        try:
            fields, line, _ = front_matter.read(text)
        except front_matter.NotClosed:
            raise _Skipped(NOT_CLOSED) from None
        if fields is None:
            raise _Skipped(NO_FRONT_MATTER)
        name = self._name(_plain(fields.get("name", "")), folder_name, shown(path))
        description = one_line(" ".join(_plain(fields.get("description", "")).split()), DESCRIPTION_LIMIT)
        if not description:
            raise _Skipped(NO_DESCRIPTION)
        if line > 1:
            self._warnings.append(NOT_AT_THE_TOP % (shown(path), line))
        may_call = _plain(fields.get("disable-model-invocation", "")).lower() not in ("true", "yes", "on")
        allowed = tuple(_ALLOWED_TOOL.findall(_plain(fields.get("allowed-tools", ""))))
        return Skill(name, description, folder, path, may_call, allowed)

    def _name(self, given, folder_name, path):
        """The name that counts. Raises _Skipped if there is none."""
        if _is_name(given):
            if given != folder_name:
                self._warnings.append(OTHER_FOLDER % (path, given))
            return given
        if not _is_name(folder_name):
            raise _Skipped(NAMELESS)
        self._warnings.append(BAD_NAME % (path, shown(given, 80)) if given else NO_NAME % path)
        return folder_name

    def _leave_out(self, line):
        self._warnings.append(line)
        self._left_out.append(line)


def _first(lines):
    """The lines, the first of them if they are many."""
    more = len(lines) - WARNINGS_LIMIT
    return tuple(lines[:WARNINGS_LIMIT] + ([MORE_WARNINGS % more] if more > 0 else []))


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
    return value if isinstance(value, str) else ", ".join(value)


def _decode(data):
    return data.decode("utf-8", "replace")


def _bundled_path(name):
    return os.path.join(os.path.dirname(__file__), "bundled", name, FILE_NAMES[0])


@functools.lru_cache(maxsize=None)
def _bundled_text(name):
    """From a clone's file or from the archive: the loader of this module reads both. Raises OSError."""
    return _decode(__spec__.loader.get_data(_bundled_path(name)))
