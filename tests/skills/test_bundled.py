"""The skills in the package: found in a clone and in the zipapp, and bg-jobs does what it says."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from mm.config import config
from mm.cancel import Cancel
from mm.skills import catalogue, invocation
from mm.tools import registry
from mm.tools.arguments import parse_arguments
from mm.tools.context import Context, Seen
from tests import support

# Runs in a process of its own, in which mm can be imported already; prints what a session finds there.
LOOK = """
import json, os, sys
from mm.cancel import Cancel
from mm.config import config
from mm.skills import catalogue
from mm.tools import registry
from mm.tools.context import Context, Seen
settings = config.load(os.getcwd(), os.environ)
skills, warnings, _ = catalogue.find(os.getcwd(), settings, os.environ)
tool = registry.find(registry.built_in(settings, skills), "read_skill")
action = tool.prepare({"name": "bg-jobs"}, Context(os.getcwd(), settings, Cancel(), None, "call_1", 0, Seen()))
print(json.dumps([skills[0]._asdict(), warnings, action.run(None).output]))
"""

# Starts the zipapp as `python3 mm.pyz --version` does, which leaves mm importable from it, byte code and all.
FROM_THE_ZIPAPP = """
import runpy, sys
pyz = sys.argv[1]
sys.argv[1:] = ["--version"]
try:
    runpy.run_path(pyz, run_name="__main__")
except SystemExit:
    pass
""" + LOOK


class WhereTheyAreFound(unittest.TestCase):
    def look(self, program, *arguments, project=None):
        command = [sys.executable, "-I", "-S", "-B", "-c", program, *arguments]
        done = subprocess.run(command, cwd=support.scratch_folder(), env=support.environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=support.DEADLINE)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return json.loads(done.stdout.decode().splitlines()[-1])

    def check(self, found, folder):
        skill, warnings, text = found
        self.assertEqual((skill["name"], skill["folder"], warnings), ("bg-jobs", None, []))
        self.assertEqual(skill["path"], os.path.join(folder, "mm", "skills", "bundled", "bg-jobs",
                                                     "SKILL.md"))
        self.assertEqual(text, BODY)

    def test_in_a_clone(self):
        program = "import sys; sys.path.insert(0, %r)\n" % support.PROJECT + LOOK
        self.check(self.look(program), support.PROJECT)

    def test_in_the_zipapp(self):
        self.check(self.look(FROM_THE_ZIPAPP, support.pyz()), os.path.join(support.pyz(), "src"))

    def test_in_the_zipapp_where_the_sources_are_run(self):
        program = "import sys; sys.path.insert(0, sys.argv[1])\n" + LOOK
        source = os.path.join(support.pyz(), "src")
        self.check(self.look(program, source), source)

    def test_all_of_them_are_named(self):
        folder = os.path.join(support.PROJECT, "mm", "skills", "bundled")
        self.assertEqual(tuple(sorted(os.listdir(folder))), catalogue.BUNDLED)


class InASession(unittest.TestCase):
    """The whole way, with the demo model: from the editor's menu to the text."""

    def check(self, command):
        with support.Client("-acp", command=command + ["-acp", "--demo"]) as client:
            client.initialize()
            session = client.new_session()
            commands = client.update("available_commands_update")["availableCommands"]
            self.assertIn({"name": "bg-jobs", "description": "Start, wait on, inspect and stop a "
                                                             "long-running background job",
                           "input": {"hint": invocation.HINT}}, commands)
            client.prompt(session, "skill: bg-jobs")
            call = client.updates("tool_call")[0]
            self.assertEqual((call["title"], call["kind"], "locations" in call),
                             ("read_skill: bg-jobs", "read", False))
            read = client.update("tool_call_update", status="completed")
            self.assertEqual((read["rawOutput"]["output"], read["content"][0]["content"]["text"]),
                             (BODY, BODY))
            client.prompt(session, "skill: bg-jobs")
            self.assertIn('[skill "bg-jobs" is already above]',
                          json.dumps(client.updates("tool_call_update")[-1]).replace("\\", ""))
            self.assertIn("0 command(s) · 0 file op(s) · 1 skill(s)", client.stderr)

    def test_of_a_clone(self):
        self.check([sys.executable, "-B", "-c", "import sys; sys.path.insert(0, %r); from mm.cli import "
                                                "script; script()" % support.PROJECT])

    def test_of_the_zipapp(self):
        self.check(support.mm())


def read_bg_jobs():
    settings = config.load(support.scratch_folder(), support.environment())
    skills = catalogue.find(settings.folder, settings, support.environment()).skills
    return catalogue.body(next(skill for skill in skills if skill.name == "bg-jobs")).rstrip()


BODY = read_bg_jobs()
# {heading: the recipe under it}
RECIPES = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^##).)*?^```bash\n(.*?)^```$", BODY,
                          re.DOTALL | re.MULTILINE))


class BgJobs(unittest.TestCase):
    """Its recipes as they stand, through the tool that the model runs them with."""

    def setUp(self):
        folder = support.scratch_folder()
        settings = config.load(folder, support.environment())
        self.context = Context(folder, settings, Cancel(), None, "call_1", 0, Seen())
        self.bash = registry.find(registry.built_in(settings), "bash")
        self.jobs = []
        self.addCleanup(self.clean)

    def clean(self):
        for job in self.jobs:
            try:
                os.killpg(self.pid(job), signal.SIGKILL)
            except (OSError, ValueError):
                pass
            shutil.rmtree(job, ignore_errors=True)

    def pid(self, job):
        with open(os.path.join(job, "pid"), encoding="ascii") as file:
            return int(file.read())

    def run_bash(self, command):
        action = self.bash.prepare(parse_arguments(self.bash, {"command": command}), self.context)
        return action.run(lambda tail: None).output

    def start(self, command):
        """(the job's folder, all that "Start" printed)."""
        recipe = RECIPES["Start"]
        self.assertEqual(recipe.count("npm run build\n"), 1)
        output = self.run_bash(recipe.replace("npm run build\n", command + "\n"))
        job = output.split("\n")[0]
        self.assertRegex(job, r"\A/tmp/job\.\w{6}\Z")
        self.jobs.append(job)
        return job, output

    def recipe(self, heading, job, **changes):
        recipe = RECIPES[heading]
        self.assertEqual(recipe.count("job=/tmp/job.XXXXXX\n"), 1)
        for old, new in changes.items():
            self.assertIn(old, recipe)
            recipe = recipe.replace(old, new)
        return self.run_bash(recipe.replace("/tmp/job.XXXXXX", job))

    def test_all_recipes_are_tested(self):
        self.assertEqual(set(RECIPES), {"Start", "Wait for the end", "Wait until a server is ready",
                                        "Inspect", "Stop"})

    def test_a_job_that_ends(self):
        started = time.monotonic()
        job, output = self.start('echo "it\'s $((6 * 7))"; pwd\nsleep 1.1\nexit 3')
        self.assertEqual(output, "%s\nit's 42\n%s" % (job, self.context.folder))
        self.assertEqual(self.recipe("Inspect", job), "running\nit's 42\n%s" % self.context.folder)
        self.assertEqual(self.recipe("Wait for the end", job),
                         "it's 42\n%s\nexit code: 3" % self.context.folder)
        self.assertLess(time.monotonic() - started, 10)
        self.assertEqual(self.recipe("Inspect", job).split("\n")[0], "ended, exit code: 3")
        self.assertEqual(self.recipe("Stop", job), "it has ended already")

    def test_a_job_that_fails_at_once(self):
        job, output = self.start("no-such-program")
        self.assertIn("no-such-program", output.split("\n")[1])
        self.assertTrue(self.recipe("Wait for the end", job).endswith("exit code: 127"))
        self.assertEqual(self.recipe("Wait until a server is ready", job).count("no-such-program"), 1)

    def test_a_server(self):
        job, _ = self.start("trap '' TERM\nsleep 0.2; echo listening on 8080 >&2\nsleep 600 & sleep 600")
        self.assertEqual(self.recipe("Wait until a server is ready", job), "listening on 8080")
        self.assertEqual(self.recipe("Wait for the end", job, **{"100": "1"}),
                         "listening on 8080\nexit code: none yet")
        group = self.pid(job)
        self.assertTrue(support.group_alive(group))
        self.assertEqual(self.recipe("Stop", job, **{"seq 30": "seq 2"}), "stopped")
        support.wait_until(lambda: not support.group_alive(group), what="the end of the group")
        self.assertEqual(self.recipe("Inspect", job).split("\n")[0], "ended, exit code: none, it was stopped")


if __name__ == "__main__":
    unittest.main()
