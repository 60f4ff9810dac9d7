"""MCP servers as their client meets them: real programs, good and bad."""

from __future__ import annotations

import json
import os
import time
import unittest

from mm.cancel import Cancel, Cancelled
from mm.peers import mcp
from mm.peers.mcp_pool import McpPool
from tests import support
from tests.peers.mcp_servers import McpTest, fake
from tests.wire.connection import in_thread

STATELESS = "io.modelcontextprotocol/protocolVersion"


class TheStart(McpTest):
    def test_every_known_revision_leads_to_the_tools(self):
        cases = {"new": fake(), "stateless": fake("stateless"), "batch": fake("batch")}
        cases.update(("r%d" % number, fake("revision=" + revision)) for number,
                     revision in enumerate(mcp.REVISIONS))
        servers = self.servers(**cases)
        for name in cases:
            with self.subTest(name):
                offers = {offer.name: offer for offer in servers.tools() if offer.server.name == name}
                self.assertIn("echo", offers)
                self.assertEqual(offers["echo"].description, "Does echo")
                answer = offers["echo"].server.call("echo", {"text": "héllo"}, Cancel(), None)
                self.assertEqual(answer["content"], [{"type": "text", "text": "héllo"}])
        self.assertEqual([offer.server.name for offer in servers.tools() if offer.name == "echo"],
                         list(cases))
        self.assertEqual(self.log, ["mcp: waiting for " + ", ".join(cases)])

    def test_both_ways_of_talking(self):
        servers = self.servers(a=fake(), b=fake("stateless"))
        heard, meta = {}, {}
        for offer in servers.tools():
            if offer.name in ("heard", "meta"):
                told = json.loads(offer.server.call(offer.name, {}, Cancel(), None)["content"][0]["text"])
                (heard if offer.name == "heard" else meta)[offer.server.name] = told
        self.assertEqual([[each["method"] for each in heard[name]] for name in "ab"],
                         [["notifications/initialized"], []])
        self.assertEqual(list(meta["a"]), ["progressToken"])
        self.assertEqual(meta["b"][STATELESS], "2026-07-28")
        self.assertEqual(meta["b"]["io.modelcontextprotocol/clientCapabilities"], {})
        self.assertIn("progressToken", meta["b"])

    def test_servers_that_do_not_start(self):
        servers = self.servers(
            missing=fake()._replace(argv=("no-such-program-anywhere",)), exits=fake("exit"),
            refuses=fake("refuse"), future=fake("revision=2099-01-01"), good=fake())
        self.assertEqual({offer.server.name for offer in servers.tools()}, {"good"})
        self.assertEqual(sorted(line for line in self.log if not line.startswith("mcp: waiting")), [
            "mcp exits: the server ended (exit code 3): no licence found",
            "mcp future: it speaks MCP 2099-01-01, which mm does not know",
            "mcp missing: cannot start no-such-program-anywhere: No such file or directory",
            "mcp refuses: initialize failed: no licence",
        ])
        servers.close()
        self.assert_nothing_left("missing", "exits", "refuses", "future", "good")

    def test_servers_that_do_not_answer(self):
        servers = self.servers(seconds=0.3, silent=fake("silent"), deaf=fake("deaf"))
        self.assertEqual(servers.tools(), ())
        self.assertEqual(sorted(self.log[1:]), ["mcp deaf: it did not answer within 0.3 s",
                                                "mcp silent: it did not answer within 0.3 s"])

    def test_the_list_comes_in_pages_twenty_at_most(self):
        servers = self.servers(few=fake("pages=4"), endless=fake("pages=1000"))
        count = len([offer for offer in servers.tools() if offer.server.name == "few"])
        self.assertEqual(count, 12)
        self.assertIn("mcp endless: it lists more than 20 pages or 1000 tools, the rest is left out",
                      self.log)

    def test_a_page_of_very_many_tools(self):
        servers = self.servers(fake=fake("many"))
        self.assertIn("echo", [offer.name for offer in servers.tools()])
        self.assertEqual(self.log[1:], ["mcp fake: " + mcp.MANY_TOOLS])

    def test_a_repeated_page_ends_the_list(self):
        servers = self.servers(fake=fake("circle", "pages=2"))
        self.assertEqual([offer.name for offer in servers.tools()], ["echo", "heard", "meta"])
        self.assertEqual(self.log[1:], ["mcp fake: it names a page of its tools a second time: its list ends "
                                        "there"])

    def test_only_the_tools_that_are_named_are_offered(self):
        servers = self.server(tools=("echo", "nothing"))
        self.assertEqual([offer.name for offer in servers.tools()], ["echo"])
        self.assertIn('mcp fake: it has no tool "nothing", which mcp.fake.tools names', self.log)

    def test_environment_and_folder(self):
        environ = {"MM_API_KEY": "secret", "KEPT": "yes", "OTHER": "outer"}
        servers = self.servers(environ=environ, fake=fake(env={"OTHER": "inner"}))
        seen = json.loads(self.text(servers, "environment"))
        self.assertEqual((seen.get("MM_API_KEY"), seen["KEPT"], seen["OTHER"]), (None, "yes", "inner"))
        self.assertEqual(seen["CWD"], self.folder)

    def test_late_servers_come_with_the_next_conversation(self):
        servers = self.servers(ready=False, late=fake("hold=%s" % self.gate), good=fake())
        self.wait_for(lambda: [server.name for server in servers.starting()] == ["late"])
        servers.ready(Cancel(), 0.1)
        self.assertEqual({offer.server.name for offer in servers.tools()}, {"good"})
        self.assertIn("mcp late: it is still starting; its tools are there after /new", self.log)
        open(self.gate, "w").close()
        servers.ready(Cancel())
        self.assertEqual({offer.server.name for offer in servers.tools()}, {"good"}, "the list is frozen")
        servers.begin()
        servers.ready(Cancel())
        self.assertEqual([offer.server.name for offer in servers.tools() if offer.name == "echo"],
                         ["late", "good"])

    def test_calls_work_while_tools_are_listed(self):
        servers = self.servers(fake=fake())
        self.text(servers, "change")
        echo = servers.tools()[0]
        servers.begin()
        answer = echo.server.call("echo", {"text": "meanwhile"}, Cancel(), None)
        self.assertEqual(answer["content"][0]["text"], "meanwhile")

    def test_a_call_waits_for_the_start(self):
        servers = self.servers(fake=fake())
        for again in (False, True):
            with self.assertRaises(mcp.McpFailure):
                self.call(servers, "die")
            if again:
                servers.begin()
            self.assertEqual(self.text(servers, "echo", text="now"), "now")

    def test_the_wait_can_be_cancelled(self):
        servers, cancel = self.servers(ready=False, late=fake("silent")), Cancel()
        wait = in_thread(servers.ready, cancel, 20)
        cancel.cancel()
        self.assertIsInstance(wait(), Cancelled)

    def test_a_changed_list_waits_for_new(self):
        servers = self.server()
        self.text(servers, "change")
        self.assertNotIn("new", [offer.name for offer in servers.tools()])
        self.assertIn("mcp fake: its tools have changed; /new takes them over", self.log)
        servers.begin()
        servers.ready(Cancel())
        self.assertEqual(self.text(servers, "new"), "new")


class ACall(McpTest):
    def test_the_server_may_ask_back(self):
        answers = json.loads(self.text(self.server(), "ask"))
        self.assertEqual([answer.get("result") for answer in answers], [{}, None, None])
        self.assertEqual([answer.get("error", {}).get("code") for answer in answers], [None, -32601, -32601])

    def test_an_error_is_its_message(self):
        servers = self.server()
        offer = servers.tools()[0]
        with self.assertRaises(mcp.McpFailure) as caught:
            offer.server.call("nonsense", {}, Cancel(), None)
        self.assertEqual(str(caught.exception), "mcp fake: nonsense failed: Unknown tool: nonsense")

    def test_a_call_that_asks_for_input_fails(self):
        with self.assertRaises(mcp.McpFailure) as caught:
            self.call(self.server(), "answer", resultType="input_required", inputRequests={})
        self.assertEqual(str(caught.exception), "mcp fake: answer asks for more than a tool call can give, "
                                                "which mm does not support")

    def test_progress_is_told_and_gives_more_time(self):
        servers = self.server(timeout=0.7)
        self.assertEqual(self.text(servers, "slow", steps=3, gap=0.3), "done")
        self.assertEqual(self.said[:2], ["1/3 at it", "2/3 at it"])

    def test_silence_ends_a_call(self):
        servers = self.server(timeout=0.4)
        with self.assertRaises(mcp.McpFailure) as caught:
            self.call(servers, "slow", steps=1, gap=0.5)
        self.assertEqual(str(caught.exception), "mcp fake: no word of slow for 0.4 s, it was cancelled")
        time.sleep(0.2)
        self.assertEqual(self.text(servers, "echo", text="next"), "next")
        self.assert_cancelled(servers, "timeout")

    def test_a_cancel_ends_a_call(self):
        servers, cancel = self.server(), Cancel()
        wait = in_thread(lambda: self.call(servers, "never", cancel))
        time.sleep(0.1)
        cancel.cancel()
        self.assertIsInstance(wait(), Cancelled)
        self.assert_cancelled(servers, "cancelled")

    def assert_cancelled(self, servers, reason):
        notice = json.loads(self.text(servers, "heard"))[-1]
        self.assertEqual((notice["method"], notice["params"]["reason"]), ("notifications/cancelled", reason))
        self.assertIsInstance(notice["params"]["requestId"], int)

    def test_progress_does_not_extend_the_total(self):
        clock = Clock()
        limit = mcp.CallLimit(60, self.said.append, clock=clock)
        while limit.left() > 0:
            limit.heard("still")
            clock.now += 50
        self.assertEqual(clock.now, 600)
        self.assertEqual(limit.why("dig"), "dig was cancelled after 600 s")
        self.assertEqual(set(self.said), {"still"})

    def test_what_stands_between_the_messages_does_no_harm(self):
        for words in (("noise",), ("twice",), ("flood",), ("batch", "noise", "twice", "stateless")):
            with self.subTest(words):
                servers = self.server(*words)
                self.assertEqual([self.text(servers, "echo", text=str(number)) for number in range(5)],
                                 list("01234"))
        self.assertIn("[mcp fake] Server is up!", self.log)
        self.assertIn("[mcp fake] [info] listening", self.log)
        self.assertIn("[mcp fake] " + "x" * 200 + "…", self.log)
        self.assertIn("[mcp fake] more such lines are not shown", self.log)
        self.assertLess(len(self.log), 60)


class ADeath(McpTest):
    def failure(self, servers, tool, **arguments):
        with self.assertRaises(mcp.McpFailure) as caught:
            self.call(servers, tool, **arguments)
        return str(caught.exception)

    def test_three_deaths_turn_a_server_off(self):
        servers = self.server()
        self.text(servers, "change")
        ended, off = "mcp fake: the server ended (exit code 7): out of luck", "mcp fake is off after 3 failures"
        for _ in range(2):
            self.assertEqual(self.failure(servers, "die", code=7), ended)
            self.assertEqual(self.text(servers, "echo", text="again"), "again")
        self.assertEqual(self.failure(servers, "die", code=7), ended)
        self.assertEqual(self.log.count(ended), 3)
        for _ in range(2):
            self.assertEqual(self.failure(servers, "echo", text="?"), off)
        self.assert_nothing_left("fake")
        servers.begin()
        self.assertEqual(self.text(servers, "echo", text="a new conversation"), "a new conversation")

    def test_a_minute_of_work_resets_failures(self):
        clock = Clock()
        server = mcp.McpServer("fake", fake(), self.folder, support.environment(), clock=clock)
        self.addCleanup(server.close)
        server.begin()
        for minutes in (0, 0, 1, 0, 1, 0, 0):
            server.settle(Cancel(), support.DEADLINE)
            server.call("pid", {}, Cancel(), None)  # starts it again
            clock.now += 60 * minutes
            with self.assertRaisesRegex(mcp.McpFailure, "the server ended"):
                server.call("die", {}, Cancel(), None)
        with self.assertRaisesRegex(mcp.McpFailure, "off after 3"):
            server.call("die", {}, Cancel(), None)

    def test_a_child_that_keeps_stdout_open(self):
        servers = self.server()
        self.assertEqual(self.failure(servers, "leave a child"), "mcp fake: the server ended (exit code 0)")
        self.assertEqual(self.text(servers, "echo", text="again"), "again")
        self.assertEqual(self.log.count("mcp fake: the server ended (exit code 0)"), 1)
        servers.close()
        self.assert_nothing_left("fake")

    def test_a_line_without_an_end_ends_it(self):
        servers = self.server()
        self.assertEqual(self.failure(servers, "long line"), "mcp fake: the server ended (a line over 16.0 "
                                                             "MB)")
        self.assertEqual(self.text(servers, "echo", text="again"), "again")

    def test_closing_ends_calls_and_stubborn_servers(self):
        deaf = in_thread(self.stop_reading, self.servers(deaf=fake()))  # takes its time too
        servers = self.server("stubborn")
        wait = in_thread(lambda: self.call(servers, "slow", steps=2, gap=0, answer=False))
        self.wait_for(lambda: self.said)
        servers.close()
        self.assertIsInstance(wait(), Cancelled)
        self.assertIsInstance(in_thread(lambda: self.call(servers, "echo", text="?"))(), Cancelled)
        self.assert_nothing_left("fake")
        self.assertEqual([line for line in self.log if line.startswith("mcp fake:")], [])
        self.assertEqual(deaf(), ["bye", "mcp deaf: the server ended (it closed its input)", "again"])

    def stop_reading(self, servers):
        return [self.text(servers, "stop reading"), self.failure(servers, "echo", text="?"),
                self.text(servers, "echo", text="again")]

    def test_a_cancelled_restart_is_no_failure(self):
        open(self.gate, "w").close()
        servers = self.server("hold=%s" % self.gate)
        self.failure(servers, "die")
        os.unlink(self.gate)
        for _ in range(4):
            cancel = Cancel()
            wait = in_thread(lambda: self.call(servers, "echo", cancel, text="?"))
            cancel.cancel()
            self.assertIsInstance(wait(), Cancelled)
        open(self.gate, "w").close()
        self.assertEqual(self.text(servers, "echo", text="again"), "again")


class Sharing(McpTest):
    def setUp(self):
        super().setUp()
        self.pool = McpPool()
        self.addCleanup(self.pool.close, 0)

    def join(self, folder=None, **entries):
        servers = self.pool.join(entries or {"fake": fake()}, folder or self.folder, support.environment())
        servers.begin()
        servers.ready(Cancel(), support.DEADLINE)
        return servers

    def pid(self, servers):
        return self.text(servers, "pid")

    def test_sessions_of_one_folder_and_configuration_share(self):
        first, second = self.join(), self.join()
        others = [self.join(support.scratch_folder()), self.join(fake=fake(timeout=5))]
        pids = [self.pid(servers) for servers in [first, second] + others]
        self.assertEqual(pids[0], pids[1])
        self.assertEqual(len(set(pids)), 3)

    def test_the_last_one_to_go_ends_them(self):
        first, second = self.join(), self.join()
        first.close()
        self.assertEqual(self.text(second, "echo", text="still"), "still")
        second.close()
        self.assert_nothing_left("fake")

    def test_one_that_starts_nothing_can_go(self):
        self.pool.join({"fake": fake()}, self.folder, {}).close()
        self.assert_nothing_left("fake")

    def test_a_cancel_touches_no_other_call(self):
        first, second = self.join(), self.join()
        cancel = Cancel()
        stays = in_thread(lambda: self.text(second, "slow", steps=2, gap=0.2))
        goes = in_thread(lambda: self.call(first, "never", cancel))
        cancel.cancel()
        self.assertIsInstance(goes(), Cancelled)
        self.assertEqual(stays(), "done")

    def test_a_new_conversation_changes_no_others_list(self):
        first, second = self.join(), self.join()
        before = second.tools()
        self.text(first, "change")
        first.begin()
        first.ready(Cancel(), support.DEADLINE)
        self.assertIn("new", [offer.name for offer in first.tools()])
        self.assertEqual(second.tools(), before)

    def test_the_end_of_mm_gives_two_seconds(self):
        said = os.path.join(self.folder, "farewell")
        self.join(fake=fake("farewell=" + said), stubborn=fake("stubborn"))
        begin = time.monotonic()
        self.pool.close()
        self.assertLess(time.monotonic() - begin, 4)
        self.assertTrue(os.path.exists(said))
        self.join(fake=fake()).close()  # whoever comes after that starts nothing
        self.assert_nothing_left("fake", "stubborn")


class Clock:
    """Stands still unless it is set."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now


if __name__ == "__main__":
    unittest.main()
