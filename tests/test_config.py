"""The configuration: its values, the order of its layers, and every way in which a file can be wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import unittest

from mm.config import config, config_file, places, schema
from mm.config.config_file import MAX_BYTES
from mm.config.entries import Agent, Hook, LanguageServer, McpServer
from mm.errors import UserError
from mm.config.keys import ANY, KEYS, NO, ONLY_ADD, ONLY_FALSE, ONLY_INSIDE, ONLY_LOWER
from tests import support

# For each key: a value that fits, and values that do not.
TEXTS = [7, True, None, [], {}, ""]
NUMBERS = ["7", True, None, [], {}]
WHOLE = NUMBERS + [1.5]
FLAGS = [0, 1, "true", None, [], {}]
VALUES = {
    "model.url": ("http://127.0.0.1:8080/v1",
                  TEXTS + ["ftp://h/v1", "http://h/v1/models", "http:///v1", "http://u:p@h/v1",
                           "http://h/v1?x=1", "http://h/v1#x", "http://h:99999/v1", "http://h/v1\n",
                           "http://h /v1"]),
    "model.name": ("qwen", TEXTS + ["x" * 501]),
    "model.apiKey": ("sk-1", TEXTS + ["a\nb", "a\n", " a", "schlüssel €"]),
    "model.headers": ({"X-Team": "a b"}, [7, True, None, [], "x", {"X": 7}, {"a b": "x"}, {"": "x"},
                                          {"X": "a\r\nB: c"}]),
    "model.contextWindow": (8192, WHOLE + [-1, 100000001]),
    "model.temperature": (0.5, NUMBERS + [-0.1, 2.1]),
    "model.maxTokens": (100, WHOLE + [0]),
    "model.extra": ({"top_k": 40},
                    [7, True, None, [], "x", {"stream": False}, {"messages": []}, {"tools": []},
                     {"model": "x"}]),
    "model.maxReasoning": (0, WHOLE + [-1]),
    "model.timeout": (0.5, NUMBERS + [-1, 86401]),
    "yolo": (False, FLAGS),
    "maxSteps": (0, WHOLE + [-1, 1000001]),
    "acp.name": ("otto", TEXTS + ["x" * 65, "a\nb", "a\x9bb"]),
    "acp.title": ("", [7, True, None, [], {}, "x" * 201, "a\nb"]),
    "acp.thoughts": (False, FLAGS),
    "sessions.enabled": (True, FLAGS),
    "sessions.dir": ("talks", TEXTS + ["a\0b"]),
    "context.threshold": (0.5, NUMBERS + [0, 1.1]),
    "context.keepLastTurns": (3, WHOLE + [-1]),
    "context.reserve": (1000, WHOLE + [-1]),
    "loop.enabled": (False, FLAGS),
    "loop.repeats": (2, WHOLE + [1, 101]),
    "bash.timeout": (1.5, NUMBERS + [0, 86401]),
    "bash.maxTimeout": (900, NUMBERS + [0, 86401]),
    "bash.maxOutput": (100, WHOLE + [99]),
    "bash.shell": ("/bin/zsh", TEXTS),
    "skills.dirs": (["/skills"], [7, True, None, "x", {}, [7], [""]]),
    "hooks": ({"preToolCall": [{"command": "./guard.sh", "match": "bash|write_file", "timeout": 3,
                                "onFailure": "allow"}],
               "turnEnd": [{"command": "true"}]},
              [7, True, None, [], "x", {"preToolCal": []}, {"turnEnd": {}}, {"turnEnd": [7]},
               {"turnEnd": [{}]}, {"turnEnd": [{"command": ["true"]}]}, {"turnEnd": [{"command": ""}]},
               {"turnEnd": [{"command": "x", "match": "a"}]},
               {"preToolCall": [{"command": "x", "match": "("}]},
               {"preToolCall": [{"command": "x", "match": "a{99999999999}"}]},
               {"preToolCall": [{"command": "x", "match": "(" * 1000}]},
               {"preToolCall": [{"command": "x", "match": 7}]}, {"turnEnd": [{"command": "x", "timeout": 0}]},
               {"turnEnd": [{"command": "x", "onFailure": "maybe"}]},
               {"turnEnd": [{"command": "x", "comand": "y"}]}]),
    "mcp": ({"files": {"command": ["npx", "files"], "args": ["-v"], "env": {"A": "b"}, "permissions": "ask",
                       "tools": ["read"], "timeout": 5}},
            [7, True, None, [], "x", {"a b": {"command": "x"}}, {"a": 7}, {"a": {}}, {"a": {"command": []}},
             {"a": {"command": 7}}, {"a": {"command": [7]}}, {"a": {"command": "x", "args": "-v"}},
             {"a": {"command": "x", "env": {"A": 7}}}, {"a": {"command": "x", "env": {"A=": "7"}}},
             {"a": {"command": "x", "permissions": "allow"}}, {"a": {"command": "x", "tools": "read"}},
             {"a": {"command": "x", "timeout": "5"}}, {"a": {"command": "x", "url": "y"}}]),
    "agents": ({"reviewer": {"command": "rev", "args": ["--acp"], "env": {}, "cwd": "~/r",
                             "description": "reviews"}},
               [7, True, None, [], "x", {"a": {}}, {"a": {"command": None}},
                {"a": {"command": "x", "cwd": 7}}, {"a": {"command": "x", "description": []}},
                {"a": {"command": "x", "timeout": 5}}]),
    "askAgent.maxDepth": (0, WHOLE + [-1, 11]),
    "askAgent.idleTimeout": (60, NUMBERS + [0]),
    "lsp": ({"python": {"command": ["pylsp"], "extensions": [".py"]}},
            [7, True, None, [], "x", 0, {"python": {"command": "pylsp"}}, {"python": {"extensions": [".py"]}},
             {"python": False}, {"python": {"command": "pylsp", "extensions": ["py"]}},
             {"python": {"command": "pylsp", "extensions": []}}]),
    "fetch.allowPrivate": (True, FLAGS),
    "tools.disabled": (["bash", "mcp__files__read"], [7, True, None, "bash", {}, [7], ["bsh"], ["mcp__"]]),
}

# What a file may hold besides: the text, and what the error must name.
BROKEN = (
    ("", "line 1, column 1"),
    ("{\n  \"yolo\": true,,\n}", "line 2, column 16"),
    ("{\"yolo\": true} x", "line 1, column 16"),
    ("[]", "not a JSON object"),
    ("null", "not a JSON object"),
    ("{\"yolo\": NaN}", "NaN"),
    ("{\"maxSteps\": 1e999}", "a number is too large"),
    ("{\"maxSteps\": " + "9" * 500000 + "}", "more than 300 digits"),
    ("{\"yolo\": true, \"yolo\": false}", "the key \"yolo\" is there twice"),
    ("{\"model\": {\"extra\": " + "[" * 40 + "]" * 40 + "}}", "nested deeper than 32"),
    ("[" * 500000, "nested too deeply"),
    ("{\"a\":" * 100000, "nested too deeply"),
    ("{\"model\": {\"temperature\": 1e999}}", "a number is too large"),
    ("{\"model\": {\"name\": \"\\ud800\"}}", "model.name: got"),
    ("{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}", "unknown key \"mcpServers\"; mm's way is {\"mcp\": "
                                                        "{\"NAME\": {"),
    ("{\"mcp\": {\"a\": {\"url\": \"http://h\"}}}", "unknown key \"mcp.a.url\"; mm speaks with MCP servers "
                                                    "over stdio alone"),
    ("{\"hooks\": {\"PreToolUse\": []}}", "unknown key \"hooks.PreToolUse\"; mm's event is \"preToolCall\": ["),
    ("{\"permissions\": {\"allow\": []}}", "unknown key \"permissions\"; mm has \"yolo\": false"),
    ("{\n// a comment\n\"yolo\": true}", "line 2, column 1"), ("{\n// x\n\"yolo\": true}", "; JSON has no "
                                                                                           "comments"),
    ("{\"yolo\": true /* x */}", "; JSON has no comments"), ("# x\n{}", "; JSON has no comments"),
    ("{\"yolo\": true, }", "; JSON has no comma before a closing bracket"),
    ("{\"skills\": {\"dirs\": [\"a\", ]}}", "; JSON has no comma before a closing bracket"),
    ("{'yolo': true}", "; JSON wants double quotes"),
    ("{\"model\": []}", "model: got a list, allowed: an object"),
    ("{\"maxStep\": 5}", "unknown key \"maxStep\", did you mean \"maxSteps\"?; allowed: $schema, acp"),
    ("{\"model\": {\"apikey\": \"sk-secret\"}}",
     "unknown key \"model.apikey\", did you mean \"model.apiKey\"?; allowed in model: apiKey"),
    ("{\"url\": \"http://h/v1\"}", "unknown key \"url\", did you mean \"model.url\"?"),
    ("{\"model.url\": \"http://h/v1\"}", "which is written nested: {\"model\": {\"url\": …"),
    ("{\"zzzzzz\": 1}", "unknown key \"zzzzzz\"; allowed:"),
    ("{\"\\u001b[31m\\nx\": 1}", "\\u001b[31m\\nx"),
    ("{\"model\": {\"url\": \"localhost:8080\"}}", "did you mean \"http://localhost:8080\"?"),
    ("{\"model\": {\"url\": \"localhost:8080/v1/chat/completions\"}}", "did you mean "
                                                                       "\"http://localhost:8080/v1\"?"),
)


class Folders:
    """A home and a project of one test."""

    def __init__(self):
        root = support.scratch_folder()
        self.home, self.project = os.path.join(root, "home"), os.path.join(root, "project")
        os.makedirs(self.project)
        self.user_file = os.path.join(self.home, ".config", "mm", "config.json")
        self.project_file = os.path.join(self.project, ".mm", "config.json")
        self.environ = {"HOME": self.home}

    def user(self, content):
        return write(self.user_file, content)

    def load(self, config_file=None, overrides=None, **environ):
        return config.load(self.project, dict(self.environ, **environ), config_file, overrides)


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not isinstance(content, (str, bytes)):
        content = json.dumps(content)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def nested(name, value):
    for part in reversed(name.split(".")):
        value = {part: value}
    return value


class Values(unittest.TestCase):
    def test_the_table_here_has_every_key(self):
        self.assertEqual(list(VALUES), [key.name for key in KEYS])

    def test_every_key_has_its_default(self):
        loaded = Folders().load()
        for key in KEYS:
            expected = tuple(key.default) if isinstance(key.default, list) else key.default
            self.assertEqual(getattr(loaded, config.attribute(key.name)), expected, key.name)
        self.assertEqual(loaded.warnings, ())

    def test_every_key_is_read_from_a_file(self):
        folders = Folders()
        for name, (value, _) in VALUES.items():
            # The key and the headers are there only with a URL to send them to.
            folders.user(dict(nested(name, value)) if not name.startswith("model.") else
                         {"model": dict({"url": "http://h/v1"}, **nested(name, value)["model"])})
            got = getattr(folders.load(), config.attribute(name))
            if name not in ("hooks", "mcp", "agents", "lsp"):
                self.assertEqual(got, tuple(value) if isinstance(value, list) else value, name)

    def test_a_value_that_does_not_fit(self):
        folders = Folders()
        for name, (_, wrong) in VALUES.items():
            for value in wrong:
                path = folders.user(nested(name, value))
                with self.subTest(name=name, value=value), self.assertRaises(UserError) as caught:
                    folders.load()
                text = str(caught.exception)
                self.assertEqual(caught.exception.exit_code, 2)
                self.assertIn(name, text)
                self.assertTrue(text.startswith(path + ": "), text)
                self.assertEqual(len(text.splitlines()), 1, text)
                self.assertLess(len(text), 700)

    def test_a_broken_file_is_one_line(self):
        folders = Folders()
        for content, named in BROKEN:
            path = folders.user(content)
            with self.subTest(content=content[:60]), self.assertRaises(UserError) as caught:
                folders.load()
            text = str(caught.exception)
            self.assertTrue(text.startswith(path + ": "), text)
            self.assertIn(named, text)
            self.assertTrue(text.isprintable(), text)
            self.assertNotIn("secret", text)

    def test_a_file_that_is_not_utf_8(self):
        folders = Folders()
        folders.user(b"{\n\"acp\": {\"name\": \"\xff\"}}")
        with self.assertRaisesRegex(UserError, "line 2 is not UTF-8"):
            folders.load()

    def test_a_byte_order_mark_and_a_schema(self):
        folders = Folders()
        folders.user(b"\xef\xbb\xbf{\"$schema\": \"x.json\", \"maxSteps\": 7}")
        self.assertEqual(folders.load().max_steps, 7)

    def test_maps_become_values(self):
        folders = Folders()
        folders.user({name: VALUES[name][0] for name in ("hooks", "mcp", "agents", "lsp")})
        loaded, declared = folders.load(), os.path.dirname(folders.user_file)
        self.assertEqual(loaded.hooks, {"preToolCall": (Hook("./guard.sh", "bash|write_file", 3, "allow",
                                                             declared),),
                                        "turnEnd": (Hook("true", None, 10, "allow", declared),)})
        self.assertEqual(loaded.mcp, {"files": McpServer(("npx", "files", "-v"), {"A": "b"}, "ask", ("read",),
                                                         5)})
        self.assertEqual(loaded.agents, {"reviewer": Agent(("rev", "--acp"), {}, folders.home + "/r",
                                                           "reviews")})
        self.assertEqual(loaded.lsp, {"python": LanguageServer(("pylsp",), (".py",))})

    def test_a_guard_that_fails_denies_by_default(self):
        folders = Folders()
        folders.user({"hooks": {"preToolCall": [{"command": "x"}], "postToolCall": [{"command": "x"}]}})
        hooks = folders.load().hooks
        self.assertEqual((hooks["preToolCall"][0].on_failure, hooks["postToolCall"][0].on_failure),
                         ("deny", "allow"))

    def test_lsp_can_be_turned_off(self):
        folders = Folders()
        folders.user({"lsp": False})
        self.assertIs(folders.load().lsp, False)

    def test_the_timeout_of_bash_has_a_maximum(self):
        folders = Folders()
        folders.user({"bash": {"timeout": 500, "maxTimeout": 60}})
        self.assertEqual(folders.load().bash_timeout, 60)

    def test_a_configuration_does_not_change(self):
        loaded = Folders().load()
        self.assertRaises(AttributeError, setattr, loaded, "yolo", False)
        self.assertRaises(AttributeError, setattr, loaded, "other", 1)
        loaded.model_extra["stream"] = True
        self.assertEqual(Folders().load().model_extra, {})

    def test_where_paths_start(self):
        folders = Folders()
        folders.user({"skills": {"dirs": ["~/skills", "tools/skills"]}, "sessions": {"dir": "~/talks"}})
        loaded = folders.load()
        self.assertEqual(loaded.skills_dirs, (folders.home + "/skills", folders.project + "/tools/skills"))
        self.assertEqual(loaded.sessions_dir, folders.home + "/talks")


class Layers(unittest.TestCase):
    def test_each_layer_wins_over_the_one_before(self):
        folders = Folders()
        folders.user({"model": {"url": "http://user/v1", "name": "user"}, "yolo": False})
        self.assertEqual(folders.load().model_name, "user")
        environ = {"MM_URL": "http://variable/v1/", "MM_MODEL": "variable", "MM_YOLO": "yes"}
        loaded = folders.load(**environ)
        self.assertEqual((loaded.model_url, loaded.model_name, loaded.yolo),
                         ("http://variable/v1", "variable", True))
        loaded = folders.load(overrides={"model.url": "http://option/v1", "model.name": None, "yolo": False},
                              **environ)
        self.assertEqual((loaded.model_url, loaded.model_name, loaded.yolo),
                         ("http://option/v1", "variable", False))

    def test_maps_are_overridden_entry_by_entry(self):
        folders = Folders()
        folders.user({"agents": {"a": {"command": "one"}, "b": {"command": "two"}}})
        write(folders.project_file, {"agents": {"b": {"command": "three"}}})
        trust_project(folders)
        self.assertEqual({name: agent.argv for name, agent in folders.load().agents.items()},
                         {"a": ("one",), "b": ("three",)})

    def test_a_named_file_is_read_alone(self):
        folders = Folders()
        folders.user({"maxSteps": 1, "yolo": False})
        write(folders.project_file, {"maxSteps": 2})
        named = write(os.path.join(folders.home, "other.json"), {"acp": {"name": "otto"}})
        for loaded in (folders.load(named), folders.load(MM_CONFIG=named), folders.load("~/other.json"),
                       folders.load(named, MM_CONFIG="/nowhere.json")):
            self.assertEqual((loaded.acp_name, loaded.max_steps, loaded.yolo), ("otto", 100, True))
            self.assertEqual(loaded.warnings, ())

    def test_a_named_file_that_is_missing(self):
        with self.assertRaisesRegex(UserError, "/nowhere.json: there is no such file"):
            Folders().load("/nowhere.json")

    def test_empty_variables_are_not_set(self):
        loaded = Folders().load(MM_URL="", MM_MODEL="", MM_API_KEY="", MM_YOLO="", MM_CONFIG="")
        self.assertEqual((loaded.model_url, loaded.yolo), (None, True))

    def test_wrong_variables_and_options_name_themselves(self):
        for environ, overrides, named in (
            ({"MM_URL": "nonsense"}, {}, "MM_URL: got \"nonsense\", allowed: a base URL such as"),
            ({"MM_YOLO": "perhaps"}, {}, "MM_YOLO: got \"perhaps\", allowed: 1, true"),
            ({}, {"model.url": "h"}, "--url: got \"h\""),
            ({}, {"model.name": ""}, "--model: got \"\""),
            ({"MM_API_KEY": "a\nb"}, {}, "MM_API_KEY: got text that does not fit"),
        ):
            with self.subTest(named=named), self.assertRaises(UserError) as caught:
                Folders().load(overrides=overrides, **environ)
            self.assertIn(named, str(caught.exception))

    def test_words_for_yolo(self):
        for word, meant in (("1", True), ("TRUE", True), ("on", True), ("0", False), ("False", False),
                            ("no", False)):
            self.assertIs(Folders().load(MM_YOLO=word).yolo, meant)

    def test_files_say_how_they_stand(self):
        folders = Folders()
        self.assertEqual(folders.load().files, ((folders.user_file, "not there"),
                                                (folders.project_file, "not there")))
        folders.user({})
        write(folders.project_file, {})
        self.assertEqual(folders.load().files, ((folders.user_file, "read"),
                                                (folders.project_file, "not trusted")))


def trust_project(folders):
    from mm.config import trust

    return trust.trust(folders.project, folders.environ)


class Secrets(unittest.TestCase):
    KEY = {"model": {"url": "http://user/v1", "apiKey": "$TEAM_KEY",
                     "headers": {"X-Team": "$TEAM", "X-Plain": "$ 5"}}}

    def test_names_read_the_environment(self):
        folders = Folders()
        folders.user(self.KEY)
        loaded = folders.load(TEAM_KEY="sk-1", TEAM="blue")
        self.assertEqual((loaded.model_api_key, loaded.model_headers),
                         ("sk-1", {"X-Team": "blue", "X-Plain": "$ 5"}))

    def test_a_variable_that_cannot_be_a_header(self):
        folders = Folders()
        path = folders.user(self.KEY)
        for environ, named in (({}, "%s: model.apiKey: the environment variable TEAM_KEY is not set" % path),
                               ({"TEAM_KEY": "k"}, "model.headers.X-Team: the environment variable TEAM is "
                                                   "not set"),
                               ({"TEAM_KEY": "sk-secret\n"}, "variable TEAM_KEY: model.apiKey: got text that "
                                                             "does not fit")):
            with self.assertRaises(UserError) as caught:
                folders.load(**environ)
            self.assertIn(named, str(caught.exception))
            self.assertNotIn("secret", str(caught.exception))

    def test_mm_api_key_is_taken_literally(self):
        self.assertEqual(Folders().load(MM_URL="http://h/v1", MM_API_KEY="$HOME").model_api_key, "$HOME")

    def test_secrets_go_only_to_the_users_url(self):
        for user, project, environ, overrides, sent in (
            ({"url": "http://user/v1"}, {}, {}, {}, True),
            ({}, {}, {"MM_URL": "http://variable/v1"}, {}, True),
            ({}, {}, {}, {"model.url": "http://option/v1"}, True),
            ({"url": "http://user/v1"}, {"url": "http://user/v1"}, {}, {}, True),
            ({}, {"url": "http://project/v1"}, {"MM_URL": "http://variable/v1"}, {}, True),
            ({}, {}, {}, {}, False),
            ({}, {"url": "http://project/v1"}, {}, {}, False),
            ({"url": "http://user/v1"}, {"url": "http://project/v1"}, {}, {}, False),
        ):
            folders = Folders()
            folders.user({"model": dict(user, apiKey="sk-1", headers={"X-Team": "blue"})})
            write(folders.project_file, {"model": project})
            trust_project(folders)
            loaded = folders.load(overrides=overrides, **environ)
            with self.subTest(user=user, project=project, environ=environ, overrides=overrides):
                self.assertEqual((loaded.model_api_key, loaded.model_headers),
                                 ("sk-1", {"X-Team": "blue"}) if sent else (None, {}))
                self.assertEqual(len(loaded.warnings), 0 if sent else 1)
                self.assertNotIn("sk-1", str(loaded.warnings))

    def test_no_error_repeats_what_may_be_secret(self):
        for name, value in (
            ("model", {"apiKey": ["sk-secret"]}), ("model", {"apiKey": "sk-secret\n"}),
            ("model", {"headers": {"X": ["secret"]}}), ("model", {"headers": {"X": "secret\n"}}),
            ("model", {"url": "http://me:secret@h/v1"}), ("model", {"url": "http://h/v1?k=secret"}),
            ("mcp", {"a": {"command": "x", "args": "--key secret"}}),
            ("mcp", {"a": {"command": "x", "env": {"K": ["secret"]}}}),
            ("agents", {"a": {"command": "x", "env": "secret"}}), ("model", {"extra": "secret"}),
            ("apiKey", "secret"),
        ):
            folders = Folders()
            folders.user({name: value})
            with self.subTest(name=name, value=value), self.assertRaises(UserError) as caught:
                folders.load()
            self.assertNotIn("secret", str(caught.exception))


def valid(value, shape) -> bool:
    """Whether a JSON Schema admits the value, by the words that mm's schema uses; as a validator in Python
    does it.
    """
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
             "number": (int, float)}
    kind = shape.get("type")
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if kind and (not isinstance(value, kinds[kind]) or kind in ("integer", "number")
                 and isinstance(value, bool)):
        return False
    rules = [shape.get("const", value) is value, value in shape.get("enum", [value]),
             not ("not" in shape and valid(value, shape["not"])),
             "anyOf" not in shape or any(valid(value, branch) for branch in shape["anyOf"])]
    if isinstance(value, str):
        rules += [shape.get("minLength", 0) <= len(value) <= shape.get("maxLength", 1 << 30),
                  bool(re.search(shape.get("pattern", ""), value))]
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        rules += [shape.get("minimum", value) <= value <= shape.get("maximum", value)]
    elif isinstance(value, list):
        rules += [len(value) >= shape.get("minItems", 0),
                  all(valid(item, shape.get("items", {})) for item in value)]
    elif isinstance(value, dict):
        others = shape.get("additionalProperties", {})
        rules += [all(name in value for name in shape.get("required", ())),
                  all(valid(name, shape.get("propertyNames", {})) for name in value)]
        rules += [valid(item, shape["properties"][name]) if name in shape.get("properties", {})
                  else others is not False and valid(item, others)
                  for name, item in value.items()]
    return all(rules)


_TRUST = {NO: "ignored", ANY: "taken", ONLY_FALSE: "only `false`", ONLY_ADD: "added to the user's",
          ONLY_LOWER: "only below the user's", ONLY_INSIDE: "only inside the folder"}


def table() -> str:
    """The keys as a Markdown table, for docs/configuration.md."""
    lines = ["| Key | Default | Allowed | In an untrusted folder | Meaning |", "|---|---|---|---|---|"]
    for key in KEYS:
        name = key.name + ("." + key.entries if key.entries else "")
        default = key.shown or ("unset" if key.default is None else "`%s`" % json.dumps(key.default))
        cells = ["`%s`" % name, default, schema.allowed(key.shape), _TRUST[key.trust], key.meaning]
        lines.append("| %s |" % " | ".join(cell.replace("|", "\\|") for cell in cells))
    return "\n".join(lines) + "\n"


class TheSchema(unittest.TestCase):
    def test_it_and_mm_agree_in_every_corner(self):
        """As JSON, since 1.0 and 1 are the same there."""
        texts = ['"a"', '"a\\n"', '"\\u0000"', '"a\\u0000"', '"\\ud800"', '""', "1", "1.0", "1e0", "1.5", "0",
                 "-0.0", "1e3", "true", "false", "null", "[]", '["a\\n"]', '["\\u0000"]', "{}", '{"a": "b"}',
                 '{"a\\n": "b"}', '{"\\u0000": "b"}', '{"model": 1}', '{"a": {"command": "x"}}',
                 '{"a": {"command": "x\\u0000"}}', '{"a": {"command": ["x", ""]}}',
                 '{"a\\n": {"command": "x"}}', '{"a": {"command": "x", "args": ["\\u0000"]}}',
                 '{"a": {"command": "x", "env": {"A": "\\u0000"}}}', '{"a": {"command": "x", "env": {"A\\n": '
                                                                     '""}}}',
                 '{"a": {"command": "x", "extensions": [".py\\n"]}}', '{"a": {"command": "x", "timeout": '
                                                                      '1e300}}',
                 '{"preToolCall": [{"command": "x", "match": "a\\n"}]}',
                 '"http://h/v1"', '"http://h/v1\\n"', '"#"', '["bash\\n"]', '["mcp__a\\n"]', '["bash"]']
        shape = schema.config_schema()
        for key in KEYS:
            for text in texts:
                *groups, last = key.name.split(".")
                document = "".join('{"%s": ' % group for group in groups) + '{"%s": %s}' % (last,
                                                                                            text) + "}" * len(groups)
                with self.subTest(document):
                    try:
                        schema.check_document(config_file.parse(document.encode(), "f"), "f", regexes=False)
                        taken = True
                    except UserError:
                        taken = False
                    self.assertEqual(taken, valid(json.loads(document), shape))


class Hostile(unittest.TestCase):
    """Files that are none, in the project's folder. Each is one line, at once."""

    def test_what_is_not_a_file_or_too_large(self):
        def folder(path):
            os.makedirs(path)

        def loop(path):
            os.symlink(path, path)

        def large(path):
            write(path, b" " * (MAX_BYTES + 1))

        for make, named in ((os.mkfifo, "is not a regular file"), (folder, "is not a regular file"),
                            (loop, "symbolic links"), (large, "is larger than 1024 KiB")):
            folders = Folders()
            os.makedirs(os.path.dirname(folders.project_file))
            make(folders.project_file)
            started = time.monotonic()
            with self.subTest(make=make), self.assertRaises(UserError) as caught:
                folders.load()
            self.assertIn(folders.project_file, str(caught.exception))
            self.assertIn(named, str(caught.exception))
            self.assertEqual(caught.exception.exit_code, 2)
            self.assertLess(time.monotonic() - started, 2)

    def test_a_link_to_nothing_is_no_file(self):
        folders = Folders()
        os.makedirs(os.path.dirname(folders.project_file))
        os.symlink("nowhere", folders.project_file)
        self.assertEqual(folders.load().files[1], (folders.project_file, "not there"))

    def test_a_named_file_ignores_a_broken_project_file(self):
        folders = Folders()
        os.makedirs(os.path.dirname(folders.project_file))
        os.mkfifo(folders.project_file)
        self.assertEqual(folders.load(write(folders.home + "/own.json", {"maxSteps": 3})).max_steps, 3)

    @unittest.skipIf(os.geteuid() == 0, "root reads everything")
    def test_a_file_without_permission_is_one_line(self):
        folders = Folders()
        os.chmod(folders.user({}), 0)
        with self.assertRaisesRegex(UserError, "Permission denied"):
            folders.load()

    def test_regular_expressions_are_compiled_only_once_trusted(self):
        # Compiling can take seconds, and an untrusted hook is not run anyway.
        folders = Folders()
        write(folders.project_file, {"hooks": {"preToolCall": [{"command": "x", "match": "("}]}})
        self.assertEqual(folders.load().hooks, {})
        with self.assertRaisesRegex(UserError, r"hooks.preToolCall\[0\].match: got \"\(\", which is not a "
                                               r"regular expression"):
            trust_project(folders)


class Places(unittest.TestCase):
    def test_where_files_live(self):
        for environ, platform, expected in (
            ({"HOME": "/home/me"}, "linux", ("/home/me/.config/mm", "/home/me/.local/state/mm")),
            ({"HOME": "/home/me", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}, "linux",
             ("/c/mm", "/s/mm")),
            ({"HOME": "/home/me", "XDG_CONFIG_HOME": "c", "XDG_STATE_HOME": "s"}, "darwin",
             ("/home/me/.config/mm", "/home/me/.local/state/mm")),
            ({"APPDATA": "C:\\Roaming", "LOCALAPPDATA": "C:\\Local", "XDG_CONFIG_HOME": "/c"}, "win32",
             (os.path.join("C:\\Roaming", "mm"), os.path.join("C:\\Local", "mm"))),
        ):
            self.assertEqual((places.config_folder(environ, platform),
                              places.state_folder(environ, platform)), expected)

    def test_without_home_the_accounts_is_used(self):
        for environ in ({}, {"HOME": ""}, {"HOME": "relative"}):
            folder = places.config_folder(environ)
            self.assertTrue(folder is None or os.path.isabs(folder))

    def test_a_home_is_put_for_the_tilde_alone(self):
        environ = {"HOME": "/home/me"}
        for path, expected in (("~", "/home/me"), ("~/a", "/home/me/a"), ("~b/a", "~b/a"), ("/a/~", "/a/~"),
                               ("a", "a")):
            self.assertEqual(places.expand(path, environ), expected)

    def test_it_starts_without_any_variable(self):
        script = "from mm.config import config; print(config.load('/', {}).max_steps)"
        done = subprocess.run([sys.executable, "-c", script], cwd=support.PROJECT, env={},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)


class OneDefinition(unittest.TestCase):
    def test_the_schema_describes_every_key(self):
        root = schema.config_schema()
        self.assertEqual(root["$schema"], "https://json-schema.org/draft/2020-12/schema")
        for key in KEYS:
            place = root
            for part in key.name.split("."):
                self.assertIs(place["additionalProperties"], False)
                place = place["properties"][part]
            self.assertEqual(place["description"], key.meaning)
            self.assertEqual(place.get("default"), key.default)
            if key.default is not None:
                schema.check_value(key.default, key.shape, key.name, "default")
        json.dumps(root)

    def test_the_documentation_has_the_table(self):
        with open(os.path.join(support.PROJECT, "docs", "configuration.md"), encoding="utf-8") as file:
            text = file.read()
        example = re.search(r"```json\n(.*?)```", text, re.DOTALL)[1]
        schema.check_document(config_file.parse(example.encode(), "the example"), "the example")
        self.assertIn("\n" + table(), text)
        for variable in list(config.VARIABLES) + ["MM_CONFIG"]:
            self.assertIn("`%s`" % variable, text)

    def test_what_no_file_needs_is_not_imported(self):
        script = """
import sys, os
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
from mm.config import config
config.load("/nonexistent", {"HOME": "/nonexistent"}, None, {"yolo": False})
print(" ".join(sorted(set(sys.modules) - before)))
"""
        done = subprocess.run([sys.executable, "-I", "-S", "-c", script, support.PROJECT],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        own = [name for name in done.stdout.decode().split() if name.split(".")[0] == "mm"]
        self.assertEqual(own, ["mm", "mm.config", "mm.config.config", "mm.config.keys", "mm.config.places",
                               "mm.errors"])


if __name__ == "__main__":
    unittest.main()
