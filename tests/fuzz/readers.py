"""The readers that are fed with broken input: READERS has one for each, by name.

A reader takes one input and raises nothing but what it declares. What it may keep open it closes at the end.
"""

from __future__ import annotations

import glob
import json
import os
import pathlib
import sys

from mm.cancel import Cancel
from mm.config import config, config_file
from mm.config.entries import McpServer
from mm.conversation import history, session_file
from mm.engine.session import Session
from mm.errors import UserError
from mm.fronts.acp import replay
from mm.model import sse
from mm.model.answer import Answer
from mm.model.http import ModelError
from mm.peers.mcp_pool import McpPool
from mm.skills import catalogue, invocation
from mm.peers.lsp import LanguageServer
from mm.tools import charset, lsp_answers, mcp, page, registry, rename
from mm.tools.context import Context, Seen
from mm.tools.tool import ToolError
from mm.wire import framing
from mm.wire.messages import Refused, read as read_message
from tests import support
from tests.fuzz import samples

HERE = os.path.dirname(os.path.abspath(__file__))


class Reader:
    """One kind of input: its samples, and what reads it."""

    samples = ()
    # What it may raise: the input is refused, in words.
    refusals = ()

    def __init__(self, random):
        self.random = random

    def read(self, data: bytes) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """At the end; may fail like a read."""


class ClientLines(Reader):
    """What an editor sends, to a real `mm -acp`: it answers the next good request, and has no internal
    error.
    """

    samples = samples.CLIENT_LINES
    TOGETHER = 50  # lines before the next good request
    LIVES = 4_000  # lines before the next process: the sessions that were opened stay

    def __init__(self, random):
        super().__init__(random)
        self._lines, self._client = 0, None

    def read(self, data):
        if self._client is None:
            self._client = support.Client("--demo", command=[sys.executable, "-m", "mm", "-acp", "--demo"],
                                          cwd=support.PROJECT, permission=lambda params: None)
        self._client.send_bytes(data.replace(b"<cwd>", HERE.encode()) + b"\n")
        self._lines += 1
        if self._lines % self.TOGETHER == 0:
            self._look()
        if self._lines % self.LIVES == 0:
            self.close()

    def _look(self):
        good = "good %d" % self._lines
        self._client.send({"jsonrpc": "2.0", "id": good, "method": "none", "params": {}})
        assert self._client.answer(good)["error"]["code"] == -32601
        for message in self._client.messages:
            assert (message.get("error") or {}).get("code") != -32603, message
        assert "Traceback" not in self._client.stderr, self._client.stderr
        del self._client.messages[:]

    def close(self):
        if self._client is not None:
            client, self._client = self._client, None
            with client:
                code = client.close()
                assert code == 0 and "Traceback" not in client.stderr, (code, client.stderr)


class Messages(Reader):
    """JSON-RPC in both framings, cut anywhere."""

    samples = samples.CLIENT_LINES + [framing.encode_header({"jsonrpc": "2.0", "id": 1,
                                                             "result": {"a": [1]}})]

    def read(self, data):
        for framer in (framing.LineFramer(), framing.HeaderFramer()):
            messages = []
            try:
                for piece in pieces(self.random, data):
                    messages += framer.feed(piece)
                messages += framer.rest()
            except framing.TooLong:
                pass
            for message in messages:
                try:
                    read_message(message)
                except Refused:
                    pass


class Stream(Reader):
    """The model server's stream, up to the events of an answer."""

    samples = [pathlib.Path(path).read_bytes() for path in sorted(glob.glob(os.path.join(
        support.PROJECT, "tests", "data", "model-streams", "*.sse")))]
    refusals = (ModelError,)

    def read(self, data):
        decoder, answer = sse.Decoder(), Answer(samples.TOOLS)
        for piece in pieces(self.random, data):
            for chunk in decoder.feed(piece):
                answer.take(chunk)
        for chunk in decoder.end():
            answer.take(chunk)
        answer.end()


class SessionFile(Reader):
    """A saved conversation: the messages for the model, and the replay for the editor."""

    samples = samples.SESSIONS
    refusals = (session_file.SessionError,)

    def read(self, data):
        saved = session_file.parse(data)[0]
        for update in replay.updates(saved.messages, registry.built_in(samples.SETTINGS)):
            line = framing.encode_line(update)
            if b"\\u001b" in line or "toolCallId" in update and len(line) > 64 * 1024:
                raise AssertionError("not fit for a client: %r" % line[:200])
        replay.highest_ref(saved.messages)
        json.dumps(history.to_wire("system", saved.messages))
        plan = Session("20260916-101530-4f2a9c1e", HERE, samples.SETTINGS, saved=saved).seen.plan
        if plan is not None:
            framing.encode_line(plan.entries())


class Configuration(Reader):
    """A repository's configuration file: trusted or not, it is a configuration or an error in one line."""

    samples = samples.CONFIGURATIONS
    refusals = (UserError,)

    def __init__(self, random):
        super().__init__(random)
        self._folder = support.scratch_folder()
        self._path = os.path.join(self._folder, ".mm", "config.json")
        os.mkdir(os.path.dirname(self._path))

    def read(self, data):
        with open(self._path, "wb") as file:
            file.write(data)
        try:
            config.load(self._folder, {"HOME": "/nonexistent"})
        except UserError as error:
            assert "\n" not in str(error) and str(error).isprintable(), error
        config.load(self._folder, {"HOME": "/nonexistent"}, self._path)


class FrontMatter(Reader):
    """A SKILL.md of a repository: listed, or left out with a reason."""

    samples = samples.SKILLS

    def __init__(self, random):
        super().__init__(random)
        self._folder = support.scratch_folder()
        self._path = os.path.join(self._folder, ".mm", "skills", "fuzzed", "SKILL.md")
        os.makedirs(os.path.dirname(self._path))

    def read(self, data):
        with open(self._path, "wb") as file:
            file.write(data)
        skills = catalogue.find(self._folder, samples.SETTINGS, {"HOME": self._folder}).skills
        invocation.prompt_section(skills)
        for skill in skills:
            try:
                catalogue.body(skill)
            except (ToolError, UserError, OSError):
                pass


class Page(Reader):
    """A page of the web."""

    samples = [pathlib.Path(path).read_bytes() for path in sorted(glob.glob(os.path.join(
        support.PROJECT, "tests", "data", "pages", "*.html")))] + samples.PAGES

    def read(self, data):
        text = charset.decode(data, self.random.choice(("", "utf-8", "utf-16", "latin-1", "gbk", "nonsense")),
                              True)
        page.read(text, "https://example.org/a/b?c", lambda: None).text.encode("utf-8")


class Transcript(Reader):
    """A transcript of somebody else, and a line of an agent compared with it."""

    samples = samples.TRANSCRIPTS
    refusals = (UserError,)

    def read(self, data):
        from mm.transcripts import transcript

        for line in transcript.parse(data.decode("utf-8", "replace")):
            if line.sign in ("<", "<*", "~"):
                transcript.compare(line.value, self.random.choice(samples.CLIENT_LINES),
                                   {"cwd": "/", "home": "/"})


class Mcp(Reader):
    """The answers of an MCP server: a program whose lines are broken in the same way, see mcp_program.py."""

    samples = samples.MCP_RESULTS
    refusals = (ToolError,)
    LIVES = 1_000  # calls before the next process

    def __init__(self, random):
        super().__init__(random)
        self._calls, self._pool, self._servers = 0, None, None
        self._context = context(HERE)
        self._feed = os.path.join(support.scratch_folder(), "next")

    def read(self, data):
        with open(self._feed, "wb") as file:
            file.write(data)
        if self._pool is None:
            command = (sys.executable, "-I", "-S", os.path.join(HERE, "mcp_program.py"), self._feed)
            self._pool = McpPool(5)
            self._servers = self._pool.join({"fuzz": McpServer(command, {}, None, None, 5)}, HERE,
                                            support.environment())
        self._servers.begin()
        self._servers.ready(Cancel(), 5)
        tools = mcp.tools(self._servers, (), 0)[0]
        json.dumps(registry.to_wire(tools))
        self._calls += 1
        try:
            if tools:
                tools[0].prepare({}, self._context).run(lambda tail: None)
        finally:
            if self._servers.problems or self._calls % self.LIVES == 0:
                self.close()

    def close(self):
        if self._pool is not None:
            self._pool.close(0)
            self._pool = None


class Lsp(Reader):
    """The answers of a language server."""

    samples = samples.LSP_RESULTS
    refusals = (ToolError,)

    def __init__(self, random):
        super().__init__(random)
        folder = support.scratch_folder()
        with open(os.path.join(folder, "a.py"), "w") as file:
            file.write("def greet():\n    return 1\n\n\ngreet()\n")
        self._context = context(folder)
        self._uri = pathlib.Path(folder, "a.py").as_uri().encode()

    def read(self, data):
        try:
            answer = json.loads(data.replace(b"file:///a.py", self._uri))
        except (ValueError, RecursionError):
            return  # wire.messages refuses it: see Messages
        found = lsp_answers.locations(answer)
        lsp_answers.places(found, self._context.folder, lambda uri, line: "x = 1")
        lsp_answers.hover(answer)
        lsp_answers.outline(answer)
        lsp_answers.found_symbols([answer], self._context.folder)
        lsp_answers.diagnostics(answer if isinstance(answer, list) else [answer], "a.py",
                                lambda position: (0, 0))
        changes = rename.plan(answer, LanguageServer("fuzz", (), "/", {}), self._context, "greet", "hail")
        rename.summary(changes)
        rename.listing(changes)


def pieces(random, data: bytes):
    """The data in reads of any length."""
    if random.random() < 0.5:
        yield data
        return
    while data:
        length = random.choice((1, 3, 10, 100, 5000))
        yield data[:length]
        data = data[length:]


def context(folder: str) -> Context:
    """What a tool's call in this folder gets."""
    return Context(folder, samples.SETTINGS, Cancel(), None, "call_1", 0, Seen())


READERS = {"client": ClientLines, "messages": Messages, "sse": Stream, "mcp": Mcp, "lsp": Lsp,
           "sessions": SessionFile, "config": Configuration, "skills": FrontMatter, "html": Page,
           "transcripts": Transcript}
