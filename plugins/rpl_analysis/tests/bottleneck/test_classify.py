"""Labels from constructed figures: every label, every boundary, bounds that prove or leave open."""

from __future__ import annotations

import pytest

from rpl_analysis.bottleneck import ABOVE_CEILING, Confidence, builtin_rules, classify, parse_rules
from rpl_analysis.interfaces import BottleneckLabel
from rpl_core.errors import BadDataError
from rpl_core.model.metric import Exactness, Metric

#: A kernel that nothing limits: every rule is testable and none applies.
HARMLESS = {
    "active_lane_fraction": 1.0,
    "hbm_utilization": 0.1,
    "compute_utilization": 0.1,
    "l2_utilization": 0.1,
    "lds_utilization": 0.1,
    "mfma_utilization": 0.1,
    "valu_utilization": 0.35,
    "theoretical_occupancy": 1.0,
    "grid_fill": 0.8,
    "dependency_wait_fraction": 0.2,
}


RULE = """
[[rule]]
id = "mine"
label = "latency_bound"
priority = 1
required = true
explanation = "text"
conditions = [{{ quantity = "figure", comparison = "{comparison}", threshold = 0.6, source = "text" }}]
"""


def rules():
    return sorted(builtin_rules(), key=lambda rule: (-rule.priority, rule.id))


def metric(value, exactness=Exactness.EXACT, upper=None):
    if value is None:
        return Metric.unknown("fraction", "not recorded")
    return Metric(value, "fraction", exactness, upper=upper)


def label_of(**changes):
    return classify("k", {n: metric(v) for n, v in {**HARMLESS, **changes}.items()}, rules())


def test_kernel_that_no_rule_describes_is_unclassified():
    found = label_of()

    assert found.label is BottleneckLabel.UNCLASSIFIED
    assert found.confidence is Confidence.NONE
    assert found.headroom_fraction == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({"hbm_utilization": 0.7}, BottleneckLabel.MEMORY_BANDWIDTH_BOUND),
        ({"compute_utilization": 0.7}, BottleneckLabel.COMPUTE_THROUGHPUT_LIMITED),
        ({"mfma_utilization": 0.9}, BottleneckLabel.COMPUTE_THROUGHPUT_LIMITED),
        ({"valu_utilization": 0.9}, BottleneckLabel.COMPUTE_THROUGHPUT_LIMITED),
        ({"active_lane_fraction": 0.2}, BottleneckLabel.DIVERGENCE_LIMITED),
        # the three cases that the documents fix
        ({"hbm_utilization": 0.7, "theoretical_occupancy": 0.125}, BottleneckLabel.LATENCY_BOUND),
        ({"active_lane_fraction": 0.1, "dependency_wait_fraction": 0.9}, BottleneckLabel.DIVERGENCE_LIMITED),
        ({"valu_utilization": 0.05, "theoretical_occupancy": 0.125}, BottleneckLabel.UNDER_OCCUPIED),
        ({"grid_fill": 0.1}, BottleneckLabel.UNDER_OCCUPIED),
        ({"dependency_wait_fraction": 0.8}, BottleneckLabel.LATENCY_BOUND),
        ({"grid_fill": 4.0}, BottleneckLabel.LATENCY_BOUND),
    ],
)
def test_each_label_is_reached_with_high_confidence(changes, label):
    found = label_of(**changes)

    assert found.label is label
    assert found.confidence is Confidence.HIGH


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_every_threshold_decides_within_one_percent(rule):
    """Just inside its thresholds a rule holds, just outside any one of them it does not."""
    inside = {
        c.quantity: c.threshold * (1.01 if c.comparison.value == ">=" else 0.99) for c in rule.conditions
    }

    def holds(figures):
        found = classify("k", {n: metric(v) for n, v in {**HARMLESS, **figures}.items()}, [rule])
        return found.label is rule.label

    assert holds(inside)
    for c in rule.conditions:
        outside = c.threshold * (0.99 if c.comparison.value == ">=" else 1.01)
        assert not holds({**inside, c.quantity: outside}), c.quantity


def test_at_least_includes_its_threshold_and_below_does_not():
    assert label_of(hbm_utilization=0.6).label is BottleneckLabel.MEMORY_BANDWIDTH_BOUND
    assert label_of(grid_fill=0.5).label is BottleneckLabel.UNCLASSIFIED


def test_every_threshold_has_a_source():
    assert all(condition.source for rule in rules() for condition in rule.conditions)


def test_unknown_figures_leave_rules_open_and_lower_the_confidence():
    found = label_of(compute_utilization=None, hbm_utilization=0.7)

    assert found.label is BottleneckLabel.MEMORY_BANDWIDTH_BOUND
    assert found.confidence is Confidence.LOW
    assert "compute-rate" in found.reason
    assert found.unknown == ("compute_utilization: not recorded",)


def test_rule_that_a_known_figure_refutes_is_not_left_open():
    found = label_of(active_lane_fraction=None, hbm_utilization=0.7)

    assert found.confidence is Confidence.HIGH


def test_without_any_counter_the_classifier_says_what_it_could_not_know():
    nothing = dict.fromkeys(HARMLESS)
    found = classify("k", {n: metric(v) for n, v in {**nothing, "grid_fill": 4.0}.items()}, rules())

    assert found.label is BottleneckLabel.UNCLASSIFIED
    assert "not testable" in found.reason
    assert len(found.unknown) == len(HARMLESS) - 1
    assert found.headroom_fraction is None


def test_lower_bound_proves_at_least_but_not_below():
    high = classify("k", {"hbm_utilization": metric(0.7, Exactness.LOWER_BOUND)}, rules())
    low = classify("k", {"hbm_utilization": metric(0.1, Exactness.LOWER_BOUND)}, rules())

    assert any(t.rule.id == "bandwidth" for t in high.evidence)
    assert not any(t.rule.id == "bandwidth" for t in low.evidence)
    bandwidth = "bandwidth" in low.reason
    assert bandwidth, "a low lower bound leaves the rule open"


@pytest.mark.parametrize(
    ("value", "comparison", "holds"),
    [
        # What is 0.6 or more is at least 0.6, and not below it; what is 0.599 or more may be either.
        (0.6, ">=", True),
        (0.6, "<", False),
        (0.599, ">=", None),
        (0.599, "<", None),
        (0.7, ">=", True),
        (0.7, "<", False),
    ],
)
def test_a_lower_bound_decides_from_its_threshold_on(value, comparison, holds):
    (rule,) = parse_rules(RULE.format(comparison=comparison), "mine.toml")
    found = classify("k", {"figure": metric(value, Exactness.LOWER_BOUND)}, [rule])

    assert bool(found.evidence) == (holds is True)
    assert ("not testable" in found.reason) == (holds is None)


def test_an_interval_without_a_known_end_decides_by_its_beginning():
    (rule,) = parse_rules(RULE.format(comparison=">="), "mine.toml")
    found = classify("k", {"figure": metric(0.7, Exactness.INTERVAL)}, [rule])

    assert [tested.rule.id for tested in found.evidence] == ["mine"]


def test_interval_across_the_threshold_decides_nothing():
    found = classify("k", {"grid_fill": metric(0.4, Exactness.INTERVAL, upper=0.8)}, rules())

    assert found.label is BottleneckLabel.UNCLASSIFIED


def test_estimate_gives_medium_confidence():
    figures = {n: metric(v) for n, v in HARMLESS.items()}
    figures["valu_utilization"] = metric(0.9, Exactness.ESTIMATE)

    assert classify("k", figures, rules()).confidence is Confidence.MEDIUM


def test_near_miss_is_shown_with_its_figure():
    found = label_of(hbm_utilization=0.58)

    assert [t.rule.id for t in found.near_misses] == ["bandwidth"]


def test_traps_of_a_pure_copy_are_no_input_of_any_rule():
    """L2 hit rate (33 % for a pure copy) and coalescing (25 %) mislead and must not be used."""
    used = {condition.quantity for rule in rules() for condition in rule.conditions}

    assert not any("hit" in name or "coalesc" in name for name in used)


def test_broken_rule_file_names_the_rule():
    with pytest.raises(BadDataError, match="rule 'x'"):
        parse_rules('[[rule]]\nid = "x"\nlabel = "no_such_label"\npriority = 1\n', "mine.toml")


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000], ids=["long number", "deep list"])
def test_rules_that_the_toml_library_chokes_on_are_refused_like_any_other(value):
    with pytest.raises(BadDataError, match=r"mine\.toml is not valid TOML"):
        parse_rules(f"rule = {value}", "mine.toml")


def test_a_figure_above_its_ceiling_is_told_once_with_the_label_that_it_decides():
    """The note of a figure that decided nothing, or of another kind, is not told."""
    above, other = f"{ABOVE_CEILING}: the sheet is wrong", "counted in another pass"
    figures = {name: metric(value) for name, value in {**HARMLESS, "hbm_utilization": 1.2}.items()}
    plain = classify("k", figures, rules())
    assert plain.label is BottleneckLabel.MEMORY_BANDWIDTH_BOUND
    noted = {
        "hbm_utilization": Metric(1.2, "fraction", Exactness.EXACT, note=above),
        "lds_utilization": Metric(0.1, "fraction", Exactness.EXACT, note=above),
    }
    assert classify("k", {**figures, **noted}, rules()).reason == f"{plain.reason} {above}"
    noted = {"hbm_utilization": Metric(1.2, "fraction", Exactness.EXACT, note=other)}
    assert classify("k", {**figures, **noted}, rules()).reason == plain.reason
