"""Which gain is asked for, how often is measured, what that costs and which model's candidate is best.

Drawn figures, with the formulas of docs/reference/statistics.md written a second time.
"""

from __future__ import annotations

import itertools
import math
import random
import re
import statistics
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rpl_measure.sequential import AcceptRule
from rpl_optimize.contracts import (
    CandidatePart,
    EvidencePart,
    JudgementPart,
    PlacementPart,
    PolicyPart,
    ShiftPart,
)
from rpl_optimize.loop import measuring
from rpl_optimize.loop.measuring import MeasureStage, best_by_model, keep_best
from rpl_optimize.measurement.gains import (
    PADDINGS,
    cost_sentence,
    fresh_pairs,
    gains_of,
    is_wanted,
    measurement_runs,
    noise_floor,
    padded,
    placement_runs,
    placement_share,
    rule_for,
)

from .conftest import measured


def _floor(cv: float | None, pairs: int) -> float:
    """Two standard errors of a median log ratio, as a gain; 2 % at least."""
    if cv is None:
        return 0.02
    error = cv * math.sqrt(2) / math.sqrt(pairs) * math.sqrt(math.pi / 2)
    return max(0.02, 1 - math.exp(-2 * error))


def test_the_least_gain_of_a_kernel_is_that_of_the_run_over_its_share() -> None:
    wanted, shares = (0.0, 0.02, 0.3), (None, -0.1, 0.0, 0.01, 0.25, 1.0, 1.7)
    for least, share, candidates, cv in itertools.product(wanted, shares, (0, 1, 5), (None, 0.0, 0.01, 0.2)):
        rule = rule_for(least, share, candidates, cv)
        part = 1.0 if share is None else min(1.0, share)
        expected = None if part <= 0 else max(_floor(cv, 40), least / part)
        assert noise_floor(cv) == pytest.approx(_floor(cv, 40))
        if expected is None or expected >= 1:
            assert rule is None, (least, share)
            continue
        assert rule is not None
        assert rule.least_gain == pytest.approx(expected)
        assert rule.futile_gain == pytest.approx(expected / 2)
        assert rule.alpha == pytest.approx(0.05 / (candidates or 1))
        assert rule.most_guard_loss == 0.01
        assert all(pairs < rule.looks[0] for pairs in rule.screening)
        assert rule.looks[-1] == 40
    for pairs in (5, 12, 30):
        assert noise_floor(0.05, pairs) == pytest.approx(_floor(0.05, pairs))


def _rule() -> AcceptRule:
    rule = rule_for(0.02, 0.8, 3, 0.002)
    assert rule is not None
    return rule


def test_the_fresh_measurement_is_as_large_as_the_spread_needs() -> None:
    rng, rule = random.Random(1), _rule()
    sizes = set()
    distance = math.log((1 - rule.futile_gain) / (1 - rule.least_gain))
    for _ in range(200):
        spread = rng.choice((0.0005, 0.008, 0.012, 0.02, 0.2))
        ratios = [rng.gauss(0.03, spread) for _ in range(10)]
        middle = statistics.median(ratios)
        sigma = 1.4826 * statistics.median(abs(one - middle) for one in ratios)
        needed = math.ceil((1.9 * sigma / distance) ** 2)
        expected = min(15, max(5, needed))
        assert fresh_pairs(rule, ratios) == expected
        sizes.add(expected)
    assert {5, 15} < sizes
    assert fresh_pairs(rule, [0.1]) == 15  # of one pair no spread is known


def test_what_measuring_costs_counts_every_run() -> None:
    """Each pair runs both, before the first comes one run of each that is thrown away."""
    rule = _rule()
    first, last = min((*rule.screening, *rule.looks)), rule.looks[-1]
    assert measurement_runs(rule) == (2 + 2 * first, 2 + 2 * last)
    assert placement_runs() == len(PADDINGS) * (2 + 2 * 5)
    for candidates, run_s, placement in itertools.product((1, 4), (None, 0.5, 30.0), (True, False, None)):
        text = cost_sentence(rule, candidates, run_s, placement=placement)
        numbers = re.findall(r"\d+", text)
        most = 2 + 2 * last + 2 * 15 + (0 if placement is False else placement_runs())
        accepted = 2 + 2 * rule.looks[0] + 2 * 5
        rejected = 2 + 2 * first
        assert [int(number) for number in numbers[:4]] == [rejected, accepted, most, candidates]
        if run_s is None:
            assert len(numbers) == 4
            continue
        ends = [candidates * runs * run_s for runs in (rejected, most)]
        told = [f"{end:.0f} s" if end < 120 else f"{end / 60:.0f} minutes" for end in ends]
        assert text.endswith(f": {told[0]} to {told[1]}")


def test_padding_stands_before_the_source_and_moves_no_line() -> None:
    for size in PADDINGS:
        text = padded(b"first line\n", size)
        head, _, rest = text.partition(b"#line 1\n")
        assert rest == b"first line\n"
        (count, width) = map(int, re.findall(rb"\.fill (\d+), (\d+),", head)[0])
        assert (count * width, width) == (size, 4)
        assert size % 256 == 0


def test_placement_is_looked_at_where_it_may_explain_the_gain() -> None:
    ends = set()
    gains, spreads = (0.03, 0.045, 0.055, 0.2), (1.0, 12.0)
    for gain, spread, asked in itertools.product(gains, spreads, (None, True, False)):
        fresh = measured(gain, 12, place="again", seed=3, spread=spread)
        evidence = EvidencePart(measurement=measured(gain), remeasurement=fresh)
        interval = gains_of(fresh).kernel_interval
        assert interval is not None
        ends.add((interval[0] < 0.05, interval[1] < 0.05))
        wanted = asked if asked is not None else interval[0] < 0.05
        assert is_wanted(evidence, PolicyPart(placement_check=asked)) is wanted
    assert ends == {(True, True), (True, False), (False, False)}
    assert is_wanted(EvidencePart(), PolicyPart(placement_check=None))

    gains = (0.05, 0.02, 0.09)
    parts = [measured(gain, 10, seed=i) for i, gain in enumerate(gains)]
    shifts = tuple(
        ShiftPart(padding_bytes=size, measurement=part)
        for size, part in zip(PADDINGS, parts[1:], strict=True)
    )
    placed = PlacementPart(shifts=shifts)
    whole = EvidencePart(remeasurement=parts[0], placement=placed)
    assert placement_share(whole) == pytest.approx(0.07, abs=0.004)
    assert placement_share(EvidencePart(placement=placed)) == pytest.approx(0.07, abs=0.004)
    assert placement_share(EvidencePart(remeasurement=parts[0])) is None


def _trial(walls: tuple[float, ...], ceiling: float, cv: float | None) -> Any:
    stability = None if cv is None else SimpleNamespace(cv=cv)
    kernels = (SimpleNamespace(name="z", stability=None), SimpleNamespace(name="k", stability=stability))
    documents = SimpleNamespace(model=lambda _: SimpleNamespace(kernels=kernels))
    return SimpleNamespace(
        number=2,
        baseline=SimpleNamespace(documents=documents, profile_directory=walls),
        target=SimpleNamespace(recorded="k", ceiling_gain=ceiling),
    )


def test_a_plan_says_what_will_run_or_why_nothing_will(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(
        measuring,
        "load_manifest",
        lambda walls: SimpleNamespace(passes=[SimpleNamespace(wall_s=wall) for wall in (*walls, None)]),
    )
    for ceiling, left, begun, walls, limit in itertools.product(
        (0.5, 0.01), (None, 1.0, 0.0), (0, 2, 3), ((), (1.0, 9.0, 2.0)), (None, 3.0)
    ):
        request: Any = SimpleNamespace(
            limits=SimpleNamespace(min_improvement=0.02, candidates=3), time_limit_s=limit
        )
        state: Any = SimpleNamespace(begun=begun)
        stage = MeasureStage(request, SimpleNamespace(), tmp_path, lambda left=left: left, state=state)
        trial = _trial(walls, ceiling, 0.004)
        plan = stage.plan(trial, 77)
        longest = max(walls, default=0.0)
        assert stage._run_limit_s(trial) == (limit if limit is not None else max(60.0, 10 * longest))
        problem = getattr(plan, "problem", None)
        alone = stage.plan_alone(trial, 5)
        if ceiling < 0.02:
            assert "no gain of this kernel can be large enough" in problem
        elif left == 0.0:
            assert problem == "the time budget was used up before it could be measured"
        elif begun >= 3:
            assert "the error that 3 candidates (--max-iters) share is used up" in problem
        else:
            rule = rule_for(0.02, ceiling, 3, 0.004)
            assert rule is not None
            assert (plan.candidate, plan.stage, plan.seed) == (2, "measurement", 77)
            assert (plan.fewest_runs, plan.most_runs) == measurement_runs(rule)
            assert plan.run_s == (2.0 if walls else None)
            assert alone is not None
            assert (alone.stage, alone.run_s, alone.seed) == ("kernel_alone", None, 5)
            stage.begin()
            assert state.begun == begun + 1
            continue
        assert alone is None
        assert plan.rule.least_gain == 1.0


def test_plans_of_a_size_that_is_known_run_both_as_often(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(measuring, "usual_run_s", lambda _: 1.5)
    stage = MeasureStage(SimpleNamespace(), SimpleNamespace(), tmp_path, lambda: None)
    first = measured(0.05, 10, spread=8.0)
    trial = _trial((), 0.5, None)
    again = stage.plan_again(trial, first, 5)
    pairs = fresh_pairs(_rule(), first.log_ratios)
    assert (again.stage, again.rule.looks, again.seed, again.run_s) == ("remeasurement", (pairs,), 5, 1.5)
    assert (again.fewest_runs, again.most_runs) == (2 * pairs, 2 * pairs)
    shifted = stage.plan_shifted(trial, first, 6, 256)
    assert (shifted.stage, shifted.rule.looks, shifted.padding_bytes) == ("placement", (5,), 256)
    assert (shifted.fewest_runs, shifted.most_runs) == (12, 12)
    assert shifted.rule.screening == again.rule.screening == ()


def test_the_best_of_a_model_is_the_right_one_with_the_most_gain(tmp_path: Path) -> None:
    rng = random.Random(4)
    (tmp_path / "c").mkdir()
    kept = set()
    for _ in range(200):
        candidates = []
        for number in range(rng.randint(0, 4)):
            place = f"c/{number}.hip"
            (tmp_path / place).write_text(f"version {number}")
            judgement = JudgementPart(
                verdict=rng.choice(("rejected", "no_verdict")),
                stage=rng.choice(("model", "measurement")),
                reason="so",
            )
            candidates.append(
                CandidatePart(
                    number=number,
                    kernel="k",
                    proposer="p",
                    summary="s",
                    source_sha256="0" * 64,
                    judgement=judgement,
                    source=rng.choice((None, place)),
                    modelled_gain=rng.choice((None, 0.1, 0.2, 0.3)),
                )
            )
        fit = [
            one
            for one in candidates
            if (one.judgement.stage, one.judgement.verdict) == ("model", "no_verdict")
            and one.source
            and one.modelled_gain
        ]
        best = None
        for one in fit:  # the first of the largest
            if best is None or (one.modelled_gain or 0) > (best.modelled_gain or 0):
                best = one
        assert best_by_model(tuple(candidates)) == best
        name = keep_best(tmp_path, Path("/user/k.hip"), "_opt", tuple(candidates))
        assert name == (None if best is None else "k_opt.hip")
        if best is not None:
            assert (tmp_path / "k_opt.hip").read_text() == f"version {best.number}"
        kept.add(name)
    assert kept == {None, "k_opt.hip"}
