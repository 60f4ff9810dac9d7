"""The slash commands of the chat. A skill's name is one too: its message goes to the model."""

from __future__ import annotations

import os
import re

from mm.errors import UserError
from mm.events import PlanChanged, Text
from mm.fronts.terminal.screen import cut
from mm.text import one_line

EXIT = "exit"
DIM, BOLD = "2", "1"
# name -> (what follows it, what it does)
COMMANDS = {
    "new": ("", "forget the conversation and begin anew"),
    "compact": ("", "make a summary of the conversation, to have room again"),
    "plan": ("", "show the plan"),
    "ask": ("AGENT QUESTION", "ask another agent; the model does not see the answer"),
    "sessions": ("", "list the sessions that are kept for this folder"),
    "load": ("N", "go on with one of them"),
    "help": ("", "this list"),
    "exit": ("", "leave; so does ^D"),
}
NAMES = tuple(COMMANDS)
KEYS = ('^C cancels, twice leaves · Tab completes /commands, $skills and @paths · """ begins and ends a '
        'message of several lines')
SESSIONS_SHOWN, TURNS_SHOWN = 20, 2

UNKNOWN = "there is no command /%s. There are: %s"
NO_AGENTS = "no other agent is configured (agents; docs/agents.md)"
WHICH_AGENT = "usage: /ask AGENT QUESTION. Agents: %s"
NOT_KEPT = "sessions are not kept: set sessions.enabled to true (docs/sessions.md)"
NONE_KEPT = "no session is kept for this folder"
NO_PLAN = "there is no plan"
UNTITLED = "(no question yet)"

_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9-]*)(?:\s+(.*))?", re.DOTALL)


def obey(chat, text: str):
    """Does what a message says, a command or a question; returns EXIT where the user wants to leave. Raises
    Leave."""
    name, rest = parse(text)
    if name in COMMANDS:
        return _run(chat, name, rest)
    skills = [skill.name for skill in chat.session.skills()] if name else []
    if unknown(text, skills):
        return chat.fail(UNKNOWN % (name, " ".join("/" + each for each in (*NAMES, *skills))))
    return chat.turn(text)


def parse(text: str) -> tuple:
    """(name, what follows it) of a command, ("", "") of any other text."""
    found = _COMMAND.fullmatch(text.strip())
    return (found[1], (found[2] or "").strip()) if found else ("", "")


def unknown(text: str, skills):
    """The name of the command in `text` if it is neither one of these skills nor a path, else None."""
    name, _ = parse(text)
    return name if name and name not in skills and not os.path.lexists("/" + name) else None


def completions(word: str, line: str, skills, cwd: str) -> list:
    """What Tab makes of `word` at the end of `line`: /commands at the beginning of a line, $skills and @paths
    anywhere. `skills` are names."""
    if word.startswith("/") and line.strip() == word:
        return ["/%s " % name for name in sorted({*COMMANDS, *skills}) if name.startswith(word[1:])]
    if word.startswith("$"):
        return ["$%s " % name for name in sorted(skills) if name.startswith(word[1:])]
    if word.startswith("@"):
        return ["@" + path for path in _paths(word[1:], cwd)]
    return []


def _paths(begun: str, cwd: str) -> list:
    folder, name = os.path.split(begun)
    try:
        with os.scandir(os.path.join(cwd, os.path.expanduser(folder))) as entries:
            found = [(entry.name, entry.is_dir()) for entry in entries
                     if entry.name.startswith(name) and (name or not entry.name.startswith("."))]
    except OSError:
        return []
    return [os.path.join(folder, each) + ("/" if is_folder else " ") for each, is_folder in sorted(found)
            if not set(each) & set(" \t\n\"")]


def last_session(process, folder: str):
    """The session of `folder` that was saved last. Raises UserError if there is none."""
    kept = _kept(process, folder)
    if not kept:
        raise UserError(NONE_KEPT if process.config.sessions_enabled else NOT_KEPT, 2)
    return load(process, kept[0].id, folder)


def load(process, session_id: str, folder: str):
    """A session that was kept. Raises UserError."""
    from mm.conversation.store import SessionError
    from mm.fronts.acp.replay import highest_ref

    try:
        session = process.load_session(session_id, folder)
    except SessionError as problem:
        raise UserError("session %s: %s" % (session_id, problem)) from None
    process.number_above(highest_ref(session.messages))
    return session


def show_end(chat) -> None:
    """The last questions and answers of a session that was loaded."""
    messages = chat.session.messages
    questions = [place for place, message in enumerate(messages) if message["role"] == "user"
                 and not message.get("kind")]
    for message in messages[questions[-TURNS_SHOWN] if len(questions) >= TURNS_SHOWN else 0:]:
        if message["role"] == "user" and not message.get("kind"):
            chat.screen.line("> " + message["content"].split("\n[attached")[0], BOLD)
        elif message["role"] == "assistant":
            chat.show(message["content"])
            for call in message.get("calls") or ():
                chat.screen.line("  " + call["name"], DIM)


def _run(chat, name: str, rest: str):
    if name == "exit":
        return EXIT
    if name == "help":
        return _help(chat)
    if name in ("new", "compact"):
        return chat.run(lambda front, cancel: _change(chat, name, front, cancel))
    if name == "ask":
        return _ask(chat, *rest.partition(" ")[::2])
    try:
        {"plan": _plan, "sessions": _sessions, "load": _load}[name](chat, rest)
    except UserError as problem:
        chat.fail(problem)
    return None


def _help(chat) -> None:
    for name, (argument, does) in COMMANDS.items():
        chat.screen.line("  %-20s %s" % ("/%s %s" % (name, argument), does))
    for skill in chat.session.skills():
        if skill.name not in COMMANDS:
            line = "  %-20s %s" % ("/" + skill.name, one_line(skill.description))
            chat.screen.line(cut(line, chat.screen.columns - 1))
    chat.screen.line(KEYS, DIM)


def _change(chat, name: str, front, cancel) -> None:
    from mm.cancel import Cancelled
    from mm.fronts.acp import commands as editor

    try:
        line = editor.run(name, chat.process, chat.session, front, cancel, say=lambda line: None)
    except Cancelled:
        return
    chat.screen.line(line)


def _plan(chat, _rest: str) -> None:
    plan = chat.session.seen.plan
    if plan:
        chat.show_plan(PlanChanged(plan.entries()))
    else:
        chat.screen.line(NO_PLAN, DIM)


def _kept(process, folder: str) -> list:
    return process.kept_sessions(folder, SESSIONS_SHOWN)


def _sessions(chat, _rest: str) -> None:
    kept = chat.listed = _kept(chat.process, chat.session.cwd)
    if not kept:
        raise UserError(NONE_KEPT if chat.process.config.sessions_enabled else NOT_KEPT)
    for number, each in enumerate(kept, 1):
        this = " (this one)" if each.id == chat.session.id else ""
        chat.screen.line("%3d. %s  %s%s" % (number, each.updated, one_line(each.title or UNTITLED), this))


def _load(chat, rest: str) -> None:
    kept = chat.listed or _kept(chat.process, chat.session.cwd)
    if not chat.process.config.sessions_enabled:
        raise UserError(NOT_KEPT)
    if not (rest.isdecimal() and 0 < int(rest) <= len(kept)):
        raise UserError("usage: /load N, with a number of /sessions")
    session = load(chat.process, kept[int(rest) - 1].id, chat.session.cwd)
    chat.session.end()
    chat.session = session
    show_end(chat)


def _ask(chat, name: str, question: str) -> None:
    agents = chat.process.config.agents
    if not agents:
        return chat.fail(NO_AGENTS)
    if name not in agents or not question.strip():
        return chat.fail(WHICH_AGENT % ", ".join(agents))
    return chat.run(lambda front, cancel: _ask_agent(chat, name, question, front, cancel))


def _ask_agent(chat, name: str, question: str, front, cancel) -> None:
    from mm.cancel import Cancelled
    from mm.peers import agent

    def seen(title, tail) -> None:
        if title:
            chat.screen.line(title, BOLD)

    config = chat.process.config
    asker = agent.Asker(front, "", "ask_agent", config.yolo, seen)
    try:
        answer = agent.ask(name, config.agents[name], question, chat.session.cwd, asker, config, os.environ,
                           cancel)
    except Cancelled:
        return
    except agent.AgentFailed as failure:
        front.emit(Text(failure.said))
        chat.fail(failure)
        return
    front.emit(Text(answer.text))
    front.display.end_text()
    if answer.stop_reason != "end_turn":
        chat.fail("%s stopped: %s" % (name, answer.stop_reason))
