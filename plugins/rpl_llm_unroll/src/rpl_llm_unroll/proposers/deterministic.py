"""Propose unrolling without a language model: kernels by weight, hot and inner loops first.

The order is a rule of thumb, chosen here, and decides only what is tried first: latency is hidden by more
loads in flight (large factors first), low occupancy forbids registers (small factors first). Whether a
candidate helps is for the measurement to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.interfaces.proposer import Proposer
from rpl_llm_unroll.compiling.resource_screen import ResourceScreen, Screened, screen_for
from rpl_llm_unroll.loops.source_loop import LOOP_KINDS
from rpl_llm_unroll.loops.view import view_loops
from rpl_llm_unroll.proposers.evidence import architecture, kernel_evidence, line_latency
from rpl_llm_unroll.proposers.nothing_left import why_nothing_is_left
from rpl_llm_unroll.syntax.source_file import read_source_file
from rpl_llm_unroll.syntax.tree import ancestors
from rpl_llm_unroll.transformation import candidates_of
from rpl_optimize.transform.edits import apply_edits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rpl_core.interfaces.proposer import ProposalRequest
    from rpl_core.interfaces.transformation import EditCandidate
    from rpl_llm_unroll.loops.view import LoopView

    ScreenMaker = Callable[[str, bytes, str | None], ResourceScreen | str]

_LARGE_FIRST = frozenset({"latency_bound"})
_SMALL_FIRST = frozenset({"under_occupied", "memory_bandwidth_bound", "divergence_limited"})
_USUAL = 4


class DeterministicProposer(Proposer):
    """Loops times factors in a fixed order, each screened by compiling it."""

    name = "deterministic"
    summary = "Unroll the loops of the heaviest kernel, screened by what they compile to."

    def __init__(self, make_screen: ScreenMaker = screen_for) -> None:
        self._make_screen = make_screen
        self._told: set[tuple[Path | None, str]] = set()

    def propose(self, request: ProposalRequest) -> EditCandidate | None:
        """The next one; if there is none, the user is told what stands against the rest."""
        screened_out = []
        for candidate in self.plan(request):
            if candidate.allowed:
                return candidate
            screened_out.append(candidate)
        self._tell(request, "\n".join(why_nothing_is_left(request, screened_out)))
        return None

    def _tell(self, request: ProposalRequest, text: str) -> None:
        """Once per session: a kernel with nothing left is asked about again before every candidate."""
        if (request.directory, text) not in self._told:
            self._told.add((request.directory, text))
            for line in text.split("\n"):
                request.note(line)

    def plan(self, request: ProposalRequest) -> Iterator[EditCandidate]:
        """What the source guards allow and was not tried, in order, with the screen's verdicts added.

        A screen that is not available adds none: the build's own guards come later.
        """
        tried = {attempt.summary for attempt in request.attempts}
        left = [c for c in ordered_candidates(request) if c.summary not in tried]
        if not left:
            return
        screen = self._make_screen(request.source.path, request.source.text, architecture(request.documents))
        for candidate in left:
            found = _screened(screen, apply_edits(request.source.text, candidate.edits))
            if found.unavailable is not None:
                self._tell(request, f"deterministic: candidates are not screened: {found.unavailable}")
            yield attrs.evolve(candidate, guards=(*candidate.guards, *found.verdicts))


def _screened(screen: ResourceScreen | str, text: bytes) -> Screened:
    return Screened((), screen) if isinstance(screen, str) else screen.screen(text)


def ordered_candidates(request: ProposalRequest) -> list[EditCandidate]:
    """Allowed candidates: by kernel score, traced latency of the loop's lines, nesting, form, factor."""
    file = read_source_file(request.source.text)
    found: list[tuple[tuple[float | int | str, ...], EditCandidate]] = []
    for kernel in file.kernels:
        if request.source.kernel not in {None, kernel.name}:
            continue
        evidence = kernel_evidence(request.documents, kernel.name)
        latency = line_latency(request.documents, kernel.name, request.source.path)
        for view in view_loops(file, kernel):
            for candidate in candidates_of(view):
                if candidate.allowed:
                    hot = sum(latency.get(line, 0) for line in _lines(view))
                    place = (-(evidence.score or 0.0), -hot, -_depth(view), view.loop.line)
                    rank = _factor_rank(_factor(candidate), evidence.label)
                    found.append(((*place, "explicit" in candidate.id, *rank, candidate.id), candidate))
    return [candidate for _, candidate in sorted(found, key=lambda entry: entry[0])]


def _lines(view: LoopView) -> range:
    node = view.loop.node
    return range(node.start_point[0] + 1, node.end_point[0] + 2)


def _depth(view: LoopView) -> int:
    return sum(parent.type in LOOP_KINDS for parent in ancestors(view.loop.node))


def _factor(candidate: EditCandidate) -> int:
    digits = candidate.id[len(candidate.id.rstrip("0123456789")) :]
    return int(digits)


def _factor_rank(factor: int, label: str | None) -> tuple[int, int]:
    if label in _LARGE_FIRST:
        return (0, -factor)
    if label in _SMALL_FIRST:
        return (0, factor)
    return (abs(factor - _USUAL), factor)
