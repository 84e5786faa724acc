"""When the headroom is known, and what an open or a narrowly failed rule costs."""

from __future__ import annotations

import pytest

from rpl_analysis.bottleneck import Confidence, classify, headroom_of, parse_rules
from rpl_core.errors import BadDataError
from rpl_core.model.metric import Exactness, Metric


def share(value, exactness=Exactness.EXACT, **more):
    return Metric(value, "fraction", exactness, **more)


TRACED = {"trace_headroom": share(0.7, Exactness.ESTIMATE, source="thread trace")}


@pytest.mark.parametrize(
    ("bandwidth", "compute", "fraction", "reason"),
    [
        (share(0.3), share(0.2), 0.7, None),
        (share(0.3), share(0.2, Exactness.INTERVAL, upper=0.25), 0.7, None),
        (share(0.3), share(0.2, Exactness.INTERVAL, upper=0.6), None, "between 30% and 60%"),
        (
            share(0.3),
            share(0.1, Exactness.LOWER_BOUND),
            None,
            "compute_utilization is known as a lower",
        ),
        (share(1.2), share(0.1), None, "hbm_utilization is 120% of its ceiling"),
        (share(0.3), None, None, "compute_utilization is unknown"),
    ],
)
def test_headroom_is_known_or_says_why_not(bandwidth, compute, fraction, reason):
    figures = {"hbm_utilization": bandwidth, "compute_utilization": compute}
    found = headroom_of({name: metric for name, metric in figures.items() if metric is not None})
    assert found.fraction == (None if fraction is None else pytest.approx(fraction))
    assert (reason or "") in (found.reason or "")
    assert (found.source is None) == (fraction is None)


def test_thread_trace_gives_the_headroom_where_counters_do_not():
    found = headroom_of({"hbm_utilization": share(0.3), **TRACED})
    assert (found.fraction, found.source) == (0.7, "thread trace")


def test_counters_come_before_the_thread_trace():
    found = headroom_of({"hbm_utilization": share(0.3), "compute_utilization": share(0.0), **TRACED})
    assert found.fraction == pytest.approx(0.7)
    assert found.source.startswith("counters")


def rule(name, label, quantity, priority, *, required=True, **more):
    text = f'[[rule]]\nid = "{name}"\nlabel = "{label}"\npriority = {priority}\nexplanation = "x"\n'
    text += "required = true\n" if required else ""
    text += "".join(f'{key} = "{value}"\n' for key, value in more.items())
    condition = f'{{ quantity = "{quantity}", comparison = ">=", threshold = 0.5, source = "chosen" }}'
    return parse_rules(f"{text}conditions = [{condition}]\n", "test")[0]


WEAK = rule("weak", "latency_bound", "waits", 1)
STRONG = rule("strong", "memory_bandwidth_bound", "moves", 2)
TWIN = rule("twin", "latency_bound", "also_waits", 3)
BACKED = rule("backed", "memory_bandwidth_bound", "moves_too", 4, corroborates="strong")
WAITS = {"waits": share(0.9)}


def test_open_rule_of_another_label_makes_the_confidence_low():
    assert classify("k", WAITS, [STRONG, WEAK]).confidence is Confidence.LOW


def test_open_rule_that_nobody_requires_costs_nothing():
    optional = rule("optional", "memory_bandwidth_bound", "moves", 2, required=False)
    assert classify("k", WAITS, [optional, WEAK]).confidence is Confidence.HIGH


def test_open_rule_of_the_same_label_costs_nothing():
    assert classify("k", WAITS, [TWIN, WEAK]).confidence is Confidence.HIGH


def test_open_rule_costs_one_step_where_the_rule_that_it_corroborates_was_decided():
    found = classify("k", {**WAITS, "moves": share(0.1)}, [BACKED, STRONG, WEAK])
    assert found.confidence is Confidence.MEDIUM
    assert "backed can't be tested, but strong" in found.reason
    assert classify("k", WAITS, [BACKED, STRONG, WEAK]).confidence is Confidence.LOW


@pytest.mark.parametrize(
    ("moves", "confidence"),
    [
        (share(0.48, Exactness.ESTIMATE), Confidence.MEDIUM),
        (share(0.48), Confidence.HIGH),
        (share(0.3, Exactness.ESTIMATE), Confidence.HIGH),
    ],
)
def test_stronger_rule_that_narrowly_fails_by_an_estimate_costs_one_step(moves, confidence):
    assert classify("k", {**WAITS, "moves": moves}, [STRONG, WEAK]).confidence is confidence


@pytest.mark.parametrize("text", ["rule = 3", "[rule]\na = 1", '[[rule]]\nid = ""\n', "[[rule]]\nid = 7\n"])
def test_rule_file_of_another_shape_is_refused(text):
    with pytest.raises(BadDataError, match=r"mine\.toml"):
        parse_rules(text, "mine.toml")
