"""What is installed here that can serve a model, and the one command that starts it; loaded when no server
was found.

Looks at PATH and at the folders in which llama.cpp, LM Studio and Ollama keep their models. Starts nothing.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections import namedtuple

from mm.config import places
from mm.model import known_servers
from mm.wire import programs

# `about`: what is there, "" if something has to be installed first; `command`: what to type.
Way = namedtuple("Way", "about command")

_FETCHING = "llama-server -hf Qwen/Qwen3-8B-GGUF -c 32768 --jinja"
_SERVING_OLLAMA = "OLLAMA_CONTEXT_LENGTH=32768 ollama serve"
_FIRST_OLLAMA = known_servers.FIRST_MODEL["ollama"]

# So much of a folder of models is looked at: its levels, and its entries in all.
_LEVELS, _ENTRIES = 6, 3000
# Files that hold no model that can chat, or not its beginning.
_NOT_A_MODEL = ("mmproj", "embed", "rerank", "-of-")

_DOCKER_PLUGINS = ("/usr/libexec/docker/cli-plugins", "/usr/lib/docker/cli-plugins",
                   "/usr/local/lib/docker/cli-plugins")


def ways(environ=os.environ, folder: str = ".", platform: str = sys.platform) -> list:
    """The Ways to start what is installed, first those with a model; else the one Way to install it."""
    home = places.home(environ) or ""
    found = [way(environ, home, platform) for way in (_llama_cpp, _ollama, _lm_studio)]
    found = [(product, has_model, way) for product, has_model,
             way in found if _is_there(product, folder, environ, home)]
    rest = [product for product in known_servers.PRODUCTS if product.key in ("vllm", "mlx-lm")]
    found += [(product, False, Way("%s is installed" % product.program, product.first)) for product in rest
              if programs.find(product.program, folder, environ)]
    ordered = [way for _, has_model, way in sorted(found, key=lambda each: not each[1])]
    return ordered + _docker(environ, folder, home, platform) or [_installing(environ, folder, platform)]


def _is_there(key: str, folder: str, environ, home: str) -> bool:
    program = known_servers.of_key(key).program
    return bool(programs.find(program, folder, environ)) or \
        key == "lmstudio" and os.path.isfile(os.path.join(home, ".lmstudio", "bin", "lms"))


def _llama_cpp(environ, home: str, platform: str) -> tuple:
    model = _newest(_gguf_folders(environ, home, platform))
    if not model:
        return "llama.cpp", False, Way("llama-server is installed; this fetches a model", _FETCHING)
    command = "llama-server -m %s -c 32768 --jinja" % shlex.quote(model)
    return "llama.cpp", True, Way("llama-server and a model are installed", command)


def _ollama(environ, home: str, _) -> tuple:
    kept = environ.get("OLLAMA_MODELS")
    folders = [kept] if kept else [os.path.join(home, ".ollama", "models"),
                                   "/usr/share/ollama/.ollama/models"]
    for folder in folders:
        models = [path for path in _files(os.path.join(folder, "manifests")) if _can_chat(path)]
        if models:
            name = ":".join(max(models, key=_changed).split(os.sep)[-2:])
            return "ollama", True, Way("ollama and its model %s are installed" % name, _SERVING_OLLAMA)
    command = "%s (and in another terminal: ollama pull %s)" % (_SERVING_OLLAMA, _FIRST_OLLAMA)
    return "ollama", False, Way("ollama is installed", command)


def _lm_studio(environ, home: str, _) -> tuple:
    if _newest(_lm_studio_folders(home)):
        return "lmstudio", True, Way("LM Studio and a model are installed", "lms server start")
    command = "lms get %s && lms server start" % known_servers.FIRST_MODEL["lmstudio"]
    return "lmstudio", False, Way("LM Studio is installed", command)


def _docker(environ, folder: str, home: str, platform: str) -> list:
    """With Docker's plugin for models; Docker alone serves none."""
    plugins = (os.path.join(home, ".docker", "cli-plugins"), *_DOCKER_PLUGINS)
    if not programs.find("docker", folder, environ) or \
            not any(os.path.exists(os.path.join(each, "docker-model")) for each in plugins):
        return []
    pull = "docker model pull " + known_servers.FIRST_MODEL["docker"]
    desktop = platform in ("darwin", "win32")
    return [Way("Docker Model Runner is installed",
                "docker desktop enable model-runner --tcp 12434 && " + pull if desktop else pull)]


def _installing(environ, folder: str, platform: str) -> Way:
    if platform == "win32":
        return Way("", "winget install llama.cpp && " + _FETCHING)
    if programs.find("brew", folder, environ):
        return Way("", "brew install llama.cpp && " + _FETCHING)
    if platform == "darwin":
        return Way("", "get Ollama from https://ollama.com/download, then: ollama pull " + _FIRST_OLLAMA)
    return Way("", "curl -fsSL https://ollama.com/install.sh | sh && ollama pull " + _FIRST_OLLAMA)


def _gguf_folders(environ, home: str, platform: str) -> list:
    caches = os.path.join(home, "Library", "Caches") if platform == "darwin" else environ.get("LOCALAPPDATA",
                                                                                              "") \
        if platform == "win32" else environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    hub = os.path.join(environ.get("HF_HOME") or os.path.join(home, ".cache", "huggingface"), "hub")
    return [environ.get("LLAMA_CACHE") or os.path.join(caches, "llama.cpp"), hub, *_lm_studio_folders(home)]


def _lm_studio_folders(home: str) -> list:
    return [os.path.join(home, ".lmstudio", "models"), os.path.join(home, ".cache", "lm-studio", "models")]


def _newest(folders: list) -> str | None:
    """The model file that came last."""
    files = [path for folder in folders for path in _files(folder) if path.endswith(".gguf")
             and _can_chat(path)]
    return max(files, key=_changed) if files else None


def _can_chat(path: str) -> bool:
    name = os.path.basename(path).lower()
    return "-00001-of-" in name or not any(mark in path.lower() for mark in _NOT_A_MODEL)


def _changed(path: str) -> float:
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0


def _files(folder: str) -> list:
    """The files below a folder, as far as they are looked at."""
    found, level, entries = [], [folder], 0
    for _ in range(_LEVELS):
        deeper = []
        for path in level:
            try:
                listed = sorted(os.scandir(path), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in listed[:_ENTRIES - entries]:
                if entry.is_dir(follow_symlinks=False):
                    deeper.append(entry.path)
                elif entry.is_file():
                    found.append(entry.path)
            entries += len(listed)
        level = deeper if entries < _ENTRIES else []
    return found
