"""Propose unrolling without a language model: kernels by weight, hot and inner loops first.

The order is a rule of thumb, chosen here, and decides only what is tried first: latency is hidden by more
loads in flight (large factors first), low occupancy forbids registers (small factors first). Whether a
candidate helps is for the measurement to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.interfaces.proposer import Proposer
from rpl_core.transform.edits import apply_edits
from rpl_llm_unroll.compiling.resource_screen import ResourceScreen, screen_for
from rpl_llm_unroll.loops.source_loop import LOOP_KINDS
from rpl_llm_unroll.loops.view import view_loops
from rpl_llm_unroll.proposers.evidence import architecture, kernel_evidence, line_latency
from rpl_llm_unroll.syntax.source_file import read_source_file
from rpl_llm_unroll.syntax.tree import ancestors
from rpl_llm_unroll.transformation import candidates_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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

    def propose(self, request: ProposalRequest) -> EditCandidate | None:
        tried = {attempt.summary for attempt in request.attempts}
        return next((c for c in self.plan(request) if c.allowed and c.summary not in tried), None)

    def plan(self, request: ProposalRequest) -> Iterator[EditCandidate]:
        """All candidates that the source guards allow, in order, with the screen's verdicts added.

        A screen that is not available adds none: the build's own guards come later.
        """
        screen = self._make_screen(request.source.path, request.source.text, architecture(request.documents))
        for candidate in ordered_candidates(request):
            if isinstance(screen, str):
                yield candidate
                continue
            found = screen.screen(apply_edits(request.source.text, candidate.edits))
            yield attrs.evolve(candidate, guards=(*candidate.guards, *found.verdicts))


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
