"""What a line says, as a table."""

from __future__ import annotations

import unittest

from mm.wire import messages
from mm.wire.messages import Answer, Call, Notice

UNDERSTOOD = (
    # line, what it says
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}', Call(1, "m", {"a": 1})),
    (b'{"jsonrpc":"2.0","id":0,"method":"m"}', Call(0, "m", {})),
    (b'{"jsonrpc":"2.0","id":"7d5c-x","method":"m","params":null}', Call("7d5c-x", "m", {})),
    (b'{"jsonrpc":"2.0","id":"","method":"m"}', Call("", "m", {})),
    (b'{"jsonrpc":"2.0","id":null,"method":"m"}', Call(None, "m", {})),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', Call(1.5, "m", {})),
    (b'{"jsonrpc":"2.0","id":12345678901234567890123,"method":"m"}', Call(12345678901234567890123, "m", {})),
    (b'{"id":1,"method":"m"}', Call(1, "m", {})),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"m"}', Call(1, "m", {})),
    (b'  {"jsonrpc":"2.0","id":1,"method":"m"}  ', Call(1, "m", {})),
    (b'{"jsonrpc":"2.0","method":"m","params":{"a":1}}', Notice("m", {"a": 1})),
    (b'{"jsonrpc":"2.0","method":"m"}', Notice("m", {})),
    (b'{"jsonrpc":"2.0","method":"m","params":[1]}', None),
    (b'{"jsonrpc":"2.0","id":1,"result":{}}', Answer(1, {}, None, True)),
    (b'{"jsonrpc":"2.0","id":1,"result":null}', Answer(1, None, None, True)),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}',
     Answer(1, None, {"code": -1, "message": "no"}, True)),
    (b'{"jsonrpc":"2.0","id":"x","result":1}', Answer("x", 1, None, True)),
    (b'{"jsonrpc":"2.0","id":1}', Answer(1, None, None, False)),
    (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}', None),
    (b'{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}', None),
    (b'{"jsonrpc":"2.0","id":true,"result":1}', None),
    (b'{"jsonrpc":"2.0","id":[1],"result":1}', None),
)

REFUSED = (
    # line, code, id of the answer
    (b"hello", -32700, None),
    (b"{", -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"m"} x', -32700, None),
    (b'{"id":1,"method":"m","params":{"a":NaN}}', -32700, None),
    (b'{"id":1,"method":"m","params":{"a":-Infinity}}', -32700, None),
    (b'{"id":1,"method":"\xff"}', -32700, None),
    (b"\x00", -32700, None),
    (b"[" * 100_000, -32700, None),
    (b'{"a":' * 100_000, -32700, None),
    (b"[]", -32600, None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', -32600, None),
    (b"1", -32600, None),
    (b'"m"', -32600, None),
    (b"null", -32600, None),
    (b"{}", -32600, None),
    (b'{"jsonrpc":"2.0","id":null}', -32600, None),
    (b'{"jsonrpc":"2.0","params":{}}', -32600, None),
    (b'{"jsonrpc":"2.0","id":true}', -32600, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"m"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":[1],"method":"m"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":{},"method":"m"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1),
    (b'{"jsonrpc":"2.0","method":null}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}', -32602, 1),
    (b'{"jsonrpc":"2.0","id":"a","method":"m","params":"x"}', -32602, "a"),
    (b'{"jsonrpc":"2.0","id":null,"method":"m","params":0}', -32602, None),
)


class Reading(unittest.TestCase):
    def test_what_a_line_says(self):
        for line, said in UNDERSTOOD:
            with self.subTest(line):
                self.assertEqual(messages.read(line), said)
                self.assertIs(type(messages.read(line)), type(said))

    def test_what_is_refused(self):
        for line, code, identifier in REFUSED:
            with self.subTest(line[:60]):
                with self.assertRaises(messages.Refused) as caught:
                    messages.read(line)
                self.assertEqual((caught.exception.code, caught.exception.id), (code, identifier))
                self.assertLess(len(str(caught.exception.data)), 200)


class Answers(unittest.TestCase):
    def test_a_result(self):
        for given in (Answer(1, {"a": 1}, None, True), Answer(1, None, None, True),
                      Answer(1, None, None, False)):
            self.assertEqual(messages.result_of(given), given.result)

    def test_errors_of_any_shape(self):
        for error, code, message, data in (
            ({"code": -32601, "message": "no", "data": 1}, -32601, "no", 1),
            ({"message": "no"}, -32603, "no", None),
            ({"code": "E", "message": None}, -32603, "an error without a message", None),
            ("boom", -32603, "boom", None),
            ({}, -32603, "an error without a message", None),
            (False, -32603, "an error without a message", None),
        ):
            with self.subTest(error), self.assertRaises(messages.RemoteError) as caught:
                messages.result_of(Answer(1, None, error, True))
            self.assertEqual((caught.exception.code, caught.exception.message, caught.exception.data),
                             (code, message, data))


if __name__ == "__main__":
    unittest.main()
