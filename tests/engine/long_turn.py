"""A conversation in which all happens that adds to a history, made by a real mm with a scripted model; and
what mm asked.

Both the tests of the prefix use it: the one in this folder looks at the bytes, the one in tests/real measures
what a server reads.
"""

from __future__ import annotations

import json
import os
from collections import namedtuple

from tests import support
from tests.fakes.model_server import ModelServer

# `bodies`: of all requests, in order, the last one for the summary of /compact; `log`: what mm said on
# stderr.
Recording = namedtuple("Recording", "bodies log")


def _call(name, **arguments):
    return {"call": {"name": name, "arguments": arguments}}


LOOK = _call("bash", command="ls")
UNREADABLE = [{"status": 500, "body": {"error": {"message": "Failed to parse tool call arguments as JSON: "
                                                            "[1] x"}}}]

# The first turn: more than ten steps.
WORK = [
    [{"thought": "First I look around."}, {"text": "I look around."}, LOOK],
    [{"thought": "Two at once."}, _call("bash", command="printf 'one\\ntwo\\n'"),
     _call("read_file", path="notes.txt")],
    [_call("write_file", path="plan.txt", content="1. look\n2. write\n")],  # a hook adds to its result
    [{"text": "A mistake of mine."}, _call("edit_file", path="plan.txt", old="2. write",
                                           new="2. write “it”")],
    [{"call": {"name": "bash", "arguments": "{broken"}}],
    [{"call": {"name": "fly", "arguments": {"to": "the moon"}}}],
    [LOOK], [LOOK], [LOOK],  # the last one with a nudge
    [{"thought": ["I think and think. " * 5] * 8}],  # cut, with a note
    [{"text": ["around and around we go, "] * 40}],  # cut, with a note
    UNREADABLE, UNREADABLE,  # asked again, then with a note
    [{"thought": "Enough."}, {"text": "All done, I think."}],  # a hook sends it on
    [{"text": "Now it is."}],
]
CUT = [[{"text": "The answer is for"}, {"finish": "length"}]]
BROKEN_OFF = [[{"text": "Let me tell you"}, {"hang": True}]]
LAST = [[{"thought": "Ünïcode."}, {"text": "✓ é 漢"}, LOOK], [{"text": "Good."}]]
SUMMARY = [[{"text": "Goal: look around. Done: plan.txt written."}]]

_HOOKS = {
    "sessionStart": [{"command": "echo 'The house rule: be brief.'"}],
    "userPrompt": [{"command": "echo 'The user is in a hurry.'"}],
    "postToolCall": [{"command": "echo '{\"context\": \"[a hook has looked at it]\"}'",
                      "match": "write_file"}],
    "turnEnd": [{"command": "test -e sent-on || { touch sent-on; echo 'look once more' >&2; exit 2; }"}],
}


def record() -> Recording:
    """Runs the conversation through the zipapp."""
    folder = support.scratch_folder()
    with open(os.path.join(folder, "notes.txt"), "w", encoding="utf-8") as file:
        file.write("Buy milk.\n")
    config = os.path.join(support.scratch_folder(), "config.json")
    with ModelServer(*WORK) as server:
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"model": {"url": server.url, "name": "m", "contextWindow": 100_000,
                                 "maxReasoning": 300}, "hooks": _HOOKS,
                       "context": {"keepLastTurns": 1}}, file)
        with support.Client("--config", config, cwd=folder) as client:
            client.initialize()
            session = client.new_session()
            client.prompt(session, "Look around and write a plan.")
            server.script(*CUT)
            client.prompt(session, "How much is it?")
            server.script(*BROKEN_OFF)
            prompt = client.start_prompt(session, "Tell me more.")
            client.wait_for(lambda: BROKEN_OFF[0][0]["text"] in client.text(),
                            what="the text before the cancel")
            client.cancel(session)
            client.finish(prompt)
            server.script(*LAST)
            client.prompt(session, "And now?")
            server.script(*SUMMARY)
            client.prompt(session, "/compact")
            client.wait_for(lambda: "/compact —" in client.stderr, what="the line about /compact")
            return Recording([request.body for request in server.requests], client.stderr)
