"""Labels and confidence against a table of the rules and a tester of its own, on both sides of every bound.

The tester asks what the truth may be: a figure stands for all values that its exactness leaves possible, a
condition is decided if they agree on it. Table and words: docs/classifier.md.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import inf

import pytest

from rpl_analysis.bottleneck import builtin_rules, classify, headroom_of
from rpl_core.model.metric import Exactness, Metric

#: Strongest first: id, label, the rule that looks at the same limit, conditions.
RULES = (
    (
        "divergent-lanes",
        "divergence_limited",
        "",
        (("active_lane_fraction", "<", 0.5), ("hbm_utilization", "<", 0.6)),
    ),
    ("compute-rate", "compute_throughput_limited", "", (("compute_utilization", ">=", 0.6),)),
    ("mfma-busy", "compute_throughput_limited", "compute-rate", (("mfma_utilization", ">=", 0.8),)),
    ("valu-busy", "compute_throughput_limited", "", (("valu_utilization", ">=", 0.8),)),
    (
        "bandwidth-with-few-waves",
        "latency_bound",
        "",
        (("hbm_utilization", ">=", 0.4), ("theoretical_occupancy", "<", 0.25)),
    ),
    ("bandwidth", "memory_bandwidth_bound", "", (("hbm_utilization", ">=", 0.6),)),
    ("l2-bandwidth", "memory_bandwidth_bound", "", (("l2_utilization", ">=", 0.6),)),
    ("lds-bandwidth", "memory_bandwidth_bound", "", (("lds_utilization", ">=", 0.6),)),
    (
        "idle-valu-few-waves",
        "under_occupied",
        "",
        (
            ("valu_utilization", "<", 0.3),
            ("theoretical_occupancy", "<", 0.25),
            ("compute_utilization", "<", 0.4),
        ),
    ),
    ("grid-too-small", "under_occupied", "", (("grid_fill", "<", 0.5),)),
    (
        "dependency-wait",
        "latency_bound",
        "",
        (("dependency_wait_fraction", ">=", 0.5), ("hbm_utilization", "<", 0.6)),
    ),
    (
        "nothing-saturated",
        "latency_bound",
        "",
        (
            ("hbm_utilization", "<", 0.4),
            ("compute_utilization", "<", 0.4),
            ("theoretical_occupancy", ">=", 0.25),
            ("grid_fill", ">=", 1.0),
        ),
    ),
)
BOUNDS = sorted({(quantity, bound) for *_, parts in RULES for quantity, _, bound in parts})
QUANTITIES = sorted({quantity for quantity, _ in BOUNDS})
#: Relative to a bound: far, just beyond a near-miss, inside one, and right at it.
PLACES = (0.2, 0.89, 0.91, 1 - 1e-9, 1, 1 + 1e-9, 1.09, 1.11, 1.6)


def _possible(metric: Metric | None) -> tuple[float, ...]:
    """The least and the largest value that the truth may have."""
    if metric is None or metric.value is None:
        return (-inf, inf)
    if metric.partial or metric.exactness is Exactness.LOWER_BOUND:
        return (metric.value, inf)
    return (metric.value, metric.value if metric.upper is None else metric.upper)


def _decided(condition: tuple[str, str, float], figures: dict[str, Metric]) -> bool | None:
    quantity, comparison, bound = condition
    answers = {(v >= bound) == (comparison == ">=") for v in _possible(figures.get(quantity))}
    return answers.pop() if len(answers) == 1 else None


def _tested(figures: dict[str, Metric]) -> dict[str, bool | None]:
    tested: dict[str, bool | None] = {}
    for name, _, _, conditions in RULES:
        answers = [_decided(condition, figures) for condition in conditions]
        tested[name] = False if False in answers else None if None in answers else True
    return tested


def _is_near(conditions: tuple[tuple[str, str, float], ...], figures: dict[str, Metric]) -> bool:
    answers = {condition: _decided(condition, figures) for condition in conditions}
    failed = [condition for condition, holds in answers.items() if holds is False]
    ends = [(bound, list(_ends(figures[quantity]))) for quantity, _, bound in failed]
    return None not in answers.values() and all(
        any(0.9 * bound <= end <= 1.1 * bound for end in found) for bound, found in ends
    )


def _ends(metric: Metric) -> list[float]:
    return [end for end in (metric.value, metric.upper) if end is not None]


def _expected(figures: dict[str, Metric]) -> dict[str, object]:
    tested = _tested(figures)
    near = {n for n, _, _, parts in RULES if tested[n] is False and _is_near(parts, figures)}
    winner = next((rule for rule in RULES if tested[rule[0]]), None)
    stronger = list(RULES[: RULES.index(winner)]) if winner else list(RULES)
    rivals = [rule for rule in stronger if winner is None or rule[1] != winner[1]]
    left_open = [rule for rule in rivals if tested[rule[0]] is None]
    untested = [name for name, _, same, _ in left_open if not same or tested[same] is None]
    backed = [name for name, *_ in left_open if name not in untested]
    close = [
        name
        for name, _, _, parts in rivals
        if name in near
        and any(
            figures[part[0]].exactness is not Exactness.EXACT and _decided(part, figures) is False
            for part in parts
        )
    ]
    inexact = winner and any(figures[part[0]].exactness is not Exactness.EXACT for part in winner[3])
    confidence = "medium" if inexact or backed or close else "high"
    return {
        "label": winner[1] if winner else "unclassified",
        "confidence": "none" if winner is None else "low" if untested else confidence,
        "evidence": [name for name, holds in tested.items() if holds],
        "near": [name for name, *_ in RULES if name in near],
        "unknown": [q for q in QUANTITIES if figures[q].value is None],
        # What the reason names: with a label in three sentences, without one in one.
        "named": [", ".join(untested), backed, ", ".join(close)] if winner else ", ".join(untested + backed),
    }


def _said(reason: str, named: object) -> bool:
    if isinstance(named, str):
        want = f"no rule is proven; not testable with this recording: {named}"
        return reason == (want if named else "every rule was tested and none applies")
    untested, backed, close = named
    sentences = (
        ("Stronger rules that this recording can't test: ", untested),
        ("A stronger rule narrowly fails by an inexact figure: ", close),
    )
    for sentence, ids in sentences:
        if (f"{sentence}{ids}." in reason) != bool(ids) or (sentence in reason) != bool(ids):
            return False
    return reason.count("can't be tested, but") == len(backed) and all(
        f"{name} can't" in reason for name in backed
    )


def _random_figure(rng: random.Random, quantity: str) -> Metric:
    bounds = [bound for q, bound in BOUNDS if q == quantity]
    value = rng.choice(bounds) * rng.choice(PLACES)
    kind = rng.choices(("exact", "estimate", "bound", "interval", "partial", "unknown"), (8, 2, 1, 1, 1, 1))[
        0
    ]
    return _figure(value, kind, value * rng.choice((1, 1.05, 1.3, 3)))


def _figure(value: float, kind: str, upper: float) -> Metric:
    if kind == "unknown":
        return Metric.unknown("fraction", "not counted")
    if kind == "interval":
        return Metric(value, "fraction", Exactness.INTERVAL, upper=upper)
    exactness = {"exact": Exactness.EXACT, "bound": Exactness.LOWER_BOUND}.get(kind, Exactness.ESTIMATE)
    return Metric(value, "fraction", exactness, partial=kind == "partial")


def _walks() -> Iterator[dict[str, Metric]]:
    """Every condition of every rule across its bound, while the others of the rule hold and no rule else."""
    quiet = dict.fromkeys(QUANTITIES, 0.05) | {
        "active_lane_fraction": 1.0,
        "valu_utilization": 0.5,
        "theoretical_occupancy": 0.7,
        "grid_fill": 0.75,
    }
    for _, _, _, conditions in RULES:
        held = {q: bound * (1.5 if sign == ">=" else 0.5) for q, sign, bound in conditions}
        for walked, _, bound in conditions:
            for place in PLACES:
                for kind in ("exact", "estimate", "bound", "interval", "partial"):
                    figures = {q: _figure(v, "exact", v) for q, v in (quiet | held).items()}
                    yield figures | {walked: _figure(bound * place, kind, bound * place * 1.2)}


@pytest.fixture(scope="module")
def rules():
    return sorted(builtin_rules(), key=lambda rule: (-rule.priority, rule.id))


def _check(figures: dict[str, Metric], rules) -> None:
    found, expected = classify("kernel", figures, rules), _expected(figures)
    assert {
        "label": found.label,
        "confidence": found.confidence.value,
        "evidence": [t.rule.id for t in found.evidence],
        "near": [t.rule.id for t in found.near_misses],
        "unknown": [line.partition(":")[0] for line in found.unknown],
        "named": expected["named"],
    } == expected, figures
    assert _said(found.reason, expected["named"]), (found.reason, expected)


def test_every_rule_across_each_of_its_bounds(rules) -> None:
    for figures in _walks():
        _check(figures, rules)


def test_figures_of_any_exactness(rules) -> None:
    rng = random.Random(29)
    for _ in range(1500):
        _check({quantity: _random_figure(rng, quantity) for quantity in QUANTITIES}, rules)


def test_the_headroom_is_what_the_nearer_ceiling_leaves() -> None:
    """Of what the truth may be: unknown where that is open, above one, or wider than 1 %."""
    rng = random.Random(17)
    known = 0
    for _ in range(800):
        shares = {}
        for name in ("hbm_utilization", "compute_utilization"):
            value = rng.choice((0.0, 0.3, 0.5, 0.95, 1.0, 1.0001))
            kind = rng.choices(
                ("exact", "estimate", "interval", "bound", "partial", "unknown"), (6, 3, 4, 1, 1, 1)
            )
            shares[name] = _figure(value, kind[0], value + rng.choice((0.004, 0.009, 0.011, 0.3)))
        ends = [_possible(metric) for metric in shares.values()]
        low, high = max(end[0] for end in ends), max(end[1] for end in ends)
        found = headroom_of(shares)
        if high > 1 or high - low > 0.01:
            assert found.fraction is None, shares
            assert found.reason, shares
        else:
            known += 1
            assert found.fraction == pytest.approx(1 - high), shares
            estimated = any(metric.exactness is Exactness.ESTIMATE for metric in shares.values())
            assert found.source is not None, shares
            assert ("estimate" in found.source) == estimated, shares
    assert known > 100
