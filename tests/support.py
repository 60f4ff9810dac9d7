"""What the tests share: the built zipapp, a clean environment, an ACP client over pipes, and a look at
processes.

Everything here runs mm as its users do, as a program of its own, started from the zipapp with this Python and
`-I -S`.

A Client has two threads besides the test's own: one reads the agent's stdout, keeps every message in the
order of arrival and answers the agent's requests, the other keeps its stderr. The test waits for what they
have gathered, always with a deadline.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import namedtuple

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Without MM_TESTS=all the repetitions that take long are fewer.
SHORT = os.environ.get("MM_TESTS") != "all"

# Seconds after which a wait has failed. Nothing takes this long; a busy machine may take a part of it.
DEADLINE = 20

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell ignores it for what runs in the background, and every program that a test starts would inherit
    # that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_scratch = None


def scratch_folder() -> str:
    """A new empty folder, removed when the tests end."""
    global _scratch
    if _scratch is None:
        _scratch = os.path.realpath(tempfile.mkdtemp(prefix="mm-tests-"))
        atexit.register(shutil.rmtree, _scratch, ignore_errors=True)
    return tempfile.mkdtemp(dir=_scratch)


# What is tested within the tests' own process leaves the user's state folder alone, too.
os.environ["XDG_STATE_HOME"] = os.path.join(scratch_folder(), "state")

_pyz = os.environ.get("MM_PYZ") and os.path.abspath(os.environ["MM_PYZ"])


def pyz() -> str:
    """The zipapp under test: $MM_PYZ, or one built for this Python, once per run."""
    global _pyz
    if _pyz is None:
        target = os.path.join(scratch_folder(), "mm.pyz")
        build(target)
        _pyz = target
    return _pyz


def build(target: str, project: str = PROJECT, pythons: str = sys.executable) -> None:
    """Runs zipapp.sh with `pythons`, paths joined by colons; "" lets it find them."""
    done = subprocess.run(["sh", os.path.join(project, "zipapp.sh"), target],
                          env=environment(MM_PYTHONS=pythons), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise AssertionError("zipapp.sh failed: " + done.stdout.decode("utf-8", "replace"))


def environment(**more) -> dict:
    """The variables for a program under test: a PATH, an empty home, UTF-8, and `more`; None takes one
    away.
    """
    variables = {"PATH": os.environ.get("PATH", os.defpath), "HOME": scratch_folder(), "LANG": "C.UTF-8",
                 "TMPDIR": tempfile.gettempdir(), "PYTHONDONTWRITEBYTECODE": "1"}
    variables.update(more)
    return {name: value for name, value in variables.items() if value is not None}


def mm(*arguments) -> list:
    """The command line that starts mm with these arguments."""
    return [sys.executable, "-I", "-S", pyz(), *arguments]


def run(*arguments, stdin=b"", cwd=None, env=None, timeout=DEADLINE) -> subprocess.CompletedProcess:
    """Runs mm to its end; stdout and stderr as text in the result."""
    done = subprocess.run(mm(*arguments), input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          cwd=cwd or scratch_folder(), env=env or environment(), timeout=timeout)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode("utf-8"),
                                       done.stderr.decode("utf-8"))


class RemoteError(Exception):
    """The agent answered a request with an error."""

    def __init__(self, error: dict):
        super().__init__("%s %s %s" % (error.get("code"), error.get("message"), error.get("data")))
        self.code, self.message, self.data = error.get("code"), error.get("message"), error.get("data")


def allow(params: dict) -> dict:
    """A permission answer: the first option that allows."""
    return choose(next(option["optionId"] for option in params["options"]
                       if option["kind"].startswith("allow")))


def reject(params: dict) -> dict:
    """A permission answer: the first option that rejects."""
    return choose(next(option["optionId"] for option in params["options"]
                       if option["kind"].startswith("reject")))


def choose(option: str) -> dict:
    """The result of session/request_permission that selects this option."""
    return {"outcome": {"outcome": "selected", "optionId": option}}


class Client:
    """Starts a real `mm -acp` and speaks ACP with it; a context manager that leaves no process behind.

    `permission(params)` returns the result for a session/request_permission, or None to leave it unanswered;
    it runs on the reading thread. Any other request of the agent is answered with "method not found", as
    clients do. `messages` holds all that the agent sent, in order; `stderr` its log so far.
    """

    def __init__(self, *arguments, cwd=None, env=None, permission=allow, command=None):
        self.permission = permission
        self.messages = []
        self._news = threading.Condition()
        self._sending = threading.Lock()
        self._log = bytearray()
        self._open_streams = 2
        self._last_id = 0
        self.cwd = cwd or scratch_folder()
        self.process = subprocess.Popen(command or mm("-acp", *arguments), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.cwd,
                                        env=env or environment(), bufsize=0)
        self._threads = [threading.Thread(target=target, daemon=True)
                         for target in (self._read_stdout, self._read_stderr)]
        for thread in self._threads:
            thread.start()

    # Sending

    def send_bytes(self, data: bytes) -> None:
        view = memoryview(data)
        with self._sending:
            while view:
                view = view[self.process.stdin.write(view):]

    def send(self, message) -> None:
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def notify(self, method: str, params: dict) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def start(self, method: str, params: dict) -> int:
        """Sends a request and returns its id; `finish` waits for the answer."""
        self._last_id += 1
        self.send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return self._last_id

    def request(self, method: str, params: dict, timeout: float = DEADLINE):
        """The result of a request; RemoteError when the agent answers with an error."""
        return self.finish(self.start(method, params), timeout)

    # Waiting

    def wait_for(self, happened, timeout: float = DEADLINE, what: str = "what was expected"):
        """Returns what `happened()` returns once that is true: asked again after each message and each piece
        of stderr.

        Fails after `timeout` seconds, or when the agent has ended and nothing more can come.
        """
        with self._news:
            self._news.wait_for(lambda: happened() or not self._open_streams, timeout)
            result = happened()
            if not result:
                when = "in %s s" % timeout if self._open_streams else "before the agent ended"
                raise AssertionError("%s did not come %s; the last messages: %s; stderr: %s" % (
                    what, when, self.messages[-5:], self.stderr[-2000:]))
            return result

    def message(self, fits, timeout: float = DEADLINE, what: str = "a message") -> dict:
        """The first message for which `fits(message)` is true, waiting for it if need be."""
        return self.wait_for(lambda: next((message for message in self.messages if fits(message)), None),
                             timeout, what)

    def answer(self, request_id, timeout: float = DEADLINE) -> dict:
        """The whole response to a request, result or error."""
        return self.message(lambda message: "method" not in message and message.get("id") == request_id,
                            timeout, "the answer to %s" % request_id)

    def finish(self, request_id, timeout: float = DEADLINE):
        answer = self.answer(request_id, timeout)
        if "error" in answer:
            raise RemoteError(answer["error"])
        return answer["result"]

    def update(self, kind: str, timeout: float = DEADLINE, **fields) -> dict:
        """The first session/update of this kind with these fields, waiting for it if need be."""
        def fits(message):
            update = message.get("params", {}).get("update",
                                                   {}) if message.get("method") == "session/update" else {}
            return update.get("sessionUpdate") == kind and all(update.get(name) == value for name,
                                                               value in fields.items())
        return self.message(fits, timeout, "%s %s" % (kind, fields))["params"]["update"]

    # What has come so far

    def updates(self, kind: str = None, session: str = None) -> list:
        """The session/updates so far, all or those of one kind or session."""
        with self._news:
            params = [message["params"] for message in self.messages
                      if message.get("method") == "session/update"]
        return [each["update"] for each in params
                if kind in (None, each["update"]["sessionUpdate"]) and session in (None, each["sessionId"])]

    def text(self, session: str = None) -> str:
        """The answer's text so far."""
        return "".join(update["content"]["text"] for update in self.updates("agent_message_chunk", session))

    def requests(self, method: str) -> list:
        """The agent's own requests of this method so far."""
        with self._news:
            return [message for message in self.messages if message.get("method") == method
                    and "id" in message]

    @property
    def stderr(self) -> str:
        with self._news:
            return self._log.decode("utf-8", "replace")

    # The protocol's usual calls

    def initialize(self, **capabilities) -> dict:
        return self.request("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities,
                                           "clientInfo": {"name": "tests", "version": "1"}})

    def new_session(self, cwd: str = None) -> str:
        return self.request("session/new", {"cwd": cwd or self.cwd, "mcpServers": []})["sessionId"]

    def start_prompt(self, session: str, text: str) -> int:
        return self.start("session/prompt", {"sessionId": session,
                                             "prompt": [{"type": "text", "text": text}]})

    def prompt(self, session: str, text: str, timeout: float = DEADLINE) -> dict:
        return self.finish(self.start_prompt(session, text), timeout)

    def cancel(self, session: str) -> None:
        self.notify("session/cancel", {"sessionId": session})

    # The end

    def close(self, timeout: float = DEADLINE) -> int:
        """Closes the agent's stdin, as clients do; returns its exit code."""
        self.process.stdin.close()
        return self.wait(timeout)

    def wait(self, timeout: float = DEADLINE) -> int:
        """Waits until the agent has ended and all that it wrote has been read; returns its exit code."""
        code = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(timeout)
        return code

    def kill(self, signal_number: int = signal.SIGKILL) -> None:
        self.process.send_signal(signal_number)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            # First the way that lets the agent end what it has started.
            self.process.stdin.close()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for thread in self._threads:
            thread.join(5)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()

    # The two threads

    def _read_stdout(self) -> None:
        pieces = []
        while True:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            pieces.append(data)
            if not data or b"\n" in data:
                *lines, rest = b"".join(pieces).split(b"\n")
                pieces = [rest]
                for line in lines:
                    self._take(line)
            if not data:
                self._stream_ended()
                return

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = {"broken": line}
        with self._news:
            self.messages.append(message)
            self._news.notify_all()
        if "method" in message and "id" in message:
            self._answer(message)

    def _answer(self, message: dict) -> None:
        if message["method"] != "session/request_permission":
            answer = {"error": {"code": -32601, "message": "Method not found"}}
        else:
            result = self.permission(message["params"])
            if result is None:
                return
            answer = {"result": result}
        try:
            self.send(dict(answer, jsonrpc="2.0", id=message["id"]))
        except (OSError, ValueError):
            pass  # the agent is gone, or the test has closed its stdin: nobody waits for this answer

    def _read_stderr(self) -> None:
        while True:
            data = os.read(self.process.stderr.fileno(), 1 << 16)
            if not data:
                self._stream_ended()
                return
            with self._news:
                self._log += data
                self._news.notify_all()

    def _stream_ended(self) -> None:
        with self._news:
            self._open_streams -= 1
            self._news.notify_all()


def wait_until(happened, timeout: float = DEADLINE, what: str = "what was expected"):
    """Asks `happened()` every few milliseconds until it is true, and returns that."""
    deadline = time.monotonic() + timeout
    while True:
        result = happened()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError("%s did not happen in %s s" % (what, timeout))
        time.sleep(0.01)


def pid_in(path):
    """The process id that a command has written to `path`."""
    def read():
        try:
            with open(path) as file:
                return int(file.read() or 0)
        except OSError:
            return 0
    return wait_until(read, what="a process id in " + path)


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and was not waited for does not."""
    return any(process.pid == pid for process in processes())


def group_alive(group: int) -> bool:
    """Whether any process of the group runs."""
    return any(process.group == group for process in processes())


def children(pid: int) -> list:
    """The pids of the running direct children of a process."""
    return [process.pid for process in processes() if process.parent == pid]


Process = namedtuple("Process", "pid parent group")


def processes() -> list:
    """A Process for each that runs here, those left out that have ended and were not waited for."""
    if not os.path.exists("/proc/self/stat"):
        listed = subprocess.run(["ps", "-A", "-o", "pid=,stat=,ppid=,pgid="], stdout=subprocess.PIPE,
                                check=True).stdout
        rows = [line.split() for line in listed.decode().splitlines()]
    else:
        rows = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid, "rb") as file:
                    # The name in parentheses may hold anything, parentheses too.
                    rows.append([pid] + file.read().decode("utf-8", "replace").rpartition(")")[2].split()[:3])
            except OSError:
                pass  # ended since the listing
    return [Process(int(pid), int(parent), int(group)) for pid, state, parent,
            group in rows if state[0] not in "ZX"]
