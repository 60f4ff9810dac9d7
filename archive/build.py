"""Builds mm.pyz; zipapp.sh runs this with the first Python that it finds.

    build.py PROJECT OUTPUT        writes the archive
    build.py PROJECT --pythons     prints the interpreters that it compiles with, oldest first

Inside are the sources in src/ and, for each Python 3.9 to 3.14 found on the PATH and in pyenv, the byte code:
compiling the sources would take longer than everything else that a start does. A Python without byte code
runs the sources. MM_PYTHONS=/path/a:/path/b names the interpreters instead; the first one does the building.

Byte code comes in parts, each of which is read when the first of its rooms is needed. An entry for each room
would make the archive half as large again and a start a sixth slower. Rooms of no part run from their
sources: with all of them the archive would be 2.3 MB, and it may have 1.5 MiB. They wait for other programs,
for the network or for a developer, and compiling them is not noticed beside that.

The same sources and interpreters give the same bytes: entries are in a fixed order and carry a fixed date,
and each Python compiles in a fresh process, in a fixed order and with a fixed hash seed.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))

# What a part is made of: these rooms, what they import, and what that imports, without the parts above it. A
# part that is read stays in memory until its rooms have run, so each holds what is needed at the same time:
# "start" until `mm -acp` has answered `initialize`, "prompt" while it gets ready for a first prompt, "call"
# with the first call of the model, "settings" with a configuration file. tests/test_zipapp.py looks that none
# is missing.
PARTS = {
    "start": ("mm.cli", "mm.config.config", "mm.fronts.acp.server"),
    "prompt": ("mm.engine.prepared", "mm.engine.process", "mm.fronts.acp.open_session",
               "mm.fronts.acp.prompting", "mm.model.find", "mm.model.window", "mm.replacing",
               "mm.peers", "mm.peers.languages"),
    "call": ("mm.model.text_calls.scanner", "mm.tools.bash"),
    "settings": ("mm.config.schema", "mm.config.trust", "mm.config.entries"),
    "chat": ("mm.fronts.terminal.chat", "mm.fronts.once"),
}

# Runs in every interpreter that might be used.
IDENTIFY = """import json, sys
print(json.dumps([sys.version_info[:], sys.implementation.cache_tag, sys.executable]))"""


def interpreters():
    """(version, cache tag, path) of each Python to compile with: this one, and the newest patch of the other
    versions.
    """
    named = [path for path in os.environ.get("MM_PYTHONS", "").split(":") if path]
    pyenv = os.path.join(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"), "versions")
    installed = sorted(os.listdir(pyenv)) if os.path.isdir(pyenv) else []
    candidates = named or (["python3.%d" % minor for minor in range(9, 15)]
                           + [os.path.join(pyenv, name, "bin", "python3") for name in installed])
    found = {}
    for path, process in [(path, identify(path)) for path in candidates]:
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


def identify(path):
    """The started process that says which Python this is, or None."""
    if not shutil.which(path):
        return None
    return subprocess.Popen([path, "-I", "-S", "-c", IDENTIFY],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def package_files(project):
    """The package's files, as paths inside the project: sources, and what they read at run time."""
    for folder, folders, names in os.walk(os.path.join(project, "mm")):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and not name.endswith(("~", ".pyc", ".pyo", ".orig", ".rej")):
                yield os.path.relpath(os.path.join(folder, name), project)


def parts_of(project, sources):
    """{part: {room: path inside the project}}, in a fixed order."""
    paths = {room_of(path): path for path in sources}
    taken, parts = set(), {}
    for part, roots in PARTS.items():
        found, todo = set(), list(roots)
        while todo:
            room = todo.pop()
            if room in paths and room not in taken:
                taken.add(room)
                found.add(room)
                todo += imports(project, paths[room]) + [room.rpartition(".")[0]]
        parts[part] = {room: paths[room] for room in sorted(found)}
    return parts


def room_of(path):
    """The dotted name of a source."""
    room = path[:-len(".py")].replace(os.sep, ".")
    return room[:-len(".__init__")] if room.endswith(".__init__") else room


def imports(project, path):
    """The names that a source imports while it is imported itself: those in its functions come later.

    Relative imports are not used in mm.
    """
    found = []
    with open(os.path.join(project, path), "rb") as file:
        try:
            tree = ast.parse(file.read())
        except SyntaxError as error:
            sys.exit("zipapp.sh: %s, line %s: %s" % (path, error.lineno, error.msg))
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
    script = os.path.join(HERE, "compile_rooms.py")
    command = ["-s", "-S", "-X", "no_debug_ranges", script, project, folder, json.dumps(parts)]
    running = [(path, subprocess.Popen([path] + command, env=environment,
                                       stdin=subprocess.DEVNULL, stderr=subprocess.PIPE))
               for _, _, path in interpreters()]
    for path, process in running:
        problem = process.communicate()[1].decode("utf-8", "replace").strip()
        if process.returncode:
            sys.exit("zipapp.sh: %s (%s)" % (problem.split("\n")[-1], path))


def write_archive(stream, files):
    """`files` are (name in the archive, path), in their order."""
    stream.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(stream, "w") as archive:
        for name, path in files:
            entry = zipfile.ZipInfo(name.replace(os.sep, "/"), (1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            with open(path, "rb") as file:
                archive.writestr(entry, file.read(), zipfile.ZIP_DEFLATED, 9)


def build(project, output):
    if os.path.isdir(output):
        sys.exit("zipapp.sh: %s is a folder" % output)
    if not os.path.isdir(os.path.dirname(output)):
        sys.exit("zipapp.sh: there is no folder %s" % os.path.dirname(output))
    paths = sorted(package_files(project))
    with tempfile.TemporaryDirectory(prefix="mm-zipapp-") as folder:
        compile_parts(project, parts_of(project, [path for path in paths if path.endswith(".py")]), folder)
        files = [("__main__.py", os.path.join(HERE, "main.py"))]
        files += [(name, os.path.join(folder, name)) for name in sorted(os.listdir(folder))]
        files += [("LICENSE", os.path.join(project, "LICENSE"))]
        files += [(os.path.join("src", path), os.path.join(project, path)) for path in paths]
        # Written beside the output and then moved over it: whoever starts mm meanwhile gets the old one or
        # the new one.
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


if __name__ == "__main__":
    main(*sys.argv[1:])
