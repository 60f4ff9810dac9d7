"""What a transcript's settings ask for: the folders, files, configuration and environment an agent is started
in."""

from __future__ import annotations

import json
import os
import re
import subprocess

from mm.transcripts import transcript
from mm.transcripts.placeholders import fill

MODEL = "scripted"

# What the agent's environment keeps of ours: an editor passes hardly more.
KEPT_VARIABLES = ("PATH", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "COMSPEC", "PATHEXT", "PROGRAMFILES")


class Stage:
    """Where one transcript is played.

    `folder` is an empty folder of its own, a real path; `cwd` a folder to work in instead of one below it, or
    None.
    """

    def __init__(self, lines, folder: str, cwd: str | None = None):
        self.names = {"cwd": cwd or os.path.join(folder, "cwd"), "home": os.path.join(folder, "home")}
        self.model = (transcript.directives(lines, "model") or [MODEL])[-1]
        self._arguments = [word for words in transcript.directives(lines, "args") for word in words]
        self._environ = transcript.directives(lines, "env")
        for name in ("cwd", "home"):
            os.makedirs(self.names[name], exist_ok=True)
            # Links come last: no file is made through one.
            for entry in sorted(transcript.directives(lines, name), key=lambda entry: entry.kind == "link"):
                self._make(self.names[name], entry)
        self._configure(transcript.directives(lines, "config"))

    def start(self, command, url: str) -> subprocess.Popen:
        """Starts the agent, its three streams as pipes, with the model server at `url`."""
        environ = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        environ.update(HOME=self.names["home"], USERPROFILE=self.names["home"], MM_URL=url,
                       MM_MODEL=self.model)
        environ.update((name, self._filled(value)) for name, value in self._environ)
        return subprocess.Popen(
            list(command) + ["-acp"] + [self._filled(word) for word in self._arguments],
            cwd=self.names["cwd"], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def _configure(self, settings) -> None:
        config = {}
        for each in settings:
            config.update(each)
        if not config:
            return
        path = os.path.join(self.names["home"], ".config", "mm", "config.json")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(fill(json.dumps(config), self.names))

    def _make(self, folder: str, entry) -> None:
        path = os.path.join(folder, *re.split(r"[/\\]", entry.name))
        os.makedirs(path if entry.kind == "folder" else os.path.dirname(path), exist_ok=True)
        if entry.kind == "link":
            os.symlink(self._filled(entry.content), path)
        elif entry.kind == "file":
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(self._filled(entry.content))

    def _filled(self, text: str) -> str:
        """Text outside of JSON, with its placeholders filled."""
        for name, value in self.names.items():
            text = text.replace("<" + name + ">", value)
        return text
