"""Families of tests, who decides, and when a measurement is settled."""

from __future__ import annotations

import pytest

from rpl_compare.comparison import is_settled
from rpl_compare.comparison.judging import (
    CompareRule,
    Method,
    Outcome,
    Question,
    Verdict,
    decide,
    judge_items,
    unpaired_evidence,
)
from rpl_measure.samples import KernelObservation, Kind, RunObservation

RULE = CompareRule()
WIGGLE = (0, 3, -2, 1, -3, 2, -1, 4)


def runs(count: int = 8, **kernels: float) -> list[RunObservation]:
    """Runs of kernels with these times in ns, each a little different."""
    made = []
    for number in range(count):
        found = {}
        for place, (name, time) in enumerate(kernels.items()):
            value = time * (1 + 0.001 * WIGGLE[(number + 3 * place) % len(WIGGLE)])
            found[name] = KernelObservation(value, round(value), 1, 0)
        whole = float(sum(kernel.sum_ns for kernel in found.values()))
        made.append(RunObservation(found, {Kind.RUNTIME: whole}, processes=1))
    return made


def judged(base, new, kernels: tuple[str, ...] = (), alpha: float = 0.01):
    rule = CompareRule(alpha=alpha)
    question = Question(rule, Method(paired=False, alpha=alpha), unpaired_evidence, kernels)
    return {item.key.name: item for item in judge_items(base, new, question)}


def test_p_values_are_corrected_over_the_deciding_items_only() -> None:
    small = {f"small{i}": 100.0 for i in range(20)}
    found = judged(runs(big=1e6, **small), runs(big=1.1e6, **{k: 1.2 * v for k, v in small.items()}))
    # Two deciding items (kernel time, big), both with the least p of 8 against 8: 2 / C(16, 8) = 2 / 12870.
    assert found["big"].evidence.p == pytest.approx(2 / 12870)
    assert found["big"].p_adjusted == pytest.approx(2 * 2 / 12870)
    # The twenty small ones are a family of their own.
    assert found["small0"].p_adjusted == pytest.approx(20 * 2 / 12870)
    assert [item.key.name for item in found.values() if item.gated] == ["runtime", "big"]


def test_a_share_on_either_side_makes_a_kernel_decide() -> None:
    found = judged(runs(big=1e6, grown=100.0), runs(big=1e6, grown=50_000.0))
    assert found["grown"].gated


def test_application_times_come_first_then_kernels_by_time() -> None:
    found = judged(runs(a=1000.0, b=9000.0, c=5000.0), runs(a=1000.0, b=9000.0, c=5000.0))
    assert list(found) == ["runtime", "b", "c", "a"]


def test_an_empty_gate_gives_no_verdict() -> None:
    assert decide((), ()).outcome is Outcome.NO_VERDICT
    assert decide((), ()).worst is None


def test_one_regression_outweighs_open_items_and_a_block_outweighs_both() -> None:
    found = tuple(judged(runs(a=1e6, b=1e6), runs(a=1.2e6, b=1e6)).values())
    assert decide(found, ()).outcome is Outcome.REGRESSION
    blocked = decide(found, ("synthetic",))
    assert (blocked.outcome, blocked.reasons) == (Outcome.NO_VERDICT, ("synthetic",))
    assert blocked.worst_change == pytest.approx(0.2, abs=0.01)


def test_items_with_the_same_reason_share_a_line() -> None:
    found = tuple(judged(runs(3, a=1e6, b=2e6), runs(3, a=1e6, b=2e6)).values())
    (reason,) = decide(found, ()).reasons
    assert reason.startswith("application: kernel time, b, a: so few runs")


@pytest.mark.parametrize(
    ("change", "count", "settled"),
    [
        (1.0, 12, True),  # proven unchanged
        (1.2, 12, True),  # proven slower
        (0.8, 12, True),  # proven faster
        (0.8, 5, False),  # surely not slower, and faster is not proven yet among two items
        (1.2, 5, False),
        (1.0, 3, False),
    ],
)
def test_a_measurement_goes_on_until_gains_are_proven_too(change: float, count: int, settled: bool) -> None:
    found = judged(runs(count, a=1e6, b=1e6), runs(count, a=change * 1e6, b=1e6))
    assert is_settled(tuple(found.values()), RULE) is settled


def test_faster_beyond_doubt_but_not_beyond_the_limit_is_open_and_passes() -> None:
    found = judged(runs(12, a=1e6), runs(12, a=0.971e6))
    assert found["a"].verdict is Verdict.INCONCLUSIVE
    assert found["a"].excludes_regression
    assert decide(tuple(found.values()), ()).outcome is Outcome.PASS
    assert is_settled(tuple(found.values()), RULE)  # it does not look faster than the limit


@pytest.mark.parametrize(("count", "known"), [(3, False), (12, True)])
def test_a_detectable_change_needs_so_many_runs_that_their_least_p_is_significant(count, known) -> None:
    """Two items share alpha 0.01: 3 against 3 have a least p of 0.1, 12 against 12 of 2 / 2704156."""
    found = judged(runs(count, a=1e6), runs(count, a=1e6))
    assert {item.minimum_detectable_change is not None for item in found.values()} == {known}
