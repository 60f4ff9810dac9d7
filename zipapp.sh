#!/bin/sh
# Builds mm.pyz, the whole of mm in one executable file.
#
#     sh zipapp.sh [OUTPUT]        OUTPUT is mm.pyz in the current folder unless given
#     sh zipapp.sh --pythons       prints the interpreters it compiles with, oldest first
#
# Inside are the sources in src/ and, for each Python 3.9 to 3.14 found on the PATH and in pyenv, byte code: compiling the
# sources would take longer than all else that a start does. A Python without byte code runs the sources.
# MM_PYTHONS=/path/a:/path/b names the interpreters instead; the first one does the building.
#
# Byte code comes in parts: what `mm -acp` imports until it has answered `initialize`, what a session adds to that, what a
# configuration file and what the first prompt. Each is one marshalled dictionary, because an entry for
# each room would make the archive half as large again and a start a sixth slower. It has no docstrings, annotations or columns,
# which nothing in mm reads.
#
# The same sources and interpreters give the same bytes. Entries are in a fixed order and carry a fixed date. Each Python
# compiles in a fresh process, in a fixed order and with a fixed hash seed, because marshal writes sets in the order of their
# hashes and marks values that something else in the process refers to as well.
set -eu

fail() {
    printf 'zipapp.sh: %s\n' "$1" >&2
    exit 1
}

case ${1-} in
    --pythons) ;;
    -*) fail "there is no option $1; usage: sh zipapp.sh [OUTPUT]" ;;
esac
[ $# -le 1 ] || fail "more than one OUTPUT; usage: sh zipapp.sh [OUTPUT]"

python=${MM_PYTHONS:-python3}
python=${python%%:*}
command -v "$python" >/dev/null 2>&1 || fail "there is no $python: install Python 3.9 or later"
version=$("$python" -c 'import sys; print("%d %d" % sys.version_info[:2])' 2>/dev/null) ||
    fail "$python does not run: install Python 3.9 or later"
[ "${version% *}" -gt 3 ] || { [ "${version% *}" -eq 3 ] && [ "${version#* }" -ge 9 ]; } ||
    fail "$python is Python ${version% *}.${version#* }: install Python 3.9 or later"

project=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
exec "$python" -I -S - "$project" "${1:-mm.pyz}" <<'PYTHON'
import ast, json, os, shutil, subprocess, sys, tempfile, zipfile

# The rooms whose imports, and the imports of those, make a part. A room belongs to the first part that has it.
PARTS = {"start": ("mm.cli", "mm.config.config", "mm.fronts.acp.server"),
         "session": ("mm.engine.agent", "mm.fronts.acp.open_session"),
         "settings": ("mm.config.config_file", "mm.config.schema", "mm.config.trust", "mm.config.entries", "mm.regular_file"),
         "prompt": ("mm.fronts.acp.prompting", "mm.model.servers")}

# Left to the sources all the same, for the archive's size: what most turns do not need, and what the first prompt can wait for,
# some 30 ms once a process.
SOURCES_DO = ("mm.conversation.compaction", "mm.engine.compact", "mm.engine.hooks", "mm.model.dialects", "mm.model.failures",
              "mm.model.makes", "mm.model.markup", "mm.model.mending", "mm.model.question", "mm.model.retries",
              "mm.model.servers", "mm.tools.ask_user", "mm.tools.edit_file", "mm.tools.editing", "mm.tools.fetch_content",
              "mm.tools.fetching", "mm.tools.files", "mm.tools.matching", "mm.tools.plan", "mm.tools.planning",
              "mm.tools.questions", "mm.tools.read_file", "mm.tools.similar", "mm.tools.write_file")

# Runs in every interpreter that might be used.
IDENTIFY = "import json, sys; print(json.dumps([sys.version_info[:], sys.implementation.cache_tag, sys.executable]))"

# Runs in every interpreter that is used, with the project, the folder to write to, the parts as JSON ({part: {room: path inside
# the project}}) and the importer's source. The path is also what tracebacks show.
COMPILE = r"""
import sys
del sys.path[0]
import __future__, ast, importlib.util, json, marshal, os
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef

def lean(tree):
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, FUNCTIONS + (ast.ClassDef, ast.Module)) and ast.get_docstring(node, clean=False) is not None:
            node.body[:1] = [] if node.body[1:] else [ast.copy_location(ast.Pass(), node.body[0])]
    # Said by a flag instead, it does not have to be imported.
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
    return tree

project, folder, parts, importer = sys.argv[1:]
magic = int.from_bytes(importlib.util.MAGIC_NUMBER[:2], "little")
for part, rooms in json.loads(parts).items():
    codes = {}
    for room, path in rooms.items():
        with open(os.path.join(project, path), "rb") as file:
            try:
                code = compile(lean(ast.parse(file.read())), path, "exec", __future__.annotations.compiler_flag, True)
            except SyntaxError as error:
                sys.exit("%s, line %s: %s" % (path, error.lineno, error.msg))
        codes[room] = path.endswith("__init__.py"), code
    if part == "start":
        codes["importer"] = compile(importer, "importer", "exec", dont_inherit=True)
        codes["index"] = {room: part for part, rooms in json.loads(parts).items() for room in rooms}
    with open(os.path.join(folder, "%s.%d.%s" % (sys.implementation.cache_tag, magic, part)), "wb") as file:
        marshal.dump(codes, file)
"""

# The lines down to the first exit also run on Pythons that are too old for the rest. The archive's path is made absolute
# because rooms are imported late, when the process may have moved to another folder. These lines are compiled at each start,
# so the importer is not among them.
MAIN = r"""import os, sys
if sys.version_info < (3, 9):
    sys.stderr.write("mm: Python 3.9 or later is needed, this is %d.%d\n" % sys.version_info[:2])
    sys.exit(2)
import importlib.util, marshal, zipimport
archive = os.path.abspath(sys.path[0])
sys.path[0] = os.path.join(archive, "src")
get_data = zipimport.zipimporter(archive).get_data
version = "%s.%d." % (sys.implementation.cache_tag, int.from_bytes(importlib.util.MAGIC_NUMBER[:2], "little"))
try:
    parts = {"start": marshal.loads(get_data(version + "start"))}
except OSError:
    pass
else:
    exec(parts["start"].pop("importer"))
from mm.cli import script
script()
"""

# Finds and loads the rooms that are here as byte code; the interpreter finds all others in src/. Files there are what the
# rooms call their own, so that they find what lies beside them and tracebacks find the sources.
IMPORTER = r"""
import importlib.machinery
index = parts["start"].pop("index")

class Rooms:
    archive = archive
    get_data = get_data

    @classmethod
    def room(cls, name):
        part = index.get(name)
        if part and part not in parts:
            parts[part] = marshal.loads(get_data(version + part))
        return parts[part][name] if part else None

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        room = cls.room(name)
        if room:
            place = os.path.join(sys.path[0], *name.split("."))
            file = os.path.join(place, "__init__.py") if room[0] else place + ".py"
            spec = importlib.machinery.ModuleSpec(name, cls, origin=file, is_package=room[0])
            spec.has_location = True
            if room[0]:
                spec.submodule_search_locations.append(place)
            return spec

    @classmethod
    def create_module(cls, spec):
        return None

    @classmethod
    def exec_module(cls, module):
        exec(cls.room(module.__name__)[1], module.__dict__)

    @classmethod
    def get_source(cls, name):
        return get_data(sys.modules[name].__file__).decode()

sys.meta_path.insert(0, Rooms)
"""


def interpreters():
    """(version, cache tag, path) of each Python to compile with: this one, and the newest patch of every other version."""
    named = [path for path in os.environ.get("MM_PYTHONS", "").split(":") if path]
    pyenv = os.path.join(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"), "versions")
    installed = sorted(os.listdir(pyenv)) if os.path.isdir(pyenv) else []
    candidates = named or (["python3.%d" % minor for minor in range(9, 15)]
                           + [os.path.join(pyenv, name, "bin", "python3") for name in installed])
    asked = [(path, subprocess.Popen([path, "-I", "-S", "-c", IDENTIFY], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL) if shutil.which(path) else None) for path in candidates]
    found = {}
    for path, process in asked:
        answer = process.communicate()[0] if process else b""
        if process and process.returncode == 0:
            version, tag, executable = json.loads(answer)
            if [3, 9] <= version[:2] <= [3, 14] and version > found.get(tag, ([], ""))[0]:
                found[tag] = version, executable
        elif named:
            sys.exit("zipapp.sh: %s does not run" % path)
        # else it is a version manager's stand-in for a version that is not chosen here
    found[sys.implementation.cache_tag] = list(sys.version_info), sys.executable
    return sorted((version, tag, path) for tag, (version, path) in found.items())


def package_files(project):
    """The package's files, as paths inside the project: sources, and what they read at run time."""
    for folder, folders, names in os.walk(os.path.join(project, "mm")):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and not name.endswith(("~", ".pyc", ".pyo", ".orig", ".rej")):
                yield os.path.relpath(os.path.join(folder, name), project)


def parts_of(project, sources):
    """{part: {room: path}}, in a fixed order."""
    paths, uses = {}, {}
    for path in sources:
        room = path[:-len(".py")].replace(os.sep, ".")
        room = room[:-len(".__init__")] if room.endswith(".__init__") else room
        with open(os.path.join(project, path), "rb") as file:
            try:
                paths[room], uses[room] = path, imports(ast.parse(file.read()))
            except SyntaxError as error:
                sys.exit("zipapp.sh: %s, line %s: %s" % (path, error.lineno, error.msg))
    taken, parts = set(SOURCES_DO), {}
    for part, roots in PARTS.items():
        found, todo = set(), list(roots)
        while todo:
            room = todo.pop()
            if room in paths and room not in taken:
                taken.add(room)
                found.add(room)
                todo += uses[room] + [room.rpartition(".")[0]]
        parts[part] = {room: paths[room] for room in sorted(found)}
    return parts


def imports(tree):
    """The names that a source imports as it is imported itself, not in a function; relative imports are not used in mm."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module] + ["%s.%s" % (node.module, alias.name) for alias in node.names]
    return found


def compile_parts(project, parts, folder):
    """Fills the folder with the byte code of each Python, all of them at once."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment["PYTHONHASHSEED"] = "0"
    command = ["-s", "-S", "-X", "no_debug_ranges", "-c", COMPILE, project, folder, json.dumps(parts), IMPORTER]
    running = [(path, subprocess.Popen([path] + command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment))
               for _, _, path in interpreters()]
    for path, process in running:
        problem = process.communicate()[1].decode("utf-8", "replace").strip()
        if process.returncode:
            sys.exit("zipapp.sh: %s (%s)" % (problem.split("\n")[-1], path))


def write_archive(stream, files):
    """`files` are (name in the archive, path), in their order."""
    stream.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(stream, "w") as archive:
        def add(name, content):
            entry = zipfile.ZipInfo(name.replace(os.sep, "/"), (1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
        add("__main__.py", MAIN)
        for name, path in files:
            with open(path, "rb") as file:
                add(name, file.read())


def build(project, output):
    if os.path.isdir(output):
        sys.exit("zipapp.sh: %s is a folder" % output)
    if not os.path.isdir(os.path.dirname(output)):
        sys.exit("zipapp.sh: there is no folder %s" % os.path.dirname(output))
    paths = sorted(package_files(project))
    with tempfile.TemporaryDirectory(prefix="mm-zipapp-") as folder:
        compile_parts(project, parts_of(project, [path for path in paths if path.endswith(".py")]), folder)
        files = [(name, os.path.join(folder, name)) for name in sorted(os.listdir(folder))]
        files += [("LICENSE", os.path.join(project, "LICENSE"))]
        files += [(os.path.join("src", path), os.path.join(project, path)) for path in paths]
        # Written beside the output and then moved over it: whoever starts mm meanwhile gets the old one or the new one.
        descriptor, unfinished = tempfile.mkstemp(prefix=".mm-", dir=os.path.dirname(output))
        try:
            with open(descriptor, "wb") as stream:
                write_archive(stream, files)
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(unfinished, 0o777 & ~umask)
            os.replace(unfinished, output)
        except BaseException:
            os.unlink(unfinished)
            raise


def main(project, output):
    try:
        if output == "--pythons":
            print("\n".join(path for _, _, path in interpreters()))
        else:
            build(project, os.path.abspath(output))
    except OSError as error:
        sys.exit("zipapp.sh: %s" % error)
    except KeyboardInterrupt:
        sys.exit(130)


main(*sys.argv[1:])
PYTHON
