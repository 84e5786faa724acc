"""The transformation ``unroll``: a hint for the compiler before every loop that policy offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_llm_unroll.controls import controls_of
from rpl_llm_unroll.evidence import architecture, unroll_evidence
from rpl_llm_unroll.loops.policy import Policy, accepted_hint
from rpl_llm_unroll.loops.source_loop import find_loops
from rpl_llm_unroll.resource_screen import ResourceScreen, screen_for
from rpl_llm_unroll.syntax.source_file import read_source_file
from rpl_optimize.interfaces.declared_change import LoopHints
from rpl_optimize.interfaces.transformation import Edit, EditCandidate, Screening, Transformation
from rpl_optimize.transform.edits import apply_edits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rpl_llm_unroll.loops.source_loop import SourceLoop
    from rpl_llm_unroll.syntax.source_file import SourceFile
    from rpl_optimize.interfaces.transformation import Evidence, GuardVerdict, KernelSource

    #: What one source's candidates are screened with, or why there is nothing.
    Screen = ResourceScreen | str
    ScreenMaker = Callable[[KernelSource, str | None], Screen]

SMALLEST_FACTOR, LARGEST_FACTOR = 2, 8
_USUAL_FACTORS = (2, 4, 8)


class Unroll(Transformation):
    """Ask the compiler to unroll one innermost loop by 2 to 8.

    The hint stands on the line of its loop, so that no line moves; what it means is the compiler's guarantee.
    A loop that policy refuses is listed once, without edits. Whether unrolling helps is for a measurement to
    say, and whether the registers suffice for the compiled code.
    """

    name = "unroll"
    summary = "Have the compiler unroll one innermost loop of a kernel by 2 to 8."
    suffixes = (".cu", ".hip", ".cpp", ".cc", ".cxx", ".h", ".hpp", ".cuh")

    def __init__(self, make_screen: ScreenMaker = screen_for) -> None:
        self._make_screen = make_screen
        #: Of the last source: its baseline is compiled once for all of its candidates.
        self._screen: tuple[tuple[str, bytes, str | None], Screen] | None = None

    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        file = read_source_file(source.text)
        policy = Policy(file)
        kernels = [kernel for kernel in file.kernels if source.kernel in {None, kernel.name}]
        loops = find_loops(file, kernels)
        return tuple(one for loop in loops for one in _candidates(file, loop, policy.verdicts(loop)))

    def controls(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        return controls_of(source)

    def evidence(
        self, source: KernelSource, candidates: tuple[EditCandidate, ...], documents: Mapping[str, Any]
    ) -> Mapping[str, Evidence]:
        return unroll_evidence(source, candidates, documents)

    def screen(
        self, source: KernelSource, candidate: EditCandidate, documents: Mapping[str, Any]
    ) -> Screening:
        """Compiled on its own: what the build would refuse costs no trial."""
        known = source.architecture
        # Documents name the device: an emulated one has another name than what programs are compiled for.
        target = architecture(documents) if known is None else known.name
        subject = (source.path, source.text, target)
        if self._screen is None or self._screen[0] != subject:
            self._screen = (subject, self._make_screen(source, target))
        screen = self._screen[1]
        if isinstance(screen, str):
            return Screening(unavailable=screen)
        return screen.screen(apply_edits(source.text, candidate.edits))


def factors_for(runs: int | None) -> tuple[int, ...]:
    """2, 4, 8; where the head says how often the loop runs, its divisors too, and none above."""
    factors = set(_USUAL_FACTORS)
    if runs is not None:
        factors |= {factor for factor in range(SMALLEST_FACTOR, LARGEST_FACTOR + 1) if runs % factor == 0}
        factors = {factor for factor in factors if factor <= runs}
    return tuple(sorted(factors))


def _candidates(
    file: SourceFile, loop: SourceLoop, verdicts: tuple[GuardVerdict, ...]
) -> tuple[EditCandidate, ...]:
    """All factors of one loop but the one that it has, or the one refused candidate."""
    if not all(verdict.passed for verdict in verdicts):
        summary = f"unroll {loop.kind} loop {loop.id}"
        return (EditCandidate(loop.id, loop.kernel.name, loop.line, summary, (), verdicts),)
    had = accepted_hint(file.text[: loop.node.start_byte]) or b""
    hints = {factor: b'_Pragma("unroll %d") ' % factor for factor in factors_for(loop.runs)}
    return tuple(
        _candidate(loop, factor, hint, had, verdicts) for factor, hint in hints.items() if hint != had
    )


def _candidate(
    loop: SourceLoop, factor: int, hint: bytes, had: bytes, verdicts: tuple[GuardVerdict, ...]
) -> EditCandidate:
    begin = loop.node.start_byte
    return EditCandidate(
        id=f"{loop.id}-pragma{factor}",
        kernel=loop.kernel.name,
        line=loop.line,
        summary=f"unroll loop {loop.id} by {factor}",
        edits=(Edit(begin - len(had), begin, hint),),
        guards=verdicts,
        changes_loop=True,
        declares=(LoopHints(0 if had else 1),),
    )
