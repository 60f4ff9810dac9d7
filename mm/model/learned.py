"""What the requests to one model server have shown, kept for the next ones."""

from __future__ import annotations


class Learned:
    """Needs no lock: what turns out wrong is replaced."""

    def __init__(self):
        self.url = ""  # where it answers, if not at the URL that was set
        self.fixes = ()  # what is changed in each request because it refuses it otherwise (mm.model.fixes)
        self.refused = ""  # its words about the schema of a tool that is left out
        self.reasoning_field = ""  # the field in which it sends reasoning and takes it back
