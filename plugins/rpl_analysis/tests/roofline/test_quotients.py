"""What bounds, intervals and estimates leave of a quotient; checked against all values they allow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpl_analysis.counters.quantities import largest, quotient, scaled
from rpl_core.model.metric import Exactness, Metric, Origin

_KINDS = st.sampled_from([Exactness.EXACT, Exactness.INTERVAL, Exactness.LOWER_BOUND])


def _metric(value: float, kind: Exactness, width: float = 0.0) -> Metric:
    return Metric(
        value, "", kind, Origin.MEASURED, upper=value + width if kind is Exactness.INTERVAL else None
    )


def _allowed(metric: Metric, share: float) -> float:
    """A true value that ``metric`` allows: ``share`` 0..1 of the way up."""
    assert metric.value is not None
    if metric.exactness is Exactness.LOWER_BOUND:
        return metric.value + share * 1000
    return metric.value if metric.upper is None else metric.value + share * (metric.upper - metric.value)


@given(
    st.builds(_metric, st.floats(0, 1e6), _KINDS, st.floats(0, 1e6)),
    st.builds(_metric, st.floats(1e-3, 1e6), _KINDS, st.floats(0, 1e6)),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_the_true_quotient_is_within_what_is_claimed(top: Metric, bottom: Metric, s: float, t: float) -> None:
    truth = _allowed(top, s) / _allowed(bottom, t)
    claimed = quotient(top, bottom, "1", "a / b")
    assert claimed.value is not None
    if claimed.exactness is Exactness.EXACT:
        assert claimed.value == pytest.approx(truth)
    if claimed.exactness in (Exactness.LOWER_BOUND, Exactness.INTERVAL):
        assert claimed.value <= truth * (1 + 1e-9)
    if claimed.exactness is Exactness.INTERVAL:
        assert claimed.upper is not None
        assert truth <= claimed.upper * (1 + 1e-9)


def test_a_lower_bound_below_the_line_is_called_an_estimate(metric):
    assert quotient(metric(10), metric(2, Exactness.LOWER_BOUND), "1", "f").exactness is Exactness.ESTIMATE


def test_a_bound_beside_an_estimate_is_an_estimate_of_a_part(metric):
    for top, bottom in ((Exactness.LOWER_BOUND, Exactness.ESTIMATE), (Exactness.LOWER_BOUND,) * 2):
        result = quotient(metric(10, top), metric(2, bottom), "1", "f")
        assert (result.value, result.exactness, result.partial) == (5, Exactness.ESTIMATE, True)


def test_the_largest_of_estimates_and_an_unknown_one_is_no_bound(metric):
    result = largest((metric(0.4, Exactness.ESTIMATE), metric(None)), "fraction", "f")
    assert (result.value, result.exactness, result.partial) == (0.4, Exactness.ESTIMATE, True)


def test_exact_zero_over_anything_is_exact_zero(metric):
    result = quotient(metric(0), metric(2, Exactness.LOWER_BOUND), "1", "f")
    assert (result.value, result.exactness) == (0, Exactness.EXACT)


def test_an_unknown_side_gives_its_reason_and_missing_counters(metric):
    result = quotient(metric(1), metric(None), "1", "f")
    assert (result.value, result.reason, result.missing) == (None, "not recorded: X", ("X",))


def test_a_zero_divisor_gives_a_reason(metric):
    assert (
        quotient(metric(1), metric(0), "1", "flops / bytes").reason == "the divisor of flops / bytes is zero"
    )


def test_an_interval_from_zero_has_no_upper_end(metric):
    result = quotient(metric(8), metric(0, Exactness.INTERVAL, upper=4), "1", "f")
    assert (result.value, result.upper, result.exactness) == (2, None, Exactness.LOWER_BOUND)


def test_an_estimate_over_an_interval_uses_its_middle(metric):
    top, bottom = metric(12, Exactness.ESTIMATE), metric(2, Exactness.INTERVAL, upper=4)
    assert quotient(top, bottom, "1", "f").value == 4


def test_the_weakest_origin_remains(metric):
    synthetic = Metric(2.0, "", Exactness.EXACT, Origin.SYNTHETIC)
    assert quotient(metric(1), synthetic, "1", "f").origin is Origin.SYNTHETIC


def test_scaling_keeps_exactness_and_scales_both_ends(metric):
    result = scaled(metric(2, Exactness.INTERVAL, upper=4), 0.5, "fraction", "f")
    assert (result.value, result.upper, result.exactness) == (1, 2, Exactness.INTERVAL)


def test_the_largest_with_an_unknown_member_is_a_lower_bound(metric):
    result = largest((metric(0.4), metric(None)), "fraction", "f")
    assert (result.value, result.exactness) == (0.4, Exactness.LOWER_BOUND)


def test_the_largest_of_overlapping_figures_spans_both(metric):
    result = largest((metric(0.4), metric(0.1, Exactness.INTERVAL, upper=0.9)), "fraction", "f")
    assert (result.value, result.upper, result.exactness) == (0.4, 0.9, Exactness.INTERVAL)


def test_the_largest_of_nothing_known_is_unknown(metric):
    assert largest((metric(None), metric(None)), "fraction", "f").reason == "not recorded: X"
