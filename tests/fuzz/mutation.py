"""Broken variants of samples: bytes, and JSON values in which something else stands. The same seed gives the
same ones.
"""

from __future__ import annotations

import copy
import json

# What is put into text: the ends and the escapes of every format that is read here.
TOKENS = (
    b"{", b"}", b"[", b"]", b'"', b"\\", b":", b",", b"\n", b"\r\n", b"\t", b" ", b"\x00", b"\xff", b"\xfe",
    b"\xef\xbb\xbf", b"\\ud83d", b"\\u0000", b"\xe2\x80\xa8", b"\xf0\x9f", b"null", b"true", b"NaN",
    b"-Infinity", b"1e999", b"-0", b"9" * 400,
    b"---\n", b"- ", b"-\t", b"# ", b"|\n", b">\n", b"  ", b"'", b"&#", b"&#99999999;", b"&amp", b"<", b">",
    b"<!--", b"-->", b"<![CDATA[", b"</table>", b"<td>", b"<pre>", b"<script>", b"=", b"data: ",
    b"event: error\n", b"data: [DONE]\n\n", b"Content-Length: 5\r\n\r\n", b"Content-Length: -1\r\n\r\n",
    b"<any>", b"<id>", b"<cwd>", b"\x1b[31m", b"[" * 300, b'{"a":' * 300,
)

# What stands in the place of a value of JSON.
VALUES = (
    None, True, False, 0, -1, 1, 2 ** 31, 2 ** 63, 10 ** 300, -10 ** 30, 0.5, 1e308, float("nan"),
    float("inf"), "", "x", "\x00", "\ud800", "\u202e", "1", "null", "file:///etc/passwd", "file://[",
    "http://[::1", "../..", "/", "a\nb", "\x1b]0;x\x07", "é" * 300, [], {}, [[]], [None], [1, "a", {}],
    {"": ""}, {"a": {"b": {"c": []}}}, "x" * 70_000,
)
LONGEST = 200_000  # bytes of an input: how long a reader may take is measured for each
LEVELS = 60  # of the deepest value; text may be deeper


def variant(random, samples) -> bytes:
    """One broken input. `samples` are bytes, or JSON values in which a value may be replaced before the bytes
    are broken.
    """
    sample = random.choice(samples)
    if not isinstance(sample, bytes):
        for _ in range(random.choice((0, 1, 1, 2, 5))):
            sample = with_another_value(random, sample)
        text = json.dumps(sample, ensure_ascii=random.random() < 0.5)
        sample = text.encode("utf-8", "surrogatepass")[:LONGEST]
        if random.random() < 0.7:
            return sample
    other = random.choice(samples)
    return broken(random, sample, other if isinstance(other, bytes) else b"")[:LONGEST]


def broken(random, data: bytes, other: bytes = b"") -> bytes:
    """`data` changed in one to four places; now and then its end is that of `other`."""
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(data) + 1)
        end = at + random.choice((1, 2, 5, 20, 80, 300))
        way = random.randrange(6)
        if way == 0:
            data = data[:at] + data[end:]
        elif way == 1:
            data = data[:end] + data[at:end] * random.choice((1, 1, 3, 50)) + data[end:]
        elif way == 2:
            data = data[:at] + bytes([random.randrange(256)]) + data[at + 1:]
        elif way == 3:
            data = data[:at] + random.choice(TOKENS) + data[at:]
        elif way == 4:
            data = data[:at] + (other[random.randrange(len(other)):] if other else b"")
        else:
            data = data[:at] + random.choice(TOKENS) * random.choice((1, 2, 100)) + data[end:]
    return data


def with_another_value(random, document):
    """A copy of the JSON value in which one value, one key or the whole is another one."""
    document = copy.deepcopy(document)
    places = list(_places(document))
    if not places or random.random() < 0.02:
        return strange(random)
    parent, key = random.choice(places)
    way = random.randrange(8)
    if way == 0:
        del parent[key]
    elif way == 1 and isinstance(parent, dict):
        parent[random.choice(("", "type", "__proto__", "\ud800", key + " "))] = parent.pop(key)
    elif way == 2:
        other, name = random.choice(places)
        # A copy: a value that holds itself cannot be written as JSON.
        parent[key] = copy.deepcopy(other[name])
    elif way == 3 and isinstance(parent, list):
        parent[key:key] = [copy.deepcopy(parent[key])] * random.choice((1, 3, 200))
    else:
        parent[key] = strange(random)
    return document


def strange(random):
    """A value that stands where nobody expects it."""
    if random.random() > 0.02:
        return copy.deepcopy(random.choice(VALUES))
    value = []
    for _ in range(LEVELS):
        value = [value] if random.random() < 0.5 else {"a": value}
    return value


def _places(document):
    """(object or list, key or index) of every value below the whole one."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value,
                                                                                             list) else ()
        for key, inner in items:
            yield value, key
            waiting.append(inner)
