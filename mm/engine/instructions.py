"""The AGENTS.md files: what a user and a project want every agent to know.

    at_start   for the system prompt: the user's own file, then from the repository's root down to the folder
    below      later, for a file in a subfolder: with the first read or edit there, once a session

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
LEADS_OUT = "%s is not read: a link leads out of %s"
AT_START = "\n\n%s:\n%s"
FOR_FILES_BELOW = "[instructions for the files in %s:]\n%s"


class Instructions:
    """The files that the model of a session in `cwd` has got. `notices` takes what is left out or cut.

    `window` is the model's context in tokens everywhere, 0 while unknown.
    """

    def __init__(self, cwd: str, notices):
        self._cwd, self._notices = cwd, notices
        self.forget()

    def forget(self) -> None:
        """What was given below is no longer in the conversation: it is given again."""
        self._given, self._taken = set(), 0  # folders; bytes

    def at_start(self, user_folder: str | None, window: int) -> str:
        """The files for the system prompt, in fences under their paths; `user_folder` has the user's own."""
        return "".join(AT_START % text for text in self.files(user_folder, window))

    def files(self, user_folder: str | None, window: int) -> list:
        """(path, text in a fence) of each file for the system prompt."""
        project = safe_files.folders_up_from(self._cwd)
        texts = [self._text(user_folder, None, window)] if user_folder else []
        texts += [self._text(folder, project[-1], window) for folder in project[::-1]]
        self.forget()  # what comes later has a limit of its own
        return [text for text in texts if text]

    def below(self, paths, window: int) -> str:
        """The files for the first call on something at these absolute paths; "" if nothing is new."""
        texts = []
        for folder in (folder for path in paths for folder in self._folders(path)):
            if folder not in self._given:
                self._given.add(folder)
                text = self._text(folder, self._cwd, window)
                if text:
                    texts.append(FOR_FILES_BELOW % (folded(os.path.relpath(folder, self._cwd)), text[1]))
        return "\n".join(texts)

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

    def _text(self, folder: str, project: str | None, window: int) -> tuple | None:
        """(path, text in a fence) of the folder's file, cut to the room. No link may leave `project`."""
        limit = min(LIMIT, window * BYTES_PER_TOKEN // WINDOW_PART or LIMIT)
        path, data = self._read(folder, project)
        room = max(limit - self._taken, 0)
        self._taken += len(data)
        if len(data) <= room:
            return (path, fence(data.decode("utf-8"))) if data else None
        self._notices.add("%s: %s" % (path, CUT % limit))
        return (path, fence("%s\n%s" % (data[:room].decode("utf-8", "ignore"),
                                        CUT % limit))) if room else None

    def _read(self, folder: str, project: str | None) -> tuple:
        """(path, UTF-8) of the folder's file; two empty values if there is none."""
        for name in NAMES:
            path = os.path.join(folder, name)
            if project and not safe_files.is_inside(project, path):
                self._notices.add(LEADS_OUT % (path, project))
                continue
            try:
                text = safe_files.read(path, 2 * LIMIT).decode("utf-8-sig", "replace").strip("\n")
            except OSError:
                continue
            if text.strip():
                return path, text.encode("utf-8")
        return "", b""
