"""What a server says when it does not answer: its own words, as one line (pure).

Servers put them into a JSON `error` object, an `error` string, `message` or `detail` beside it, a line of
plain text or a web page; any of these under any status, 200 included.
"""

from __future__ import annotations

import json
import re

# How much of a server's words is shown. Some send their whole tools array or a stack trace along.
MAX_WORDS = 300

# How much of a body is looked at.
MAX_BODY = 65536

_TAG = re.compile(r"(<[^<>]*>)")
_TAG_NAME = re.compile(r"</?\s*([A-Za-z]*)")
_UNSEEN = ("head", "script", "style")
# The page's first tag, however long the white space and the comments in front of it are.
_PAGE = re.compile(r"(?i)\s*<(!doctype\s+html|html|head|body)\b")
# Secrets that are not in the configuration: keys and tokens that a server quotes, the user in a URL.
_SECRETS = re.compile(r"(?<=://)[^\s/@]+(?=@)|(?<=\bbearer )[\w.~+/=-]{6,}|(?<=\bbasic )[\w+/=-]{8,}"
                      r"|\b(?:sk-|hf_|gh[opsu]_|eyJ)[\w.*-]{6,}", re.IGNORECASE)
_NAMED_SECRETS = re.compile(r"((?:(?:api|access|private)[ "
                            r"_-]?key|[_-]token|secret|password|authorization)[\"']?"
                            r"(?: provided)?\s*[:=]\s*[\"']?)[^\s\"',;]{4,}", re.IGNORECASE)
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\\s]+")


def words_of_body(body: str) -> str:
    """The words in a body that is not an answer; empty if it says nothing."""
    text = body[:MAX_BODY].strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _words_of_page(text) if is_page(text) else text.partition("\n")[0]
    return words_of_value(value) or text


def words_of_value(value) -> str:
    """The words in what was a JSON body or the `error` of an event in a stream."""
    for _ in range(4):  # {"error": {"message": {"detail": …}}} is the deepest seen
        if isinstance(value, list) and value:
            value = value[0]
        elif isinstance(value, dict):
            named = (value.get(name) for name in ("error", "message", "detail", "msg", "reason", "type",
                                                  "code"))
            value = next((found for found in named if found), "")
        else:
            break
    return value if isinstance(value, str) else "" if value is None else json_of(value)


def json_of(value) -> str:
    """The value as JSON; "[]" if it is nested too deeply to be written."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "[]"


def status_of_value(value, otherwise: int) -> int:
    """The status that an `error` object names for itself, which is worth more than the 200 it came under."""
    code = value.get("code") if isinstance(value, dict) else None
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599 else otherwise


def is_page(text: str) -> bool:
    """Whether it is a web page: what is at this address is not a model server."""
    return _PAGE.match(text) is not None


def one_line(text: str, secrets=(), limit: int = MAX_WORDS) -> str:
    """The words as they are shown: one printable line of at most `limit` characters, without secrets."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    text = _UNPRINTABLE.sub(" ", text[:MAX_BODY]).strip()
    text = _NAMED_SECRETS.sub(r"\1***", _SECRETS.sub("***", text))
    return text if len(text) <= limit else text[:limit - 1].rstrip() + "…"


def _words_of_page(text: str) -> str:
    said, title, inside = [], [], ""
    for piece in _TAG.split(text):
        if piece.startswith("<") and piece.endswith(">"):
            name = _TAG_NAME.match(piece).group(1).lower()
            if inside in ("", "head") and name == "title":
                inside = "" if piece.startswith("</") else "title"
            elif not inside and name in _UNSEEN and not piece.startswith("</"):
                inside = name
            elif inside == name:
                inside = ""
        elif inside in ("", "title"):
            (title if inside else said).append(piece)
    return " ".join(said).strip() or " ".join(title)
