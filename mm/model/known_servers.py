"""The makes of model server that people run, and the commands that start and mend each of them (pure)."""

from __future__ import annotations

import re
import urllib.parse
from collections import namedtuple

# `url`: where it listens unless told otherwise. `start`: the shortest command that starts one. `larger_window`: the command
# that gives the model `<model>` a larger window, None where the window is the model's own. `pull`: the command that fetches
# the model `%s`, None where the server is started with its model. `tools`: what to do where it says that tools are not
# supported. `program`: what is looked for on the PATH, None where it is a module of some Python. `first`: the way from nothing
# to a model that calls tools in a window for agents; None where that is not to be had.
Product = namedtuple("Product", "key title url start larger_window pull tools program first")

# The model that newcomers are told to take: one for tools, of a size that most machines can bear.
FIRST_MODEL = {"ollama": "qwen3:8b", "lmstudio": "qwen/qwen3-8b", "docker": "ai/qwen3"}

# The window in the commands, in tokens: what agents need, and what most machines can bear.
GOOD_WINDOW = 32768

# In the order in which they are looked for.
PRODUCTS = (
    Product("llama.cpp", "llama.cpp", "http://127.0.0.1:8080/v1", "llama-server -hf Qwen/Qwen3-8B-GGUF",
         "llama-server -c 32768", None, "restart llama-server with --jinja",
         "llama-server", "llama-server -hf Qwen/Qwen3-8B-GGUF -c 32768 --jinja (fetches the model; -m FILE for one that is here)"),
    Product("ollama", "Ollama", "http://127.0.0.1:11434/v1", "ollama serve",
         "OLLAMA_CONTEXT_LENGTH=32768 ollama serve", "ollama pull %s", 'pick a model with "tools" in ollama show',
         "ollama", "OLLAMA_CONTEXT_LENGTH=32768 ollama serve, and beside it ollama pull qwen3:8b"),
    Product("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1", "lms server start",
         "lms unload --all; lms load <model> --context-length 32768", "lms get %s",
         "load a model that LM Studio marks as trained for tool use",
         "lms", "lms server start; lms get qwen/qwen3-8b; lms load qwen/qwen3-8b --context-length 32768"),
    Product("docker", "Docker Model Runner", "http://127.0.0.1:12434/engines/v1", "docker desktop enable model-runner --tcp 12434",
         "docker model configure --context-size 32768 <model>", "docker model pull %s", "pick a model whose template knows tools",
         "docker", "docker desktop enable model-runner --tcp 12434 (without Docker Desktop: install docker-model-plugin); docker model "
         "pull ai/qwen3; docker model configure --context-size 32768 ai/qwen3"),
    Product("vllm", "vLLM", "http://127.0.0.1:8000/v1", "vllm serve <model>",
         "vllm serve <model> --max-model-len 32768", None,
         "restart vllm serve with --enable-auto-tool-choice --tool-call-parser <parser>",
         "vllm", "vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice --tool-call-parser hermes"),
    Product("sglang", "SGLang", "http://127.0.0.1:30000/v1", "python3 -m sglang.launch_server --model-path <model>",
         "python3 -m sglang.launch_server --model-path <model> --context-length 32768", None,
         "restart sglang.launch_server with --tool-call-parser <parser>",
         None, "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tool-call-parser qwen25"),
    Product("mlx-lm", "mlx-lm", "http://127.0.0.1:8080/v1", "mlx_lm.server --model <model>",
         None, None, "restart mlx_lm.server with a model whose template knows tools",
         "mlx_lm.server", "mlx_lm.server --model mlx-community/Qwen3-8B-4bit --max-tokens 8192"),
    Product("llama-cpp-python", "llama-cpp-python", "http://127.0.0.1:8000/v1", "python3 -m llama_cpp.server --model <file>.gguf",
         "python3 -m llama_cpp.server --n_ctx 32768", None, "use llama-server: llama_cpp.server streams no tool calls",
         None, None),
)

_BY_KEY = {product.key: product for product in PRODUCTS}

# Two products share a port: the one that comes first is the likelier one.
_BY_PORT = {urllib.parse.urlsplit(product.url).port: product for product in reversed(PRODUCTS)}

# A model's name that can stand in a command as it is.
_PLAIN_NAME = re.compile(r"[\w@:./+][\w@:./+-]*", re.ASCII)

# What each writes into `owned_by` of its models.
_OWNERS = {"llamacpp": "llama.cpp", "library": "ollama", "organization_owner": "lmstudio", "docker": "docker", "vllm": "vllm",
           "sglang": "sglang", "me": "llama-cpp-python"}


def of_key(key: str | None):
    """The Product of that key, or None."""
    return _BY_KEY.get(key)


def with_model(command: str, name) -> str:
    """The command with the model's name in place of `<model>`, if that can stand in a command as it is."""
    return command.replace("<model>", name) if name and _PLAIN_NAME.fullmatch(name) else command


def larger_window(product: Product | None, model=None, window: int = 0) -> list:
    """The commands that give `model` a larger window than `window`: that of the product, the most common ones if it is
    unknown, none if the window is the model's own."""
    larger = GOOD_WINDOW
    while larger <= window:
        larger *= 2
    commands = [product.larger_window] if product else [each.larger_window for each in PRODUCTS[:3]]
    return [with_model(command, model).replace(str(GOOD_WINDOW), str(larger)) for command in commands if command]


def alone_at(key: str | None):
    """The Product of that key where no other one shares its usual port, or None."""
    product = _BY_KEY.get(key)
    return product if product and sum(each.url == product.url for each in PRODUCTS) == 1 else None


def of_url(url: str):
    """The Product whose default address or path this is, or None."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if "/engines/" in parts.path + "/" or parts.hostname == "model-runner.docker.internal":
        return _BY_KEY["docker"]
    return _BY_PORT.get(port)


def of_models(listing, server_header: str = ""):
    """The Product that answers /v1/models with this JSON value and that `Server` header, or None."""
    if server_header.lower().startswith("llama.cpp"):
        return _BY_KEY["llama.cpp"]
    models = listing.get("data") if isinstance(listing, dict) else None
    for model in models if isinstance(models, list) else ():
        if isinstance(model, dict):
            product = _of_model(str(model.get("owned_by") or ""), str(model.get("id") or ""))
            if product:
                return product
    return None


def _of_model(owner: str, name: str):
    if owner in _OWNERS:
        return _BY_KEY[_OWNERS[owner]]
    if owner and f"{owner}/" in name and ":" in name:  # Ollama's namespace, in a name with its tag
        return _BY_KEY["ollama"]
    return _BY_KEY["mlx-lm"] if not owner and name.startswith("mlx-community/") else None
