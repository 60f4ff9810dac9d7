"""The session file's text: what is written, what is read, what is refused."""

from __future__ import annotations

import json
import unittest

from mm.conversation import history, session_file
from mm.conversation.session_file import SessionError

HEADER = {"id": "s-1", "cwd": "/w", "created": "2026-09-16T10:15:30Z", "updated": "2026-09-16T10:20:00Z",
          "model": "m", "title": "A title", "usage": {"input": 10, "output": 2}, "plan": None}

CALL = {"ref": "call_1", "name": "bash", "arguments": '{"command": "ls \\n"}'}
MESSAGES = [
    history.user_message("héllo\n\"you\"\u2028"),
    history.assistant_message("I look.", "hm", [CALL, dict(CALL, ref="call_2")]),
    history.tool_message("call_1", "bash", "a\nb"),
    dict(history.tool_message("call_2", "edit_file", "[edited]"), status="completed",
         diff={"path": "/w/a", "old": None, "new": "x"}),
    {"role": "user", "content": "what was said", "kind": "summary"},
    history.assistant_message("]\n}\n"),
]


def rendered(messages=MESSAGES, **header) -> bytes:
    return session_file.render(dict(HEADER, **header),
                               [session_file.message_line(message) for message in messages])


def document(**keys) -> bytes:
    return json.dumps(dict({"version": 1, "messages": []}, **keys)).encode()


def with_message(**keys) -> bytes:
    return document(messages=[{"role": "user", "content": "a"}, keys])


class Writing(unittest.TestCase):
    def test_one_header_key_and_one_message_a_line(self):
        self.assertEqual(rendered([history.user_message("é\n"),
        history.assistant_message("b")]).decode("utf-8"), """\
{
"version":1,
"id":"s-1",
"cwd":"/w",
"created":"2026-09-16T10:15:30Z",
"updated":"2026-09-16T10:20:00Z",
"model":"m",
"title":"A title",
"usage":{"input":10,"output":2},
"plan":null,
"messages":[
{"role":"user","content":"é\\n"},
{"role":"assistant","content":"b"}
]
}
""")

    def test_an_empty_conversation(self):
        data = rendered([])
        self.assertEqual(json.loads(data)["messages"], [])
        self.assertEqual(session_file.parse(data)[0].messages, [])

    def test_lone_surrogates_become_the_replacement_character(self):
        line = session_file.message_line(history.user_message("a\ud800é\U0001f600"))
        self.assertEqual(json.loads(line)["content"],
                         "a\ufffdé\U0001f600")


class Reading(unittest.TestCase):
    def test_gives_back_what_was_written(self):
        saved, header = session_file.parse(rendered(plan=[{"text": "step"}]))
        self.assertEqual(saved.messages, MESSAGES)
        self.assertEqual((saved.usage, saved.title, saved.created, saved.model, saved.plan),
                         (HEADER["usage"], "A title", HEADER["created"], "m", [{"text": "step"}]))
        self.assertEqual(header, {"cwd": "/w"})

    def test_any_layout_is_the_same_conversation(self):
        data = rendered()
        for name, text in {
            "indented": json.dumps(json.loads(data), indent=2).encode(),
            "escaped": json.dumps(json.loads(data)).encode(),
            "a byte order mark": b"\xef\xbb\xbf" + data,
            "CRLF": data.replace(b"\n", b"\r\n"),
            "two messages on a line, another on two": data.replace(b'},\n{"role":"tool"', b'},{"role":"tool"')
                                                          .replace(b'},{"ref":"call_2"',
                                                                   b'},\n{"ref":"call_2"'),
            "keys behind the messages": data.replace(b"\n]\n}\n", b'\n],"x":[\n1\n]\n}\n'),
        }.items():
            with self.subTest(name):
                self.assertNotEqual(text, data)
                self.assertEqual(session_file.parse(text)[0].messages, MESSAGES)

    def test_unknown_keys_are_kept(self):
        data = rendered(**{"x-mine": {"a": [1.5]}}).replace(b'{"role":"user"', b'{"note":[1],"role":"user"')
        saved, header = session_file.parse(data)
        self.assertEqual(header, {"cwd": "/w", "x-mine": {"a": [1.5]}})
        self.assertEqual(saved.messages[0]["note"], [1])

    def test_an_older_version_needs_nothing_but_messages(self):
        for data in (b'{"messages":[]}', b'{"version":0,"messages":[],"title":null}'):
            saved, header = session_file.parse(data)
            self.assertEqual(saved, session_file.Saved([], {}, None, None, None, None))
            self.assertEqual(header, {"cwd": None})

    def test_arguments_become_such_as_servers_accept(self):
        for given, kept in (
            ('{"a": 1}', '{"a": 1}'),
            ({"a": 1}, '{"a": 1}'),
            ("[1]", "{}"),
            ("{", "{}"),
            ('{"a": NaN}', "{}"),
            (None, "{}"),
        ):
            with self.subTest(given):
                message = history.assistant_message("", "", [dict(CALL, arguments=given)])
                saved, _ = session_file.parse(rendered([message]))
                self.assertEqual(saved.messages[0]["calls"][0]["arguments"], kept)

    def test_only_an_assistant_has_calls(self):
        for message in (history.user_message("a"), history.tool_message("call_1", "bash", "a")):
            saved, _ = session_file.parse(rendered([dict(message, calls=True)]))
            self.assertEqual(saved.messages, [message])

    def test_counts_that_cannot_be_added_are_left_out(self):
        for given, kept in ((None, {}), (7, {}), ([1], {}), ("x", {}), ({"input": None}, {}),
                            ({"input": "1"}, {}), ({"input": True}, {}), ({"input": -1}, {}),
                            ({"input": 1.5}, {}), ({"input": 10 ** 299}, {}),
                            ({"input": 3, "output": []}, {"input": 3})):
            with self.subTest(given):
                self.assertEqual(session_file.parse(document(usage=given))[0].usage, kept)

    def test_what_people_see_is_left_out_unless_right(self):
        diff = {"path": "/a", "old": None, "new": "x"}
        for key, fitting, *others in (
            ("diff", diff, None, {}, 1, "x", {"path": "/a", "new": "x"}, {"path": "/a", "old": "x"},
             dict(diff, path=1), dict(diff, old=1), dict(diff, new=None), dict(diff, more=1)),
            ("status", "failed", None, 1, "done", [], {}), ("prose", True, None, 1, "yes", []),
            ("title", "bash: ls", None, 1, []), ("toolKind", "edit", None, 1, {}),
        ):
            for value in (fitting, *others):
                with self.subTest(key=key, value=value):
                    message = dict(history.tool_message("call_1", "bash", "a"), **{key: value})
                    saved, _ = session_file.parse(rendered([message]))
                    self.assertEqual(saved.messages, [message if value is fitting else
                                                      history.tool_message("call_1", "bash", "a")])

    def test_only_lone_surrogates_are_replaced(self):
        data = document(messages=[{"role": "user", "content": "?"}]).replace(b"?", b"a\\ud800 \\ud83d\\ude00")
        self.assertEqual(session_file.parse(data)[0].messages[0]["content"], "a\ufffd \U0001f600")
        program = history.user_message('print("\\ud83d")')  # the escape of an escape is text
        self.assertEqual(session_file.parse(rendered([program]))[0].messages, [program])


SHAPE = "the session file is not a conversation: "
REFUSED = {
    "nothing": (b"", "the session file is not JSON (line 1, column 1)"),
    "half a file": (b'{\n"version":1,\n"title":"half', "the session file is not JSON (line 3, column 9)"),
    "zeros after a crash": (b"\0" * 100, "the session file is not JSON (line 1, column 1)"),
    "not UTF-8": (rendered().replace("é".encode(), b"\xe9"), "the session file is not UTF-8 (line 12)"),
    "a number without an end": (b'{"messages":[],"x":1%s}' % (b"0" * 301), session_file.NOT_READABLE_JSON),
    "a number that Python takes for infinite": (b'{"messages":[],"x":1e400}', session_file.NOT_READABLE_JSON),
    "no JSON constant": (b'{"messages":[],"x":NaN}', session_file.NOT_READABLE_JSON),
    "nested too deeply to decode": (b'{"messages":' + b"[" * 100_000, session_file.NOT_READABLE_JSON),
    "nested too deeply": (document(x=json.loads("[" * 64 + "]" * 64)), session_file.NOT_READABLE_JSON),
    "a list": (b"[]", SHAPE + "an object is expected"),
    "a newer version": (b'{"version":2,"messages":{"new":"shape"}}', "the session file was written by a "
                                                                     "newer mm (version 2)"),
    "a version in words": (document(version="1"), SHAPE + "version must be a whole number"),
    "a true version": (document(version=True), SHAPE + "version must be a whole number"),
    "no messages": (b'{"version":1}', SHAPE + "messages must be a list"),
    "a title that is a number": (document(title=1), SHAPE + "title must be text"),
    "a plan that is a text": (document(plan="p"), SHAPE + "plan must be a list, an object or null"),
    "a message that is a text": (document(messages=["a"]), SHAPE + "messages[0] must be an object"),
    "an unknown role": (with_message(role="system", content=""), SHAPE + "messages[1].role must be one of "
                                                                         "user, assistant, tool"),
    "a role that is a list": (with_message(role=[], content=""), SHAPE + "messages[1].role must be one of "
                                                                         "user, assistant, tool"),
    "no content": (with_message(role="user"), SHAPE + "messages[1].content must be text"),
    "parts for content": (with_message(role="user", content=[]), SHAPE + "messages[1].content must be text"),
    "a kind that is no text": (with_message(role="user", content="", kind=1),
                               SHAPE + "messages[1].kind must be text"),
    "a reference with a control character": (with_message(role="tool", content="", name="bash",
                                                          call="call_1\x1b"),
                                             SHAPE + "messages[1].call must be a text of at most 200 "
                                                     "printable characters"),
    "a result of nothing": (with_message(role="tool", content="", name="bash"),
                            SHAPE + "messages[1].call must be a text of at most 200 printable characters"),
    "a result of no tool": (with_message(role="tool", content="", call="call_1"),
                            SHAPE + "messages[1].name must be text"),
    "calls that are no list": (with_message(role="assistant", content="", calls={}),
                               SHAPE + "messages[1].calls must be a list"),
    "a call without a reference": (with_message(role="assistant", content="", calls=[{"name": "bash"}]),
                                   SHAPE + "messages[1].calls[0].ref must be a text of at most 200 printable "
                                           "characters"),
}


class Refusing(unittest.TestCase):
    def test_table(self):
        for name, (data, text) in REFUSED.items():
            with self.subTest(name), self.assertRaises(SessionError) as raised:
                session_file.parse(data)
            self.assertEqual(str(raised.exception), text, name)

    def test_what_is_read_can_be_written(self):
        """The deepest file that is read does not exhaust the stack when it is saved."""
        data = document(x=json.loads("[" * 62 + "]" * 62))
        _, header = session_file.parse(data)
        self.assertEqual(json.loads(session_file.render(header, []))["x"], json.loads(data)["x"])


if __name__ == "__main__":
    unittest.main()
