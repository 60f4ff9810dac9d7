"""The AGENTS.md files: what a user and a project want every agent to know.

    of_session   for the system prompt: the user's own file, then from the repository's root down to `cwd`
    Below        later, for a file in a subfolder: with the first read or edit there, once a session

Most of these files come with a repository, and mm reads them unasked. So a file that is a link out of the
repository is left out, and the user is told once.
"""

from __future__ import annotations

import os

from mm import safe_files
from mm.text import fence, folded

# The files, the first that a folder has.
NAMES = ("AGENTS.md", "CLAUDE.md")

# Bytes of all files of the system prompt together, and again of all that come later.
LIMIT = 16 * 1024
# In a small window they may take an eighth of it.
WINDOW_PART, BYTES_PER_TOKEN = 8, 4

CUT = "[AGENTS.md cut at %d bytes in all]"
WAS_CUT = "%s: %s"
LEADS_OUT = "%s is not read: a link leads out of %s"
FOR_FILES_BELOW = "[instructions for the files in %s:]"


def of_session(cwd: str, user_folder: str | None, window: int, notices) -> str:
    """The files for the system prompt, in fences under their paths; "" if there are none.

    `user_folder` is where the user's own file lies, or None; `window` the model's context in tokens, 0 while
    unknown.
    """
    parts, left, limit = [], _limit(window), _limit(window)
    for path, text in files(cwd, user_folder, notices):
        shown = _cut(text, left, limit, path, notices)
        parts.append("\n\n%s:\n%s" % (path, fence(shown)))
        left -= min(len(text.encode("utf-8")), left)
    return "".join(parts)


def files(cwd: str, user_folder: str | None, notices) -> list:
    """(path, text) of each file for the system prompt."""
    project = safe_files.folders_up_from(cwd)
    found = [_read(user_folder, None, notices)] if user_folder else []
    found += [_read(folder, project[-1], notices) for folder in project[::-1] if folder != user_folder]
    return [(path, text) for path, text in found if text]


class Below:
    """The files in the folders below a session's own, each given to the model once."""

    def __init__(self, cwd: str, notices):
        self._cwd, self._notices = cwd, notices
        self._given, self._taken = set(), 0  # folders; bytes

    def forget(self) -> None:
        """What was given is no longer in the conversation: it is given again."""
        self._given, self._taken = set(), 0

    def for_paths(self, paths, window: int) -> str:
        """The texts for the first call on something at these absolute paths, "" if nothing is new."""
        return "\n".join(filter(None, (self._of(folder, window) for path in paths
                                       for folder in self._folders(path))))

    def _folders(self, path: str) -> list:
        """The folders from just below the session's down to `path`, if that is the project's own: hidden
        folders and installed packages are not."""
        if not safe_files.names_inside(self._cwd, path):
            return []
        names = os.path.relpath(path if os.path.isdir(path) else os.path.dirname(path),
                                self._cwd).split(os.sep)
        if any(name.startswith(".") or name == "node_modules" for name in names):
            return []
        return [os.path.join(self._cwd, *names[:count]) for count in range(1, len(names) + 1)]

    def _of(self, folder: str, window: int) -> str:
        limit = _limit(window)
        if folder in self._given or self._taken >= limit:
            return ""
        self._given.add(folder)
        path, text = _read(folder, self._cwd, self._notices)
        if not text:
            return ""
        shown = _cut(text, limit - self._taken, limit, path, self._notices)
        self._taken += len(text.encode("utf-8"))
        return "%s\n%s" % (FOR_FILES_BELOW % folded(os.path.relpath(folder, self._cwd)), fence(shown))


def _limit(window: int) -> int:
    return min(LIMIT, window * BYTES_PER_TOKEN // WINDOW_PART or LIMIT)


def _read(folder: str, project, notices) -> tuple:
    """(path, text) of the folder's file, ("", "") if there is none. `project`: the folder that no link may
    leave, or None."""
    for name in NAMES:
        path = os.path.join(folder, name)
        if project and not safe_files.is_inside(project, path):
            notices.add(LEADS_OUT % (path, project))
            continue
        try:
            text = safe_files.read(path, 2 * LIMIT).decode("utf-8-sig", "replace").strip("\n")
        except OSError:
            continue
        if text.strip():
            return path, text
    return "", ""


def _cut(text: str, left: int, limit: int, path: str, notices) -> str:
    data = text.encode("utf-8")
    if len(data) <= left:
        return text
    cut = CUT % limit
    notices.add(WAS_CUT % (path, cut))
    return data[:left].decode("utf-8", "ignore") + "\n" + cut
