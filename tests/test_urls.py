"""The parts of a URL, as Python's urllib.parse finds them."""

from __future__ import annotations

import unittest
import urllib.parse

from mm import urls

GOOD = ["http://h", "HTTPS://Host.Example:8080/v1/?a=b#c", "http://[::1]:80/a", "http://[fe80::1%eth0]/",
        "http://u:p@h:1/v1", "http://h:/x",
        "//h/x", "h:80/x", "a b", "", "http:///v1", "http://h?x", "ftp://h", "http://h/a;b?c#d?e",
        "http://h/a?b?c", "http://h/\u00e4"]
BAD = ["http://h:x/", "http://h:99999", "http://[::1/", "http://::1]/", "http://h:1:2/", "http://[x]/",
       "http://a\u2100b/"]


class Urls(unittest.TestCase):
    def test_the_parts(self):
        for url in GOOD:
            with self.subTest(url):
                theirs, mine = urllib.parse.urlsplit(url), urls.split(url)
                self.assertEqual((theirs.scheme, theirs.netloc, theirs.path, theirs.query), tuple(mine[:4]))
                self.assertEqual((theirs.hostname or "", theirs.port), (mine.host, mine.port))

    def test_not_an_address(self):
        for url in BAD:
            with self.subTest(url):
                self.assertRaises(ValueError, urls.split, url)


if __name__ == "__main__":
    unittest.main()
