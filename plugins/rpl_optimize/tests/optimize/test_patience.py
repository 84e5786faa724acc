"""Patience is counted for each transformation, since the last acceptance."""

from __future__ import annotations

from rpl_optimize.contracts import CandidatePart, JudgementPart
from rpl_optimize.loop.state import LoopState


def _state(*tried: tuple[str | None, bool]) -> LoopState:
    state = LoopState(b"")
    for number, (transformation, accepted) in enumerate(tried, 1):
        verdict = "accepted" if accepted else "rejected"
        judgement = JudgementPart(verdict=verdict, stage="measurement", reason="as it was measured")
        candidate = CandidatePart(
            number=number,
            kernel="k",
            proposer="ranked",
            transformation=transformation,
            summary=f"candidate {number}",
            source_sha256="0" * 64,
            judgement=judgement,
        )
        state.add(candidate, accepted=accepted)
    return state


def test_a_transformation_is_spent_by_its_own_misses():
    unroll, bounds = ("unroll", False), ("threads-per-block", False)
    assert _state(unroll, bounds, unroll).spent(3) == frozenset()
    assert _state(unroll, bounds, unroll, unroll).spent(3) == {"unroll"}
    assert _state(unroll, bounds).spent(1) == {"unroll", "threads-per-block"}


def test_an_acceptance_begins_anew():
    state = _state(("unroll", False), ("unroll", False), ("restrict", True), ("unroll", False))
    assert (state.misses_of("unroll"), state.spent(2)) == (1, frozenset())
    assert _state(("unroll", False), ("unroll", True)).misses_of("unroll") == 0


def test_what_proposers_made_counts_together_and_spends_no_transformation():
    state = _state((None, False), ("unroll", False), (None, False))
    assert (state.misses_of(None), state.spent(2)) == (2, frozenset())
