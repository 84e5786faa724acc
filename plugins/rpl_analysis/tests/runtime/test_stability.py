"""Hand-computed spreads: sample standard deviation over n - 1, CV, class limits inclusive."""

from __future__ import annotations

import pytest

from rpl_analysis.contracts.profile import StabilityClass
from rpl_analysis.runtime.timing import classify_cv, stability_of


def test_spread_of_three_runs_uses_n_minus_one():
    found = stability_of([9.0, 10.0, 11.0])

    assert found.mean_ms == 10.0
    assert found.stddev_ms == pytest.approx(1.0)
    assert found.cv == pytest.approx(0.1)
    assert found.classification is StabilityClass.MODERATE


def test_one_run_has_a_mean_and_no_spread():
    found = stability_of([5.0])

    assert (found.mean_ms, found.stddev_ms, found.cv, found.classification) == (5.0, None, None, None)


@pytest.mark.parametrize(
    ("cv", "expected"),
    [
        (0.0, StabilityClass.STABLE),
        (0.05, StabilityClass.STABLE),
        (0.0500001, StabilityClass.MODERATE),
        (0.10, StabilityClass.MODERATE),
        (0.1000001, StabilityClass.UNSTABLE),
    ],
)
def test_class_limits_belong_to_the_better_class(cv, expected):
    assert classify_cv(cv) is expected
