"""What a tool gets besides its arguments: a call's Context, and in it what the session has Seen."""

from __future__ import annotations

from collections import namedtuple

from mm.tools import paths

# One result may show this part of the model's window, if that is known.
WINDOW_PART = 10
CHARACTERS_PER_TOKEN = 4
LEAST_SHOWN = 1000


class Context(namedtuple("Context", "folder config cancel front ref window seen")):
    """The surroundings of one call, which do not change while it is prepared and runs.

    `folder` is the session's, absolute. `config` is the configuration, `cancel` the turn's Cancel, `front`
    its front end (mm.events), `ref` the call's identifier ("call_7"). `window` is the model's context in
    tokens, 0 while unknown. `seen` is the session's Seen.
    """

    __slots__ = ()

    def resolve(self, tool_name: str, path: str) -> paths.Place:
        """Where `path` leads. Raises ToolError in the tool's name."""
        return paths.resolve(self.folder, tool_name, path)

    def shown_limit(self, limit: int) -> int:
        """How many characters of `limit` a result may have in this model's window."""
        if not self.window:
            return limit
        return max(min(limit, self.window * CHARACTERS_PER_TOKEN // WINDOW_PART), LEAST_SHOWN)


class Seen:
    """What tools keep from one call to the next, until the session ends or forgets.

    `failed_edits` maps real paths to the number of edits that failed there in a row. `plan` is the plan
    tool's Plan, or None. `skills_read` has the names of the skills whose text is in the conversation; whoever
    removes it from there clears them. `language_servers` is what the tool lsp keeps running, None before its
    first call. A session runs one call at a time, so nothing here is locked.
    """

    def __init__(self):
        self.failed_edits = {}
        self.plan = None
        self.skills_read = set()
        self.language_servers = None
        self._whole = {}  # real path -> sha256 of the bytes, for files that the model knows whole
        self._parts = {}  # real path -> (sha256, set of line numbers shown so far), for the others

    def close(self) -> None:
        """Ends the programs that a tool keeps running: the session ends or forgets."""
        if self.language_servers:
            self.language_servers.close()

    def knows_whole(self, real: str, digest: str) -> bool:
        """Whether the model was shown, or has written, every byte of the file with this sha256."""
        return self._whole.get(real) == digest

    def last_known(self, real: str) -> str | None:
        """The sha256 of the file as the model last saw it, whole or in part; None if never."""
        part = self._parts.get(real)
        return part[0] if part else self._whole.get(real)

    def saw_whole(self, real: str, digest: str) -> None:
        """The model knows every byte of the file: it was shown all of it or wrote it."""
        self._parts.pop(real, None)
        self._whole[real] = digest

    def saw_lines(self, real: str, digest: str, lines, total: int) -> None:
        """The model was shown the `lines` (numbers from 1, whole ones only) of a file of `total` lines."""
        known, shown = self._parts.get(real, (digest, set()))
        if self.knows_whole(real, digest):
            return
        shown = shown | set(lines) if known == digest else set(lines)
        if len(shown) < total:
            self._whole.pop(real, None)
            self._parts[real] = (digest, shown)
        else:
            self.saw_whole(real, digest)

    def edited(self, real: str, before: str, after: str) -> None:
        """An edit made the file `after` from `before`; the model knows as much of it as it did."""
        if self.knows_whole(real, before):
            self._whole[real] = after
        else:
            self._whole.pop(real, None)
            self._parts[real] = (after, set())

    def forget(self, real: str) -> None:
        """The file is gone."""
        self._whole.pop(real, None)
        self._parts.pop(real, None)
