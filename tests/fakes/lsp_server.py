"""A language server for a toy language, as a program of its own: `lsp_server.py '{"…": …}'`, see OPTIONS.

In the toy language every word is a name, all files of the root that end in .toy belong together, a line that
begins with # is a comment, and `def NAME` defines a name. `bad` is an error. What the server is told goes to
the file `log`, a line of JSON each.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from urllib.parse import quote, unquote

OPTIONS = {
    "log": None,            # a file
    "encoding": None,       # what it answers to positionEncodings
    "versions": True,       # whether diagnostics name the version
    "only_news": False,     # no diagnostics where they are the same as before, as typescript-language-server
    "clears": False,        # an empty list when a file is closed, as clangd and typescript-language-server
    "pull": False,          # diagnostics are asked for
    "publishes": True,
    "late": 0,              # seconds before diagnostics come
    "asks": False,          # requests of its own after the handshake, their answers go to the log
    "indexing": 0,          # seconds of work in progress after the first file
    "cannot": [],           # capabilities that it does not have
    "rename": "changes",    # what its edit looks like, where the new name does not say so
    "modified": 0,          # so many answers "content modified" before the first one
    # at the disk before each answer; else it reads all files at the start, then what it is told, as pyright
    "looks": True,
    "hostile": None,
    "stderr": "",           # something said there at the start
}
WORD = re.compile(r"\w+")


class Server:
    def __init__(self, options):
        self.options = dict(OPTIONS, **options)
        self.texts, self.versions, self.published = {}, {}, {}
        self.known = None
        self.root = None
        self.writing = threading.Lock()
        self.indexed = False
        self.modified = self.options["modified"]

    # The wire

    def send(self, message):
        body = json.dumps(dict(message, jsonrpc="2.0")).encode()
        with self.writing:
            sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            sys.stdout.buffer.flush()

    def log(self, **what):
        if self.options["log"]:
            with open(self.options["log"], "a") as file:
                file.write(json.dumps(what) + "\n")

    def run(self):
        while True:
            length = 0
            while True:
                line = sys.stdin.buffer.readline()
                if not line:
                    return
                if not line.strip():
                    break
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            message = json.loads(sys.stdin.buffer.read(length))
            if "method" in message:
                self.log(method=message["method"], params=message.get("params"), id=message.get("id"))
                self.receive(message)
            else:
                self.log(answer=message.get("id"), result=message.get("result"), error=message.get("error"))

    def receive(self, message):
        method, params, number = message["method"], message.get("params") or {}, message.get("id")
        if self.hostile(method, number):
            return
        handler = getattr(self, method.replace("/", "_").replace("$", ""), None)
        if number is None:
            if handler:
                handler(params)
            return
        if handler is None:
            self.send({"id": number, "error": {"code": -32601, "message": "no such method"}})
            return
        if self.modified and method.startswith("textDocument/"):
            self.modified -= 1
            self.send({"id": number, "error": {"code": -32801, "message": "content modified"}})
            return
        try:
            self.send({"id": number, "result": handler(params)})
        except ValueError as problem:
            self.send({"id": number, "error": {"code": -32602, "message": str(problem)}})
        if self.options["hostile"] == "twice":
            self.send({"id": number, "result": None})

    def hostile(self, method, number):
        """Whether it has done something else than what it was asked for."""
        how = self.options["hostile"]
        if how == "deaf" and method == "initialized":
            time.sleep(60)
        if how == "exit at once" and method == "initialize":
            sys.exit(3)
        if how == "refuses" and method == "initialize":
            self.send({"id": number, "error": {"code": -32603, "message": "no licence"}})
            return True
        if how == "silent at once" and method == "initialize":
            return True
        if method != "textDocument/definition":
            return False
        if how == "exit":
            print("the end is near", file=sys.stderr, flush=True)
            os._exit(7)
        if how == "silent":
            return True
        if how == "noise":
            os.write(1, os.urandom(3000).replace(b"\r", b"").replace(b"\n", b"") + b"\n\r\n\r\n"
                     + b"Content-Length: 3\r\n\r\n{x}")
        if how == "flood":
            os.write(2, b"x" * 1000000 + b"\n")
        if how == "huge":
            sys.stdout.buffer.write(b"Content-Length: 100000000\r\n\r\n")
            for _ in range(100):
                sys.stdout.buffer.write(b" " * 1000000)
            return True
        return False

    # Requests

    def initialize(self, params):
        self.root = unquote(params["rootUri"][len("file://"):])
        self.known = None if self.options["looks"] else dict(self.files())
        provided = {"definitionProvider": True, "referencesProvider": True, "hoverProvider": True,
                    "documentSymbolProvider": True, "workspaceSymbolProvider": True, "renameProvider": True,
                    "textDocumentSync": {"openClose": True, "change": 1, "save": {"includeText": True}}}
        if self.options["encoding"]:
            provided["positionEncoding"] = self.options["encoding"]
        if self.options["pull"]:
            provided["diagnosticProvider"] = {}
        return {"capabilities": {name: value for name,
                                 value in provided.items() if name not in self.options["cannot"]}}

    def initialized(self, params):
        if self.options["asks"]:
            for number, (method, asked) in enumerate((
                    ("workspace/configuration", {"items": [{"section": "a"}, {"section": "b"}]}),
                    ("client/registerCapability", {"registrations": []}),
                    ("window/workDoneProgress/create", {"token": 1}),
                    ("window/showMessageRequest", {"type": 1, "message": "?"}),
                    ("workspace/workspaceFolders", None), ("workspace/applyEdit", {"edit": {}}),
                    ("workspace/codeLens/refresh", None))):
                self.send({"id": "s%d" % number, "method": method, "params": asked})

    def shutdown(self, params):
        return None

    def exit(self, params):
        sys.exit(0)

    def textDocument_definition(self, params):
        name = self.name_at(params)
        found = [{"targetUri": uri, "targetRange": self.range(line, 0, 0, text),
                  "targetSelectionRange": self.range(line, start, end, text)}
                 for uri, line, start, end, text in self.places(name) if text[:start].endswith("def ")]
        return found or None

    def textDocument_references(self, params):
        return [{"uri": uri, "range": self.range(line, start, end, text)}
                for uri, line, start, end, text in self.places(self.name_at(params))]

    def textDocument_hover(self, params):
        name = self.name_at(params)
        return {"contents": [{"language": "toy", "value": "def " + name}, "A name."]} if name else None

    def textDocument_documentSymbol(self, params):
        text = self.texts[params["textDocument"]["uri"]]
        return [{"name": match.group(1), "kind": 12, "range": self.range(line, 0, len(row), row),
                 "selectionRange": self.range(line, match.start(1), match.end(1), row),
                 "children": [{"name": word, "kind": 13, "selectionRange": self.range(line, 0, 0, row)}
                              for word in row[match.end():].split()]}
                for line, row in enumerate(lines_of(text)) for match in [re.match(r"def (\w+)", row)]
                if match]

    def workspace_symbol(self, params):
        return [{"name": match.group(1), "kind": 12, "containerName": "toy",
                 "location": {"uri": uri, "range": self.range(line, 4, 5, row)}}
                for uri, text in self.files() for line, row in enumerate(lines_of(text))
                for match in [re.match(r"def (\w+)", row)] if match and params["query"] in match.group(1)]

    def textDocument_diagnostic(self, params):
        return {"kind": "full", "items": self.problems(self.texts[params["textDocument"]["uri"]])}

    def textDocument_rename(self, params):
        name, new = self.name_at(params), params["newName"]
        if not name:
            raise ValueError("there is nothing to rename here")
        edits = {}
        for uri, line, start, end, text in self.places(name):
            edits.setdefault(uri, []).append({"range": self.range(line, start, end, text), "newText": new})
        return getattr(self, "edit_" + new, getattr(self, "edit_" + self.options["rename"]))(edits, name, new)

    def edit_changes(self, edits, name, new):
        return {"changes": edits}

    def edit_versions(self, edits, name, new):
        return {"changes": {"file:///not/used": []}, "documentChanges": [
            {"textDocument": {"uri": uri, "version": self.versions.get(uri)}, "edits": edits[uri][::-1]}
            for uri in edits]}

    def edit_whole(self, edits, name, new):
        texts = dict(self.files())
        return {"changes": {uri: [{"range": {"start": {"line": 0, "character": 0},
                                             "end": {"line": len(lines_of(texts[uri])), "character": 0}},
                                   "newText": re.sub(r"\b%s\b" % name, new, "\n".join(lines_of(texts[uri])))}]
                            for uri in edits}}

    def edit_overlap(self, edits, name, new):
        return {"changes": {uri: edits[uri] + edits[uri][:1] for uri in edits}}

    def edit_shifted(self, edits, name, new):
        for each in edits.values():
            for edit in each:
                line = edit["range"]["end"]["line"] + 1
                edit["range"]["start"]["line"] = edit["range"]["end"]["line"] = line
        return {"changes": edits}

    def edit_outside(self, edits, name, new):
        outside = "file://" + quote(os.path.join(os.path.dirname(self.root), "outside.toy"))
        return {"changes": dict(edits, **{outside: next(iter(edits.values()))})}

    def edit_none(self, edits, name, new):
        return None

    def edit_move(self, edits, name, new):
        """Renames the file that bears the name, as servers do that have classes in files."""
        at = "file://" + quote(os.path.join(self.root, name + ".toy"))
        return {"documentChanges": [{"textDocument": {"uri": uri, "version": None}, "edits": edits[uri]}
                                    for uri in edits] + [
            {"kind": "rename", "oldUri": at, "newUri": at + ".new"}]}

    # Files

    def textDocument_didOpen(self, params):
        document = params["textDocument"]
        self.told(document["uri"], document["version"], document["text"])
        if self.options["indexing"] and not self.indexed:
            self.indexed = True
            self.send({"method": "$/progress", "params": {"token": "i",
                                                          "value": {"kind": "begin", "title": "indexing"}}})
            threading.Timer(self.options["indexing"], lambda: self.send(
                {"method": "$/progress", "params": {"token": "i", "value": {"kind": "end"}}})).start()

    def textDocument_didChange(self, params):
        self.told(params["textDocument"]["uri"], params["textDocument"]["version"],
                  params["contentChanges"][0]["text"])

    def textDocument_didClose(self, params):
        uri = params["textDocument"]["uri"]
        del self.texts[uri], self.versions[uri]
        if self.options["clears"]:
            self.published.pop(uri, None)
            self.send({"method": "textDocument/publishDiagnostics",
                       "params": {"uri": uri, "diagnostics": []}})

    def workspace_didChangeWatchedFiles(self, params):
        for change in params["changes"] if self.known else ():
            if change["type"] == 3:
                self.known.pop(change["uri"], None)

    def told(self, uri, version, text):
        self.texts[uri], self.versions[uri] = text, version
        if self.options["publishes"]:
            threading.Timer(self.options["late"], self.publish, (uri, version, text)).start()

    def publish(self, uri, version, text):
        problems = self.problems(text)
        if self.options["only_news"] and self.published.get(uri) == problems:
            return
        self.published[uri] = problems
        params = {"uri": uri.replace("+", "%2B"), "diagnostics": problems}
        if self.options["versions"]:
            params["version"] = version
        self.send({"method": "textDocument/publishDiagnostics", "params": params})

    def problems(self, text):
        """`bad` is an error wherever a file of the root defines no name of that kind, `poor` a warning."""
        allowed = any(re.search(r"^def bad$", other, re.M) for _, other in self.files())
        return [{"range": self.range(line, match.start(), match.end(), row),
                 "severity": 1 if match.group() == "bad" else 2, "message": match.group() + "\nword",
                 "code": 7}
                for line, row in enumerate(lines_of(text)) for match in WORD.finditer(row)
                if match.group() == "poor" or (match.group() == "bad" and not allowed)]

    def files(self):
        if self.known is not None:
            yield from sorted(dict(self.known, **self.texts).items())
            return
        for folder, folders, names in os.walk(self.root):
            folders.sort()
            for name in sorted(names):
                if name.endswith(".toy"):
                    path = os.path.join(folder, name)
                    uri = "file://" + quote(path)
                    with open(path, encoding="utf-8", newline="", errors="replace") as file:
                        yield uri, self.texts.get(uri, file.read())

    def places(self, name):
        for uri, text in self.files():
            for line, row in enumerate(lines_of(text)):
                for match in WORD.finditer("" if row.startswith("#") else row):
                    if match.group() == name:
                        yield uri, line, match.start(), match.end(), row

    def name_at(self, params):
        row = lines_of(self.texts[params["textDocument"]["uri"]])[params["position"]["line"]]
        at = params["position"]["character"]
        for match in WORD.finditer("" if row.startswith("#") else row):
            if self.units(row, match.start()) <= at <= self.units(row, match.end()):
                return match.group()
        return None

    def range(self, line, start, end, row):
        return {which: {"line": line, "character": self.units(row, column)} for which,
                column in (("start", start), ("end", end))}

    def units(self, row, column):
        return column if self.options["encoding"] == "utf-32" else len(row[:column].encode("utf-16-le")) // 2


def lines_of(text):
    return re.split("\r\n|\n|\r", text)


if __name__ == "__main__":
    server = Server(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
    if server.options["stderr"]:
        print(server.options["stderr"], file=sys.stderr, flush=True)
    server.run()
