"""What the tests of MCP share: servers of the fake, each with its words, and a look at what they leave
behind.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from mm.cancel import Cancel
from mm.config.entries import McpServer
from mm.peers.mcp_pool import McpPool
from tests import support
from tests.wire.connection import PeerTest

FAKE = os.path.join(support.PROJECT, "tests", "fakes", "mcp_server.py")


def fake(*words, env=None, permissions=None, tools=None, timeout=60):
    return McpServer((sys.executable, "-I", "-S", FAKE, *words), env or {}, permissions, tools, timeout)


class McpTest(PeerTest):
    def setUp(self):
        self.log = self.keep_log()
        self.folder = support.scratch_folder()
        self.said = []
        self.gate = os.path.join(self.folder, "gate")  # servers that are told to hold begin when it is there

    def servers(self, seconds=20, environ=None, ready=True, **entries):
        """Servers by their names, started and, if `ready`, with their tools listed."""
        environ = dict(support.environment(), **environ or {})
        servers = McpPool(seconds).join(entries, self.folder, environ)
        self.addCleanup(servers.close)
        servers.begin()
        if ready:
            servers.ready(Cancel(), support.DEADLINE)
        return servers

    def server(self, *words, seconds=20, **options):
        """One server, called "fake"."""
        return self.servers(seconds=seconds, fake=fake(*words, **options))

    def call(self, servers, tool, cancel=None, **arguments):
        offer = next(offer for offer in servers.tools() if offer.name == tool)
        return offer.server.call(tool, arguments, cancel or Cancel(), self.said.append)

    def text(self, servers, tool, **arguments):
        return self.call(servers, tool, **arguments)["content"][0]["text"]

    def wait_for(self, condition):
        deadline = time.monotonic() + support.DEADLINE
        while not condition():
            self.assertLess(time.monotonic(), deadline, "in vain")
            time.sleep(0.01)

    def assert_nothing_left(self, *names):
        """No thread of these servers is left, and so no program: the threads wait for its end."""
        left = tuple("mcp %s " % name for name in names)
        self.wait_for(lambda: not [thread for thread in threading.enumerate()
                                   if thread.name.startswith(left)])
