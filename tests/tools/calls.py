"""What the tests of the tools share: a folder with files, and a call that goes the way of every call."""

from __future__ import annotations

import os
import unittest

from mm.config import config
from mm.cancel import Cancel
from mm.tools import registry
from mm.tools.arguments import parse_arguments
from mm.tools.tool import ToolError
from mm.tools.context import Context, Seen
from tests import support


class ToolTest(unittest.TestCase):
    """A session's folder of its own for each test."""

    def setUp(self):
        self.folder = support.scratch_folder()
        self.context = self.new_context()

    def new_context(self, window=0, folder=None, **overrides):
        """The Context of a call in a new session; `overrides` are configuration keys with `_` for the dot, as
        bash_maxOutput=300.
        """
        values = {name.replace("_", ".", 1): value for name, value in overrides.items()}
        settings = config.load(self.folder, {"HOME": self.folder}, None, values)
        return Context(folder or self.folder, settings, Cancel(), None, "call_1", window, Seen())

    def prepare(self, name, context=None, **arguments):
        context = context or self.context
        tool = registry.find(registry.built_in(context.config), name)
        return tool.prepare(parse_arguments(tool, arguments), context)

    def run_tool(self, name, context=None, progress=lambda tail: None, cancel=None, **arguments):
        context = context or self.context
        return self.prepare(name, context._replace(cancel=cancel or context.cancel),
                            **arguments).run(progress)

    def output(self, name, context=None, **arguments):
        """What the model reads, whether the call went well or not."""
        try:
            return self.run_tool(name, context, **arguments).output
        except ToolError as error:
            return str(error)

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, content):
        """Writes a file, bytes or UTF-8 text as it is; returns its path."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
        return path

    def get(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()
