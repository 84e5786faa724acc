"""False and missed acceptances of the whole decision on pairs from the declared model; see benchmarks/."""

from __future__ import annotations

import numpy as np
import pytest

from rpl_optimize.contracts import PolicyPart
from rpl_testkit.pair_model import TimingModel, judge_modelled

#: 1 000 per CV in the long version, which takes half a minute.
TRIALS = (pytest.param(120), pytest.param(1000, marks=pytest.mark.long))


def accepted(model: TimingModel, trials: int, *, forced: bool = False) -> int:
    generator = np.random.default_rng([20_260_302, round(1000 * model.cv), round(1000 * model.gain)])
    policy = PolicyPart(force_noisy=forced)
    verdicts = [judge_modelled(model, generator, policy=policy).verdict for _ in range(trials)]
    return verdicts.count("accepted")


@pytest.mark.parametrize("trials", TRIALS)
@pytest.mark.parametrize("cv", [0.02, 0.05, 0.10])
def test_at_most_1_percent_of_null_candidates_are_accepted(cv: float, trials: int) -> None:
    assert accepted(TimingModel(cv), trials, forced=True) <= trials / 100


@pytest.mark.parametrize("trials", TRIALS)
def test_99_percent_of_5_percent_gains_are_found(trials: int) -> None:
    assert accepted(TimingModel(0.02, gain=0.05), trials) >= 0.99 * trials


def test_a_gain_that_the_application_cannot_feel_is_not_accepted() -> None:
    """5 % of a kernel with a tenth of the path is 0.5 % of the application: 2 % were asked for."""
    assert accepted(TimingModel(0.01, gain=0.05, share=0.1), 20) == 0


def test_noise_over_10_percent_accepts_nothing_without_force() -> None:
    model = TimingModel(0.25, gain=0.6)
    assert accepted(model, 20) < accepted(model, 20, forced=True)
