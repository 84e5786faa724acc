"""Times of kernels that add up: against sorted lists."""

from __future__ import annotations

import math
from itertools import permutations

import attrs
import numpy as np
import pytest

from rpl_analysis.ranks.digest import (
    EXACT_VALUES,
    RELATIVE_ERROR,
    bucket_of,
    merge_times,
    middle_of,
    times_of,
)


def _times(rows):
    """Of (kernel, time) pairs."""
    names = sorted({name for name, _ in rows})
    return times_of(
        names,
        np.array([names.index(name) for name, _ in rows]),
        np.array([time for _, time in rows], np.int64),
    )


def _equal(one, other):
    return all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name))
        for field in attrs.fields(type(one))
    )


def _nearest_rank(values, part):
    return sorted(values)[max(1, math.ceil(part * len(values))) - 1]


@pytest.mark.parametrize("time", [0, 1, 255, 256, 257, 511, 512, 2**20 - 1, 2**20, 2**53 + 1, 2**62 - 1])
def test_a_bucket_holds_times_that_are_close(time):
    bucket = int(bucket_of(np.array([time], np.int64))[0])
    assert abs(middle_of(bucket) - time) <= time * RELATIVE_ERROR
    assert int(bucket_of(np.array([middle_of(bucket)], np.int64))[0]) == bucket


def test_buckets_ascend_with_times():
    times = np.unique(np.concatenate([np.arange(3000), (1 << np.arange(62)) - 1, 1 << np.arange(62)]))
    assert bool((np.diff(bucket_of(times)) >= 0).all())


@pytest.mark.parametrize("count", [1, 2, EXACT_VALUES, EXACT_VALUES + 1, 5000])
@pytest.mark.parametrize("part", [0.01, 0.5, 0.95, 1.0])
def test_quantiles_are_exact_of_few_and_close_of_many(count, part):
    draw = np.random.default_rng([33, count])
    values = draw.lognormal(9, 2, count).astype(np.int64)
    times = _times([("k", value) for value in values.tolist()])
    truth = _nearest_rank(values.tolist(), part)
    assert times.is_exact(0) == (count <= EXACT_VALUES)
    error = 0 if count <= EXACT_VALUES else truth * RELATIVE_ERROR
    assert abs(times.quantile_ns(0, part) - truth) <= error


def test_merging_is_the_same_in_every_order_and_grouping():
    draw = np.random.default_rng(34)
    rows = [
        [(str(draw.choice(list("abc"))), int(draw.integers(0, 10**6))) for _ in range(count)]
        for count in (40, 30, 200, 1)
    ]
    together = _times([row for part in rows for row in part])
    parts = [_times(part) for part in rows]
    for order in permutations(parts):
        first, second, third, fourth = order
        assert _equal(merge_times(order), together)
        assert _equal(merge_times([merge_times([first, second]), merge_times([third, fourth])]), together)
        assert _equal(merge_times([first, merge_times([second, merge_times([third, fourth])])]), together)


def test_nothing_merges_to_nothing():
    assert merge_times([]).names == ()
