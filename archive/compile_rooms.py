"""Compiles rooms with the Python that runs it; build.py starts it with every Python that it finds.

    compile_rooms.py PROJECT FOLDER PARTS     PARTS is JSON: {part: {room: path inside the project}}

Writes one file for each part into the folder, named for this Python's byte code: a marshalled dictionary
{room: (whether it is a package, its code)}. The part "start" also has the importer, and the index {room:
part}. Code has no docstrings and no columns, which nothing in mm reads; its files are named as inside the
project, which is what tracebacks show.

marshal marks values that something else in the process refers to as well. So the same bytes come only from a
fresh process that does the same in the same order.
"""

import sys

del sys.path[0]  # this folder: what is imported below comes from the standard library

import importlib.util  # noqa: E402
import json  # noqa: E402
import marshal  # noqa: E402
import os  # noqa: E402


def compiled(path: str, name: str):
    """The code of the source at `path`; `name` is what it is called in tracebacks."""
    with open(path, "rb") as file:
        try:
            return compile(file.read(), name, "exec", dont_inherit=True, optimize=2)
        except SyntaxError as error:
            sys.exit("%s, line %s: %s" % (name, error.lineno, error.msg))


def main(project: str, folder: str, parts: str) -> None:
    magic = int.from_bytes(importlib.util.MAGIC_NUMBER[:2], "little")
    parts = json.loads(parts)
    for part, rooms in parts.items():
        codes = {}
        for room, path in rooms.items():
            codes[room] = path.endswith("__init__.py"), compiled(os.path.join(project, path), path)
        if part == "start":
            importer = os.path.join(os.path.dirname(os.path.abspath(__file__)), "importer.py")
            codes["importer"] = False, compiled(importer, "importer.py")
            codes["index"] = {room: part for part,
                              rooms in parts.items() if part != "start" for room in rooms}
        with open(os.path.join(folder, "%s.%d.%s" % (sys.implementation.cache_tag, magic, part)),
                  "wb") as file:
            marshal.dump(codes, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
