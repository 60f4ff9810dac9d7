"""What a line of JSON-RPC 2.0 says: a call, a notice, an answer, or nothing that can be understood. Pure.

Strict about JSON. Lenient about what real programs do: a byte order mark, a missing `jsonrpc`, null `params`,
a null id in a request (echoed like any other), and an answer without its null result.
"""

from __future__ import annotations

from collections import namedtuple

from mm import json_text

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603

WITHOUT_MESSAGE = "an error without a message"
CANCEL_REQUEST = "$/cancel_request"

# A request and a notification: `params` is a dict, empty if there were none.
Call = namedtuple("Call", "id method params")
Notice = namedtuple("Notice", "method params")
# A response. `error` is None or whatever was sent; `complete` is false if neither a result nor an error was.
Answer = namedtuple("Answer", "id result error complete")


class RpcError(Exception):
    """An error as it goes over the wire."""

    def __init__(self, code: int, message: str, data=None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class RemoteError(RpcError):
    """The other side answered a request of ours with an error."""


class Refused(RpcError):
    """A line that is answered with an error. `id` is the line's, None unless it can be trusted."""

    def __init__(self, code: int, message: str, reason: str, identifier=None):
        super().__init__(code, message, {"error": reason})
        self.id = identifier


def read(line: bytes):
    """A Call, a Notice, an Answer, or None for what is to be ignored. Raises Refused."""
    try:
        message = json_text.read((line[3:] if line.startswith(b"\xef\xbb\xbf") else line).decode("utf-8"))
    except ValueError as error:
        raise Refused(PARSE_ERROR, "Parse error", str(error)) from None
    if not isinstance(message, dict):
        raise Refused(INVALID_REQUEST, "Invalid request", "a message is one object; there are no batches")
    if "method" in message:
        return _call_or_notice(message)
    complete = "result" in message or "error" in message
    identifier = message.get("id")
    if not is_id(identifier) or identifier is None:
        if complete:
            return None
        raise unanswerable()
    return Answer(identifier, message.get("result"), message.get("error"), complete)


def unanswerable() -> Refused:
    """The refusal of an object that is not a message. Its id may be one of ours, so it is not echoed."""
    return Refused(INVALID_REQUEST, "Invalid request", "a message has a method, a result or an error")


def _call_or_notice(message: dict):
    method, params, identifier = message["method"], message.get("params"), message.get("id")
    if not is_id(identifier):
        raise Refused(INVALID_REQUEST, "Invalid request", "id must be a string or a number")
    if not isinstance(method, str):
        raise Refused(INVALID_REQUEST, "Invalid request", "method must be a string", identifier)
    fits = params is None or isinstance(params, dict)
    if "id" not in message:
        return Notice(method, params or {}) if fits else None
    if not fits:
        reason = "params must be an object"
        raise Refused(INVALID_PARAMS, "Invalid params: " + reason, reason, identifier)
    return Call(identifier, method, params or {})


def is_id(value) -> bool:
    """A string, a number or null. True is not a number, though it equals 1 in Python."""
    return value is None or isinstance(value, (str, int, float)) and not isinstance(value, bool)


def call(identifier: int, method: str, params) -> dict:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}


def notice(method: str, params) -> dict:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancel_request(identifier: int) -> tuple:
    """The method and the params of the notice that nobody waits for a request of ours any more."""
    return CANCEL_REQUEST, {"requestId": identifier}


def answer(identifier, result) -> dict:
    return {"jsonrpc": "2.0", "id": identifier, "result": result}


def failure(identifier, code: int, message: str, data=None) -> dict:
    error = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": identifier, "error": error}


def result_of(given: Answer):
    """The result of an answer; raises RemoteError. `"error": null` beside a result is not an error."""
    error = given.error
    if error is None:
        return given.result
    if not isinstance(error, dict):
        raise RemoteError(INTERNAL_ERROR, error if isinstance(error, str) else WITHOUT_MESSAGE)
    code = error.get("code")
    if not isinstance(code, int):
        code = INTERNAL_ERROR
    message = error.get("message")
    said = message if message and isinstance(message, str) else WITHOUT_MESSAGE
    raise RemoteError(code, said, error.get("data"))

