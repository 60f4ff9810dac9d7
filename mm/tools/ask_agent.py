"""ask_agent: has an agent of the configuration do a task, and brings back its answer."""

from __future__ import annotations

from mm.events import COMPLETED, FAILED
from mm.peers import agent
from mm.text import one_line, plural
from mm.tools.tool import Action, Result, ToolError

NAME = "ask_agent"
# Characters of the answer that the model reads, the last ones.
SHOWN = 40_000

UNKNOWN = "[ask_agent: there is no agent named %s. Agents: %s]"
EMPTY = "[ask_agent: the prompt is empty]"
FAILURE = "[ask_agent: %s]"
# Behind the answer: the agent, why it stopped, what it did.
END = "[%s: %s]"
CUT = "[… %d characters left out]"
# Stop reasons with which the task was given up.
GIVEN_UP = ("refusal", "cancelled")


def prepare(arguments, context, environ):
    problem = agent.too_deep(context.config, environ)
    if problem:
        raise ToolError(FAILURE % problem)
    agents, asked = context.config.agents, arguments["agent"].strip()
    name = next((name for name in (asked, *agents) if name in agents and name.lower() == asked.lower()), None)
    if name is None:
        raise ToolError(UNKNOWN % (one_line(asked), ", ".join(agents)))
    if not arguments["prompt"].strip():
        raise ToolError(EMPTY)

    def run(progress):
        return _run(name, arguments["prompt"], context, environ, progress)

    return Action(f"{NAME}: {name}", run)


def _run(name, prompt, context, environ, progress):
    def seen(title, tail):
        if tail is not None:  # some editors take a dialog's buttons away when a call is said to go on
            progress("\n".join(filter(None, (tail, title and "[%s]" % title))))

    asker = agent.Asker(context.front, context.ref, NAME, context.config.yolo, seen)
    try:
        answer = agent.ask(name, context.config.agents[name], prompt, context.folder, asker, context.config,
                           environ, context.cancel)
    except agent.AgentFailed as failure:
        raise ToolError(FAILURE % failure) from None
    text, limit = answer.text, context.shown_limit(SHOWN)
    if len(text) > limit:
        text = "%s\n%s" % (CUT % (len(text) - limit), text[-limit:])
    done = [answer.stop_reason, plural(answer.calls, "tool call")]
    if answer.tokens:
        done.append(plural(answer.tokens, "token"))
    end = END % (name, ", ".join(done))
    status = FAILED if answer.stop_reason in GIVEN_UP else COMPLETED
    return Result("%s\n%s" % (text, end) if text else end, status, prose=True)
