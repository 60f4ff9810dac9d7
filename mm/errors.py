"""The one exception that is a line for the user."""

from __future__ import annotations


class UserError(Exception):
    """What went wrong and what to do about it, in one line; shown without a traceback.

    `exit_code` is what the process ends with when the error reaches the command line:
    1 for a failed job, 2 for a wrong call or configuration.
    """

    def __init__(self, message: str, exit_code: int = 1):
        super().__init__(message)
        self.exit_code = exit_code
