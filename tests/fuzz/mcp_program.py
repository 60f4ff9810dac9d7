"""An MCP server that answers with what a file holds: `mcp_program.py FILE`.

The bytes of the file stand where the result of tools/call belongs, and of tools/list if they are about tools.
A good answer to the same request follows, in case that the first one is unreadable. After each answer its
tools have changed.
"""

import json
import sys

TOOLS = {"tools": [{"name": "good", "inputSchema": {"type": "object"}}]}
RESULTS = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}},
                          "serverInfo": {"name": "fuzz", "version": "1"}},
           "tools/list": TOOLS, "tools/call": {"content": [{"type": "text", "text": "good"}]}}


def write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


for request in map(json.loads, sys.stdin):
    method, number = request.get("method"), json.dumps(request.get("id")).encode()
    if method in ("tools/list", "tools/call"):
        with open(sys.argv[1], "rb") as file:
            data = file.read()
        if method == "tools/call" or b'"tools"' in data:
            write(b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (number, data))
    if method in RESULTS:
        write(b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (number, json.dumps(RESULTS[method]).encode()))
    if method in ("tools/list", "tools/call"):
        write(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
