"""fetch_content, as it is offered; what a call does is in fetching, which is loaded with the first call."""

from __future__ import annotations

from mm.tools.tool import Parameter, Tool

DESCRIPTION = "Fetch a web page or file by URL and read it as text, or save it to output."
PARAMETERS = (
    Parameter("url", "string", "", True, ("uri", "link", "address")),
    Parameter("output", "string", "File to save to", False, ("path", "file", "file_path", "filename", "output_path")),
    Parameter("offset", "integer", "Character to start at", False, ("start", "start_index")),
)


def tool(config, environ, resolve=None, limits=None) -> Tool:
    """`environ` tells the proxies; `resolve` and `limits` are as in fetching.prepare."""

    def prepare(arguments, space):
        from mm.tools import fetching

        return fetching.prepare(arguments, space, config, environ, resolve, limits)

    return Tool("fetch_content", DESCRIPTION, "fetch", PARAMETERS, "url", prepare)
