"""Trust: what an untrusted folder's configuration may change, and how a folder becomes trusted."""

from __future__ import annotations

import json
import os
import stat
import unittest

from mm import safe_files
from mm.config import config, places, trust
from mm.errors import UserError
from mm.config.keys import ANY, BY_NAME, KEYS, NO
from tests.test_config import VALUES, Folders, nested, trust_project, write

# The user's file, the project's, what comes of it by attribute, and the keys that the warning names.
RULES = (
    ({}, {"yolo": False}, {"yolo": False}, []),
    ({"yolo": False}, {"yolo": True}, {"yolo": False}, ["yolo"]),
    ({}, {"tools": {"disabled": ["bash"]}}, {"tools_disabled": ("bash",)}, []),
    ({"tools": {"disabled": ["bash"]}}, {"tools": {"disabled": ["plan"]}},
     {"tools_disabled": ("bash", "plan")}, []),
    ({"tools": {"disabled": ["bash"]}}, {"tools": {"disabled": []}}, {"tools_disabled": ("bash",)}, []),
    ({}, {"acp": {"name": "otto", "title": "", "thoughts": False}},
     {"acp_name": "otto", "acp_title": "", "acp_thoughts": False}, []),
    ({}, {"context": {"threshold": 0.5, "keepLastTurns": 9, "reserve": 1}},
     {"context_threshold": 0.5, "context_keep_last_turns": 9, "context_reserve": 1}, []),
    ({}, {"sessions": {"enabled": True, "dir": "talks"}}, {"sessions_enabled": True, "sessions_dir": "talks"},
     []),
    ({}, {"sessions": {"enabled": True, "dir": "../talks"}},
     {"sessions_enabled": True, "sessions_dir": ".mm/sessions"}, ["sessions.dir"]),
    ({}, {"sessions": {"dir": "a/../../talks"}}, {"sessions_dir": ".mm/sessions"}, ["sessions.dir"]),
    ({}, {"sessions": {"dir": "/tmp"}}, {"sessions_dir": ".mm/sessions"}, ["sessions.dir"]),
    ({}, {"sessions": {"dir": "~/talks"}}, {"sessions_dir": ".mm/sessions"}, ["sessions.dir"]),
    ({}, {"maxSteps": 99}, {"max_steps": 99}, []),
    ({}, {"maxSteps": 101}, {"max_steps": 100}, ["maxSteps"]),
    ({}, {"maxSteps": 0}, {"max_steps": 100}, ["maxSteps"]),
    ({"maxSteps": 0}, {"maxSteps": 1000}, {"max_steps": 1000}, []),
    ({"maxSteps": 5}, {"maxSteps": 6}, {"max_steps": 5}, ["maxSteps"]),
    ({}, {"model": {"maxReasoning": 0}}, {"model_max_reasoning": 24000}, ["model.maxReasoning"]),
    ({}, {"model": {"maxReasoning": 10}}, {"model_max_reasoning": 10}, []),
    ({}, {"model": {"maxTokens": 10}}, {"model_max_tokens": 10}, []),
    ({"model": {"maxTokens": 9}}, {"model": {"maxTokens": 10}}, {"model_max_tokens": 9}, ["model.maxTokens"]),
    ({}, {"bash": {"timeout": 10, "maxTimeout": 20, "maxOutput": 300}},
     {"bash_timeout": 10, "bash_max_timeout": 20, "bash_max_output": 300}, []),
    ({}, {"bash": {"maxTimeout": 601, "shell": "/tmp/evil"}}, {"bash_max_timeout": 600, "bash_shell": "bash"},
     ["bash.maxTimeout", "bash.shell"]),
    ({}, {"askAgent": {"maxDepth": 3, "idleTimeout": 1}},
     {"ask_agent_max_depth": 2, "ask_agent_idle_timeout": 1}, ["askAgent.maxDepth"]),
    ({}, {"loop": {"enabled": False, "repeats": 2}}, {"loop_enabled": True, "loop_repeats": 2},
     ["loop.enabled"]),
    ({}, {"model": {"url": "http://evil/v1", "apiKey": "$HOME", "extra": {"a": 1}, "temperature": 1}},
     {"model_url": None, "model_api_key": None, "model_extra": {}, "model_temperature": None},
     ["model.url", "model.apiKey", "model.temperature", "model.extra"]),
    ({}, {"mcp": {"a": {"command": "x"}}, "agents": {"a": {"command": "x"}}, "lsp": False,
          "fetch": {"allowPrivate": True}},
     {"mcp": {}, "agents": {}, "lsp": {}, "fetch_allow_private": False},
     ["mcp", "agents", "lsp", "fetch.allowPrivate"]),
    ({}, {"mcp": {}, "hooks": {}, "agents": {}}, {"mcp": {}, "hooks": {}}, []),
)


class Untrusted(unittest.TestCase):
    def test_the_rules_for_an_untrusted_file(self):
        for user, project, expected, ignored in RULES:
            folders = Folders()
            folders.user(user)
            write(folders.project_file, project)
            loaded = folders.load()
            with self.subTest(project=project):
                self.assertFalse(loaded.trusted)
                self.assertEqual({name: getattr(loaded, name) for name in expected}, expected)
                self.assertEqual(len(loaded.warnings), 1 if ignored else 0)
                if ignored:
                    named = loaded.warnings[0].partition("ignored: ")[2].partition(" (mm --trust")[0].split(", ")
                    self.assertEqual(sorted(named), sorted(ignored))
                    self.assertTrue(loaded.warnings[0].startswith(folders.project_file + " is not trusted"))

    def test_keys_without_a_rule_are_ignored(self):
        free = {key.name for key in KEYS if key.trust == ANY}
        self.assertEqual(free, {"acp.name", "acp.title", "acp.thoughts", "sessions.enabled",
                                "context.threshold", "context.keepLastTurns", "context.reserve"})
        for name in (key.name for key in KEYS if key.trust == NO):
            folders = Folders()
            write(folders.project_file, nested(name, VALUES[name][0]))
            default = BY_NAME[name].default
            loaded = folders.load()
            self.assertEqual(getattr(loaded, config.attribute(name)), default)
            self.assertIn(name, loaded.warnings[0])

    def test_environment_and_command_line_win(self):
        folders = Folders()
        write(folders.project_file, {"yolo": False})
        self.assertTrue(folders.load(MM_YOLO="1").yolo)
        self.assertTrue(folders.load(overrides={"yolo": True}).yolo)

    def test_hooks_that_wait_are_said_to_wait(self):
        folders = Folders()
        write(folders.project_file, {"hooks": {"preToolCall": [{"command": "./guard.sh"}]}})
        loaded = folders.load()
        self.assertEqual((loaded.hooks, loaded.hooks_wait), ({}, True))
        self.assertEqual(loaded.warnings, ("⚠️ the hooks of this folder are not trusted and do not run: mm "
                                           "--trust",))
        trust_project(folders)
        loaded = folders.load()
        self.assertEqual((len(loaded.hooks["preToolCall"]), loaded.hooks_wait, loaded.warnings),
                         (1, False, ()))
        self.assertEqual(loaded.hooks["preToolCall"][0].folder, os.path.dirname(folders.project_file))

    def test_skill_folders_stay_inside_and_come_last(self):
        folders = Folders()
        outside = os.path.join(folders.home, "outside")
        os.makedirs(outside)
        os.makedirs(os.path.join(folders.project, "skills"))
        os.symlink(outside, os.path.join(folders.project, "link"))
        os.symlink("skills", os.path.join(folders.project, "inner"))
        folders.user({"skills": {"dirs": ["~/own"]}})
        write(folders.project_file, {"skills": {"dirs": ["skills", "inner", "link", "link/deeper", "../x",
                                                         "/etc", "~/x", "."]}})
        loaded = folders.load()
        project = os.path.realpath(folders.project)
        self.assertEqual(loaded.skills_dirs, (folders.home + "/own", project + "/skills", project + "/skills",
                                              project))
        self.assertIn("ignored: skills.dirs", loaded.warnings[0])

    def test_a_link_out_turns_sessions_off(self):
        for user, project in (({"sessions": {"enabled": True}}, None), ({}, {"sessions": {"enabled": True}}),
                              ({}, {"sessions": {"enabled": True, "dir": ".mm/sessions/deeper"}})):
            folders = Folders()
            folders.user(user)
            os.makedirs(os.path.join(folders.project, ".mm"))
            os.symlink(folders.home, os.path.join(folders.project, ".mm", "sessions"))
            if project:
                write(folders.project_file, project)
            loaded = folders.load()
            self.assertFalse(loaded.sessions_enabled)
            self.assertEqual(len(loaded.warnings), 1)
            self.assertIn("sessions are off: a link leads .mm/sessions", loaded.warnings[0])

    def test_a_configuration_behind_a_link_out(self):
        for content in ({"maxSteps": 5}, "root:x:0:0", "/dev/zero"):
            with self.subTest(content):
                folders = Folders()
                other = content if content == "/dev/zero" else write(os.path.join(folders.home, "other.json"),
                                                                     content)
                os.makedirs(os.path.dirname(folders.project_file))
                os.symlink(other, folders.project_file)
                loaded = folders.load()
                self.assertEqual((loaded.max_steps, loaded.trusted, loaded.warnings),
                                 (100, False, ("%s is not read: a link leads out of the folder"
                                               % folders.project_file,)))
                if isinstance(content, dict):
                    trust_project(folders)
                    self.assertEqual(folders.load().max_steps, 5)

    def test_harmless_links_leave_sessions_on(self):
        folders = Folders()
        os.makedirs(os.path.join(folders.project, "store"))
        os.makedirs(os.path.join(folders.project, ".mm"))
        os.symlink("../store", os.path.join(folders.project, ".mm", "sessions"))
        folders.user({"sessions": {"enabled": True}})
        self.assertTrue(folders.load().sessions_enabled)
        folders.user({"sessions": {"enabled": True, "dir": "~/talks"}})
        self.assertTrue(folders.load().sessions_enabled)


class Trusting(unittest.TestCase):
    def setUp(self):
        self.folders = Folders()
        self.records = os.path.join(self.folders.home, ".local", "state", "mm", "trusted")

    def test_a_trusted_file_is_taken_whole(self):
        write(self.folders.project_file, {"maxSteps": 500, "bash": {"shell": "zsh"}, "yolo": True})
        self.folders.user({"yolo": False})
        self.assertIn(self.folders.project_file, trust_project(self.folders))
        loaded = self.folders.load()
        self.assertEqual((loaded.max_steps, loaded.bash_shell, loaded.yolo, loaded.trusted, loaded.warnings),
                         (500, "zsh", True, True, ()))

    def test_a_changed_file_asks_again(self):
        write(self.folders.project_file, {"maxSteps": 500})
        trust_project(self.folders)
        write(self.folders.project_file, {"maxSteps": 501})
        loaded = self.folders.load()
        self.assertEqual((loaded.max_steps, loaded.trusted), (100, False))
        self.assertIn("has changed since it was trusted, ignored: maxSteps", loaded.warnings[0])
        trust_project(self.folders)
        self.assertEqual(self.folders.load().max_steps, 501)

    def test_a_folder_without_a_file_until_one_appears(self):
        project, environ = self.folders.project, self.folders.environ
        self.assertFalse(self.folders.load().trusts(project, environ))
        self.assertEqual(trust_project(self.folders),
                         "trusted: %s, as long as it has no %s" % (project, places.PROJECT_FILE))
        loaded = self.folders.load()
        self.assertTrue(loaded.trusts(project, environ))
        write(self.folders.project_file, {"maxSteps": 500})
        self.assertFalse(loaded.trusts(project, environ))
        later = self.folders.load()
        self.assertEqual((later.trusts(project, environ), later.max_steps), (False, 100))
        self.assertIn("has changed since it was trusted, ignored: maxSteps", later.warnings[0])
        os.remove(self.folders.project_file)
        self.assertTrue(self.folders.load().trusts(project, environ))

    def test_trust_belongs_to_the_real_folder(self):
        write(self.folders.project_file, {"maxSteps": 500})
        trust_project(self.folders)
        link = os.path.join(self.folders.home, "link")
        os.symlink(self.folders.project, link)
        self.assertTrue(config.load(link, self.folders.environ).trusted)
        twin = os.path.join(self.folders.home, "twin")
        write(os.path.join(twin, ".mm", "config.json"), {"maxSteps": 500})
        self.assertFalse(config.load(twin, self.folders.environ).trusted)

    def test_the_record_is_the_user_s_alone(self):
        write(self.folders.project_file, {})
        trust_project(self.folders)
        trust_project(self.folders)
        (name,) = os.listdir(self.records)
        path = os.path.join(self.records, name)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.records).st_mode), 0o700)
        with open(path) as file:
            self.assertEqual(json.load(file)["folder"], os.path.realpath(self.folders.project))

    def test_a_damaged_record_trusts_nothing(self):
        write(self.folders.project_file, {"maxSteps": 500})
        trust_project(self.folders)
        (name,) = os.listdir(self.records)
        for content in ("", "{", "[]", "{}", "{\"folder\": 1, \"sha256\": null}"):
            write(os.path.join(self.records, name), content)
            self.assertEqual(self.folders.load().max_steps, 100)
        os.unlink(os.path.join(self.records, name))
        os.mkfifo(os.path.join(self.records, name))
        self.assertEqual(self.folders.load().max_steps, 100)
        trust_project(self.folders)
        self.assertEqual(self.folders.load().max_steps, 500)

    def test_a_record_speaks_for_its_folder_alone(self):
        twin = os.path.join(self.folders.home, "twin")
        for folder in (self.folders.project, twin):
            write(os.path.join(folder, ".mm", "config.json"), {"maxSteps": 500})
            trust.trust(folder, self.folders.environ)
        one, two = (os.path.join(self.records, name) for name in os.listdir(self.records))
        os.replace(one, one + ".kept")
        os.replace(two, one)
        os.replace(one + ".kept", two)
        self.assertFalse(self.folders.load().trusted)

    def test_what_cannot_be_trusted_says_why(self):
        write(self.folders.project_file, "{")
        with self.assertRaisesRegex(UserError, "line 1, column 2"):
            trust_project(self.folders)
        write(self.folders.project_file, {})
        write(os.path.join(self.folders.home, ".local"), "a file where a folder should be")
        with self.assertRaisesRegex(UserError, "Not a directory|File exists"):
            trust_project(self.folders)

    def test_trust_with_a_named_file(self):
        write(self.folders.project_file, {"maxSteps": 500})
        named = write(os.path.join(self.folders.home, "own.json"), {})
        self.assertFalse(self.folders.load(named).trusted)
        trust_project(self.folders)
        loaded = self.folders.load(named)
        self.assertEqual((loaded.trusted, loaded.max_steps), (True, 100))

    def test_inside_is_inside(self):
        folder = self.folders.project
        for path, expected in (("a", True), (".", True), ("a/../b", True), ("..", False),
                               ("../project", True),
                             ("../project-twin", False), (folder + "/a", True), (folder + "-twin", False),
                               ("/", False),
                             ("~", False)):
            self.assertEqual((safe_files.is_inside(folder, path), safe_files.names_inside(folder, path)),
                             (expected, expected), path)


if __name__ == "__main__":
    unittest.main()
