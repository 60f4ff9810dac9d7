#!/bin/sh
# Builds mm.pyz, the whole of mm in one executable file.
#
#     sh zipapp.sh [OUTPUT]        OUTPUT is mm.pyz in the current folder unless given
#     sh zipapp.sh --pythons       prints the interpreters it compiles with, oldest first
#
# Inside are the sources in src/ and, for each Python 3.9 to 3.14 found on the PATH and in pyenv, their byte code in a folder
# named after that Python's cache tag: compiling the sources at each start would take longer than all else that a start does.
# A Python without such a folder runs the sources. MM_PYTHONS=/path/a:/path/b names the interpreters instead; the first one
# does the building.
#
# The same sources and interpreters give the same bytes. Entries are sorted and carry a fixed date. Each tree is compiled by a
# fresh interpreter, in a fixed order and with a fixed hash seed, because marshal writes sets in the order of their hashes and
# marks values that something else in the process refers to as well.
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
import json, os, shutil, subprocess, sys, tempfile, zipfile

# Runs in every interpreter that might be used.
IDENTIFY = "import json, sys; print(json.dumps([sys.version_info[:], sys.implementation.cache_tag, sys.executable]))"

# Runs in every interpreter that is used, with the project, the folder to fill and the sources as arguments. The third name
# given to py_compile is what tracebacks show: the path inside the project.
COMPILE = """
import sys
del sys.path[0]
import os, py_compile
project, tree, *sources = sys.argv[1:]
for source in sources:
    try:
        py_compile.compile(os.path.join(project, source), os.path.join(tree, source + "c"), source, doraise=True,
                           invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    except py_compile.PyCompileError as error:
        sys.exit("%s, line %s: %s" % (source, getattr(error.exc_value, "lineno", "?"), error.exc_type_name))
"""

# The lines down to the first exit also run on Pythons that are too old for the rest. The archive's path is made absolute
# because rooms are imported late, when the process may have moved to another folder.
MAIN = """\
import os, sys
if sys.version_info < (3, 9):
    sys.stderr.write("mm: Python 3.9 or later is needed, this is %d.%d\\n" % sys.version_info[:2])
    sys.exit(2)
archive = os.path.abspath(sys.path[0])
sys.path[:1] = [os.path.join(archive, sys.implementation.cache_tag or "src"), os.path.join(archive, "src")]
from mm.cli import script
script()
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


def files(project):
    """The package's files, as paths inside the project: sources, and what they read at run time."""
    for folder, folders, names in os.walk(os.path.join(project, "mm")):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and not name.endswith(("~", ".pyc", ".pyo", ".orig", ".rej")):
                yield os.path.relpath(os.path.join(folder, name), project)


def compile_trees(project, sources, folder):
    """Fills folder/<cache tag>/ with the byte code of each Python, all of them at once."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment["PYTHONHASHSEED"] = "0"
    running = [(path, subprocess.Popen([path, "-s", "-S", "-c", COMPILE, project, os.path.join(folder, tag)] + sources,
                                       stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment))
               for _, tag, path in interpreters()]
    for path, process in running:
        problem = process.communicate()[1].decode("utf-8", "replace").strip()
        if process.returncode:
            sys.exit("zipapp.sh: %s (%s)" % (problem.split("\n")[-1], path))


def write_archive(stream, trees):
    """`trees` are (folder, prefix in the archive, paths in both)."""
    stream.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(stream, "w") as archive:
        def add(name, content):
            entry = zipfile.ZipInfo(name.replace(os.sep, "/"), (1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
        add("__main__.py", MAIN)
        for folder, prefix, paths in trees:
            for path in paths:
                with open(os.path.join(folder, path), "rb") as file:
                    add(os.path.join(prefix, path), file.read())


def build(project, output):
    if os.path.isdir(output):
        sys.exit("zipapp.sh: %s is a folder" % output)
    if not os.path.isdir(os.path.dirname(output)):
        sys.exit("zipapp.sh: there is no folder %s" % os.path.dirname(output))
    paths = sorted(files(project))
    sources = [path for path in paths if path.endswith(".py")]
    with tempfile.TemporaryDirectory(prefix="mm-zipapp-") as folder:
        compile_trees(project, sources, folder)
        trees = [(project, "", ["LICENSE"]), (project, "src", paths)]
        trees += [(folder, "", [os.path.join(tag, path + "c") for path in sources]) for tag in sorted(os.listdir(folder))]
        # Written beside the output and then moved over it: whoever starts mm meanwhile gets the old one or the new one.
        descriptor, unfinished = tempfile.mkstemp(prefix=".mm-", dir=os.path.dirname(output))
        try:
            with open(descriptor, "wb") as stream:
                write_archive(stream, trees)
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
