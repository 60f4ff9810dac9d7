"""The arguments of a call as models and gateways write them: what is taken, and what is refused with its
reason.
"""

from __future__ import annotations

import json
import unittest

from mm.model.call_arguments import read

LS = {"command": "ls"}
OBJECT = '{"command": "ls"}'
FENCED = "```json\n%s\n```" % OBJECT

# (what the server sent, the arguments)
TAKEN = [
    (OBJECT, LS), (LS, LS), (None, {}), ("", {}), (" \n", {}), ("{}", {}), ('"{}"', {}), ("null", {}),
    (r'"{\"command\": \"ls\"}"', LS), ("\ufeff" + OBJECT, LS),
    ('{"command": "a\n\tb"}', {"command": "a\n\tb"}),
    (FENCED, LS), (FENCED.replace("json", ""), LS), (FENCED.replace("json", "JSON"), LS),
    (FENCED.replace("\n", ""), LS), (FENCED[:-3], LS), ("\n" + FENCED + "\n\n", LS),
    (FENCED + "\nThis lists the files.", LS), (FENCED.replace("\n", "\r\n"), LS),
    ('"```json\\n{\\"command\\": \\"ls\\"}\\n```"', LS),
    (OBJECT + " This lists the files, of {name} too.", LS), (OBJECT + "\n\nDone: see `a` and \"b\".", LS),
    (OBJECT + "<tool_call|>", LS), (OBJECT + "<|call|>", LS), (OBJECT + "\n</tool_call>\n", LS),
    (OBJECT + "<|im_end|>", LS), (OBJECT + "[END_TOOL_REQUEST]", LS), (OBJECT + "<｜tool▁call▁end｜>", LS),
    (OBJECT + "</s>", LS), (OBJECT + "}", LS), (OBJECT + OBJECT, LS),
    (OBJECT + "\n" + '{ "command":"ls" }' + OBJECT, LS), (FENCED + "\n" + FENCED, LS),
    (OBJECT + "<tool_call|>" + OBJECT + "<tool_call|>", LS),
    ('{"a": 1, "b": 2}{"b": 2, "a": 1}', {"a": 1, "b": 2}), ("json" + OBJECT, LS),
    ("<|constrain|>json<|message|>" + OBJECT + "<|call|>", LS),
]

# (what the server sent, why it is refused)
REFUSED = [
    (OBJECT + '{"command": "pwd"}', "a second, different object at column 18"),
    (OBJECT + "\n" + '{"command": "pwd"}', "a second, different object at line 2, column 1"),
    (OBJECT + " and then " + '{"command": "pwd"}', "a second, different object at column 28"),
    (FENCED + "\n" + FENCED.replace("ls", "pwd"), "a second, different object at line 5, column 1"),
    (OBJECT + OBJECT + '{"command": "pwd"}', "a second, different object at column 35"),
    ('{"a": 1}{"a": true}', "a second, different object at column 9"),
    (OBJECT + "{}", "a second, different object at column 18"),
    (OBJECT + '{"command": "l', "a second object that cannot be read at column 18"),
    (OBJECT + "{", "a second object that cannot be read at column 18"),
    (OBJECT + "{'command': 'ls'}", "a second object that cannot be read at column 18"),
    ('{"command": "echo "}"}', "Extra data at column 21"),
    ('{"command": "rm "}/tmp/x"}', "Extra data at column 19"),
    (OBJECT + ', "timeout": 3}', "Extra data at column 18"),
    (OBJECT + '", "timeout": 3', "Extra data at column 18"),
    (OBJECT + "<tool_call><function=bash><parameter=command>pwd</parameter></function>",
     "Extra data at column 18"),
    ("Run this: " + OBJECT, "Expecting value at column 1"),
    ("```python\nprint(1)\n```", "Expecting value at line 2, column 1"),
    (FENCED[:-6], "Unterminated string at line 2, column 13"),
    ('{"command": "ls', "Unterminated string at column 13"),
    ("[1]", "an object is expected at column 1"), ("[1] x", "Extra data at column 4"),
    ("7", "an object is expected at column 1"), (r'"\"\\\"x\\\"\""', "an object is expected at column 1"),
    ('{"a": NaN}', "NaN is not JSON at column 1"), ('{"a": 1e999}', "a number is too large at column 1"),
    ('{"a": %s}' % ("9" * 5000), "a number has more than 300 digits at column 1"),
    ("[" * 100_000, "nested too deeply at column 1"), ('{"a":' * 100_000, "nested too deeply at column 1"),
]


class Arguments(unittest.TestCase):
    def test_taken(self):
        for raw, value in TAKEN:
            with self.subTest(raw):
                self.assertEqual((value, ""), read(raw)[:2])

    def test_refused(self):
        for raw, problem in REFUSED:
            with self.subTest(raw[:60]):
                self.assertEqual((None, problem, "{}"), read(raw))

    def test_what_is_kept(self):
        for raw, kept in (('{"a": 1}', '{"a": 1}'), (' {"a":\n1} ', ' {"a":\n1} '), ('{"a":1', "{}"),
                          ("[1]", "{}"), ("", "{}"), (None, "{}"), ({"a": "é"}, '{"a": "é"}'),
                          ("[" * 100000, "{}"), (r'"{\"a\": 1}"', '{"a": 1}'),
                          ('{"a": "x\ny"}', r'{"a": "x\ny"}'), ('{"a": NaN}', "{}"),
                          ('{"a": 1} x', '{"a": 1}'), (FENCED, json.dumps(LS)), ('{"a": 1}{"a": 2}', "{}")):
            with self.subTest(repr(raw)[:40]):
                self.assertEqual(read(raw).text, kept)
                self.assertIsInstance(json.loads(kept), dict)

    def test_a_long_repetition_takes_no_time(self):
        self.assertEqual((LS, ""), read(OBJECT * 50_000)[:2])


if __name__ == "__main__":
    unittest.main()
