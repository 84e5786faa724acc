"""The most that intervals which do not overlap add up to, against all ways to choose them."""

from __future__ import annotations

from bisect import bisect_right
from itertools import combinations, pairwise

import numpy as np
import pytest

from rpl_analysis.execution_graph.results.unknown_order import _heaviest_chain_ns


def by_trying(intervals):
    most = 0
    for count in range(len(intervals) + 1):
        for chosen in combinations(intervals, count):
            if all(a[1] <= b[0] for a, b in pairwise(chosen)):
                most = max(most, sum(weight for _, _, weight in chosen))
    return most


@pytest.mark.parametrize("spread", [10, 25, 60])
@pytest.mark.parametrize("seed", range(6))
def test_no_choice_is_heavier(seed, spread):
    rng = np.random.default_rng(seed)
    begin = np.sort(rng.integers(0, spread, 10))
    end = begin + rng.integers(0, 9, 10)  # points weigh nothing
    weight = rng.integers(1, 20, 10) * (end > begin)
    rows = list(zip(begin.tolist(), end.tolist(), weight.tolist(), strict=True))
    assert _heaviest_chain_ns(begin, end, weight) == by_trying(rows)


def test_nothing_weighs_nothing():
    nothing = np.zeros(0, np.int64)
    assert _heaviest_chain_ns(nothing, nothing, nothing) == 0


@pytest.mark.parametrize(
    ("lanes", "lockstep"), [(2, False), (8, False), (40, False), (2, True), (8, True)], ids=str
)
def test_many_intervals_are_solved_as_one_by_one(lanes, lockstep):
    """Lanes of 9 000 kernels in all, some across all others; in lockstep no choice ever forgets its begin."""
    rng = np.random.default_rng(lanes)
    shape = (lanes, 9_000 // lanes)
    duration = np.full(shape, 1000) if lockstep else rng.integers(500, 50_000, shape)
    gap = np.zeros_like(duration) if lockstep else rng.integers(0, 3000, shape)
    end = np.cumsum(duration + gap, axis=1) + np.arange(lanes)[:, None] * 1000 // lanes
    begin, end = (end - duration).reshape(-1), end.reshape(-1)
    begin, end = np.append(begin, [0, 10**6]), np.append(end, [int(end.max()) - 5, 4 * 10**6])
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    weight = (end - begin) * rng.integers(1, 4, begin.size)
    worth = [0]  # by the number of intervals that ended
    by_end = np.argsort(end, kind="stable")
    ends = end[by_end].tolist()
    for row in by_end.tolist():
        worth.append(max(worth[-1], worth[bisect_right(ends, int(begin[row]))] + int(weight[row])))
    assert _heaviest_chain_ns(begin, end, weight) == worth[-1]
