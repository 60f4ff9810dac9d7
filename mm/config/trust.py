"""Which folders may run programs, send data elsewhere or loosen anything, and what the file of any other
folder may say.

A project's configuration comes with its repository. `mm --trust` records the folder and the hash of its file,
or that it has none, in the user's state folder, one record a folder; once the file differs from the record,
or one appears, the folder is untrusted again. Imported at the start only if the folder has a configuration
file, or sessions are on.
"""

from __future__ import annotations

import json
import os

from mm import replacing, safe_files
from mm.config import config_file, places
from mm.errors import UserError
from mm.config.keys import ANY, BY_NAME, NO_LIMIT_AT_ZERO, ONLY_ADD, ONLY_FALSE, ONLY_INSIDE, ONLY_LOWER

# How a folder stands: its file as the user trusted it; another file than that; never trusted.
TRUSTED, CHANGED, UNKNOWN = "trusted", "changed since it was trusted", "not trusted"

WITH_FILE = "trusted: %s, as long as it stays as it is (sha256 %s…)"
WITHOUT_FILE = "trusted: %s, as long as it has no %s"


def standing(folder: str, file_bytes: bytes | None, environ=os.environ) -> str:
    """TRUSTED, CHANGED or UNKNOWN, for a folder with this configuration file (None: no file)."""
    records = _records(environ)
    if not records or not os.path.isdir(records):
        return UNKNOWN
    try:
        data = config_file.read(_record_of(folder, records))
        record = config_file.parse(data, "") if data else {}
    except UserError:
        return UNKNOWN
    if record.get("folder") != _real(folder) or "sha256" not in record:
        return UNKNOWN
    return TRUSTED if record.get("sha256") == _hash(file_bytes) else CHANGED


def trusts(folder: str, environ=os.environ) -> bool:
    """Whether the user trusts `folder` as it is now."""
    try:
        data = config_file.read(os.path.join(folder, places.PROJECT_FILE))
    except UserError:
        return False
    return standing(folder, data, environ) == TRUSTED


def trust(folder: str, environ=os.environ) -> str:
    """Trusts `folder` with its present configuration file, or without one; returns the line for the user.

    Raises UserError when the file is broken, or when the record cannot be written.
    """
    path = os.path.join(folder, places.PROJECT_FILE)
    data = config_file.read(path)
    if data is not None:
        from mm.config import schema

        schema.check_document(config_file.parse(data, path), path)
    records = _records(environ)
    if records is None:
        raise UserError("no home folder to remember it in: set HOME or XDG_STATE_HOME", exit_code=2)
    record = json.dumps({"folder": _real(folder), "sha256": _hash(data)}) + "\n"
    try:
        os.makedirs(records, mode=0o700, exist_ok=True)
        replacing.replace(_record_of(folder, records), record.encode("ascii"), 0o600)
    except OSError as error:
        raise config_file.failure(records, error.strerror or "cannot be written") from None
    if data is None:
        return WITHOUT_FILE % (config_file.shown(folder, 4096), places.PROJECT_FILE)
    return WITH_FILE % (config_file.shown(path, 4096), _hash(data)[:12])


def admit(given: dict, current: dict, folder: str) -> tuple:
    """What an untrusted file may change: `given` and `current` map key names to values.

    Returns the values to take, and the names of the keys of which something is ignored, in the file's order.
    """
    taken, ignored = {}, []
    for name, value in given.items():
        rule = BY_NAME[name].trust
        if rule == ANY:
            taken[name] = value
        elif rule == ONLY_ADD:
            taken[name] = list(current[name]) + [item for item in value if item not in current[name]]
        elif rule == ONLY_LOWER and _limit(name, value) < _limit(name, current[name]):
            taken[name] = value
        elif rule == ONLY_FALSE and value is False:
            taken[name] = value
        elif rule == ONLY_INSIDE:
            _admit_folders(name, value, current[name], folder, taken, ignored)
        elif value not in ({}, []):
            ignored.append(name)
    return taken, ignored


def _admit_folders(name, value, current, folder, taken, ignored):
    if isinstance(value, str):
        # Its links are looked at when it is used: a session's folder may be another one than this.
        if safe_files.names_inside(folder, value):
            taken[name] = value
        else:
            ignored.append(name)
        return
    # After the user's own, and as they are now: a link may be turned later.
    kept = [_real(os.path.join(folder, path)) for path in value if safe_files.is_inside(folder, path)]
    if kept:
        taken[name] = list(current) + kept
    if len(kept) < len(value):
        ignored.append(name)


def _limit(name, value):
    none = value is None or (value == 0 and name in NO_LIMIT_AT_ZERO)
    return float("inf") if none else value


def _real(folder):
    return os.path.realpath(folder)


def _records(environ):
    state = places.state_folder(environ)
    return os.path.join(state, "trusted") if state else None


def _record_of(folder, records):
    # The hash is only a file name that holds any path; the record names the folder itself.
    return os.path.join(records, _hash(os.fsencode(os.path.normcase(_real(folder)))) + ".json")


def _hash(data):
    import hashlib

    return None if data is None else hashlib.sha256(data).hexdigest()
