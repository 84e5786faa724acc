"""Busy, idle and overlapped time against a count of nanoseconds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rpl_analysis.critical_path import merge_intervals, sum_busy_time
from rpl_core.errors import BadDataError


def test_hand_computed_times() -> None:
    begin, end = np.array([30, 0, 5, 40]), np.array([40, 10, 20, 40])
    time = sum_busy_time(begin, end)
    assert (time.total_ns, time.busy_ns, time.makespan_ns) == (35, 30, 40)
    assert time.idle_ns == 10
    assert time.concurrency == pytest.approx(35 / 30)
    assert time.parallelism(25) == pytest.approx(1.4)
    merged = merge_intervals(begin, end)
    assert list(zip(merged.begin_ns, merged.end_ns, strict=True)) == [(0, 20), (30, 40)]
    gaps = merged.gaps()
    assert list(zip(gaps.begin_ns, gaps.end_ns, strict=True)) == [(20, 30)]


def test_union_equals_counting_nanoseconds() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        begin = np.array([rng.randint(0, 60) for _ in range(rng.randint(1, 15))])
        end = begin + np.array([rng.choice([0, rng.randint(0, 12)]) for _ in begin])
        covered = {t for b, e in zip(begin, end, strict=True) for t in range(b, e)}
        time = sum_busy_time(begin, end)
        assert time.busy_ns == len(covered)
        assert time.idle_ns == int(end.max() - begin.min()) - len(covered)
        gaps = merge_intervals(begin, end).gaps()
        assert int((gaps.end_ns - gaps.begin_ns).sum()) == time.idle_ns
        assert (gaps.end_ns > gaps.begin_ns).all()


def test_nothing_has_no_fractions() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    time = sum_busy_time(nothing, nothing)
    assert (time.total_ns, time.busy_ns, time.makespan_ns) == (0, 0, 0)
    assert time.concurrency is time.parallelism(0) is None
    assert merge_intervals(nothing, nothing).gaps().begin_ns.size == 0


def test_backward_intervals_are_refused() -> None:
    with pytest.raises(BadDataError, match="1 interval ends before it begins"):
        merge_intervals(np.array([5]), np.array([4]))
