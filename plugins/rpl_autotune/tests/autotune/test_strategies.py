"""What the strategies choose, in simulation."""

from __future__ import annotations

import math
import sys
from itertools import product, takewhile

import numpy as np
import pytest

from rpl_autotune.interfaces import Evaluated, Phase, SearchSpace, StrategyRequest, random_draws
from rpl_autotune.regression import FEWEST, Trust, effects_of, held_out
from rpl_autotune.strategies import NeighboursStrategy, OptunaStrategy, RegressionStrategy
from rpl_core.errors import MissingError

SIZES = (8, 16, 32, 48, 64, 96, 128, 256)


def space_of_blocks():
    rows = product(SIZES, SIZES, (1, 2, 4), ("row", "column"))
    return SearchSpace(("BM", "BN", "UNROLL", "ORDER"), tuple(rows), 0)


def time_ms(row):
    """Fast at 64 x 32; too large blocks fail."""
    bm, bn, unroll, order = row
    if bm * bn > 8192:
        return None
    away = abs(math.log2(bm / 64)) * 0.5 + abs(math.log2(bn / 32)) * 0.4
    return 2.0 + away + 0.3 * (unroll == 4) + 0.8 * (order == "column") + 0.5 * (bm in (48, 96))


def search(strategy, space, budget, *, seed=0, time_of=time_ms, count=1, **settings):
    """The history and what was proposed, ``count`` at a time."""
    running = strategy.start(StrategyRequest(space, budget, seed, **settings))
    history, proposed = [], []
    while len(history) < budget:
        some = running.propose(tuple(history), (), min(count, budget - len(history)))
        if not some:
            break
        proposed += some
        history += [Evaluated(p.index, time_of(space.configurations[p.index])) for p in some]
    return history, proposed


def best_of(history):
    return min(item.runtime_ms for item in history if item.runtime_ms is not None)


def test_the_regression_finds_a_known_optimum_in_spite_of_failures():
    history, proposed = search(RegressionStrategy(), space_of_blocks(), 36)
    assert best_of(history) < 2.35  # of 384 configurations 6 are as fast
    assert proposed[0].phase is Phase.SEED
    assert Phase.CONFIRM in {p.phase for p in proposed[-5:]}
    assert len({p.index for p in proposed}) == 36
    told = [(p.predicted_ms, h.runtime_ms) for p, h in zip(proposed, history, strict=True) if p.predicted_ms]
    good = [abs(math.log(a / b)) for a, b in told if b is not None]
    assert np.median(good) < 0.2
    confirmed = [p.predicted_ms for p in proposed if p.phase is Phase.CONFIRM]
    assert max(confirmed[-5:]) < 1.75 * 2.6  # pruned above 1.75 times the best prediction


def test_equal_searches_are_equal_and_others_are_not():
    space = space_of_blocks()
    first, _ = search(RegressionStrategy(), space, 13, seed=3)
    assert search(RegressionStrategy(), space, 13, seed=3)[0] == first
    assert search(RegressionStrategy(), space, 13, seed=4)[0] != first


def test_the_seed_is_at_most_a_quarter():
    _, proposed = search(
        RegressionStrategy(), space_of_blocks(), 24, seed_fraction=0.25, time_of=lambda _row: 1.0
    )
    assert [p.phase for p in proposed].count(Phase.SEED) == 6
    assert Phase.CONFIRM not in {p.phase for p in proposed}  # equal times: there is nothing to predict


def test_several_at_once_are_different_and_a_small_space_ends():
    space = SearchSpace(("A",), tuple((n,) for n in range(13)), 0)
    history, _ = search(RegressionStrategy(), space, 40, count=4, time_of=lambda row: 1.0 + row[0])
    assert sorted(item.index for item in history) == list(range(13))


def drawn(space, seed, count, time_of):
    """A history of nothing but the random draws of one search."""
    rows = random_draws(space, seed)[:count]
    return [Evaluated(int(row), time_of(space.configurations[row])) for row in rows]


def noise(seed):
    generator = np.random.default_rng(seed)
    return lambda _row: float(generator.lognormal(0, 0.1))


@pytest.mark.parametrize("seed", range(2))
def test_pure_noise_is_not_believed(seed):
    space = space_of_blocks()
    judged = held_out(space, drawn(space, seed, 30, noise(seed)), seed)
    assert judged.trust is Trust.NONE
    assert "not clearly better" in judged.reason


@pytest.mark.long
def test_pure_noise_is_never_believed():
    space = space_of_blocks()
    judged = [held_out(space, drawn(space, s, n, noise(s)), s) for s in range(60) for n in (10, 20, 60)]
    assert not [one for one in judged if one.trust is Trust.CLEAR]


def test_a_law_is_believed():
    space = space_of_blocks()
    judged = held_out(space, drawn(space, 0, 60, time_ms), 0)
    assert judged.trust is Trust.CLEAR
    assert judged.r2 > 0.6
    assert 0.5 <= judged.r2_low < judged.r2


def test_draws_that_fail_are_made_up_for():
    """Half of the configurations fail, and of 60 measurements 13 are a draw's turn."""
    space = space_of_blocks()
    history, _ = search(
        RegressionStrategy(),
        space,
        60,
        time_of=lambda row: None if row[3] == "row" else 1.0 + row[0] + row[1],
    )
    known = {item.index: item.runtime_ms for item in history}
    drawn = takewhile(known.__contains__, random_draws(space, 0).tolist())
    assert sum(known[index] is not None for index in drawn) >= 12


def test_a_sample_that_leans_to_fast_configurations_earns_no_trust():
    """A law beside the best one and noise elsewhere: cross-validation on what a search measures would be
    content, and the model knows nothing of the space.
    """
    space = space_of_blocks()
    generator = np.random.default_rng(5)
    times = {row: float(generator.lognormal(2, 0.5)) for row in space.configurations}
    times.update({row: time_ms(row) for row in times if row[0] in (48, 64, 96) and row[1] in (16, 32, 48)})
    near = [
        n for n, row in enumerate(space.configurations) if row[0] in (48, 64, 96) and row[1] in (16, 32, 48)
    ]
    leaning = [Evaluated(n, times[space.configurations[n]]) for n in near]
    few = held_out(space, leaning, 3)
    assert (few.trust, few.r2) == (Trust.NONE, None)  # however many there are: none of them was drawn
    assert "random" in few.reason
    judged = held_out(space, [*leaning, *drawn(space, 3, 20, times.get)], 3)
    assert judged.trust is not Trust.CLEAR


def test_a_search_keeps_drawing_at_random_however_sure_it_is():
    space = space_of_blocks()
    history, proposed = search(
        RegressionStrategy(), space, 80, seed=2, time_of=lambda row: 1.0 + row[0] + row[1]
    )
    order = random_draws(space, 2).tolist()
    measured = {item.index for item in history}
    assert len([index for index in order[:20] if index in measured]) >= 16
    later = [p for p in proposed[40:] if p.phase is Phase.EXPLORE and p.index in order[:30]]
    assert len(later) >= 4


def test_each_configuration_is_equally_likely_at_each_place_of_the_draws():
    space = SearchSpace(("A", "B"), tuple(product((1, 2, 3), ("x", "y", "z")))[:7], 0)
    orders = np.asarray([random_draws(space, seed) for seed in range(4000)])
    assert (np.sort(orders, axis=1) == np.arange(7)).all()
    counts = np.asarray([np.bincount(orders[:, place], minlength=7) for place in range(7)])
    # Chi-squared of a table with fixed sums, 36 degrees of freedom: 68 is exceeded once in 1000.
    assert ((counts - 4000 / 7) ** 2 / (4000 / 7)).sum() < 68


def test_the_first_draws_are_spread_over_the_space():
    """Their mean of anything that follows a law is nearer to that of the space than of independent draws."""
    space = space_of_blocks()
    times = np.asarray([float(row[0] + 2 * row[1]) for row in space.configurations])
    means = np.asarray([times[random_draws(space, seed)[:16]].mean() for seed in range(200)])
    independent = times.std() / 4
    assert abs(means.mean() - times.mean()) < 0.2 * independent
    assert means.std() < 0.8 * independent


def test_doubt_costs_no_more_draws_than_trust():
    """One in eight is drawn and one in eight a step beside the best; the others go where a gain is likely."""
    space = space_of_blocks()
    _, proposed = search(RegressionStrategy(), space, 40, seed=1, time_of=noise(1))
    order = random_draws(space, 1)[:20].tolist()
    assert [p.predicted_ms is None for p in proposed[24:]].count(True) == 4
    assert sum(p.index in order and p.predicted_ms is None for p in proposed[24:]) == 2


def test_a_short_search_has_draws_enough_to_be_judged():
    space = space_of_blocks()
    history, _ = search(RegressionStrategy(), space, 24, seed=5, time_of=noise(5))
    assert held_out(space, history, 5).samples >= FEWEST


@pytest.mark.long
def test_a_model_that_knows_little_of_the_space_is_rarely_called_clear():
    """Laws under noise that no model can predict: R² of the very law is below 0.3."""
    space = space_of_blocks()
    law = np.asarray([0.12 * abs(math.log2(row[0] / 64)) for row in space.configurations])
    clear = 0
    for seed in range(60):
        generator = np.random.default_rng([seed, 1])
        times = np.exp(law + generator.normal(0, 2 * law.std(), len(space)))
        assert np.var(law) / np.var(np.log(times)) < 0.3
        rows = random_draws(space, seed)[: (10, 15, 25, 40)[seed % 4]].tolist()
        clear += held_out(space, [Evaluated(n, float(times[n])) for n in rows], seed).trust is Trust.CLEAR
    assert clear <= 2  # of 60


@pytest.mark.parametrize("scale", [0.02, pytest.param(0.4, marks=pytest.mark.long)])
def test_intervals_of_predictions_hold_as_often_as_they_say(scale):
    """Whatever the noise of the times, which the model has to guess."""
    space = space_of_blocks()
    inside = []
    for seed in range(3):
        generator = np.random.default_rng(seed)
        noisy = {
            row: (time_ms(row) or 9.0) * float(generator.lognormal(0, scale)) for row in space.configurations
        }
        history, proposed = search(RegressionStrategy(), space, 90, seed=seed, time_of=noisy.get)
        for said, got in zip(proposed, history, strict=True):
            assert (said.predicted_interval_ms is None) == (said.predicted_ms is None)
            if said.predicted_interval_ms is not None:
                low, high = said.predicted_interval_ms
                assert low < said.predicted_ms < high
                inside.append(low <= got.runtime_ms <= high)
    assert len(inside) > 100
    assert 0.9 <= np.mean(inside) <= 0.99


def test_effects_are_those_of_the_law():
    space = SearchSpace(("A", "B", "C"), tuple(product((1, 2), (1, 2), (1, 2))), 0)
    values = np.asarray([a + 0.5 * b + 1.0 * (a == b) for a, b, c in space.configurations])
    found = effects_of(space, values)
    # Variances by hand: a 0.25, b 0.0625, a with b 0.25, c nothing.
    assert dict(found.single) == pytest.approx({"A": 4 / 9, "B": 1 / 9, "C": 0.0})
    assert found.pairs[0] == ("A", "B", pytest.approx(4 / 9))


def test_optuna_stays_inside_the_space():
    pytest.importorskip("optuna")
    space = space_of_blocks()
    history, proposed = search(OptunaStrategy(), space, 40, seed=1)
    assert len({p.index for p in proposed}) == 40
    assert best_of(history) < 3.0


def test_neighbours_do_what_the_regression_does_where_no_model_helps():
    """Equal times: there is nothing to predict, so both choose the same."""
    space = space_of_blocks()
    led, _ = search(RegressionStrategy(), space, 40, seed=5, time_of=lambda _row: 1.0)
    unled, proposed = search(NeighboursStrategy(), space, 40, seed=5, time_of=lambda _row: 1.0)
    assert unled == led
    assert len({p.index for p in proposed}) == 40
    assert {p.phase for p in proposed} == {Phase.SEED, Phase.EXPLORE}
    assert not any(p.predicted_ms for p in proposed)


def test_neighbours_find_more_than_draws_do():
    space = space_of_blocks()
    walked = [best_of(search(NeighboursStrategy(), space, 60, seed=seed)[0]) for seed in range(8)]
    blind = [best_of(drawn(space, seed, 60, time_ms)) for seed in range(8)]
    assert np.mean(walked) < np.mean(blind)


def test_neighbours_end_with_the_space_and_propose_several_at_once():
    space = SearchSpace(("A",), tuple((n,) for n in range(13)), 0)
    history, _ = search(NeighboursStrategy(), space, 40, count=4, time_of=lambda row: 1.0 + row[0])
    assert sorted(item.index for item in history) == list(range(13))


@pytest.mark.parametrize("absent", ["sklearn", "scipy", "threadpoolctl"])
def test_without_its_libraries_the_regression_says_what_to_do(monkeypatch, absent):
    monkeypatch.setitem(sys.modules, absent, None)
    said = RegressionStrategy().missing()
    assert "pip install 'rpl-autotune[regression]', or take the strategy neighbours" in said
    with pytest.raises(MissingError):
        search(RegressionStrategy(), space_of_blocks(), 10)
    space = space_of_blocks()
    judged = held_out(space, drawn(space, 0, 30, time_ms), 0)
    assert (judged.trust, judged.r2, judged.samples > 8) == (Trust.NONE, None, True)
    assert "pip install 'rpl-autotune[regression]'" in judged.reason
