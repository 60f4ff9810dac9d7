"""Defaults, files, environment and command line -> one immutable value.

The order, each winning over the one before, key by key: the defaults of mm.config.keys; the user's file; the
project's file, of which an untrusted folder's may say little (mm.config.trust); the environment; the command
line. `--config` or MM_CONFIG takes the place of both files. Read once, at start, before the answer to
`initialize`: what only files need is imported when there is one.
"""

from __future__ import annotations

import os

from mm.config import places
from mm.errors import UserError
from mm.config.keys import BY_NAME, KEYS, matches

VARIABLES = {"MM_URL": "model.url", "MM_MODEL": "model.name", "MM_API_KEY": "model.apiKey", "MM_YOLO": "yolo"}
OPTIONS = {"model.url": "--url", "model.name": "--model", "yolo": "--yolo"}
NOT_THERE = "not there"
YES, NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")

HOOKS_WAIT = "⚠️ the hooks of this folder are not trusted and do not run: mm --trust"

NOT_SENT = "%s is not sent: only to a model.url of your own configuration, MM_URL or --url"
LEADS_OUT = "%s is not read: a link leads out of the folder"


def attribute(name: str) -> str:
    """The attribute of Config that holds the key `name`: model.apiKey -> model_api_key."""
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).replace(".", "_")


class Config:
    """The configuration: an attribute a key, and what was found while it was read.

    model_url has no slash at the end. model_api_key and model_headers are ready to be sent, and empty if they
    must not be sent: they go only to a URL that the user set. hooks maps an event to a tuple of Hook, mcp,
    agents and lsp a name to an McpServer, Agent, LanguageServer (mm.config.entries); lsp may be False.
    skills_dirs are absolute; untrusted_skills_dirs are the last of them, those that an untrusted project's
    file added.

    `folder` is where mm was started; `user_folder` the user's own (`~/.config/mm`), None without a home;
    `trusted` whether the user trusts `folder` with the file that was read, None if it has no file: `trusts`
    looks then; `hooks_wait` whether it has hooks that do not run because the folder is not trusted;
    `warnings` a tuple of lines for the user; `files` a tuple of (path, how it stands).
    """

    __slots__ = tuple(attribute(key.name) for key in KEYS) + (
        "folder", "user_folder", "trusted", "hooks_wait", "untrusted_skills_dirs", "warnings", "files")

    def __init__(self, **values):
        for name in self.__slots__:
            object.__setattr__(self, name, values[name])

    def replace(self, **values) -> Config:
        """This configuration with other values."""
        return Config(**{name: values.get(name, getattr(self, name)) for name in self.__slots__})

    def trusts(self, folder: str, environ) -> bool:
        """Whether the user trusts the folder: the start folder as it was at the start, others as they are."""
        if self.trusted is not None and os.path.realpath(folder) == os.path.realpath(self.folder):
            return self.trusted
        from mm.config import trust

        return trust.trusts(folder, environ)

    def __setattr__(self, name, value):
        raise AttributeError("the configuration does not change once it is read")


def load(folder: str, environ, config_file: str | None = None, overrides=None) -> Config:
    """Reads the configuration for mm started in `folder`.

    `config_file` is `--config`; `overrides` maps key names to the values of the command line, None where not
    given. Raises UserError, exit code 2, in one line with file, key, what it got and what is allowed.
    """
    reading = _Reading(os.path.abspath(folder), environ)
    named = config_file or environ.get("MM_CONFIG")
    if named:
        reading.named_file(os.path.abspath(places.expand(named, environ)))
    else:
        reading.user_file()
    reading.project_file(alone=bool(named))
    reading.environment()
    reading.command_line(overrides or {})
    return reading.result()


class _Reading:
    """The values as the layers fall on them."""

    def __init__(self, folder, environ):
        self._folder = folder
        self._environ = environ
        self._values = {key.name: key.default for key in KEYS}
        self._source = {}
        self._project = os.path.join(folder, places.PROJECT_FILE)
        self._files = []
        self._warnings = []
        self._trusted = None
        self._hooks_wait = False
        self._untrusted_skills_dirs = ()
        self._url_by_user = False

    def named_file(self, path):
        given = self._given(path)
        if given is None:
            from mm.config import config_file

            raise config_file.failure(path, "there is no such file")
        self._take(given, path)

    def user_file(self):
        folder = places.config_folder(self._environ)
        if folder is None:
            return
        path = os.path.join(folder, "config.json")
        given = self._given(path)
        if given is not None:
            self._take(given, path)

    def project_file(self, alone):
        """The project's file; with `alone` only whether its folder is trusted."""
        try:
            data = _read(self._project)
        except UserError:
            self._trusted = False
            if alone or self._leads_out():
                return
            raise
        if data is None:
            self._files.append((self._project, NOT_THERE))
            return
        from mm.config import trust

        standing = trust.standing(self._folder, data, self._environ)
        self._trusted = standing == trust.TRUSTED
        if alone:
            self._files.append((self._project, "not read: another file was named"))
            return
        if not self._trusted and self._leads_out():
            return
        self._files.append((self._project, standing))
        given = self._flat(data, self._project, regexes=self._trusted)
        if not self._trusted:
            given = self._admitted(given, standing)
        self._take(given, self._project, by_user=False)

    def _leads_out(self):
        """Whether a link leads the project's file out of its folder. A warning says so then."""
        from mm import safe_files

        if safe_files.is_inside(self._folder, places.PROJECT_FILE):
            return False
        from mm.config import config_file

        self._files.append((self._project, "not read"))
        self._warnings.append(LEADS_OUT % config_file.shown(self._project, 4096))
        return True

    def environment(self):
        for variable, name in VARIABLES.items():
            value = self._environ.get(variable)
            if not value:
                continue
            if name == "yolo":
                value = _yes_or_no(value, variable)
            self._take_checked(name, value, variable)

    def command_line(self, overrides):
        for name, value in overrides.items():
            if value is not None:
                self._take_checked(name, value, OPTIONS.get(name, "command line"))

    def result(self):
        self._guard_sessions()
        self._guard_secrets()
        values = {attribute(name): _copied(value) for name, value in self._values.items()}
        if values["model_url"]:
            values["model_url"] = values["model_url"].rstrip("/")
        values["bash_timeout"] = min(values["bash_timeout"], values["bash_max_timeout"])
        values["sessions_dir"] = places.expand(values["sessions_dir"], self._environ)
        values["skills_dirs"] = tuple(os.path.join(self._folder, places.expand(path, self._environ))
                                      for path in values["skills_dirs"])
        return Config(folder=self._folder, user_folder=places.config_folder(self._environ),
                      trusted=self._trusted, hooks_wait=self._hooks_wait,
                      untrusted_skills_dirs=self._untrusted_skills_dirs, warnings=tuple(self._warnings),
                      files=tuple(self._files), **values)

    def _given(self, path):
        """The checked values of one of the user's files, or None where it is not there."""
        data = _read(path)
        self._files.append((path, NOT_THERE if data is None else "read"))
        return None if data is None else self._flat(data, path)

    def _flat(self, data, path, regexes=True):
        """The file's values by key name."""
        from mm.config import config_file, schema

        document = config_file.parse(data, path)
        schema.check_document(document, path, regexes)
        given = {}
        for key in KEYS:
            place = document
            *groups, last = key.name.split(".")
            for group in groups:
                place = place.get(group, {})
            if last in place:
                given[key.name] = place[last]
        return given

    def _admitted(self, given, standing):
        from mm.config import config_file, trust

        taken, ignored = trust.admit(given, self._values, self._folder)
        self._untrusted_skills_dirs = tuple(taken.get("skills.dirs", ())[len(self._values["skills.dirs"]):])
        path = config_file.shown(self._project, 4096)
        self._hooks_wait = any(given.get("hooks", {}).values())
        if self._hooks_wait:
            ignored.remove("hooks")  # they have a line of their own
        if ignored:
            verb = "has" if standing == trust.CHANGED else "is"
            self._warnings.append("%s %s %s, ignored: %s (mm --trust takes them)"
                                  % (path, verb, standing, ", ".join(ignored)))
        if self._hooks_wait:
            self._warnings.append(HOOKS_WAIT)
        return taken

    def _take(self, given, source, by_user=True):
        for name, value in given.items():
            if BY_NAME[name].entries and value:
                from mm.config import entries

                value = dict(self._values[name] or {}, **entries.convert(name, value, source, self._environ))
            if name == "model.url":
                self._url_by_user = by_user or (self._url_by_user and value == self._values[name])
            self._values[name] = value
            self._source[name] = source

    def _take_checked(self, name, value, source):
        text = isinstance(value, str) and matches(value, BY_NAME[name].shape)
        if not (isinstance(value, bool) or text):  # what fits needs no import
            from mm.config import schema

            schema.check_value(value, BY_NAME[name].shape, name, source)
        self._take({name: value}, source)

    def _guard_sessions(self):
        """A repository's link must not make mm write elsewhere."""
        if not self._values["sessions.enabled"]:
            return
        from mm import safe_files

        where = places.expand(self._values["sessions.dir"], self._environ)
        if safe_files.names_inside(self._folder, where) and not safe_files.is_inside(self._folder, where):
            self._values["sessions.enabled"] = False
            self._warnings.append("sessions are off: a link leads %s out of the folder" % where)

    def _guard_secrets(self):
        """The key and the headers go only to a URL that the user set."""
        secrets = [name for name in ("model.apiKey", "model.headers") if self._values[name]]
        if self._url_by_user:
            for name in secrets:
                self._values[name] = self._expanded(name, self._values[name])
            return
        if secrets:
            self._warnings.append(NOT_SENT % " and ".join(secrets))
        self._values["model.apiKey"], self._values["model.headers"] = None, {}

    def _expanded(self, name, value):
        if isinstance(value, dict):
            return {header: self._expanded("%s.%s" % (name, header), text) for header, text in value.items()}
        variable = value[1:]
        source = self._source[name if name in BY_NAME else "model.headers"]
        if value[:1] != "$" or not variable.isidentifier() or source in VARIABLES:
            return value
        from mm.config import config_file, schema
        from mm.config.keys import HEADER_VALUE

        if not self._environ.get(variable):
            raise config_file.failure(source, "%s: the environment variable %s is not set" % (name, variable))
        schema.check_value(self._environ[variable], HEADER_VALUE, name,
                           "the environment variable " + variable)
        return self._environ[variable]


def _read(path):
    """A configuration file's bytes, None if it is not there. Raises UserError."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None  # the usual case, which needs no import
    except OSError:
        pass  # the attempt to read it says what is wrong
    from mm.config import config_file

    return config_file.read(path)


def _copied(value):
    """So that nobody changes a default through a Config."""
    return tuple(value) if isinstance(value, list) else dict(value) if isinstance(value, dict) else value


def _yes_or_no(text, source):
    if text.lower() in YES or text.lower() in NO:
        return text.lower() in YES
    from mm.config import config_file

    raise config_file.failure(source, "got \"%s\", allowed: %s"
                              % (config_file.shown(text, 60), ", ".join(YES + NO)))
