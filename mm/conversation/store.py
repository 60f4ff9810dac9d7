"""The session file on disk: written whole, in one step, and never over somebody else's.

    create(folder, id, cwd)    a new session; the first save makes the folder and the file
    open(folder, id, cwd)      one that was saved
    store.save(messages, …)    after each turn

The file is replaced in one step (mm.replacing): whenever the process dies, the file is the whole conversation
of one save or the next. A save that fails leaves it as it was.

Two processes may hold one session. Each remembers what the file was when it last read or wrote it. Under a
lock between processes, a save checks whether the file is still that. If not, this conversation goes to a file
of its own, `<id>-conflict-<hex>`, and later saves go there, too.

A message never changes once it is in a list that was saved (conversation.history), so its line of JSON is
made once. A Store is used by one thread at a time.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import time
from collections import namedtuple
from contextlib import contextmanager

from mm import replacing, safe_files
from mm.conversation import session_file
from mm.conversation.session_file import Saved, SessionError

# A larger file is not read.
MAX_BYTES = 64 * 1024 * 1024
# Seconds after which a turn that still runs is saved again.
SAVE_EVERY = 5.0
# Seconds that a save waits for that of another process, which takes as long as one write; and after a cancel.
PATIENCE, HURRIED = 5.0, 0.3
_PAUSE = 0.01
BUSY = "another mm is writing it"

# Why a session cannot be loaded, as the client reads it; more in session_file.
BAD_ID = "not a session id: 1 to 64 letters, digits and hyphens are allowed"
NO_SUCH = "no such session"
NOT_REGULAR = "the session file is not a regular file"
NOT_READABLE = "the session file cannot be read: %s"
TOO_LARGE = "the session file is larger than %d MB" % (MAX_BYTES // 1024 // 1024)

# News of a save, for the log.
CONFLICT = "session %s was changed by another mm: this conversation goes on as %s"
GROWN = "session %%s is larger than %d MB: it is saved, but cannot be loaded" % (MAX_BYTES // 1024 // 1024)

_ID = re.compile("[0-9A-Za-z-]{1,64}")
_ID_LENGTH = 64
_CONFLICT_SUFFIX = re.compile("-conflict-[0-9a-f]{8}$")

# A session as a list shows it; `updated` is local time.
Kept = namedtuple("Kept", "id title updated")


def is_session_id(text) -> bool:
    """Whether `text` can be a session's id. Nothing else becomes part of a path."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def create(folder: str, session_id: str, cwd: str) -> Store:
    """A new session in `folder` (absolute, made by the first save). Touches no disk."""
    return Store(folder, session_id, {"cwd": cwd, "created": _now()}, None)


def open(folder: str, session_id: str, cwd: str | None = None) -> tuple:
    """(Store, Saved) of a saved session; its folder is `cwd` from now on, if given. Raises SessionError."""
    if not is_session_id(session_id):
        raise SessionError(BAD_ID)
    data = _read(os.path.join(folder, session_id + ".json"))
    saved, header = session_file.parse(data)
    if cwd is not None:
        header["cwd"] = cwd
    header["created"] = saved.created or _now()
    return Store(folder, session_id, header, _digest(data)), saved


def kept(folder: str, cwd: str, most: int) -> list:
    """The sessions in `folder` whose folder is `cwd`, the one that was saved last first; at most `most`."""
    found = []
    for changed, path in _newest_first(folder):
        try:
            saved, header = session_file.parse(_read(path))
        except SessionError:
            continue
        if header.get("cwd") in (cwd, None) and saved.messages:
            updated = time.strftime("%Y-%m-%d %H:%M", time.localtime(changed))
            found.append(Kept(os.path.basename(path)[:-len(".json")], saved.title, updated))
        if len(found) == most:
            break
    return found


def _newest_first(folder):
    try:
        with os.scandir(folder) as entries:
            files = [(entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in entries
                     if entry.name.endswith(".json") and is_session_id(entry.name[:-len(".json")])]
    except OSError:
        return []
    return sorted(files, reverse=True)


class Store:
    """Where one conversation is kept. `id` and `path` change when another process took the file."""

    def __init__(self, folder: str, session_id: str, header: dict, known: bytes | None):
        self.folder = folder
        self.id = session_id
        self._header = header  # what stays the same: cwd, created, and the keys that are not ours
        self._known = known  # the hash of the file as last read or written; None: there should be none
        self._lines = {}  # id(message) -> (message, its line); a message that is held keeps its id
        self._tried_at = time.monotonic()
        self._told_size = False

    @property
    def path(self) -> str:
        return self._path(self.id)

    def due(self, now: float | None = None) -> bool:
        """Whether the last save, or the attempt, is so long ago that a running turn should save again."""
        return (time.monotonic() if now is None else now) - self._tried_at > SAVE_EVERY

    def save(self, messages: list, usage: dict, title, model, plan=None, cancel=None) -> str | None:
        """Writes all of it; returns None or one line of news for the log.

        Raises OSError if it cannot be written: the file is then as it was, and the next save tries again. A
        `cancel` shortens the wait for another process.
        """
        try:
            values = {"usage": usage, "title": title, "model": model, "plan": plan}
            return self._save(messages, values, cancel)
        finally:
            self._tried_at = time.monotonic()

    def copy_as(self, new_id: str, messages: list, usage: dict, title, model, plan=None) -> str:
        """Keeps the conversation under another id too, in a file of its own; returns the id it is kept under.

        This store stays with its own file. Raises OSError.
        """
        copy = Store(self.folder, new_id, self._header, None)
        copy._lines = self._lines
        copy.save(messages, usage, title, model, plan)
        return copy.id

    def _save(self, messages, values, cancel):
        lines = self._lines_of(messages)
        self._make_folder()
        with _locked(self.folder, cancel):
            conflict = self._changed_by_another()
            target = _conflict_id(self.id) if conflict else self.id
            data = session_file.render(dict(self._header, id=target, updated=_now(), **values), lines)
            replacing.replace(self._path(target), data, 0o600)
        news = CONFLICT % (self.id, target) if conflict else None
        self.id, self._known = target, _digest(data)
        if len(data) > MAX_BYTES and not self._told_size and not news:
            self._told_size, news = True, GROWN % target
        return news

    def _lines_of(self, messages):
        kept = {}
        for message in messages:
            made = self._lines.get(id(message))
            kept[id(message)] = made or (message, session_file.message_line(message))
        self._lines = kept
        return [kept[id(message)][1] for message in messages]

    def _make_folder(self):
        if not os.path.isdir(self.folder):
            # Raises, because a removed project must not come back as an empty folder.
            os.stat(self._header["cwd"] or os.sep)
            os.makedirs(self.folder, 0o700, exist_ok=True)
        if self._known is None and not os.listdir(self.folder):
            # Only into an empty folder: `sessions.dir` may name one that holds other things of the user's.
            try:
                path = os.path.join(self.folder, ".gitignore")
                with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(b"*\n")
            except FileExistsError:
                pass  # another process came first

    def _changed_by_another(self):
        if not os.path.lexists(self.path):
            return False
        try:
            return _digest(_read(self.path, limit=None)) != self._known
        except SessionError:
            return True

    def _path(self, session_id):
        return os.path.join(self.folder, session_id + ".json")


def _read(path, limit=MAX_BYTES):
    """The file's bytes. Raises SessionError."""
    if os.path.islink(path):
        raise SessionError(NOT_REGULAR)  # it may lead out of the folder, and mm makes none
    try:
        with os.fdopen(safe_files.descriptor_of(path), "rb") as file:
            status = os.fstat(file.fileno())
            if limit is not None and status.st_size > limit:
                raise SessionError(TOO_LARGE)
            return file.read(status.st_size)
    except (FileNotFoundError, NotADirectoryError):
        raise SessionError(NO_SUCH) from None
    except safe_files.NotRegular:
        raise SessionError(NOT_REGULAR) from None
    except OSError as error:
        raise SessionError(NOT_READABLE % (error.strerror or error)) from None


def _digest(data):
    return hashlib.sha256(data).digest()


def _now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _conflict_id(session_id):
    base, suffix = _CONFLICT_SUFFIX.sub("", session_id), "-conflict-" + os.urandom(4).hex()
    return base[:_ID_LENGTH - len(suffix)] + suffix


@contextmanager
def _locked(folder, cancel):
    """Holds the lock of the sessions' folder. Raises OSError if another process does not let go of it.

    The folder itself is locked, so no file is left. If it cannot be locked, as on Windows, there is no lock.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        _wait_for_lock(descriptor, folder, cancel)
        yield
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _sync(descriptor):
    """Makes a rename in the folder last through a power cut, if the system can."""
    try:
        os.fsync(descriptor)
    except OSError:
        pass


def _wait_for_lock(descriptor, folder, cancel):
    last = time.monotonic() + PATIENCE
    while True:
        try:
            return replacing.lock(descriptor)
        except BlockingIOError:
            if cancel and cancel.cancelled:
                last = min(last, time.monotonic() + HURRIED)
                cancel = None
            if time.monotonic() > last:
                raise OSError(errno.EBUSY, BUSY, folder) from None
            time.sleep(_PAUSE)
        except OSError:
            return None  # the file system knows no locks
