"""Build without any instruction: one source, the HIP compiler that is installed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from rpl_codeobject.reading.read import read_code_objects
from rpl_core.errors import MissingError, RplError, UsageError
from rpl_optimize.build.program_word import find_program
from rpl_optimize.build.template_build import OUTPUT, SOURCE, TemplateBuilder, is_header
from rpl_optimize.interfaces.builder import Builder, BuildSystem

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_optimize.build.program_word import Program
    from rpl_optimize.interfaces.builder import BuildRequest

_HIPCC = ("hipcc", "/opt/rocm/bin/hipcc")
_CLANG = ("amdclang++", "/opt/rocm/llvm/bin/clang++", "clang++-22", "clang++")


class CompilerBuilds(BuildSystem):
    """hipcc, else clang; for the architectures of the user's program, else ``request.architecture``."""

    name = "compiler"
    summary = "The HIP compiler that is installed: one command for one file."
    priority = 0

    def builder(self, request: BuildRequest) -> Builder | None:
        if is_header(request.source):
            raise UsageError(
                f"{request.source.name} is a header, so no single command builds it",
                next_step="give the build of the whole program: --build 'make app', or "
                "--compile-database FILE",
            )
        program = find_program(request.command, request.binary, request.place)
        words = _compiler_words(request, program)
        return TemplateBuilder(
            summary=" ".join(words),
            words=words,
            command=request.command,
            source=request.source,
            program=program,
            place=request.place,
            time_limit_s=request.time_limit_s,
            search_beside=False,
        )


def offload_architectures(program: Path, architecture: str | None) -> tuple[str, ...]:
    """Target ids for ``--offload-arch``: those of the user's program, of ``architecture`` if it has such."""
    try:
        codes = read_code_objects(program)
    except RplError:  # not built yet, or its code is elsewhere
        codes = ()
    targets = {c.target.partition("--")[2]: c.architecture for c in codes}
    fitting = [name for name, base in targets.items() if name and base == (architecture or base)]
    return tuple(sorted(fitting)) or (() if architecture is None else (architecture,))


def _compiler_words(request: BuildRequest, program: Program) -> tuple[str, ...]:
    architectures = offload_architectures(program.path, request.architecture)
    targets = tuple(f"--offload-arch={name}" for name in architectures)
    # Quoted includes only: a header of the user's must not hide one of the system's.
    beside = ("-iquote", str(request.source.parent))
    hipcc, clang = _first(_HIPCC), _first(_CLANG)
    if hipcc is not None:
        return (hipcc, "-O3", *targets, *beside, SOURCE, "-o", OUTPUT, *request.link_flags)
    if clang is None:
        raise MissingError(
            "no HIP compiler found: neither hipcc nor clang++",
            next_step="install ROCm, put hipcc on PATH, or give your own build with --build",
        )
    if not targets:
        raise UsageError(
            "there is no hipcc, and clang has to be told the GPU's architecture, which is not known",
            next_step="give your own build with --build 'clang++ ... {source} -o {output}'",
        )
    return (
        *(clang, "-O3", *targets, *beside, "-x", "hip", SOURCE, "-x", "none"),
        *("--hip-link", "-o", OUTPUT, *request.link_flags),
    )


def _first(names: tuple[str, ...]) -> str | None:
    return next((name for name in names if shutil.which(name) is not None), None)
