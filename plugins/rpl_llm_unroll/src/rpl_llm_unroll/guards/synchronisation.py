"""Guards on what lanes and waves do together: barriers, fences, atomics, exchange between lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_llm_unroll.guards import names
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from re import Pattern

    from rpl_llm_unroll.guards.request import UnrollRequest
    from rpl_llm_unroll.loops.reach import Mention
    from rpl_llm_unroll.loops.view import LoopView


def barrier(view: LoopView) -> GuardVerdict:
    """Waves wait for each other at a barrier; unrolling moves work of other iterations across it."""
    found = _first(view, names.BARRIERS, names.BARRIER_METHODS)
    return _verdict("barrier", found, "waits at a barrier", "no barrier is reached")


def fence(view: LoopView) -> GuardVerdict:
    """Fences order memory accesses of iterations."""
    found = _first(view, names.FENCES)
    return _verdict("fence", found, "orders memory with a fence", "no fence is reached")


def atomic(view: LoopView) -> GuardVerdict:
    """Atomics make the order of iterations visible to other waves."""
    fences = names.FENCES
    found = next(
        (
            m
            for m in view.mentions
            if (names.ATOMICS.fullmatch(m.name) and not fences.fullmatch(m.name))
            or (m.method and names.ATOMIC_METHODS.fullmatch(m.name))
        ),
        None,
    )
    return _verdict("atomic", found, "is an atomic operation", "no atomic operation is reached")


def cross_lane(request: UnrollRequest) -> GuardVerdict:
    """Lanes exchange values only with lanes that are active with them.

    A constant trip count that the factor divides keeps every lane in every copy. Otherwise lanes leave at
    different copies, and the compiler would not unroll the loop anyway (convergent operations).
    """
    view = request.view
    found = _first(view, names.CROSS_LANE, names.CROSS_LANE_METHODS)
    if found is None:
        return GuardVerdict("cross-lane", True, "no exchange between lanes is reached")
    if view.trips is not None and view.trips.runs % request.factor == 0:
        reason = f"{found.describe()}: every lane runs all {view.trips.runs} iterations"
        return GuardVerdict("cross-lane", True, reason, found.line)
    why = (
        "the trip count is not constant"
        if view.trips is None
        else (f"{view.trips.runs} iterations are not a multiple of {request.factor}")
    )
    return GuardVerdict(
        "cross-lane", False, f"{found.describe()} exchanges between lanes and {why}", found.line
    )


def wave_size(view: LoopView) -> GuardVerdict:
    """Code that computes with the wave size is written for one lane layout; waves here have 64 lanes."""
    found = _first(view, names.WAVE_SIZE)
    return _verdict(
        "wave-size", found, "makes the loop depend on the wave size", "independent of the wave size"
    )


def _first(view: LoopView, pattern: Pattern[str], methods: Pattern[str] | None = None) -> Mention | None:
    for mention in view.mentions:
        if mention.method:
            if methods is not None and methods.fullmatch(mention.name):
                return mention
        elif pattern.fullmatch(mention.name):
            return mention
    return None


def _verdict(guard: str, found: Mention | None, refusal: str, passed: str) -> GuardVerdict:
    if found is None:
        return GuardVerdict(guard, True, passed)
    return GuardVerdict(guard, False, f"{found.describe()} {refusal}", found.line)
