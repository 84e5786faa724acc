"""The rule of acceptance (docs/reference/statistics.md), asked by its definition on drawn pairs.

The signed-rank test goes over every pattern of signs, a middle over all means of two, and a guard's interval
over all shifts that the test does not reject.
"""

from __future__ import annotations

import math
import random
import statistics
from bisect import bisect_left
from collections import Counter
from functools import cache
from itertools import combinations_with_replacement, pairwise, product

import pytest

from rpl_measure.sequential import AcceptRule, Decision, decide, last_look, take_look


@cache
def rank_sums(pairs):
    return sorted(
        sum(rank for rank, up in enumerate(signs, 1) if up) for signs in product((0, 1), repeat=pairs)
    )


def p_greater(values):
    """How probable so large a sum of positive ranks is, were each sign a coin's."""
    order = sorted(values, key=abs)
    found = sum(rank for rank, value in enumerate(order, 1) if value > 0)
    sums = rank_sums(len(values))
    return (len(sums) - bisect_left(sums, found)) / len(sums)


def means(values):
    return sorted((a + b) / 2 for a, b in combinations_with_replacement(values, 2))


def lower_end(values):
    """Of the 95 % interval: below it each shift is rejected, by either side at 2.5 %; ``None``: none is."""
    found = means(values)
    edges = [-math.inf, *found, math.inf]
    looked = [found[0] - 1, *((a + b) / 2 for a, b in pairwise(found)), found[-1] + 1]
    for edge, shift in zip(edges, looked, strict=False):
        moved = [value - shift for value in values]
        if 2 * min(p_greater(moved), p_greater([-v for v in moved])) > 0.05:
            return None if math.isinf(edge) else edge
    raise AssertionError("the middle is never rejected")


def gain(log_ratio):
    """Of ln(base / new): the part of the time that is saved."""
    return 1 - math.exp(-log_ratio)


def expected(ratios, guards, rule):
    """(decision, pairs, guards that failed) of the look that ends it, or of the last one that was taken."""
    told = None
    for pairs in sorted({*rule.looks, *rule.screening}):
        if pairs > len(ratios):
            break
        some = ratios[:pairs]
        middle = statistics.median(some if rule.centre == "median" else means(some))
        failed = []
        for name, values in guards.items():
            low = lower_end(values[:pairs])
            if low is None or math.exp(-low) - 1 >= rule.most_guard_loss:
                failed.append(name)
        if pairs not in rule.looks:
            decision = Decision.REJECTED if gain(middle) < rule.screening_gain else Decision.CONTINUE
        elif p_greater(some) < rule.alpha / len(rule.looks) and gain(middle) > rule.least_gain and not failed:
            decision = Decision.ACCEPTED
        elif gain(middle) < rule.futile_gain:
            decision = Decision.REJECTED
        else:
            decision = Decision.INCONCLUSIVE if pairs == max(rule.looks) else Decision.CONTINUE
        told = decision, pairs, tuple(sorted(failed))
        if decision is not Decision.CONTINUE:
            break
    return told


def drawn(seed):
    rng = random.Random(seed)
    rule = AcceptRule(
        alpha=rng.choice((0.05, 0.2)),
        looks=rng.choice(((6, 8, 10), (7, 9), (8,))),
        least_gain=0.02,
        futile_gain=0.01,
        most_guard_loss=rng.choice((0.01, 0.05)),
        screening=rng.choice(((), (3,), (2, 4))),
        screening_gain=rng.choice((0.0, 0.001, 0.02)),
        centre=rng.choice(("median", "pseudo_median")),
    )
    count, spread = rng.randint(1, 11), rng.choice((0.002, 0.01, 0.03))
    centre = rng.choice((-0.03, 0.0, 0.008, 0.015, 0.022, 0.04))
    guards = {
        name: [rng.gauss(rng.choice((0.0, 0.0, -0.02)), 0.002) for _ in range(count)]
        for name in ("makespan", "critical_path")
        if rng.random() < 0.4
    }
    return [rng.gauss(centre, spread) for _ in range(count)], guards, rule


def test_every_measurement_ends_as_the_rule_says():
    came_to = Counter()
    for seed in range(250):
        ratios, guards, rule = drawn(seed)
        wanted, look = expected(ratios, guards, rule), last_look(ratios, guards, rule)
        if wanted is None:
            assert look is None
            continue
        assert (look.decision, look.pairs, look.blocked_by) == wanted, seed
        some = ratios[: look.pairs]
        assert look.p == pytest.approx(p_greater(some))
        middle = statistics.median(some if rule.centre == "median" else means(some))
        assert look.median_log_ratio == pytest.approx(middle)
        assert look.ratio == pytest.approx(math.exp(-statistics.median(means(some))))
        cut = {name: values[: look.pairs] for name, values in guards.items()}
        assert decide(some, cut, rule) is look.decision
        again = take_look(some, cut, rule)
        assert (again.decision, again.p) == (look.decision, look.p)
        came_to[look.decision, look.pairs in rule.looks] += 1
    ways = [(one, True) for one in Decision] + [(Decision.REJECTED, False), (Decision.CONTINUE, False)]
    assert min(came_to[way] for way in ways) >= 3, came_to
