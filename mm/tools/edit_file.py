"""edit_file, as it is offered; what a call does is in editing, which is loaded with the first call."""

from __future__ import annotations

from mm.tools.tool import Parameter, Tool


def prepare(arguments, space):
    from mm.tools import editing

    return editing.prepare(arguments, space)


TOOL = Tool(
    "edit_file",
    "Replace one piece of text in a file. old_string must be copied exactly from the file and occur once.",
    "edit",
    (
        Parameter("path", "string", "File, relative to the working directory",
                  True, ("file_path", "filename", "file", "target_file")),
        Parameter("old_string", "string", "Text to replace, with enough lines to be unique",
                  True, ("old", "old_text", "old_str")),
        Parameter("new_string", "string", "Text to put in its place", True, ("new", "new_text", "new_str")),
        Parameter("replace_all", "boolean", "Replace every occurrence", False, ("all",)),
    ),
    "path",
    prepare,
)
