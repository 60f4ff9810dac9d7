"""What two real servers sent, head and body as they came: llama-server (native.*, demo.*) and
llama_cpp.server (py.*).

The answers are read in pieces and over a socket, the refusals over a socket, and what they tell of themselves
by the probe of the window. expected.json holds each answer whole.
"""

from __future__ import annotations

import json
import os
import re
import socketserver
import threading
import unittest
from collections import namedtuple

from mm.cancel import Cancel
from mm.model import chat, window
from mm.model.answer import Answer
from mm.model.sse import Decoder
from tests.model import streams

FOLDER = os.path.join(os.path.dirname(streams.FOLDER), "real-captures")

# The tool that the requests offered: a text that is no call must stay one though the tool is known.
TOOLS = [{"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}]

# One answer. `head`: its lines; a capture without one was the body of a 200.
Capture = namedtuple("Capture", "status head body")

STREAM = ["HTTP/1.1 200 OK", "Content-Type: text/event-stream"]


def captures(name: str) -> list:
    """The answers in one file; what its recorder noted behind the last one (`#curl …`) left out."""
    with open(os.path.join(FOLDER, name + ".sse"), "rb") as file:
        content = file.read().partition(b"\n#curl ")[0]
    if not content.startswith(b"#### "):
        return [_capture(content)]
    return [_unchunked(_capture(part)) for part in re.split(rb"#### request \d\n", content)[1:]]


def _capture(content: bytes) -> Capture:
    if not content.startswith(b"HTTP"):
        return Capture(200, STREAM, content)
    head, _, body = content.partition(b"\n\n")
    if not head.startswith(b"HTTP/"):  # the status and the body on one line, as a script printed them
        status, body = re.match(rb"HTTP (\d+) (\{.*)", content).groups()
        return Capture(int(status), ["HTTP/1.1 %d Refused" % int(status), "Content-Type: application/json"],
                       body)
    lines = head.decode("latin-1").splitlines()
    return Capture(int(lines[0].split()[1]), lines, body)


def _unchunked(capture: Capture) -> Capture:
    """Without the chunk sizes, which a capture of the bare socket still has."""
    rest, body = capture.body, b""
    while rest:
        size, _, rest = rest.partition(b"\n")
        size = int(size, 16)
        body, rest = body + rest[:size], rest[size + 1:]
        if not size:
            break
    return capture._replace(body=body)


def capture(name: str) -> Capture:
    """By its name in expected.json: `two_at_once.1` is the second answer in that file."""
    stem, number = re.fullmatch(r"(.*?)(?:\.(\d))?", name).groups()
    return captures(stem)[int(number or 0)]


class Playback(socketserver.ThreadingTCPServer):
    """A server that answers each POST with the next capture, the last one again and again; head and chunks as
    they came."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *answers: Capture, pages=None):
        super().__init__(("127.0.0.1", 0), _Player)
        self.answers, self.pages, self.asked = list(answers), pages or {}, 0
        self.url = "http://127.0.0.1:%d/v1" % self.server_address[1]
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class _Player(socketserver.StreamRequestHandler):
    def handle(self):
        method, path, _ = self.rfile.readline().decode("latin-1").split(" ", 2)
        head = iter(lambda: self.rfile.readline().decode("latin-1").strip(), "")
        length = sum(int(line.partition(":")[2]) for line in head
                     if line.lower().startswith("content-length:"))
        self.rfile.read(length)
        if method == "GET":
            self._send(self.server.pages.get(path, Capture(404, ["HTTP/1.1 404 Not Found"], b"{}")))
            return
        number, self.server.asked = self.server.asked, self.server.asked + 1
        self._send(self.server.answers[min(number, len(self.server.answers) - 1)])

    def _send(self, answer: Capture):
        head = [line for line in answer.head if not line.lower().startswith(("keep-alive", "connection",
                                                                             "content-length"))]
        chunked = any(line.lower().startswith("transfer-encoding: chunked") for line in head)
        head += ["Connection: close"] + ([] if chunked else ["Content-Length: %d" % len(answer.body)])
        self.wfile.write("\r\n".join(head + ["", ""]).encode("latin-1"))
        for event in re.findall(rb"(?s).+?(?:\n\n|\Z)", answer.body) if chunked else [answer.body]:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event) if chunked else event)
        self.wfile.write(b"0\r\n\r\n" if chunked else b"")


def read(pieces) -> list:
    """The events of one body that comes in these pieces."""
    answer, decoder, events = Answer(TOOLS), Decoder(), []
    for chunk in [chunk for piece in pieces for chunk in decoder.feed(piece)] + decoder.end():
        events += answer.take(chunk)
    return events + answer.end()


def ask(*answers: Capture):
    """(what chat.complete yields for these answers of a server, the ModelError it raises or None, how often
    it asked)."""
    events = []
    with Playback(*answers) as server:
        try:
            for event in chat.complete(streams.server(server.url), [{"role": "user", "content": "hi"}], TOOLS,
                                       Cancel()):
                events.append(event)
        except chat.ModelError as error:
            return events, error, server.asked
        return events, None, server.asked


with open(os.path.join(FOLDER, "expected.json"), encoding="utf-8") as _file:
    EXPECTED = json.load(_file)

# Streams that end well and are no answer; the first two are made of a capture's parts, as they were seen.
NO_ANSWER = [
    ("a new request cuts the one that is streaming: [DONE] without a finish reason",
     Capture(200, STREAM, re.search(rb"(?s)data: .+?\n\n", capture("py.chat").body).group()
             + b"data: [DONE]\n\n")),
    ("a body that ends without [DONE]", capture("native.chat")._replace(body=capture("native.chat").body[:700])),
    ("a prompt too long, streamed", capture("py.overflow_forced")),
    ("tool_choice that it cannot stream", capture("py.tools_required")),
    ("the same for a tool that is not offered", capture("py.bad_forced_unknown")),
    ("the same with a result in the conversation", capture("py.tool_result_auto")),
    ("the same with broken arguments in the conversation", capture("py.bad_history_args")),
]

# capture, kind, status, numbers, what the line says of the server's words.
REFUSALS = [
    ("native.overflow_stream", "context_overflow", 400, {"prompt": 20016, "window": 4096}, ("20016", "4096")),
    ("native.overflow_tools", "context_overflow", 400, {"window": 4096}, ("4096",)),
    ("native.overflow_forced", "context_overflow", 400, {"window": 4096}, ("4096",)),
    ("py.overflow_nonstream", "context_overflow", 400, {"prompt": 20016, "window": 4096}, ("4096",)),
    ("native.bad_choice_word", "bad_request", 400, {}, ("Invalid tool_choice: sometimes",)),
    ("native.bad_messages", "bad_request", 400, {}, ("Expected 'messages' to be an array",)),
    ("native.max_tokens_string", "bad_request", 400, {}, ("max_tokens", "must be number")),
]

# A request that is mm's fault, and answered with a 500 or with the words of a template: any kind but these
# says what is wrong.
FAULTS = [
    ("native.bad_no_name", 500, "key 'name' not found"),
    ("native.bad_tools_dict", 500, "Expected 'tools' to be an array"),
    ("native.bad_params_string", 400, "schema must be an object"),
    ("native.bad_ref", 400, "cannot resolve $ref"),
    ("native.bad_type_name", 400, "unrecognized type strnig"),
    ("py.bad_no_name", 500, "validation error"),
    ("py.bad_no_params", 500, "validation error"),
    ("py.bad_tool_type", 500, "validation error"),
    ("py.content_null", 500, "validation error"),
]


class Answers(unittest.TestCase):
    def test_every_capture_is_looked_at(self):
        files = {name[:-len(".sse")] for name in os.listdir(FOLDER) if name.endswith(".sse")}
        told = {name for name, *_ in REFUSALS + FAULTS} | {re.sub(r"\.\d$", "", name) for name in EXPECTED}
        told |= {name for name in files if ".GET_" in name}
        empty = {name for name in files - told if not captures(name)[0].body}
        self.assertEqual(files - told - empty, set())
        self.assertEqual(len(empty), 5)

    def test_all_pieces_are_read_alike(self):
        for name, expected in EXPECTED.items():
            body = capture(name).body
            sizes = (1, 2, 3, 7, 64) if len(body) < 16_000 else (64, 4096)
            for size in (len(body), *sizes):
                with self.subTest(name, size=size):
                    self.assertEqual(streams.digest(read(body[at:at + size]
                                                         for at in range(0, len(body), size))), expected)

    def test_they_are_read_alike_over_a_socket(self):
        for name, expected in EXPECTED.items():
            with self.subTest(name):
                events, error, asked = ask(capture(name))
                self.assertIsNone(error)
                self.assertEqual(streams.digest(events), expected)
                self.assertEqual(asked, 1)

    def test_a_call_with_cut_arguments_is_kept(self):
        whole = capture("py.tools_forced")
        events = re.findall(rb"(?s)data: .+?\n\n", whole.body)
        cut = [event for event in events if b'"finish_reason": "tool_calls"' in event or b"[DONE]" in event]
        events, error, _ = ask(whole._replace(body=b"".join(events[:4] + cut)))
        self.assertIsNone(error)
        [call] = [event for event in events if isinstance(event, chat.ToolCall)]
        self.assertEqual((call.name, events[-1]), ("bash", chat.Finish("tool_calls")))
        self.assertRaises(ValueError, json.loads, call.arguments)

    def test_comments_between_the_events_are_no_output(self):
        body = capture("native.chat").body
        pinged = b":\n\n" + body.replace(b"\n\n", b"\n\n:\n\n", 5)
        self.assertEqual(streams.digest(read([pinged])), EXPECTED["native.chat"])


class Failures(unittest.TestCase):
    def test_a_stream_without_an_answer_is_a_failure(self):
        for what, answer in NO_ANSWER:
            with self.subTest(what):
                _, error, _ = ask(answer)
                self.assertIsNotNone(error)
                self.assertNotIn("\n", str(error))
                self.assertIn("127.0.0.1", str(error))

    def test_an_interrupted_answer_can_be_asked_again(self):
        _, cut = NO_ANSWER[0]
        events, error, asked = ask(cut, capture("py.chat"))
        if error is None:
            self.assertEqual((streams.digest(events), asked), (EXPECTED["py.chat"], 2))
        else:
            self.assertIn("interrupted", str(error))

    def test_refusals(self):
        for name, kind, status, numbers, words in REFUSALS:
            with self.subTest(name):
                _, error, _ = ask(capture(name))
                self.assertEqual((error.kind, error.status), (kind, status))
                for key, value in numbers.items():
                    self.assertEqual(error.numbers.get(key), value)
                for each in words:
                    self.assertIn(each, str(error))

    def test_request_faults_keep_the_servers_words(self):
        for name, status, words in FAULTS:
            with self.subTest(name):
                _, error, _ = ask(capture(name))
                self.assertEqual(error.status, status)
                self.assertIn(words, str(error))
                self.assertNotIn("\n", str(error))
                self.assertLess(len(str(error)), 600)
                self.assertNotEqual(error.kind, "context_overflow")


class Windows(unittest.TestCase):
    def probed(self, **pages):
        names = {"props": "/props", "models": "/v1/models"}
        with Playback(pages={names[page]: capture(name) for page, name in pages.items()}) as server:
            return window.ask_size(streams.server(server.url, model="smollm2-135m"), Cancel())

    def test_the_window_is_what_the_server_allocated(self):
        for pages, told in [
                ({"props": "demo.GET_props", "models": "demo.GET_v1models"}, (4096, "llama.cpp")),
                ({"props": "native.GET_props"}, (4096, "llama.cpp")),
                ({"models": "demo.GET_v1models"}, (4096, None)),  # not n_ctx_train, which is 8192
                ({"props": "py.GET_health", "models": "py.GET_v1models"}, (0, None))]:
            with self.subTest(**pages):
                self.assertEqual(self.probed(**pages), told)


if __name__ == "__main__":
    unittest.main()
