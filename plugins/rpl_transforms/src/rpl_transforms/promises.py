"""Promises to the compiler about a kernel: launch bounds, and pointers that never overlap."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rpl_core.text import counted
from rpl_optimize.interfaces.source_reading import Launch, SourceReading
from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    Evidence,
    GuardVerdict,
    KernelSource,
    LaunchBounds,
    RestrictedParameter,
    Screening,
    Transformation,
)
from rpl_transforms.evidence import KernelFacts, launch_bounds_evidence, restrict_evidence, waves_evidence
from rpl_transforms.resource_screen import ResourceScreen, ScreenOfSource
from rpl_transforms.source_file import KernelNode, SourceFile, read_source_file
from rpl_transforms.syntax import text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node


# What all transformations that work kernel by kernel share.


#: Files that others include. What is proven of every instance of a template is not proven of theirs.
HEADERS = (".h", ".hh", ".hpp", ".hxx", ".cuh")
UNREAD = "no compiler has read the source, so nothing is proven"


def refused(kernel: KernelNode, guard: str, reason: str, summary: str) -> EditCandidate:
    """The one candidate of a kernel of which the proof failed."""
    return EditCandidate(
        kernel.name, kernel.name, kernel.line, summary, (), (GuardVerdict(guard, False, reason),)
    )


class KernelTransformation(Transformation):
    """Proposes kernel by kernel."""

    suffixes: tuple[str, ...] = (".cu", ".hip", ".cpp", ".cc", ".cxx")

    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        file = read_source_file(source.text)
        return tuple(
            found
            for kernel in file.editable_kernels(source.kernel)
            for found in self.of_kernel(file, kernel, source)
        )

    @abstractmethod
    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, source: KernelSource
    ) -> Iterator[EditCandidate]:
        """Candidates of one kernel, refused ones included."""

    def evidence(
        self, source: KernelSource, candidates: tuple[EditCandidate, ...], documents: Mapping[str, Any]
    ) -> Mapping[str, Evidence]:
        _ = source
        named = [(c.id, KernelFacts.of(c.kernel, documents)) for c in candidates if c.kernel is not None]
        return {identity: self.evidence_of(facts) for identity, facts in named}

    @abstractmethod
    def evidence_of(self, facts: KernelFacts) -> Evidence:
        """What speaks for this change of a kernel with these facts."""


# Launch bounds: promise the compiler the largest workgroup that the program launches.

#: What HIP allows at most, and what the compiler assumes without a bound (HIP documentation, "Launch
#: bounds").
MOST_THREADS = 1024
_BOUNDS = ("__launch_bounds__", "launch_bounds", "amdgpu_flat_work_group_size")


class ThreadsPerBlock(KernelTransformation):
    """The promise is refused unless the file is a whole program and every launch has a known size.

    Known is what the compiler works out of the source, else what was recorded: HIP refuses a launch with more
    work-items than promised (hipErrorLaunchFailure), so another input fails and computes nothing wrong.
    """

    name = "threads-per-block"
    summary = "Promise the compiler the largest block that the program launches (__launch_bounds__)."

    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, source: KernelSource
    ) -> Iterator[EditCandidate]:
        head = text_of(kernel.function).partition("{")[0]
        if any(word in head for word in _BOUNDS):
            return
        most, guards = _largest_launch(file, kernel, source)
        if most is None:
            yield EditCandidate(
                f"{kernel.name}-unknown", kernel.name, kernel.line, "bound the block", (), guards
            )
            return
        if most >= MOST_THREADS:
            return
        assert kernel.plain_name is not None  # of every editable kernel
        place = kernel.plain_name.start_byte
        bound = f"__launch_bounds__({most}) "
        yield EditCandidate(
            id=f"{kernel.name}-{most}",
            kernel=kernel.name,
            line=kernel.line,
            summary=f"promise {most} threads per block of {kernel.name}",
            edits=(Edit(place, place, bound.encode()),),
            guards=guards,
            workgroup_limit=most,
            declares=(LaunchBounds(most),),
        )

    def evidence_of(self, facts: KernelFacts) -> Evidence:
        return launch_bounds_evidence(facts)


def _largest_launch(
    file: SourceFile, kernel: KernelNode, source: KernelSource
) -> tuple[int | None, tuple[GuardVerdict, ...]]:
    """Work-items of the largest launch, ``None`` where a guard refuses to tell."""
    launches, recorded = launches_of(source.reading, kernel.name), source.recorded_block
    guards = (_launched_here(file, launches), _sizes_known(launches, recorded))
    if isinstance(launches, str) or not all(guard.passed for guard in guards):
        return None, guards
    blocks = (recorded if one.block is None else one.block for one in launches)
    return max(math.prod(block) for block in blocks if block), guards


def launches_of(reading: SourceReading | None, kernel: str) -> tuple[Launch, ...] | str:
    """All launches in the file, or why they are not known."""
    return "no compiler has read the source" if reading is None else reading.launches(kernel)


def _launched_here(file: SourceFile, launches: tuple[Launch, ...] | str) -> GuardVerdict:
    name = "launched-here-only"
    if isinstance(launches, str):
        return GuardVerdict(name, False, launches)
    if not launches:
        return GuardVerdict(name, False, "the file launches it nowhere")
    functions = (node for node in walk(file.root) if node.type == "function_declarator")
    if not any(text_of(node.child_by_field_name("declarator")) == "main" for node in functions):
        return GuardVerdict(name, False, "other files may launch it otherwise: there is no main here")
    return GuardVerdict(name, True, f"{counted(len(launches), 'launch', 'launches')} in a whole program")


def _sizes_known(launches: tuple[Launch, ...] | str, recorded: tuple[int, int, int] | None) -> GuardVerdict:
    name = "block-size-known"
    if isinstance(launches, str) or not launches:
        return GuardVerdict(name, False, "no launch is known")
    open_one = next((one for one in launches if one.block is None), None)
    if open_one is None:
        return GuardVerdict(name, True, "every launch has a constant block size")
    if recorded is None:
        what = "the source does not settle the block size of a launch, and none was recorded"
        return GuardVerdict(name, False, what, open_one.line)
    size = " x ".join(str(one) for one in recorded)
    what = f"the source does not settle it; the profile has {size}, and HIP refuses a launch of more"
    return GuardVerdict(name, True, what, open_one.line)


def largest_block(file: SourceFile, kernel: str, reading: SourceReading | None) -> tuple[int, ...] | None:
    """What every launch has at most in x, y and z, where the file is a whole program that settles it."""
    launches = launches_of(reading, kernel)
    if isinstance(launches, str) or not _launched_here(file, launches).passed:
        return None
    known = [one.block for one in launches if one.block is not None]
    return tuple(max(sizes) for sizes in zip(*known, strict=True)) if len(known) == len(launches) else None


# More waves at once: the second launch bound, which makes the compiler do with fewer registers.

#: Waves that a SIMD of CDNA holds at most, by its slots (CDNA3 ISA, "Waves per SIMD"). One is always there.
_MOST_WAVES = 8
#: Each further wave costs more registers than the one before (chosen).
_MOST_NUMBERS = 3
#: A bound by one number, which can get a second one.
_OWN_BOUND = re.compile(r"__launch_bounds__\s*\(\s*([0-9]+)\s*\)")


class WavesPerUnit(KernelTransformation):
    """Registers that are saved let more waves run, which hides latency; values that don't fit are spilled.

    The compiler decides how: the bound changes no result. It says how many waves fit already; the next
    numbers are offered, and screening passes those by which more really fit; what they cost in spills is for
    the measurement to weigh.
    """

    name = "waves-per-eu"
    summary = "Have the compiler use so few registers that more waves run at once (second launch bound)."

    def __init__(self, screens: ScreenOfSource | None = None) -> None:
        self._screens = screens or ScreenOfSource()

    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, source: KernelSource
    ) -> Iterator[EditCandidate]:
        head = text_of(kernel.function).partition("{")[0]
        own = _OWN_BOUND.search(head)
        if "amdgpu_waves_per_eu" in head or (own is None and any(word in head for word in _BOUNDS)):
            return
        guards: tuple[GuardVerdict, ...] = ()
        threads: int | None
        if own is not None:
            before = len(head[: own.start()].encode())
            begin = kernel.function.start_byte + before
            threads, end = int(own[1]), begin + len(own[0])
            if source.text[begin:end] != own[0].encode():
                return
        else:
            assert kernel.plain_name is not None  # of every editable kernel
            begin = end = kernel.plain_name.start_byte
            threads, guards = _largest_launch(file, kernel, source)
        if threads is None or not 0 < threads <= MOST_THREADS:
            return
        space = " " if own is None else ""
        screen = None if source.reading is None else self._screens.of(source, {})
        fitting = screen.waves(kernel.name) if isinstance(screen, ResourceScreen) else None
        if fitting is None:
            return  # nobody says how many there are
        for waves in range(fitting + 1, _MOST_WAVES + 1)[:_MOST_NUMBERS]:
            yield EditCandidate(
                id=f"{kernel.name}-{waves}",
                kernel=kernel.name,
                line=kernel.line,
                summary=f"have {waves} waves of {kernel.name} fit a SIMD",
                edits=(Edit(begin, end, f"__launch_bounds__({threads}, {waves}){space}".encode()),),
                guards=guards,
                workgroup_limit=threads if own is None and threads < MOST_THREADS else None,
                declares=(LaunchBounds(threads, waves),),
                alternatives=f"waves of {kernel.name}",
            )

    def evidence_of(self, facts: KernelFacts) -> Evidence:
        return waves_evidence(facts)

    def screen(
        self, source: KernelSource, candidate: EditCandidate, documents: Mapping[str, Any]
    ) -> Screening:
        """Compiled on its own: a number of waves that were there before costs no trial."""
        return self._screens.screen(source, candidate, documents, for_waves=True)


# ``__restrict__`` on pointer parameters that lead to different memory: by proof, or because the user says so.
#
# Nothing in a kernel tells whether two of its parameters alias: that is the caller's secret. Where the whole
# program is at hand, and hands over allocations only, it is none. Else the user's word is asked for.

SETTING = "plugins.transforms.distinct-pointers"


class Restrict(KernelTransformation):
    """``distinct``: kernels of which the user says that their pointers never overlap; ``*``: all."""

    name = "restrict"
    summary = "Add __restrict__ to pointers that lead to different memory, by proof or by the user's word."

    def __init__(self, distinct: frozenset[str] = frozenset()) -> None:
        self._distinct = distinct

    def of_kernel(
        self, file: SourceFile, kernel: KernelNode, source: KernelSource
    ) -> Iterator[EditCandidate]:
        pointers = [
            pointer for node in kernel.parameter_declarations if (pointer := _pointer(node)) is not None
        ]
        open_ones = [(name, place) for name, place, restricted in pointers if not restricted]
        if len(pointers) < 2 or not open_ones:
            return
        if {kernel.name, "*"} & self._distinct:
            guard = GuardVerdict("distinct-pointers", True, "the user says so")
        else:
            proven = _proven_apart(file, kernel, source.reading)
            if isinstance(proven, str):
                what = f"not proven ({proven}), so only the user knows; say it by the setting {SETTING}"
                guard = GuardVerdict("distinct-pointers", False, what)
            else:
                open_ones = [one for one in open_ones if one[0] in proven]
                what = "each launch gives each pointer an allocation of its own"
                guard = GuardVerdict("distinct-pointers", True, what)
        if not open_ones:
            return
        names = ", ".join(name for name, _ in open_ones)
        edits = (Edit(place, place, b"__restrict__ ") for _, place in open_ones)
        yield EditCandidate(
            id=kernel.name,
            kernel=kernel.name,
            line=kernel.line,
            summary=f"restrict the pointers of {kernel.name}: {names}",
            edits=tuple(edits) if guard.passed else (),
            guards=(guard,),
            declares=tuple(RestrictedParameter(name) for name, _ in open_ones),
        )

    def evidence_of(self, facts: KernelFacts) -> Evidence:
        return restrict_evidence(facts)


def _proven_apart(
    file: SourceFile, kernel: KernelNode, reading: SourceReading | None
) -> tuple[str, ...] | str:
    launched = _launched_here(file, launches_of(reading, kernel.name))
    if reading is None or not launched.passed:
        return launched.reason
    return reading.separate_pointers(kernel.name)


def _pointer(parameter: Node) -> tuple[str, int, bool] | None:
    """Name of a pointer parameter, the byte where its name begins, and whether it is restricted."""
    node = parameter.child_by_field_name("declarator")
    if node is None or node.type != "pointer_declarator":
        return None
    name = node.child_by_field_name("declarator")
    if name is None or name.type != "identifier":
        return None
    return text_of(name), name.start_byte, "restrict" in text_of(node)
