"""Which language servers there are, by language, and which of them a session may use.

Nothing is ever installed. Of a language's programs, the first that mm.wire.programs finds is used. A server
may run code of the project: if the user wants to be asked before anything runs, the folder must be trusted.
"""

from __future__ import annotations

import os
from collections import namedtuple

from mm import log, safe_files, walk
from mm.wire import programs

# `markers` are the files whose folder is the root of a project; `commands` the command lines to try, in
# order; `extensions` maps an extension to the protocol's languageId. If `marked`, the language is only
# there below a marker. `options` go with `initialize`.
Language = namedtuple("Language", "name markers commands extensions marked options")

# What the user can have running: the language's name, the whole command line, the extensions and the
# Language's other values.
Found = namedtuple("Found", "name argv extensions markers marked options")

WAITS = ("the language server %s may run code of this project, so it waits until you trust the folder: "
         "mm --trust")
NOT_ON_PATH = "lsp.%s: %s is not there, so it is not used"

# The look into a folder goes through so many entries, so many levels deep.
ENTRIES, DEPTH = 5000, 6


def _language(name, markers, commands, extensions, marked=False, options=None):
    """`extensions` as ".py=python .pyi=python"; the name itself if there is no languageId."""
    pairs = (each.partition("=") for each in extensions.split())
    return Language(name, tuple(markers.split()), tuple(tuple(command.split()) for command in commands),
                    {extension: identifier or name for extension, _, identifier in pairs}, marked, options)


_SCRIPTS = (".ts=typescript .mts=typescript .cts=typescript .tsx=typescriptreact "
            ".js=javascript .mjs=javascript .cjs=javascript .jsx=javascriptreact")
# Otherwise it answers from one file while it loads the project, and a rename stops at an import: `import { a
# as b }`.
_TYPESCRIPT = {"tsserver": {"useSyntaxServer": "never"},
               "preferences": {"providePrefixAndSuffixTextForRename": False}}

LANGUAGES = (
    _language("python", "pyproject.toml setup.py requirements.txt .git",
              ("basedpyright-langserver --stdio", "pyright-langserver --stdio", "pylsp",
               "jedi-language-server"), ".py .pyi"),
    _language("go", "go.mod", ("gopls",), ".go"),
    _language("rust", "Cargo.toml", ("rust-analyzer",), ".rs"),
    _language("deno", "deno.json deno.jsonc", ("deno lsp",), _SCRIPTS, True, {"enable": True}),
    _language("typescript", "tsconfig.json package.json", ("typescript-language-server --stdio",), _SCRIPTS,
              options=_TYPESCRIPT),
    _language("c", "compile_commands.json .clangd CMakeLists.txt", ("clangd",),
              ".c .h .cc=cpp .cpp=cpp .cxx=cpp .hh=cpp .hpp=cpp .hxx=cpp"),
    _language("java", "pom.xml build.gradle build.gradle.kts", ("jdtls",), ".java"),
    _language("ruby", "Gemfile", ("ruby-lsp", "solargraph stdio"), ".rb"),
    _language("php", "composer.json", ("intelephense --stdio", "phpactor language-server"), ".php"),
    _language("lua", ".luarc.json", ("lua-language-server",), ".lua"),
    _language("zig", "build.zig", ("zls",), ".zig"),
    _language("elixir", "mix.exs", ("elixir-ls",), ".ex .exs"),
    _language("kotlin", "build.gradle.kts build.gradle", ("kotlin-lsp --stdio",), ".kt .kts"),
    _language("csharp", "global.json Directory.Build.props", ("csharp-ls",), ".cs"),
    _language("bash", "", ("bash-language-server start",), ".sh=shellscript .bash=shellscript"),
    _language("swift", "Package.swift", ("sourcekit-lsp",), ".swift"),
)


def here(config, folder: str, environ) -> list:
    """The servers (Found) that can be used in the folder; empty if none of them is for a file in it."""
    if config.lsp is False:
        return []
    for name in missing(config, folder, environ):
        log.line(NOT_ON_PATH % (name, config.lsp[name].argv[0]))
    found = candidates(config.lsp, lambda program: _find(program, config, folder, environ))
    return found if present(found, folder) else []


def candidates(configured: dict, find) -> list:
    """A Found for each language that has a program for which `find(program)` gives a path. The user's own
    entries (entries.LanguageServer by name) come first, each in place of the known language of that name."""
    languages = [_configured(name, entry) for name, entry in configured.items()]
    languages += [language for language in LANGUAGES if language.name not in configured]
    found = []
    for language in languages:
        paths = ((find(program), arguments) for program, *arguments in language.commands)
        argv = next(((path, *arguments) for path, arguments in paths if path), None)
        if argv:
            found.append(Found(language.name, argv, language.extensions, language.markers, language.marked,
                               language.options))
    return found


def _configured(name, entry) -> Language:
    identifiers = {}
    for language in reversed(LANGUAGES):
        identifiers.update(language.extensions)
    extensions = {extension: identifiers.get(extension, name) for extension in entry.extensions}
    markers = next((language.markers for language in LANGUAGES if language.name == name), ())
    return Language(name, markers, (entry.argv,), extensions, False, None)


def missing(config, folder: str, environ) -> list:
    """The names of the configuration's servers whose program is not there or may not be used."""
    return [name for name, entry in (config.lsp or {}).items()
            if _find(entry.argv[0], config, folder, environ) is None]


def _find(program, config, folder, environ):
    path = programs.find(program, folder, environ)
    if path and os.path.dirname(program) and safe_files.is_inside(folder, path):
        return path if config.trusts(folder, environ) else None  # the project's own program
    return path


def waiting(config, folder: str, environ, found) -> str | None:
    """The line about servers that wait until the folder is trusted; None if none do. A server may run code of
    the project."""
    if config.yolo or config.trusts(folder, environ):
        return None
    return WAITS % ", ".join(os.path.basename(each.argv[0]) for each in present(found, folder))


def present(found, folder: str) -> list:
    """Those of the servers that are for a file in the folder."""
    files = first_files(folder, {extension for each in found for extension in each.extensions})
    return [each for each in found if set(each.extensions) & set(files)]


def first_files(folder: str, extensions) -> dict:
    """The extensions that files in `folder` have, each with the first such file, the nearest to the top."""
    found = {}
    for entry in walk.entries(folder, ENTRIES, DEPTH):
        extension = os.path.splitext(entry.name)[1]
        if extension in extensions:
            found.setdefault(extension, entry.path)
    return found


def sources(folder: str, extensions) -> dict:
    """The files in `folder` that have these extensions, each with its state()."""
    found = {}
    for entry in walk.entries(folder, ENTRIES, DEPTH):
        if os.path.splitext(entry.name)[1] in extensions:
            try:
                if entry.is_file(follow_symlinks=False):
                    found[entry.path] = state(entry.stat(follow_symlinks=False))
            except OSError:
                pass  # it has just gone
    return found


def state(status) -> tuple:
    """What differs when a file has changed."""
    return status.st_mtime_ns, status.st_size, status.st_ino


def root_of(path: str, markers, folders) -> str | None:
    """The nearest folder above the file `path` that has a marker: up to the first of `folders`, then
    these.
    """
    folder, above = os.path.dirname(path), folders[0]
    way = []
    while folder != above and os.path.dirname(folder) != folder:
        way.append(folder)
        folder = os.path.dirname(folder)
    for each in (way if folder == above else []) + list(folders):
        if any(os.path.exists(os.path.join(each, marker)) for marker in markers):
            return each
    return None
