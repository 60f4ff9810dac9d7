"""What an asked agent's messages come to, as tables."""

from __future__ import annotations

import unittest

from mm import events
from mm.json_text import encoded_size
from mm.fronts.acp import updates
from mm.peers import acp_client
from mm.wire.messages import RemoteError

YES, ALWAYS, NO, NEVER = ({"optionId": kind, "kind": kind, "name": kind.title()}
                          for kind in ("allow_once", "allow_always", "reject_once", "reject_always"))


def deep(levels):
    """Lists in one another."""
    value = []
    for _ in range(levels):
        value = [value]
    return value


class TheWords(unittest.TestCase):
    def test_the_tail_is_the_end_over_all_parts(self):
        words = acp_client.Words()
        words.say("a" * 3000)
        words.call()
        words.say("b" * 500)
        self.assertEqual(words.tail(), "a" * 1498 + "\n\n" + "b" * 500)

    def test_a_flood_is_not_kept(self):
        words = acp_client.Words()
        for _ in range(10):
            words.say("x" * 1_000_000)
        self.assertLessEqual(len(words.all()), 2 * acp_client.TEXT_KEPT)

    def test_content_that_is_no_text(self):
        for content, text in (
            ({"type": "text", "text": "hi"}, "hi"),
            ({"type": "resource_link", "uri": "file:///a", "name": "a"}, "file:///a"),
            ({"type": "image", "data": "AAAA"}, "[image]"),
            ({"type": "text"}, "[text]"),
            ({"type": ["text"]}, "[nothing]"),
            (None, "[nothing]"),
        ):
            with self.subTest(content):
                self.assertEqual(acp_client.text_of(content), text)


class TheCalls(unittest.TestCase):
    def test_a_title_is_shown_once_the_call_runs(self):
        for updates, shown in (
            ([{"title": "ls", "status": "in_progress"}], ["ls"]),
            ([{"title": "bash", "status": "pending"}, {"title": "ls", "status": "in_progress"},
              {"status": "completed"}],
             [None, "ls", None]),
            ([{"title": "ls"}, {"status": "failed"}], [None, "ls"]),
            ([{"kind": "read", "status": "completed"}], ["read"]),
            ([{"title": " ", "status": "completed", "kind": None}], ["a tool call"]),
            ([{"title": "two\nlines", "status": "completed"}], ["two…"]),
        ):
            with self.subTest(updates):
                calls = acp_client.ToolCalls()
                self.assertEqual([calls.update(dict(update, toolCallId="1")) for update in updates], shown)
                self.assertEqual(len(calls), 1)


    def test_details_of_a_finished_call_are_dropped(self):
        calls = acp_client.ToolCalls()
        for status in ("pending", "in_progress", "completed"):
            calls.update({"toolCallId": "1", "title": "write", "status": status, "rawInput": {"text": "x"},
                          "content": ["x"]})
            self.assertEqual("rawInput" in calls.completed({"toolCallId": "1"}), status != "completed")


class ThePermissions(unittest.TestCase):
    def test_an_option_is_chosen_by_its_kind(self):
        for answer, options, chosen in (
            (events.ALLOW, [NO, ALWAYS, YES], "allow_once"),
            (events.ALLOW, [NO, ALWAYS], "allow_always"),
            (events.ALLOW_ALWAYS, [YES, NO], "allow_once"),
            (events.REJECT, [YES, NEVER], "reject_always"),
            (events.NEVER, [YES, NO], "reject_once"),
            (events.REJECT, [YES, ALWAYS], None),
            (events.ALLOW, [NO, NEVER], None),
            (events.ALLOW, [dict(YES, kind="other")], None),
        ):
            with self.subTest(answer=answer, options=options):
                outcome = {"outcome": "selected", "optionId": chosen} if chosen else {"outcome": "cancelled"}
                self.assertEqual(acp_client.chosen(acp_client.options_of({"options": options}), answer),
                                 {"outcome": outcome})

    def test_options_that_are_none(self):
        for options in (None, {}, [None, "allow"], [{"kind": "allow_once"}],
                        [{"kind": "allow_once", "optionId": 1}]):
            with self.subTest(options):
                self.assertEqual(acp_client.options_of({"options": options}), [])

    def test_several_changes_are_shown_as_text(self):
        content = [{"type": "diff", "path": "/" + name, "oldText": None, "newText": name} for name in "ab"]
        permission = acp_client.permission("rev", "call_1", "ask_agent",
                                           {"title": "edit", "content": content})
        self.assertIsNone(permission.diff)
        self.assertIn("+++ /a\n@@ -0,0 +1 @@\n+a\n--- /b", permission.text)

    def test_a_fence_is_left_to_the_dialog(self):
        for text, shown in (("```sh\nls\n```", "ls"), ("````\n```\nls\n```\n````", "```\nls\n```"),
                            ("a\n```\nls\n```", "a\n```\nls\n```")):
            with self.subTest(text):
                content = [{"type": "content", "content": {"type": "text", "text": text}}]
                self.assertEqual(acp_client.permission("rev", "call_1", "ask_agent",
                                                       {"content": content}).text, shown)

    def test_no_request_is_too_long_for_clients(self):
        long = "x" * 100_000
        call = {"toolCallId": "1", "title": long, "kind": long, "rawInput": {"a": long},
                "locations": [{"path": long}] * 1000,
                "content": [{"type": "diff", "path": long, "oldText": long, "newText": long}]}
        sent = updates.permission_request("s", acp_client.permission("rev", "call_1", "ask_agent", call))
        self.assertLess(encoded_size(sent), 64 * 1024)
        options = [dict(YES, name="%d %s" % (number, long)) for number in range(1000)]
        self.assertLess(encoded_size(acp_client.question("rev", "call_1", call, options).schema), 32 * 1024)

    def test_a_call_of_nonsense_is_a_dialog(self):
        call = {"title": 7, "kind": None, "rawInput": "ls", "locations": [{"path": None}], "content": "x"}
        permission = acp_client.permission("rev", "call_1", "ask_agent", call)
        self.assertEqual(permission, ((("call_1", "ask_agent", "rev: a tool call", "other", {}, ())), None,
                                      None))


class TheForms(unittest.TestCase):
    def test_what_is_no_form(self):
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        self.assertEqual(acp_client.form("rev", "call_1", {"message": "A?", "requestedSchema": schema}),
                         events.Form("call_1", "rev: A?",
                                     {"type": "object",
                                      "properties": {"a": {"type": "string", "title": "rev: a"}}}))
        for params in ({}, {"message": "A?"}, {"message": 1, "requestedSchema": schema},
                       {"mode": "url", "message": "A?", "requestedSchema": schema},
                       {"message": "A?", "requestedSchema": {"type": "object"}},
                       {"message": "A?", "requestedSchema": {"properties": {}}},
                       {"message": "A?", "requestedSchema": {"properties": {"a": "string"}}},
                       *({"message": "A?", "requestedSchema": {"properties": {"a": dict(odd, type="string")}}}
                         for odd in (
                           {"title": {"a": 1}}, {"enum": 5}, {"enum": [1]}, {"oneOf": "ab"}, {"oneOf": ["a"]},
                           {"enum": ["x" * acp_client.FORM_BYTES]}, {"items": deep(acp_client.LEVELS)}))):
            with self.subTest(params):
                self.assertIsNone(acp_client.form("rev", "call_1", params))


class TheRest(unittest.TestCase):
    def test_why_it_refused(self):
        for message, data, reason in (
            ("Internal error", {"details": "no model"}, "Internal error: no model"),
            ("Internal error: no model", {"error": "no model"}, "Internal error: no model"),
            ("Bad", "really", "Bad: really"),
            ("Bad", {"code": 1}, "Bad"),
            ("Bad\nmore", None, "Bad…"),
        ):
            with self.subTest(message=message, data=data):
                self.assertEqual(acp_client.reason(RemoteError(-32603, message, data)), reason)

    def test_the_tokens(self):
        for usage, tokens in (({"totalTokens": 7, "inputTokens": 5}, 7),
                              ({"inputTokens": 5, "outputTokens": 2}, 7), ({"totalTokens": 0}, None),
                              ({"totalTokens": "7"}, None), (None, None), ([], None)):
            with self.subTest(usage):
                self.assertEqual(acp_client.tokens({"usage": usage}), tokens)


if __name__ == "__main__":
    unittest.main()
