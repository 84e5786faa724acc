"""What if one symbol were faster: the graph solved again for many scenarios at once.

A scenario changes prefix sums only by what its symbol saved so far, so gains and segment lengths follow from
the recorded ones by look-ups at edges and segment ends; one pass over the edges then serves all scenarios
as a vector. Model: durations do not depend on what runs beside them (no contention), waits stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.solve import advance, critical_path_ns
from rpl_analysis.critical_path.weights import shrunk
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_analysis.critical_path.contraction import Contraction
    from rpl_analysis.critical_path.model import DispatchGraph, NodeWeights

    IntArray = NDArray[np.int64]

# What each symbol spends in each segment of a graph without edges.
#
# The paths of such a graph are its segments, so that these sums answer every what-if: no node is looked at
# again, and one symbol's speed-up is summed once for all that ask.

_UINT16_VALUES = 65536
_MOST_IN_INT32 = 2**31 - 1
#: Pairs of symbol and segment: a graph of very many short segments is asked node by node.
_MOST_CELLS = 2**20


def segment_sums(
    graph: DispatchGraph, execution_ns: IntArray, symbol: NDArray[np.integer]
) -> SegmentSums | None:
    """The sums, ``symbol`` per row, negative for none; None with edges or too many symbols and segments."""
    cells = (int(symbol.max(initial=-1)) + 2) * graph.segment_start.size
    if graph.edges.size or cells > _MOST_CELLS:
        return None
    return SegmentSums(graph, execution_ns, symbol)


class SegmentSums:
    """Sums over the nodes of a graph without edges; made by ``segment_sums``."""

    def __init__(self, graph: DispatchGraph, execution_ns: IntArray, symbol: NDArray[np.integer]) -> None:
        symbol_at = symbol if graph.in_row_order else symbol[graph.order]
        self._segments = graph.segment_start.size
        self._groups = int(symbol_at.max(initial=-1)) + 2
        # Group 0 holds the nodes of no symbol.
        narrow = self._groups < _UINT16_VALUES
        group = symbol_at.astype(np.uint16 if narrow else np.int64)
        group += 1
        if int(symbol_at.min(initial=0)) < 0:
            group[symbol_at < 0] = 0
        # numpy sorts 16 bits by radix; stable, so that the nodes of a group stay segment by segment.
        order = np.argsort(group, kind="stable")
        self._execution_ns = _narrow(execution_ns)[order]
        del order
        self._starts = self._cells(group, np.diff(graph.segment_start, append=graph.size))
        self._saved: dict[tuple[int, float], IntArray] = {}

    def _cells(self, group: NDArray[np.integer], sizes: IntArray) -> IntArray:
        """Where the nodes of each cell (group, segment) begin, shape (groups * segments + 1,)."""
        counts = np.zeros((self._groups, self._segments), dtype=np.int64)
        ends = np.cumsum(sizes).tolist()
        for segment, end in enumerate(ends):
            counts[:, segment] = np.bincount(group[end - sizes[segment] : end], minlength=self._groups)
        return np.concatenate([[0], np.cumsum(counts.ravel())])

    def spent_in(self, segment: int) -> IntArray:
        """Execution per symbol in one segment."""
        cells = np.arange(1, self._groups) * self._segments + segment
        bounds = zip(self._starts[cells].tolist(), self._starts[cells + 1].tolist(), strict=True)
        return np.array([self._execution_ns[b:e].sum(dtype=np.int64) for b, e in bounds], dtype=np.int64)

    def saved(self, symbol: int, speedup: float) -> IntArray:
        """What each segment gets shorter by if ``symbol`` runs ``speedup`` times as fast; see ``shrunk``."""
        known = self._saved.get((symbol, speedup))
        if known is None:
            known = self._saved[symbol, speedup] = self._sum_saved(symbol + 1, speedup)
        return known

    def _sum_saved(self, group: int, speedup: float) -> IntArray:
        saved = np.zeros(self._segments, dtype=np.int64)
        cell = min(group, self._groups) * self._segments if group > 0 else 0
        starts = self._starts[cell : cell + self._segments + 1]
        if group <= 0 or starts.size <= 1:
            shrunk(saved[:0], speedup)
            return saved
        execution = self._execution_ns[starts[0] : starts[-1]].astype(np.int64)
        execution -= shrunk(execution, speedup)
        filled = np.flatnonzero(np.diff(starts))
        if filled.size:
            saved[filled] = np.add.reduceat(execution, starts[filled] - starts[0])
        return saved


def _narrow(values: IntArray) -> NDArray[np.integer]:
    return values.astype(np.int32) if int(values.max(initial=0)) <= _MOST_IN_INT32 else values


#: Gains held at a time (edges times scenarios), 64 MiB of int64.
_MOST_GAINS = 2**23
#: Edges whose gains are turned at a time, from one row per scenario to one per edge.
_BLOCK = 2**12
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
    return what_if_by(graph, (weights,), symbol, scenarios, sums)[0]


def what_if_by(
    graph: DispatchGraph,
    weightings: Sequence[NodeWeights],
    symbol: NDArray[np.integer],
    scenarios: Sequence[Scenario],
    sums: SegmentSums | None = None,
) -> list[list[WhatIf]]:
    """The same under several weightings as recorded: what a symbol saves is looked up once for all."""
    passes = [advance(graph.contraction, own.total_ns, own.edge_lag_ns) for own in weightings]
    sums = sums or segment_sums(graph, weightings[0].execution_ns, symbol)
    if sums is not None:
        return [_without_edges(passed.length, sums, scenarios) for passed in passes]
    contraction = graph.contraction
    order: IntArray | slice = contraction.sweeps.edge if contraction.sweeps else slice(None)
    recorded_gains = [passed.gain[order] for passed in passes]
    savings = _Savings(graph, weightings[0].execution_ns, symbol[graph.order], order)
    predicted: list[list[int]] = [[] for _ in passes]
    batch = 1 if contraction.sweeps else max(_LEAST_BATCH, _MOST_GAINS // max(1, contraction.edge.size))
    for first in range(0, len(scenarios), batch):
        changes = [savings.changes(scenario) for scenario in scenarios[first : first + batch]]
        for passed, recorded_gain, found in zip(passes, recorded_gains, predicted, strict=True):
            ends = _offsets_at_ends(contraction, [recorded_gain + gain for gain, _ in changes])
            for by, (_, length) in zip(ends, changes, strict=True):
                found.append(int((passed.length + length + by).max(initial=0)))
    recorded = [critical_path_ns(contraction, passed) for passed in passes]
    return [
        [
            WhatIf(scenario=scenario, recorded_ns=recorded_ns, predicted_ns=ns)
            for scenario, ns in zip(scenarios, found, strict=True)
        ]
        for recorded_ns, found in zip(recorded, predicted, strict=True)
    ]


def _without_edges(length: IntArray, sums: SegmentSums, scenarios: Sequence[Scenario]) -> list[WhatIf]:
    recorded_ns = int(length.max(initial=0))
    return [
        WhatIf(
            scenario=scenario,
            recorded_ns=recorded_ns,
            predicted_ns=int((length - sums.saved(scenario.symbol, scenario.speedup)).max(initial=0)),
        )
        for scenario in scenarios
    ]


class _Savings:
    """What a scenario changes in the gains of edges and the lengths of segments, whatever the waits."""

    def __init__(
        self,
        graph: DispatchGraph,
        execution_ns: IntArray,
        symbol_at: NDArray[np.integer],
        order: IntArray | slice,
    ) -> None:
        contraction = graph.contraction
        self._execution_ns = execution_ns
        self._symbol_at = symbol_at
        self._start, self._last = contraction.segment_start, contraction.segment_end
        self._from = contraction.source_position[order]
        self._to = contraction.target_position[order]
        self._from_segment = contraction.segment[contraction.source[order]]
        self._to_segment = contraction.segment[contraction.target[order]]
        self._look: _Look | None = None

    def changes(self, scenario: Scenario) -> tuple[IntArray, IntArray]:
        """Per edge in the order asked for and per segment, what the scenario adds to gain and length."""
        if self._look is None or self._look.symbol != scenario.symbol:
            self._look = self._look_up(scenario.symbol)
        look = self._look
        execution = self._execution_ns[look.position]
        saved = np.zeros(execution.size + 1, dtype=np.int64)
        np.cumsum(execution - shrunk(execution, scenario.speedup), out=saved[1:])
        before = saved[look.before_segment]
        gain = saved.take(look.before_target)
        gain -= saved.take(look.to_source)
        gain += before.take(self._from_segment)
        gain -= before.take(self._to_segment)
        return gain, before - saved[look.to_segment_end]

    def _look_up(self, symbol: int) -> _Look:
        own = self._symbol_at == symbol
        # Counted once for all places: bisection per place takes several times as long.
        so_far = np.cumsum(own, dtype=np.int32)
        return _Look(
            symbol=symbol,
            position=np.flatnonzero(own),
            # Looked up by each scenario of the symbol: indices of other types would be copied each time.
            to_source=so_far[self._from].astype(np.intp),
            before_target=(so_far[self._to] - own[self._to]).astype(np.intp),
            before_segment=so_far[self._start] - own[self._start],
            to_segment_end=so_far[self._last],
        )


@frozen(eq=False, kw_only=True)
class _Look:
    """One symbol's nodes, and how many of them come before each place that needs their savings."""

    symbol: int
    position: IntArray
    to_source: NDArray[np.intp]
    before_target: NDArray[np.intp]
    before_segment: NDArray[np.int32]
    to_segment_end: NDArray[np.int32]


def _offsets_at_ends(contraction: Contraction, gains: Sequence[IntArray]) -> Sequence[IntArray]:
    """For the gains of all edges under each scenario the offset at the end of every segment.

    Edges in their order, or by target where sweeps settle the graph.
    """
    if contraction.sweeps is not None:
        return [contraction.sweeps.at_ends(gain) for gain in gains]
    offset = np.zeros((contraction.breakpoint.size, len(gains)), dtype=np.int64)
    rows, reached = list(offset), np.empty(len(gains), dtype=np.int64)
    add, maximum = np.add, np.maximum
    for first in range(0, contraction.edge.size, _BLOCK):
        block = slice(first, first + _BLOCK)
        steps = zip(
            contraction.target[block].tolist(),
            contraction.source[block].tolist(),
            contraction.carried[block].tolist(),
            np.stack([gain[block] for gain in gains], axis=1),
            strict=True,
        )
        for target, source, carried, added in steps:
            add(rows[source], added, out=reached)
            maximum(reached, rows[carried], out=rows[target])
    return list(offset[contraction.last_of_segment].T)
