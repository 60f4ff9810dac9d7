"""read_file: the text of a file, or the part of it that was asked for."""

from __future__ import annotations

import os

from mm.text import LINE_LIMIT, cut_line, plural
from mm.tools import files, similar
from mm.tools.document import Document
from mm.tools.offers import READ_LINES
from mm.tools.tool import SHOWN, Action, Result, ToolError

NAME = "read_file"


def prepare(arguments, context):
    place = context.resolve(NAME, arguments["path"])
    offset, limit = arguments.get("offset", 1), arguments.get("limit", READ_LINES)

    def run(progress):
        return Result(_read(context, place, offset, limit if limit > 0 else READ_LINES))

    return Action(files.title(NAME, place), run, (place.location,))


def _read(context, place, offset, limit):
    if os.path.isdir(place.real):
        return _listing(place)
    data = files.read(NAME, place)
    if data is None:
        raise ToolError(similar.missing(NAME, place, context.folder, context.cancel))
    context.cancel.check()
    decoded = files.decode(NAME, place, data, "look at it")
    document = Document(decoded.text)
    total = len(document.lines)
    digest = files.digest(data)
    if total == 0:
        context.seen.saw_whole(place.real, digest)
        return f"[{place.given} is empty]"
    first = max(total + offset, 0) if offset < 0 else max(offset - 1, 0)
    if first >= total:
        raise ToolError(f"[{NAME}: {place.given} has {plural(total, 'line')}]")
    most = context.shown_limit(SHOWN)
    shown = _fitting(document.lines[first:first + min(limit, most)], most)
    last = first + len(shown)
    whole = [first + 1 + index for index, line in enumerate(shown) if len(line) <= LINE_LIMIT]
    context.seen.saw_lines(place.real, digest, whole, total)

    head = f"[{place.given}: lines {first + 1}-{last} of {total}]\n" if len(shown) < total else ""
    end = "\n" if last < total or document.ends else ""
    more = f"[use offset={last + 1} to read on]" if last < total else ""
    return head + files.note(place, decoded) + "\n".join(map(cut_line, shown)) + end + more


def _fitting(lines, characters):
    """The first lines, cut ones counted as cut, that fit; at least one."""
    for count, line in enumerate(lines):
        characters -= min(len(line), LINE_LIMIT) + 1
        if characters < 0 and count:
            return lines[:count]
    return lines


def _listing(place):
    try:
        return files.listing(place)
    except OSError as error:
        raise files.failure(NAME, place, error) from None
