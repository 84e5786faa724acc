"""What if one symbol were faster: the graph solved again for many scenarios at once.

A scenario changes prefix sums only by what its symbol saved so far, so gains and segment lengths follow from
the recorded ones by look-ups at edges and segment ends; one pass over the edges then serves all scenarios
as a vector. Model: durations do not depend on what runs beside them (no contention), waits stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.segment_sums import segment_sums
from rpl_analysis.critical_path.solve import advance, critical_path_ns
from rpl_analysis.critical_path.weights import shrunk
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_analysis.critical_path.contraction import Contraction
    from rpl_analysis.critical_path.model import DispatchGraph, NodeWeights
    from rpl_analysis.critical_path.segment_sums import SegmentSums

    IntArray = NDArray[np.int64]

__all__ = ["Scenario", "WhatIf", "what_if"]

#: Gains held at a time (edges times scenarios), 64 MiB of int64.
_MOST_GAINS = 2**23
#: Scenarios of one pass at least: a pass costs the same time for one as for some.
_LEAST_BATCH = 12


@frozen
class Scenario:
    """``symbol`` runs ``speedup`` times as fast; infinity removes its execution, below 1 slows it down."""

    symbol: int
    speedup: float


@frozen(kw_only=True)
class WhatIf:
    """Length of the critical path before and after; of the makespan where weights are as executed."""

    scenario: Scenario
    recorded_ns: int
    predicted_ns: int

    @property
    def gain_ns(self) -> int:
        """Time saved end to end."""
        return self.recorded_ns - self.predicted_ns

    @property
    def application_speedup(self) -> float | None:
        """``recorded / predicted``; None if nothing is left."""
        return self.recorded_ns / self.predicted_ns if self.predicted_ns else None


def what_if(
    graph: DispatchGraph,
    weights: NodeWeights,
    symbol: NDArray[np.integer],
    scenarios: Sequence[Scenario],
    sums: SegmentSums | None = None,
) -> list[WhatIf]:
    """Predictions in the order of ``scenarios``; ``symbol`` is per row, one without rows changes nothing.

    Scenarios of one symbol are cheapest side by side. ``sums``: those of a graph without edges, if made.
    """
    sums = sums or segment_sums(graph, weights.execution_ns, symbol)
    if sums is not None:
        return _without_edges(graph, weights, sums, scenarios)
    contraction = graph.contraction
    replay = _Replay(graph, weights, symbol[graph.order])
    predicted: list[int] = []
    batch = max(_LEAST_BATCH, _MOST_GAINS // max(1, contraction.edge.size))
    for first in range(0, len(scenarios), batch):
        chosen = scenarios[first : first + batch]
        gain = np.empty((contraction.edge.size, len(chosen)), dtype=np.int64)
        ends = np.empty((contraction.segment_start.size, len(chosen)), dtype=np.int64)
        for column, scenario in enumerate(chosen):
            gain[:, column], ends[:, column] = replay.changed(scenario)
        ends += _offsets_of_all(contraction, gain)[contraction.last_of_segment]
        predicted.extend(ends.max(axis=0, initial=0).tolist())
    return [
        WhatIf(scenario=scenario, recorded_ns=replay.recorded_ns, predicted_ns=ns)
        for scenario, ns in zip(scenarios, predicted, strict=True)
    ]


def _without_edges(
    graph: DispatchGraph, weights: NodeWeights, sums: SegmentSums, scenarios: Sequence[Scenario]
) -> list[WhatIf]:
    length = advance(graph.contraction, weights.total_ns, weights.edge_lag_ns).length
    recorded_ns = int(length.max(initial=0))
    return [
        WhatIf(
            scenario=scenario,
            recorded_ns=recorded_ns,
            predicted_ns=int((length - sums.saved(scenario.symbol, scenario.speedup)).max(initial=0)),
        )
        for scenario in scenarios
    ]


class _Replay:
    """The recorded pass over the graph, and what a scenario changes in its gains and segment lengths."""

    def __init__(self, graph: DispatchGraph, weights: NodeWeights, symbol_at: NDArray[np.integer]) -> None:
        self._contraction = graph.contraction
        self._execution_ns = weights.execution_ns
        self._symbol_at = symbol_at
        passed = advance(graph.contraction, weights.total_ns, weights.edge_lag_ns)
        self._last, self._ends_ns = graph.contraction.segment_end, passed.length
        self._gain = passed.gain
        self.recorded_ns = critical_path_ns(graph.contraction, passed)
        self._look: _Look | None = None

    def changed(self, scenario: Scenario) -> tuple[IntArray, IntArray]:
        """Gain per edge and length per segment under the scenario."""
        if self._look is None or self._look.symbol != scenario.symbol:
            self._look = self._look_up(scenario.symbol)
        look, contraction = self._look, self._contraction
        execution = self._execution_ns[look.position]
        saved = np.zeros(execution.size + 1, dtype=np.int64)
        np.cumsum(execution - shrunk(execution, scenario.speedup), out=saved[1:])
        before = saved[look.before_segment]
        gain = self._gain - saved[look.to_source] + saved[look.before_target]
        gain += before[contraction.segment[contraction.source]]
        gain -= before[contraction.segment[contraction.target]]
        return gain, self._ends_ns - saved[look.to_segment_end] + before

    def _look_up(self, symbol: int) -> _Look:
        position = np.flatnonzero(self._symbol_at == symbol)
        contraction = self._contraction
        return _Look(
            symbol=symbol,
            position=position,
            to_source=np.searchsorted(position, contraction.source_position, side="right"),
            before_target=np.searchsorted(position, contraction.target_position, side="left"),
            before_segment=np.searchsorted(position, contraction.segment_start, side="left"),
            to_segment_end=np.searchsorted(position, self._last, side="right"),
        )


@frozen(eq=False, kw_only=True)
class _Look:
    """One symbol's nodes, and how many of them come before each place that needs their savings."""

    symbol: int
    position: IntArray
    to_source: IntArray
    before_target: IntArray
    before_segment: IntArray
    to_segment_end: IntArray


def _offsets_of_all(contraction: Contraction, gain: IntArray) -> IntArray:
    """Offsets of shape (breakpoints, scenarios) for gains of shape (edges, scenarios)."""
    offset = np.zeros((contraction.breakpoint.size, gain.shape[1]), dtype=np.int64)
    rows = list(offset)
    add, maximum = np.add, np.maximum
    steps = zip(
        contraction.target.tolist(),
        contraction.source.tolist(),
        contraction.previous[contraction.target].tolist(),
        gain,
        strict=True,
    )
    for target, source, previous, added in steps:
        reached = rows[target]
        by_edge = add(rows[source], added)
        maximum(by_edge, rows[previous], out=by_edge)
        maximum(reached, by_edge, out=reached)
    return offset
