"""`--editor NAME`: the block to paste into an editor's settings, with this very mm's command line filled in.

The command names the real interpreter, since a version manager's stand-in costs 40 to 120 ms at every start,
and `-I -S`, since mm needs neither site-packages nor anything of the environment. Where each block goes is in
docs/editors.md, which is checked against these.
"""

from __future__ import annotations

import json
import os
import sys

import mm
from mm.errors import UserError

NAME = "mm"
FLAGS = ("-I", "-S")
# Every client below shows the permission dialog, so mm asks.
ACP = ("-acp", "--no-yolo")


def settings(name: str) -> str:
    """The block for an editor or plug-in, for this mm. Raises UserError when there is none of that name."""
    return block(name, command())


def block(name: str, command: list) -> str:
    """The block for an editor that starts `command`, an argv. Raises UserError for an unknown name."""
    blocks = BLOCKS.get(name.lower())
    if blocks is None:
        raise UserError("--editor %s: unknown editor%s; allowed: %s"
                        % (name, _did_you_mean(name), ", ".join(BLOCKS)), exit_code=2)
    return "\n\n".join(make(command) for make in blocks)


def command() -> list:
    """The argv that starts this mm as an ACP agent, from any folder."""
    python = os.path.realpath(sys.executable) if sys.executable else "python3"
    return [python, *FLAGS, program(), *ACP]


def program() -> str:
    """The absolute path of what Python runs: the archive, or the package's folder."""
    archive = getattr(mm.__spec__.loader, "archive", None)
    return os.path.abspath(archive or os.path.dirname(mm.__file__))


def _zed(command):
    return _json({"agent_servers": {NAME: {"type": "custom", "command": command[0], "args": command[1:],
                                           "env": {}}}})


def _jetbrains(command):
    return _json({"agent_servers": {NAME: {"command": command[0], "args": command[1:], "env": {}}}})


def _acpx(command):
    return _json({"agents": {NAME: {"argv": command}}})


def _codecompanion(command):
    return """\
-- CodeCompanion
require("codecompanion").setup({
  adapters = {
    acp = {
      mm = function()
        return require("codecompanion.adapters").extend("goose", {
          name = "mm",
          formatted_name = "mm",
          commands = { default = { %s } },
        })
      end,
    },
  },
  interactions = { chat = { adapter = "mm" } },
})""" % ", ".join(_quoted(word) for word in command)


def _avante(command):
    # avante hands on PATH and what stands in env, no more.
    return """\
-- avante
require("avante").setup({
  provider = "mm",
  acp_providers = {
    mm = {
      command = %s,
      args = { %s },
      env = { HOME = os.getenv("HOME"), LANG = os.getenv("LANG"), MM_API_KEY = os.getenv("MM_API_KEY") },
    },
  },
  behaviour = { auto_approve_tool_permissions = false },
})""" % (_quoted(command[0]), ", ".join(_quoted(word) for word in command[1:]))


def _agent_shell(command):
    return """\
;; agent-shell
(with-eval-after-load 'agent-shell
  (add-to-list 'agent-shell-agent-configs
               (agent-shell-make-agent-config
                :identifier 'mm
                :mode-line-name "mm"
                :buffer-name "mm"
                :shell-prompt "mm> "
                :shell-prompt-regexp "mm> "
                :client-maker
                (lambda (buffer)
                  (acp-make-client
                   :command %s
                   :command-params '(%s)
                   :context-buffer buffer)))))""" % (_quoted(command[0]), " ".join(map(_quoted, command[1:])))


def _json(value):
    return json.dumps(value, indent=2, ensure_ascii=False)


def _quoted(text):
    """`text` as a string of Lua or Emacs Lisp, which have the same escapes."""
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _did_you_mean(name):
    from difflib import get_close_matches

    close = get_close_matches(name[:80].lower(), list(BLOCKS), 1)
    return " (did you mean %s?)" % close[0] if close else ""


# An editor's name prints the blocks of all its plug-ins.
BLOCKS = {
    "zed": (_zed,),
    "jetbrains": (_jetbrains,),
    "neovim": (_codecompanion, _avante),
    "codecompanion": (_codecompanion,),
    "avante": (_avante,),
    "emacs": (_agent_shell,),
    "agent-shell": (_agent_shell,),
    "acpx": (_acpx,),
}
