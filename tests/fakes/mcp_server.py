"""An MCP server, well-behaved or hostile: `mcp_server.py [WORD...]`. The words say how it behaves:

    stateless        knows only the way without a handshake
    refuse           refuses every way
    revision=DATE    answers the handshake with this
    exit             ends in the handshake, with code 3
    silent           never answers
    deaf             does not even read
    hold=FILE        waits for the file before it reads
    noise            prints around every answer
    flood            writes a megabyte on stderr before every answer
    batch            answers in arrays
    twice            sends every answer twice
    pages=N          spreads its tools over N pages
    circle           names its first page of tools again and again
    many             lists its tools a thousand times
    stubborn         stays when its stdin ends
    farewell=FILE    writes there a second after its stdin has ended
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

WORDS = set(sys.argv[1:])
VALUES = dict(word.split("=") for word in WORDS if "=" in word)
HEARD = []  # every notification, and every answer to a request of its own
TEXT = {"type": "object", "properties": {"text": {"type": "string", "title": "Text"}}, "required": ["text"]}
NOISE = b"Server is up!\n\n\x00\xff\xfe\x1b[31m\n[1, 2]\n[info] listening\n\"a text\"\n" + b"x" * 500 + b"\n"


class Error(Exception):
    pass


def write(*messages):
    out = sys.stdout.buffer
    if "noise" in WORDS:
        out.write(NOISE)
    if "flood" in WORDS:
        sys.stderr.write("0123456789abcde\n" * 65536)
    for message in messages * (2 if "twice" in WORDS else 1):
        line = json.dumps(dict(message, jsonrpc="2.0"))
        out.write(("[%s,%s]\n" % (json.dumps({"jsonrpc": "2.0", "method": "notifications/message",
                                              "params": {}}), line)
                   if "batch" in WORDS else line + "\n").encode())
    out.flush()


def read():
    line = sys.stdin.buffer.readline()
    if not line:
        if "farewell" in VALUES:
            time.sleep(1)
            with open(VALUES["farewell"], "w") as file:
                file.write("bye")
        while "stubborn" in WORDS:
            time.sleep(1)
        sys.exit(0)
    return json.loads(line)


def initialize(params):
    if "exit" in WORDS:
        sys.stderr.write("starting\nno licence found\n\n")
        sys.exit(3)
    if "refuse" in WORDS:
        raise Error(-32603, "no licence")
    if "stateless" in WORDS:
        raise Error(-32601, "Method not found")
    return {"protocolVersion": VALUES.get("revision", params["protocolVersion"]),
            "capabilities": {"tools": {}}, "serverInfo": {}}


def discover(params):
    if "stateless" not in WORDS:
        raise Error(-32601, "Method not found")
    return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}


def tools(params):
    names = list(CALLS)
    pages = int(VALUES.get("pages", 1))
    page = int(params.get("cursor", 0))
    listed = names[page * 3:page * 3 + 3] if pages > 1 else names
    answer = {"tools": [{"name": name, "description": "Does " + name, "inputSchema": TEXT}
                        for name in listed]}
    if "many" in WORDS:
        answer["tools"] *= 1000
    if "circle" in WORDS:
        return dict(answer, nextCursor="0")
    return dict(answer, nextCursor=str(page + 1)) if page + 1 < pages else answer


def text(said, **more):
    return dict({"content": [{"type": "text", "text": said}]}, **more)


def slow(params):
    """Steps with progress: `steps` of them, `gap` seconds apart; then an answer, or none where `answer` is
    false.
    """
    arguments = params["arguments"]
    for step in range(arguments["steps"]):
        time.sleep(arguments["gap"])
        write({"method": "notifications/progress", "params": {
            "progressToken": params["_meta"]["progressToken"], "progress": step + 1,
            "total": arguments["steps"], "message": "at it"}})
    return text("done") if arguments.get("answer", True) else None


def ask(params):
    """Asks the client; says what it answered."""
    for number, method in enumerate(("ping", "roots/list", "sampling/createMessage")):
        write({"id": "mine-%d" % number, "method": method})
        HEARD.append(read())
    return text(json.dumps(HEARD[-3:]))


def long_line(params):
    """A line without an end, until nobody reads any more."""
    piece = b"x" * (1 << 20)
    for _ in range(100):
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
    return text("read to the end")


def die(params):
    sys.stderr.write("about to go\nout of luck")
    sys.stderr.flush()
    os._exit(int(params["arguments"].get("code", 1)))


def leave_a_child(params):
    """Ends, and leaves a child that holds its stdout."""
    subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os._exit(0)


def stop_reading(params):
    """Answers, and stays with a closed stdin."""
    os.close(0)
    write({"id": params["id"], "result": text("bye")})
    while True:
        time.sleep(1)


def change(params):
    write({"method": "notifications/tools/list_changed"})
    CALLS["new"] = lambda params: text("new")
    return text("changed")


CALLS = {
    "echo": lambda params: text(params["arguments"]["text"]),
    "heard": lambda params: text(json.dumps(HEARD)),
    "meta": lambda params: text(json.dumps(params.get("_meta"))),
    "environment": lambda params: text(json.dumps(dict(os.environ, CWD=os.getcwd()))),
    "answer": lambda params: params["arguments"],  # the result is what was sent
    "pid": lambda params: text(str(os.getpid())),
    "never": lambda params: None,
    "slow": slow, "ask": ask, "long line": long_line, "die": die, "leave a child": leave_a_child,
    "stop reading": stop_reading, "change": change,
}


def call(params):
    if params["name"] not in CALLS:
        raise Error(-32602, "Unknown tool: " + params["name"])
    return CALLS[params["name"]](params)


METHODS = {"initialize": initialize, "server/discover": discover, "tools/list": tools, "tools/call": call}


def main():
    while "deaf" in WORDS:
        time.sleep(1)
    while "hold" in VALUES and not os.path.exists(VALUES["hold"]):
        time.sleep(0.01)
    while True:
        message = read()
        if "id" not in message:
            HEARD.append(message)
            continue
        try:
            if "silent" in WORDS or "result" in message or "error" in message:
                continue
            params = dict(message.get("params", {}), id=message["id"])
            if "stateless" in WORDS and message["method"] != "initialize":
                if params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion") != "2026-07-28":
                    raise Error(-32602, "_meta is missing")
            result = METHODS[message["method"]](params)
        except Error as error:
            write({"id": message["id"], "error": {"code": error.args[0], "message": error.args[1]}})
        else:
            if result is not None:
                write({"id": message["id"], "result": result})


if __name__ == "__main__":
    main()
