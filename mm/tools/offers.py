"""The built-in tools as they are offered to the model: names, descriptions, parameters.

Every first request needs these, and few turns need the code of a tool: the room with the tool's name is
loaded with its first call. A number that a description mentions is a constant here, and the room takes it
from here.
"""

from __future__ import annotations

from mm.text import one_line
from mm.tools.tool import SHOWN, Parameter, Tool

# The tools whose parameter `path` is a file that they open.
TAKE_A_PATH = ("read_file", "write_file", "edit_file", "lsp")
# read_file: lines shown unless `limit` asks for another number.
READ_LINES = 1000
# lsp: the names of its actions; the tool's room says what they need and ask.
LSP_ACTIONS = ("definition", "references", "hover", "symbols", "find", "diagnostics", "rename")
PLAN_ACTIONS = ("show", "start", "next", "done", "skip", "add", "stop")
# Characters of an agent's description.
AGENT_DESCRIBED = 100

_PATH_ALIASES = ("file_path", "filename", "file", "target_file")


def _at_first_call(name: str, *more):
    """Stands for prepare() in the room with the tool's name; `more` are its further arguments."""

    def prepare(arguments, context):
        room = __import__("mm.tools." + name, fromlist=("prepare",))
        return room.prepare(arguments, context, *more)

    return prepare


def bash(config) -> Tool:
    timeout, longest = min(config.bash_timeout, config.bash_max_timeout), config.bash_max_timeout
    return Tool(
        "bash",
        "Run a command in bash and get its output. Each call starts in the working directory; "
        "nothing is kept between calls but files. There is no keyboard input.",
        "execute",
        (
            Parameter("command", "string", "The command", True, ("cmd", "script", "code")),
            Parameter("timeout", "number", f"Seconds, default {timeout:g}, at most {longest:g}",
                      False, ("timeout_seconds", "seconds")),
        ),
        "command",
        _at_first_call("bash"),
    )


EDIT_FILE = Tool(
    "edit_file",
    "Replace one piece of text in a file. old_string must be copied exactly from the file and occur once.",
    "edit",
    (
        Parameter("path", "string", "File, relative to the working directory", True, _PATH_ALIASES),
        Parameter("old_string", "string", "Text to replace, with enough lines to be unique",
                  True, ("old", "old_text", "old_str")),
        Parameter("new_string", "string", "Text to put in its place", True, ("new", "new_text", "new_str")),
        Parameter("replace_all", "boolean", "Replace every occurrence", False, ("all",)),
    ),
    "path",
    _at_first_call("edit_file"),
)

READ_FILE = Tool(
    "read_file",
    f"Read a text file, without line numbers: at most {READ_LINES} lines and {SHOWN} characters a call. "
    "A folder gives its listing.",
    "read",
    (
        Parameter("path", "string", "File or folder, relative to the working directory", True, _PATH_ALIASES),
        Parameter("offset", "integer", "First line, from 1; negative: from the end",
                  False, ("start", "start_line", "line", "line_start")),
        Parameter("limit", "integer", f"Number of lines, default {READ_LINES}", False,
                  ("lines", "max_lines", "count")),
    ),
    "path",
    _at_first_call("read_file"),
)

WRITE_FILE = Tool(
    "write_file",
    "Write a whole file, for new files. An existing one must have been read first; to change a part use "
    "edit_file.",
    "edit",
    (
        Parameter("path", "string", "File, relative to the working directory", True, _PATH_ALIASES),
        Parameter("content", "string", "The whole new text", True, ("contents", "text", "file_text")),
    ),
    "path",
    _at_first_call("write_file"),
)


def read_skill(skills) -> Tool:
    """The tool that reads these skills (catalogue.Skill), one at least.

    The names are an enum, unless there is a skill that the model may not choose by itself. Such a skill can
    still be read once the user has named it, and a server that holds the model to the enum would prevent
    that. Then only the catalogue in the system prompt names the others.
    """
    offered = tuple(skill.name for skill in skills if skill.model_may_call)
    return Tool(
        "read_skill",
        "Read a skill, a procedure for one kind of task. When one matches the task, read it before anything "
        "else.",
        "read",
        (Parameter("name", "string", "Name of the skill", True, ("skill", "skill_name", "command"),
                   offered if len(offered) == len(skills) else ()),),
        "name",
        _at_first_call("read_skill", skills),
    )

FETCH_CONTENT = Tool(
    "fetch_content",
    "Fetch a web page or file by URL and read it as text, or save it to output.",
    "fetch",
    (
        Parameter("url", "string", "", True, ("uri", "link", "address")),
        Parameter("output", "string", "File to save to", False,
                  ("path", "file", "file_path", "filename", "output_path")),
        Parameter("offset", "integer", "Character to start at", False, ("start", "start_index")),
    ),
    "url",
    _at_first_call("fetch_content"),
)

PLAN = Tool(
    "plan",
    "Keep the plan of a task of several steps; the user sees it. Start it once, then mark each step as you "
    "finish it."
    " Not for small tasks.",
    "other",
    (
        Parameter("action", "string", "", choices=PLAN_ACTIONS),
        Parameter("steps", "array", "start: 2 to 20 of them", False, ("items", "tasks")),
        Parameter("title", "string", "start: what it is about", False),
        Parameter("step", "integer", "done, skip: its number", False, ("number", "id", "index")),
        Parameter("text", "string", "add: the new step", False),
        Parameter("after", "integer", "add: behind this step, else last", False),
        Parameter("note", "string", "next, done, skip, stop: a remark or the reason", False,
                  ("reason", "remark")),
    ),
    "action",
    _at_first_call("plan"),
)


def ask_user(can_ask: bool) -> Tool:
    """Without a user who can be asked, it is only there to say so to a model that calls it."""
    return Tool(
        "ask_user",
        "Ask the user what only they can decide, 1 to 4 questions at once. Never for what you can find out, "
        "nor for permission.",
        "other",
        (
            Parameter("questions", "array", "", items=(
                Parameter("question", "string", "", True, ("text", "title", "prompt")),
                Parameter("type", "string", "choice with options, else text", False,
                          ("kind",), ("choice", "multi", "text", "confirm")),
                Parameter("options", "array", "2 to 8, for choice and multi", False, ("choices",)),
                Parameter("default", "string", "The likely answer", False),
            )),
        ),
        _first_question,
        _at_first_call("ask_user"),
        offered=can_ask,
    )


def ask_agent(config, environ) -> Tool:
    """The tool for the agents of the configuration, one at least. Too deep among agents, it only says so."""
    from mm.peers import agent

    described = "; ".join("%s: %s" % (name, one_line(entry.description, AGENT_DESCRIBED))
                          for name, entry in config.agents.items() if entry.description)
    return Tool(
        "ask_agent",
        "Have another agent do a task in this folder and get its answer. It knows nothing of this "
        "conversation: tell it all.",
        "other",
        (
            Parameter("agent", "string", described, True, ("name", "agent_name"), tuple(config.agents)),
            Parameter("prompt", "string", "", True, ("task", "question", "message")),
        ),
        "agent",
        _at_first_call("ask_agent", environ),
        offered=not agent.too_deep(config, environ),
    )


def lsp(usable, environ) -> Tool:
    """`usable`: the languages that have a server on this machine (languages.Found)."""
    return Tool(
        "lsp",
        "Ask the language server: where a name is defined or used, its type, a file's symbols or errors. "
        "rename changes a name in all files.",
        "read",
        (
            Parameter("action", "string", "", True, ("operation", "command"), LSP_ACTIONS),
            Parameter("path", "string", "File, needed but for find", False,
                      ("file_path", "filename", "file")),
            Parameter("symbol", "string", "Name as it stands in the file", False, ("name", "old_name")),
            Parameter("line", "integer", "Line of the symbol, if known", False, ("line_number",)),
            Parameter("query", "string", "For find: a part of a name", False, ("pattern", "search")),
            Parameter("new_name", "string", "For rename", False, ("to", "new")),
        ),
        _lsp_subject,
        _at_first_call("lsp", usable, environ),
    )


def _first_question(arguments) -> str:
    questions = arguments.get("questions") or [{}]
    return one_line(questions[0].get("question") or "")


def _lsp_subject(arguments) -> str:
    """The action, and what it is about."""
    what = arguments.get("symbol") or arguments.get("query") or arguments.get("path") or ""
    return " ".join(filter(None, (arguments.get("action"), what)))
