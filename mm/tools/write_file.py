"""write_file: a whole file, in one step; never over one that the model has not seen."""

from __future__ import annotations

from mm import events
from mm.text import plural
from mm.tools import files
from mm.tools.document import Document, with_newlines
from mm.tools.tool import Action, Result, ToolError

NAME = "write_file"


def prepare(arguments, context):
    place, check = context.resolve(NAME, arguments["path"]), context.cancel.check
    before = files.read(NAME, place)
    content, old = arguments["content"], None
    like = files.Decoded(content, "utf-8")
    if before is not None:
        check()
        like = files.decode(NAME, place, before, "replace it")
        document = Document(like.text)
        _refuse_unseen(context, place, before, document)
        old = document.flat
        content = with_newlines(content, document.newline) if "\n" in document.flat else content
    files.check_writable(NAME, place)
    after = files.encode(NAME, place, content, like)
    written = Document(content)
    digest = files.digest(after)
    diff = events.Diff(place.location, old, written.flat)

    def run(progress):
        files.unchanged(NAME, place, before)
        check()
        files.replace(NAME, place, after)
        context.seen.saw_whole(place.real, digest)
        context.seen.failed_edits.pop(place.real, None)
        verb = "created" if before is None else "wrote"
        return Result(f"[{verb} {place.given}: {plural(len(written.lines), 'line')}]", diff=diff)

    return Action(files.title(NAME, place), run, (place.location,), asks=True, diff=diff)


def _refuse_unseen(context, place, before, document):
    """Raises ToolError if the file holds something that the model has not seen, which would be lost."""
    digest = files.digest(before)
    if not before or context.seen.knows_whole(place.real, digest):
        return
    known = context.seen.last_known(place.real)
    if known is not None and known != digest:
        raise ToolError(f"[{NAME}: {place.given} changed since you read it. Read it again.]")
    count = plural(len(document.lines), "line")
    read, rest = ("not read it", "it") if known is None else ("read only a part of it", "the rest")
    raise ToolError(f"[{NAME}: {place.given} exists ({count}) and you have {read}. "
                    f"Read {rest} first, or use edit_file to change part of it.]")
