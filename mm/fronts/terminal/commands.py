"""The slash commands of the chat, in the table at the end. A skill's name is one too: its message goes to the
model."""

from __future__ import annotations

import os
import re

from mm.errors import UserError
from mm.events import PlanChanged, Text
from mm.fronts.terminal.screen import cut
from mm.text import one_line

EXIT = "exit"
DIM, BOLD = "2", "1"
KEYS = ('^C cancels, twice leaves · Tab completes /commands, $skills and @paths · """ begins and ends a '
        'message of several lines')
SESSIONS_SHOWN, MESSAGES_SHOWN = 20, 10

UNKNOWN = "there is no command /%s. There are: %s"
NO_AGENTS = "no other agent is configured (agents; docs/agents.md)"
WHICH_AGENT = "usage: /ask AGENT QUESTION. Agents: %s"
NOT_KEPT = "sessions are not kept: set sessions.enabled to true (docs/sessions.md)"
NONE_KEPT = "no session is kept for this folder"
WHICH_SESSION = "usage: /load N, with a number that /sessions shows"
NO_PLAN = "there is no plan"
UNTITLED = "(no question yet)"

_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9-]*)(?:\s+(.*))?", re.DOTALL)


def obey(chat, text: str):
    """Does what a message says, a command or a question; returns EXIT if the user wants to leave. Raises
    Leave."""
    name, rest = parse(text)
    try:
        if name in COMMANDS:
            return COMMANDS[name][-1](chat, rest)
        skills = [skill.name for skill in chat.session.skills()] if name else []
        if unknown(text, skills):
            raise UserError(UNKNOWN % (name, " ".join("/" + each for each in (*COMMANDS, *skills))))
        return chat.run(lambda front, cancel: chat.turn(text, front, cancel))
    except UserError as problem:
        return chat.fail(problem)


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
    kept = process.kept_sessions(folder, 1)
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
    """The end of a session that was loaded."""
    for message in chat.session.messages[-MESSAGES_SHOWN:]:
        if message["role"] == "user" and not message.get("kind"):
            chat.screen.line("> " + message["content"], BOLD)
        elif message["role"] == "assistant":
            chat.show(Text(message["content"]))


def _help(chat, _rest: str) -> None:
    for name, (argument, does, _) in COMMANDS.items():
        chat.screen.line("  %-20s %s" % ("/%s %s" % (name, argument), does))
    for skill in chat.session.skills():
        if skill.name not in COMMANDS:
            line = "  %-20s %s" % ("/" + skill.name, one_line(skill.description))
            chat.screen.line(cut(line, chat.screen.columns - 1))
    chat.screen.line(KEYS, DIM)


def _change(chat, name: str) -> None:
    """What /new and /compact do, as in an editor."""
    from mm.fronts.acp import commands as editor

    chat.run(lambda front, cancel: chat.screen.line(
        editor.run(name, chat.process, chat.session, front, cancel, say=lambda line: None)))


def _plan(chat, _rest: str) -> None:
    plan = chat.session.seen.plan
    if not plan:
        raise UserError(NO_PLAN)
    chat.show(PlanChanged(plan.entries()))


def _sessions(chat, _rest: str) -> None:
    chat.listed = chat.process.kept_sessions(chat.session.cwd, SESSIONS_SHOWN)
    if not chat.listed:
        raise UserError(NONE_KEPT if chat.process.config.sessions_enabled else NOT_KEPT)
    for number, each in enumerate(chat.listed, 1):
        this = " (this one)" if each.id == chat.session.id else ""
        chat.screen.line("%3d. %s  %s%s" % (number, each.updated, one_line(each.title or UNTITLED), this))


def _load(chat, rest: str) -> None:
    if not (rest.isdecimal() and 0 < int(rest) <= len(chat.listed)):
        raise UserError(WHICH_SESSION)
    session = load(chat.process, chat.listed[int(rest) - 1].id, chat.session.cwd)
    chat.session.end()
    chat.session = session
    show_end(chat)


def _ask(chat, rest: str) -> None:
    name, _, question = rest.partition(" ")
    agents = chat.process.config.agents
    if not agents:
        raise UserError(NO_AGENTS)
    if name not in agents or not question.strip():
        raise UserError(WHICH_AGENT % ", ".join(agents))
    chat.run(lambda front, cancel: _ask_agent(chat, name, question, front, cancel))


def _ask_agent(chat, name: str, question: str, front, cancel) -> None:
    from mm.peers import agent

    def seen(title, tail) -> None:
        if title:
            chat.screen.line(title, BOLD)

    config = chat.process.config
    asker = agent.Asker(front, "", "ask_agent", config.yolo, seen)
    try:
        answer = agent.ask(name, config.agents[name], question, chat.session.cwd, asker, config, os.environ,
                           cancel)
    except agent.AgentFailed as failure:
        front.emit(Text(failure.said))
        raise UserError(str(failure)) from None
    front.emit(Text(answer.text))
    front.display.end_text()
    if answer.stop_reason != "end_turn":
        raise UserError("%s stopped: %s" % (name, answer.stop_reason))


# name -> (what follows it, what it does, the function of the chat and of what follows).
COMMANDS = {
    "new": ("", "forget the conversation and begin anew", lambda chat, _rest: _change(chat, "new")),
    "compact": ("", "make a summary of the conversation, to have room again",
                lambda chat, _rest: _change(chat, "compact")),
    "plan": ("", "show the plan", _plan),
    "ask": ("AGENT QUESTION", "ask another agent; the model does not see the answer", _ask),
    "sessions": ("", "list the sessions that are kept for this folder", _sessions),
    "load": ("N", "go on with one of them", _load),
    "help": ("", "this list", _help),
    "exit": ("", "leave; so does ^D", lambda chat, _rest: EXIT),
}
