"""Find the source of a program's kernels: by name, debug information or compile database."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from rpl_codeobject.reading.debug_info import kernel_sources, unit_sources
from rpl_codeobject.reading.read import read_code_objects
from rpl_core.errors import RplError, UsageError
from rpl_core.text import printable
from rpl_core.values import frozen
from rpl_optimize.build.compile_database import find_database, read_database
from rpl_optimize.running.program_word import find_program

#: A source written by people; anything longer is not read (chosen).
_MAX_SOURCE_BYTES = 16 << 20
_MAX_SHOWN = 8
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_KERNEL = re.compile(rb"\b__global__\b")
#: Kernels in headers of the system and of ROCm are not the user's to change.
_FOREIGN = (Path("/usr"), Path("/opt"))
_NEXT_STEP = "name it with --source FILE, build with -g, or give --compile-database FILE"


@frozen
class FoundSource:
    """``how`` says where the path comes from, for people."""

    path: Path
    how: str


def find_source(
    command: Sequence[str],
    *,
    source: Path | None = None,
    compile_database: Path | None = None,
    binary: Path | None = None,
) -> FoundSource:
    """The one file that defines the kernels of ``command``, absolute.

    In this order: ``source``; debug information of the program's device code, then of its host code; the
    compile database. A file counts when it exists and holds ``__global__`` outside of comments.
    Raises ``UsageError`` that says what was found and what to pass, ``BadDataError`` for a broken database.
    """
    if source is not None:
        if not source.is_file():
            raise UsageError(f"no source file at {source}", next_step="check --source")
        return FoundSource(source.resolve(), "--source")
    program = find_program(command, binary, Path.cwd()).path
    looked: list[str] = []
    for how, named in _from_debug_information(program, looked):
        sources = _defining(named)
        if len(sources) > 1:
            raise _ambiguous(sources, f"{how} of {program.name}")
        if sources:
            return FoundSource(sources[0], f"{how} of {program.name}")
        looked.append(f"{how} of {program.name} names {_shown(named)}")
    return _from_database(compile_database, program, looked)


def defines_kernels(path: Path) -> bool:
    """Whether ``path`` is a regular file of a bearable size with ``__global__`` outside of comments."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_SOURCE_BYTES:
            return False
        return _KERNEL.search(_COMMENT.sub(b" ", path.read_bytes())) is not None
    except (OSError, ValueError):
        return False


def _from_debug_information(program: Path, looked: list[str]) -> Iterable[tuple[str, Sequence[Path]]]:
    try:
        codes = read_code_objects(program)
    except RplError as error:
        looked.append(error.fact)  # a mistyped program must not read like one without debug information
        return
    yield "device debug information", sorted({place.path for place in kernel_sources(codes).values()})
    yield "host debug information", unit_sources(program)


def _from_database(path: Path | None, program: Path, looked: list[str]) -> FoundSource:
    # ``find_database`` looks above a file: the program's place, then the working directory.
    database = path or find_database(program) or find_database(Path.cwd() / program.name)
    if database is None:
        looked.append("no compile_commands.json was found")
        raise _nothing(looked)
    sources = _defining([entry.file for entry in read_database(database)])
    if len(sources) > 1:
        raise _ambiguous(sources, str(database))
    if not sources:
        looked.append(f"no file of {database} defines a kernel")
        raise _nothing(looked)
    return FoundSource(sources[0], str(database))


def _defining(paths: Iterable[Path]) -> list[Path]:
    resolved = sorted({_resolved(path) for path in paths if path.is_absolute()})
    found = [path for path in resolved if defines_kernels(path)]
    own = [path for path in found if not any(path.is_relative_to(place) for place in _FOREIGN)]
    return own or found


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name that no file can have
        return path


def _ambiguous(paths: Sequence[Path], where: str) -> UsageError:
    return UsageError(
        f"several files define kernels: {_shown(paths)}",
        cause=f"all of them are in {where}",
        next_step="name the one to work on with --source FILE",
    )


def _nothing(looked: Sequence[str]) -> UsageError:
    return UsageError(
        "the source of the kernels was not found", cause="; ".join(looked), next_step=_NEXT_STEP
    )


def _shown(paths: Sequence[Path]) -> str:
    if not paths:
        return "no file"
    names = [printable(str(path)) for path in paths[:_MAX_SHOWN]]
    more = f" and {len(paths) - _MAX_SHOWN} more" if len(paths) > _MAX_SHOWN else ""
    return ", ".join(names) + more
