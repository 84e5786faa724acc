"""The order of pairs, and baselines with two modes."""

from __future__ import annotations

import numpy as np
import pytest

from rpl_measure.sequential import BLOCK_PAIRS, new_first
from rpl_measure.series import find_modes


def test_either_order_is_as_frequent_in_each_block_and_every_place_is_a_coins() -> None:
    orders = [new_first(seed, 40) for seed in range(400)]
    for order in orders:
        blocks = [order[begin : begin + BLOCK_PAIRS] for begin in range(0, 40, BLOCK_PAIRS)]
        assert {sum(block) for block in blocks} == {BLOCK_PAIRS // 2}
    # Four standard errors of 400 coins.
    assert np.abs(np.mean(orders, axis=0) - 0.5).max() < 4 * 0.5 / 20
    assert new_first(3, 7) == new_first(3, 40)[:7]
    assert len(set(orders)) > 390


def noisy(seed: int, count: int, slow: float = 0.0) -> list[float]:
    rng = np.random.default_rng(seed)
    return ((1 + 0.1 * (rng.random(count) < slow)) * (1 + 0.01 * rng.standard_normal(count))).tolist()


def test_two_modes_are_found_and_one_is_not_taken_for_two() -> None:
    assert sum(find_modes(noisy(seed, 40)) is not None for seed in range(200)) <= 2
    found = [find_modes(noisy(seed, 40, slow=0.3)) for seed in range(50)]
    modes = [one for one in found if one is not None]
    assert len(modes) >= 45
    assert np.median([one.slow_share for one in modes]) == pytest.approx(0.3, abs=0.05)
    assert np.median([one.slower_by for one in modes]) == pytest.approx(0.1, abs=0.01)
    assert find_modes([1.0] * 6 + [1.1] * 4) is not None
    assert find_modes([1.0] * 10) is None
    assert find_modes([1.0, 1.1] * 4) is None  # too few
