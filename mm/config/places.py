"""Where the user's own files live. Only the environment is looked at, never a folder of a project.

Some editors start mm without HOME: the account's home folder is asked for then, so that the user's
configuration, and with it `yolo: false`, holds there too.
"""

from __future__ import annotations

import os
import sys

# A project's configuration, in the folder mm is started in.
PROJECT_FILE = os.path.join(".mm", "config.json")


def home(environ) -> str | None:
    """The home folder, absolute, or None if there is none."""
    for path in (environ.get("HOME"), environ.get("USERPROFILE")):
        if path and os.path.isabs(path):
            return path
    return _account_home()


def config_folder(environ, platform: str = sys.platform) -> str | None:
    """`~/.config/mm`, or below XDG_CONFIG_HOME; `%APPDATA%\\mm` on Windows. None if there is no home."""
    return _folder(environ, platform, "APPDATA", "XDG_CONFIG_HOME", ".config")


def state_folder(environ, platform: str = sys.platform) -> str | None:
    """`~/.local/state/mm`, or below XDG_STATE_HOME; `%LOCALAPPDATA%\\mm` on Windows; or None."""
    return _folder(environ, platform, "LOCALAPPDATA", "XDG_STATE_HOME", os.path.join(".local", "state"))


def expand(path: str, environ) -> str:
    """`path` with a leading `~` or `~/` as the home folder; unchanged if there is none."""
    if path != "~" and path[:2] != "~/":
        return path
    return (home(environ) or "~") + path[1:]


def _folder(environ, platform, windows_name, name, below_home):
    given = environ.get(windows_name if platform == "win32" else name)
    # The XDG specification: a relative path in these variables is to be ignored.
    if given and (platform == "win32" or os.path.isabs(given)):
        return os.path.join(given, "mm")
    start = home(environ)
    return os.path.join(start, below_home, "mm") if start else None


def _account_home():
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError, OSError):
        return None
