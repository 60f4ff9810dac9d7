"""The guardian of process groups: a few lines of sh that outlive mm if there is work to do. POSIX only.

It reads "+937" and "-937" from a pipe whose other end only mm holds. When that end closes, because mm ended or
was killed, it sends TERM to the groups still on its list, and KILL a second later. It has a session of its own,
so that a signal to mm's group or a closed terminal does not reach it. It ignores the signals that can be
ignored, holds none of mm's streams (a client may wait for them to close), and has neither mm's working directory
nor its environment. If it is killed, the next write fails, and a new guardian gets the whole list.
"""

from __future__ import annotations

import os
import subprocess

from mm import log

_SCRIPT = """
trap '' HUP INT QUIT TERM
groups=
while read -r line; do
  case $line in
    +*) groups="$groups ${line#+}" ;;
    -*) rest=
        for group in $groups; do [ "$group" = "${line#-}" ] || rest="$rest $group"; done
        groups=$rest ;;
  esac
done
[ -n "$groups" ] || exit 0
for group in $groups; do kill -s TERM -- "-$group"; done
sleep 1
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class Guardian:
    """One caller at a time."""

    def __init__(self):
        self._process = self._pipe = None
        self._complained = False

    def start(self) -> None:
        """Starts it, unless it runs."""
        if self._process is not None:
            return
        theirs, ours = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "mm-guardian"], stdin=theirs, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, cwd="/", env={"PATH": "/usr/bin:/bin"}, start_new_session=True)
            os.set_blocking(ours, False)  # a guardian that was stopped must not stop mm
            self._pipe = ours
        except OSError as error:
            os.close(ours)
            if not self._complained:
                log.line("mm: no guardian, programs may outlive a killed mm: %s" % error)
            self._complained = True
        finally:
            os.close(theirs)

    def tell(self, change: str, groups) -> None:
        """Passes on `+937` or `-937`. A new guardian, if that one is gone, is told all the `groups`."""
        if self._process is None or self._write([change]):
            return
        self.dismiss()
        self.start()
        if self._process is not None:
            self._write(["+%d" % group for group in groups])

    def dismiss(self) -> None:
        """Closes its pipe, so that it ends what is on its list, and itself. Waits for that only a moment."""
        if self._process is not None:
            process, self._process = self._process, None
            os.close(self._pipe)
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                pass

    def _write(self, changes):
        try:
            os.write(self._pipe, "".join(change + "\n" for change in changes).encode("ascii"))
        except OSError:
            return False
        return True
