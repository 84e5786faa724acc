"""Verdicts, gates and histories from drawn evidence, by the rules of docs/compare.md written a second time.

Values lie on both sides of every limit of the rule, so that each condition is met from both.
"""

from __future__ import annotations

import itertools
import math
import random
import re
import statistics
from collections.abc import Sequence
from typing import Any

import pytest

from rpl_compare.comparison import _launches, _noise, documents, is_settled
from rpl_compare.comparison.documents import Series, judge_series
from rpl_compare.comparison.judging import (
    CompareRule,
    Evidence,
    Judged,
    Method,
    Outcome,
    Question,
    Verdict,
    decide,
    excludes_regression,
    judge,
    judge_items,
    paired_evidence,
    unpaired_evidence,
)
from rpl_measure.samples import ItemKey, KernelObservation, Kind, RunObservation, Sample
from rpl_measure.series import Level

LIMIT = math.log1p(0.03)
NEAR = 1e-9


def _mad_sigma(values: Sequence[float]) -> float:
    """1.4826 MAD, or where more than half are equal the deviation (docs/reference/statistics.md, rule 6)."""
    middle = statistics.median(values)
    scaled = 1.4826 * statistics.median(abs(value - middle) for value in values)
    return scaled or statistics.stdev(values)


def test_every_verdict_over_the_limits_of_the_rule() -> None:
    """A change needs significance and size; "unchanged" an interval within; noise and drift refuse both."""
    shifts = (-0.2, -LIMIT - NEAR, -LIMIT, 0.0, LIMIT, LIMIT + NEAR, 0.2)
    halves = (None, 0.0, 0.001, 0.25)
    told = set()
    for shift, half, p, least_p, family, cv, drift, forced in itertools.product(
        shifts,
        halves,
        (0.01, 0.0101),
        (0.0005, 0.006),
        (1, 2),
        (None, 0.1, 0.1001),
        (False, True),
        (False, True),
    ):
        interval = None if half is None else (shift - half, shift + half)
        found = Evidence(shift=shift, interval=interval, p=p, least_p=least_p, cv=cv, drift_matters=drift)
        rule = CompareRule(forced=forced)
        verdict, reason = judge(found, p, rule, Method(paired=False, alpha=0.01), family)

        single_runs = math.log(1 + cv) if cv is not None else math.inf
        apart = interval is not None and (interval[0] > single_runs or interval[1] < -single_runs)
        noisy = cv is not None and cv > 0.1 and not apart
        refused = not forced and (drift or noisy)
        inside = interval is not None and interval[0] >= -LIMIT and interval[1] <= LIMIT
        if refused:
            expected, words = Verdict.INCONCLUSIVE, "drift" if drift else f"vary by {cv:.1%}"
        elif p <= 0.01 and shift > LIMIT:
            expected, words = Verdict.REGRESSED, "slower beyond the limit, adjusted p 0.01"
        elif p <= 0.01 and shift < -LIMIT:
            expected, words = Verdict.IMPROVED, "faster beyond the limit, adjusted p 0.01"
        elif inside:
            expected, words = Verdict.UNCHANGED, "within the limits with 0.99 confidence"
        elif interval is None or least_p * family > 0.01:
            expected, words = Verdict.INCONCLUSIVE, "so few runs can't be significant at 0.01"
        else:
            low, high = (math.exp(end) - 1 for end in interval)
            expected, words = Verdict.INCONCLUSIVE, f"interval {low:+.1%} .. {high:+.1%} reaches beyond"
        case = (found, family, forced)
        assert (verdict, words in reason) == (expected, True), (case, reason)
        assert (" among 2 comparisons" in reason) == ("so few" in reason and family == 2), case
        safe = interval is not None and not refused and interval[1] <= LIMIT
        assert excludes_regression(found, rule) is safe, case
        told.add(words.split()[0])
    assert len(told) == 7


def test_how_many_runs_or_pairs_are_needed_is_the_first_number_that_can_be_significant() -> None:
    """Least p of n against n runs: 2 / C(2n, n); of n pairs: 2 / 2**n."""
    nothing = Evidence(shift=0.5, interval=None, p=0.5, least_p=1.0)
    for alpha, family in itertools.product((0.05, 0.01, 0.001), (1, 3, 20)):
        each = alpha / family
        for paired, least in ((False, lambda n: 2 / math.comb(2 * n, n)), (True, lambda n: 2 / 2**n)):
            first = next(n for n in range(1, 99) if least(n) <= each)
            _, reason = judge(nothing, 0.9, CompareRule(alpha=alpha), Method(paired, alpha), family)
            (named,) = re.findall(r"at least (\d+) (?:pairs|runs per side) are needed", reason)
            assert int(named) == first, (alpha, family, paired)
            assert ("pairs" in reason) is paired


def test_what_two_samples_say_of_drawn_times() -> None:
    rng = random.Random(1)
    for _ in range(40):
        base = [rng.uniform(90, 110) for _ in range(rng.randint(5, 9))]
        new = [rng.uniform(95, 118) for _ in range(rng.randint(5, 9))]
        if rng.random() < 0.4:  # more than half of them equal
            base = [100.0] * (len(base) - 1) + [101.0]
        left, right = [[math.log(x) for x in side] for side in (base, new)]
        method = Method(paired=False, alpha=0.05)
        found = unpaired_evidence(Sample(tuple(base)), Sample(tuple(new)), CompareRule(), method)
        differences = [b - a for a in left for b in right]
        assert found.shift == pytest.approx(statistics.median(differences), abs=1e-12)
        assert found.interval is not None
        assert found.interval[0] <= found.shift <= found.interval[1]
        spreads = _mad_sigma(left), _mad_sigma(right)
        assert found.sigma == pytest.approx(math.sqrt((spreads[0] ** 2 + spreads[1] ** 2) / 2))
        assert found.least_p == pytest.approx(2 / math.comb(len(base) + len(new), len(new)))
        noises = []
        for side in (base, new):
            middle = statistics.median(side)
            noises.append(1.4826 * statistics.median(abs(x - middle) for x in side) / middle)
        assert found.cv == pytest.approx(max(noises))

        count = min(len(base), len(new))
        pairs = Sample(tuple(base[:count])), Sample(tuple(new[:count]))
        told = paired_evidence(*pairs, CompareRule(), Method(paired=True, alpha=0.05))
        ratios = [b - a for a, b in zip(left[:count], right[:count], strict=True)]
        walsh = [(ratios[i] + ratios[j]) / 2 for i in range(count) for j in range(i, count)]
        assert told.shift == pytest.approx(statistics.median(walsh), abs=1e-12)
        assert told.least_p == 2 / 2**count
        assert told.sigma == pytest.approx(_mad_sigma(ratios))
        assert told.cv == pytest.approx(_mad_sigma(ratios) / 2**0.5)
        assert not told.drift_matters


def test_a_drift_matters_from_more_than_half_of_the_limit_on() -> None:
    flat = tuple(100.0 + 0.001 * (i % 3) for i in range(20))
    for percent in (0.5, 1.4, 1.6, 2.5, -1.4, -1.6):
        # Steps of one size each: the halves are apart by half of the whole way, which is ``percent``.
        rising = tuple(100 * (1 + percent / 100) ** (2 * i / 20) for i in range(20))
        for sides in ((rising, flat), (flat, rising)):
            samples = (Sample(sides[0]), Sample(sides[1]))
            found = unpaired_evidence(*samples, CompareRule(), Method(paired=False, alpha=0.01))
            assert found.drift_matters is (abs(percent) > 1.5), percent


def _observed(times: dict[str, float], wiggle: float) -> RunObservation:
    kernels = {}
    for name, time in times.items():
        value = time * (1 + wiggle)
        kernels[name] = KernelObservation(value, round(value), 1, 0)
    whole = float(sum(kernel.sum_ns for kernel in kernels.values()))
    return RunObservation(kernels, {Kind.RUNTIME: whole}, processes=1)


def test_who_decides_and_in_which_order_of_drawn_kernels() -> None:
    rng = random.Random(2)
    for _ in range(12):
        names = [f"k{i}" for i in range(6)]
        base = {name: rng.choice((5.0, 90.0, 110.0, 3000.0, 7000.0)) for name in names}
        new = {name: time * rng.choice((1.0, 1.0, 1.3, 0.7)) for name, time in base.items()}
        if rng.random() < 0.5:
            del new[rng.choice(names)]
        wiggles = [0.0004 * ((5 * i) % 7 - 3) for i in range(7)]
        sides = [[_observed(side, wiggle) for wiggle in wiggles] for side in (base, new)]
        for asked in ((), ("k1", "k3")):
            bad = {ItemKey(Kind.RUNTIME, "runtime"): "another number of processes"}
            incomparable = bad if rng.random() < 0.3 else {}
            method = Method(paired=False, alpha=0.01)
            question = Question(CompareRule(), method, unpaired_evidence, asked, incomparable)
            found = judge_items(sides[0], sides[1], question)
            both = [name for name in names if name in new and (not asked or name in asked)]
            sums = [sum(side.values()) for side in (base, new)]
            shares = {n: max(base[n] / sums[0], new[n] / sums[1]) for n in both}
            assert {i.key.name for i in found} == {"runtime", *both}
            assert found[0].key.kind is Kind.RUNTIME
            order = [shares[item.key.name] for item in found[1:]]
            assert order == sorted(order, reverse=True)
            for item in found:
                if item.key.kind is Kind.KERNEL:
                    decides = bool(asked) or shares[item.key.name] >= 0.01
                    assert item.gated is decides, (item.key, shares)
                else:
                    assert item.gated is (not asked and not incomparable)
                    assert (item.reason == "another number of processes") is bool(incomparable)
            for gated in (True, False):
                family = [item for item in found if item.gated is gated and item.evidence.p is not None]
                # Holm (Scand. J. Statist. 6, 1979): the running maximum of (m - i) p.
                least = 0.0
                for rank, item in enumerate(sorted(family, key=lambda one: one.evidence.p or 0.0)):
                    least = max(least, min(1.0, (len(family) - rank) * (item.evidence.p or 0.0)))
                    assert item.p_adjusted == pytest.approx(least), item.key


def _judged(name: str, rng: random.Random, alike: bool) -> Judged:
    verdict = Verdict.REGRESSED if alike else rng.choice(list(Verdict))
    evidence = Evidence(
        shift=rng.choice((None, -0.1, -0.01, 0.02, 0.3)), cv=rng.choice((None, 0.04, 0.06, 0.2))
    )
    launches = (rng.choice((1.0, 2.0)), rng.choice((1.0, 2.0)))
    return Judged(
        key=ItemKey(rng.choice((Kind.KERNEL, Kind.KERNEL, Kind.MAKESPAN)), name),
        gated=rng.random() < 0.7,
        base=Sample((1.0,), launches=launches[0]),
        new=Sample((1.0,), launches=launches[1]),
        evidence=evidence,
        verdict=verdict,
        reason="reason a" if alike else rng.choice(("reason a", "reason b")),
        excludes_regression=verdict in (Verdict.UNCHANGED, Verdict.IMPROVED)
        or (verdict is Verdict.INCONCLUSIVE and rng.random() < 0.5),
        p_adjusted=None,
        minimum_detectable_change=rng.choice((None, 0.04)),
        runs_needed=None,
    )


def test_the_gate_and_the_notes_over_drawn_items() -> None:
    rng = random.Random(3)
    outcomes = set()
    for _ in range(300):
        alike = rng.random() < 0.3
        items = tuple(_judged(f"n{i}", rng, alike) for i in range(rng.randint(0, 9)))
        blocking = rng.choice(((), (), ("synthetic", "other device")))
        gate = decide(items, blocking)
        gated = [item for item in items if item.gated]
        slow = [item for item in gated if item.verdict is Verdict.REGRESSED]
        unsure = [item for item in gated if not item.excludes_regression]
        if blocking or not gated:
            expected, named = Outcome.NO_VERDICT, []
        elif slow:
            expected, named = Outcome.REGRESSION, slow
        else:
            expected, named = (Outcome.INCONCLUSIVE, unsure) if unsure else (Outcome.PASS, [])
        assert (gate.outcome, gate.gated_items) == (expected, len(gated))
        outcomes.add(expected)
        if named:
            groups: dict[str, list[str]] = {}
            for item in named:
                called = "application: makespan" if item.key.kind is Kind.MAKESPAN else item.key.name
                groups.setdefault(item.reason, []).append(called)
            lines = []
            for reason, names in groups.items():
                rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
                lines.append(f"{', '.join(names[:5])}{rest}: {reason}")
            assert list(gate.reasons) == lines
        elif blocking:
            assert gate.reasons == blocking
        shifts = [item.evidence.shift for item in gated if item.evidence.shift is not None]
        worst = math.exp(max(shifts)) - 1 if shifts else None
        assert gate.worst_change == (None if worst is None else pytest.approx(worst))

        looks_faster = any(
            item.gated
            and item.verdict is Verdict.INCONCLUSIVE
            and item.evidence.shift is not None
            and item.evidence.shift < -LIMIT
            for item in items
        )
        answer = decide(items, ()).outcome
        done = answer is Outcome.REGRESSION or (answer is Outcome.PASS and not looks_faster)
        assert is_settled(items, CompareRule()) is done

        noisy = [item for item in gated if (item.evidence.cv or 0.0) > 0.05]
        notes = list(_noise(items, {}))
        assert [note.count for note in notes] == ([len(noisy)] if noisy else [])
        for note in notes:
            top = max(noisy, key=lambda item: (item.evidence.cv, item.key.name))
            assert f"with {top.evidence.cv:.1%}, where " in note.fact
            unseen = top.minimum_detectable_change is None
            assert ("no change can be found" in note.fact) is unseen
            assert ("changes below 4.0% are not found" in note.fact) is not unseen
        other: list[Any] = [
            item for item in items if item.key.kind is Kind.KERNEL and item.base.launches != item.new.launches
        ]
        notes = list(_launches(items, {}))
        assert [note.count for note in notes] == ([len(other)] if other else [])
        for note in notes:
            first = other[0]
            counts = f"with {first.base.launches:g} against {first.new.launches:g} per run"
            assert f"largest: {first.key.name} {counts}" in note.fact
    assert outcomes == set(Outcome)


def test_histories_of_drawn_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step up that the newest level has not left is a regression once two entries show it."""
    rng = random.Random(4)
    verdicts = set()
    for _ in range(400):
        lengths = [rng.randint(2, 4) for _ in range(rng.randint(1, 4))]
        lengths[-1] = rng.randint(1, 3) if len(lengths) > 1 else 5
        if sum(lengths) < 5:
            continue
        values = [rng.choice((0.0, 0.02, 0.04, 0.08, -0.05)) for _ in lengths]
        starts = [sum(lengths[:i]) for i in range(len(lengths))]
        levels = [Level(s, s + n - 1, v) for s, n, v in zip(starts, lengths, values, strict=True)]
        noise, forced = rng.choice((0.001, 0.5)), rng.random() < 0.3
        monkeypatch.setattr(documents, "find_levels", lambda _, levels=levels: tuple(levels))
        monkeypatch.setattr(documents, "entry_noise", lambda _, noise=noise: noise)
        names = tuple(f"e{i}" for i in range(sum(lengths)))
        series = Series(ItemKey(Kind.KERNEL, "k"), names, (0.0,) * len(names))
        verdict, reason, steps = judge_series(series, CompareRule(forced=forced))

        jumps = [i for i in range(1, len(values)) if abs(values[i] - values[i - 1]) > LIMIT]
        assert [step.entry for step in steps] == [names[starts[i]] for i in jumps]
        for i, step in zip(jumps, steps, strict=True):
            assert step.previous_entry == names[starts[i] - 1]
            assert (step.entries_before, step.entries_after) == (lengths[i - 1], lengths[i])
            assert step.confirmed is (lengths[i] >= 2)
            assert step.before_ns == pytest.approx(math.exp(values[i - 1]))
            assert step.after_ns == pytest.approx(math.exp(values[i]))
            assert step.change == pytest.approx(step.after_ns / step.before_ns - 1)
        lasting = [i for i in jumps if values[i] > values[i - 1] and values[-1] > values[i - 1] + LIMIT]
        sure = [i for i in lasting if lengths[i] >= 2]
        if sure:
            expected = Verdict.REGRESSED
            gain = math.exp(values[sure[-1]] - values[sure[-1] - 1]) - 1
            assert reason == f"slower by {gain:.1%} since {names[starts[sure[-1]]]}"
        elif lasting:
            expected = Verdict.INCONCLUSIVE
            assert "newest entry only" in reason
        elif noise > LIMIT and not forced:
            expected = Verdict.INCONCLUSIVE
            assert f"vary by {math.exp(noise) - 1:.1%}" in reason
        else:
            expected = Verdict.IMPROVED if values[0] - values[-1] > LIMIT else Verdict.UNCHANGED
        assert verdict is expected, (values, lengths, noise, forced)
        verdicts.add((verdict, bool(lasting)))
    assert len(verdicts) == 5
