"""The text in the bytes of a page, by what the server, the page and its first bytes say."""

from __future__ import annotations

import codecs
import time
import unittest

from mm.tools import charset

META = '<meta charset="%s">%s'
OLD_META = '<META http-equiv=Content-Type content="text/html; charset=%s">%s'

# bytes, what the Content-Type says, whether it is markup, text
CASES = (
    (b"abc", "", True, "abc"),
    ("é".encode(), "", True, "é"),
    (b"\xe9\x80", "", True, "é€"),
    (b"\xe9\x80", "", False, "é€"),
    (b"\xe9\x80", "iso-8859-1", True, "é€"),
    (b"\xe9", "ISO-8859-1", True, "é"),
    (b"\xe9", "us-ascii", True, "é"),
    ("é".encode(), "utf8", True, "é"),
    ("ж".encode("koi8-r"), "koi8-r", True, "ж"),
    ("ж".encode("cp1251"), '"Windows-1251"', True, "ж"),
    ("日本語".encode("shift_jis"), "Shift_JIS", True, "日本語"),
    ("日本語①".encode("cp932"), "x-sjis", True, "日本語①"),
    ("日本語".encode("euc_jp"), "EUC-JP", True, "日本語"),
    ("日本語".encode("iso2022_jp"), "iso-2022-jp", True, "日本語"),
    ("汉字€".encode("gb18030"), "gb2312", True, "汉字€"),
    ("漢字".encode("big5"), "Big5", True, "漢字"),
    ("한글".encode("cp949"), "euc-kr", True, "한글"),
    ("ไทย".encode("cp874"), "tis-620", True, "ไทย"),
    ("ğ".encode("cp1254"), "iso-8859-9", True, "ğ"),
    ("é".encode("mac-roman"), "macintosh", True, "é"),
    ("hé".encode("utf-16-le"), "utf-16le", True, "hé"),
    # A byte order mark wins, then the server, then the page.
    (codecs.BOM_UTF8 + "é".encode(), "iso-8859-1", True, "é"),
    (codecs.BOM_UTF16_LE + "é".encode("utf-16-le"), "utf-8", True, "é"),
    (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), "", False, "é"),
    ((META % ("koi8-r", "é")).encode(), "utf-8", True, META % ("koi8-r", "é")),
    ((META % ("koi8-r", "ж")).encode("koi8-r"), "", True, META % ("koi8-r", "ж")),
    ((OLD_META % ("windows-1251", "ж")).encode("cp1251"), "", True, OLD_META % ("windows-1251", "ж")),
    ((META % ("utf-16", "ж")).encode(), "", True, META % ("utf-16", "ж")),
    (b'<?xml version="1.0" encoding="ISO-8859-1"?><a>\xe9</a>', "", True, '<?xml version="1.0" '
                                                                          'encoding="ISO-8859-1"?><a>é</a>'),
    (b"<!-- " + (META % ("koi8-r", "")).encode() + b" -->\xe9", "", True,
     "<!-- " + META % ("koi8-r", "") + " -->é"),
    ((META % ("koi8-r", "é")).encode(), "", False, META % ("koi8-r", "é")),
    # Names that are none, or that only Python knows.
    ("é".encode(), "no-such", True, "é"),
    (b"YWJj", "base64", True, "YWJj"),
    (b"abc", "rot13", True, "abc"),
    (b"\\x41", "unicode_escape", True, "\\x41"),
    (b"abc", "punycode", True, "abc"),
    (b"+AGE-", "utf-7", True, "+AGE-"),
    (b"a", "x" * 100, True, "a"),
    (b"a", "\0", True, "a"),
    # What does not fit.
    (b"a\xffb", "utf-8", True, "a\ufffdb"),
    ("aé".encode()[:-1], "", True, "aÃ"),
    (b"", "", True, ""),
)


class Charset(unittest.TestCase):
    def test_the_table(self):
        for body, named, is_markup, expected in CASES:
            with self.subTest(body=body, named=named):
                self.assertEqual(charset.decode(body, named, is_markup), expected)

    def test_an_end_cut_within_a_character(self):
        self.assertEqual(charset.decode("日本語".encode()[:-1], "", False, whole=False), "日本")

    def test_a_page_that_never_gets_to_the_point(self):
        begin = time.monotonic()
        for body in (b"<meta " * 1_000_000, b"<!--" * 1_000_000, b"<?xml " * 1_000_000):
            charset.decode(body, "", True)
        self.assertLess(time.monotonic() - begin, 2)


if __name__ == "__main__":
    unittest.main()
