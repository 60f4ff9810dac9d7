"""Which skills a session has: the folders, their order, trust, odd and hostile files; and what is said of
them.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import unittest

from mm.skills import catalogue, invocation
from mm.skills.catalogue import Skill
from tests import support
from tests.skills.folders import PLACES, SkillsTest

IN_ORDER = ("dirs", "project", "project agents", "project claude", "user", "user agents", "user claude")
UNTRUSTED_ORDER = ("dirs", "user", "user agents", "user claude", "project", "project agents",
                   "project claude")


def skipped(reason):
    return catalogue.SKIPPED % ("%s", reason)


class Order(SkillsTest):
    def setUp(self):
        super().setUp()
        PLACES["dirs"] = "elsewhere"
        self.addCleanup(PLACES.pop, "dirs")
        self.configure("user", skills={"dirs": [self.path("elsewhere")]})

    def check(self, order):
        for place in order:
            self.skill(place)
        for index, place in enumerate(order):
            self.assertEqual(self.winner(), place)
            shutil.rmtree(self.path(PLACES[place]))
        self.assertEqual(self.winner(), None)

    def test_in_a_trusted_folder(self):
        self.trust()
        self.check(IN_ORDER)

    def test_in_an_untrusted_folder(self):
        self.check(UNTRUSTED_ORDER)

    def test_a_changed_file_makes_the_folder_untrusted_again(self):
        self.trust()
        self.put("project/.mm/config.json", '{"maxSteps": 3}')
        self.check(UNTRUSTED_ORDER)

    def test_the_bundled_one_in_a_trusted_folder(self):
        self.skill("project", "bg-jobs")
        self.trust()
        self.assertEqual(self.winner("bg-jobs"), "project")

    def test_the_bundled_one_comes_before_an_untrusted_folders(self):
        path = self.skill("project", "bg-jobs")
        self.assertEqual(self.winner("bg-jobs"), "bundled")
        self.assertEqual(self.find()[1], ('skill "bg-jobs": %s is not used, the bundled one comes first'
                                          % path,))

    def test_the_users_own_replaces_the_bundled_one(self):
        self.skill("user", "bg-jobs")
        self.assertEqual(self.winner("bg-jobs"), "user")
        self.assertRegex(self.find()[1][0], 'skill "bg-jobs": .*bg-jobs.SKILL.md is not used, .*/home/')

    def test_what_another_hides_is_told(self):
        first, second = self.skill("user"), self.skill("project")
        self.assertEqual(self.find()[1], ('skill "greetings": %s is not used, %s comes first'
                                          % (second, first),))

    def test_sorted_by_name_wherever_they_are(self):
        for place, name in (("project", "c"), ("user", "a"), ("dirs", "d"), ("user claude", "b")):
            self.skill(place, name)
        skills = catalogue.find(self.project, self.config(), self.environ).skills
        self.assertEqual([skill.name for skill in skills], ["a", "b", "bg-jobs", "c", "d"])

    def test_a_projects_own_folders_come_last(self):
        self.configure("project", skills={"dirs": ["tools", self.path("elsewhere")]})
        self.skill("project/tools")
        self.skill("project")
        self.assertEqual(self.winner(), "project/tools")
        self.skill("user claude")
        self.assertEqual(self.winner(), "user claude")

    def test_a_trusted_projects_folders_replace_the_users(self):
        self.skill("dirs")
        self.skill("project/tools", description="tools")
        self.configure("project", skills={"dirs": ["tools"]})
        self.trust()
        self.assertEqual(self.winner(), "tools")

    def test_a_users_relative_folder(self):
        self.configure("user", skills={"dirs": ["tools", "~/mine"]})
        self.skill("home/mine")
        self.skill("project/tools", "other")
        self.assertEqual(set(self.find()[0]), {"greetings", "other"})

    def test_without_the_tool_there_are_none(self):
        self.skill("user")
        self.configure("user", tools={"disabled": ["read_skill"]})
        self.assertEqual(catalogue.find(self.project, self.config(), self.environ), catalogue.Found())


class SessionsFolder(SkillsTest):
    """A session may be in another folder than mm was started in, and below the root of its repository."""

    def setUp(self):
        super().setUp()
        self.other = self.path("other")
        self.inner = self.path("other/inner")
        os.makedirs(os.path.join(self.other, ".git"))
        os.makedirs(self.inner)
        self.trust()

    def test_the_start_folders_trust_is_not_the_sessions(self):
        self.skill("other/.mm/skills")
        self.skill("user")
        self.assertEqual(self.winner(cwd=self.other), "user")

    def test_a_sessions_folder_has_trust_of_its_own(self):
        self.skill("other/.mm/skills")
        self.skill("user")
        self.trust(self.other)
        self.assertEqual(self.winner(cwd=self.other), "other/.mm/skills")
        self.put("other/.mm/config.json", '{"yolo": false}')
        self.assertEqual(self.winner(cwd=self.other), "user")

    def test_an_unreadable_file_gives_no_trust(self):
        self.skill("other/.mm/skills")
        self.skill("user")
        os.mkfifo(self.path("other/.mm/config.json"))
        self.assertEqual(self.winner(cwd=self.other), "user")

    def test_the_same_folder_by_another_name(self):
        self.skill("project")
        self.skill("user")
        os.symlink(self.project, self.path("link"))
        self.assertEqual(self.winner(cwd=self.path("link")), "project")

    def test_the_nearest_parent_comes_first(self):
        places = ("other/inner/.mm/skills", "other/inner/.agents/skills", "other/.mm/skills",
                  "other/.agents/skills", "other/inner/.claude/skills")
        for place in places:
            self.skill(place)
        self.skill(".mm/skills", "outside")
        self.skill("other/.claude/skills", "not-the-parents-claude")
        for place in places:
            self.assertEqual(set(self.find(self.inner)[0]), {"greetings"})
            self.assertEqual(self.winner(cwd=self.inner), place)
            shutil.rmtree(self.path(place))

    def test_outside_of_a_repository_only_the_folder_itself(self):
        os.rmdir(os.path.join(self.other, ".git"))
        self.skill("other/.mm/skills")
        self.assertEqual(self.winner(cwd=self.inner), None)

    def test_a_parents_skill_needs_the_parents_trust_too(self):
        self.skill("other/.mm/skills", "a")
        self.skill("other/inner/.mm/skills", "b")
        for name in "ab":
            self.skill("user", name)
        self.assertEqual([self.winner(name, cwd=self.inner) for name in "ab"], ["user", "user"])
        self.trust(self.other)
        self.assertEqual([self.winner(name, cwd=self.inner) for name in "ab"], ["user", "user"])
        self.trust(self.inner)
        self.assertEqual([self.winner(name, cwd=self.inner) for name in "ab"],
                         ["other/.mm/skills", "other/inner/.mm/skills"])

    def test_in_the_home_folder(self):
        self.skill("user agents", description="mine")
        self.skill("home/.mm/skills", description="untrusted")
        self.assertEqual(self.winner(cwd=self.home, start=self.home), "mine")

    def test_additions_stay_last_in_another_session(self):
        start = self.path("start")
        self.put("start/.mm/config.json", json.dumps({"skills": {"dirs": ["tools"]}}))
        self.skill("start/tools", "a")
        self.skill("start/tools", "b")
        self.skill("user", "a")
        self.trust(self.other)
        found, _ = self.find(self.other, start)
        self.assertEqual((found["a"].description, found["b"].description), ("user", "start/tools"))


class Files(SkillsTest):
    """How folders are looked through, and which files are skills."""

    def check(self, names, *warnings):
        found, told = self.find()
        self.assertEqual((sorted(found), told), (sorted(names), warnings))
        return found

    def test_all_that_is_known_of_one(self):
        path = self.put("project/.mm/skills/release/SKILL.md", "---\nname: release\ndescription: >\n  Cut "
                                                               "a\n  release\n"
                        "disable-model-invocation: true\nallowed-tools: Bash(git add:*), Read Grep\n---\nbody")
        self.assertEqual(self.check(["release"])["release"],
                         Skill("release", "Cut a release", os.path.dirname(path), path, False,
                               ("Bash(git add:*)", "Read", "Grep")))

    def test_allowed_tools_as_a_list(self):
        for text in ("[Read, \"Bash(ls)\"]", "\n  - Read\n  - Bash(ls)"):
            self.skill("project", allowed_tools=text)
            self.assertEqual(self.find()[0]["greetings"].allowed_tools, ("Read", "Bash(ls)"))

    def test_unclosed_brackets_take_no_time(self):
        self.skill("project", allowed_tools="a(" * 30_000)
        begin = time.monotonic()
        self.assertEqual(len(self.find()[0]["greetings"].allowed_tools), 30_000)
        # every second of this is one in which no cancel is heard
        self.assertLess(time.monotonic() - begin, 1)

    def test_the_depth(self):
        self.skill("project/.mm/skills/one/two", "three")
        self.skill("project/.mm/skills/a/b/c", "four")
        self.put("project/.mm/skills/SKILL.md", "---\nname: skills\ndescription: not in a folder of its "
                                                "own\n---\n")
        self.check(["three"])

    def test_what_lies_below_a_skill_belongs_to_it(self):
        self.skill("project")
        self.skill("project/.mm/skills/greetings/examples", "example")
        self.check(["greetings"])

    def test_folders_that_are_not_looked_into(self):
        for folder in (".git", ".hidden", "node_modules"):
            self.skill("project/.mm/skills/" + folder, "inside")
        self.check([])

    def test_the_other_spelling_of_the_file(self):
        self.put("project/.mm/skills/lower/skill.md", "---\nname: lower\ndescription: x\n---\n")
        self.put("project/.mm/skills/mixed/Skill.md", "---\nname: mixed\ndescription: x\n---\n")
        self.put("project/.mm/skills/both/SKILL.md", "---\nname: both\ndescription: upper\n---\n")
        self.put("project/.mm/skills/both/skill.md", "---\nname: both\ndescription: lower\n---\n")
        self.assertEqual(self.check(["lower", "both"])["both"].description, "upper")

    def test_the_descriptions_fold_into_one_line(self):
        self.skill("project", description="|\n  Greet\t them\n\n  - other: a skill that is none\x1b[31m\x07")
        self.assertEqual(self.check(["greetings"])["greetings"].description,
                         "Greet them - other: a skill that is none\\x1b[31m\\x07")

    def test_a_long_description_is_cut(self):
        self.skill("project", description="x" * 3000)
        self.assertEqual(self.check(["greetings"])["greetings"].description, "x" * 1024 + "…")

    def test_odd_files(self):
        # (folder, file, the name it gets or None, the warning or None; %s is the file)
        cases = [
            ("tidy", "---\nname: tidy\ndescription: x\n---\n", "tidy", None),
            ("crlf", "\ufeff---\r\nname: crlf\r\ndescription: x: y\r\n---\r\nbody\r\n", "crlf", None),
            ("other", "---\nname: another\ndescription: x\n---\n", "another",
             catalogue.OTHER_FOLDER % ("%s", "another")),
            ("unnamed", "---\ndescription: x\n---\n", "unnamed", catalogue.NO_NAME),
            ("badly-named", "---\nname: Badly Named\ndescription: x\n---\n", "badly-named",
             catalogue.BAD_NAME % ("%s", "Badly Named")),
            ("double", "---\nname: a--b\ndescription: x\n---\n", "double",
             catalogue.BAD_NAME % ("%s", "a--b")),
            ("long", "---\nname: %s\ndescription: x\n---\n" % ("a" * 65), "long",
             catalogue.BAD_NAME % ("%s", "a" * 65)),
            ("longest", "---\nname: %s\ndescription: x\n---\n" % ("a" * 64), "a" * 64,
             catalogue.OTHER_FOLDER % ("%s", "a" * 64)),
            ("a list", "---\nname: [x]\ndescription: x\n---\n", None, skipped(catalogue.NAMELESS)),
            ("Nameless", "---\ndescription: x\n---\n", None, skipped(catalogue.NAMELESS)),
            ("silent", "---\nname: silent\n---\nbody", None, skipped(catalogue.NO_DESCRIPTION)),
            ("blank", "---\nname: blank\ndescription: '  '\n---\nbody", None,
             skipped(catalogue.NO_DESCRIPTION)),
            ("empty-matter", "---\n---\nbody", None, (catalogue.NO_NAME, skipped(catalogue.NO_DESCRIPTION))),
            ("no-matter", "# A skill\n", None, skipped(catalogue.NO_FRONT_MATTER)),
            ("empty", "", None, skipped(catalogue.NO_FRONT_MATTER)),
            ("open", "---\nname: open\ndescription: x\n", None, skipped(catalogue.NOT_CLOSED)),
            ("endless", "---\nname: endless\ndescription: x\n" + "# comment\n" * 10000 + "---\n", None,
             skipped(catalogue.NOT_CLOSED)),
            ("list", "---\nname: list\ndescription:\n  - one\n  - two\n---\n", "list", None),
            ("map", "---\nname: map\ndescription:\n  when: always\n---\n", "map", None),
            ("latin", b"---\nname: latin\ndescription: caf\xe9\n---\n", "latin", None),
            ("binary", b"\x00\xff\xfe---", None, skipped(catalogue.NO_FRONT_MATTER)),
        ]
        for folder, content, name, told in cases:
            with self.subTest(folder):
                path = self.put("project/.mm/skills/%s/SKILL.md" % folder, content)
                told = (told,) if isinstance(told, str) else told or ()
                self.check([name] if name else [], *(text % path for text in told))
                shutil.rmtree(self.path("project/.mm"))

    def test_yes_to_disable_model_invocation(self):
        for text, may_call in (("true", False), ("True", False), ("\"true\"", False),
                               ("true # by hand", False), ("'yes'  # x", False), ("# true", True),
                               ("yes", False), ("false", True), ("", True)):
            self.skill("project", disable_model_invocation=text)
            self.assertEqual(self.find()[0]["greetings"].model_may_call, may_call, text)


class WhatIsLeftOut(SkillsTest):
    def test_it_is_reported_once_in_the_terminal(self):
        path = self.put("project/.mm/skills/open/SKILL.md", "---\nname: open\n")
        done = support.run("--demo", "-p", "hello", cwd=self.project, env=support.environment(HOME=self.home))
        self.assertEqual((done.returncode, done.stderr.count(path)), (0, 1), done.stderr)
        self.assertNotIn(path, done.stdout)


class HostileFiles(SkillsTest):
    def test_only_regular_files_are_opened(self):
        pipe, folder = self.path("project/.mm/skills/pipe/SKILL.md"), self.path("project/.mm/skills/folder/SKILL.md")
        os.makedirs(os.path.dirname(pipe))
        os.mkfifo(pipe)
        os.makedirs(folder)
        found, warnings = self.find()
        self.assertEqual(found, {})
        self.assertEqual(warnings, (catalogue.SKIPPED % (folder, "is not a regular file"),
                                    catalogue.SKIPPED % (pipe, "is not a regular file")))

    def test_a_pipe_in_the_place_of_a_folder(self):
        os.makedirs(self.path("project/.mm"))
        os.mkfifo(self.path("project/.mm/skills"))
        self.assertEqual(self.find(), ({}, ()))

    def test_links_in_a_circle(self):
        os.makedirs(self.path("project/.mm/skills/a"))
        os.symlink(self.path("project/.mm/skills"), self.path("project/.mm/skills/a/up"))
        os.symlink("self", self.path("project/.mm/skills/self"))
        self.skill("project")
        self.assertEqual((set(self.find()[0]), self.find()[1]), ({"greetings"}, ()))

    def test_one_skill_by_two_ways_is_one(self):
        self.skill("project agents")
        os.makedirs(self.path("project/.claude/skills"))
        os.symlink("../../.agents/skills/greetings", self.path("project/.claude/skills/greetings"))
        os.makedirs(self.path("home/.agents"))
        os.symlink(self.path("project/.agents/skills"), self.path("home/.agents/skills"))
        self.assertEqual(self.find()[1], ())

    def test_links_out_are_not_followed(self):
        outside = self.skill("secrets", "greetings")
        os.makedirs(self.path("project/.mm/skills/file"))
        os.symlink(outside, self.path("project/.mm/skills/file/SKILL.md"))
        os.symlink(os.path.dirname(outside), self.path("project/.mm/skills/folder"))
        os.makedirs(self.path("project/.agents"))
        os.symlink(self.path("secrets"), self.path("project/.agents/skills"))
        found, warnings = self.find()
        self.assertEqual(found, {})
        self.assertEqual(warnings, tuple(catalogue.LEADS_OUT % (self.path("project/" + path), self.project)
                                         for path in (
            ".mm/skills/file/SKILL.md", ".mm/skills/folder/SKILL.md", ".agents/skills")))
        self.trust()
        self.assertEqual(set(self.find()[0]), {"greetings"})

    def test_links_within_the_repository_are(self):
        os.makedirs(self.path("project/.git"))
        os.makedirs(self.path("project/sub/.mm"))
        self.skill("project/shared")
        os.symlink("../../shared", self.path("project/sub/.mm/skills"))
        self.assertEqual(set(self.find(self.path("project/sub"))[0]), {"greetings"})

    def test_the_users_own_links_are(self):
        self.skill("elsewhere")
        os.makedirs(self.path("home/.agents"))
        os.symlink(self.path("elsewhere"), self.path("home/.agents/skills"))
        self.assertEqual(set(self.find()[0]), {"greetings"})

    def test_a_link_within_an_added_folder(self):
        self.skill("secrets")
        self.configure("project", skills={"dirs": ["tools"]})
        os.makedirs(self.path("project/tools"))
        os.symlink(self.path("secrets/greetings"), self.path("project/tools/greetings"))
        self.assertEqual(self.find()[0], {})

    def test_too_many_skills(self):
        for number in range(210):
            self.skill("project", "s%03d" % number)
        self.skill("user")
        started = time.monotonic()
        found, warnings = self.find()
        self.assertLess(time.monotonic() - started, 2)
        self.assertEqual((len(found), "s198" in found, "s199" in found, "greetings" in found),
                         (200, True, False, True))
        self.assertEqual(warnings, (catalogue.TOO_MANY % (200, self.path("project/.mm/skills/s199/SKILL.md")),
                                    ))
        skills = catalogue.find(self.project, self.config(), self.environ).skills
        self.assertIn("bg-jobs", [skill.name for skill in skills])

    def test_a_tree_that_is_no_folder_of_skills(self):
        root = self.path("project/.mm/skills")
        os.makedirs(root)
        for number in range(20):  # each leads to all of them again
            os.symlink(".", os.path.join(root, str(number)))
        self.skill("user")
        found, warnings = self.find()
        self.assertEqual(warnings, (catalogue.TOO_LARGE % (root, catalogue.ENTRIES_LIMIT),))
        self.assertEqual(set(found), {"greetings"})

    def test_many_warnings_are_counted(self):
        for number in range(50):
            self.put("project/.mm/skills/s%02d/SKILL.md" % number, "nothing")
        warnings = self.find()[1]
        self.assertEqual((len(warnings), warnings[-1]),
                         (catalogue.WARNINGS_LIMIT + 1, catalogue.MORE_WARNINGS % 30))

    def test_names_that_would_write_to_a_terminal(self):
        self.put("project/.mm/skills/a\x1b[31m\nb/SKILL.md", "---\nname: \x1b]0;x\x07\ndescription: x\n---\n")
        (warning,) = self.find()[1]
        self.assertTrue(warning.isprintable(), repr(warning))

    @unittest.skipIf(os.geteuid() == 0, "the superuser may read everything")
    def test_a_folder_that_may_not_be_read(self):
        os.makedirs(self.path("project/.mm/skills"), mode=0)
        self.assertEqual(self.find()[1], (catalogue.NOT_SEARCHED
                                          % (self.path("project/.mm/skills"), "Permission denied"),))


def known(*names, may_call=True, description="What it does"):
    return tuple(Skill(name, description, "/s/" + name, "/s/%s/SKILL.md" % name, may_call, ())
                 for name in names)


SKILLS = known("bg-jobs", "compact", "deploy") + known("secret", may_call=False)
RESERVED = ("new", "compact")

# (what was typed, the skills it names)
MENTIONS = [
    ("$deploy", ["deploy"]),
    ("$deploy to production", ["deploy"]),
    ("please $deploy, then $bg-jobs.", ["deploy", "bg-jobs"]),
    ("one\n$deploy\ttwo", ["deploy"]),
    ("$deploy $deploy", ["deploy"]),
    ("use $secret!", ["secret"]),
    ("$compact it", ["compact"]),
    ("(see $deploy)?", ["deploy"]),
    ("is it $deploy…", ["deploy"]),
    ("", []),
    ("deploy", []),
    ("echo $PATH $HOME $unknown", []),
    ("a$deploy", []),
    ("($deploy)", []),
    ("\"$deploy\"", []),
    ("$deploy/bin", []),
    ("$deploy=1", []),
    ("$deploy.sh", []),
    ("$deployment", []),
    ("$deploy-all", []),
    ("$deploy_all", []),
    ("$Deploy", []),
    ("$$deploy", []),
    ("${deploy}", []),
    ("$ deploy", []),
    ("/deploy", []),
]

# (what was typed, what it becomes)
COMMANDS = [
    ("/deploy", "$deploy"),
    ("/deploy to production", "$deploy to production"),
    ("/deploy\nnow", "$deploy\nnow"),
    ("  /deploy now", "  $deploy now"),
    ("/secret", "$secret"),
    ("/compact", "/compact"),
    ("/compact now", "/compact now"),
    ("/unknown x", "/unknown x"),
    ("/deployment", "/deployment"),
    ("/deploy/x", "/deploy/x"),
    ("/deploy.", "/deploy."),
    ("go /deploy", "go /deploy"),
    ("//deploy", "//deploy"),
    ("/", "/"),
    ("", ""),
]


class Texts(unittest.TestCase):
    def test_the_catalogue_in_the_system_prompt(self):
        skills = known("a", description="One: two") + known("b", may_call=False) + known("c",
                                                                                         description="x" * 400)
        self.assertEqual(invocation.prompt_section(skills),
                         "\n\n" + invocation.INTRODUCTION + "\n- a: One: two\n- c: " + "x" * 300 + "…")

    def test_no_catalogue_where_the_model_may_choose_none(self):
        self.assertEqual([invocation.prompt_section(()),
                          invocation.prompt_section(known("a", may_call=False))], ["", ""])

    def test_mentions(self):
        for text, names in MENTIONS:
            with self.subTest(text):
                lines = ['[use the skill "%s" for this: call read_skill first]' % name for name in names]
                self.assertEqual(invocation.with_uses(text, SKILLS), "\n".join([text] + lines))

    def test_commands_become_mentions(self):
        for text, becomes in COMMANDS:
            with self.subTest(text):
                self.assertEqual(invocation.without_slash(text, SKILLS, RESERVED), becomes)

    def test_what_the_editor_lists(self):
        hint = "parameters, if this skill needs any"
        self.assertEqual(invocation.commands(SKILLS, RESERVED),
                         [(name, "What it does", hint) for name in ("bg-jobs", "deploy", "secret")])
        self.assertEqual(invocation.hidden(SKILLS, RESERVED), ['skill "compact" is hidden by the command of '
                                                               'that name'])

    def test_the_editors_list_fits_into_a_line(self):
        for sign in "x\"é漢😀":
            with self.subTest(sign):
                skills = known(*("%s-%03d" % ("n" * 60, number) for number in range(200)),
                               description=sign * 1024)
                listed = invocation.commands(skills, RESERVED)
                commands = [{"name": name, "description": description, "input": {"hint": hint}} for name,
                            description, hint in listed]
                self.assertLess(len(json.dumps(commands, ensure_ascii=False, separators=(",", ":")).encode()),
                                62 * 1024)
                self.assertTrue(all(description.startswith(sign * 20) for _, description, _ in listed))

    def test_a_few_long_descriptions_stay_whole(self):
        self.assertEqual(invocation.commands(known("a", "b", description="x" * 1024), ())[1][1], "x" * 1024)


if __name__ == "__main__":
    unittest.main()
