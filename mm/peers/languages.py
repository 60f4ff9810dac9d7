"""Which language servers there are, by language, and which of them can be used in a folder.

Nothing is ever installed, and only programs that mm.wire.programs finds are used: the first of a language's
that is there. The look into a folder is bounded, and takes some milliseconds.
"""

from __future__ import annotations

import os
from collections import namedtuple

from mm import walk

# `markers` are the files whose folder is the root of a project; `commands` the command lines to try, in
# order; `extensions` maps an extension to the protocol's languageId. If `marked`, the language is only
# there below a marker. `options` go with `initialize`.
Language = namedtuple("Language", "name markers commands extensions marked options")

# What the user can have running: the language's name, the whole command line, the extensions and the
# Language's other values.
Found = namedtuple("Found", "name argv extensions markers marked options")

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


def candidates(configured, find) -> list:
    """All that could be used on this machine, the user's own entries first. Pure but for `find(program)` ->
    path or None.

    `configured` maps a language to an entry with argv and extensions (mm.config.entries.LanguageServer); it
    takes the place of a known language of that name.
    """
    known = {language.name: language for language in LANGUAGES}
    identifiers = {extension: identifier for language in reversed(LANGUAGES) for extension,
                   identifier in language.extensions.items()}
    found = []
    for name, entry in configured.items():
        markers = known[name].markers if name in known else ()
        extensions = {extension: identifiers.get(extension, name) for extension in entry.extensions}
        found.append((Found(name, entry.argv, extensions, markers, False, None), (entry.argv,)))
    found += [(Found(language.name, None, language.extensions, language.markers, language.marked,
                     language.options),
               language.commands) for language in LANGUAGES if language.name not in configured]
    usable = []
    for one, commands in found:
        argv = _first(commands, find)
        if argv:
            usable.append(one._replace(argv=argv))
    return usable


def _first(commands, find):
    for command in commands:
        program = find(command[0])
        if program:
            return (program,) + tuple(command[1:])
    return None


def present(folder: str, extensions) -> dict:
    """The extensions that files in `folder` have, each with the first such file, those nearest to the top
    first.
    """
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
    """The nearest folder above the file `path` that has a marker: up to the first of `folders`, then these
    (its parents, too).
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
