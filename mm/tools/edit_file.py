"""edit_file: one piece of text in a file replaced by another; elsewhere not a byte changes."""

from __future__ import annotations

from mm import events
from mm.text import cut_line, plural
from mm.tools import files, matching, similar
from mm.tools.document import Document, flatten
from mm.tools.tool import SHOWN, Action, Result, ToolError

NAME = "edit_file"
# The largest file that is edited, in lines and characters, and at how many places at once: models edit files
# of thousands of lines, and all is gone through several times if nothing is found.
LINES, CHARACTERS, CHANGES = 50_000, 2_000_000, 10_000
# After this many failures in a row on one file, the model is shown all of it, up to this many lines.
FAILURES = 2
REWRITTEN_LINES = 300
# What a result shows of the file around the changes, in lines and characters a line.
CONTEXT, CONTEXT_IN_ALL, CONTEXT_LINE = 3, 20, 300
# At most this many places are named.
PLACES = 10

_HOW = {
    matching.EXACT: "",
    matching.LOOKALIKE: "; old_string differed in signs that look alike: %s",
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
        what = "look-alike signs" if match.level == matching.LOOKALIKE else "blanks"
        raise ToolError(f"[{NAME}: new_string differs from {place.given} in {what} only, "
                        f"and old_string does too. To change {what} copy old_string exactly.]")
    check()
    files.check_writable(NAME, place)
    after = files.encode(NAME, place, text, decoded)
    changed = Document(text)
    how = _HOW[match.level]
    if match.level == matching.LOOKALIKE:
        how %= _named(document, match, old)
    report = _report(place, changed, changes, how)  # now, because a change that was made is not cancelled
    known, result = files.digest(before), files.digest(after)
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
    """The file's bytes, these Decoded, and the Document. Raises ToolError if it cannot be edited."""
    before = files.read(NAME, place)
    if before is None:
        raise ToolError(similar.missing(NAME, place, context.folder, context.cancel))
    context.cancel.check()
    decoded = files.decode(NAME, place, before, "change it")
    document = Document(decoded.text)
    if not document.lines:
        raise ToolError(f"[{NAME}: {place.given} is empty; use write_file to fill it]")
    if len(document.lines) > LINES or len(document.text) > CHARACTERS:
        raise ToolError(f"[{NAME}: {place.given} has {plural(len(document.lines), 'line')} and "
                        f"{len(document.text)} characters; use bash with sed to change it]")
    return before, decoded, document


def _find(context, place, before, document, old, new, replace_all):
    """The Match to go on with, or the ToolError that helps to send a better `old`."""
    match = matching.find(document, old, new)
    if match and (len(match.spans) == 1 or replace_all and match.level == matching.EXACT):
        if len(match.spans) > CHANGES:
            raise ToolError(f"[{NAME}: old_string occurs {len(match.spans)} times in {place.given}; "
                            "use bash with sed to change them all]")
        return match
    failures = context.seen.failed_edits[place.real] = context.seen.failed_edits.get(place.real, 0) + 1
    reason, more = _ambiguous(place, document, old, match) if match else _nearest(place, document, old)
    if failures >= FAILURES and len(document.lines) <= REWRITTEN_LINES:
        more = _whole(context, place, before, document) or more
    raise ToolError(reason + more[:context.shown_limit(SHOWN)])


def _ambiguous(place, document, old, match):
    """(why no place can be chosen, nothing more to show)."""
    count = len(match.spans)
    places = _listed(str(document.line_at(start) + 1) for start, _ in match.spans)
    if match.level == matching.EXACT:
        return (f"[{NAME}: old_string occurs {count} times in {place.given}, at lines {places}. "
                "Add surrounding lines to make it unique, or set replace_all to true.]"), ""
    other = "blanks"
    if match.level == matching.LOOKALIKE:
        other = f"signs ({_named(document, match, old)})"
    return (f"[{NAME}: old_string is not in {place.given}, but with other {other} {count} times, "
            f"at lines {places}. Copy it exactly, with surrounding lines to make it unique.]"), ""


def _nearest(place, document, old):
    """(why nothing was found, the lines that are most like it)."""
    first, after, at = matching.nearest(document, old)
    text = "\n".join(map(cut_line, document.lines[first:after]))
    where = f"line {after}" if first + 1 == after else f"lines {first + 1}-{after}"
    alike = "" if at is None else matching.difference(document, at, old)
    alike = f" {alike[0].upper()}{alike[1:]}." if alike else ""
    return (f"[{NAME}: old_string is not in {place.given}.{alike} The nearest text is {where}:]",
            f"\n{text}\n[copy old_string from these lines exactly.]")


def _named(document, match, old):
    return matching.difference(document, document.line_at(match.spans[0][0]), old)


def _whole(context, place, before, document):
    """The whole file, to be written anew; None if it is too much for the model's window."""
    text = document.flat if document.ends else document.flat + "\n"
    if len(text) > context.shown_limit(SHOWN):
        return None
    context.seen.saw_whole(place.real, files.digest(before))
    return f"\n{text}[{NAME} has failed twice on {place.given}. Send the whole new file with write_file.]"


def _report(place, changed, changes, how):
    count = plural(len(changes), "change")
    noun = "line" if len(changes) == 1 and "-" not in _range(changes[0]) else "lines"
    head = f"[edited {place.given}: {count}, {noun} {_listed(map(_range, changes))}{how}]"
    context = _context(changed, changes)
    return f"{head}\n{context}" if context else head


def _range(change):
    return f"{change.first}-{change.last}" if change.last > change.first else str(change.first)


def _listed(items):
    items = list(items)
    return ", ".join(items[:PLACES]) + (", …" if len(items) > PLACES else "")


def _context(document, changes):
    """The changed lines with three around each; the middle goes if it is too much."""
    half, count = CONTEXT_IN_ALL // 2, len(document.lines)
    around = [range(max(first - 1 - CONTEXT, 0), min(last + CONTEXT, count)) for first, last in changes]
    wanted = sorted(set().union(*around))
    if len(wanted) > CONTEXT_IN_ALL:
        wanted = wanted[:half] + wanted[-half:]
    shown = []
    for position, index in enumerate(wanted):
        if position and wanted[position - 1] != index - 1:
            shown.append("…")
        shown.append(cut_line(document.lines[index], CONTEXT_LINE))
    return "\n".join(shown)
