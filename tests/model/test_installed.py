"""What is installed here, with which models, and the one command that is told."""

from __future__ import annotations

import os
import unittest

from mm.model import installed
from tests import support

FETCHES = "llama-server -hf Qwen/Qwen3-8B-GGUF -c 32768 --jinja"
SERVES = "OLLAMA_CONTEXT_LENGTH=32768 ollama serve"


class Machine:
    """A home folder with files, and programs on its PATH."""

    def __init__(self, *programs: str, files=()):
        self.home, self.path = support.scratch_folder(), support.scratch_folder()
        for program in programs:
            self.add(os.path.join(self.path, program), 0o755)
        for file in files:
            self.add(os.path.join(self.home, file))

    def add(self, path: str, mode: int = 0o644) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            os.chmod(file.name, mode)

    def ways(self, platform="linux", **more) -> list:
        environ = dict(HOME=self.home, PATH=self.path, **more)
        return installed.ways(environ, support.scratch_folder(), platform)

    def commands(self, **more) -> list:
        return [way.command.replace(self.home, "~") for way in self.ways(**more)]


CACHED = ".cache/llama.cpp/Qwen_Qwen3-8B-GGUF_q4.gguf"
MANIFEST = ".ollama/models/manifests/registry.ollama.ai/library/qwen3/8b"

# (the programs, the files, the commands)
INSTALLED = [
    (["llama-server"], [], [FETCHES]),
    (["llama-server"], [CACHED], ["llama-server -m ~/%s -c 32768 --jinja" % CACHED]),
    (["llama-server"], [".cache/llama.cpp/mmproj.gguf", ".cache/llama.cpp/nomic-embed.gguf",
                        ".cache/llama.cpp/a.txt"], [FETCHES]),
    (["llama-server"], [".cache/huggingface/hub/models--a--b/snapshots/1/my model.gguf"],
     ["llama-server -m '~/.cache/huggingface/hub/models--a--b/snapshots/1/my model.gguf' -c 32768 --jinja"]),
    (["llama-server"], [".lmstudio/models/a/b/c-00002-of-00002.gguf",
                        ".lmstudio/models/a/b/c-00001-of-00002.gguf"],
     ["llama-server -m ~/.lmstudio/models/a/b/c-00001-of-00002.gguf -c 32768 --jinja"]),
    (["ollama"], [], [SERVES + " (and in another terminal: ollama pull qwen3:8b)"]),
    (["ollama"], [MANIFEST], [SERVES]),
    (["llama-server", "ollama"], [MANIFEST], [SERVES, FETCHES]),
    ([], [".lmstudio/bin/lms", ".lmstudio/models/a/b/c.gguf"], ["lms server start"]),
    (["lms"], [], ["lms get qwen/qwen3-8b && lms server start"]),
    (["vllm"], [], ["vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice --tool-call-parser hermes"]),
    (["docker"], [".docker/cli-plugins/docker-model"], ["docker model pull ai/qwen3"]),
]


class Ways(unittest.TestCase):
    def test_what_is_installed(self):
        for programs, files, commands in INSTALLED:
            with self.subTest(programs, files=files):
                self.assertEqual(commands, Machine(*programs, files=files).commands())

    def test_what_can_be_installed(self):
        cases = [("linux", [], "curl -fsSL https://ollama.com/install.sh | sh && ollama pull qwen3:8b"),
                 ("linux", ["brew"], "brew install llama.cpp && " + FETCHES),
                 ("darwin", [], "get Ollama from https://ollama.com/download, then: ollama pull qwen3:8b"),
                 ("win32", [], "winget install llama.cpp && " + FETCHES),
                 ("linux", ["docker"], "curl -fsSL https://ollama.com/install.sh | sh && ollama pull qwen3:8b")]
        for platform, programs, command in cases:
            with self.subTest(platform, programs=programs):
                self.assertEqual([("", command)], Machine(*programs).ways(platform))

    def test_variables_name_other_folders(self):
        elsewhere = Machine(files=["x.gguf"]).home
        found = Machine("llama-server").commands(LLAMA_CACHE=elsewhere)
        self.assertEqual(["llama-server -m %s/x.gguf -c 32768 --jinja" % elsewhere], found)

    def test_a_folder_without_an_end_is_not_walked(self):
        machine = Machine("llama-server", files=[".cache/llama.cpp/" + "d/" * 9 + "x.gguf"])
        os.symlink(machine.home, os.path.join(machine.home, ".cache", "llama.cpp", "loop"))
        self.assertEqual([FETCHES], machine.commands())


if __name__ == "__main__":
    unittest.main()
