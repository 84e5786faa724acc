"""Step detection: exact levels, no steps from outliers or noise, the optimum of its own cost."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpl_measure import series as measured
from rpl_measure.series import Level, find_levels

NOISE = (0.001, -0.002, 0.0, 0.002, -0.001, 0.0015, -0.0005, 0.0007, -0.0018, 0.0003)


def series(*parts: tuple[float, int]) -> list[float]:
    flat = [value for value, count in parts for _ in range(count)]
    return [value + NOISE[i % len(NOISE)] for i, value in enumerate(flat)]


def test_one_step_is_found_where_it_is() -> None:
    found = find_levels(series((0.0, 7), (0.05, 6)))
    assert [(level.first, level.last) for level in found] == [(0, 6), (7, 12)]
    assert found[1].value - found[0].value == pytest.approx(0.05, abs=0.002)


def test_a_step_up_and_back_gives_three_levels() -> None:
    found = find_levels(series((0.0, 6), (0.06, 5), (0.0, 6)))
    assert [level.entries for level in found] == [6, 5, 6]


def test_a_single_outlier_is_no_step() -> None:
    values = series((0.0, 14))
    values[6] += 0.5
    assert len(find_levels(values)) == 1


def test_the_newest_entry_alone_may_be_a_level() -> None:
    found = find_levels(series((0.0, 11), (0.2, 1)))
    assert found[-1] == Level(11, 11, found[-1].value)
    assert len(found) == 2


def test_few_entries_are_one_level() -> None:
    assert find_levels([0.0, 0.0, 1.0, 1.0]) == (Level(0, 3, 0.5),)
    assert find_levels([]) == ()


def test_equal_values_are_one_level() -> None:
    assert find_levels([3.0] * 40) == (Level(0, 39, 3.0),)


def test_steady_noise_rarely_shows_a_step() -> None:
    rng = np.random.default_rng(8)
    false = sum(len(find_levels(rng.normal(0, 0.02, 12).tolist())) > 1 for _ in range(400))
    assert false <= 12  # about 1 in 100 is promised; 12 of 400 is far above chance


def test_levels_do_not_depend_on_the_unit() -> None:
    values = series((0.0, 7), (0.05, 6))
    moved = find_levels([v + math.log(1e6) for v in values])
    assert [(level.first, level.last) for level in moved] == [(0, 6), (7, 12)]


@settings(max_examples=150)
@given(st.lists(st.integers(0, 9), min_size=5, max_size=11))
def test_the_fit_costs_no_more_than_any_other(raw: list[int]) -> None:
    values = [0.1 * v for v in raw]
    penalty = measured.STEP_PENALTY * max(measured.entry_noise(values), 1e-4) * math.log(len(values))

    def cost(bounds: list[int]) -> float:
        parts = [values[a:b] for a, b in pairwise(bounds)]
        errors = sum(float(np.abs(np.array(part) - np.median(part)).sum()) for part in parts)
        return errors + penalty * (len(parts) - 1)

    found = find_levels(values)
    ours = cost([*(level.first for level in found), len(values)])
    others = []
    for mask in range(1 << (len(values) - 1)):
        inner = [i + 1 for i in range(len(values) - 1) if mask >> i & 1]
        bounds = [0, *inner, len(values)]
        sizes = [b - a for a, b in pairwise(bounds)]
        if all(size >= 2 for size in sizes[:-1]):
            others.append(cost(bounds))
    assert ours <= min(others) + 1e-9


def test_running_errors_equal_their_definition() -> None:
    values = np.random.default_rng(0).normal(size=30).round(1).tolist()
    for end, error in enumerate(measured._errors_from(values, 4), 5):
        part = np.array(values[4:end])
        assert error == pytest.approx(float(np.abs(part - np.median(part)).sum()))
