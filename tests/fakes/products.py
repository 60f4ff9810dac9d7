"""Model servers as the makes are: a real HTTP server for each, which tells about itself in that make's way.

    with Pages(*ollama(["qwen3:8b", "gemma3"], loaded=["gemma3"])) as server:
        … point mm at server.url …
        server.asked                         the paths, in their order

`pages` maps a path to its answer: a JSON value, a text, or (status, either). A chat completion is answered by
`chat`, a function of the request's body that returns the events of the stream, or (status, JSON value).
"""

from __future__ import annotations

import http.server
import json
import threading

NOT_FOUND = (404, {"error": {"message": "not found"}})
LM_STUDIO_UNKNOWN = (200, {"error": "Unexpected endpoint or method. (GET /props)"})


def calls(body):
    """Calls the first tool as it should be called; without one it counts."""
    tools = body.get("tools")
    if not tools:
        return words(" ".join(map(str, range(1, 41))))(body)
    function = {"name": tools[0]["function"]["name"], "arguments": '{"command": "ls"}'}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    return [_event({"tool_calls": [call]}), _event({}, "tool_calls"), USAGE]


def words(text):
    """Answers in words, whatever the tools."""
    return lambda body: [_event({"content": text}), _event({}, "stop"), USAGE]


def only(model):
    """Answers in words where it is asked for this model, as vLLM does."""
    def chat(body):
        if body["model"] == model:
            return words("I am %s. " % model)(body)
        return 404, {"error": {"message": "The model `%s` does not exist." % body["model"],
                               "type": "NotFoundError", "code": 404}}
    return chat


USAGE = {"choices": [], "usage": {"prompt_tokens": 120, "completion_tokens": 40}}


def _event(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _list(names, owner, **more):
    return {"object": "list", "data": [dict({"id": name, "object": "model", "owned_by": owner}, **more)
                                       for name in names]}


def llama_cpp(models=("m",), window=32768, tools=True):
    """(pages, what is answered to other paths, the Server header) of llama-server."""
    return ({"/v1/models": _list(models, "llamacpp", meta={"n_ctx": window, "n_ctx_train": 131072}),
             "/props": {"default_generation_settings": {"n_ctx": window},
                        "chat_template_caps": {"supports_tools": tools}}},
            NOT_FOUND, "llama.cpp")


def router(models, loaded):
    """llama-server with several models, which it loads when they are asked for."""
    listing = _list(models, "llamacpp")
    for each in listing["data"]:
        each["status"] = {"value": "loaded" if each["id"] in loaded else "unloaded"}
    return {"/v1/models": listing, "/props": {"default_generation_settings": {"n_ctx": 0}}}, NOT_FOUND, "llama.cpp"


def ollama(models=("m",), loaded=(), window=4096):
    listing = _list(models, "library") if models else {"object": "list", "data": None}
    return ({"/v1/models": listing, "/api/tags": {"models": [{"name": name} for name in models]},
             "/api/ps": {"models": [{"name": name, "model": name, "context_length": window}
                                    for name in loaded]}}, NOT_FOUND, "")


def lm_studio(models=("m",), loaded=(), window=8192, old=False):
    native = {"/api/v0/models": {"data": [
        {"id": name, "state": "loaded" if name in loaded else "not-loaded", "loaded_context_length": window}
        for name in models]}}
    if not old:
        native = {"/api/v1/models": {"models": [{"key": name, "max_context_length": 99999,
                                                 "loaded_instances": [
            {"id": name, "config": {"context_length": window}}] if name in loaded else []}
                                                for name in models]}}
    return dict(native, **{"/v1/models": _list(models, "organization_owner")}), LM_STUDIO_UNKNOWN, ""


def docker(models=("m",), window=4096):
    return ({"/engines/v1/models": _list(models, "docker", dmr={"context_window": 32768}),
             "/engines/_configure": [{"Model": name, "Config": {"context-size": window}} for name in models],
             "/api/tags": {"models": []}}, NOT_FOUND, "")


def vllm(models=("m",), window=16384):
    return {"/v1/models": _list(models, "vllm", max_model_len=window)}, NOT_FOUND, "uvicorn"


def llama_cpp_python(models=("m",)):
    return {"/v1/models": _list(models, "me")}, NOT_FOUND, "uvicorn"


class Pages:
    """See the top of this file. `delays`: seconds before the answer, by path."""

    def __init__(self, pages, otherwise=NOT_FOUND, software="", chat=calls, delays=(), port=0):
        self.pages, self.otherwise, self.asked, self.headers, self.bodies = pages, otherwise, [], [], []
        outer, delays = self, dict(delays)
        self._closing = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            server_version, sys_version = software, ""

            def do_GET(self):
                outer.asked.append(self.path)
                outer.headers.append(self.headers)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.path.endswith("/chat/completions"):
                    outer.bodies.append(json.loads(body))
                outer._closing.wait(delays.get(self.path, 0))
                if self.path.endswith("/chat/completions"):
                    self._chat(chat(outer.bodies[-1]))
                else:
                    page = outer.pages.get(self.path)
                    self._send(page if isinstance(page, tuple) else outer.otherwise if page is None
                               else (200, page))

            do_POST = do_GET

            def _chat(self, answer):
                if isinstance(answer, tuple):
                    self._send(answer)
                    return
                events = "".join("data: %s\n\n" % json.dumps(event) for event in answer) + "data: [DONE]\n\n"
                self._send((200, events), "text/event-stream")

            def _send(self, answer, content_type="application/json"):
                status, page = answer
                body = (page if isinstance(page, str) else json.dumps(page)).encode()
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.handle_error = lambda *_: None  # the client hung up
        self.port = self._server.server_address[1]
        self.root = "http://127.0.0.1:%d" % self.port
        path = "/engines/v1" if "/engines/v1/models" in pages else "/v1"
        self.url = self.root + path
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
