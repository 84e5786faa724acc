"""Refuse a candidate by what the compiler makes of it: spills, scratch, occupancy, an unchanged loop.

A screen before measuring, not the last word: it compiles the one file for the device, by the options of the
build where they are known, while the build that is measured is guarded again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import attrs

from rpl_codeobject.comparing import OCCUPANCY, AbiDiff, Severity, compare_code_objects
from rpl_codeobject.disassembly import IsaVerdict, compare_instructions, disassemble
from rpl_codeobject.kernel_code import CodeObject
from rpl_codeobject.kernel_names import is_instance
from rpl_codeobject.occupancy import LaunchAssumption, compiled_occupancy
from rpl_codeobject.reading import code_objects_from
from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.model.device import Architecture
from rpl_core.values import frozen
from rpl_optimize.build.build_run import build_environment
from rpl_optimize.build.systems import CLANG, first_installed
from rpl_optimize.interfaces.source_reading import SourceReading
from rpl_optimize.interfaces.transformation import EditCandidate, GuardVerdict, KernelSource, Screening
from rpl_optimize.loop.binary_stage import binary_guards
from rpl_optimize.running.sandbox import Reach, run_confined
from rpl_optimize.transform import apply_edits

#: Without ROCm's headers and device library, for sources that need neither.
_BARE = ("-nogpuinc", "-nogpulib")
_TIME_LIMIT_S = 120.0


class ResourceScreen:
    """Screens candidates of one source against its own baseline, which is compiled once."""

    def __init__(self, compiler: Compiles, baseline: bytes, architecture: Architecture | None = None) -> None:
        self._compiler, self._baseline = _working_compiler(compiler, baseline)
        self._architecture = architecture

    def waves(self, kernel: str) -> int | None:
        """How many waves of ``kernel`` fit a SIMD as the source stands: the fewest of its instances."""
        if isinstance(self._baseline, NotCompiled):
            return None
        built = self._baseline
        launches = [
            LaunchAssumption().of(one, built.architecture)
            for one in built.kernels
            if is_instance(one.symbol, kernel)
        ]
        counts = [compiled_occupancy(one, self._architecture).waves_per_simd for one in launches]
        return min((count for count in counts if count is not None), default=None)

    def screen(self, candidate: bytes, *, for_waves: bool = False) -> Screening:
        """Compile ``candidate`` and compare all kernels with the baseline's.

        It has to change a loop of the machine code, or, ``for_waves``, to let more waves run at once.
        """
        if isinstance(self._baseline, NotCompiled):
            return Screening(unavailable=f"the source does not compile on its own: {self._baseline.reason}")
        built = self._compiler.compile(candidate)
        if isinstance(built, NotCompiled):
            return Screening((GuardVerdict("compiles", False, built.reason),))
        diff = compare_code_objects((self._baseline,), (built,), architecture_of=lambda _: self._architecture)
        verdicts = [
            GuardVerdict("compiles", True, f"compiles for {built.architecture}"),
            *binary_guards(diff),
        ]
        changed = _more_waves(diff) if for_waves else _loop_changed(self._baseline, built)
        return Screening((*verdicts, changed))


#: Makes what one source's candidates are screened with, or says why there is nothing.
ScreenMaker = Callable[[KernelSource, "str | None"], "ResourceScreen | str"]


def screen_for(source: KernelSource, architecture: str | None) -> ResourceScreen | str:
    """A screen by the compiler of the build, else by the installed one, or why there is none."""
    if architecture is None:
        return "the documents name no device architecture"
    if source.reading is not None:
        return ResourceScreen(BuildCompiler(source.reading, architecture), source.text, source.architecture)
    program = first_installed(CLANG)
    if program is None:
        return "no HIP compiler is installed"
    compiler = DeviceCompiler(Path(program), architecture, include=Path(source.path).resolve().parent)
    return ResourceScreen(compiler, source.text, source.architecture)


def _working_compiler(compiler: Compiles, baseline: bytes) -> tuple[Compiles, CodeObject | NotCompiled]:
    built = compiler.compile(baseline)
    if isinstance(built, NotCompiled) and isinstance(compiler, DeviceCompiler):
        bare = attrs.evolve(compiler, flags=(*compiler.flags, *_BARE))
        second = bare.compile(baseline)
        if not isinstance(second, NotCompiled):
            return bare, second
    return compiler, built


class ScreenOfSource:
    """The screen of the source that was asked about last: its baseline is compiled once."""

    def __init__(self, make: ScreenMaker = screen_for) -> None:
        self._make = make
        self._last: tuple[tuple[str, bytes, str | None], ResourceScreen | str] | None = None

    def screen(
        self,
        source: KernelSource,
        candidate: EditCandidate,
        documents: Mapping[str, Any],
        *,
        for_waves: bool = False,
    ) -> Screening:
        """``ResourceScreen.screen`` of the edited source, or why nothing could be compiled."""
        screen = self.of(source, documents)
        if isinstance(screen, str):
            return Screening(unavailable=screen)
        return screen.screen(apply_edits(source.text, candidate.edits), for_waves=for_waves)

    def of(self, source: KernelSource, documents: Mapping[str, Any]) -> ResourceScreen | str:
        """The screen, or why there is none."""
        known = source.architecture
        # Documents name the device: an emulated one has another name than what programs are compiled for.
        target = _architecture(documents) if known is None else known.name
        subject = (source.path, source.text, target)
        if self._last is None or self._last[0] != subject:
            self._last = (subject, self._make(source, target))
        return self._last[1]


def _architecture(documents: Mapping[str, Any]) -> str | None:
    """The device's architecture as ``profile.json`` names it."""
    profile = documents.get("profile")
    gpu = profile.get("gpu") if isinstance(profile, Mapping) else None
    name = gpu.get("architecture") if isinstance(gpu, Mapping) else None
    return name if isinstance(name, str) else None


def _more_waves(diff: AbiDiff) -> GuardVerdict:
    rose = [d for d in diff.of(Severity.INFORMATION) if d.what == OCCUPANCY]
    told = "; ".join(f"{d.kernel}: {d.before} -> {d.after} waves per SIMD, {d.reason}" for d in rose)
    return GuardVerdict("more-waves", bool(rose), told or "no more waves fit a SIMD by it")


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


@frozen
class NotCompiled:
    """Why there is no code object: the compiler's first error, or what is missing."""

    reason: str


class Compiles(Protocol):
    """Makes device code of one text of a source."""

    def compile(self, text: bytes) -> CodeObject | NotCompiled: ...


@frozen(eq=False)
class BuildCompiler:
    """The compiler of the user's build, with its options."""

    reading: SourceReading
    architecture: str

    def compile(self, text: bytes) -> CodeObject | NotCompiled:
        """Of ``text`` in place of the source."""
        built = self.reading.compiled(text, self.architecture)
        if isinstance(built, str):
            return NotCompiled(built)
        try:
            return code_objects_from(built, "compiled kernel")[0]
        except RplError as error:
            return NotCompiled(f"it is no code object: {error}")


@frozen
class DeviceCompiler:
    """``flags`` are added behind the standard ones; ``include`` is searched for the source's own headers."""

    program: Path
    architecture: str
    flags: tuple[str, ...] = ()
    include: Path | None = None

    def command(self, source: Path, output: Path) -> tuple[str, ...]:
        """The whole command line."""
        places = () if self.include is None else ("-I", str(self.include))
        standard = ("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-O3")
        target = f"--offload-arch={self.architecture}"
        files = (str(source), "-o", str(output))
        return (str(self.program), *standard, target, *self.flags, *places, *files)

    def compile(self, text: bytes) -> CodeObject | NotCompiled:
        """Compile ``text`` as one translation unit for the device only, in the sandbox of the builds."""
        with tempfile.TemporaryDirectory(prefix="rpl-compile-") as scratch:
            place = Path(scratch)
            source, output, messages = (place / name for name in ("source.hip", "source.hsaco", "messages"))
            source.write_bytes(text)
            reach = Reach((() if self.include is None else (self.include,)), (place,), place)
            environment = build_environment(place, place)
            try:
                command = self.command(source, output)
                done = run_confined(command, place, reach, environment, _TIME_LIMIT_S, log=messages)
                if not done.succeeded or not output.is_file():
                    return NotCompiled(_first_error(messages.read_text(encoding="utf-8", errors="replace")))
                return code_objects_from(output.read_bytes(), "compiled kernel")[0]
            except InterruptedRunError:
                raise
            except RplError as error:
                return NotCompiled(error.fact)


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "error:" in line]
    return lines[0] if lines else "the compiler failed without a message"
