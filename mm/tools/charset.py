"""The text in the bytes of a page. Pure.

In the order of the HTML standard: a byte order mark, what the server says, what the page says of itself; then
UTF-8, or windows-1252 if it is not valid UTF-8. Names of encodings mean what browsers mean by them; names that only
Python knows do not count.
"""

from __future__ import annotations

import codecs
import re

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# A page names its encoding within this many bytes; the standard has 1024.
_PROBE = 4096
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_IN_PAGE = re.compile(rb"""<meta\b[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)"""
                      rb"""|<\?xml\b[^>]*?encoding\s*=\s*["']([\w.:-]+)""", re.IGNORECASE)

# What browsers read in the place of the encoding that is named, by the names that Python gives them.
_MEANT = {"iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874",
          "tis-620": "cp874", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949",
          "big5": "big5hkscs"}
_ALIASES = {"x-sjis": "shift_jis", "windows-31j": "shift_jis", "x-gbk": "gbk", "ks_c_5601-1987": "euc_kr",
            "windows-949": "cp949", "windows-874": "cp874", "x-mac-roman": "mac-roman",
            "macintosh": "mac-roman", "x-mac-cyrillic": "mac-cyrillic"}
_KNOWN = re.compile(r"utf-(8|16|16-le|16-be)|cp\d+|iso8859-\d+|koi8-[ru]|mac-\w+"
                    r"|euc_jp|iso2022_jp|gb18030|big5hkscs")


def decode(body: bytes, named: str, is_markup: bool, whole: bool = True) -> str:
    """`named` is the charset of the Content-Type, "" where there is none; `whole`: the end was not cut off.

    Never fails: what does not fit becomes U+FFFD.
    """
    for bom, encoding in _BOMS:
        if body.startswith(bom):
            return body[len(bom):].decode(encoding, "replace")
    encoding = _python_name(named)
    if encoding is None and is_markup:
        encoding = _declared(body)
    if encoding is not None:
        return body.decode(encoding, "replace")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(body, whole)
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _declared(body):
    found = _IN_PAGE.search(_COMMENT.sub(b"", body[:_PROBE]))
    encoding = found and _python_name((found.group(1) or found.group(2)).decode("ascii", "replace"))
    # Whoever could read this in the bytes did not read UTF-16.
    return "utf-8" if encoding and encoding.startswith("utf-16") else encoding


def _python_name(label):
    label = label.strip(" \"'").lower()
    try:
        name = codecs.lookup(_ALIASES.get(label, label)).name
    except (LookupError, ValueError):
        return None
    name = _MEANT.get(name, name)
    return name if _KNOWN.fullmatch(name) else None
