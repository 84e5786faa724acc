"""Refuse a candidate by what the compiler makes of it: spills, scratch, occupancy, an unchanged loop.

A screen before measuring, not the last word: it compiles the file on its own, while the build that is
measured uses the program's own commands and is guarded again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.occupancy.compiled import compiled_occupancy
from rpl_codeobject.comparing.compare import compare_code_objects
from rpl_codeobject.instructions.disassembly import disassemble
from rpl_codeobject.instructions.isa_diff import IsaVerdict, compare_instructions
from rpl_core.errors import RplError
from rpl_llm_unroll.compiling.device_compiler import DeviceCompiler, NotCompiled
from rpl_optimize.build.binary_guards import binary_guards
from rpl_optimize.build.default_build import CLANG, first_installed
from rpl_optimize.interfaces.transformation import GuardVerdict, Screening

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rpl_codeobject.occupancy import CodeOccupancy, LaunchedKernel
    from rpl_codeobject.values import CodeObject
    from rpl_core.model.architecture import Architecture
    from rpl_optimize.interfaces.transformation import KernelSource

#: Without ROCm's headers and device library, for sources that need neither.
_BARE = ("-nogpuinc", "-nogpulib")


class ResourceScreen:
    """Screens candidates of one source against its own baseline, which is compiled once."""

    def __init__(
        self, compiler: DeviceCompiler, baseline: bytes, architecture: Architecture | None = None
    ) -> None:
        self._compiler, self._baseline = _working_compiler(compiler, baseline)
        self._architecture = architecture

    def screen(self, candidate: bytes) -> Screening:
        """Compile ``candidate`` and compare all kernels with the baseline's."""
        if isinstance(self._baseline, NotCompiled):
            return Screening(unavailable=f"the source does not compile on its own: {self._baseline.reason}")
        built = self._compiler.compile(candidate)
        if isinstance(built, NotCompiled):
            return Screening((GuardVerdict("compiles", False, built.reason),))
        diff = compare_code_objects((self._baseline,), (built,), occupancy_of=self._occupancies)
        verdicts = [
            GuardVerdict("compiles", True, f"compiles for {built.architecture}"),
            *binary_guards(diff),
        ]
        return Screening((*verdicts, _loop_changed(self._baseline, built)))

    def _occupancies(self, launches: Sequence[LaunchedKernel]) -> Mapping[LaunchedKernel, CodeOccupancy]:
        return {launched: compiled_occupancy(launched, self._architecture) for launched in launches}


def screen_for(source: KernelSource, architecture: str | None) -> ResourceScreen | str:
    """A screen with the installed compiler for ``architecture``, or why there is none."""
    if architecture is None:
        return "the documents name no device architecture"
    program = first_installed(CLANG)
    if program is None:
        return "no HIP compiler is installed"
    compiler = DeviceCompiler(Path(program), architecture, include=Path(source.path).resolve().parent)
    return ResourceScreen(compiler, source.text, source.architecture)


def _working_compiler(
    compiler: DeviceCompiler, baseline: bytes
) -> tuple[DeviceCompiler, CodeObject | NotCompiled]:
    built = compiler.compile(baseline)
    if isinstance(built, NotCompiled):
        bare = attrs.evolve(compiler, flags=(*compiler.flags, *_BARE))
        second = bare.compile(baseline)
        if not isinstance(second, NotCompiled):
            return bare, second
    return compiler, built


def _loop_changed(before: CodeObject, after: CodeObject) -> GuardVerdict:
    # Template instances share one source kernel, so a change in any of them counts.
    try:
        left, right = disassemble(before), disassemble(after)
    except RplError as error:
        return GuardVerdict("binary-isa", False, f"not comparable: {error.fact}")
    diffs = [compare_instructions(left[name], right[name]) for name in sorted(left.keys() & right.keys())]
    changed = next((d for d in diffs if d.verdict is IsaVerdict.LOOPS_CHANGED), None)
    if changed is not None:
        return GuardVerdict("binary-isa", True, changed.sentence())
    return GuardVerdict("binary-isa", False, "no loop of any kernel changed in the machine code")
