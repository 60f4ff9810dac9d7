"""zipapp.sh and archive/, and what they build."""

from __future__ import annotations

import glob
import hashlib
import importlib.util
import marshal
import os
import shutil
import subprocess
import sys
import unittest
import zipfile

import mm
from tests import support
from tests.fakes.model_server import ModelServer
from tests.test_layout import IMPORTED, START_ROOMS

# How the names of this Python's byte code begin.
PARTS = ("start", "prompt", "call", "settings", "chat")
OURS = "%s.%d." % (sys.implementation.cache_tag, int.from_bytes(importlib.util.MAGIC_NUMBER[:2], "little"))

# Bytes of the whole product with the byte code of five Pythons. The benchmark has the limit of the day.
SIZE_LIMIT = 3 * 512 * 1024


def copy_of_the_project(name: str, original: str = support.PROJECT) -> str:
    """A copy of what the zipapp is built from, in a new folder of this name."""
    project = os.path.join(support.scratch_folder(), name)
    for folder in ("mm", "archive"):
        shutil.copytree(os.path.join(original, folder), os.path.join(project, folder),
                        ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("zipapp.sh", "LICENSE"):
        shutil.copy(os.path.join(original, file), project)
    return project


def write(path: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def build(*arguments, project=support.PROJECT, cwd=None, **variables) -> subprocess.CompletedProcess:
    """Runs `sh zipapp.sh` for this Python unless the variables say otherwise; its two outputs as one text in
    stdout.
    """
    variables = {"MM_PYTHONS": sys.executable, **variables}
    done = subprocess.run(["/bin/sh", os.path.join(project, "zipapp.sh"), *arguments],
                          cwd=cwd or support.scratch_folder(), env=support.environment(**variables),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), None)


def others() -> list:
    """The interpreters of other versions that zipapp.sh finds here."""
    found = build("--pythons", MM_PYTHONS="", PYENV_ROOT=os.environ.get("PYENV_ROOT")
                  or os.path.expanduser("~/.pyenv"))
    return [path for path in found.stdout.split()
            if os.path.realpath(path) != os.path.realpath(sys.executable)]


def digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Building(unittest.TestCase):
    def test_without_an_argument_writes_mm_pyz_to_the_current_folder(self):
        here = support.scratch_folder()
        done = build(cwd=here)
        self.assertEqual((done.returncode, done.stdout, os.listdir(here)), (0, "", ["mm.pyz"]))
        self.assertEqual(os.stat(os.path.join(here, "mm.pyz")).st_mode & 0o111, 0o111)

    def test_takes_spaces_and_quotes_in_every_path(self):
        project = copy_of_the_project("the project's \"folder\"")
        here = os.path.join(support.scratch_folder(), "an output  folder")
        os.mkdir(here)
        done = build("my mm.pyz", project=project, cwd=here)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        shown = subprocess.run([os.path.join(here, "my mm.pyz"), "--version"], env=support.environment(),
                               stdout=subprocess.PIPE)
        self.assertEqual(shown.stdout.decode(), "v%s\n" % mm.__version__)

    def test_the_same_sources_give_the_same_bytes(self):
        # Whatever differs besides: the folder, its files' times, the hash seed, the variables, the clock.
        # This Python and one other: each is compiled with in a process of its own, so a third would show
        # nothing new.
        pythons = sys.executable if support.SHORT else ":".join([sys.executable] + others()[:1])
        first, second = (os.path.join(support.scratch_folder(), "mm.pyz") for _ in range(2))
        here = copy_of_the_project("here")
        elsewhere = copy_of_the_project("elsewhere", here)
        for folder, _, names in os.walk(elsewhere):
            for name in names:
                os.utime(os.path.join(folder, name), (1, 1))
        ours = {"PYENV_ROOT": os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"),
                "MM_PYTHONS": pythons}
        self.assertEqual(build(first, project=here, **ours).stdout, "")
        self.assertEqual(build(second, project=elsewhere, PYTHONHASHSEED="7", PYTHONOPTIMIZE="2",
                               TZ="Asia/Tokyo", mm="turn", **ours).stdout, "")
        self.assertEqual(digest(first), digest(second))

    def test_takes_what_belongs_to_the_package_and_no_litter(self):
        project = copy_of_the_project("project")
        for name in ("skills/bundled/x/SKILL.md", "__pycache__/cli.cpython-39.pyc", ".cli.py.swp", "cli.py~",
                     "cli.py.orig"):
            write(os.path.join(project, "mm", name), b"text")
        target = os.path.join(project, "mm.pyz")
        self.assertEqual(build(target, project=project).stdout, "")
        with zipfile.ZipFile(target) as archive:
            names = archive.namelist()
        with zipfile.ZipFile(support.pyz()) as archive:
            usual = {name for name in archive.namelist() if name.startswith("src/")}
        self.assertEqual({name for name in names if name.startswith("src/")},
                         usual | {"src/mm/skills/bundled/x/SKILL.md"})
        self.assertEqual({name for name in names if not name.startswith("src/")},
                         {"__main__.py", "LICENSE", *(OURS + part for part in PARTS)})

    def test_a_broken_source_is_one_line_and_leaves_the_old_file(self):
        project = copy_of_the_project("project")
        write(os.path.join(project, "mm", "cli.py"), b"x = 1\nx = (\n")
        write(os.path.join(project, "mm.pyz"), b"the old one")
        done = build("mm.pyz", project=project, cwd=project)
        self.assertRegex(done.stdout, r"\Azipapp\.sh: mm/cli\.py, line \d: .+\n\Z")
        self.assertEqual(done.returncode, 1)
        with open(os.path.join(project, "mm.pyz"), "rb") as file:
            self.assertEqual(file.read(), b"the old one")
        self.assertEqual(sorted(os.listdir(project)), ["LICENSE", "archive", "mm", "mm.pyz", "zipapp.sh"])

    def test_writes_nothing_into_the_project(self):
        project = copy_of_the_project("project")
        before = [names for names in os.walk(project)]
        build(os.path.join(support.scratch_folder(), "mm.pyz"), project=project)
        self.assertEqual([names for names in os.walk(project)], before)

    def test_wrong_calls_are_one_line(self):
        folder = support.scratch_folder()
        for arguments, line in (
            (["--output", "x"], "zipapp.sh: there is no option --output; usage: sh zipapp.sh [OUTPUT]\n"),
            (["a", "b"], "zipapp.sh: more than one OUTPUT; usage: sh zipapp.sh [OUTPUT]\n"),
            ([folder], "zipapp.sh: %s is a folder\n" % folder),
            ([os.path.join(folder, "no/mm.pyz")], "zipapp.sh: there is no folder %s\n"
             % os.path.join(folder, "no")),
        ):
            with self.subTest(arguments=arguments):
                done = build(*arguments)
                self.assertEqual((done.stdout, done.returncode), (line, 1))
                self.assertEqual(os.listdir(folder), [])


class ThePythonThatBuilds(unittest.TestCase):
    """Each case has a PATH with nothing on it but what the case needs."""

    def programs(self, **scripts) -> str:
        folder = support.scratch_folder()
        os.symlink(shutil.which("dirname"), os.path.join(folder, "dirname"))
        for name, script in scripts.items():
            write(os.path.join(folder, name), ("#!/bin/sh\n" + script).encode())
            os.chmod(os.path.join(folder, name), 0o755)
        return folder

    def refusal(self, **scripts) -> str:
        done = build(PATH=self.programs(**scripts), MM_PYTHONS=None)
        self.assertEqual(done.returncode, 1)
        return done.stdout

    def test_is_missed_in_one_line(self):
        self.assertEqual(self.refusal(), "zipapp.sh: there is no python3: install Python 3.9 or later\n")

    def test_is_refused_in_one_line_when_too_old(self):
        for version in ("2 7", "3 8"):
            self.assertEqual(self.refusal(python3="echo " + version),
                             "zipapp.sh: python3 is Python %s: install Python 3.9 or later\n"
                             % version.replace(" ", "."))

    def test_is_refused_in_one_line_when_it_does_not_run(self):
        self.assertEqual(self.refusal(python3="echo no such version >&2; exit 127"),
                         "zipapp.sh: python3 does not run: install Python 3.9 or later\n")

    def test_may_stand_beside_a_version_manager_s_stand_ins(self):
        # python3.9 to python3.14 are all there, and none of them runs.
        stand_ins = {"python3.%d" % minor: "echo not chosen here >&2; exit 127" for minor in range(9, 15)}
        path = self.programs(python3='exec "%s" "$@"' % sys.executable, **stand_ins)
        target = os.path.join(support.scratch_folder(), "mm.pyz")
        self.assertEqual(build(target, PATH=path, MM_PYTHONS=None).stdout, "")
        self.assertEqual(pythons(target), {OURS})

    def test_named_ones_must_run(self):
        self.assertEqual(build(MM_PYTHONS=sys.executable + ":/no/python3").stdout,
                         "zipapp.sh: /no/python3 does not run\n")


def pythons(path: str) -> set:
    """The Pythons whose byte code an archive holds, as OURS."""
    with zipfile.ZipFile(path) as archive:
        return {name.rpartition(".")[0] + "." for name in archive.namelist() if name.endswith(".start")}


def without_byte_code(path: str) -> str:
    """A copy of an archive as a Python sees it for which there was no byte code."""
    target = os.path.join(support.scratch_folder(), "mm.pyz")
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(target, "w") as bare:
        for entry in archive.infolist():
            if not entry.filename.startswith(OURS):
                bare.writestr(entry, archive.read(entry))
    return target


def script_of(name: str):
    """A file of archive/ as a module: it is a script, in no package."""
    spec = importlib.util.spec_from_file_location(name[:-3], os.path.join(support.PROJECT, "archive", name))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TheArchive(unittest.TestCase):
    def parts(self) -> dict:
        with zipfile.ZipFile(support.pyz()) as archive:
            return {part: marshal.loads(archive.read(OURS + part)) for part in PARTS}

    def test_is_undated_and_deflated_behind_its_first_line(self):
        with open(support.pyz(), "rb") as file:
            self.assertEqual(file.readline(), b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(support.pyz()) as archive:
            self.assertEqual({(entry.date_time, entry.compress_type) for entry in archive.infolist()},
                             {((1980, 1, 1, 0, 0, 0), zipfile.ZIP_DEFLATED)})
            self.assertIsNone(archive.testzip())

    def test_stays_small(self):
        # The limit is for five Pythons.
        self.assertLessEqual(os.path.getsize(support.pyz()),
                             SIZE_LIMIT * max(1, len(pythons(support.pyz())) / 5))

    def test_has_the_byte_code_of_the_start_in_one_piece(self):
        self.assertEqual(set(self.parts()["start"]), START_ROOMS | {"importer", "index"})

    def test_has_the_byte_code_of_a_first_prompt(self):
        with ModelServer([{"call": {"name": "bash", "arguments": {"command": "true"}}},
                          {"text": "ok"}]) as server:
            command = [sys.executable, "-I", "-S", "-X", "importtime", support.pyz(), "-acp"]
            env = support.environment(MM_URL=server.url, MM_MODEL="m")
            with support.Client(command=command, env=env) as client:
                client.prompt(client.new_session(), "go")
        parts = self.parts()
        loaded = {name for name in IMPORTED.findall(client.stderr) if name.split(".")[0] == "mm"}
        named = {room for part in ("start", "prompt", "call", "settings") for room in parts[part]}
        self.assertEqual(loaded - named, set(), "rooms to name in archive/build.py")
        self.assertEqual(set(parts["prompt"]) - loaded, set(), "rooms that no first prompt loads")

    def test_has_byte_code_of_the_chat(self):
        self.assertLess({"mm.fronts.terminal.chat", "mm.fronts.once"}, set(self.parts()["chat"]))

    def test_has_byte_code_that_names_its_source(self):
        is_package, code = self.parts()["start"]["mm.cli"]
        self.assertEqual((is_package, code.co_filename), (False, "mm/cli.py"))

    def test_runs_the_sources_where_the_byte_code_is_missing(self):
        done = subprocess.run([sys.executable, "-I", "-S", without_byte_code(support.pyz()), "--version"],
                              env=support.environment(), stdout=subprocess.PIPE)
        self.assertEqual(done.stdout.decode(), "v%s\n" % mm.__version__)

    def test_rooms_read_the_files_beside_them_and_tracebacks_name_rooms(self):
        project = copy_of_the_project("project")
        write(os.path.join(project, "mm", "cli.py"), b"""
import os
def script():
    os.chdir("/")
    print(__loader__.get_data(os.path.join(os.path.dirname(__file__), "skills", "x.md")).decode())
    raise ValueError("a bug")
""")
        write(os.path.join(project, "mm", "skills", "x.md"), b"a skill")
        target = os.path.join(project, "mm.pyz")
        self.assertEqual(build(target, project=project).stdout, "")
        for archive in (target, without_byte_code(target)):
            # By a relative path, which means something else once the process has moved.
            done = subprocess.run([sys.executable, "mm.pyz"], cwd=os.path.dirname(archive),
                                  env=support.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.stdout, b"a skill\n", done.stderr.decode())
            self.assertRegex(done.stderr.decode(), r'mm/cli\.py", line 6, in script')

    def test_finds_its_rooms_after_the_process_has_moved(self):
        # Started by a relative path, in another folder than the one it works in, with rooms to import at the
        # first prompt.
        here = support.scratch_folder()
        shutil.copy(support.pyz(), os.path.join(here, "mm.pyz"))
        done = subprocess.run([sys.executable, "mm.pyz", "--cwd", "/", "--demo", "-p", "hello"], cwd=here,
                              env=support.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertTrue(done.stdout.strip())


class ThePythonThatIsTooOld(unittest.TestCase):
    def test_gets_one_line_from_every_way_to_start_mm(self):
        old = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/[23].[678].*/bin/python")))
        if not old:
            self.skipTest("no Python older than 3.9 is here")
        for python in old:
            version = python.split("/")[-3].rpartition(".")[0]
            for start in ([support.pyz()], ["-m", "mm"], [os.path.join(support.PROJECT, "mm")]):
                with self.subTest(version=version, start=start):
                    done = subprocess.run([python, *start, "-acp"], env=support.environment(),
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, cwd=support.PROJECT)
                    line = "mm: Python 3.9 or later is needed, this is %s\n" % version
                    self.assertEqual((done.stdout.decode(), done.returncode), (line, 2))


class TheImporter(unittest.TestCase):
    """archive/importer.py, with parts made here in the place of an archive's."""

    def setUp(self):
        def code(source):
            return compile(source, "mm/x.py", "exec")

        self.reads = []
        start = {"mm": (True, code("name = __name__")), "mm.first": (False, code("file = __file__")),
                 "index": {"mm.second": "more", "mm.floor": "more", "mm.floor.third": "more"}}
        self.more = {"mm.second": (False, code("import mm.first")), "mm.floor": (True, None),
                     "mm.floor.third": (False, None)}
        self.rooms = script_of("importer.py").Rooms("/", start, self.part, "file of {}".format)

    def part(self, name):
        self.reads.append(name)
        return self.more

    def test_names_the_source_of_each_room(self):
        for name, origin, package in (("mm", "/src/mm/__init__.py", True),
                                      ("mm.first", "/src/mm/first.py", False),
                                      ("mm.floor", "/src/mm/floor/__init__.py", True),
                                      ("mm.floor.third", "/src/mm/floor/third.py", False)):
            spec = self.rooms.find_spec(name)
            self.assertEqual((spec.origin, spec.submodule_search_locations is not None), (origin, package))

    def test_reads_a_part_once_and_only_if_needed(self):
        for name, found, reads in (("mm.first", True, 0), ("json", False, 0), ("mm.fourth", False, 0),
                                   ("mm.second", True, 1), ("mm.floor", True, 1)):
            self.assertEqual((self.rooms.find_spec(name) is not None, len(self.reads)), (found, reads), name)

    def test_runs_a_room_and_keeps_its_code_no_longer(self):
        module = importlib.util.module_from_spec(self.rooms.find_spec("mm.first"))
        self.rooms.exec_module(module)
        self.assertEqual(module.file, "/src/mm/first.py")
        self.assertEqual(self.rooms.get_data(module.__file__), "file of /src/mm/first.py")
        self.assertIsNone(self.rooms.find_spec("mm.first"))
