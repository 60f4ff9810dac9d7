"""The front matter of SKILL.md files: what is read, from the tidy and from the odd."""

from __future__ import annotations

import random
import unittest

from mm.skills import front_matter

# (what, the lines between the marks, the fields)
FIELDS = [
    ("plain", "name: a\ndescription: What it does", {"name": "a", "description": "What it does"}),
    ("a colon in prose", "description: Use when: the user asks, e.g. http://x",
     {"description": "Use when: the user asks, e.g. http://x"}),
    ("a colon at the end", "description: Use it for:", {"description": "Use it for:"}),
    ("a sign that means something in YAML", "description: *star, @at, `tick`, {x}, [y], &#",
     {"description": "*star, @at, `tick`, {x}, [y], &#"}),
    ("tab and blanks around", "name:\ta \t\ndescription:   b  ", {"name": "a", "description": "b"}),
    ("double quotes", r'a: "say \"hi\" \\ back\tslash: é"', {"a": 'say "hi" \\ back\tslash: é'}),
    ("an escaped letter", r'a: "caf\u00e9 \d"', {"a": "café d"}),
    ("single quotes", "a: 'it''s: \"x\"'", {"a": 'it\'s: "x"'}),
    ("quotes in the middle", 'a: "one" and "two"', {"a": '"one" and "two"'}),
    ("an open quote", 'a: "one', {"a": '"one'}),
    ("quotes over two lines", 'a: "one\n  two"', {"a": "one two"}),
    ("quotes with nothing in them", "a: \"\"\nb: ''", {"a": "", "b": ""}),
    ("a quoted key", "\"a\": 1\n'b': 2", {"a": "1", "b": "2"}),
    ("folded", "a: >\n  one\n  two\n\n  three\nb: x", {"a": "one two\nthree", "b": "x"}),
    ("folded, stripped", "a: >-\n  one: 1\n  two\n", {"a": "one: 1 two"}),
    ("literal", "a: |\n  one\n    two\n\n  three", {"a": "one\n  two\n\nthree"}),
    ("literal with an indicator", "a: |2-  # why not\n  one\n  two", {"a": "one\ntwo"}),
    ("block of nothing", "a: >\nb: x", {"a": "", "b": "x"}),
    ("block, badly indented", "a: |\n    one\n  two", {"a": "one\ntwo"}),
    ("what only looks like a block", "a: > 3 files\nb: |x", {"a": "> 3 files", "b": "|x"}),
    ("plain over several lines", "a: one\n  two: 2\n\n  three\nb: x", {"a": "one two: 2 three", "b": "x"}),
    ("plain on the next line", "a:\n  one\n  two", {"a": "one two"}),
    ("plain, not indented", "a: one\ntwo and\n3: x", {"a": "one two and", "3": "x"}),
    ("list", "a:\n  - one\n  - 'two: 2'\n  -\nb: x", {"a": ["one", "two: 2", ""], "b": "x"}),
    ("list, not indented", "a:\n- one\n- two", {"a": ["one", "two"]}),
    ("list, an item over two lines", "a:\n  - one\n    more\n  - two", {"a": ["one more", "two"]}),
    ("list in brackets is text", "a: [one, two]", {"a": "[one, two]"}),
    ("a map is text", "metadata:\n  version: \"1.0\"\n  author: me: I\nb: x",
     {"metadata": 'version: "1.0" author: me: I', "b": "x"}),
    ("a line that looks like a map", "a:\n  Use when: x", {"a": "Use when: x"}),
    ("comments and blank lines", "# one\n\na: 1\n# two\n#b: 2\nc: 3", {"a": "1", "c": "3"}),
    ("a comment between lines of a value", "a: one\n# two\n  three", {"a": "one three"}),
    ("twice, the last counts", "a: 1\na: 2", {"a": "2"}),
    ("text before the first key", "hello\na: 1", {"a": "1"}),
    ("no blank behind the colon", "a:1\nb: 2", {"b": "2"}),
    ("names with signs", "allowed-tools: x\ndisable_model.invocation: y",
     {"allowed-tools": "x", "disable_model.invocation": "y"}),
    ("nothing", "", {}),
    ("empty", "a:\nb:", {"a": "", "b": ""}),
    ("a comment after a value", "a: true # by hand\nb: 'x' # y\nc: \"x # y\" # z\nd: # all\ne: C# x", 
     {"a": "true", "b": "x", "c": "x # y", "d": "", "e": "C# x"}),
    ("a comment after a quoted text with a tab", 'a: "x"\t# y', {"a": "x"}),
    ("comments in a list", "a: # all\n  - one # 1\n  # none\n  - 'two # 2' # 2\n", {"a": ["one", "two # 2"]}),
    ("comments in a map", "a:\n  # first\n  b: 1 # x\n  c: 2 # y", {"a": "b: 1 c: 2"}),
    ("a comment in a block is text", "a: |\n  one # 1\n  # two", {"a": "one # 1\n# two"}),
    ("a comment between the lines of a text", "a: one # 1\n  # 2\n  three", {"a": "one three"}),
    ("list, a tab after the dash", "a:\n-\tone\n-\t\ttwo\n- \tthree", {"a": ["one", "two", "three"]}),
    ("list, other signs", "a:\n-one\nb:\n--\nc:\n-\xa0x", {"a": "-one", "b": "--", "c": "-\xa0x"}),
    ("half a surrogate pair", 'a: "\\ud800"', {"a": "\ufffd"}),
    ("tabs for indentation", "a: >\n\tone\n\ttwo", {"a": "one two"}),
    ("dots and dashes in a value", "a: ...\nb: --- x", {"a": "...", "b": "--- x"}),
]

# (what, the file, the fields, the line that it begins on, the body)
FILES = [
    ("usual", "---\nname: a\n---\n\n# Title\n\ntext\n", {"name": "a"}, 1, "# Title\n\ntext\n"),
    ("CRLF", "---\r\nname: a\r\n---\r\none\r\ntwo\r\n", {"name": "a"}, 1, "one\ntwo\n"),
    ("old Mac", "---\rname: a\r---\rone\rtwo", {"name": "a"}, 1, "one\ntwo"),
    ("BOM", "\ufeff---\nname: a\n---\nx", {"name": "a"}, 1, "x"),
    ("blanks after the marks", "--- \nname: a\n---\t\nx", {"name": "a"}, 1, "x"),
    ("a rule in the body", "---\nname: a\n---\nx\n---\ny", {"name": "a"}, 1, "x\n---\ny"),
    ("no body", "---\nname: a\n---", {"name": "a"}, 1, ""),
    ("empty lines first", "\n \n---\nname: a\n---\nx", {"name": "a"}, 3, "x"),
    ("comments first", "# one\n<!-- two\nthree -->\n\n---\nname: a\n---\nx", {"name": "a"}, 5, "x"),
    ("a comment that does not end", "<!-- one\n---\nname: a\n---\n", None, 1,
     "<!-- one\n---\nname: a\n---\n"),
    ("text first", "Title\n---\nname: a\n---\n", None, 1, "Title\n---\nname: a\n---\n"),
    ("a title and a rule", "# Title\n---\ntext\n", None, 1, "# Title\n---\ntext\n"),
    ("nothing in it", "---\n---\nx", {}, 1, "x"),
    ("empty", "", None, 1, ""),
]


class FrontMatter(unittest.TestCase):
    def test_fields(self):
        for what, lines, fields in FIELDS:
            with self.subTest(what):
                self.assertEqual(front_matter.read("---\n%s\n---\nbody" % lines), (fields, 1, "body"))

    def test_files(self):
        for what, text, fields, line, body in FILES:
            with self.subTest(what):
                self.assertEqual(front_matter.read(text), (fields, line, body))

    def test_front_matter_that_does_not_end(self):
        for text in ("---", "---\nname: a\n", "---\nname: a\n----\n", "---\nname: a\n ---\n"):
            with self.subTest(text):
                self.assertRaises(front_matter.NotClosed, front_matter.read, text)

    def test_whatever_stands_there_gives_texts(self):
        pieces = ["a", ": ", ":", "\n", "  ", "- ", "-\t", "-", " #", "a:\n-\t", "\xa0", "\x0b", "\u2028",
                  ">", "|", '"', "'", "#", "\\", "---", "\t", "\ufeff", "\udc80", "[", "é", "\\u12"]
        source = random.Random(6)
        for _ in range(2000):
            text = "---\n%s\n---\n" % "".join(source.choices(pieces, k=source.randrange(40)))
            fields, _, body = front_matter.read(text)
            for value in fields.values():
                texts = value if isinstance(value, list) else [value]
                self.assertTrue(all(isinstance(each, str) for each in texts), text)
            self.assertIsInstance(body, str)


if __name__ == "__main__":
    unittest.main()
