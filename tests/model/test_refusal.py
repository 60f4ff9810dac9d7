"""A server's own words, found in whatever it sends instead of an answer."""

from __future__ import annotations

import time
import unittest

from mm.model import refusal


class Words(unittest.TestCase):
    def test_words_of_a_body(self):
        cases = [
            ('{"error":{"message":"m","code":500}}', "m"),
            ('{"error":"m"}', "m"),
            ('{"object":"error","message":"m","code":400}', "m"),
            ('{"detail":"m"}', "m"),
            ('{"detail":[{"loc":["body"],"msg":"m","type":"t"}]}', "m"),
            ('{"error":{"message":{"detail":"m"}}}', "m"),
            ('{"error":{"type":"not_found_error","message":null}}', "not_found_error"),
            ('{"unknown":1}', '{"unknown":1}'),
            ('["m"]', "m"),
            ("m\nVerbose output:\n...", "m"),
            ("", ""),
            ("<html><head><title>t</title><style>s</style></head><body><h1>Bad "
             "<b>Gateway</b></h1></body></html>", "Bad  Gateway"),
            ("<!DOCTYPE html><title>t</title>", "t"),
            ("<html><script>if (a < b) x()", ""),
        ]
        for body, expected in cases:
            with self.subTest(body):
                self.assertEqual(expected, refusal.words_of_body(body))

    def test_one_line(self):
        cases = [
            ("a\n\tb  c", (), "a b c"),
            ("a\x1b[31mb\x00\u202ec", (), "a [31mb c"),
            ("a\ud83db", (), "a b"),
            ("key abc-1234", ("abc-1234",), "key ***"),
            ("x" * 301, (), "x" * 299 + "…"),
            ("x" * 300, (), "x" * 300),
        ]
        for text, secrets, expected in cases:
            with self.subTest(text):
                self.assertEqual(expected, refusal.one_line(text, secrets))

    def test_the_status_that_an_error_names(self):
        for value, expected in (({"code": 503}, 503), ({"code": "503"}, 200), ({"code": 7}, 200),
                                ("text", 200), ({"code": True}, 200)):
            with self.subTest(value):
                self.assertEqual(expected, refusal.status_of_value(value, 200))

    def test_broken_pages_take_no_time(self):
        for piece in ("<script>", "<!--", "<", "<a ", "<html"):
            with self.subTest(piece):
                start = time.process_time()
                refusal.words_of_body("<html>" + piece * 100_000)
                self.assertLess(time.process_time() - start, 1)


if __name__ == "__main__":
    unittest.main()
