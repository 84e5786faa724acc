"""What each symbol spends in each segment of a graph without edges.

The paths of such a graph are its segments, so that these sums answer every what-if: no node is looked at
again, and one symbol's speed-up is summed once for all that ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.weights import shrunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.critical_path.model import DispatchGraph

    IntArray = NDArray[np.int64]

__all__ = ["SegmentSums", "segment_sums"]

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
