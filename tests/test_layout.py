"""The house keeps its shape: floors, sizes, and what a start imports."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import unittest
import zipfile

from tests import support
from tests.fakes.model_server import ModelServer

# Floors by folder, and ground-floor and top rooms by name. A room imports from its own floor and from those
# below.
FLOORS = {"config": 0, "wire": 1, "model": 1, "peers": 2, "transcripts": 2, "conversation": 3, "skills": 3,
          "tools": 4, "engine": 5, "fronts": 6}
GROUND, TOP = 0, 7
TOP_ROOMS = {"mm.cli", "mm.__main__"}

# "Places to look" and "too long", in lines.
LONG_FILE, LONGEST_FILE = 400, 450
LONG_FUNCTION, LONGEST_FUNCTION = 40, 60

# What may be imported before `initialize` is answered, from the standard library and from the house. Nothing
# else: each module costs every start its milliseconds and every idle mm its memory.
START_MODULES = ("__future__", "sys", "os", "json", "threading", "time", "re", "collections")
START_ROOMS = {
    "mm", "mm.cli", "mm.config", "mm.config.config", "mm.config.keys", "mm.config.places", "mm.log",
    "mm.cancel", "mm.errors", "mm.json_text", "mm.wire", "mm.wire.framing", "mm.wire.messages",
    "mm.wire.peer", "mm.wire.streams", "mm.fronts", "mm.fronts.acp", "mm.fronts.acp.server",
}


def rooms() -> dict:
    """Every module of the package by its dotted name: (path inside the project, its source, whether it is a
    package).
    """
    found = {}
    for folder, folders, names in os.walk(os.path.join(support.PROJECT, "mm")):
        folders[:] = sorted(set(folders) - {"__pycache__"})
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.relpath(os.path.join(folder, name), support.PROJECT)
                parts = path[:-3].split(os.sep)
                is_package = parts[-1] == "__init__"
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found[".".join(parts[:-1] if is_package else parts)] = path, file.read(), is_package
    return found


def imports(name: str, source: str, is_package: bool) -> set:
    """The dotted names that a module imports anywhere, inside its functions too; `from a import b` gives a
    and a.b.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = name.split(".")
            here = parts if is_package else parts[:-1]
            base = here[: len(here) - node.level + 1] if node.level else []
            stem = ".".join(base + ([node.module] if node.module else []))
            found.add(stem)
            found.update("%s.%s" % (stem, alias.name) for alias in node.names)
    return found


def floor(name: str) -> int:
    if name in TOP_ROOMS:
        return TOP
    parts = name.split(".")
    return FLOORS.get(parts[1], GROUND) if len(parts) > 1 else GROUND


def circle(uses: dict) -> list:
    """The names along one circle of imports, the first one again at the end; empty where there is none."""
    done = set()

    def walk(name, path):
        if name in path:
            return path[path.index(name):] + [name]
        if name not in done:
            for used in sorted(uses[name]):
                found = walk(used, path + [name])
                if found:
                    return found
            done.add(name)
        return []

    return next(filter(None, (walk(name, []) for name in sorted(uses))), [])


class TheFloors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rooms = rooms()
        cls.imported = {name: imports(name, source, package) for name,
                        (_, source, package) in cls.rooms.items()}
        cls.uses = {name: {used for used in found if used in cls.rooms and used not in ("mm", name)}
                    for name, found in cls.imported.items()}

    def test_every_folder_is_a_floor(self):
        folders = {name.split(".")[1] for name, (_, _, package) in self.rooms.items() if package
                   and name != "mm"}
        self.assertLessEqual(folders, set(FLOORS))

    def test_no_room_imports_from_a_floor_above(self):
        climbing = ["%s -> %s" % (name, used) for name in self.uses for used in self.uses[name]
                    if floor(used) > floor(name)]
        self.assertEqual(climbing, [])

    def test_there_is_no_circle(self):
        self.assertEqual(circle(self.uses), [])

    def test_a_circle_would_be_found(self):
        self.assertEqual(circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}), ["b", "c", "b"])

    def test_a_package_imports_nothing_by_itself(self):
        self.assertEqual([name for name, (_, _, package) in self.rooms.items()
                          if package and self.imported[name] - {"__future__", "__future__.annotations"}], [])

    @unittest.skipUnless(hasattr(sys, "stdlib_module_names"), "Python 3.9 has no list of its modules")
    def test_nothing_but_the_standard_library_is_imported(self):
        foreign = {"%s -> %s" % (name, used) for name, found in self.imported.items() for used in found
                   if used.split(".")[0] not in sys.stdlib_module_names | {"mm"}}
        self.assertEqual(foreign, set())

    def test_annotations_are_never_evaluated(self):
        self.assertEqual([path for path, source, _ in self.rooms.values()
                          if ast.parse(source).body[1:] and "from __future__ import annotations" not in source
                          and not path.endswith(("__init__.py", "__main__.py"))], [])

    def test_nothing_reads_what_the_zipapp_leaves_out(self):
        left_out = ("__doc__", "getdoc")
        self.assertEqual([(path, node.lineno) for path, source,
                          _ in self.rooms.values() for node in ast.walk(ast.parse(source))
                          if getattr(node, "attr", getattr(node, "id", None)) in left_out], [])


class TheSizes(unittest.TestCase):
    def test_files_and_functions_stay_readable(self):
        long, too_long = [], []
        for path, source, _ in rooms().values():
            sizes = [(path, source.count("\n"), LONG_FILE, LONGEST_FILE)]
            sizes += [("%s:%d %s" % (path, node.lineno, node.name), node.end_lineno - node.lineno + 1,
                       LONG_FUNCTION, LONGEST_FUNCTION)
                      for node in ast.walk(ast.parse(source))
                      if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
            long += ["%s: %d lines" % (what, lines) for what, lines, limit, _ in sizes if lines > limit]
            too_long += ["%s: %d lines" % (what, lines) for what, lines, _, limit in sizes if lines > limit]
        if long:
            print("\nPlaces to look at, for their length:\n  " + "\n  ".join(long), file=sys.stderr)
        self.assertEqual(too_long, [])


class AnImport(unittest.TestCase):
    def test_prints_nothing_and_starts_no_thread(self):
        program = "import importlib, sys, threading\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n" \
                  "sys.exit(threading.active_count() - 1)"
        names = sorted(set(rooms()) - {"mm.__main__"})
        done = subprocess.run([sys.executable, "-B", "-c", program] + names, cwd=support.PROJECT,
                              env=support.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual((done.stdout.decode(), done.returncode), ("", 0))


class TheStart(unittest.TestCase):
    def test_imports_only_what_the_answer_to_initialize_needs(self):
        loaded = loaded_before('"agentInfo"', "initialize")
        own = {name for name in loaded if name.split(".")[0] == "mm"}
        self.assertEqual(own - START_ROOMS, set(), "rooms that the start imports beyond the list")
        self.assertEqual(START_ROOMS & set(rooms()) - own, set(), "rooms on the list that the start does not "
                                                                  "import")
        self.assertEqual(loaded - own - loaded_by_a_bare_zipapp(), set(),
                         "modules beyond %s" % (START_MODULES,))

    def test_leaves_what_only_a_prompt_needs_to_the_first_prompt(self):
        # These double the memory of a session that waits for its first prompt.
        loaded = loaded_before("available_commands_update", "initialize", "session/new")
        late = {"http.client", "urllib.request", "ssl", "subprocess", "mm.model.http", "mm.engine.turn",
                "mm.tools.bash"}
        self.assertEqual(loaded & late, set())

    def test_gets_ready_for_a_first_prompt(self):
        command = [sys.executable, "-I", "-S", "-X", "importtime", support.pyz(), "-acp"]
        with ModelServer([{"text": "ok"}]) as server:
            env = support.environment(MM_URL=server.url, MM_MODEL="m")
            with support.Client(command=command, env=env) as client:
                session = client.new_session()
                client.wait_for(lambda: re.search(r"mm\.model\.find$", client.stderr, re.MULTILINE))
                loaded = set(IMPORTED.findall(client.stderr))
                client.prompt(session, "go")
        more = {name for name in IMPORTED.findall(client.stderr) if name.startswith("mm.")} - loaded
        self.assertEqual(more, set(), "rooms that the first prompt had to load")

    def test_leaves_what_only_some_turns_need_to_them(self):
        # Most of it runs from its source: a millisecond for each 20 lines.
        with ModelServer([{"text": "ok"}]) as server:
            done = subprocess.run([sys.executable, "-I", "-S", "-X", "importtime", support.pyz(), "-p", "x"],
                                  stdin=subprocess.DEVNULL,
                                  env=support.environment(MM_URL=server.url, MM_MODEL="m"),
                                  capture_output=True, check=True)
        late = {"mm.engine.compact", "mm.engine.hook_program", "mm.conversation.compaction",
                "mm.conversation.store", "mm.model.failures", "mm.model.fixes", "mm.model.text_calls.formats",
                "mm.model.text_calls.scanner", "mm.tools.files", "mm.tools.document", "mm.tools.matching",
                "mm.tools.bash", "mm.tools.edit_file", "mm.tools.plan", "mm.tools.ask_user",
                "mm.tools.fetch_content", "mm.tools.lsp", "mm.tools.read_file", "mm.tools.read_skill",
                "mm.tools.write_file", "mm.tools.mcp", "mm.peers.mcp", "mm.peers.program", "platform",
                "difflib", "html.parser"}
        loaded = set(IMPORTED.findall(done.stderr.decode()))
        self.assertIn("mm.model.chat", loaded)
        self.assertEqual(loaded & late, set())


# A line of `-X importtime`: self us | cumulative us | indented name.
IMPORTED = re.compile(r"^import time:\s*\d+ \|\s*\d+ \|\s*(\S+)$", re.MULTILINE)


def loaded_by_a_bare_zipapp() -> set:
    """The modules that a zipapp loads which does nothing but import START_MODULES."""
    path = os.path.join(support.scratch_folder(), "bare.pyz")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", "import " + ", ".join(START_MODULES))
    done = subprocess.run([sys.executable, "-I", "-S", "-X", "importtime", path], env=support.environment(),
                          stderr=subprocess.PIPE, check=True)
    return set(IMPORTED.findall(done.stderr.decode()))


@contextlib.contextmanager
def killed_late(process: subprocess.Popen):
    """Kills the process if what is done with it takes longer than anything may."""
    timer = threading.Timer(support.DEADLINE, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def loaded_before(mark: str, *methods) -> set:
    """The modules that `mm -acp` has loaded when it writes the first line with this mark, after requests of
    these methods.

    Imports are reported on stderr; with both streams in one pipe they stand before that line or behind it. An mm that does
    not write the mark is killed after a while, so that its last words are shown.
    """
    cwd = support.scratch_folder()
    params = {"protocolVersion": 1, "cwd": cwd, "mcpServers": []}
    command = [sys.executable, "-I", "-S", "-X", "importtime", support.pyz(), "-acp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=support.environment(), cwd=cwd) as process, killed_late(process):
        for number, method in enumerate(methods):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        log = b""
        while mark.encode() not in log:
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                raise AssertionError("mm ended or hung: " + log.decode()[-2000:])
            log += data
        process.stdin.close()
        process.stdout.read()
    return set(IMPORTED.findall(log[:log.index(mark.encode())].decode()))
