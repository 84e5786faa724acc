"""Where control went: taken branches as edges, outcomes by branch, and hits by wave."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from rpl_att.reading.numeric_rows import Rows
from rpl_att.reading.wave_file import CATEGORY

#: Categories of branches (att.md, 1.4).
TAKEN, NOT_TAKEN = 7, 8

Counts = NDArray[np.int64]


class ControlFlow:
    """Feed the blocks of a wave, then ``end_wave``.

    ``edges``: (row of the branch, row executed next) -> count. ``taken`` and ``not_taken`` by row;
    ``fewest`` and ``most`` hits of a row in any one wave.
    """

    def __init__(self, rows: int) -> None:
        self.edges: Counter[tuple[int, int]] = Counter()
        self.taken = np.zeros(rows + 1, np.int64)
        self.not_taken = np.zeros(rows + 1, np.int64)
        self.fewest = np.full(rows + 1, np.iinfo(np.int64).max)
        self.most = np.zeros(rows + 1, np.int64)
        self._size = rows + 1
        self._wave_hits = np.zeros(rows + 1, np.int64)
        self._open_branch: int | None = None

    def add(self, rows: Counts, block: Rows) -> None:
        if self._open_branch is not None and len(rows):
            self.edges[self._open_branch, int(rows[0])] += 1
            self._open_branch = None
        category = block[:, CATEGORY]
        self.taken += np.bincount(rows[category == TAKEN], minlength=self._size)
        self.not_taken += np.bincount(rows[category == NOT_TAKEN], minlength=self._size)
        self._wave_hits += np.bincount(rows, minlength=self._size)
        jumps = np.flatnonzero(category == TAKEN)
        if len(jumps) and jumps[-1] == len(rows) - 1:
            self._open_branch = int(rows[-1])
            jumps = jumps[:-1]
        pairs = np.stack((rows[jumps], rows[jumps + 1]), axis=1)
        for (source, target), count in _counted(pairs):
            self.edges[source, target] += count

    def end_wave(self) -> None:
        self.fewest = np.minimum(self.fewest, self._wave_hits)
        self.most = np.maximum(self.most, self._wave_hits)
        self._wave_hits = np.zeros(self._size, np.int64)
        self._open_branch = None


def _counted(pairs: Counts) -> list[tuple[tuple[int, int], int]]:
    if not len(pairs):
        return []
    unique, counts = np.unique(pairs, axis=0, return_counts=True)
    return [((int(a), int(b)), int(n)) for (a, b), n in zip(unique.tolist(), counts.tolist(), strict=True)]
