"""A tiny ACP agent for the tests of the transcript player: what a prompt says is what it does.

    say TEXT        answers with one chunk        ask WORDS   asks the model at MM_URL and passes its stream on
    stray           writes a line that is no JSON live        writes live output of a command, then answers
    two             answers with two updates in the opposite order each time
    crash           dies with a traceback         quit        exits at once with code 3
    late            answers after the end of its stdin
    mute            never answers                 linger      answers, and ignores the end of its stdin
    env NAME        says a variable               file NAME   says what is in a file of the session's folder
    permission      asks for one and says the answer
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

stdin_ended = threading.Event()
SESSION_ID = "20260916-101530-4f2a9c1e"


def send(message) -> None:
    data = json.dumps(dict({"jsonrpc": "2.0"}, **message), ensure_ascii=False) + "\n"
    os.write(1, data.encode("utf-8"))


def update(session_id, body) -> None:
    send({"method": "session/update", "params": {"sessionId": session_id, "update": body}})


def chunk(session_id, text) -> None:
    update(session_id, {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


def ask(words):
    """The raw lines of the model's stream; an HTTP error's status and body."""
    import urllib.request

    body = {"model": os.environ["MM_MODEL"], "stream": True, "messages": [
        {"role": "system", "content": "in " + os.getcwd()}, {"role": "user", "content": words},
    ]}
    request = urllib.request.Request(os.environ["MM_URL"] + "/chat/completions", json.dumps(body).encode("utf-8"))
    try:
        with urllib.request.urlopen(request) as answer:
            for line in answer:
                if line.strip():
                    yield line.decode("utf-8").strip()
    except urllib.error.HTTPError as error:
        yield "{} {}".format(error.code, error.read().decode("utf-8"))
    except OSError:
        yield "dropped"


def prompt(request) -> None:
    session_id = request["params"]["sessionId"]
    verb, _, rest = request["params"]["prompt"][0]["text"].partition(" ")
    if verb == "say":
        chunk(session_id, rest)
    elif verb == "ask":
        for line in ask(rest):
            chunk(session_id, line)
    elif verb == "stray":
        os.write(1, b"hello from a print\n")
    elif verb == "live":
        for tail in ("1", "1 2"):
            update(session_id, {"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "in_progress",
                                "content": [{"type": "content", "content": {"type": "text", "text": tail}}]})
    elif verb == "two":
        for word in ("second", "first"):
            chunk(session_id, word)
    elif verb == "crash":
        raise RuntimeError("as asked")
    elif verb == "quit":
        os._exit(3)
    elif verb == "late":
        stdin_ended.wait()
        chunk(session_id, "late")
    elif verb == "mute":
        return
    elif verb == "linger":
        threading.Thread(target=time.sleep, args=(60,)).start()
    elif verb == "env":
        chunk(session_id, repr(os.environ.get(rest)))
    elif verb == "file":
        with open(rest, encoding="utf-8") as file:
            chunk(session_id, file.read())
    elif verb == "permission":
        send({"id": 1, "method": "session/request_permission", "params": {"sessionId": session_id}})
        return
    send({"id": request["id"], "result": {"stopReason": "end_turn"}})


def main() -> None:
    sys.stderr.write("tiny agent " + " ".join(sys.argv[1:]) + "\n")
    sys.stderr.flush()
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            send({"id": None, "error": {"code": -32700, "message": "Parse error"}})
            continue
        method = message.get("method")
        if method == "session/new":
            sys.stderr.write("[acp] session {}: new, {}\n".format(SESSION_ID, message["params"]["cwd"]))
            sys.stderr.flush()
            send({"id": message["id"], "result": {"sessionId": SESSION_ID}})
        elif method == "session/prompt":
            # In a thread: the model may keep it waiting while more comes in, and for ever.
            asks = message["params"]["prompt"][0]["text"].startswith("ask ")
            threading.Thread(target=prompt, args=(message,), daemon=asks).start()
        elif method == "session/cancel":
            chunk(message["params"]["sessionId"], "cancel came")
        elif "result" in message:
            chunk(SESSION_ID, json.dumps(message["result"]))
        else:
            send({"id": message.get("id"), "result": {"got": message}})
    stdin_ended.set()


main()
