"""write_file: a whole file, in one step; never over one that the model has not seen."""

from __future__ import annotations

from mm import events
from mm.text import plural
from mm.tools.tool import Action, Parameter, Result, Tool, ToolError

NAME = "write_file"


def prepare(arguments, space):
    from mm.tools import files  # with the first call, here and below: many sessions write nothing
    from mm.tools.document import Document, with_newlines

    place, check = space.resolve(NAME, arguments["path"]), space.cancel.check
    before = files.read(NAME, place)
    content, old = arguments["content"], None
    like = files.Decoded(content, "utf-8", b"")
    if before is not None:
        check()
        like = files.decode(NAME, place, before, "replace it")
        document = Document(like.text, check)
        _refuse_unseen(space, place, before, document)
        old = document.flat
        content = with_newlines(content, document.newline) if "\n" in document.flat else content
    files.check_writable(NAME, place)
    after = files.encode(NAME, place, content, like)
    written = Document(content, check)
    digest = files.digest(after, check)
    diff = events.Diff(place.location, old, written.flat)

    def run(cancel, progress):
        files.unchanged(NAME, place, before)
        check()
        files.replace(NAME, place, after)
        space.saw_whole(place.real, digest)
        space.failed_edits.pop(place.real, None)
        verb = "created" if before is None else "wrote"
        return Result(f"[{verb} {place.given}: {plural(written.count, 'line')}]", diff=diff)

    return Action(files.title(NAME, place), (place.location,), True, diff, None, run)


def _refuse_unseen(space, place, before, document):
    """Raises ToolError where writing would lose what the model does not know of. An empty file has nothing to lose."""
    from mm.tools import files

    digest = files.digest(before, space.cancel.check)
    if not before or space.seen.get(place.real) == digest:
        return
    known = space.last_known(place.real)
    if known is not None and known != digest:
        raise ToolError(f"[{NAME}: {place.given} changed since you read it. Read it again.]")
    count = plural(document.count, "line")
    read, rest = ("not read it", "it") if known is None else ("read only a part of it", "the rest")
    raise ToolError(f"[{NAME}: {place.given} exists ({count}) and you have {read}. "
                    f"Read {rest} first, or use edit_file to change part of it.]")


TOOL = Tool(
    NAME,
    "Write a whole file, for new files. An existing one must have been read first; to change a part use edit_file.",
    "edit",
    (
        Parameter("path", "string", "File, relative to the working directory",
                  True, ("file_path", "filename", "file", "target_file")),
        Parameter("content", "string", "The whole new text", True, ("contents", "text", "file_text")),
    ),
    "path",
    prepare,
)
