"""read_file: the text of a file, or the part of it that was asked for."""

from __future__ import annotations

import os

from mm.text import LINE_LIMIT, cut_line, plural
from mm.tools.tool import SHOWN, Action, Parameter, Result, Tool, ToolError

NAME = "read_file"
# Shown unless `limit` asks for another number; SHOWN characters bind always.
LINES = 1000


def prepare(arguments, space):
    from mm.tools import files  # with the first call, here and below: many sessions read nothing

    place = space.resolve(NAME, arguments["path"])
    offset, limit = arguments.get("offset", 1), arguments.get("limit", LINES)

    def run(cancel, progress):
        return Result(_read(space, place, offset, limit if limit > 0 else LINES, cancel))

    return Action(files.title(NAME, place), (place.location,), False, None, None, run)


def _read(space, place, offset, limit, cancel):
    from mm.tools import files, similar
    from mm.tools.document import Document

    if os.path.isdir(place.real):
        return _listing(place, cancel)
    data = files.read(NAME, place)
    if data is None:
        raise ToolError(similar.missing(NAME, place, space.cwd, cancel))
    cancel.check()
    decoded = files.decode(NAME, place, data, "look at it")
    document = Document(decoded.text, cancel.check)
    total = document.count
    digest = files.digest(data, cancel.check)
    if total == 0:
        space.saw_whole(place.real, digest)
        return f"[{place.given} is empty]"
    first = max(total + offset, 0) if offset < 0 else max(offset - 1, 0)
    if first >= total:
        raise ToolError(f"[{NAME}: {place.given} has {plural(total, 'line')}]")
    most = space.shown_limit(SHOWN)
    shown = _fitting(document.lines(first, first + min(limit, most)), most)
    last = first + len(shown)
    whole = [first + 1 + index for index, line in enumerate(shown) if len(line) <= LINE_LIMIT]
    space.saw_lines(place.real, digest, whole, total)

    head = f"[{place.given}: lines {first + 1}-{last} of {total}]\n" if len(shown) < total else ""
    note = "[decoded as latin-1]\n" if decoded.encoding == "latin-1" else ""
    end = "\n" if last < total or document.ends else ""
    more = f"[use offset={last + 1} to read on]" if last < total else ""
    return head + note + "\n".join(map(cut_line, shown)) + end + more


def _fitting(lines, characters):
    """The first lines, cut ones counted as cut, that fit; at least one."""
    for count, line in enumerate(lines):
        characters -= min(len(line), LINE_LIMIT) + 1
        if characters < 0 and count:
            return lines[:count]
    return lines


def _listing(place, cancel):
    from mm.tools import files

    try:
        return files.listing(place, cancel.check)
    except OSError as error:
        raise files.failure(NAME, place, error) from None


TOOL = Tool(
    NAME,
    f"Read a text file, without line numbers: at most {LINES} lines and {SHOWN} characters a call. "
    "A folder gives its listing.",
    "read",
    (
        Parameter("path", "string", "File or folder, relative to the working directory",
                  True, ("file_path", "filename", "file", "target_file")),
        Parameter("offset", "integer", "First line, from 1; negative: from the end",
                  False, ("start", "start_line", "line", "line_start")),
        Parameter("limit", "integer", f"Number of lines, default {LINES}", False, ("lines", "max_lines", "count")),
    ),
    "path",
    prepare,
)
