"""Finding the programs that mm starts by name. Nothing that a project brings is started because of its name.

A bare name is looked up in the absolute entries of PATH alone: an empty entry, `.` and, on Windows, the
current folder would be the project itself. A program in the repository around the session's folder, or a link
into it, is passed over. A name with a folder in it (`./server`, `~/bin/server`) is the choice of whoever
wrote it, and is accepted.
"""

from __future__ import annotations

import errno
import os

from mm import safe_files
from mm.config import places

# Where Git for Windows has its bash, below %ProgramFiles%.
_GIT_BASH = ("Git", "bin", "bash.exe")

# What shell() has found for (shell, folder, PATH): it is asked before each command.
_shells = {}


class NoShell(Exception):
    """There is no shell to run commands with; the message says what to do about it."""


def find(name: str, folder: str, environ=os.environ) -> str | None:
    """The absolute path of the program `name` for a session in `folder`, None if there is none."""
    try:
        return locate(name, folder, environ)
    except OSError:
        return None


def locate(name: str, folder: str, environ=os.environ) -> str:
    """As find(), but raises the OSError that says what is wrong. A relative path starts at `folder`."""
    if os.path.dirname(name):
        path = os.path.abspath(os.path.join(folder, os.path.expanduser(name)))
        for candidate in _with_extensions(path, environ):
            if _is_program(candidate):
                return candidate
        number = errno.EACCES if os.path.exists(path) else errno.ENOENT
        raise OSError(number, os.strerror(number), name)
    project = _project(folder, environ)
    for entry in search_path(environ):
        for candidate in _with_extensions(os.path.join(entry, name), environ):
            if _is_program(candidate) and not (project and (
                    safe_files.names_inside(project, candidate) or safe_files.is_inside(project, candidate))):
                return candidate
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def search_path(environ) -> list:
    """The entries of PATH that do not depend on the current folder."""
    entries = (environ.get("PATH") or os.defpath).split(os.pathsep)
    return [entry for entry in entries if os.path.isabs(entry)]


def keep_outside_of_projects(environ: dict) -> None:
    """Takes out of a child's environment what names files by the folder that the child starts in."""
    environ["PATH"] = os.pathsep.join(search_path(environ)) or os.defpath
    for name in ("BASH_ENV", "ENV"):  # a shell runs this file before anything else
        if not environ.get(name, "/").startswith(("/", "~", "$HOME", "${HOME}")):
            del environ[name]


def shell(wanted: str, folder: str, environ=os.environ) -> str:
    """The path of the shell that `bash.shell` names. Raises NoShell."""
    if wanted == "bash" and os.name == "nt":
        git = os.path.join(environ.get("ProgramFiles", r"C:\Program Files"), *_GIT_BASH)
        if os.path.exists(git):
            return git
    asked = wanted, folder, environ.get("PATH")
    found = _shells.get(asked)
    if not (found and _is_program(found)):
        found = _shells[asked] = find(wanted, folder, environ)
    if found:
        return found
    if wanted != "bash":
        raise NoShell(f"bash.shell is {wanted}, and there is no such program")
    if os.name == "nt":
        raise NoShell("no bash found; install Git for Windows or set bash.shell")
    return "/bin/sh"


def _project(folder, environ):
    """The repository around `folder`, else `folder`; None if that holds the user's home, with the user's own
    programs."""
    folder, home = os.path.abspath(folder), places.home(environ)
    for project in (safe_files.folders_up_from(folder)[-1], folder):
        if not (home and safe_files.is_inside(project, home)):
            return project
    return None


def _is_program(path):
    return os.access(path, os.X_OK) and os.path.isfile(path)  # cheapest first: most entries do not have it


def _with_extensions(path, environ):
    """The file names that stand for `path`: on Windows a program may be named without its extension."""
    if os.name != "nt":
        return [path]
    extensions = environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(os.pathsep)
    if path.lower().endswith(tuple(extension.lower() for extension in extensions)):
        return [path]
    return [path + extension for extension in extensions]
