"""Measuring candidates through a collector: early ends, fresh pairs, and whose fault a failure is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import pytest

from rpl_core.errors import ApplicationError, BadDataError, InterruptedRunError, MissingError, TimeLimitError
from rpl_core.interfaces.collector import CollectionPlan, Collector, PassOutcome, PlannedPass
from rpl_core.model.metric import Origin
from rpl_core.model.trace import TraceRole
from rpl_measure import interleaved
from rpl_measure.interleaved import MOST_REPEATED_PAIRS
from rpl_measure.sequential import AcceptRule, Decision, decide, last_look, new_first, take_look
from rpl_optimize.contracts import PolicyPart
from rpl_optimize.interfaces.equivalence import KernelPairs
from rpl_optimize.loop.baseline import predicted_gain
from rpl_optimize.measurement.gains import LEAST_FLOOR, gains_of, noise_diagnostic, noise_floor, rule_for
from rpl_optimize.measurement.measure import (
    CandidateMeasurement,
    MeasureTools,
    PairsAlone,
    PairTimes,
    measure_candidate,
    measure_from,
    remeasure,
)
from rpl_optimize.measurement.verdict import judge
from rpl_testkit.fixtures import RocpdBuilder
from rpl_testkit.pair_model import ModelledPairs, TimingModel, try_modelled

from .conftest import measured

NOISE = (0, 300, -200, 100, -300, 250, -150, 50)
RULE = AcceptRule(alpha=0.05 / 3, least_gain=0.025, futile_gain=0.0125)


class ScriptedCollector(Collector):
    """Runs ``app TIME_NS [KERNEL [PROCESSES]]``: one rocpd file per process."""

    name = "scripted"
    summary = "for tests"

    def __init__(self, before: Callable[[int, tuple[str, ...]], None] = lambda _run, _command: None) -> None:
        self.runs = 0
        self._before = before

    def missing(self) -> None:
        return None

    def plan(self, request) -> CollectionPlan:
        return CollectionPlan(
            tuple(
                PlannedPass(f"run_{n}", TraceRole.TIMING, f".rocpd_profile/run_{n}", request.command)
                for n in range(1, request.runs + 1)
            )
        )

    def run(self, planned: PlannedPass, run_directory: Path, log) -> PassOutcome:
        self._before(self.runs, planned.command)
        self.runs += 1
        place = run_directory / planned.directory
        place.mkdir(parents=True)
        time = int(planned.command[1]) + NOISE[self.runs % len(NOISE)]
        kernel = planned.command[2] if len(planned.command) > 2 else "k"
        launches = [(kernel, 1000, 1000 + time), ("other", 2000 + time, 22_000 + time)]
        processes = int(planned.command[3]) if len(planned.command) > 3 else 1
        paths = [
            RocpdBuilder(place)(launches, name=f"out_{n}.db", pid=10 * self.runs + n)
            for n in range(processes)
        ]
        files = tuple(path.relative_to(run_directory).as_posix() for path in paths)
        return PassOutcome(planned, 0, 0.1, files=files)


@attrs.frozen
class Bench:
    """Measure ``app BASE`` against ``app NEW``."""

    tools: Callable[[Collector], MeasureTools]
    folder: Path

    def request(self, new: tuple[str, ...], name: str = "measure", **changes: object) -> CandidateMeasurement:
        values = {
            "kernel": "k",
            "base": ("app", "100000"),
            "rule": RULE,
            "seed": 7,
            "root": self.folder,
            **changes,
        }
        return CandidateMeasurement(new=("app", *new), directory=self.folder / name, **values)

    def measure(self, *new: str, collector: Collector | None = None, **changes: object):
        return measure_candidate(self.request(new, **changes), self.tools(collector or ScriptedCollector()))


@pytest.fixture
def bench(rpl_host, tmp_path: Path) -> Bench:
    def tools(collector: Collector) -> MeasureTools:
        return MeasureTools(collector, rpl_host("rocprofv3"), print, print, print)

    return Bench(tools, tmp_path)


def test_a_gain_ends_the_measurement_at_the_first_look(bench: Bench) -> None:
    collector = ScriptedCollector()
    part = bench.measure("90000", collector=collector)
    assert collector.runs == 2 + 20
    assert part.look is not None
    assert (part.look.decision, part.look.pairs) == ("accepted", 10)
    assert part.directory == "measure"
    assert part.origin == "synthetic"
    assert set(part.guards) == {"makespan", "critical_path"}
    assert gains_of(part).kernel == pytest.approx(0.1, abs=0.01)
    assert gains_of(part).application == pytest.approx(10 / 121, abs=0.01)
    assert part.base_median_ns == pytest.approx(100_000, rel=0.01)


def test_a_loss_ends_it_too_and_the_recorded_numbers_give_the_same_look(bench: Bench) -> None:
    part = bench.measure("105000")
    assert part.look is not None
    assert (part.look.decision, part.look.pairs) == ("rejected", 10)
    again = last_look(part.log_ratios, part.guards, RULE)
    assert again is not None
    assert (again.decision.value, again.p) == (part.look.decision, part.look.p)


def test_in_between_it_goes_on_to_the_last_look(bench: Bench) -> None:
    part = bench.measure("98000")
    assert part.look is not None
    assert (part.look.decision, len(part.log_ratios)) == ("inconclusive", 30)


def test_fresh_pairs_are_never_cut_short(bench: Bench) -> None:
    collector = ScriptedCollector()
    part = remeasure(bench.request(("105000",), warm_up=False), bench.tools(collector), pairs=12)
    assert len(part.log_ratios) == 12
    assert collector.runs == 24
    assert part.rule.looks == (12,)


def test_the_screening_ends_it_after_3_pairs(bench: Bench) -> None:
    rule = rule_for(0.02, 0.8, 3)
    assert rule is not None
    collector = ScriptedCollector()
    part = bench.measure("101000", collector=collector, rule=rule)
    assert collector.runs == 2 + 6
    assert part.look is not None
    assert (part.look.decision, part.look.pairs) == ("rejected", 3)


def test_the_order_is_the_seeds_and_kept_with_the_times(bench: Bench) -> None:
    part = bench.measure("90000")
    observed = json.loads((bench.folder / "measure" / "comparison.json").read_text())["observations"][2:]
    order = [pair[0]["side"] == "new" for pair in zip(observed[::2], observed[1::2], strict=True)]
    assert order == list(new_first(7, 10))
    assert len(set(order)) == 2
    assert part.seed == 7
    assert len(part.base_ns) == len(part.new_ns) == 10


def failing(side: str, error: Exception, at: int = 0) -> ScriptedCollector:
    def before(run: int, command: tuple[str, ...]) -> None:
        is_base = command[1] == "100000"
        if run >= at and is_base == (side == "base"):
            raise error

    return ScriptedCollector(before)


@pytest.mark.parametrize("error", [ApplicationError("it died of signal 11"), TimeLimitError("10 s are over")])
@pytest.mark.parametrize("at", [0, 7])
def test_a_candidate_that_crashes_or_hangs_is_rejected(bench, accepted_evidence, error, at) -> None:
    part = bench.measure("90000", collector=failing("new", error, at))
    assert part.candidate_failed
    assert error.fact in (part.problem or "")
    evidence = accepted_evidence.model_copy(update={"measurement": part, "remeasurement": None})
    assert judge(evidence, PolicyPart()).verdict == "rejected"


def test_a_candidate_without_the_kernel_gives_no_verdict_and_stops_at_the_first_look(
    bench: Bench, accepted_evidence
) -> None:
    collector = ScriptedCollector()
    part = bench.measure("90000", "renamed", collector=collector)
    assert collector.runs == 2 + 20
    assert "'k' has no usable time" in (part.problem or "")
    assert not part.candidate_failed
    evidence = accepted_evidence.model_copy(update={"measurement": part, "remeasurement": None})
    assert judge(evidence, PolicyPart()).verdict == "no_verdict"


def test_sides_that_do_not_belong_together_give_no_verdict(bench: Bench, accepted_evidence) -> None:
    """A candidate whose second process is gone does half of the work, and looks twice as fast."""
    part = bench.measure("100000", base=("app", "100000", "k", "2"))
    assert "BASE ran with 2 processes and NEW with 1" in (part.problem or "")
    evidence = accepted_evidence.model_copy(update={"measurement": part, "remeasurement": None})
    assert judge(evidence, PolicyPart(allow_synthetic=True)).verdict == "no_verdict"


def test_a_recording_of_the_candidate_that_cannot_be_read_gives_no_verdict(bench: Bench) -> None:
    part = bench.measure("90000", collector=failing("new", BadDataError("the recording is empty")))
    assert part.problem is not None
    assert not part.candidate_failed


@pytest.mark.parametrize(
    ("side", "error"),
    [
        ("base", ApplicationError("it died")),
        ("base", TimeLimitError("10 s are over")),
        ("base", BadDataError("empty")),
        ("new", MissingError("no space left")),
        ("new", InterruptedRunError("Ctrl-C")),
        ("new", KeyboardInterrupt()),
    ],
)
def test_what_the_candidate_is_not_guilty_of_goes_on_up(bench: Bench, side: str, error) -> None:
    wanted = InterruptedRunError if isinstance(error, KeyboardInterrupt) else type(error)
    with pytest.raises(wanted):
        bench.measure("90000", collector=failing(side, error, at=5))


def test_without_time_for_one_pair_there_is_no_verdict(bench: Bench) -> None:
    part = bench.measure("90000", total_time_s=0.0)
    assert "warm-up took all" in (part.problem or "")


def test_when_the_time_is_over_the_pairs_so_far_stay(bench: Bench, accepted_evidence, monkeypatch) -> None:
    collector = ScriptedCollector()
    # A clock by which each run takes a second: two warm-ups and twelve pairs fit into 25.
    monkeypatch.setattr(interleaved.time, "monotonic", lambda: float(collector.runs))
    part = bench.measure("98000", collector=collector, total_time_s=25.0)
    assert len(part.log_ratios) == 12
    assert part.look is not None
    assert (part.look.decision, part.look.pairs) == ("continue", 10)
    evidence = accepted_evidence.model_copy(update={"measurement": part, "remeasurement": None})
    found = judge(evidence, PolicyPart(allow_synthetic=True))
    assert found.verdict == "inconclusive"
    assert "time for measuring was over" in found.reason


# --- the rule ------------------------------------------------------------------------------------------


def test_the_least_gain_comes_from_the_share_of_the_path() -> None:
    for share, least in ((1.0, 0.02), (0.8, 0.025), (0.1, 0.2), (None, 0.02), (2.0, 0.02)):
        rule = rule_for(0.02, share, 3)
        assert rule is not None
        assert rule.least_gain == pytest.approx(least)
        assert rule.futile_gain == pytest.approx(least / 2)
        assert rule.alpha == pytest.approx(0.05 / 3)
        assert rule.most_guard_loss == 0.01


@pytest.mark.parametrize("share", [0.0, 0.02, 0.01, -1.0])
def test_a_kernel_too_small_for_the_wanted_gain_is_out_of_reach(share: float) -> None:
    assert rule_for(0.02, share, 3) is None


def test_the_noise_floor_grows_with_the_noise_and_never_falls_below_2_percent() -> None:
    assert noise_floor(None) == noise_floor(0.0) == noise_floor(0.02) == LEAST_FLOOR
    # 2 * sqrt(2) * 0.1 * sqrt(pi / 2) / sqrt(40) = 0.0560
    assert noise_floor(0.1) == pytest.approx(0.0545, abs=1e-4)
    assert noise_floor(0.1, 10) > noise_floor(0.1)
    rule = rule_for(0.0, 1.0, 3, base_cv=0.1)
    assert rule is not None
    assert rule.least_gain == noise_floor(0.1)
    assert rule_for(0.0, 1.0, 3, base_cv=1e9) is None


def test_last_look_takes_the_looks_in_turn() -> None:
    gain, nothing = list(measured(0.1, 30).log_ratios), list(measured(0.0, 30).log_ratios)
    assert last_look(gain[:9], {}, RULE) is None
    for ratios, pairs, decision in (
        (gain, 10, Decision.ACCEPTED),
        (nothing[:10] + gain, 10, Decision.REJECTED),
        (list(measured(0.02, 30).log_ratios), 30, Decision.INCONCLUSIVE),
        (list(measured(0.02, 17).log_ratios), 15, Decision.CONTINUE),
    ):
        look = last_look(ratios, {}, RULE)
        assert look is not None
        assert (look.pairs, look.decision) == (pairs, decision)
        assert look == take_look(ratios[:pairs], {}, RULE)
        assert decide(ratios[:pairs], {}, RULE) is decision


def test_guards_are_judged_by_the_same_pairs_as_the_kernel() -> None:
    gain = list(measured(0.1, 30).log_ratios)
    guards = {"makespan": gain[:10] + [-0.5] * 20}
    look = last_look(gain, guards, RULE)
    assert look is not None
    assert (look.pairs, look.decision) == (10, Decision.ACCEPTED)


# --- what is reported ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("cv", "words"), [(0.05, None), (0.06, "over 5%"), (0.2, "--force")])
def test_noise_is_warned_about_from_5_percent_with_what_can_be_found(cv: float, words: str | None) -> None:
    found = noise_diagnostic(measured().model_copy(update={"base_cv": cv}))
    assert (found is None) == (words is None)
    if found is not None and words is not None:
        text = f"{found.fact} {found.remedy}"
        assert words in text
        assert "can't be shown" in text


def test_what_if_predicts_the_gain_of_the_application(rpl_make_rocpd, rpl_host) -> None:
    """The kernel takes 60 of 100 us: at 0.9 of its time the application gains 6 %."""
    path = rpl_make_rocpd([("k", 1000, 61_000), ("other", 61_000, 101_000)])
    readers = rpl_host("rocprofv3").catalog.readers().contributions
    found = predicted_gain((path,), readers, "k", 0.9)
    assert found.gain == pytest.approx(0.06, abs=1e-3)
    slower = predicted_gain((path,), readers, "k", 1.5)
    assert slower.gain == pytest.approx(-0.3, abs=1e-3)
    for kernel, ratio in (("absent", 0.9), ("k", 0.0)):
        unknown = predicted_gain((path,), readers, kernel, ratio)
        assert unknown.gain is None
        assert unknown.reason


def test_pairs_of_the_kernel_alone_come_look_by_look_in_the_drawn_order():
    asked: list[bool] = []

    def run(order):
        begin = len(asked)
        asked.extend(order)
        pairs = tuple((1e6 + NOISE[number % 8], 9e5) for number in range(begin, len(asked)))
        return KernelPairs(pairs, Origin.MEASURED)

    part = measure_from(PairsAlone(run), "k", RULE, seed=5)
    assert part.look is not None
    assert (part.look.decision, part.origin) == ("accepted", "measured")
    assert tuple(asked) == new_first(5, len(asked))
    assert len(asked) == len(part.log_ratios) < RULE.looks[-1]


@pytest.mark.parametrize(
    ("found", "problem", "failed"),
    [
        (KernelPairs(problem="no GPU"), "no GPU", False),
        (KernelPairs(problem="sum differs", different=True), "computes something else: sum differs", True),
        (KernelPairs(((1.0, 1.0),), Origin.MEASURED), "1 pair came instead of", False),
        (KernelPairs(((0.0, 1.0),) * RULE.all_looks[0], Origin.MEASURED), "times are none", False),
    ],
)
def test_what_is_wrong_with_the_kernel_alone_is_said(found, problem, failed):
    part = measure_from(PairsAlone(lambda _: found), "k", RULE, seed=5)
    assert problem in (part.problem or "")
    assert part.candidate_failed is failed


@attrs.define(eq=False)
class StruckPairs(ModelledPairs):
    """Somebody strikes each pair in which the candidate is the slower, as often as one may be repeated.

    They see it whole before; in truth a part of it.
    """

    repeats: int = MOST_REPEATED_PAIRS

    def take(self, looks, decided, seed) -> PairTimes:
        times, left = PairTimes(origin=Origin.MEASURED), self.repeats
        for swapped in new_first(seed, looks[-1]):
            found = self._with_pair(times, swapped=swapped)
            while left and found.log_ratios[-1] < 0:
                found, left = self._with_pair(times, swapped=swapped), left - 1
            times = found
            if len(times.kernel) in looks and decided(times):
                break
        return times


@pytest.mark.long
def test_who_strikes_whatever_looks_bad_gains_less_than_a_candidates_part_of_the_error() -> None:
    trials, part = 500, 0.05 / 3

    def accepted(repeats: int) -> int:
        sources = (
            StruckPairs(TimingModel(cv=0.05), np.random.default_rng([7, trial]), repeats=repeats)
            for trial in range(trials)
        )
        return sum(try_modelled(source).judgement.verdict == "accepted" for source in sources)

    assert accepted(MOST_REPEATED_PAIRS) <= part * trials
    assert accepted(3) > part * trials, "what the bound is for"
