"""What a recording must not hold: which values are replaced, and by what."""

from __future__ import annotations

import unittest

from mm.transcripts.redaction import Redaction
from mm.transcripts.placeholders import mark, written

ID, OTHER_ID = "20260916-101530-4f2a9c1e", "20260916-101531-00000000"


def redaction() -> Redaction:
    known = Redaction("/home/ann", ["hunter22", "no"])
    known.add_folder("/home/ann/work", mark("cwd"))
    known.add_folder("/srv/other", mark("cwd") + "/other1")
    return known


class Values(unittest.TestCase):
    def test_what_is_compared(self):
        for real, expected in (
            ("/home/ann/work/a.py", "<cwd>/a.py"),
            ("in /home/ann/work, in /home/ann.", "in <cwd>, in <home>."),
            ("/home/anna /home/ann-x", "/home/anna /home/ann-x"),
            ("/srv/other/x", "<cwd>/other1/x"),
            ("pw=hunter22!", "pw=<any>!"),
            ("no is too short to be a secret", "no is too short to be a secret"),
            ("Authorization: Bearer abcdefgh123", "Authorization: Bearer <any>"),
            ("sk-abcdefghijklmnop1234", "<any>"),
            ("ghp_abcdefghijklmnopqrst12", "<any>"),
            ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\n", "<any>\\n"),
            ("process group 937. Stop it with: kill -- -937",
             "process group <n>. Stop it with: kill -- -<n>"),
            ("everything is in /tmp/mm-x1y2_abc/bash-4.log, use", "everything is in <any>/bash-4.log, use"),
            ("1 summary + 2 kept (1,234 tokens, 5.6s)", "1 summary + 2 kept (<n> tokens, <n>s)"),
            ("mm v0.1.0 · demo", "mm v<any> · demo"),
            ("http://127.0.0.1:8080/v1 answered 500", "http://127.0.0.1:<n>/v1 answered 500"),
            ("a literal <cwd>", "a literal \\u003ccwd>"),
        ):
            with self.subTest(real):
                self.assertEqual(written(redaction().compared(real)), '"%s"' % expected)

    def test_what_is_sent(self):
        for real, expected in (
            ("/home/ann/work/a.py", "<cwd>/a.py"),
            ("/home/ann/x", "<home>/x"),
            ("pw=hunter22!", "pw=[masked]!"),
            ("process group 937", "process group 937"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ):
            with self.subTest(real):
                self.assertEqual(written(redaction().sent(real)), '"%s"' % expected)

    def test_inside_of_values(self):
        value = {"a": ["/home/ann/work", 1, None, True, {"b": "hunter22"}]}
        self.assertEqual(written(redaction().sent(value)), '{"a":["<cwd>",1,null,true,{"b":"[masked]"}]}')

    def test_keys_that_look_secret(self):
        value = {"apiKey": "x", "Authorization": "y", "password": "", "totalTokens": 5, "tokens": ["a"],
                 "key": "k"}
        self.assertEqual(written(redaction().sent(value)),
                         '{"apiKey":"[masked]","Authorization":"[masked]","password":"",'
                         '"totalTokens":5,"tokens":["a"],"key":"k"}')

    def test_sessions_are_numbered_as_mm_names_them(self):
        known = redaction()
        # the client's word alone: a replay could not know what it stands for
        self.assertEqual(known.sent(ID), ID)
        self.assertEqual(known.compared("session " + ID), "session " + mark("id"))
        self.assertEqual(known.compared([OTHER_ID, ID]), [mark("id2"), mark("id")])
        self.assertEqual(known.sent(OTHER_ID), mark("id2"))

    def test_the_root_folder_is_everywhere_and_no_home(self):
        self.assertEqual(Redaction("/").compared("/a/b"), "/a/b")



if __name__ == "__main__":
    unittest.main()
