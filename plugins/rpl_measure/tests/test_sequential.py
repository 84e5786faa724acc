"""accept_v1: each way a look can end, with pairs made for it."""

from __future__ import annotations

import math

import pytest

from rpl_measure.sequential import AcceptRule, Decision, take_look

RULE = AcceptRule()


def gains(percent: float, pairs: int, spread: float = 0.001) -> list[float]:
    """Log ratios around a gain, alternating by ``spread``."""
    centre = -math.log1p(-percent / 100)
    return [centre + spread * (-1) ** i * (1 + i / 100) for i in range(pairs)]


def test_a_clear_gain_is_accepted_at_the_first_look() -> None:
    look = take_look(gains(5, 10), {}, RULE)
    assert look.decision is Decision.ACCEPTED
    assert look.p == 1 / 1024
    assert look.ratio == pytest.approx(0.95, abs=0.001)
    assert look.ratio_interval[0] <= look.ratio <= look.ratio_interval[1]


@pytest.mark.parametrize(("percent", "decision"), [(2.1, Decision.ACCEPTED), (1.9, Decision.CONTINUE)])
def test_the_gain_must_exceed_two_percent(percent: float, decision: Decision) -> None:
    assert take_look(gains(percent, 10), {}, RULE).decision is decision


@pytest.mark.parametrize(("percent", "decision"), [(1.1, Decision.CONTINUE), (0.9, Decision.REJECTED)])
def test_below_one_percent_is_futile(percent: float, decision: Decision) -> None:
    assert take_look(gains(percent, 15), {}, RULE).decision is decision


def test_a_slowdown_is_rejected() -> None:
    assert take_look(gains(-5, 10), {}, RULE).decision is Decision.REJECTED


def test_the_last_look_without_a_decision_is_inconclusive_with_what_it_could_see() -> None:
    look = take_look(gains(1.5, 30, spread=0.05), {}, RULE)
    assert look.decision is Decision.INCONCLUSIVE
    assert look.minimum_detectable_gain is not None
    assert 0.02 < look.minimum_detectable_gain < 0.2


def test_nine_of_ten_pairs_are_not_enough_at_the_first_look() -> None:
    # One pair against: least p 2/1024 * ... = rank 10 negative: W = 45, p = 0.042 > 0.0025.
    ratios = gains(5, 10)
    ratios[0] = -0.2
    assert take_look(ratios, {}, RULE).decision is Decision.CONTINUE


def test_a_regressing_makespan_blocks_the_kernel_gain() -> None:
    look = take_look(gains(5, 10), {"makespan": gains(-3, 10)}, RULE)
    assert look.decision is Decision.CONTINUE
    assert look.blocked_by == ("makespan",)


def test_an_unclear_makespan_blocks_too_and_a_steady_one_does_not() -> None:
    noisy = take_look(gains(5, 10), {"makespan": gains(0, 10, spread=0.05)}, RULE)
    assert noisy.blocked_by == ("makespan",)
    steady = take_look(gains(5, 10), {"makespan": gains(0, 10), "critical_path": gains(0.5, 10)}, RULE)
    assert steady.decision is Decision.ACCEPTED


def test_alpha_is_shared_over_the_looks_and_the_candidates() -> None:
    assert AcceptRule(alpha=0.01).alpha_per_look == 0.0025
    # 10 candidates: 0.005 / 4 = 0.00125 still lets 1/1024 through, 20 candidates do not.
    assert take_look(gains(5, 10), {}, AcceptRule(alpha=0.005)).decision is Decision.ACCEPTED
    assert take_look(gains(5, 10), {}, AcceptRule(alpha=0.0025)).decision is Decision.CONTINUE


def test_looks_follow_each_other() -> None:
    assert [RULE.next_look(n) for n in (0, 10, 14, 20, 30)] == [10, 15, 15, 30, None]
