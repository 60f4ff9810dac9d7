"""The model servers that people run, how each is recognised, and the commands for each (pure)."""

from __future__ import annotations

import re
from collections import namedtuple

from mm import urls

# One of them. In the commands `<model>` stands for the model's name.
#   url            where it listens unless told otherwise
#   start          the shortest command that starts it
#   first          from nothing to a model that calls tools, with a window for agents; None if there is no
# such way
#   program        the program on PATH that shows that it is installed; None for a Python module
#   larger_window  gives the model a larger window; None if the window is the model's own
#   pull           fetches the model; None if the server is started with its model
#   tools          what to do if it says that tools are not supported
Product = namedtuple("Product", "key title url start first program larger_window pull tools")

# The model that newcomers are advised to take: trained for tools, of a size that most machines can run.
FIRST_MODEL = {"ollama": "qwen3:8b", "lmstudio": "qwen/qwen3-8b", "docker": "ai/qwen3"}

# The window in the commands, in tokens: enough for an agent, and not too much for most machines.
GOOD_WINDOW = 32768

# In the order in which they are looked for.
PRODUCTS = (
    Product(
        key="llama.cpp", title="llama.cpp", url="http://127.0.0.1:8080/v1", program="llama-server",
        start="llama-server -hf Qwen/Qwen3-8B-GGUF",
        first="llama-server -hf Qwen/Qwen3-8B-GGUF -c 32768 --jinja (fetches the model; -m FILE for one that "
              "is here)",
        larger_window="llama-server -c 32768", pull=None,
        tools="restart llama-server with --jinja"),
    Product(
        key="ollama", title="Ollama", url="http://127.0.0.1:11434/v1", program="ollama",
        start="ollama serve",
        first="OLLAMA_CONTEXT_LENGTH=32768 ollama serve, and in another terminal ollama pull qwen3:8b",
        larger_window="OLLAMA_CONTEXT_LENGTH=32768 ollama serve", pull="ollama pull <model>",
        tools='pick a model with "tools" in ollama show'),
    Product(
        key="lmstudio", title="LM Studio", url="http://127.0.0.1:1234/v1", program="lms",
        start="lms server start",
        first="lms server start; lms get qwen/qwen3-8b; lms load qwen/qwen3-8b --context-length 32768",
        larger_window="lms unload --all; lms load <model> --context-length 32768", pull="lms get <model>",
        tools="load a model that LM Studio marks as trained for tool use"),
    Product(
        key="docker", title="Docker Model Runner", url="http://127.0.0.1:12434/engines/v1", program="docker",
        start="docker desktop enable model-runner --tcp 12434",
        first="docker desktop enable model-runner --tcp 12434 (without Docker Desktop: install "
              "docker-model-plugin); "
              "docker model pull ai/qwen3; docker model configure --context-size 32768 ai/qwen3",
        larger_window="docker model configure --context-size 32768 <model>", pull="docker model pull <model>",
        tools="pick a model whose template knows tools"),
    Product(
        key="vllm", title="vLLM", url="http://127.0.0.1:8000/v1", program="vllm",
        start="vllm serve <model>",
        first="vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice --tool-call-parser hermes",
        larger_window="vllm serve <model> --max-model-len 32768", pull=None,
        tools="restart vllm serve with --enable-auto-tool-choice --tool-call-parser <parser>"),
    Product(
        key="sglang", title="SGLang", url="http://127.0.0.1:30000/v1", program=None,
        start="python3 -m sglang.launch_server --model-path <model>",
        first="python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tool-call-parser qwen25",
        larger_window="python3 -m sglang.launch_server --model-path <model> --context-length 32768",
        pull=None, tools="restart sglang.launch_server with --tool-call-parser <parser>"),
    Product(
        key="mlx-lm", title="mlx-lm", url="http://127.0.0.1:8080/v1", program="mlx_lm.server",
        start="mlx_lm.server --model <model>",
        first="mlx_lm.server --model mlx-community/Qwen3-8B-4bit --max-tokens 8192",
        larger_window=None, pull=None,
        tools="restart mlx_lm.server with a model whose template knows tools"),
    Product(
        key="llama-cpp-python", title="llama-cpp-python", url="http://127.0.0.1:8000/v1", program=None,
        start="python3 -m llama_cpp.server --model <file>.gguf", first=None,
        larger_window="python3 -m llama_cpp.server --n_ctx 32768", pull=None,
        tools="use llama-server: llama_cpp.server streams no tool calls"),
)

_BY_KEY = {product.key: product for product in PRODUCTS}

# Two products share a port: the first of them is the likelier one.
_BY_PORT = {urls.split(product.url).port: product for product in reversed(PRODUCTS)}

# A model's name that can stand in a command as it is.
_PLAIN_NAME = re.compile(r"[\w@:./+][\w@:./+-]*", re.ASCII)

# What each writes into `owned_by` of its models.
_OWNERS = {"llamacpp": "llama.cpp", "library": "ollama", "organization_owner": "lmstudio", "docker": "docker",
           "vllm": "vllm", "sglang": "sglang", "me": "llama-cpp-python"}


def of_key(key: str | None):
    """The Product of that key, or None."""
    return _BY_KEY.get(key)


def with_model(command: str, name) -> str:
    """The command with the model's name in place of `<model>`, if that can stand in a command as it is."""
    return command.replace("<model>", name) if name and _PLAIN_NAME.fullmatch(name) else command


def larger_window(product: Product | None, model=None, window: int = 0) -> list:
    """The commands that give `model` a larger window than `window` tokens.

    That of the product; the most common ones if it is unknown; none if the window is the model's own.
    """
    larger = GOOD_WINDOW
    while larger <= window:
        larger *= 2
    commands = [product.larger_window] if product else [each.larger_window for each in PRODUCTS[:3]]
    return [with_model(command, model).replace(str(GOOD_WINDOW), str(larger)) for command in commands
            if command]


def alone_at(key: str | None):
    """The Product of that key if no other one shares its usual port, or None."""
    product = _BY_KEY.get(key)
    return product if product and sum(each.url == product.url for each in PRODUCTS) == 1 else None


def of_url(url: str):
    """The Product whose default address or path this is, or None."""
    try:
        parts = urls.split(url)
    except ValueError:
        return None
    if "/engines/" in parts.path + "/" or parts.host == "model-runner.docker.internal":
        return _BY_KEY["docker"]
    return _BY_PORT.get(parts.port)


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
