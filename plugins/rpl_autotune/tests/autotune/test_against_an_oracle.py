"""Whole searches against an oracle: scripted devices answer, and the result is worked out a second time.

The oracle shares no line with the product. It reads what the devices answered, and takes a confidence
interval for what it is by definition: all shifts that the exact signed-rank test does not reject, the test
being counted over every pattern of signs.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

from rpl_autotune.interfaces import Job, Outcome, Reading
from rpl_core.interfaces.executor import Answer, Workers

SIZE, RUNS = 6, 3
#: What executors of others may call a time.
NO_TIMES = ((), (0.0,), (-1.0, 2.0, 2.0))  # infinite ones a reading refuses itself
FAILURES = ("build_failed", "failed", "time_limit", "wrong", "no_time")


class Scripted(Workers):
    """A device with noise on which some configurations fail, are wrong or leave no time.

    What it answers is kept: ``searched`` by configuration, ``final`` by configuration.
    """

    def __init__(self, seed):
        self.draw = np.random.default_rng([seed, 26])
        self.true_ms = self.draw.choice([1.0, 1.03, 1.1, 1.5], SIZE) * self.draw.choice([0.01, 1.0, 700.0])
        self.noise = float(self.draw.choice([0.002, 0.02, 0.08]))
        self.searched, self.final, self._answers = {}, {}, []

    def places(self):
        return ("scripted",)

    def submit(self, task):
        job = Job.model_validate_json(task.argument)
        kept = self.final if job.in_turns else self.searched
        for variant in job.variants:
            kept[variant.index] = self._reading(variant.index, job.rounds if job.in_turns else RUNS)
        readings = tuple(kept[variant.index] for variant in job.variants)
        outcome = Outcome(number=job.number, device="scripted", readings=readings)
        self._answers.append(Answer(job.number, "scripted", outcome.model_dump_json()))

    def _reading(self, index, count):
        times = tuple((self.true_ms[index] * self.draw.lognormal(0, self.noise, count)).tolist())
        kind = self.draw.random()
        if kind < 0.06:  # it says that it is wrong, and how fast it was at that
            state = str(self.draw.choice(FAILURES))
            return Reading(index=index, state=state, times_ms=tuple(t / 9 for t in times), reason="scripted")
        if kind < 0.12:
            times = NO_TIMES[self.draw.integers(len(NO_TIMES))]
        return Reading(index=index, state="ok", times_ms=times, origin="measured")

    def wait(self, timeout_s):
        answers, self._answers = tuple(self._answers), []
        return answers

    def close(self):
        pass


# The oracle.


def usable(reading):
    times = reading.times_ms
    return reading.state == "ok" and len(times) > 0 and all(math.isfinite(t) and t > 0 for t in times)


@cache
def rank_sums(pairs):
    """The sum of positive ranks for every pattern of signs, the smallest first."""
    patterns = product((0, 1), repeat=pairs)
    return sorted(sum(rank for rank, up in enumerate(signs, 1) if up) for signs in patterns)


def p_value(differences):
    """Of the two-sided exact signed-rank test, without ties."""
    order = sorted(differences, key=abs)
    found = sum(rank for rank, value in enumerate(order, 1) if value > 0)
    sums = rank_sums(len(differences))
    below, above = bisect_right(sums, found), len(sums) - bisect_left(sums, found)
    return min(1.0, 2 * min(below, above) / len(sums))


def accepted_shifts(differences):
    """From where to where the test rejects no shift at 5 %; infinite where it rejects none at all.

    It changes its mind only where a mean of two differences is, so one shift between each two will do.
    """
    means = sorted((a + b) / 2 for n, a in enumerate(differences) for b in differences[n:])
    edges = [-math.inf, *means, math.inf]
    looked = [means[0] - 1, *((a + b) / 2 for a, b in pairwise(means)), means[-1] + 1]
    kept = [n for n, shift in enumerate(looked) if p_value([d - shift for d in differences]) > 0.05]
    return edges[kept[0]], edges[kept[-1] + 1]


def times_as_fast(one, other):
    """How many times as fast as ``other`` it is: from where to where, or ``None`` where nothing is known."""
    low, high = accepted_shifts([math.log(b) - math.log(a) for a, b in zip(one, other, strict=True)])
    return None if math.isinf(low) or math.isinf(high) else (math.exp(low), math.exp(high))


def expected(device, rounds, default):
    """Winner, its time, whether it is fresh, and what it is compared with: interval by role."""
    search = {n: statistics.median(r.times_ms) for n, r in device.searched.items() if usable(r)}
    ranked = sorted(search, key=lambda n: (search[n], n))
    if not ranked:
        return None
    fresh = {n: r.times_ms for n, r in device.final.items() if usable(r)}
    finalists = [n for n in ranked[:2] if n in fresh]
    if rounds == 0 or not finalists:
        return ranked[0], search[ranked[0]], False, {}, search
    winner, others = finalists[0], {"runner_up": finalists[1]} if len(finalists) > 1 else {}
    if others:
        said = times_as_fast(fresh[winner], fresh[others["runner_up"]])
        if said is not None and said[1] < 1:
            winner, others = others["runner_up"], {"runner_up": winner}
    if default in fresh and default != winner:
        others["default"] = default
    compared = {role: times_as_fast(fresh[winner], fresh[n]) for role, n in others.items()}
    return winner, statistics.median(fresh[winner]), True, compared, search


def verdict(interval):
    if interval is None:
        return "too few"
    return "faster" if interval[0] > 1 else "slower" if interval[1] < 1 else "unproven"


def judge(search_on, seed, folder):
    """One search judged; what it came to."""
    rounds, default = (10, 0, 10, 4, 7)[seed % 5], seed % SIZE
    device = Scripted(seed)
    # A search over all of its configurations, so that only the answers decide.
    document = search_on(
        device, folder, size=SIZE, budget=SIZE, rounds=rounds, seed=seed, exhaustive=True, default=default
    )
    wanted = expected(device, rounds, default)
    for item in document.evaluations:
        reading = device.searched[item.parameters["N"]]
        assert (item.runtime_ms is not None) == usable(reading) == (item.state == "ok")
    assert document.failed_configs == sum(not usable(r) for r in device.searched.values())
    best = document.best_config
    if wanted is None:
        assert (best, document.final) == (None, None)
        return "nothing runs"
    winner, time_ms, fresh, compared, search = wanted
    assert best.parameters == {"N": winner}
    assert (best.runtime_ms, best.search_ms) == pytest.approx((time_ms, search[winner]))
    assert best.fresh is fresh
    if not fresh:
        assert document.final is None
        return "not fresh"
    final = document.final
    for role, found in (("runner_up", final.best_over_runner_up), ("default", final.best_over_default)):
        assert (found is not None) == (role in compared)
        if found is None:
            continue
        interval = compared[role]
        assert found.proven == (verdict(interval) == "faster")
        assert (found.interval is None) == (interval is None)
        if interval is not None:
            assert found.interval == pytest.approx(interval)
            assert interval[0] * (1 - 1e-9) <= found.ratio <= interval[1] * (1 + 1e-9)
    first = min((n for n in search if n in device.final), key=lambda n: (search[n], n))
    assert final.swapped == (winner not in (first,) and "runner_up" in compared)
    return ("swapped, " if final.swapped else "") + verdict(compared.get("runner_up"))


def test_winner_proof_and_failures_are_those_of_the_oracle(tmp_path, search_on):
    came_to = Counter(judge(search_on, seed, tmp_path) for seed in range(150))
    # Each way to end was there often enough, so none of them was left untried.
    ways = ("not fresh", "too few", "faster", "unproven", "swapped, faster")
    assert min(came_to[one] for one in ways) >= 3
    assert came_to.keys() <= {*ways, "nothing runs"}


@pytest.mark.parametrize(("unit", "in_ms"), [("ns", 1e-6), ("us", 1e-3), ("ms", 1.0), ("s", 1e3)])
def test_a_printed_number_is_a_time_in_its_unit(rpl_cli, tmp_path, unit, in_ms):
    """What a program prints is its parameter, so the smallest is the best whatever the unit."""
    (tmp_path / "space.json").write_text('{"parameters": {"N": [70, 3, 250, 0]}}')
    words = ("--space", tmp_path / "space.json", "--cmd-template", "/bin/echo took {N}", "--runs", "1")
    timed = ("--time-regex", "took ([0-9]+)", "--time-unit", unit, "--exhaustive", "--no-cache")
    found = rpl_cli("autotune", *words, *timed, "--confirm-rounds", "0", "--json", "-o", tmp_path / "o")
    document = found.assert_ok().json()
    assert document["best_config"]["parameters"] == {"N": 3}
    times = {e["parameters"]["N"]: e["runtime_ms"] for e in document["evaluations"]}
    assert times.pop(0) is None
    assert times == pytest.approx({n: n * in_ms for n in (70, 3, 250)})
