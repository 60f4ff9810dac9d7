"""ask_agent: has another agent do a task, one of those that the configuration names, and brings back its answer."""

from __future__ import annotations

from mm.events import COMPLETED, FAILED
from mm.peers import agent
from mm.text import one_line, plural
from mm.tools.tool import Action, Parameter, Result, Tool, ToolError

NAME = "ask_agent"
DESCRIPTION = "Have another agent do a task in this folder and get its answer. It knows nothing of this conversation: tell it all."
# Characters of the answer that the model reads, the last ones; of an agent's description.
SHOWN, DESCRIBED = 40_000, 100

UNKNOWN = "[ask_agent: there is no agent named %s. Agents: %s]"
EMPTY = "[ask_agent: the prompt is empty]"
FAILURE = "[ask_agent: %s]"
# Behind the answer: the agent, why it stopped, what it did.
END = "[%s: %s]"
CUT = "[… %d characters left out]"
# Stop reasons with which the task was given up.
GIVEN_UP = ("refusal", "cancelled")


def tool(config, environ):
    """The tool for the agents of the configuration, None without any. Too deep among agents, it only says so."""
    agents = config.agents
    if not agents:
        return None
    problem = agent.too_deep(config, environ)

    def prepare(arguments, space):
        if problem:
            raise ToolError(FAILURE % problem)
        asked = arguments["agent"].strip()
        name = asked if asked in agents else next((name for name in agents if name.lower() == asked.lower()), None)
        if name is None:
            raise ToolError(UNKNOWN % (one_line(asked), ", ".join(agents)))
        if not arguments["prompt"].strip():
            raise ToolError(EMPTY)
        return Action(f"{NAME}: {name}", (), False, None, None, lambda cancel, progress: _run(
            name, agents[name], arguments["prompt"], space, environ, cancel, progress))

    described = "; ".join("%s: %s" % (name, one_line(entry.description, DESCRIBED))
                          for name, entry in agents.items() if entry.description)
    return Tool(NAME, DESCRIPTION, "other", (
        Parameter("agent", "string", described, True, ("name", "agent_name"), tuple(agents)),
        Parameter("prompt", "string", "", True, ("task", "question", "message")),
    ), "agent", prepare, offered=not problem)


def _run(name, entry, prompt, space, environ, cancel, progress):
    def seen(title, tail):
        if tail is not None:  # some editors take a dialog's buttons away when a call is said to go on
            progress("\n".join(filter(None, (tail, title and "[%s]" % title))))

    asker = agent.Asker(space.front, space.ref, NAME, space.config.yolo, seen)
    try:
        answer = agent.ask(name, entry, prompt, space.cwd, asker, space.config, environ, cancel)
    except agent.AgentFailed as failure:
        raise ToolError(FAILURE % failure) from None
    text, limit = answer.text, space.shown_limit(SHOWN)
    if len(text) > limit:
        text = "%s\n%s" % (CUT % (len(text) - limit), text[-limit:])
    done = [answer.stop_reason, plural(answer.calls, "tool call")] + ([plural(answer.tokens, "token")] if answer.tokens else [])
    end = END % (name, ", ".join(done))
    status = FAILED if answer.stop_reason in GIVEN_UP else COMPLETED
    return Result("%s\n%s" % (text, end) if text else end, status, prose=True)
