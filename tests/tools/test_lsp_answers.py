"""Answers of a shape that no server should send: something is shown, or nothing."""

from __future__ import annotations

import unittest

from mm.tools import lsp_answers

RANGE = {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 5}}
URI = "file:///w/a.toy"

LOCATIONS = [
    (None, []), (7, []), ([None, 7, {}], []), ({"uri": 7, "range": RANGE}, []),
    ({"uri": URI, "range": RANGE}, [(URI, 1)]), ({"uri": URI}, [(URI, 0)]),
    ({"uri": URI, "range": {"start": {"line": -3}}}, [(URI, 0)]),
    ([{"uri": URI, "range": [RANGE]}], [(URI, 0)]),
    ([{"uri": URI, "range": RANGE}, {"targetUri": URI, "targetRange": RANGE}], [(URI, 1)]),
]
OUTLINES = [
    (None, ""), ({}, ""), ([None, []], ""), ([{"kind": 99, "range": RANGE}], "2: symbol (no name)"),
    ([{"name": "a\nb", "kind": 12}], "1: function a…"),
    ([{"name": "a", "kind": "x", "containerName": ["b"], "children": 7}], "1: symbol a"),
    ([{"name": "a", "kind": 5, "location": {"uri": URI, "range": RANGE}, "containerName": "m"}],
     "2: class a in m"),
]
FOUND = [
    ([None, {}, {"location": 7}, {"location": {"uri": 7}}], ""),
    ([{"name": 1, "containerName": 2, "location": {"uri": URI}}], "a.toy:1: symbol (no name)"),
    ([{"name": "a", "kind": 12, "location": {"uri": "jar:x!/a\nb", "range": RANGE}}],
     "jar:x!/a…:2: function a"),
]
HOVERS = [
    (None, ""), ({"contents": None}, ""), ({"contents": 7}, ""),
    ({"contents": [None, "a", {"value": 7}, {"value": "b"}]}, "a\n\nb"),
    ({"contents": "\x1b[1mbold\x1b[0m\r\nx\x00"}, "bold\nx"),
    ({"contents": {"language": "toy", "value": " "}}, ""),
]
DIAGNOSTICS = [
    ([None, {}], ""), ([{"message": ["x\n"], "severity": "2", "code": {}, "range": 7}],
                       "a.toy:1:1 error: (no message)"),
    ([{"message": "m\x1b\nn", "severity": 9, "code": 0}], "a.toy:1:1 error: m n [0]"),
]


class Answers(unittest.TestCase):
    def test_each_of_them(self):
        column = lambda position: (0, 0)
        for read, table in ((lsp_answers.locations, LOCATIONS), (lsp_answers.outline, OUTLINES),
                            (lsp_answers.hover, HOVERS),
                            (lambda answer: lsp_answers.found_symbols(answer, "/w"), FOUND),
                            (lambda answer: lsp_answers.diagnostics(answer, "a.toy", column), DIAGNOSTICS)):
            for answer, expected in table:
                with self.subTest(answer=answer):
                    self.assertEqual(read(answer), expected)


if __name__ == "__main__":
    unittest.main()
