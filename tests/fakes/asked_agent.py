"""An ACP agent for the tests of those who ask: what its prompt says, line by line, is what it does.

    say TEXT          says one chunk of the answer
    message ID TEXT   says a chunk of the message ID
    call ID TITLE     makes a tool call that runs and completes
    plan ID TITLE     makes a tool call that is only planned
    edit              asks for a change of a file; says the answer
    permission ID     asks for one, with options of its own; says the option; ID may be a planned call's
    longest           asks for a permission with a text that no dialog shows whole
    question          asks for a permission that is a choice
    form              asks with a form; says the answer
    url               asks with something that is not a form
    read              asks for fs/read_text_file; says the error
    env NAME          says a variable
    where             says the session's folder and its own
    stray TEXT        prints a line that is not a message
    bytes             prints binary noise, and a line that is nearly JSON
    stderr TEXT       prints a line on stderr
    flood N           prints N MB on stderr
    long N            prints a line of N MB
    exit CODE         ends
    kill              ends by a signal
    close             closes stdout and lives on
    sleep S           does nothing for so long
    linger            starts a sleep of 60 s; says its number
    stop REASON       answers with that stop reason
    refuse TEXT       answers with an error
    twice             answers twice
    mute              never answers, whatever comes
    wait              answers once it is cancelled, after it has written the file `cancelled`
    count N           answers with a usage of N tokens

Its argument is what it does before that: `exit`, `mute`, `version`, `auth`, `refuse`, `nosession`, `noise`; or
`deaf`: it heeds neither a cancel nor the end of its stdin nor TERM.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

SESSION = "s-1"
answers = queue.Queue()
cancelled = threading.Event()
OPTIONS = [{"optionId": "yes!", "kind": "allow_once", "name": "Yes"},
           {"optionId": "ever", "kind": "allow_always", "name": "Ever"},
           {"optionId": "no!", "kind": "reject_once", "name": "No"},
           {"optionId": "at-no-time", "kind": "reject_always", "name": "Never"}]
CHOICES = [{"optionId": "a", "kind": "allow_once", "name": "Red"},
           {"optionId": "b", "kind": "allow_once", "name": "Blue"},
           {"optionId": "none", "kind": "reject_once", "name": "Neither"}]


def send(message) -> None:
    data = memoryview(json.dumps(dict({"jsonrpc": "2.0"}, **message)).encode() + b"\n")
    while data:
        data = data[os.write(1, data):]


def update(name, **fields) -> None:
    send({"method": "session/update", "params": {"sessionId": SESSION,
                                                 "update": dict(fields, sessionUpdate=name)}})


def say(text, **more) -> None:
    update("agent_message_chunk", content={"type": "text", "text": text}, **more)


def ask(method, **params):
    """A request of the agent's; says the result, or the error's message."""
    send({"id": "r-1", "method": method, "params": dict(params, sessionId=SESSION)})
    answer = answers.get()
    say(json.dumps(answer.get("result") or answer["error"]["message"]))


def permission(call, options) -> None:
    ask("session/request_permission", toolCall=call, options=options)


def do(verb, rest, result) -> bool:
    """One line of the prompt; whether the prompt is to be answered at the end."""
    first, _, more = rest.partition(" ")
    if verb == "say":
        say(rest)
    elif verb == "message":
        say(more, messageId=first)
    elif verb in ("call", "plan"):
        update("tool_call", toolCallId=first, title=more, kind="execute", status="pending",
               rawInput={"command": more})
        if verb == "call":
            update("tool_call_update", toolCallId=first, status="in_progress")
            update("tool_call_update", toolCallId=first, status="completed")
    elif verb == "permission":
        permission({"toolCallId": first}, OPTIONS)
    elif verb == "longest":
        text = {"type": "content", "content": {"type": "text", "text": "x" * 40_000}}
        permission({"toolCallId": "l", "title": "long", "content": [text]}, OPTIONS)
    elif verb == "edit":
        diff = {"type": "diff", "path": "/a.txt", "oldText": "old\n", "newText": "new\n"}
        permission({"toolCallId": "e", "title": "edit a.txt", "kind": "edit", "content": [diff],
                    "locations": [{"path": "/a.txt"}]}, OPTIONS)
    elif verb == "question":
        permission({"toolCallId": "q", "title": "? Which colour"}, CHOICES)
    elif verb == "form":
        ask("elicitation/create", mode="form", message="Who\nare you?", requestedSchema={
            "type": "object", "properties": {"q1": {"type": "string", "title": "Name"}}, "required": ["q1"]})
    elif verb == "url":
        ask("elicitation/create", mode="url", elicitationId="1", url="http://127.0.0.1/", message="Go there")
    elif verb == "read":
        ask("fs/read_text_file", path="/etc/hosts")
    elif verb == "env":
        say(repr(os.environ.get(rest)))
    elif verb == "where":
        say("%s %s" % (folder, os.getcwd()))
    elif verb == "stray":
        os.write(1, rest.encode() + b"\n")
    elif verb == "bytes":
        os.write(1, bytes(range(256)) + b"\n{\"jsonrpc\": \"2.0\", \"method\n[]\n\"text\"\n{}\n")
    elif verb == "stderr":
        os.write(2, rest.encode() + b"\n")
    elif verb == "flood":
        for _ in range(int(rest) * 16):
            os.write(2, b"x" * 65535 + b"\n")
    elif verb == "exit":
        os._exit(int(rest))
    elif verb == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif verb == "close":
        os.close(1)
        time.sleep(60)
    elif verb == "long":
        for _ in range(int(rest)):
            os.write(1, b"x" * (1 << 20))
        os.write(1, b"\n")
    elif verb == "sleep":
        time.sleep(float(rest))
    elif verb == "linger":
        say("%d" % subprocess.Popen(["sleep", "60"]).pid)
    elif verb == "stop":
        result["stopReason"] = rest
    elif verb == "count":
        result["usage"] = {"totalTokens": int(rest)}
    elif verb == "wait":
        cancelled.wait()
        open(os.path.join(folder, "cancelled"), "w").close()
        result["stopReason"] = "cancelled"
    elif verb == "mute":
        return False
    return True


def prompt(message) -> None:
    result, lines = {"stopReason": "end_turn"}, message["params"]["prompt"][0]["text"].splitlines()
    for line in lines:
        verb, _, rest = line.partition(" ")
        if verb == "refuse":
            return send({"id": message["id"], "error": {"code": -32603, "message": "Internal error",
                                                        "data": {"details": rest}}})
        if not do(verb, rest, result):
            return None
    for _ in range(2 if "twice" in lines else 1):
        send({"id": message["id"], "result": result})


def main(how) -> None:
    global folder
    if how == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        method = message.get("method")
        if method is None:
            answers.put(message)
        elif method == "initialize":
            if how == "exit":
                sys.exit("no licence")
            if how == "noise":
                os.write(1, b"Welcome!\n\n\x1b[1mready\x1b[0m\n")
            if how != "mute":
                send({"id": message["id"], "result": {"protocolVersion": 2 if how == "version" else 1,
                                                      "agentCapabilities": {}, "seen": message["params"]}})
        elif method == "session/new":
            folder = message["params"]["cwd"]
            if how in ("auth", "refuse"):
                send({"id": message["id"], "error": {"code": -32000 if how == "auth" else -32603,
                                                     "message": "No " + how}})
            else:
                send({"id": message["id"], "result": {} if how == "nosession" else {"sessionId": SESSION}})
        elif method == "session/prompt":
            threading.Thread(target=prompt, args=(message,), daemon=True).start()
        elif method == "session/cancel":
            cancelled.set()
    if how == "deaf":
        time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
