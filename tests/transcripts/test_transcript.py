"""The transcript format: what parses, what does not and what the reader is told, and what counts as the
same.
"""

from __future__ import annotations

import json
import unittest

from mm.errors import UserError
from mm.transcripts.placeholders import escape, fill
from mm.transcripts.transcript import Directive, Entry, compare, compare_text, directives, groups, parse

NAMES = {"cwd": "/tmp/w", "home": "/tmp/h"}
ID, OTHER_ID = "20260916-101530-4f2a9c1e", "20260916-101531-00000000"


def expected(text: str):
    """The value of a "<" line."""
    return parse("< " + text)[0].value


class WhatParses(unittest.TestCase):
    def test_each_sign(self):
        text = "# words\n> not json\n\n< {\"a\":1}\n<* {}\n! said\n~ {}\n= {\"text\":\"x\"}\n= data: {}\r\n"
        self.assertEqual(
            [(line.number, line.sign, line.text, line.value) for line in parse(text)],
            [
                (1, "#", "words", None), (2, ">", "not json", None), (4, "<", '{"a":1}', {"a": 1}),
                (5, "<*", "{}", {}), (6, "!", "said", None), (7, "~", "{}", {}),
                (8, "=", '{"text":"x"}', {"text": "x"}), (9, "=", "data: {}", None),
            ],
        )

    def test_an_indented_line_continues_the_one_before_it(self):
        (line,) = parse('> {"a":\n     1,\n\t"b": 2}\n')
        self.assertEqual((line.number, line.text), (1, '> {"a": 1, "b": 2}'[2:]))

    def test_a_bare_sign_sends_an_empty_line(self):
        self.assertEqual(parse(">\n")[0].text, "")

    def test_groups_run_from_request_to_request_whatever_stands_between(self):
        lines = parse('~ {"a":1}\n= {"text":"x"}\n< {}\n= {"text":"y"}\n~ {}\n= {"finish":"stop"}')
        self.assertEqual([(asked.number, [line.number for line in answer]) for asked,
                          answer in groups(lines)],
                         [(1, [2, 4]), (5, [6])])

    def test_a_request_may_have_no_answer(self):
        self.assertEqual([answer for _, answer in groups(parse("~ {}\n< {}\n~ {}"))], [[], []])

    def test_directives(self):
        for text, directive in (
            ("cwd: file notes.md two words", Directive("cwd", Entry("file", "notes.md", "two words\n"))),
            ('cwd: file "a b/c" "x\\ny"', Directive("cwd", Entry("file", "a b/c", "x\ny"))),
            ("cwd: file empty", Directive("cwd", Entry("file", "empty", "\n"))),
            ("cwd: folder src/deep", Directive("cwd", Entry("folder", "src/deep", ""))),
            ("home: link there <cwd>/x", Directive("home", Entry("link", "there", "<cwd>/x"))),
            ("args: --no-yolo --model 'a b'", Directive("args", ["--no-yolo", "--model", "a b"])),
            ('config: {"maxSteps": 2}', Directive("config", {"maxSteps": 2})),
            ("model: tiny", Directive("model", "tiny")),
            ("env: A=b=c", Directive("env", ("A", "b=c"))),
            ("stderr: all", Directive("stderr", "all")),
            ("stdin: closed", Directive("stdin", "closed")),
            ("restart: ended", Directive("restart", "ended")),
            ("restart: killed", Directive("restart", "killed")),
            ("deadline: 2.5", Directive("deadline", 2.5)),
            ("Note: this is a comment", None),
        ):
            with self.subTest(text):
                self.assertEqual(parse("# " + text)[0].value, directive)

    def test_directives_by_name(self):
        self.assertEqual(directives(parse("# args: a\n# words\n# args: b c\n# model: m"), "args"),
                         [["a"], ["b", "c"]])


class WhatDoesNotParse(unittest.TestCase):
    def test_the_error_names_the_line_and_what_is_wrong(self):
        for text, told in (
            ("hello", "line 1 starts with none of > < <* ! ~ = #"),
            ("<{}", "line 1 starts with none of"),
            ("  x", "line 1 continues a line, but there is none before it"),
            ("# ok\n\n< {", "line 3 is not JSON: "),
            ("~ x", "line 1 is not JSON: "),
            ("~ {}\n= text", "line 2 is neither an object nor a line of an event stream"),
            ('~ {}\n= {"txt":1}', 'line 2 has the unknown key "txt"; there are text, thought, call'),
            ('= {"text":"x"}', "line 1 is a model's answer without a request"),
            ("# cwd: file", "line 1 # cwd: needs `file NAME TEXT`"),
            ("# cwd: socket x", "line 1 # cwd: needs `file NAME TEXT`"),
            ("# cwd: file ../x y", "line 1 # cwd: ../x is not below the folder"),
            ("# cwd: file a/../../x y", "is not below the folder"),
            ("# cwd: file /etc/x y", "is not below the folder"),
            ("# home: link ~/x y", "is not below the folder"),
            ("# config: [1]", "line 1 # config: needs a JSON object"),
            ("# config: {", "line 1 # config: "),
            ("# args: 'x", "line 1 # args: No closing quotation"),
            ("# env: X", "line 1 # env: needs NAME=VALUE"),
            ("# stderr: some", "line 1 # stderr: can only be `all`"),
            ("# deadline: soon", "line 1 # deadline: "),
        ):
            with self.subTest(text):
                with self.assertRaises(UserError) as caught:
                    parse(text)
                self.assertIn(told, str(caught.exception))
                self.assertEqual(caught.exception.exit_code, 2)


class WhatIsTheSame(unittest.TestCase):
    def test_equal(self):
        for written, real in (
            ('{"a":1,"b":[true,null,"x"]}', {"b": [True, None, "x"], "a": 1}),
            ('"<any>"', {"what": "ever"}),
            ('"<any>"', None),
            ('{"a":"<any>"}', {"a": [1]}),
            ('"x <any> y"', "x two\nlines y"),
            ('"<n>"', 12),
            ('"<n>"', 1.5),
            ('"<n>"', "12"),
            ('"<n> tokens, <n>s"', "1,234 tokens, 0.5s"),
            ('"<cwd>/a"', "/tmp/w/a"),
            ('"<home>"', "/tmp/h"),
            ('"<id>"', ID),
            ('["<id>","<id>","<id2>"]', [ID, ID, OTHER_ID]),
            ('"<id>: <id>"', ID + ": " + ID),
            ('"\\u003cany>"', "<any>"),
            ('"<other>"', "<other>"),
            ('"a.b*"', "a.b*"),
            ("1.0", 1),
        ):
            with self.subTest(written):
                self.assertIsNone(compare(expected(written), real, dict(NAMES)))

    def test_different_and_where(self):
        for written, real, path in (
            ('{"a":{"b":[0,{"c":"x"}]}}', {"a": {"b": [0, {"c": "y"}]}}, "a.b[1].c"),
            ('{"a":1}', {}, "a"),
            ("{}", {"a": {"b": 1}}, "a"),
            ('{"a":[1,2]}', {"a": [1]}, "a[1]"),
            ('{"a":[1]}', {"a": [1, 2]}, "a[1]"),
            ("true", 1, ""),
            ("1", True, ""),
            ("null", False, ""),
            ('"1"', 1, ""),
            ("{}", [], ""),
            ('"<n>"', "twelve", ""),
            ('"<n>"', True, ""),
            ('"<id>"', "call_1", ""),
            ('"<id>"', "20260916-101530-4F2A9C1E", ""),
            ('["<id>","<id>"]', [ID, OTHER_ID], "[1]"),
            ('["<id>","<id2>"]', [ID, ID], "[1]"),
            ('"<id>: <id>"', ID + ": " + OTHER_ID, ""),
            ('"<cwd>"', "/tmp/wx", ""),
            ('"x <any> y"', "x  z", ""),
            ('"\\u003cany>"', "thing", ""),
            ('"a.b"', "axb", ""),
            ('"x"', None, ""),
        ):
            with self.subTest(written):
                difference = compare(expected(written), real, dict(NAMES))
                self.assertEqual(difference and difference.path, path)

    def test_a_subset_names_some_keys_and_the_end_of_lists(self):
        body = {"model": "m", "messages": [{"role": "system", "content": "s"},
                                           {"role": "user", "content": "u"}], "tools": [1, 2]}
        for written, same in (
            ("{}", True),
            ('{"messages":[{"role":"user"}]}', True),
            ('{"messages":[{"role":"system"},{"content":"u"}]}', True),
            ('{"messages":[{"role":"system"}]}', False),
            ('{"messages":[{},{},{}]}', False),
            ('{"messages":[{"role":"user","content":"v"}]}', False),
            ('{"tools":[2]}', True),
            ('{"tools":[1]}', False),
            ('{"nothing":1}', False),
        ):
            with self.subTest(written):
                self.assertEqual(compare(expected(written), body, dict(NAMES), subset=True) is None, same)

    def test_an_id_is_kept_only_when_all_is_the_same(self):
        names = dict(NAMES)
        compare(expected('["<id>",1]'), [ID, 2], names)
        self.assertNotIn("id", names)
        compare(expected('["<id>",1]'), [ID, 1], names)
        self.assertEqual(names["id"], ID)

    def test_the_report_shows_both_values_as_they_are_written(self):
        difference = compare(expected('{"a":"<cwd>/x"}'), {"a": "/y"}, dict(NAMES))
        self.assertEqual(difference, ("a", '"<cwd>/x"', '"/y"'))
        self.assertEqual(compare(expected('{"a":[1]}'), {}, {}), ("a", "[1]", "nothing"))

    def test_of_long_texts_the_report_shows_where_they_part(self):
        difference = compare(expected(json.dumps("a" * 5000 + "b")), "a" * 5000 + "c", {})
        self.assertTrue(difference.expected.endswith('aaab"') and difference.got.endswith('aaac"'))
        self.assertLess(len(difference.got), 500)

    def test_lines_of_text(self):
        names = dict(NAMES)
        self.assertTrue(compare_text("[acp] session <id>: new, <cwd>, <n> MCP",
                                     "[acp] session %s: new, /tmp/w, 0 MCP" % ID, names))
        self.assertEqual(names["id"], ID)
        self.assertFalse(compare_text("session <id>", "session " + OTHER_ID, names))


class WhatIsSent(unittest.TestCase):
    def test_known_placeholders_are_filled_in_json(self):
        names = {"cwd": 'C:\\a "b"', "id": ID}
        self.assertEqual(json.loads(fill('{"cwd":"<cwd>","id":"<id>","any":"<any>","id2":"<id2>"}', names)),
                         {"cwd": 'C:\\a "b"', "id": ID, "any": "<any>", "id2": "<id2>"})

    def test_what_only_looks_like_one_is_not(self):
        text = json.dumps("<cwd> <id2> <b> <any>")
        self.assertEqual(json.loads(fill(escape(text), NAMES)), "<cwd> <id2> <b> <any>")
        self.assertIsNone(compare(expected(escape(text)), "<cwd> <id2> <b> <any>", dict(NAMES)))


if __name__ == "__main__":
    unittest.main()
