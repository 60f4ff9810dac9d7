"""Which addresses, names and URLs a page may be fetched from."""

from __future__ import annotations

import unittest

from mm.tools import addresses

PUBLIC = """1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255
    172.15.255.255 172.32.0.0 192.167.255.255 198.17.255.255 198.20.0.0 223.255.255.255
    2606:4700:4700::1111 2a00:1450::1 2001:4860:4860::8888 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1
    2001:0:808:808:0:0:f7f7:f7f7"""

NOT_PUBLIC = """0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.255 169.254.169.254
    172.16.0.1 172.31.255.255 192.0.0.8 192.0.0.170 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.168.1.1 192.175.48.1
    198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
    :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:0:127.0.0.1 ::ffff:224.0.0.1 64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b:1::808:808 100::1
    2002:7f00:1:: 2002:a00:1::1 2002:a9fe:a9fe::1
    2001:0:808:808::80ff:fffe 2001:0:7f00:1:0:0:f7f7:f7f7
    2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2620:4f:8000::1 3fff::1 3fff:fff::1 5f00::1 4000::1 fc00::1 fd12::1
    fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1 ff0e::1"""

PRIVATE_NAMES = """localhost a.localhost printer.local nas.lan x.home.arpa metadata.google.internal intranet wiki 127.0.0.1
    127.1 0x7f.1 2130706433 0177.0.0.1 10.0.0.1 ::1 fd00::1 ::ffff:10.0.0.1 169.254.169.254"""
OTHER_NAMES = "example.com localhost.example.com local.example.com home.example.arpa 1.1.1.1 2606:4700:4700::1111 0x01.com cafe.de"

URLS = (
    ("http://example.com", ("http", "example.com", 80, "/")),
    ("https://example.com", ("https", "example.com", 443, "/")),
    (" HTTPS://Example.COM.:8443/A?b=c#d ", ("https", "example.com", 8443, "/A?b=c")),
    ("http://[2606:4700::1]:81/", ("http", "2606:4700::1", 81, "/")),
    ("http://example.com/a b/ü?q=ö%20x", ("http", "example.com", 80, "/a%20b/%C3%BC?q=%C3%B6%20x")),
    ("http://bücher.example/", ("http", "xn--bcher-kva.example", 80, "/")),
    ("http://example.com?x=http://10.0.0.1/", ("http", "example.com", 80, "/?x=http://10.0.0.1/")),
    # Digits in other clothes are digits again before anything is checked.
    ("http://①②⑦.0.0.1/", ("http", "127.0.0.1", 80, "/")),
    ("http://localhost。/", ("http", "localhost", 80, "/")),
    ("http://127。0.0.1。/", ("http", "127.0.0.1", 80, "/")),
)

NO_URLS = (
    ("ftp://example.com/", "does not begin with http:// or https://"),
    ("file:///etc/passwd", "does not begin with http:// or https://"),
    ("example.com/x", "does not begin with http:// or https://"),
    ("", "does not begin with http:// or https://"),
    ("http://user@example.com/", "holds a user name: leave it out"),
    ("https://user:pass@example.com/", "holds a user name: leave it out"),
    ("http://example.com\\@10.0.0.1/", "holds a user name: leave it out"),
    ("http:///x", "does not name a host"),
    ("http://a b/", "does not name a host"),
    ("http://%31%30.0.0.1/", "does not name a host"),
    ("http://[fe80::1%25eth0]/", None),
    ("http://" + "a" * 64 + "ü.example/", "does not name a host"),
    ("http://" + "a" * 64 + ".example/", "does not name a host"),
    ("https://.example.com/", "does not name a host"),
    ("http://a..example/", "does not name a host"),
    ("http://./", "does not name a host"),
    ("http://example.com:0/", "is not a URL"),
    ("http://example.com:99999/", "is not a URL"),
    ("http://example.com:x/", "is not a URL"),
    ("http://[::1/", "is not a URL"),
    ("http://example.com/a\r\nX: y", "is not a URL"),
    ("http://example.com/" + "a" * 8000, "is not a URL"),
)

GITHUB = (
    ("https://github.com/o/r/blob/main/a/b.py", "https://raw.githubusercontent.com/o/r/main/a/b.py"),
    ("http://www.github.com/o/r/blob/v1.0/README.md?plain=1#L10",
     "https://raw.githubusercontent.com/o/r/v1.0/README.md"),
    (" https://GitHub.com/o/r/blob/main/x ", "https://raw.githubusercontent.com/o/r/main/x"),
    ("https://github.com/o/r/tree/main/a", "https://github.com/o/r/tree/main/a"),
    ("https://github.com/o/r/blob/", "https://github.com/o/r/blob/"),
    ("https://example.com/github.com/o/r/blob/main/x", "https://example.com/github.com/o/r/blob/main/x"),
    ("https://github.com.example.com/o/r/blob/main/x", "https://github.com.example.com/o/r/blob/main/x"),
)


class Addresses(unittest.TestCase):
    def test_public_and_not(self):
        for expected, table in ((True, PUBLIC), (False, NOT_PUBLIC)):
            for address in table.split():
                with self.subTest(address):
                    self.assertIs(addresses.is_public(address), expected)

    def test_names_that_are_private_by_themselves(self):
        for expected, table in ((True, PRIVATE_NAMES), (False, OTHER_NAMES)):
            for host in table.split():
                with self.subTest(host):
                    self.assertIs(addresses.is_private_name(host), expected)


class Urls(unittest.TestCase):
    def test_the_parts(self):
        for url, (scheme, *parts) in URLS:
            with self.subTest(url):
                place = addresses.parse(url)
                self.assertEqual((place.tls, place.host, place.port, place.target),
                                 (scheme == "https", *parts))

    def test_what_is_none(self):
        for url, problem in NO_URLS:
            with self.subTest(url[:60]), self.assertRaises(ValueError) as raised:
                addresses.parse(url)
            if problem:
                self.assertEqual(str(raised.exception), problem)

    def test_a_file_that_github_shows_is_read_itself(self):
        for url, expected in GITHUB:
            with self.subTest(url):
                self.assertEqual(addresses.raw(url), expected)

    def test_a_message_names_it_in_one_line(self):
        self.assertEqual(addresses.shown("http://a/\nb"), "http://a/…")
        self.assertEqual(len(addresses.shown("http://a/" + "b" * 1000)), 301)


if __name__ == "__main__":
    unittest.main()
