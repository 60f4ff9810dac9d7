"""What is broken: good input for each reader. A JSON value stands for its text; `readers` says who reads
it.
"""

from __future__ import annotations

import os

from mm.config import config
from mm.conversation import session_file
from tests import support

SETTINGS = config.load("/", {"HOME": "/nonexistent"})
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {
    "type": "object", "properties": {"command": {"type": "string"}}}}}]


def _request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


_PROMPT = [{"type": "text", "text": "hello @README.md"},
           {"type": "resource_link", "uri": "file:///a/b.py#L1-2", "name": "b"},
           {"type": "resource", "resource": {"uri": "untitled:1", "text": "x"}},
           {"type": "image", "data": "AAAA", "mimeType": "image/png"}]
CLIENT_LINES = [
    _request(1, "initialize", protocolVersion=1, clientCapabilities={"fs": {"readTextFile": True},
                                                                     "elicitation": {"form": {}}},
             clientInfo={"name": "x", "version": "1"}),
    _request(2, "session/new", cwd="<cwd>", mcpServers=[{"name": "a", "command": "b", "args": [],
                                                         "env": []}]),
    _request(3, "session/load", sessionId="20260916-101530-4f2a9c1e", cwd="<cwd>", mcpServers=[]),
    _request(4, "session/prompt", sessionId="20260916-101530-4f2a9c1e", prompt=_PROMPT),
    _request("é", "authenticate", methodId="none"),
    {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "20260916-101530-4f2a9c1e"}},
    {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 4}},
    {"jsonrpc": "2.0", "id": 1, "result": {"outcome": {"outcome": "selected", "optionId": "allow"}}},
    {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no", "data": {"a": 1}}},
    [{"jsonrpc": "2.0", "id": 1, "method": "initialize"}],
]

_CALL = {"ref": "call_1", "name": "bash", "arguments": '{"command": "ls"}', "title": "bash: ls",
         "kind": "execute"}
_MESSAGES = [
    {"role": "user", "content": "héllo"},
    {"role": "assistant", "content": "I look.", "reasoning": "hm",
     "calls": [_CALL, dict(_CALL, ref="call_2", name="edit_file")]},
    {"role": "tool", "call": "call_1", "name": "bash", "content": "a\nb", "status": "completed"},
    {"role": "tool", "call": "call_2", "name": "edit_file", "content": "edited", "status": "failed",
     "diff": {"path": "/w/a", "old": "y", "new": "x"}},
    {"role": "user", "content": "what was said", "kind": "summary"},
    {"role": "user", "content": "go on", "kind": "note"},
    {"role": "assistant", "content": "done"},
]
_HEADER = {"version": 1, "id": "20260916-101530-4f2a9c1e", "cwd": "/w", "created": "2026-09-16T10:15:30Z",
           "model": "m", "title": "A title", "usage": {"input": 10, "output": 2},
           "plan": [{"content": "a", "status": "pending"}]}
SESSIONS = [dict(_HEADER, messages=_MESSAGES),
            session_file.render(_HEADER, [session_file.message_line(message) for message in _MESSAGES])]

CONFIGURATIONS = [
    {"yolo": False, "maxSteps": 5, "model": {"url": "http://127.0.0.1:8080/v1", "name": "m",
                                             "contextWindow": 8192, "headers": {"X-A": "$HOME"},
                                             "extra": {"top_k": 20}}},
    {"tools": {"disabled": ["lsp"]}, "acp": {"name": "x", "thoughts": False},
     "context": {"threshold": 0.5, "keepLastTurns": 1}, "skills": {"dirs": ["skills"]},
     "sessions": {"enabled": True, "dir": ".mm/s"}, "bash": {"timeout": 5, "shell": "sh"}},
    {"mcp": {"a": {"command": ["x", "y"], "env": {"A": "b"}, "permissions": "ask", "tools": ["t"],
                   "timeout": 5}},
     "agents": {"b": {"command": "z", "description": "d"}},
     "lsp": {"python": {"command": ["pyright"], "extensions": [".py"]}},
     "hooks": {"preToolCall": [{"command": "./check", "match": "bash", "timeout": 3, "onFailure": "allow"}]}},
]

SKILLS = [
    b"---\nname: fuzzed\ndescription: Does a thing\n---\nDo it.\n",
    b"# A comment\n\n---\nname: 'fuzzed' # why\ndescription: >-\n  Folded\n  text\nallowed-tools:\n  - "
    b"bash\n  -\tedit\n"
    b"metadata:\n  a: 1\n  b: \"x\\u00e9\\n\"\ndisable-model-invocation: true # by hand\n---\n\nBody "
    b"$ARGUMENTS\n",
    b"\xef\xbb\xbf---\r\nname: fuzzed\r\ndescription: |\r\n  Kept\r\n   as it is\r\nlicense: "
    b"MIT\r\n---\r\nText\r\n",
]

PAGES = [
    b"<html><head><meta charset=utf-8><title>A &amp; B</title></head><body><h1>H</h1><p>One <b>two</b> <a "
    b"href='/x?a=1#b'>three"
    b"</a></p><ul><li>a<ol><li>b</ol></ul><table><tr><th>A<th>B<tr><td>1<td><table><tr><td>2</table></table><pre><code class="
    b"'language-py'>x = 1\n</code></pre><img src='y.png' alt='&lt;picture&gt;'><script>var a = "
    b"'<p>'</script></body></html>",
    "<p>caf\u00e9 &eacute; &#233; &#xe9; &notanentity; &#0; "
    "&#xD800;</p><dl><dt>a<dd>b</dl><blockquote>q</blockquote>".encode(),
]

TRANSCRIPTS = []
for _name in ("cancel-in-stream", "ask-user-form", "tool-call", "session-killed"):
    with open(os.path.join(support.PROJECT, "tests", "transcripts", _name + ".txt"), "rb") as _file:
        TRANSCRIPTS.append(_file.read())

_SCHEMA = {"type": "object", "properties": {"a": {"type": ["string", "null"], "enum": ["x", None]},
                                            "b": {"$ref": "#/$defs/n"}},
           "required": ["a"], "$defs": {"n": {"type": "array",
                                              "items": {"anyOf": [{"type": "integer"},
                                                                  {"$ref": "#/$defs/n"}]}}}}
MCP_RESULTS = [
    {"tools": [{"name": "echo", "description": "Echoes", "inputSchema": _SCHEMA},
               {"name": "b", "inputSchema": {"type": "object"}}],
     "nextCursor": "2"},
    {"content": [{"type": "text", "text": "hello"},
                 {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                 {"type": "resource", "resource": {"uri": "a:b", "text": "t"}},
                 {"type": "resource_link", "uri": "a:c", "name": "n"}],
     "structuredContent": {"a": [1, 2.5, "x"], "b": {"c": None}}, "isError": False},
    {"content": [], "isError": True, "resultType": "complete"},
]

_RANGE = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 9}}
_EDITS = [{"range": _RANGE, "newText": "hail"},
          {"range": {"start": {"line": 4, "character": 0}, "end": {"line": 4, "character": 5}},
           "newText": "hail"}]
LSP_RESULTS = [
    [{"uri": "file:///a.py", "range": _RANGE}, {"targetUri": "file:///a.py", "targetSelectionRange": _RANGE,
                                                "targetRange": _RANGE}],
    {"contents": {"kind": "markdown", "value": "```py\nx\n```"}, "range": _RANGE},
    {"contents": [{"language": "py", "value": "x"}, "y"]},
    [{"name": "greet", "kind": 12, "range": _RANGE, "selectionRange": _RANGE,
      "children": [{"name": "a", "kind": 13, "range": _RANGE}]},
     {"name": "b", "kind": 5, "location": {"uri": "file:///a.py", "range": _RANGE}, "containerName": "c"}],
    [{"range": _RANGE, "severity": 1, "message": "bad", "code": "E1", "source": "s"}],
    {"changes": {"file:///a.py": _EDITS}},
    {"documentChanges": [{"textDocument": {"uri": "file:///a.py", "version": 1}, "edits": _EDITS},
                         {"kind": "rename", "oldUri": "file:///a.py", "newUri": "file:///b.py",
                          "options": {"overwrite": True}}]},
]
