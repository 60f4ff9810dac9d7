"""A call of edit_file: one piece of text in a file replaced by another, everywhere else not a byte changed."""

from __future__ import annotations

from itertools import islice

from mm import events
from mm.text import cut_line, plural
from mm.tools import files, matching, similar
from mm.tools.document import Document, flatten
from mm.tools.tool import SHOWN, Action, Result, ToolError

NAME = "edit_file"
# The longest file that is edited, in lines: all of them are gone through, several times where nothing is found.
LINES = 2000000
# After this many failures in a row on one file the model is shown all of it, if it is no longer than that.
FAILURES = 2
REWRITTEN_LINES = 300
# What a result shows of the file around the changes, in lines and characters a line.
CONTEXT, CONTEXT_IN_ALL, CONTEXT_LINE = 3, 20, 300
# So many changes are looked at for that from either end; there may be a million in one line.
CONTEXT_CHANGES = 1000
# At most so many places are named.
PLACES = 10

_HOW = {
    matching.EXACT: "",
    matching.TRAILING: "; old_string differed in blanks at line ends",
    matching.BLANKS: "; old_string differed in blanks, the indentation of the file was kept",
    matching.NUMBERED: "; the line numbers in old_string were ignored",
}


def prepare(arguments, context):
    place, check = context.resolve(NAME, arguments["path"]), context.cancel.check
    old, new = flatten(arguments["old_string"]), flatten(arguments["new_string"])
    if not old:
        raise ToolError(f"[{NAME}: old_string is empty; use write_file to create a file]")
    if old == new:
        raise ToolError(f"[{NAME}: old_string and new_string are the same]")
    before, decoded, document = _opened(context, place)
    match = _find(context, place, before, document, old, new, arguments.get("replace_all", False))
    text, changes = matching.replace(document, match)
    if text == document.text:
        raise ToolError(f"[{NAME}: new_string differs from {place.given} in blanks only, and old_string does too. "
                        "To change blanks copy old_string exactly.]")
    check()
    files.check_writable(NAME, place)
    after = files.encode(NAME, place, text, decoded)
    changed = Document(text, check)
    report = _report(place, changed, changes, _HOW[match.level])  # here, because a change that was made is not cancelled
    known, result = files.digest(before, check), files.digest(after, check)
    diff = events.Diff(place.location, document.flat, changed.flat)

    def run(progress):
        files.unchanged(NAME, place, before)
        check()
        files.replace(NAME, place, after)
        output = report
        if context.seen.last_known(place.real) not in (None, known):
            output += f"\n[note: {place.given} had changed since you read it]"
        context.seen.edited(place.real, known, result)
        context.seen.failed_edits.pop(place.real, None)
        return Result(output, diff=diff)

    return Action(files.title(NAME, place), run, (place.location,), asks=True, diff=diff)


def _opened(context, place):
    """The file's bytes, these Decoded, and the Document; ToolError where there is nothing that could be edited."""
    before = files.read(NAME, place)
    if before is None:
        raise ToolError(similar.missing(NAME, place, context.folder, context.cancel))
    context.cancel.check()
    decoded = files.decode(NAME, place, before, "change it")
    document = Document(decoded.text, context.cancel.check)
    if not document.count:
        raise ToolError(f"[{NAME}: {place.given} is empty; use write_file to fill it]")
    if document.count > LINES:
        raise ToolError(f"[{NAME}: {place.given} has {document.count} lines; use bash with sed to change it]")
    return before, decoded, document


def _find(context, place, before, document, old, new, replace_all):
    """The Match to go on with, or the ToolError that helps to send a better `old`."""
    match = matching.find(document, old, new)
    if match and (len(match.spans) == 1 or replace_all and match.level == matching.EXACT):
        return match
    failures = context.seen.failed_edits[place.real] = context.seen.failed_edits.get(place.real, 0) + 1
    if match:
        problem = _ambiguous(place, document, match)
    else:
        problem = _nearest(place, document, old, context.shown_limit(SHOWN))
    if failures >= FAILURES and document.count <= REWRITTEN_LINES:
        problem = _whole(context, place, before, document) or problem
    raise ToolError(problem)


def _ambiguous(place, document, match):
    count = len(match.spans)
    places = _listed(str(line + 1) for line in document.lines_at(start for start, _ in match.spans))
    if match.level == matching.EXACT:
        return (f"[{NAME}: old_string occurs {count} times in {place.given}, at lines {places}. "
                "Add surrounding lines to make it unique, or set replace_all to true.]")
    return (f"[{NAME}: old_string is not in {place.given}, but with other blanks {count} times, at lines {places}. "
            "Copy it exactly, with surrounding lines to make it unique.]")


def _nearest(place, document, old, most):
    first, after = matching.nearest(document, old)
    text = "\n".join(map(cut_line, document.lines(first, after)))[:most]
    where = f"line {after}" if first + 1 == after else f"lines {first + 1}-{after}"
    return (f"[{NAME}: old_string is not in {place.given}. The nearest text is {where}:]\n{text}\n"
            "[copy old_string from these lines exactly.]")


def _whole(context, place, before, document):
    """The whole file, to be written anew; None where it is too much for the model's window."""
    text = document.flat if document.ends else document.flat + "\n"
    if len(text) > context.shown_limit(SHOWN):
        return None
    context.seen.saw_whole(place.real, files.digest(before))
    return f"{text}[{NAME} has failed twice on {place.given}. Send the whole new file with write_file.]"


def _report(place, changed, changes, how):
    count = plural(len(changes), "change")
    noun = "line" if len(changes) == 1 and "-" not in _range(changes[0]) else "lines"
    head = f"[edited {place.given}: {count}, {noun} {_listed(map(_range, changes))}{how}]"
    around = _surroundings(changed, changes)
    return f"{head}\n{around}" if around else head


def _range(change):
    return f"{change.first}-{change.last}" if change.last > change.first else str(change.first)


def _listed(items):
    items = list(islice(items, PLACES + 1))
    return ", ".join(items[:PLACES]) + (", …" if len(items) > PLACES else "")


def _surroundings(document, changes):
    """The changed lines with three around each, `…` where others lie between; the middle goes when it is too much."""
    half = CONTEXT_IN_ALL // 2
    wanted = sorted(_around(document, changes, 1) | _around(document, reversed(changes), -1))
    if len(wanted) > CONTEXT_IN_ALL:
        wanted = wanted[:half] + wanted[-half:]
    shown = []
    for position, line in enumerate(document.picked(wanted)):
        if position and wanted[position - 1] != wanted[position] - 1:
            shown.append("…")
        shown.append(cut_line(line, CONTEXT_LINE))
    return "\n".join(shown)


def _around(document, changes, step):
    """The indexes of enough lines in and around the first of the changes; of their last lines with a `step` of -1."""
    found = set()
    for first, last in islice(changes, CONTEXT_CHANGES):
        for index in range(max(first - 1 - CONTEXT, 0), min(last + CONTEXT, document.count))[::step]:
            found.add(index)
            if len(found) > CONTEXT_IN_ALL:
                return found
    return found
