"""What is changed in a request that a server does not like."""

from __future__ import annotations

import unittest

from mm.model import fixes
from mm.model.http import ModelError


def user(text):
    return {"role": "user", "content": text}


def answer(text, *arguments, **more):
    calls = [{"id": f"call_{number}", "type": "function", "function": {"name": "bash", "arguments": each}}
             for number, each in enumerate(arguments)]
    return dict({"role": "assistant", "content": text}, **more, **({"tool_calls": calls} if calls else {}))


SYSTEM, OTHER = {"role": "system", "content": "S"}, {"role": "system", "content": "T"}
RESULT = {"role": "tool", "tool_call_id": "call_0", "name": "bash", "content": "r"}
CUT = answer("[cut]")


class Mended(unittest.TestCase):
    def test_messages(self):
        cases = [
            (fixes.FLAT, [SYSTEM, user("a")], None),
            (fixes.FLAT, [SYSTEM, user("a"), answer("", "{}", "{}"), RESULT, RESULT, answer("b"), user("c")],
             None),
            (fixes.FLAT, [SYSTEM, user("a"), OTHER, user("b")],
             [{"role": "system", "content": "S\n\nT"}, user("a\n\nb")]),
            (fixes.FLAT, [user("a"), user(""), user("b")], [user("a\n\nb")]),
            (fixes.FLAT, [user("a"), answer("b"), answer("", "{}", reasoning_content="t"), RESULT],
             [user("a"), answer("b", "{}", reasoning_content="t"), RESULT]),
            (fixes.FLAT, [answer("", "1"), answer("", "2")],
             [dict(answer(""), tool_calls=answer("", "1")["tool_calls"] + answer("", "2")["tool_calls"])]),
            (fixes.FLAT, [user("a"), answer("", "{}"), RESULT, user("b")],
             [user("a"), answer("", "{}"), RESULT, CUT, user("b")]),
            (fixes.NO_SYSTEM, [SYSTEM, user("a"), answer("b")], [user("S\n\na"), answer("b")]),
            (fixes.NO_SYSTEM, [SYSTEM, answer("b")], [user("S"), answer("b")]),
            (fixes.NO_SYSTEM, [SYSTEM], [user("S")]),
            (fixes.NO_SYSTEM, [user("a")], None),
            (fixes.NO_TRAILING_ASSISTANT, [user("a"), answer("b"), answer("c")], [user("a")]),
            (fixes.NO_TRAILING_ASSISTANT, [user("a"), answer("", "{}"), RESULT], None),
            (fixes.NO_REASONING, [user("a"), answer("b", reasoning_content="t"), answer("c", reasoning="u")],
             [user("a"), answer("b"), answer("c")]),
            (fixes.NO_REASONING, [user("a"), answer("b")], None),
            (fixes.VALID_ARGUMENTS, [answer("", '{"a": 1}', '{"a', "[1]", '"{}"', '{"a": NaN}',
                                            '{"a": 1e999}', '{"a": "\\ud83d"}', "")],
             [answer("", '{"a": 1}', *["{}"] * 7)]),
            (fixes.VALID_ARGUMENTS, [answer("", '{"a": "\\ud83d\\ude42"}', "{}")], None),
        ]
        for name, messages, expected in cases:
            with self.subTest(name, messages=messages):
                body = {"model": "m", "messages": messages, "stream": True}
                mended = fixes.fixed(body, (name,))
                if expected is None:
                    self.assertIs(body, mended)
                else:
                    self.assertEqual(dict(body, messages=expected), mended)
                    self.assertEqual(list(body), list(mended))
                self.assertEqual(mended, fixes.fixed(mended, (name,)), "a second time changes nothing")

    def test_the_beginning_of_requests_stays(self):
        """Message by message, each mended request begins with the one before it, but for what was merged into
        its last one."""
        talk = [SYSTEM, user("a"), answer("", "{}", reasoning_content="t"), RESULT, answer("b"), user("c"),
                answer("", "x"), RESULT, answer("d")]
        for name in (fixes.FLAT, fixes.NO_SYSTEM, fixes.NO_REASONING, fixes.VALID_ARGUMENTS):
            before = []
            for end in range(2, len(talk) + 1):
                messages = fixes.fixed({"messages": talk[:end]}, (name,))["messages"]
                self.assertEqual(before, messages[:len(before)], name)
                before = messages

    def test_stream_options(self):
        body = {"messages": [], "stream": True, "stream_options": {}}
        self.assertEqual({"messages": [], "stream": True}, fixes.fixed(body, (fixes.NO_STREAM_OPTIONS,)))
        self.assertIs(body, fixes.fixed(body, ()))


class Wanted(unittest.TestCase):
    def test_which_mending_a_refusal_asks_for(self):
        options, reasoning = {"field": "stream_options"}, {"field": "reasoning_content"}
        cases = [
            ([fixes.NO_STREAM_OPTIONS], ("", "bad_request", 400), options, {}),
            ([fixes.NO_STREAM_OPTIONS], ("", "bad_request", 422), options, {}),
            ([], ("", "bad_request", 404), options, {}),
            ([], ("", "bad_request", 400), options, {"stream_options": {}}),
            ([fixes.NO_REASONING], ("", "bad_request", 400), reasoning, {}),
            ([fixes.NO_REASONING], ("", "bad_request", 400), {"field": "thinking"}, {}),
            ([], ("", "bad_request", 400), {}, {}),
            ([fixes.FLAT, fixes.NO_SYSTEM], ("roles must alternate", "template", 500), {}, {}),
            ([fixes.NO_SYSTEM], ("System role not supported", "template", 400), {}, {}),
            ([fixes.NO_TRAILING_ASSISTANT], ("", "trailing_assistant", 400), {}, {}),
            ([fixes.VALID_ARGUMENTS], ("", "bad_history_arguments", 500), {}, {}),
            ([], ("", "server_crash", 500), {}, {}),
        ]
        for expected, error, numbers, extra in cases:
            with self.subTest(error, numbers=numbers, extra=extra):
                self.assertEqual(expected, fixes.wanted(ModelError(*error, numbers=numbers), {}, extra))


if __name__ == "__main__":
    unittest.main()
