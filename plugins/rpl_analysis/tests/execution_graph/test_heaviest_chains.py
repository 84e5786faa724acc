"""The most that intervals which do not overlap add up to, against all ways to choose them."""

from __future__ import annotations

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
