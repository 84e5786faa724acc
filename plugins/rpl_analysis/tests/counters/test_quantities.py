"""Quantities: the best formula whose counters are there, with honest exactness and named gaps."""

from __future__ import annotations

import pytest

from rpl_analysis.counters.join import join_counters
from rpl_analysis.counters.quantities import derive_quantities
from rpl_core.model.device import Formula, Quantity, Refinement
from rpl_core.model.metric import Exactness, Origin

EXACT, LOWER, INTERVAL, ESTIMATE = (
    Exactness.EXACT,
    Exactness.LOWER_BOUND,
    Exactness.INTERVAL,
    Exactness.ESTIMATE,
)


@pytest.fixture
def derive(counter_pass, recording, make_device):
    """``derive([quantity, ...], {"A": 1.0}, ...)``: values by name, and the diagnostics."""

    def run(quantities, *launches, **fields):
        kernel = join_counters(recording(counter_pass(*launches))).kernels["kernel"]
        device = make_device(*quantities, **fields)
        found, diagnostics = derive_quantities(kernel, device, Origin.MEASURED)
        return found.values, diagnostics

    return run


def _reads(*extra: Formula) -> Quantity:
    return Quantity(
        "reads",
        "B",
        (
            Formula("128 * B + 64 * max0(R - B)", EXACT, "doc"),
            Formula("64 * R", INTERVAL, "doc", upper_expression="128 * R"),
            *extra,
        ),
    )


def test_total_and_mean_per_launch(derive):
    values, _ = derive([_reads()], {"R": 10, "B": 4}, {"R": 20, "B": 20})
    assert values["reads"].total.value == 128 * 24 + 64 * 6
    assert values["reads"].per_launch.value == (128 * 24 + 64 * 6) / 2
    assert values["reads"].launches == 2


def test_a_metric_carries_its_origin(derive):
    metric = derive([_reads()], {"R": 10, "B": 4})[0]["reads"].per_launch
    assert (metric.unit, metric.exactness, metric.origin) == ("B", EXACT, Origin.MEASURED)
    assert (metric.formula, metric.source) == ("128 * B + 64 * max0(R - B)", "doc")
    assert (metric.counters, metric.missing) == (("B", "R"), ())


def test_an_absent_counter_leaves_an_interval_and_is_named(derive):
    metric = derive([_reads()], {"R": 10})[0]["reads"].per_launch
    assert (metric.value, metric.upper, metric.exactness) == (640, 1280, INTERVAL)
    assert metric.missing == ("B",)
    assert metric.formula == "64 * R .. 128 * R"


def test_an_interval_of_one_point_is_exact_and_lacks_nothing(derive):
    metric = derive([_reads()], {"R": 0})[0]["reads"].per_launch
    assert (metric.value, metric.upper, metric.exactness, metric.missing) == (0, None, EXACT, ())


def test_nothing_usable_is_null_with_a_reason_and_the_counters_of_the_best_formula(derive):
    metric = derive([_reads()], {"OTHER": 1})[0]["reads"].per_launch
    assert (metric.value, metric.missing) == (None, ("B", "R"))
    assert metric.reason == "not recorded: B, R"


def test_a_long_list_of_missing_counters_is_cut_in_the_reason_only(derive):
    quantity = Quantity("q", "1", (Formula("A + B + C + D + E + F", EXACT, "doc"),))
    metric = derive([quantity], {"X": 1})[0]["q"].per_launch
    assert metric.reason == "not recorded: A, B, C, D and 2 more"
    assert metric.missing == tuple("ABCDEF")


def test_a_clamped_remainder_is_told(derive):
    values, diagnostics = derive([_reads()], {"R": 3, "B": 4})
    assert values["reads"].per_launch.value == 512
    assert [d.code for d in diagnostics] == ["counters.negative_remainder"]
    assert "R - B is negative" in diagnostics[0].fact


def test_absent_as_zero_gives_a_lower_bound(derive):
    formulas = (
        Formula("64 * (A + B)", EXACT, "doc"),
        Formula("64 * (A + B)", LOWER, "doc", absent_as_zero=True),
    )
    metric = derive([Quantity("f", "FLOP", formulas)], {"A": 2})[0]["f"].per_launch
    assert (metric.value, metric.exactness, metric.missing, metric.counters) == (128, LOWER, ("B",), ("A",))


def test_absent_as_zero_needs_at_least_one_counter(derive):
    formulas = (Formula("A + B", LOWER, "doc", absent_as_zero=True),)
    assert derive([Quantity("f", "FLOP", formulas)], {"C": 2})[0]["f"].per_launch.value is None


@pytest.mark.parametrize(
    ("counters", "exactness"),
    [
        ({"N": 0, "LANES": 9, "SLOTS": 1}, EXACT),
        ({"N": 5, "LANES": 128, "SLOTS": 2}, LOWER),
        ({"N": 5, "LANES": 127, "SLOTS": 2}, ESTIMATE),
        ({"N": 5}, ESTIMATE),
    ],
)
def test_a_refinement_applies_when_its_condition_is_zero(derive, counters, exactness):
    refinements = (Refinement("N", EXACT), Refinement("wave_size * SLOTS - LANES", LOWER))
    quantity = Quantity("f", "FLOP", (Formula("64 * N", ESTIMATE, "doc", refinements=refinements),))
    assert derive([quantity], counters)[0]["f"].per_launch.exactness is exactness


def test_a_refinement_must_hold_for_the_same_launches(derive):
    refinements = (Refinement("Z", EXACT),)
    quantity = Quantity("f", "FLOP", (Formula("N", ESTIMATE, "doc", refinements=refinements),))
    assert derive([quantity], {"N": 1, "Z": 0}, {"N": 1})[0]["f"].per_launch.exactness is ESTIMATE


def test_ratios_do_not_scale_with_launches(derive):
    quantity = Quantity("lanes", "lane", (Formula("T / S", EXACT, "doc"),), additive=False)
    value = derive([quantity], {"T": 64, "S": 1}, {"T": 32, "S": 1})[0]["lanes"]
    assert value.per_launch.value == value.total.value == 48


def test_an_undefined_ratio_says_which_divisor_is_zero(derive):
    quantity = Quantity("lanes", "lane", (Formula("T / S", EXACT, "doc"),), additive=False)
    metric = derive([quantity], {"T": 64, "S": 0})[0]["lanes"].per_launch
    assert (metric.value, metric.reason) == (None, "S is zero")


def test_a_formula_with_an_unknown_device_fact_does_not_apply(derive):
    quantity = Quantity("util", "fraction", (Formula("A / compute_units", EXACT, "doc"),), additive=False)
    assert derive([quantity], {"A": 8})[0]["util"].per_launch.value == 2
    metric = derive([quantity], {"A": 8}, compute_units=None)[0]["util"].per_launch
    assert (metric.value, metric.reason) == (None, "a device fact in A / compute_units is unknown")


def test_counters_of_different_launches_make_no_figure(counter_pass, recording, make_device):
    passes = recording(counter_pass({"A": 1}, {"X": 1}), counter_pass({"X": 1}, {"B": 1}))
    kernel = join_counters(passes).kernels["kernel"]
    device = make_device(Quantity("q", "1", (Formula("A + B", EXACT, "doc"),)))
    metric = derive_quantities(kernel, device, Origin.MEASURED)[0].values["q"].per_launch
    assert (metric.value, metric.reason) == (None, "its counters were never read for the same launch")


def _parts() -> list[Quantity]:
    return [
        Quantity("total", "B", sum_of=("reads", "writes")),
        _reads(),
        Quantity("writes", "B", (Formula("64 * W", EXACT, "doc"),)),
    ]


def test_a_sum_of_exact_parts_is_exact(derive):
    metric = derive(_parts(), {"R": 2, "B": 2, "W": 3})[0]["total"].per_launch
    assert (metric.value, metric.exactness, metric.formula) == (256 + 192, EXACT, "reads + writes")
    assert metric.counters == ("B", "R", "W")


def test_a_sum_with_an_interval_is_an_interval(derive):
    metric = derive(_parts(), {"R": 2, "W": 3})[0]["total"].per_launch
    assert (metric.value, metric.upper, metric.exactness) == (128 + 192, 256 + 192, INTERVAL)
    assert metric.missing == ("B",)


def test_a_sum_that_lacks_a_part_is_a_lower_bound(derive):
    metric = derive(_parts(), {"R": 2, "B": 2})[0]["total"].per_launch
    assert (metric.value, metric.exactness, metric.missing) == (256, LOWER, ("W",))


def test_a_sum_without_any_part_is_unknown(derive):
    metric = derive(_parts(), {"X": 2})[0]["total"].per_launch
    assert (metric.value, metric.missing) == (None, ("B", "R", "W"))


def test_a_sum_of_itself_ends_and_says_so(derive):
    values, _ = derive([Quantity("a", "B", sum_of=("b",)), Quantity("b", "B", sum_of=("a",))], {"X": 1})
    assert values["a"].per_launch.value is None


def test_a_bad_formula_costs_one_quantity(derive):
    bad = Quantity("bad", "B", (Formula("open('x')", EXACT, "doc"),))
    values, diagnostics = derive([bad, _reads()], {"R": 1, "B": 1})
    assert values["bad"].per_launch.value is None
    assert values["reads"].per_launch.value == 128
    assert [d.code for d in diagnostics] == ["counters.bad_formula"]


def test_groups_that_took_turns_give_estimates_only(derive):
    both = Quantity("both", "B", (Formula("A + 10 * B", EXACT, "doc"),))
    values, _ = derive([both, Quantity("one", "B", (Formula("A", EXACT, "doc"),))], {"A": 1.0}, {"B": 2.0})
    assert (values["both"].per_launch.value, values["both"].per_launch.exactness) == (21.0, ESTIMATE)
    assert values["one"].per_launch.exactness is ESTIMATE
