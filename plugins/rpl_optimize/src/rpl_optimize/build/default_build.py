"""Build without any instruction: one source, the HIP compiler that is installed."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_codeobject.reading.read import read_code_objects
from rpl_core.errors import MissingError, RplError, UsageError
from rpl_core.process.storage import make_directory
from rpl_core.values import frozen
from rpl_optimize.build.build_run import BuildRun, StepFailedError, TextBuilder
from rpl_optimize.build.environment import build_environment
from rpl_optimize.build.host_comparison import NO_HOST_CODE
from rpl_optimize.build.objects import is_device_code, is_library
from rpl_optimize.build.separate_compile import SeparateCompile, unit_id
from rpl_optimize.build.template_build import is_header
from rpl_optimize.interfaces.builder import Builder, BuildSystem
from rpl_optimize.running.program_word import Program, find_program

if TYPE_CHECKING:
    from rpl_optimize.interfaces.builder import Build, BuildFailure, BuildRequest

#: In order of preference: the user's ROCm first, then a plain clang.
HIPCC = ("hipcc", "/opt/rocm/bin/hipcc")
CLANG = ("amdclang++", "/opt/rocm/llvm/bin/clang++", "clang++-22", "clang++")


class CompilerBuilds(BuildSystem):
    """hipcc, else clang; for the architectures of the user's program, else ``request.architecture``."""

    name = "compiler"
    summary = "The HIP compiler that is installed: one command for one file."
    priority = 0

    def builder(self, request: BuildRequest) -> Builder | None:
        return self.one_file(request)

    def one_file(self, request: BuildRequest) -> OneFileBuilder:
        """Raises ``UsageError`` for a header, ``MissingError`` without a compiler."""
        if is_header(request.source):
            raise UsageError(
                f"{request.source.name} is a header, so no single command builds it",
                next_step="give the build of the whole program: --build 'make app', or "
                "--compile-database FILE",
            )
        program = find_program(request.command, request.binary, request.place)
        architectures = offload_architectures(program.path, request.architecture)
        return OneFileBuilder(
            compiler=_compiler(architectures),
            targets=tuple(f"--offload-arch={name}" for name in architectures),
            link_flags=request.link_flags,
            command=request.command,
            source=request.source,
            program=program,
            place=request.place,
            time_limit_s=request.time_limit_s,
            only_device=program.path.is_file() and is_device_code(program.path),
        )


@frozen
class Compiler:
    """``compiling`` and ``linking`` are what makes it compile and link HIP."""

    program: str
    compiling: tuple[str, ...] = ()
    linking: tuple[str, ...] = ()


@frozen
class OneFileBuilder(TextBuilder):
    """Compiles the one source in two steps and links it, in ``place``, the user's working directory."""

    compiler: Compiler
    targets: tuple[str, ...]
    link_flags: tuple[str, ...]
    command: tuple[str, ...]
    source: Path
    program: Program
    place: Path
    time_limit_s: float
    only_device: bool = False  # a file for ``hipModuleLoad``

    @property
    def summary(self) -> str:  # type: ignore[override]
        """The commands that compile and link."""
        compiling = self.compile_command(Path(self.source.name), Path(f"{self.source.stem}.o"))
        linking = self._link(Path(f"{self.source.stem}.o"), Path(self.program.path.name))
        return f"{' '.join(compiling)}; {' '.join(linking)}"

    def _built(self, text: bytes, original: bytes | None, directory: Path) -> Build | BuildFailure:
        with closing(BuildRun(directory, self.time_limit_s, (self.source.parent,))) as run:
            output = run.directory / "bin" / self.program.path.name
            make_directory(output.parent)
            device, host = run.write_both(self.source.name, text, original or text)
            environment = build_environment(run.temporary, self.place)
            compiling = SeparateCompile(self.compile_command, self.place, environment, unit_id(self.source))
            try:
                if self.only_device:
                    run.step(
                        self.compile_command(device, output, "--offload-device-only"), self.place, environment
                    )
                    return run.finished(output, None if original is None else NO_HOST_CODE)
                compiled = compiling.compile(run, device, host, run.directory / f"{self.source.stem}.o")
                run.step(self._link(compiled, output), self.place, environment)
                if not output.is_file():
                    return run.failed("the link ended well, but wrote no program")
                return run.finished(output, None if original is None else compiling.verdict(run, host, text))
            except StepFailedError as error:
                return run.failed(str(error))

    def compile_command(self, source: Path, target: Path, *more: str) -> tuple[str, ...]:
        """Of one file to an object."""
        # Quoted includes only: a header of the user's must not hide one of the system's.
        beside = ("-iquote", str(self.source.parent), *(("-fPIC",) if is_library(self.program.path) else ()))
        own = (*self.compiler.compiling, *more, "-c", str(source), "-o", str(target))
        return (self.compiler.program, "-O3", *self.targets, *beside, *own)

    def _link(self, compiled: Path, output: Path) -> tuple[str, ...]:
        shared = ("-shared",) if is_library(output) else ()
        own = (*self.compiler.linking, *shared, str(compiled), "-o", str(output))
        return (self.compiler.program, "-O3", *self.targets, *own, *self.link_flags)


def offload_architectures(program: Path, architecture: str | None) -> tuple[str, ...]:
    """Target ids for ``--offload-arch``: those of the user's program, of ``architecture`` if it has such."""
    try:
        codes = read_code_objects(program)
    except RplError:  # not built yet, or its code is elsewhere
        codes = ()
    targets = {c.target.partition("--")[2]: c.architecture for c in codes}
    fitting = [name for name, base in targets.items() if name and base == (architecture or base)]
    return tuple(sorted(fitting)) or (() if architecture is None else (architecture,))


def _compiler(architectures: tuple[str, ...]) -> Compiler:
    hipcc, clang = first_installed(HIPCC), first_installed(CLANG)
    if hipcc is not None:
        return Compiler(hipcc)
    if clang is None:
        raise MissingError(
            "no HIP compiler found: neither hipcc nor clang++",
            next_step="install ROCm, put hipcc on PATH, or give your own build with --build",
        )
    if not architectures:
        raise UsageError(
            "there is no hipcc, and clang has to be told the GPU's architecture, which is not known",
            next_step="give your own build with --build 'clang++ ... {source} -o {output}'",
        )
    return Compiler(clang, compiling=("-x", "hip"), linking=("--hip-link",))


def first_installed(names: tuple[str, ...]) -> str | None:
    """The first of these programs that is there."""
    return next((name for name in names if shutil.which(name) is not None), None)
