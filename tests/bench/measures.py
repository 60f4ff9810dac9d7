"""What is measured, one function a row or a few, and the limits.

In every round each agent is measured once, in turn, by the same code; what is shown is the median over the
rounds.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
import zipfile
from collections import namedtuple
from statistics import median

from tests import support
from tests.bench import talk
from tests.bench.agents import HERE, Agent

# One line of the table. `floor` is None where the floor cannot do it; `limit` is a factor over the floor or,
# where `absolute`, a value in the row's own unit; `note` is a string.
Row = namedtuple("Row", "name floor mm unit limit absolute note")
Row.__new__.__defaults__ = (False, "")

MILLISECOND = 1e6  # in nanoseconds
KIB = 1024
FIRST_LIMIT, CANCEL_LIMIT, SIZE_LIMIT, REQUEST_LIMIT = 45, 10, 1536 * KIB, 5600
LOAD_LIMIT, SAVE_LIMIT, STEP_LIMIT = 300, 30, 5
CHAT_LIMIT = 60
TWICE, MEMORY_WITH_SERVERS, START, TOOL_TURN, FLAT_OUT = 2.0, 3.0, 1.6, 1.7, 1.2
PARSE_LIMIT, LINEAR_LIMIT, HELD_LIMIT = 2.5, 2.2, 0

WORD = re.compile(r"w(\d{6}) ")


class Bench:
    """What all measures share: the interpreter, the built mm.pyz, the model server, a home and a working
    folder.
    """

    def __init__(self, python: str, pyz: str, rounds: int, server, folder: str):
        self.rounds, self.server, self.pyz = rounds, server, pyz
        start = [python, "-I", "-S"]
        self.commands = {"echo": start + [os.path.join(HERE, "echo_floor.py")],
                         "relay": start + [os.path.join(HERE, "relay_floor.py")], "mm": start + [pyz, "-acp"]}
        self.cwd = os.path.join(folder, "work")
        os.mkdir(self.cwd)
        self.env = support.environment(MM_URL=server.url, MM_MODEL="bench", OPENAI_BASE_URL=server.url)

    def agent(self, name: str) -> Agent:
        return Agent(self.commands[name], self.env, self.cwd)

    def ready(self, name: str) -> Agent:
        agent = self.agent(name)
        agent.initialize()
        return agent

    def in_turn(self, names: tuple, measure, warm: bool = True) -> dict:
        """{name: [measure(name), one a round]}; the order alternates, and the first round is for the
        caches.
        """
        found = {name: [] for name in names}
        for number in range(self.rounds + warm):
            for name in names if number % 2 else reversed(names):
                value = measure(name)
                if number or not warm:
                    found[name].append(value)
        return found


def start(bench: Bench):
    def measure(name):
        before = time.perf_counter_ns()
        with bench.agent(name) as agent:
            return (agent.initialize() - before) / MILLISECOND

    found = bench.in_turn(("echo", "relay", "mm"), measure)
    yield Row("start -> initialize", median(found["echo"]), median(found["mm"]), "ms", START, False,
              "least %.1f / %.1f; relay %.1f" % (min(found["echo"]), min(found["mm"]),
                                                 median(found["relay"])))


def chat(bench: Bench):
    """From the start of `mm` in a terminal until it asks for a message."""
    from tests.fronts.terminal.terminal import Terminal

    def measure(_name):
        before = time.perf_counter_ns()
        with Terminal(argv=bench.commands["mm"][:-1], env=bench.env, cwd=bench.cwd) as terminal:
            terminal.idle()
            return (time.perf_counter_ns() - before) / MILLISECOND

    found = bench.in_turn(("mm",), measure)["mm"]
    yield Row("start -> the chat's prompt", None, median(found), "ms", CHAT_LIMIT, True,
              "least %.1f" % min(found))


def memory(bench: Bench):
    def measure(name):
        with bench.ready(name) as agent:
            agent.new_session(bench.cwd)
            time.sleep(1)
            return resident(agent.process.pid)

    found = bench.in_turn(("echo", "mm"), measure, warm=False)
    yield Row("idle memory after session/new", median(found["echo"]), median(found["mm"]), "MB", TWICE, False,
              "PSS" if os.path.exists("/proc/self/smaps_rollup") else "RSS")


def resident(pid: int) -> float:
    """The process's own memory in MB: its proportional set size where the system knows one, else its resident
    set size.
    """
    try:
        with open("/proc/%d/smaps_rollup" % pid) as file:
            kilobytes = next(line.split()[1] for line in file if line.startswith("Pss:"))
    except OSError:
        kilobytes = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], stdout=subprocess.PIPE,
                                   check=True).stdout
    return int(kilobytes) / 1024


def chunk(bench: Bench):
    """Arrival of each chunk at the client minus the moment the server handed it to the kernel."""
    count, gap = 2000, 2
    with bench.ready("relay") as relay, bench.ready("mm") as mm:
        agents = {"relay": relay, "mm": mm}

        def measure(name):
            agent = agents[name]
            agent.prompt(agent.new_session(bench.cwd), "bench: stream %d %d" % (count, gap))
            arrivals = chunk_arrivals(agent.finish())
            stamps = bench.server.next("stamps")["stamps"]
            if sorted(arrivals) != list(range(count)):
                raise RuntimeError("%s passed on %d of %d chunks" % (name, len(arrivals), count))
            return sorted((arrivals[number] - stamps[number]) / MILLISECOND for number in range(count))

        found = bench.in_turn(("relay", "mm"), measure, warm=False)
    middle = {name: median(median(added) for added in rounds) for name, rounds in found.items()}
    late = {name: median(added[count * 99 // 100] for added in rounds) for name, rounds in found.items()}
    yield Row("added per chunk, %d ms apart" % gap, middle["relay"], middle["mm"], "ms", TWICE, False,
              "99 %% in %.2f / %.2f" % (late["relay"], late["mm"]))


def first(bench: Bench):
    """The first prompt of a process: its first chunk, long after session/new and at once."""
    def measure(name, wait):
        with bench.ready(name) as agent:
            session = agent.new_session(bench.cwd)
            time.sleep(wait)
            before = agent.prompt(session, "bench: stream 1 0")
            return (agent.until(b'"agent_message_chunk"')[-1][0] - before) / MILLISECOND

    later = bench.in_turn(("relay", "mm"), lambda name: measure(name, 1))
    yield Row("first chunk, 1 s after session/new", median(later["relay"]), median(later["mm"]), "ms", TWICE,
              False, "least %.1f / %.1f" % (min(later["relay"]), min(later["mm"])))
    once = bench.in_turn(("relay", "mm"), lambda name: measure(name, 0))
    floor, mm = median(once["relay"]), median(once["mm"])
    yield Row("first chunk at once, over the relay", None, mm - floor, "ms", FIRST_LIMIT, True,
              "%.1f / %.1f" % (floor, mm))


def chunk_arrivals(lines: list) -> dict:
    """{number of the chunk: arrival}, whichever way the agent cut the text into messages."""
    arrivals = {}
    for arrival, line in lines:
        update = json.loads(line).get("params", {}).get("update", {})
        if update.get("sessionUpdate") == "agent_message_chunk":
            for number in WORD.findall(update["content"]["text"]):
                arrivals[int(number)] = arrival
    return arrivals


def flat(bench: Bench):
    count = 20000
    with bench.ready("relay") as relay, bench.ready("mm") as mm:
        agents = {"relay": relay, "mm": mm}

        def measure(name):
            agent = agents[name]
            before = agent.prompt(agent.new_session(bench.cwd), "bench: stream %d 0" % count)
            lines = agent.finish()
            if len(chunk_arrivals(lines)) != count:
                raise RuntimeError("%s passed on %d of %d chunks" % (name, len(chunk_arrivals(lines)), count))
            return (lines[-1][0] - before) / MILLISECOND, sum(b'"agent_message_chunk"' in line for _,
                                                              line in lines)

        found = bench.in_turn(("relay", "mm"), measure)
    walls = {name: median(wall for wall, _ in rounds) for name, rounds in found.items()}
    yield Row("%d chunks flat out" % count, walls["relay"], walls["mm"], "ms", FLAT_OUT, False,
              "in %d / %d messages" % (found["relay"][-1][1], found["mm"][-1][1]))


def peak(bench: Bench):
    """The most memory that a process has taken when its first answer has 20,000 chunks."""
    def measure(name):
        with bench.ready(name) as agent:
            agent.prompt(agent.new_session(bench.cwd), "bench: stream 20000 0")
            agent.finish()
            return most_resident(agent.process.pid)

    found = bench.in_turn(("relay", "mm"), measure, warm=False)
    yield Row("peak memory over 20000 chunks", median(found["relay"]), median(found["mm"]), "MB", TWICE,
              False, "RSS")


def most_resident(pid: int) -> float:
    """The largest resident set size of the process so far, in MB; the present one where the system keeps no
    other.
    """
    try:
        with open("/proc/%d/status" % pid) as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) / 1024
    except OSError:
        return resident(pid)


def cancel(bench: Bench):
    def cancelled(agent, session):
        before = agent.cancel(session)
        arrival, line = agent.finish()[-1]
        if json.loads(line)["result"]["stopReason"] != "cancelled":
            raise RuntimeError("a cancelled prompt was answered with " + line.decode())
        return (arrival - before) / MILLISECOND

    def silent(agent, session):
        bench.server.requests()
        agent.prompt(session, "bench: hang")
        while bench.server.next("request")["request"] != "POST":
            pass
        time.sleep(0.05)
        return cancelled(agent, session)

    def streaming(agent, session):
        agent.prompt(session, "bench: stream 5000 2")
        agent.until(b"agent_message_chunk", 100)
        return cancelled(agent, session)

    def running(agent, session):
        agent.prompt(session, "bench: run sleep 60")
        agent.until(b'"in_progress"')
        time.sleep(0.1)
        return cancelled(agent, session)

    with bench.ready("relay") as relay, bench.ready("mm") as mm:
        agents = {"relay": relay, "mm": mm}
        for what, act, names in (("before the first byte", silent, ("relay", "mm")),
                                 ("in a stream", streaming, ("relay", "mm")),
                                 ("in a command", running, ("mm",))):
            found = bench.in_turn(names, lambda name: act(agents[name], agents[name].new_session(bench.cwd)))
            yield Row("cancel " + what, median(found["relay"]) if "relay" in found else None,
                      median(found["mm"]), "ms", CANCEL_LIMIT, True, "most %.1f" % max(found["mm"]))


def tool(bench: Bench):
    def measure(name):
        with bench.ready(name) as agent:
            session = agent.new_session(bench.cwd)
            for _ in range(2):
                bench.server.requests()
                before = agent.prompt(session, "bench: run true")
                took = (agent.finish()[-1][0] - before) / MILLISECOND
                requests = len(bench.server.requests())
            return took, requests

    found = bench.in_turn(("relay", "mm"), measure)
    requests = sorted({count for _, count in found["mm"]})
    floor, mm = (median(took for took, _ in found[name]) for name in ("relay", "mm"))
    yield Row("tool turn, the second", floor, mm, "ms", TOOL_TURN, False, "least %.1f / %.1f" % tuple(
        min(took for took, _ in found[name]) for name in ("relay", "mm")))
    yield Row("requests in it", sorted({count for _, count in found["relay"]})[-1], requests[-1], "", 2, True)


def size(bench: Bench):
    with zipfile.ZipFile(bench.pyz) as archive:
        pythons = [name.split(".")[0] for name in archive.namelist() if name.endswith(".start")]
    yield Row("mm.pyz", None, os.path.getsize(bench.pyz), "bytes", SIZE_LIMIT, True,
              "sources and " + " ".join(pythons))


def request(bench: Bench):
    folder = tempfile.mkdtemp(prefix="mm-benc", dir="/tmp")
    try:
        with bench.ready("mm") as agent:
            bench.server.requests()
            agent.prompt(agent.new_session(folder), "bench: stream 1 0")
            agent.finish()
            first = next(size for method, size in bench.server.requests() if method == "POST")
    finally:
        os.rmdir(folder)
    yield Row("first request", None, first, "bytes", REQUEST_LIMIT, True,
              "in a folder of %d characters" % len(folder))


def skills(bench: Bench):
    """The start once more, with sessions on and 200 skills in the home folder."""
    home = tempfile.mkdtemp(dir=os.path.dirname(bench.cwd))
    configure(home, sessions={"enabled": True})
    for number in range(200):
        folder = os.path.join(home, ".config", "mm", "skills", "skill-%d" % number)
        os.makedirs(folder)
        with open(os.path.join(folder, "SKILL.md"), "w") as file:
            file.write("---\nname: skill-%d\ndescription: Does the thing number %d\n---\nDo it.\n"
                       % (number, number))

    def measure(name):
        before = time.perf_counter_ns()
        with Agent(bench.commands[name], dict(bench.env, HOME=home), bench.cwd) as agent:
            return (agent.initialize() - before) / MILLISECOND

    found = bench.in_turn(("echo", "mm"), measure)
    yield Row("start with 200 skills, sessions", median(found["echo"]), median(found["mm"]), "ms", TWICE)


def configure(home: str, **settings) -> None:
    """Writes the configuration of `home`."""
    os.makedirs(os.path.join(home, ".config", "mm"))
    with open(os.path.join(home, ".config", "mm", "config.json"), "w") as file:
        json.dump(settings, file)


def servers(bench: Bench):
    """The start and the idle memory once more, with three MCP servers configured."""
    home = tempfile.mkdtemp(dir=os.path.dirname(bench.cwd))
    command = bench.commands["echo"][:3] + [os.path.join(support.PROJECT, "tests", "fakes", "mcp_server.py")]
    configure(home, mcp={name: {"command": command} for name in ("one", "two", "three")})

    def agent(name):
        return Agent(bench.commands[name], dict(bench.env, HOME=home), bench.cwd)

    def started(name):
        before = time.perf_counter_ns()
        with agent(name) as running:
            return (running.initialize() - before) / MILLISECOND

    def idle(name):
        with agent(name) as running:
            running.initialize()
            session = running.new_session(bench.cwd)
            if name == "mm":
                running.prompt(session, "bench: stream 1 0")  # which starts them
                running.finish()
                # the guardian too
                support.wait_until(lambda: len(support.children(running.process.pid)) == 4)
            time.sleep(1)
            return resident(running.process.pid)

    found = bench.in_turn(("echo", "mm"), started)
    yield Row("start with 3 MCP servers", median(found["echo"]), median(found["mm"]), "ms", TWICE, False,
              "least %.1f / %.1f" % (min(found["echo"]), min(found["mm"])))
    found = bench.in_turn(("echo", "mm"), idle, warm=False)
    yield Row("idle memory with 3 of them", median(found["echo"]), median(found["mm"]), "MB",
              MEMORY_WITH_SERVERS)


def load(bench: Bench):
    home = tempfile.mkdtemp(dir=os.path.dirname(bench.cwd))
    configure(home, sessions={"enabled": True})
    talk.write_session(bench.cwd)

    def measure(name):
        with Agent(bench.commands[name], dict(bench.env, HOME=home), bench.cwd) as agent:
            agent.initialize()
            return agent.load_session(talk.SESSION_ID, bench.cwd) / MILLISECOND

    found = bench.in_turn(("mm",), measure)["mm"]
    yield Row("session/load, %d messages" % talk.MESSAGES, None, median(found), "ms", LOAD_LIMIT, True,
              "%d calls; most %.0f" % (talk.CALLS, max(found)))
    saves = [measured_inside(bench, "talk.py", "save", bench.cwd)[0] for _ in range(bench.rounds)]
    yield Row("saving it, besides fsync", None, median(saves), "ms", SAVE_LIMIT, True,
              "most %.1f" % max(saves))


def step(bench: Bench):
    """CPU between a tool's end and the next request, in a long and in a short conversation."""
    short, long = ([measured_inside(bench, "talk.py", "step", str(count))[0] for _ in range(bench.rounds)]
                   for count in (20, talk.MESSAGES))
    yield Row("more CPU a step at %d messages" % talk.MESSAGES, None, median(long) - median(short), "ms",
              STEP_LIMIT, True, "%.2f / %.2f at 20" % (median(long), median(short)))


def reading(bench: Bench):
    """What it costs to read an answer, without the connection."""
    parsed, argument, held = ([measured_inside(bench, "reading.py", what)
                               for _ in range(max(1, bench.rounds // 3))]
                              for what in ("chunk", "argument", "held"))
    yield Row("parsing, CPU a chunk", median(floor for floor, _ in parsed), median(mm for _, mm in parsed),
              "us", PARSE_LIMIT, False, "over json.loads; 230 bytes")
    yield Row("argument of 200 KB over 100 KB", median(once for once, _ in argument),
              median(twice for _, twice in argument), "ms", LINEAR_LIMIT, False, "in deltas of 4 bytes")
    yield Row("hold-back of plain text", None, max(most for most, in held), "", HELD_LIMIT, True,
              "characters")


def measured_inside(bench: Bench, script: str, *arguments) -> list:
    """The numbers that a script beside this one prints, in the interpreter that is measured."""
    command = bench.commands["echo"][:3] + [os.path.join(HERE, script), *arguments]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=bench.env).stdout
    return [float(number) for number in printed.split()]


MEASURES = {"start": start, "chat": chat, "memory": memory, "first": first, "chunk": chunk, "flat": flat,
            "peak": peak, "cancel": cancel, "tool": tool, "size": size,
            "request": request, "skills": skills, "servers": servers, "load": load, "step": step,
            "reading": reading}
