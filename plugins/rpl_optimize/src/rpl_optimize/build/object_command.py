"""Command lines from an entry of a compile database: compile to an object of ours, link such objects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rpl_optimize.build.compile_database import Entry

#: Options that write files besides the object (dependency files, temporaries, diagnostics).
_WRITING = frozenset(("-M", "-MM", "-MD", "-MMD", "-MP", "-MG", "-MV", "-c", "--compile", "--"))
_WRITING_WITH_VALUE = frozenset(
    ("-o", "--output", "-MF", "-MT", "-MQ", "-MJ", "--serialize-diagnostics", "-serialize-diagnostics")
)
_WRITING_JOINED = ("-MF", "-MT", "-MQ", "-MJ", "-Wp,-M", "-save-temps", "--save-temps", "--output=")
#: Options of a compilation that its link needs too (clang's command line reference).
_LINKED = (
    *("--offload-arch=", "--amdgpu-target=", "--offload-compress", "--no-offload-compress", "-fgpu-rdc"),
    *("-fno-gpu-rdc", "--rocm-path=", "--hip-path=", "--rocm-device-lib-path=", "-nogpulib", "-O"),
    *("--sysroot=", "--target=", "--gcc-toolchain=", "--gcc-install-dir=", "-m32", "-m64", "-stdlib="),
    *("-pthread", "-fopenmp", "-fsanitize", "-flto", "-fprofile", "--coverage", "-fuse-ld="),
)
_LINKED_WITH_VALUE = frozenset(("-target", "--sysroot", "-isysroot"))


def compile_command(entry: Entry, source: Path, output: Path, beside: Path | None = None) -> tuple[str, ...]:
    """The entry's command for ``source`` in place of its file; nothing but ``output`` is written.

    Quoted includes find headers in ``beside``. ``BadDataError`` when the entry does not name its file.
    """
    options = tuple(_options(entry))
    if len(options) == len(tuple(_kept(entry.words[1:]))):
        raise BadDataError(f"the compile database's command for {entry.file} does not name that file")
    includes = () if beside is None else ("-iquote", str(beside))
    return (entry.compiler, *options, *includes, "-c", str(source), "-o", str(output))


def link_command(
    entry: Entry, objects: Sequence[Path], output: Path, flags: Sequence[str]
) -> tuple[str, ...]:
    """Link ``objects`` with the compiler and the fitting options of ``entry``, then ``flags``."""
    # hipcc says so itself; plain clang has to be told to join the device code of all objects.
    hip = () if Path(entry.compiler).name.startswith("hipcc") else ("--hip-link",)
    files = tuple(map(str, objects))
    return (entry.compiler, *_link_options(entry), *hip, *files, "-o", str(output), *flags)


def _options(entry: Entry) -> Iterator[str]:
    for word in _kept(entry.words[1:]):
        if word.startswith("-") or (entry.directory / word).resolve() != entry.file:
            yield word


def _kept(words: Sequence[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word in _WRITING_WITH_VALUE:
            next(rest, None)
        elif word not in _WRITING and not word.startswith(_WRITING_JOINED) and not _is_joined_output(word):
            yield word


def _is_joined_output(word: str) -> bool:
    return word.startswith("-o") and not word.startswith(("-obj", "-object"))


def _link_options(entry: Entry) -> Iterator[str]:
    rest = iter(entry.words[1:])
    for word in rest:
        if word in _LINKED_WITH_VALUE:
            yield from (word, next(rest, ""))
        elif word.startswith(_LINKED):
            yield word
