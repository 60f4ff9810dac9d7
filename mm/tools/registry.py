"""Which tools there are, as the model is told of them, and found again by the name it calls."""

from __future__ import annotations

import os

from mm.text import one_line
from mm.tools import ask_user, bash, edit_file, fetch_content, plan, read_file, read_skill, write_file
from mm.tools.arguments import plain_name
from mm.tools.tool import ToolError

# The tool kind of a call that names no tool.
UNKNOWN_KIND = "execute"


def built_in(config, skills=(), can_ask: bool = True) -> tuple:
    """The tools that the configuration leaves on, always in the same order: the model server caches the prompt.

    `skills` are the session's (skills.catalogue); without any there is nothing to read. `can_ask`: whether there is a user
    who can be asked.
    """
    reads_skills = (read_skill.tool(skills),) if skills else ()
    tools = (bash.configured(config), edit_file.TOOL, read_file.TOOL) + reads_skills + (write_file.TOOL,)
    tools += (fetch_content.tool(config, os.environ), plan.TOOL, ask_user.TOOL._replace(offered=can_ask))
    return tuple(tool for tool in tools if tool.name not in config.tools_disabled)


def reaching(config, cwd: str, notices=None) -> tuple:
    """The tools that other programs stand behind, where there is such a program: other agents, language servers."""
    tools = []
    if config.agents:
        from mm.tools import ask_agent

        tools.append(ask_agent.tool(config, os.environ))
    if config.lsp is not False:
        from mm.tools import lsp

        tools.append(lsp.tool(config, cwd, os.environ, notices))
    return tuple(tool for tool in tools if tool and tool.name not in config.tools_disabled)


def to_wire(tools) -> list:
    """The tools as a chat-completions request lists them, in flat schemas that small models get right."""
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
    told = {"type": parameter.type}
    if parameter.description:
        told["description"] = parameter.description
    if parameter.choices:
        told["enum"] = list(parameter.choices)
    if parameter.type == "array":
        told["items"] = _object(parameter.items) if parameter.items else {"type": "string"}
    return told


def find(tools, name):
    """The tool of that name, `ReadFile` and `read-file` meaning read_file. Raises ToolError."""
    for tool in tools:
        if tool.name == name:
            return tool
    for tool in tools:
        if plain_name(tool.name) == plain_name(name):
            return tool
    names = ", ".join(tool.name for tool in tools if tool.offered)
    raise ToolError(f"[there is no tool named {one_line(name)}. Tools: {names}]")


def kind_of(tools, name) -> str:
    """The tool kind of a call by that name, also where there is no such tool."""
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
