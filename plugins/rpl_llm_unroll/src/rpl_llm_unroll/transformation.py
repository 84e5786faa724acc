"""The transformation ``unroll``: candidates for every loop of every kernel, refused ones included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_llm_unroll.compiling.resource_screen import ResourceScreen, screen_for
from rpl_llm_unroll.controls import controls_of
from rpl_llm_unroll.evidence import architecture, unroll_evidence
from rpl_llm_unroll.guards import factor_verdicts, loop_verdicts
from rpl_llm_unroll.guards.request import UnrollRequest
from rpl_llm_unroll.invariance import check_invariance
from rpl_llm_unroll.loops.view import view_loops
from rpl_llm_unroll.syntax.source_file import read_source_file
from rpl_llm_unroll.unroll_edits import explicit_edit, pragma_edit
from rpl_optimize.interfaces.transformation import EditCandidate, Screening, Transformation
from rpl_optimize.transform.edits import apply_edits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rpl_llm_unroll.guards.request import Form
    from rpl_llm_unroll.loops.view import LoopView
    from rpl_optimize.interfaces.transformation import Edit, Evidence, GuardVerdict, KernelSource

    #: What one source's candidates are screened with, or why there is nothing.
    Screen = ResourceScreen | str
    ScreenMaker = Callable[[KernelSource, str | None], Screen]

SMALLEST_FACTOR, LARGEST_FACTOR = 2, 8
_USUAL_FACTORS = (2, 4, 8)
_FORMS: tuple[Form, ...] = ("pragma", "explicit")


class Unroll(Transformation):
    """Unroll one counting loop by 2 to 8, by pragma or by repeating its body.

    A loop that a guard refuses is listed once, without edits. Whether unrolling helps is for a measurement
    to say, and whether the registers suffice for the compiled code.
    """

    name = "unroll"
    summary = "Unroll one innermost counting loop of a kernel by 2 to 8."
    suffixes = (".cu", ".hip", ".cpp", ".cc", ".cxx")

    def __init__(self, make_screen: ScreenMaker = screen_for) -> None:
        self._make_screen = make_screen
        #: Of the last source: its baseline is compiled once for all of its candidates.
        self._screen: tuple[tuple[str, bytes, str | None], Screen] | None = None

    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        file = read_source_file(source.text)
        kernels = [k for k in file.kernels if source.kernel in {None, k.name}]
        views = [view for kernel in kernels for view in view_loops(file, kernel)]
        return tuple(candidate for view in views for candidate in candidates_of(view))

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
        subject = (source.path, source.text, architecture(documents))
        if self._screen is None or self._screen[0] != subject:
            self._screen = (subject, self._make_screen(source, subject[2]))
        screen = self._screen[1]
        if isinstance(screen, str):
            return Screening(unavailable=screen)
        return screen.screen(apply_edits(source.text, candidate.edits))

    def invariance(self, source: KernelSource, after: bytes) -> tuple[GuardVerdict, ...]:
        file = read_source_file(source.text)
        overloads = [kernel for kernel in file.kernels if kernel.name == source.kernel]
        answers = [check_invariance(file, after, kernel) for kernel in overloads]
        passing = (answer for answer in answers if all(verdict.passed for verdict in answer))
        return next(passing, answers[0] if answers else ())


def candidates_of(view: LoopView) -> tuple[EditCandidate, ...]:
    """All ways to unroll one loop, or one refused candidate when no way is open."""
    verdicts = loop_verdicts(view)
    if not all(verdict.passed for verdict in verdicts):
        summary = f"unroll {view.loop.kind} loop {view.loop.id}"
        return (EditCandidate(view.loop.id, view.kernel.name, view.loop.line, summary, (), verdicts),)
    requests = [UnrollRequest(view, factor, form) for form in _FORMS for factor in factors_for(view)]
    return tuple(_candidate(request, verdicts) for request in requests)


def factors_for(view: LoopView) -> tuple[int, ...]:
    """2, 4, 8 and the divisors of a constant trip count between 2 and 8."""
    found = set(_USUAL_FACTORS)
    if view.trips is not None and view.trips.runs > 0:
        permitted = range(SMALLEST_FACTOR, LARGEST_FACTOR + 1)
        found |= {factor for factor in permitted if view.trips.runs % factor == 0}
    return tuple(sorted(found))


def _candidate(request: UnrollRequest, verdicts: tuple[GuardVerdict, ...]) -> EditCandidate:
    view = request.view
    verdicts = (*verdicts, *factor_verdicts(request))
    edits: tuple[Edit, ...] = ()
    if all(verdict.passed for verdict in verdicts):
        make = pragma_edit if request.form == "pragma" else explicit_edit
        edits = (make(view, request.factor),)
        after = apply_edits(view.file.text, edits)
        verdicts = (*verdicts, *check_invariance(view.file, after, view.kernel))
    how = "#pragma unroll" if request.form == "pragma" else "copies of the body"
    summary = f"unroll loop {view.loop.id} by {request.factor} ({how})"
    return EditCandidate(
        id=f"{view.loop.id}-{request.form}{request.factor}",
        kernel=view.kernel.name,
        line=view.loop.line,
        summary=summary,
        edits=edits,
        guards=verdicts,
        changes_loop=True,
    )
