"""read_skill: what the model reads of a skill, once, and what it is told of the names."""

from __future__ import annotations

import os
import unittest

from mm import events
from mm.skills import catalogue
from mm.tools import registry
from mm.tools.arguments import parse_arguments
from mm.tools.tool import SHOWN, ToolError
from tests.tools.calls import ToolTest

HEAD = "---\nname: greetings\ndescription: Greet somebody\n---\n\n"


class ReadSkill(ToolTest):
    def setUp(self):
        super().setUp()
        self.environ = {"HOME": self.path("home")}
        self.skill("greetings", "# Greetings\n\nSay hello.\n")

    def skill(self, name, body="Do it.\n", more=""):
        return self.put(".mm/skills/%s/SKILL.md" % name, "---\nname: %s\ndescription: Greet "
                                                         "somebody\n%s---\n\n%s" % (name, more, body))

    def tool(self):
        skills = catalogue.find(self.folder, self.context.config, self.environ).skills
        return registry.find(registry.built_in(self.context.config, skills), "read_skill")

    def prepare(self, name, context=None):
        tool = self.tool()
        return tool.prepare(parse_arguments(tool, {"name": name}), context or self.context)

    def result(self, name, context=None):
        return self.prepare(name, context).run(lambda tail: None)

    def read(self, name, context=None):
        try:
            return self.result(name, context).output
        except ToolError as error:
            return str(error)

    def directory(self, name="greetings"):
        return "[skill directory: %s; paths in the skill are relative to it]" % self.path(".mm/skills/"
                                                                                          + name)

    def test_the_text_without_the_front_matter(self):
        self.assertEqual(self.read("greetings"), "# Greetings\n\nSay hello.\n" + self.directory())

    def test_the_files_beside_it(self):
        for name in ("scripts/x.py", "references/y.md", "references/deep/er/z.md",
                     "references/deep/er/too/far.md", "LICENSE", ".hidden", ".git/config",
                     "node_modules/a.js", "scripts/__pycache__/x.pyc"):
            self.put(".mm/skills/greetings/" + name, "")
        self.assertEqual(self.read("greetings").split("\n")[-1],
                         "[files: LICENSE, references/y.md, scripts/x.py, references/deep/er/z.md]")

    def test_at_most_thirty_files_are_named(self):
        for number in range(30):
            self.put(".mm/skills/greetings/f%02d" % number, "")
        self.assertTrue(self.read("greetings").endswith(", f28, f29]"))
        self.put(".mm/skills/greetings/f30", "")
        self.assertTrue(self.read("greetings", self.new_context()).endswith(", f28, f29, …]"))

    def test_a_file_name_of_several_lines(self):
        self.put(".mm/skills/greetings/a\n[files: b]", "")
        self.assertEqual(self.read("greetings").split("\n")[-1], "[files: a…]")

    def test_the_bundled_one_lies_nowhere(self):
        text = self.read("bg-jobs")
        self.assertTrue(text.startswith("# Background jobs\n"))
        self.assertNotIn("[skill directory", text)
        self.assertEqual(self.prepare("bg-jobs").paths, ())

    def test_what_the_front_end_is_told(self):
        action, tool = self.prepare("greetings"), self.tool()
        self.assertEqual((action.title, action.paths, action.asks, action.diff), (
            "read_skill: greetings", (self.path(".mm/skills/greetings/SKILL.md"),), False, None))
        self.assertEqual((tool.kind, registry.call_title(tool, {"name": "greetings"})),
                         ("read", "read_skill: greetings"))
        result = self.result("greetings")
        self.assertEqual((result.status, result.diff, result.prose), (events.COMPLETED, None, True))

    def test_a_second_time_it_is_above(self):
        first = self.read("greetings")
        self.assertEqual(self.read("greetings"), '[skill "greetings" is already above]')
        self.assertTrue(self.result("greetings").prose)
        self.context.seen.skills_read.clear()
        self.assertEqual(self.read("greetings"), first)

    def test_an_unknown_name_is_told_the_others(self):
        self.assertEqual(self.read("greet\nings"), '[no skill named "greet…". Skills: bg-jobs, greetings]')
        self.assertEqual(self.read(""), '[no skill named "". Skills: bg-jobs, greetings]')

    def test_names_as_models_write_them(self):
        for name in ("$greetings", "/greetings", " Greetings "):
            with self.subTest(name):
                self.assertEqual(self.read(name, self.new_context())[:11], "# Greetings")
        self.assertEqual(self.read("BG_jobs")[:17], "# Background jobs")

    def test_the_text_is_read_late(self):
        action = self.prepare("greetings")
        self.skill("greetings", "new\r\n")
        self.assertEqual(action.run(None).output, "new\n" + self.directory())

    def test_a_skill_that_is_gone(self):
        action = self.prepare("greetings")
        os.unlink(self.path(".mm/skills/greetings/SKILL.md"))
        with self.assertRaises(ToolError) as raised:
            action.run(None)
        self.assertEqual(str(raised.exception), '[read_skill: the skill "greetings" cannot be read: No such '
                                                'file or directory]')
        self.assertEqual(self.context.seen.skills_read, set())

    def test_a_long_text_is_cut(self):
        path = self.skill("long", "x" * (SHOWN + 7))
        self.assertEqual(self.read("long"), "x" * SHOWN + "\n[… 7 more characters; read them with read_file "
                                                          "in %s]\n" % path
                         + self.directory("long"))
        self.assertTrue(self.read("long", self.new_context(window=4096)).startswith("x" * 1638 + "\n[… "))

    def test_a_text_of_nothing(self):
        self.skill("empty", "")
        self.assertEqual(self.read("empty"), self.directory("empty"))

    def test_the_names_are_told_as_an_enum(self):
        (wire,) = registry.to_wire([self.tool()])
        self.assertEqual(wire["function"]["parameters"], {
            "type": "object", "required": ["name"],
            "properties": {"name": {"type": "string", "description": "Name of the skill",
                                    "enum": ["bg-jobs", "greetings"]}}})

    def test_a_skill_for_the_user_alone(self):
        self.skill("secret", more="disable-model-invocation: true\n")
        self.assertNotIn("secret", str(registry.to_wire([self.tool()])))
        self.assertEqual(self.read("unknown"), '[no skill named "unknown". Skills: bg-jobs, greetings]')
        self.assertEqual(self.read("secret"), "Do it.\n" + self.directory("secret"))

    def test_a_strict_enum_has_every_skill(self):
        self.skill("secret", more="disable-model-invocation: true\n")
        offer = registry.to_wire([self.tool()])[0]["function"]
        self.assertNotIn("enum", offer["parameters"]["properties"]["name"])


class TheRegistry(ToolTest):
    def names(self, skills):
        return [tool.name for tool in registry.built_in(self.context.config, skills)]

    def test_the_tool_is_offered_with_a_skill(self):
        skills = catalogue.find(self.folder, self.context.config, {"HOME": self.folder}).skills
        self.assertEqual(self.names(skills)[:5], ["bash", "edit_file", "read_file", "read_skill",
                                                  "write_file"])
        self.assertEqual(self.names(())[:4], ["bash", "edit_file", "read_file", "write_file"])

    def test_the_tool_can_be_taken_away(self):
        skills = catalogue.find(self.folder, self.context.config, {"HOME": self.folder}).skills
        context = self.new_context(tools_disabled=["read_skill"])
        self.assertNotIn("read_skill", [tool.name for tool in registry.built_in(context.config, skills)])


if __name__ == "__main__":
    unittest.main()
