"""The sample streams, cut, repeated, spliced and corrupted by a fixed seed.

Of every variant holds: nothing is raised, it is done in no time, the text can be written as UTF-8, and what
comes out does not depend on the reads it came in (tried with every eighth). And for each call that would run,
which is one of a known tool with an object for arguments:

- Where only the framing was changed or the end was cut off, it is one of the sample's calls, and made no more
often.
- Where anything else was changed, the change may have made another call of it, as an `ls` becomes an `lp`.
Then the variant
  itself must say so: the name and each value stand in what it sends, in one piece. Nothing is put together
  from pieces that were never in line, and nothing is made up.
- Prose stays prose: in the samples that only quote a call, no single change makes it one.
"""

from __future__ import annotations

import json
import random
import time
import unittest

from mm.events import Text
from mm.model import sse
from mm.model.answer import Answer, Finish
from mm.model.answer import joined as whole_characters
from mm.model.http import ModelError
from tests import support
from tests.fakes.model_server import ModelServer
from tests.model import streams
from tests.model.test_text_calls import CALLS, PROSE, THOUGHTS, TOOLS, delta

SEED, OVER_HTTP = 4, 100
VARIANTS, TEXTS = (2_000, 200) if support.SHORT else (20_000, 1_500)
SLOWEST = 1.0  # seconds of CPU for one variant; a thousand times what one takes

NAMES = {tool["function"]["name"] for tool in streams.TOOLS}
BYTES = b'{}[]"\\,:<>|`/ \r\n\x00\xff\xe2abdlst019-'
TOKENS = [b"</tool_call>", b"<tool_call>", b"<think>", b"</think>", b"[TOOL_CALLS]", b"```", b"\\n", b'\\"',
          b"<|call|>", b"\n", b"\n\n", b"data: ", b"data: [DONE]\n\n", b": x\n", b"event: error\n",
          b"\xf0\x9f", b"\\ud83d", b"}}", b'"', b"null", b"\xef\xbd\x9c"]


def cut_off(random, body, _):
    return body[:random.randrange(len(body))]


def cut_out(random, body, _):
    at = random.randrange(len(body))
    return body[:at] + body[at + random.choice((1, 2, 5, 20, 80, 300)):]


def repeat(random, body, _):
    at = random.randrange(len(body))
    end = at + random.choice((1, 2, 5, 20, 80, 300))
    return body[:end] + body[at:end] * random.choice((1, 1, 3)) + body[end:]


def corrupt(random, body, _):
    changed = bytearray(body)
    for _ in range(random.choice((1, 1, 2, 8))):
        changed[random.randrange(len(changed))] = random.choice(BYTES)
    return bytes(changed)


def insert(random, body, _):
    at = random.randrange(len(body))
    return body[:at] + random.choice(TOKENS) + body[at:]


def lines_changed(random, body, _):
    """An event is lost, comes twice or comes too early."""
    lines = body.split(b"\n")
    at, to = random.randrange(len(lines)), random.randrange(len(lines))
    what = random.randrange(3)
    line = lines[at] if what == 1 else lines.pop(at)
    if what:
        lines.insert(to, line)
    return b"\n".join(lines)


def splice(random, body, other):
    return body[:random.randrange(len(body))] + other[random.randrange(len(other)):]


def framed_otherwise(random, body, _):
    """The same events, and around them what servers and proxies add."""
    if body.startswith((b"{", b"\xef")):
        return body
    lines = body.replace(b"\r\n", b"\n").split(b"\n")
    for _ in range(random.choice((1, 3, 9))):
        at = random.randrange(len(lines))
        if not lines[at]:  # between two events
            lines[at:at] = random.choice(([b""], [b": ping"], [b"id: 7"], [b"retry: 1"],
                                          [b"", b"event: message"], [b"x"], [b"data:"]))
    return random.choice((b"\n", b"\r\n")).join(lines)


FRAMING = (cut_off, framed_otherwise)
CHANGES = FRAMING + (cut_out, repeat, corrupt, corrupt, insert, lines_changed, splice)


def in_pieces(random, body) -> list:
    pieces = []
    while body:
        size = random.choice((1, 2, 3, 7, 20, 64, 200, 1000, 5000))
        pieces.append(body[:size])
        body = body[size:]
    return pieces


def runnable(events) -> list:
    """The calls that would run, in order."""
    return [call for call in streams.digest(events)["calls"] if call["name"] in NAMES
            and call["arguments"] is not None]


def said(body: bytes) -> str:
    """All that the stream sends: its bytes, and the pieces of each field joined, those of calls by their
    index and all of them."""
    joined, decoder = {}, sse.Decoder()
    for chunk in decoder.feed(body) + decoder.end():
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or choice.get("message") or {}
            calls = delta.get("tool_calls") or ()
            functions = [(call.get("index"), call.get("function") or {})
                         for call in calls] + [("legacy", delta.get("function_call") or {})]
            for place, fields in [(None, delta)] + functions:
                for key, value in fields.items() if not choice.get("index") else ():
                    if isinstance(value, str):
                        for field in ((place, key), key):
                            joined[field] = joined.get(field, "") + value
    return "\n".join([body.decode("utf-8", "replace"), *map(whole_characters, joined.values())])


def leaves(value) -> list:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in [key, *leaves(inner)]]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in leaves(inner)]
    return [value if isinstance(value, str) else json.dumps(value)]


def is_said(leaf: str, where: str) -> bool:
    return any(form in where for form in (leaf, json.dumps(leaf)[1:-1],
                                          json.dumps(leaf, ensure_ascii=False)[1:-1]))


class Streams(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(SEED)
        self.expected = streams.expected()
        self.samples = {name: streams.sample(name) for name in sorted(self.expected)}
        self.names = list(self.samples)

    def variant(self):
        name, change = self.random.choice(self.names), self.random.choice(CHANGES)
        return name, change, change(self.random, self.samples[name],
                                    self.samples[self.random.choice(self.names)])

    def test_variants(self):
        for number in range(VARIANTS):
            name, change, body = self.variant()
            try:
                self.check(number, name, change, body)
            except BaseException:
                print("variant %d: %s, %s: %r" % (number, name, change.__name__, body))
                raise

    def check(self, number, name, change, body):
        start = time.process_time()
        pieces = in_pieces(self.random, body) if number % 2 else [body]
        events, _, _ = streams.parse(pieces, streams.TOOLS)
        self.assertLess(time.process_time() - start, SLOWEST)
        found = streams.digest(events)
        (found["text"] + found["reasoning"]).encode("utf-8")
        if number % 8 == 1:
            self.assertEqual(found, streams.digest(streams.parse([body], streams.TOOLS)[0]))
        calls = runnable(events)
        if calls:
            own = list(self.expected[name]["calls"])
            if change in FRAMING:
                for call in calls:
                    self.assertIn(call, own)
                    own.remove(call)
            elif change is not splice:
                self.assertFalse(name.startswith("not_a_leak"), calls)
            for call in (call for call in calls if call not in self.expected[name]["calls"]):
                where = said(body)
                for leaf in [call["name"], *leaves(call["arguments"])]:
                    self.assertTrue(is_said(leaf, where), leaf)

    def test_over_http_a_variant_is_answered_or_refused(self):
        with ModelServer() as server:
            for _ in range(OVER_HTTP):
                name, change, body = self.variant()
                server.script([{"raw": body}] * 2)
                with self.subTest(name, change=change.__name__, body=body):
                    try:
                        events = streams.ask(streams.server(server.url), tools=streams.TOOLS)
                    except ModelError as problem:
                        self.assertNotIn("\n", str(problem))
                    else:
                        self.assertIsInstance(events[-1], Finish)


class Texts(unittest.TestCase):
    """The same for texts with calls and thoughts in them: nothing is lost, and the cut does not matter."""

    def test_variants(self):
        chance = random.Random(SEED)
        texts = [case[1] for case in CALLS + THOUGHTS] + PROSE[1:]
        for number in range(TEXTS):
            text = chance.choice(texts)
            for _ in range(chance.choice((1, 1, 3))):
                at, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
                other = chance.choice(texts)
                text = chance.choice((text[:at] + text[end:], text[:end] + text[at:],
                                      text[:at] + chance.choice("<[{`\n \"|}>")
                                      + text[at:], text[:at] + other[chance.randrange(len(other)):])) or " "
            with self.subTest(text):
                whole = self.read([text])
                self.assertEqual(whole, self.read([text[at:at + 1] for at in range(len(text))]))
                self.assertEqual(whole, self.read(in_pieces(chance, text)))
                if not whole["calls"] and not any(sign in text
                                                  for sign in ("think", "THINK", "<|", "assistant")):
                    self.assertEqual(text, whole["text"])
                    self.assertEqual("", whole["reasoning"])

    def read(self, pieces) -> dict:
        answer = Answer(TOOLS)
        events = [event for piece in pieces for event in answer.take(delta(content=piece))] + answer.end()
        self.assertTrue(all(event.text for event in events if isinstance(event, Text)))
        return streams.digest(events)


if __name__ == "__main__":
    unittest.main()
