"""Where control went: taken branches as edges, outcomes by branch, and hits by wave."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from rpl_att.reading.numeric_rows import Rows
from rpl_att.reading.wave_file import CATEGORY
from rpl_core.values import frozen

#: Categories of branches (docs/reference/thread-trace.md, 2.5).
TAKEN, NOT_TAKEN = 7, 8

Counts = NDArray[np.int64]


@frozen(eq=False)
class FlowTotals:
    """``edges``: (row of the branch, row executed next) -> count. ``taken`` and ``not_taken`` by row;
    ``fewest`` and ``most`` hits of a row in any one wave.
    """

    edges: Counter[tuple[int, int]]
    taken: Counts
    not_taken: Counts
    fewest: Counts
    most: Counts


class ControlFlow:
    """Feed the blocks of a wave, then ``end_wave``; ``totals`` at the end."""

    def __init__(self, rows: int) -> None:
        self._edges: Counter[tuple[int, int]] = Counter()
        self._taken = np.zeros(rows + 1, np.int64)
        self._not_taken = np.zeros(rows + 1, np.int64)
        self._fewest = np.full(rows + 1, np.iinfo(np.int64).max)
        self._most = np.zeros(rows + 1, np.int64)
        self._size = rows + 1
        self._wave_hits = np.zeros(rows + 1, np.int64)
        self._open_branch: int | None = None

    def add(self, rows: Counts, block: Rows) -> None:
        if self._open_branch is not None and len(rows):
            self._edges[self._open_branch, int(rows[0])] += 1
            self._open_branch = None
        category = block[:, CATEGORY]
        self._taken += np.bincount(rows[category == TAKEN], minlength=self._size)
        self._not_taken += np.bincount(rows[category == NOT_TAKEN], minlength=self._size)
        self._wave_hits += np.bincount(rows, minlength=self._size)
        jumps = np.flatnonzero(category == TAKEN)
        if len(jumps) and jumps[-1] == len(rows) - 1:
            self._open_branch = int(rows[-1])
            jumps = jumps[:-1]
        pairs = np.stack((rows[jumps], rows[jumps + 1]), axis=1)
        for (source, target), count in _counted(pairs):
            self._edges[source, target] += count

    def totals(self) -> FlowTotals:
        return FlowTotals(self._edges, self._taken, self._not_taken, self._fewest, self._most)

    def end_wave(self) -> None:
        self._fewest = np.minimum(self._fewest, self._wave_hits)
        self._most = np.maximum(self._most, self._wave_hits)
        self._wave_hits = np.zeros(self._size, np.int64)
        self._open_branch = None


def _counted(pairs: Counts) -> list[tuple[tuple[int, int], int]]:
    if not len(pairs):
        return []
    unique, counts = np.unique(pairs, axis=0, return_counts=True)
    return [((int(a), int(b)), int(n)) for (a, b), n in zip(unique.tolist(), counts.tolist(), strict=True)]
