"""Measures, in the interpreter that runs it, what it costs to read an answer; prints numbers on one line.

    reading.py chunk      CPU in µs for json.loads of a chunk, and for all that mm does with it, of about 230
    bytes reading.py argument   CPU in ms for a tool argument of 100 KB in deltas of 4 bytes, and for one of
    200 KB reading.py held       characters that were not said in the read that brought them, of text that
    cannot begin a call
"""

from __future__ import annotations

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from mm.model import sse  # noqa: E402
from mm.model.answer import Answer  # noqa: E402

TOOLS = [{"type": "function", "function": {"name": "bash",
                                           "parameters": {"properties": {"command": {"type": "string"}}}}}]
CHUNKS, ROUNDS = 20_000, 7


def data(**delta) -> bytes:
    chunk = {"choices": [{"finish_reason": None, "index": 0, "delta": delta}], "created": 1790000000,
             "id": "chatcmpl-kVDMIBVgDHjCHkEfOGsqpQqwDYvFnPRz", "model": "qwen3-coder-30b-a3b-q4_k_m.gguf",
             "object": "chat.completion.chunk"}
    return json.dumps(chunk, separators=(",", ":")).encode()


def seconds(work) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def read(events) -> None:
    answer, decoder = Answer(TOOLS), sse.Decoder()
    for event in events:
        for chunk in decoder.feed(event):
            answer.take(chunk)
    answer.end()


def chunk() -> list:
    chunks = [data(content=" word%03d" % (number % 1000)) for number in range(CHUNKS)]
    events = [b"data: " + each + b"\n\n" for each in chunks]
    floor = seconds(lambda: [None for each in chunks if json.loads(each) is None])
    return [floor / CHUNKS * 1e6, seconds(lambda: read(events)) / CHUNKS * 1e6]


def argument() -> list:
    def work(length):
        first = data(tool_calls=[{"index": 0, "id": "a",
                                  "function": {"name": "bash", "arguments": '{"command":"'}}])
        piece = data(tool_calls=[{"index": 0, "function": {"arguments": "abcd"}}])
        events = [b"data: " + each + b"\n\n" for each in [first] + [piece] * (length // 4)]
        return lambda: read(events)

    return [seconds(work(length)) * 1e3 for length in (100_000, 200_000)]


def held() -> list:
    answer, most = Answer(TOOLS), 0
    for text in ["The", " answer", " is:", " a", " <b", "> [1", "] {", "x}.", "\n\nSo", " `ls`", "\n#",
                 " A\n- b", "\n```sh\nls", "\n```\nfor x", ", \"name\""] * 100:
        said = sum(len(event.text) for event in answer.take({"choices": [{"index": 0,
                                                                          "delta": {"content": text}}]}))
        most = max(most, len(text) - said)
    return [most]


if __name__ == "__main__":
    print(*{"chunk": chunk, "argument": argument, "held": held}[sys.argv[1]]())
