"""A compile database: which compiler and options each source has, and commands to compile and link anew."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from rpl_codeobject.reading.elf_file import guarded, is_device_elf, open_elf
from rpl_codeobject.reading.read import BUNDLE_MAGIC, COMPRESSED_MAGIC, ELF_MAGIC
from rpl_core.errors import BadDataError, MissingError
from rpl_core.files import parse_json, read_regular
from rpl_core.values import frozen
from rpl_optimize.build.build_run import StepFailedError

# Reading ``compile_commands.json``.

NAME = "compile_commands.json"
_PLACES = (Path(), Path("build"))
#: Databases of large projects reach some tens of megabytes.
_MAX_BYTES = 256 << 20
#: They start a compiler; the link has no use for them.
_LAUNCHERS = frozenset(("ccache", "sccache", "distcc", "icecc"))
#: CMake compiles what belongs to target ``app`` into ``CMakeFiles/app.dir/``.
_CMAKE_TARGET = re.compile(r"(?:^|/)CMakeFiles/([^/]+)\.dir/")


@frozen
class Entry:
    """How one file is compiled. Paths are absolute; ``target`` is the one of CMake, if the entry shows it."""

    file: Path
    directory: Path
    words: tuple[str, ...]
    target: str | None = None

    @property
    def compiler(self) -> str:
        return self.words[0]


def find_database(source: Path) -> Path | None:
    """The nearest database at or above the source's directory, there or in ``build``."""
    for folder in source.parents:
        for place in _PLACES:
            path = folder / place / NAME
            if path.is_file():
                return path
    return None


def read_database(path: Path) -> tuple[Entry, ...]:
    """All entries in file order; a directory stands for the database in it.

    Raises ``MissingError`` without the file, ``BadDataError`` for what is no compile database.
    """
    path = (path / NAME if path.is_dir() else path).absolute()
    if not path.exists():
        raise MissingError(
            f"no compile database at {path}",
            next_step="make one with `cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON` or `bear -- make`",
        )
    values = parse_json(read_regular(path, _MAX_BYTES), path)
    if not isinstance(values, list):
        raise BadDataError(f"{path}: a compile database is a list, this is a {type(values).__name__}")
    return tuple(_entry(value, f"{path}, entry {number}", path.parent) for number, value in enumerate(values))


def _entry(value: Any, where: str, folder: Path) -> Entry:
    if not isinstance(value, dict):
        raise BadDataError(f"{where}: not an object")
    directory = folder / _text(value, "directory", where)
    words = _without_launcher(_words(value, where))
    if not words:
        raise BadDataError(f"{where}: no command")
    output = value.get("output") if isinstance(value.get("output"), str) else _value_behind(words, "-o")
    target = _CMAKE_TARGET.search(output or "")
    return Entry(
        file=(directory / _text(value, "file", where)).resolve(),
        directory=directory,
        words=words,
        target=None if target is None else target[1],
    )


def _words(value: dict[str, Any], where: str) -> tuple[str, ...]:
    listed = value.get("arguments")
    if isinstance(listed, list) and all(isinstance(word, str) for word in listed):
        return tuple(listed)
    try:
        return tuple(shlex.split(_text(value, "command", where)))
    except ValueError as error:
        raise BadDataError(f"{where}: command can't be split into words: {error}") from None


def _without_launcher(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[1:] if words and Path(words[0]).name in _LAUNCHERS else words


def _value_behind(words: tuple[str, ...], option: str) -> str | None:
    return next((value for word, value in pairwise(words) if word == option), None)


def _text(value: dict[str, Any], key: str, where: str) -> str:
    text = value.get(key)
    if not isinstance(text, str) or not text or "\0" in text:
        raise BadDataError(f"{where}: {key} is {text!r}, expected a text")
    return text


# Objects of a build by compile database: the commands that compile and link them, and which to link.
#
# A compile database lists the objects of all programs of a project.

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


def dependency_command(entry: Entry, rules: Path) -> tuple[str, ...]:
    """Has the entry's compiler write to ``rules`` which files it reads, and nothing else."""
    return (entry.compiler, *_options(entry), "-MM", "-MT", "unit", "-MF", str(rules), str(entry.file))


def is_library(path: Path) -> bool:
    """Whether a built file of this name is loaded, not started: ``libx.so``, ``libx.so.2``."""
    return ".so" in path.suffixes


def is_device_code(path: Path) -> bool:
    """Whether a file holds device code and nothing for the host: a code object, or a bundle of such."""
    with path.open("rb") as file:
        begin = file.read(len(BUNDLE_MAGIC))
    if begin.startswith((BUNDLE_MAGIC, COMPRESSED_MAGIC)):
        return True
    try:
        return begin.startswith(ELF_MAGIC) and is_device_elf(path.read_bytes(), path.name)
    except BadDataError:
        return False


def link_command(
    entry: Entry, objects: Sequence[Path], output: Path, flags: Sequence[str]
) -> tuple[str, ...]:
    """Link ``objects`` with the compiler and the fitting options of ``entry``, then ``flags``."""
    # hipcc says so itself; plain clang has to be told to join the device code of all objects.
    hip = () if Path(entry.compiler).name.startswith("hipcc") else ("--hip-link",)
    hip = (*hip, *(("-shared",) if is_library(output) else ()))
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


@frozen
class CompiledObject:
    path: Path
    entry: Entry


def objects_to_link(
    own: Sequence[CompiledObject], others: Sequence[CompiledObject], program: str
) -> list[Path]:
    """The candidate's objects and all others, without those that hold the ``main`` of another program.

    Where several do and the candidate does not, ``main`` is taken from the candidate's CMake target, else
    from the target named like the program. ``StepFailedError`` when neither decides.
    """
    mains = [other for other in others if defines_main(other.path)]
    has_main = is_library(Path(program)) or any(defines_main(one.path) for one in own)
    kept = [] if has_main else _main(mains, own[0], program)
    linked = (other.path for other in others if other not in mains or other in kept)
    return [*(one.path for one in own), *linked]


def _main(mains: list[CompiledObject], own: CompiledObject, program: str) -> list[CompiledObject]:
    if len(mains) <= 1:
        return mains
    for target in (own.entry.target, program):
        fitting = [main for main in mains if target is not None and main.entry.target == target]
        if len(fitting) == 1:
            return fitting
    names = ", ".join(main.entry.file.name for main in mains[:5])
    raise StepFailedError(
        f"the compile database holds several programs ({names}) and does not say which one it is: "
        "give the program's own build with --build"
    )


def defines_main(path: Path) -> bool:
    """Whether an object defines ``main``; false for what is no ELF (bitcode of a link-time optimization)."""
    data = path.read_bytes()
    if not data.startswith(ELF_MAGIC):
        return False

    def look() -> bool:
        table = open_elf(data).get_section_by_name(".symtab")
        found = () if table is None else (table.get_symbol_by_name("main") or ())
        return any(symbol["st_shndx"] != "SHN_UNDEF" for symbol in found)

    try:
        return guarded(look, path.name)
    except BadDataError as error:
        raise StepFailedError(f"the compiler wrote an object that can't be read: {error.fact}") from None
