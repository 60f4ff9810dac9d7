"""What is secret, and that neither a JSON value nor a stream's pieces hide it."""

from __future__ import annotations

import unittest

from mm.secrecy import MASKED, Known, Pieces, mask, mask_servers, secrets_of

KNOWN = Known(["hunter22", "no"])
KNOWN.add("/home/ann", "<home>")
KNOWN.add("/home/ann/work", "<cwd>")


class Values(unittest.TestCase):
    def test_texts(self):
        for text, shown in (
            ("pw=hunter22!", "pw=[masked]!"), ("no", "no"), ("/home/ann/work /home/anna", "<cwd> /home/anna"),
            ("Authorization: Bearer abcdefgh123", "Authorization: Bearer [masked]"),
            ("sk-abcdefghijklmnop1234", "[masked]"),
        ):
            with self.subTest(text):
                self.assertEqual(KNOWN.hidden(text), shown)

    def test_names_that_look_secret(self):
        self.assertEqual(mask({"apiKey": "x", "password": "", "key": "k",
                               "env": [{"name": "A_TOKEN", "value": "y"}, {"name": "HOME", "value": "z"}]},
                              str.upper),
                         {"APIKEY": MASKED, "PASSWORD": "", "KEY": "K",
                          "ENV": [{"NAME": "A_TOKEN", "VALUE": MASKED}, {"NAME": "HOME", "VALUE": "Z"}]})

    def test_what_mcp_servers_are_given(self):
        message = {"params": {"mcpServers": [{"env": [{"name": "A", "value": "one"}, 5],
                                              "headers": [{"value": 2}]}, None]}}
        self.assertEqual(mask_servers(message), ["one", 2])
        self.assertEqual(message["params"]["mcpServers"][0]["env"][0]["value"], MASKED)
        for odd in (None, [], {}, {"params": 5}, {"params": {"mcpServers": {"a": 1}}},
                    {"params": {"mcpServers": [{"env": 5}]}}):
            self.assertEqual(mask_servers(odd), [])

    def test_variables_that_look_secret(self):
        environ = {"GITHUB_TOKEN": "a", "AWS_SECRET_ACCESS_KEY": "b", "MM_API_KEY": "c", "DB_PASSWORD": "d",
                   "STRIPE_KEY": "e", "PATH": "f", "KEYBOARD": "g", "XDG_CONFIG_HOME": "h", "PWD": "i",
                   "OLDPWD": "j"}
        self.assertEqual(sorted(secrets_of(environ)), ["a", "b", "c", "d", "e"])


class StreamedPieces(unittest.TestCase):
    def pieces(self, *texts):
        seen = []
        pieces = Pieces(KNOWN, lambda line, text: seen.append((line, text)))
        for line, text in enumerate(texts):
            pieces.add("text", line, text)
        pieces.flush()
        return seen

    def test_pieces_pass_as_they_came(self):
        for texts in (("a", " b", "c"), ("/usr", "/bin"), ("hunt", "ing"), ("/home/ann/work", " x"),
                      ("", "")):
            with self.subTest(texts):
                self.assertEqual(self.pieces(*texts), list(enumerate(texts)))

    def test_what_goes_across_pieces_becomes_one(self):
        for texts, joined in (
            (("x hun", "ter", "22 y"), "x hunter22 y"),
            (("/home/ann", "/wor", "k"), "/home/ann/work"),
            (("/", "home/ann"), "/home/ann"),
        ):
            with self.subTest(texts):
                self.assertEqual(self.pieces(*texts), list(enumerate([joined] + [""] * (len(texts) - 1))))

    def test_a_piece_is_held_while_a_secret_may_continue(self):
        seen = []
        pieces = Pieces(KNOWN, lambda line, text: seen.append(text))
        pieces.add("text", 0, "see hunt")
        self.assertEqual(seen, [])
        pieces.add("text", 1, "ing")
        self.assertEqual(seen, ["see hunt", "ing"])

    def test_another_text_ends_the_one_before_it(self):
        seen = []
        pieces = Pieces(KNOWN, lambda line, text: seen.append(text))
        pieces.add("thought", 0, "hunt")
        pieces.add("text", 1, "er22")
        self.assertEqual(seen, ["hunt", "er22"])


if __name__ == "__main__":
    unittest.main()
