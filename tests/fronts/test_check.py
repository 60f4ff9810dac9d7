"""`--check` tells a newcomer what is missing until nothing is, for each make of server, and ends in any
case.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import time
import unittest

from mm.config import config
from mm.cancel import Cancel
from mm.errors import UserError
from mm.fronts import check, trial
from mm.model import find, known_servers
from mm.model.installed import Way
from mm.model.http import Server
from tests import support
from tests.fakes import products as fakes
from tests.fakes.products import Pages

TEXT_CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
TIMINGS = {"choices": [], "timings": {"prompt_n": 120, "prompt_per_second": 250.44, "predicted_n": 12,
                                      "predicted_per_second": 31.06}}


def refused(status, message):
    return lambda body: (status, {"error": {"message": message}})


class Checking(unittest.TestCase):
    def program(self, *arguments, code, cwd=None, **env):
        """{subject: its lines} of `mm --check`."""
        done = support.run("--check", *arguments, cwd=cwd, env=support.environment(**env))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return self.lines(done.stdout)

    def check(self, code, url=None, model=None, **more):
        """The same without a process of its own, which makes many cases quick."""
        return self.lines(self.printed(code, url, model, **more))

    def printed(self, code, url=None, model=None, folder=None, demo=False, color="auto", **env):
        environ, folder = support.environment(**env), folder or support.scratch_folder()
        printed = io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stdout(printed):
            settings = config.load(folder, environ, None, {"model.url": url, "model.name": model})
            self.assertEqual(check.check(settings, folder, demo, color, environ), code,
                             printed.buffer.getvalue().decode())
        return printed.buffer.getvalue().decode()

    def lines(self, printed):
        lines = {}
        for line in printed.splitlines():
            mark, subject, text = re.fullmatch(r"(ok|--|!!|  )  (not ready|\S*) +(.*)", line).groups()
            if subject:
                last = lines.setdefault(subject, [])
            last.append("%s %s" % (mark, text) if subject else text)
        return lines


class TheMakes(Checking):
    """Found by OPENAI_BASE_URL, which comes first: what else runs on this machine does not matter."""

    def test_a_server_of_each_make_that_works(self):
        for key, pages, window in (
                ("llama.cpp", fakes.llama_cpp(), "ok 32768 tokens"),
                ("ollama", fakes.ollama(["m"], loaded=["m"]), "-- 4096 tokens, agents need 16000 or "
                                                              "more:|OLLAMA_CONTEXT_LENGTH=32768 ollama "
                                                              "serve|"
                 + "|".join(check.WINDOW_TOO["ollama"])),
                ("lmstudio", fakes.lm_studio(["m"], loaded=["m"]),
                 "-- 8192 tokens, agents need 16000 or more:|lms unload --all; lms load m --context-length "
                 "32768"),
                ("docker", fakes.docker(), "-- 4096 tokens, agents need 16000 or more:|docker model "
                                           "configure --context-size 32768 m"),
                ("vllm", fakes.vllm(), "ok 16384 tokens"),
                ("llama-cpp-python", fakes.llama_cpp_python(), "-- the server does not say: set "
                                                               "model.contextWindow, or long "
                                                               "conversations will fail")):
            with self.subTest(key), Pages(*pages) as fake:
                lines = self.check(code=0, OPENAI_BASE_URL=fake.url)
                self.assertEqual(lines["server"], ["ok %s at %s, found by OPENAI_BASE_URL"
                                                   % (known_servers.of_key(key).title, fake.url)])
                self.assertEqual(lines["model"], ["ok m"])
                self.assertEqual("|".join(lines["window"]), window)
                self.assertEqual(lines["tools"], ['ok real tool calls, streamed (it called bash {"command": '
                                                  '"ls"})'])
                self.assertEqual(lines.get("", []), [])
                self.assertEqual(lines["ready"], ["ok " + check.READY])
                self.assertEqual([body["stream"] for body in fake.bodies], [True] * len(fake.bodies))
                self.assertEqual(fake.bodies[0].get("cache_prompt"), False if key == "llama.cpp" else None)

    def test_what_the_model_makes_of_a_tool(self):
        late = "no tool call came, so mm can only talk with this model: "
        words = fakes.words("I would run ls.")
        for pages, chat, code, line in (
                (fakes.vllm(), fakes.words(TEXT_CALL), 0, '-- the model writes its calls into the text, '
                                                          'where mm finds them (it called bash {"command": '
                                                          '"ls"})'),
                (fakes.vllm(), words, 1, "!! %sit said “I would run ls.”; %s"
                 % (late, known_servers.of_key("vllm").tools)),
                (fakes.llama_cpp_python(), words, 1, "!! %sit said “I would run ls.”; use llama-server: "
                                                     "llama_cpp.server streams no tool calls" % late),
                (fakes.llama_cpp(), words, 1, "!! %sit said “I would run ls.”; %s"
                 % (late, trial.OTHER_MODEL)),
                (fakes.llama_cpp(tools=None), words, 1, "!! %sit said “I would run ls.”; restart "
                                                        "llama-server with --jinja" % late),
                (fakes.llama_cpp(tools=False), words, 1, "!! " + late + trial.DROPPED)):
            with self.subTest(line), Pages(*pages, chat=chat) as fake:
                lines = self.check(code=code, OPENAI_BASE_URL=fake.url)
                self.assertEqual(lines["tools"], [line])
                self.assertEqual("not ready" in lines, code == 1)

    def test_a_second_plainer_wish(self):
        with Pages(*fakes.vllm(), chat=lambda body: (fakes.calls if "now" in body["messages"][1]["content"]
                                                     else fakes.words("Sure."))(body)) as fake:
            self.assertTrue(self.check(code=0, OPENAI_BASE_URL=fake.url)["tools"][0].startswith("ok real tool calls"))

    def test_a_refusal_is_told_with_what_to_do(self):
        with Pages(*fakes.ollama(["m"]), chat=refused(400, "registry.ollama.ai/library/m does not support "
                                                           "tools")) as fake:
            lines = self.check(code=1, OPENAI_BASE_URL=fake.url)
        self.assertRegex(lines["tools"][0], "^!! .*tool")
        self.assertEqual(lines["not ready"], ["!! " + check.NOT_READY])

    def test_the_speed(self):
        with Pages(*fakes.llama_cpp(), chat=lambda body: fakes.calls(body) + [TIMINGS]) as fake:
            self.assertEqual(self.check(code=0, OPENAI_BASE_URL=fake.url)["speed"],
                             ["ok prompt 250 tokens/s, answer 31.1 tokens/s (as the server measured)"])
        with Pages(*fakes.vllm(), delays={"/v1/chat/completions": 0.15}) as fake:
            speed = self.check(code=0, OPENAI_BASE_URL=fake.url)["speed"][0]
        rate = re.fullmatch(r"ok prompt (\d+) tokens/s \(by mm's clock\)", speed)
        self.assertTrue(rate and 100 < int(rate[1]) <= 800, speed)

    def test_an_answer_that_never_comes(self):
        with Pages(*fakes.vllm(), chat=lambda body: time.sleep(0.5) or []) as fake:
            begin = time.monotonic()
            tried = trial.ask(Server(fake.url, "m"), Cancel(), seconds=0.15)
            self.assertLess(time.monotonic() - begin, 0.48)
            self.assertEqual((tried.failed, tried.tools, tried.speed), (True, trial.TOO_SLOW % 0.15, ""))

    def test_ollama_s_variable_names_it(self):
        with Pages(*fakes.ollama(["m"])) as fake:
            self.assertEqual(self.check(code=0, OLLAMA_HOST=fake.root)["server"],
                             ["ok Ollama at %s, found by OLLAMA_HOST" % fake.url])


class TheNewcomer(Checking):
    """From nothing to a working model, with what each line says to do."""

    def test_the_story(self):
        with contextlib.ExitStack() as stack:
            with socket.create_server(("127.0.0.1", 0)) as nobody:
                url = "http://127.0.0.1:%d/v1" % nobody.getsockname()[1]
            self.assertIn("no model server at %s" % url, self.check(code=1, url=url)["server"][0])
            fake = stack.enter_context(Pages(*fakes.ollama([])))
            lines = self.check(code=1, OLLAMA_HOST=fake.root, OPENAI_BASE_URL=fake.url)
            self.assertEqual(lines["server"], ["!! the server at %s has no model that can chat" % fake.url])
            # It is fetched, and has a small window; then the server is started with a larger one.
            fake.pages = fakes.ollama(["qwen3:8b"], loaded=["qwen3:8b"])[0]
            command = self.check(code=0, OPENAI_BASE_URL=fake.url)["window"][1]
            self.assertEqual(command, "OLLAMA_CONTEXT_LENGTH=32768 ollama serve")
            fake.pages = fakes.ollama(["qwen3:8b"], loaded=["qwen3:8b"], window=32768)[0]
            lines = self.check(code=0, OPENAI_BASE_URL=fake.url)
            self.assertFalse([line for name, each in lines.items() for line in each
                              if not line.startswith("ok")])

    def test_a_server_that_wants_a_key(self):
        with Pages({}, (401, {"error": {"message": "Invalid API Key"}}), "llama.cpp") as fake:
            line = self.check(code=1, OPENAI_BASE_URL=fake.url)["server"][0]
            self.assertIn("wants an API key", line)
            self.assertIn("MM_API_KEY=… mm --url %s" % fake.url, line)
            fake.pages = fakes.llama_cpp()[0]
            lines = self.check(code=0, url=fake.url, MM_API_KEY="secret-key")
            self.assertEqual(lines["server"], ["ok llama.cpp at %s, set by you" % fake.url])
            self.assertEqual(fake.headers[-1]["Authorization"], "Bearer secret-key")
        self.assertNotIn("secret-key", str(lines))

    def test_with_nothing_at_all(self):
        """Below the line of find.NONE_RUNS: each command on a line of its own, under what it starts."""
        ways = [Way("ollama is installed", "ollama serve"), Way("", "brew install llama.cpp")]
        rows = list(check._ways_to_start(find.NothingRuns("", "", ways)))
        self.assertEqual([row.text for row in rows],
                         ["ollama is installed:", "ollama serve", check.INSTALL, "brew install llama.cpp",
                          check.AGAIN])

    def test_a_model_that_is_not_there(self):
        with Pages(*fakes.ollama(["a"])) as fake:
            lines = self.check(code=0, model="b", OPENAI_BASE_URL=fake.url)
            self.assertEqual(lines["model"], ['-- "b" is not among what the server lists: a',
                                              "ollama pull b"])
            self.assertEqual({body["model"] for body in fake.bodies}, {"b"})


class TheRest(Checking):
    def test_the_demo(self):
        lines = self.program("--demo", code=0)
        self.assertEqual(lines["model"], ["ok demo"])
        self.assertRegex(lines["server"][0], "^ok the demo model at http://127.0.0.1:[0-9]+/v1: a script, no "
                                             "language model$")
        self.assertRegex(lines["python"][0], r"^ok 3\.\d+\.\d+ \(.*\), mm v0\.1\.0 from .*mm\.pyz, with byte "
                                             r"code for this Python$")
        for subject, text in (("skills", "ok bg-jobs"), ("hooks", "ok none"),
                              ("sessions", "ok not kept (sessions.enabled)"), ("mcp", "ok none configured"),
                              ("lsp", "ok no language server on PATH for what is in this folder"),
                              ("agents", "ok none configured")):
            self.assertEqual(lines[subject], [text])

    def test_what_is_configured(self):
        home, folder = support.scratch_folder(), support.scratch_folder()
        self.write(home, ".config/mm/config.json", {
            "sessions": {"enabled": True}, "lsp": False, "mcp": {"files": {"command": "no-such-program"}},
            "agents": {"other": {"command": ["sh", "-c", "true"]}},
            "hooks": {"turnEnd": [{"command": "true"}, {"command": "true"}]}})
        self.write(folder, ".mm/config.json", {"hooks": {"preToolCall": [{"command": "true"}]},
                                               "maxSteps": 200})
        skill = os.path.join(folder, ".mm", "skills", "deploy")
        os.makedirs(skill)
        with open(os.path.join(skill, "SKILL.md"), "w") as file:
            file.write("---\nname: deploy\ndescription: Deploys.\nallowed-tools: bash(git:*), "
                       "read_file\n---\nDo it.\n")
        lines = self.check(code=0, demo=True, folder=folder, HOME=home)
        self.assertEqual(lines["config"][:2], [
            "ok %s/.config/mm/config.json: read" % home,
            "-- %s/.mm/config.json: not trusted (mm --trust)" % folder])
        self.assertTrue(any("maxSteps" in line for line in lines["config"][2:]), lines["config"])
        self.assertTrue(lines["hooks"][0].startswith("-- ⚠️ the hooks of this folder are not trusted"))
        self.assertEqual(lines["sessions"], ["ok kept in .mm/sessions of the session's folder"])
        self.assertEqual(lines["mcp"], ["-- mcp files: cannot start no-such-program: No such file or "
                                        "directory"])
        self.assertEqual(lines["agents"], ["ok other (sh)"])
        self.assertEqual(lines["lsp"], ["ok off"])
        self.assertIn("deploy (allowed-tools: bash(git:*), read_file; not enforced)", lines["skills"][0])
        os.remove(os.path.join(folder, ".mm", "config.json"))
        self.assertEqual(self.check(code=0, demo=True, folder=folder, HOME=home)["hooks"], ["ok turnEnd: 2"])

    def test_a_model_that_is_still_loading(self):
        loading = (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})
        with Pages({"/v1/models": loading}, loading, "llama.cpp") as fake:
            lines = self.check(code=0, OPENAI_BASE_URL=fake.url)
            self.assertEqual(lines["model"], ["-- " + check.LOADING])

    def test_a_language_server_that_sessions_do_not_get(self):
        folder, home = support.scratch_folder(), support.scratch_folder()
        tools = os.path.join(home, "bin")
        os.mkdir(tools)
        with open(os.path.join(tools, "pylsp"), "w") as file:
            file.write("#!/bin/sh\n")
        os.chmod(file.name, 0o755)
        open(os.path.join(folder, "a.py"), "w").close()
        environ = {"HOME": home, "PATH": tools + os.pathsep + os.environ["PATH"]}
        lines = self.program("--demo", "--no-yolo", code=0, cwd=folder, **environ)
        self.assertRegex(lines["lsp"][0], "^-- .*pylsp.*trust the folder: mm --trust$")
        done = support.run("--trust", cwd=folder, env=support.environment(**environ))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.program("--demo", "--no-yolo", code=0, cwd=folder, **environ)["lsp"],
                         ["ok python (pylsp)"])

    def test_the_instructions_of_a_project(self):
        home, folder = support.scratch_folder(), support.scratch_folder()
        for path in (os.path.join(home, ".config", "mm", "AGENTS.md"), os.path.join(folder, "AGENTS.md")):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write("Be brief.\n")
        inner = os.path.join(folder, "inner")
        os.makedirs(inner)
        os.mkdir(os.path.join(folder, ".git"))
        os.symlink("/etc/passwd", os.path.join(inner, "AGENTS.md"))
        self.assertEqual(self.check(code=0, demo=True, folder=inner, HOME=home)["AGENTS.md"], [
            "ok %s/.config/mm/AGENTS.md, %s/AGENTS.md" % (home, folder),
            "-- %s/AGENTS.md is not read: a link leads out of %s" % (inner, folder)])

    def test_skills_that_are_left_out(self):
        folder = support.scratch_folder()
        for name, text in (("top", "\n# by hand\n---\nname: top\ndescription: x\n---\n"),
                           ("No Name", "---\ndescription: x\n---\n"), ("empty", "---\nname: "
                                                                                "empty\ntags:\n-\tone\n---\n"), ("none", "text\n"), ("open", "---\nname: open\n")):
            os.makedirs(os.path.join(folder, ".mm", "skills", name))
            with open(os.path.join(folder, ".mm", "skills", name, "SKILL.md"), "w") as file:
                file.write(text)
        place = os.path.join(folder, ".mm", "skills", "%s", "SKILL.md")
        self.assertEqual(self.program("--demo", code=0, cwd=folder)["skills"], [
            "ok bg-jobs, top",
            "-- skill %s is skipped: neither its name nor its folder's is made of a-z, 0-9 and single "
            "hyphens, at most 64" % place % "No Name",
            "-- skill %s is skipped: it has no description" % place % "empty",
            '-- skill %s is skipped: it does not begin with front matter, a line "---"' % place % "none",
            '-- skill %s is skipped: no closing "---"' % place % "open",
            "-- skill %s: its front matter begins on line 3, other programs want it on line 1" % place
            % "top"])

    def write(self, folder, name, value):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path))
        with open(path, "w") as file:
            json.dump(value, file)

    def test_colours(self):
        with Pages(*fakes.vllm(), chat=fakes.words("no")) as fake:
            coloured = self.printed(1, OPENAI_BASE_URL=fake.url, color="always")
            plain = self.printed(1, OPENAI_BASE_URL=fake.url)
        self.assertIn("\x1b[32mok\x1b[0m  server", coloured)
        self.assertIn("\x1b[31m!!\x1b[0m  tools", coloured)
        self.assertNotIn("\x1b", plain)

    def test_a_wrong_configuration(self):
        done = support.run("--check", "--config", "/nonexistent/config.json")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))

    def test_ctrl_c_ends_it_at_once(self):
        with Pages(*fakes.vllm(), delays={"/v1/chat/completions": 60}) as fake:
            process = subprocess.Popen(support.mm("--check"), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=support.environment(OPENAI_BASE_URL=fake.url))
            with process, contextlib.ExitStack() as stack:
                stack.callback(process.kill)
                support.wait_until(lambda: fake.bodies, what="the question for a tool call")
                begin = time.monotonic()
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(5), 130)
                self.assertLess(time.monotonic() - begin, 1)
                self.assertEqual(process.stderr.read().decode(), trial.ASKING % trial.SECONDS + "\n")


class ThePage(unittest.TestCase):
    def test_the_table_of_makes(self):
        with open(os.path.join(support.PROJECT, "docs", "servers.md"), encoding="utf-8") as file:
            page = file.read()
        for product in known_servers.PRODUCTS:
            row = "| %s | %s | %s | %s | %s%s. |" % (product.title, product.url, product.first or "—",
                                                     product.larger_window or "—",
                                                    product.tools[0].upper(), product.tools[1:])
            with self.subTest(product.key):
                self.assertIn(row, page.replace("`", ""))
        for text in (find.NOT_NEAR % ("OPENAI_BASE_URL", "<host>"), find.WANTS_KEY % ("<url>", "<url>"),
                     find.FOUND % ("NAME (also there: …)", "<make> at <url>", " or --url URL"),
                     find.HELP % (find.NONE_RUNS % ":8080, …", "<what is installed>, start it: <command>",
                                  ""),
                     trial.REAL % "…", trial.RECOVERED % "…", trial.WISHES[0],
                     "An answer has %d s" % trial.SECONDS):
            with self.subTest(text):
                self.assertIn(text, page)
        for line in check.WINDOW_TOO["ollama"][1::2]:
            self.assertIn(line, page.replace("`", ""))


if __name__ == "__main__":
    unittest.main()
