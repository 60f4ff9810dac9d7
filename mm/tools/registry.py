"""Which tools a session has, how a request lists them, and which one the model means by a name."""

from __future__ import annotations

import os

from mm.text import one_line
from mm.tools import offers
from mm.tools.arguments import plain_name
from mm.tools.tool import ToolError

# The kind of a call if there is no such tool.
UNKNOWN_KIND = "execute"


def built_in(config, skills=(), can_ask: bool = True) -> tuple:
    """The tools that the configuration leaves on, always in the same order, because the server caches the
    prompt.

    `skills` are the session's (skills.catalogue); without any there is nothing to read. `can_ask`: whether
    there is a user who can be asked.
    """
    reads_skills = (offers.read_skill(skills),) if skills else ()
    tools = (offers.bash(config), offers.EDIT_FILE, offers.READ_FILE) + reads_skills + (offers.WRITE_FILE,)
    tools += (offers.FETCH_CONTENT, offers.PLAN, offers.ask_user(can_ask))
    return tuple(tool for tool in tools if tool.name not in config.tools_disabled)


def reaching(config, folder: str, environ=os.environ, notices=None) -> tuple:
    """The tools that need another program, if it is there: other agents, language servers.

    `notices` takes a line about what waits until the folder is trusted.
    """
    tools = []
    if config.agents:
        tools.append(offers.ask_agent(config, environ))
    if config.lsp is not False:
        from mm.peers import languages

        found = languages.here(config, folder, environ)
        waits = languages.waiting(config, folder, environ, found) if found else None
        if waits and notices:
            notices.add(waits)
        tools += [offers.lsp(found, environ)] if found and not waits else []
    return tuple(tool for tool in tools if tool.name not in config.tools_disabled)


def to_wire(tools) -> list:
    """The tools as a chat-completions request lists them, with flat schemas that small models get right."""
    return [_to_wire(tool) for tool in tools if tool.offered]


def _to_wire(tool):
    schema = _object(tool.parameters) if tool.schema is None else tool.schema
    function = {"name": tool.name, "description": tool.description, "parameters": schema}
    return {"type": "function", "function": function}


def _object(parameters):
    properties = {parameter.name: _property(parameter) for parameter in parameters}
    required = [parameter.name for parameter in parameters if parameter.required]
    return {"type": "object", "properties": properties, "required": required}


def _property(parameter):
    schema = {"type": parameter.type}
    if parameter.description:
        schema["description"] = parameter.description
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if parameter.type == "array":
        schema["items"] = _object(parameter.items) if parameter.items else {"type": "string"}
    return schema


def find(tools, name):
    """The tool of that name; `ReadFile` and `read-file` mean read_file. Raises ToolError."""
    for tool in tools:
        if tool.name == name:
            return tool
    for tool in tools:
        if plain_name(tool.name) == plain_name(name):
            return tool
    names = ", ".join(tool.name for tool in tools if tool.offered)
    raise ToolError(f"[there is no tool named {one_line(name)}. Tools: {names}]")


def kind_of(tools, name) -> str:
    """The kind of a call with that name, even if there is no such tool."""
    try:
        return find(tools, name).kind
    except ToolError:
        return UNKNOWN_KIND


def call_title(tool, arguments) -> str:
    """The one line that stands for a call, from its arguments alone: `bash: ls -la`."""
    subject = tool.subject(arguments) if callable(tool.subject) else arguments.get(tool.subject)
    if not isinstance(subject, str) or not subject.strip():
        return tool.name
    return f"{tool.name}: {one_line(subject)}"
