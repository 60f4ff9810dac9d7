"""Plays a transcript against mm, or any other ACP agent: `mm --replay FILE` and the tests use this one
player.

The agent is a real process with an empty home, a folder of its own to work in and, as its model server, the
transcript's `=` lines behind real HTTP. A `>` line is sent when everything above it has happened.

Threads: the main one compares and has the only say; one each reads the agent's stdout and stderr, one writes
its stdin, and the server's own threads answer the model requests. All they do with the main one is to put
events on one queue:

    ("out", bytes) ("out", None) at the end        ("asked", index, body)        ("err", text) ("err", None)
    at the end

Nothing waits without a deadline, and the deadline counts from the last thing that was expected and came.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import namedtuple

from mm.errors import UserError
from mm.transcripts import script, transcript
from mm.transcripts.stage import Stage
from mm.transcripts.placeholders import fill
from mm.model.loopback import Loopback, error_reply

DEADLINE = 10.0  # seconds without anything expected happening; `# deadline:` in a transcript sets another
GOODBYE = 5.0  # seconds for the agent to exit after its stdin was closed
# What stands between two sends: the lines that send, the "<" lines in order, the "<*" lines, and how many "~"
# and "!" lines of the whole file there are down to here.
Part = namedtuple("Part", "sends ordered anytime asked said")


def replay(path: str, command, out=None, cwd: str | None = None) -> int:
    """Plays the file against the agent that `command` starts. Returns the exit code: 0, or 1 for a
    difference.

    Writes to `out`, by default stdout, whether it went the same way. `cwd` is a folder to play in, which is
    left as the agent leaves it; by default a fresh one. Raises UserError if the file cannot be read or is not
    a transcript.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise UserError("{}: {}".format(path, error.strerror or error), exit_code=2) from None
    except UnicodeDecodeError:
        raise UserError("{}: is not a transcript: not UTF-8".format(path), exit_code=2) from None
    try:
        lines = transcript.parse(text)
    except UserError as error:
        raise UserError("{}: {}".format(path, error), exit_code=2) from None
    if not any(line.sign == ">" for line in lines):
        raise UserError("{}: is not a transcript: nothing is sent in it".format(path), exit_code=2)
    parting = play(lines, command, cwd)
    (out or sys.stdout).write(report(path, parting) if parting else "{}: the same\n".format(path))
    return 1 if parting else 0


def play(lines, command, cwd: str | None = None):
    """Plays parsed lines against `command`; returns the first Parting, or None when there is none."""
    # The real path: the agent may resolve links, and <cwd> stands for one path only.
    folder = os.path.realpath(tempfile.mkdtemp(prefix="mm-replay-"))
    try:
        return _Play(lines, command, Stage(lines, folder, cwd and os.path.realpath(cwd))).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # what a command left running may still write there


def report(path: str, parting: Parting) -> str:
    """The text that shows where an agent parted from the transcript."""
    line = parting.line
    told = ["{}: differs{}".format("{}:{}".format(path, line.number) if line else path,
                                   " at " + parting.path if parting.path else ""),
            "  expected  " + parting.expected, "  got       " + parting.got]
    if line and parting.path:
        told.append("  the line  {} {}".format(line.sign, line.text))
    if parting.whole:
        told.append("  got line  " + _cut(parting.whole))
    told += ["  stderr"] * bool(parting.stderr) + ["    " + _cut(text) for text in parting.stderr]
    return "\n".join(told) + "\n"


class Parting(Exception):
    """Where an agent parted from the transcript.

    `line` is the transcript.Line or None if it has to do with none; `expected` and `got` say what should have
    come and what came, at `path` in the message; `whole` is the whole line that came, and `stderr` what the
    agent wrote there.
    """

    def __init__(self, line, expected: str, got: str, whole: str = "", path: str = ""):
        super().__init__()
        self.line, self.expected, self.got, self.whole, self.path = line, expected, got, whole, path
        self.stderr = []


class _Play:
    """One run of one transcript."""

    def __init__(self, lines, command, stage: Stage):
        self._command = command
        self._stage = stage
        self._parts = _parts(lines)
        self._groups = transcript.groups(lines)
        self._said = [line for line in lines if line.sign == "!"]
        self._every_stderr_line = bool(transcript.directives(lines, "stderr"))
        self._usage_ignored = bool(transcript.directives(lines, "usage"))
        self._deadline = (transcript.directives(lines, "deadline") or [DEADLINE])[-1]
        # What the placeholders stand for. Never changed, only replaced: the server's threads read it.
        self._names = stage.names
        self._events = queue.Queue()
        self._stop = threading.Event()
        self._requests = 0
        self._counting = threading.Lock()  # of requests, by the server's threads
        self._asked = self._heard = 0
        self._stderr = []
        # Of the agent that runs: its process, what it is to be sent, and how many of its streams are open.
        self._process, self._to_send, self._open_streams = None, queue.Queue(), 0

    def run(self):
        server = Loopback(self._answer, self._stage.model)
        try:
            self._start(server.url)
            for part in self._parts:
                if part.sends and transcript.restarts(part.sends[0]):
                    self._end(killed=part.sends[0].value.value == "killed")
                    self._start(server.url)
                self._send(part)
                self._wait(part)
            self._end()
        except Parting as parting:
            self._stop.set()
            self._to_send.put(None)
            self._drain()
            parting.stderr = self._stderr
            return parting
        finally:
            self._stop.set()
            self._to_send.put(None)
            if self._process:
                _end_process(self._process)
            server.close()
        return None

    # ---------------------------------------------------------------- the agent

    def _start(self, url: str) -> None:
        process = self._process = self._stage.start(self._command, url)
        self._to_send, self._open_streams = queue.Queue(), 2
        for target, arguments in ((self._read_out, (process.stdout,)), (self._read_err, (process.stderr,)),
                                  (self._write, (process.stdin, self._to_send))):
            threading.Thread(target=target, args=arguments, daemon=True).start()

    def _read_out(self, stream) -> None:
        with stream:
            for line in stream:
                self._events.put(("out", line))
        self._events.put(("out", None))

    def _read_err(self, stream) -> None:
        with stream:
            for line in stream:
                self._events.put(("err", line.decode("utf-8", "replace").rstrip("\r\n")))
        self._events.put(("err", None))

    def _write(self, stream, to_send) -> None:
        try:
            for data in iter(to_send.get, None):
                stream.write(data)
                stream.flush()
        except OSError:
            pass  # the agent is gone: the end of its stdout says so
        finally:
            try:
                stream.close()
            except OSError:
                pass

    # ---------------------------------------------------------------- the model

    def _answer(self, body: dict):
        """Called by the server's threads: the answer to the next request."""
        with self._counting:
            index = self._requests
            self._requests += 1
        self._events.put(("asked", index, body))
        if index >= len(self._groups):
            return error_reply(500, "the transcript has no answer to this request")
        return script.reply(self._groups[index][1], self._names, self._stage.model, self._stop)

    # ---------------------------------------------------------------- comparing

    def _send(self, part: Part) -> None:
        """All ">" lines that follow each other go out in one write: a client may send more than one at once.
        """
        data = "".join(fill(line.text, self._names) + "\n" for line in part.sends if line.sign == ">")
        if data:
            self._to_send.put(data.encode("utf-8", "surrogatepass"))
        if any(line.sign == "#" and not transcript.restarts(line) for line in part.sends):
            self._to_send.put(None)

    def _wait(self, part: Part) -> None:
        """Until everything of this part has happened."""
        until = time.monotonic() + self._deadline
        while part.ordered or part.anytime or self._asked < part.asked or self._heard < part.said:
            if self._take(part, until - time.monotonic()):
                until = time.monotonic() + self._deadline

    def _take(self, part: Part, seconds: float) -> bool:
        """Waits for one event and compares it; returns whether it was one that had to come."""
        event = self._next_event(seconds)
        if event is None:
            line = self._next_line(part)
            told = "nothing for {:g} s".format(self._deadline)
            raise Parting(line, "{} {}".format(line.sign, line.text), told)
        return self._happened(part, *event)

    def _next_event(self, seconds: float):
        """The next event, None when there is none within `seconds`."""
        try:
            event = self._events.get(timeout=max(seconds, 0))
        except queue.Empty:
            return None
        if event[-1] is None:
            self._open_streams -= 1
        return event

    def _happened(self, part: Part, kind: str, *what) -> bool:
        compare = {"out": self._came, "asked": self._was_asked, "err": self._was_said}[kind]
        return compare(part, *what)

    def _next_line(self, part: Part):
        """The line that is missing."""
        if part.ordered:
            return part.ordered[0]
        if self._asked < part.asked:
            return self._groups[self._asked][0]
        return part.anytime[0] if part.anytime else self._said[self._heard]

    def _came(self, part: Part, data) -> bool:
        if data is None:
            if part.ordered or part.anytime or self._asked < part.asked:
                line = self._next_line(part)
                raise Parting(line, "{} {}".format(line.sign, line.text),
                              "the end of the agent's stdout")
            return False
        shown = data.decode("utf-8", "replace").rstrip("\r\n")
        try:
            message = json.loads(data.decode("utf-8"))
        except ValueError as error:
            raise Parting((part.ordered or part.anytime or [None])[0], "a line of JSON",
                          "none: {}".format(error), shown) from None
        candidates = part.ordered[:1] + part.anytime
        for line in candidates:
            if not self._difference(line, message):
                (part.ordered if line.sign == "<" else part.anytime).remove(line)
                return True
        if self._passes(message):
            return False
        expected = candidates[0] if candidates else None
        if expected is None:
            last = part.sends[-1] if part.sends else None
            raise Parting(last, "nothing more after this line and its answers", "another line", shown)
        raise self._parting(expected, self._difference(expected, message), shown)

    def _passes(self, message) -> bool:
        """Whether the message may come though no line has it: when it comes is a matter of time."""
        kind = transcript.update_of(message).get("sessionUpdate")
        return (transcript.is_live_output(message) or kind == "available_commands_update"
                or kind == "usage_update" and self._usage_ignored)

    def _difference(self, line, value, subset: bool = False):
        """The difference between a line and a value; without one, the ids met for the first time are kept."""
        names = dict(self._names)
        difference = transcript.compare(line.value, value, names, subset)
        if difference is None:
            self._names = names
        return difference

    @staticmethod
    def _parting(line, difference, shown) -> Parting:
        return Parting(line, difference.expected, difference.got, shown, difference.path)

    def _was_asked(self, part: Part, index: int, body: dict) -> bool:
        shown = json.dumps(body, ensure_ascii=False)
        if index >= len(self._groups):
            raise Parting(None, "no further model request", "one more", shown)
        line = self._groups[index][0]
        if index >= part.asked:
            raise Parting(line, "this model request only after the lines above it", "it came before", shown)
        difference = self._difference(line, body, subset=True)
        if difference:
            raise self._parting(line, difference, shown)
        self._asked += 1
        return True

    def _was_said(self, _, text) -> bool:
        if text is None:
            return False
        self._stderr.append(text)
        if text.startswith("Traceback (most recent call last)"):
            raise Parting(None, "no traceback on stderr", "one")
        expected = self._said[self._heard] if self._heard < len(self._said) else None
        names = dict(self._names)
        if expected and transcript.compare_text(expected.text, text, names):
            self._names = names
            self._heard += 1
            return True
        if self._every_stderr_line:
            wanted = expected.text if expected else "nothing more on stderr"
            raise Parting(expected, "! " + wanted, "! " + text)
        return False

    # ---------------------------------------------------------------- the end

    def _end(self, killed: bool = False) -> None:
        """Closes the agent's stdin: it has to exit, and has nothing more to say. Or kills it, which must
        leave it no time."""
        if killed:
            self._process.kill()
        self._to_send.put(None)
        over = Part([], [], [], self._asked, len(self._said))
        until = time.monotonic() + max(GOODBYE, self._deadline)
        while self._open_streams:
            event = self._next_event(until - time.monotonic())
            if event is None:
                break
            self._happened(over, *event)
        try:
            code = self._process.wait(max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            raise Parting(None, "the agent's end after its stdin was closed", "it goes on") from None
        if code and not killed:
            raise Parting(None, "exit code 0", "exit code {}".format(code))

    def _drain(self) -> None:
        """What is still to come on stderr belongs into the report: a traceback above all. Stdin has been
        closed."""
        until = time.monotonic() + 0.5
        while True:
            event = self._next_event(until - time.monotonic())
            if event is None or event == ("err", None):
                return
            if event[0] == "err":
                self._stderr.append(event[1])


def _parts(lines) -> list:
    """The lines as Parts, cut before each line that sends and does not follow another one directly, or
    restarts the agent."""
    parts, asked, said, sending = [Part([], [], [], 0, 0)], 0, 0, True
    for line in lines:
        if line.sign == "#" and not transcript.sends(line):
            continue
        if transcript.restarts(line) or transcript.sends(line) and not sending:
            parts.append(Part([], [], [], asked, said))
        sending = transcript.sends(line)
        asked += line.sign == "~"
        said += line.sign == "!"
        part = parts[-1] = parts[-1]._replace(asked=asked, said=said)
        if sending:
            part.sends.append(line)
        elif line.sign in ("<", "<*"):
            (part.ordered if line.sign == "<" else part.anytime).append(line)
    return parts


def _end_process(process) -> None:
    """However the play ended: stdin is closed by its writer, then TERM, then KILL."""
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _cut(text: str) -> str:
    return text if len(text) <= 2000 else text[:2000] + "…"
