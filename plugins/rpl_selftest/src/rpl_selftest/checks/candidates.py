"""What `rpl optimize` would say of candidates whose gain is known, on this machine's own noise.

Base and candidate are process runs of one program that launches one kernel: the base with more steps where a
gain is built in. They are measured, measured again and judged as a session does it: the same rule, pairs
through the same collector in the order that the rule draws, the same findings against a candidate. What is no
question of times is left out: builds, checks of results, traffic, shifted code (both sides are one build).
"""

from __future__ import annotations

import math
import time
from shutil import rmtree
from typing import TYPE_CHECKING

from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.model.metric import Origin
from rpl_core.values import frozen
from rpl_measure.rank_tests import REFUSE_CV, median
from rpl_selftest.check import Check, Finding, NotPossibleError, judged

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_measure.sequential import AcceptRule
    from rpl_optimize.contracts import MeasurementPart
    from rpl_optimize.measurement.measure import CandidateMeasurement, MeasureTools
    from rpl_selftest.bench import Bench

_KERNEL = "fma_long"
_NULL, _DELAYED = (60, 3), (20, 2)  # with --full, with --quick
#: Process runs of one: the mean of those that gain nothing, and of those that are accepted at the first look.
_NULL_RUNS, _DELAYED_RUNS = 13, 32
#: What both kinds together may take, of the 45 and the 5 minutes, and what is kept for the last checks.
_BOX_S, _RESERVE_S = (1800.0, 150.0), 15.0
_PERMILLE = 50
#: What a base of 105 % of the steps takes more than 100 %: a gain of 5 / 105.
_GAIN = 1 - 1000 / (1000 + _PERMILLE)
#: Such a count of errors, or a worse one, comes by chance once in a thousand self-tests (chosen).
_BY_CHANCE = 0.001
#: A gain of 5 % is found in 99.7 % of all cases at a CV of 2 % and in all at 1 % (docs/validation.md).
_POWER, _POWER_CV = 0.99, 0.02
_LAUNCHES, _BASELINE_RUNS = 5, 3


@frozen
class Judged:
    """One candidate: ``gain`` is that of the pairs that decided, ``base_cv`` the spread of their base."""

    accepted: bool
    gain: float
    base_cv: float


@frozen
class Candidates:
    """Those that were judged in time, of ``planned`` ones, and the error that each may have."""

    judged: tuple[Judged, ...]
    planned: int
    alpha: float

    @property
    def accepted(self) -> int:
        return sum(one.accepted for one in self.judged)

    @property
    def cv(self) -> float:
        return median([one.base_cv for one in self.judged])

    @property
    def told(self) -> str:
        fitted = "" if len(self.judged) == self.planned else f" (the time did not hold all {self.planned})"
        return f"{self.accepted} of {len(self.judged)} accepted{fitted}"


def _candidates(bench: Bench, name: str, planned: int, permille: int) -> Candidates:
    return bench.once(name, lambda: _measured(bench, name, planned, permille))


def _measured(bench: Bench, name: str, planned: int, permille: int) -> Candidates:
    if bench.emulated:
        raise NotPossibleError("times of this device are modelled: they have no noise to decide in")
    rule = bench.once("rule", lambda: _rule_of(bench))
    until = time.monotonic() + _time_for(bench, delayed=bool(permille))
    found: list[Judged] = []
    while len(found) < planned and time.monotonic() < until:
        one = _judge(bench, f"{name}-{len(found)}", rule, seed=2 * len(found) + bool(permille), more=permille)
        if one is None:
            break
        found.append(one)
    if not found:
        raise NotPossibleError("no candidate could be judged in the time of the self-test")
    kept = Candidates(tuple(found), planned, rule.alpha)
    if kept.cv > REFUSE_CV:
        raise NotPossibleError(f"times spread by {kept.cv:.1%}, in which no candidate is judged")
    return kept


def _time_for(bench: Bench, *, delayed: bool) -> float:
    """Seconds for one kind: its part of the process runs of both, and for the second one all that is left."""
    short = not bench.full
    runs = _NULL[short] * _NULL_RUNS, _DELAYED[short] * _DELAYED_RUNS
    part = runs[delayed] / sum(runs)
    left = bench.deadline - time.monotonic() - _RESERVE_S
    return min(_BOX_S[short] * part, left if delayed else left * part)


def _command(bench: Bench, permille: int) -> tuple[str, ...]:
    program, _ = bench.build()
    return (str(program), "chain", str(bench.sizes.iterations * (1000 + permille) // 1000), str(_LAUNCHES))


def _rule_of(bench: Bench) -> AcceptRule:
    from rpl_optimize.loop.session import Limits
    from rpl_optimize.measurement.gains import rule_for

    words = ("profile", "--runs", _BASELINE_RUNS, "--json", "-o", bench.folder / "baseline")
    limit = ("--time-limit", f"{bench.command_limit_s:g}")
    profile = bench.rpl(*words, *limit, *bench.device_words, "--", *_command(bench, 0)).json()
    cv = next((one["stability"]["cv"] for one in profile["kernels"] if one["name"] == _KERNEL), None)
    if cv is None:
        raise NotPossibleError(f"the profile has no spread of {_KERNEL} over {_BASELINE_RUNS} runs")
    limits = Limits()
    rule = rule_for(limits.min_improvement, 1.0, limits.candidates, cv)
    if rule is None:
        raise NotPossibleError(f"times spread by {cv:.1%}: no gain stands out of that")
    return rule


def _judge(bench: Bench, name: str, rule: AcceptRule, *, seed: int, more: int) -> Judged | None:
    """``None`` where the time was over before a look decided."""
    from rpl_core.interfaces.options import Options
    from rpl_core.profiling import choose_collector
    from rpl_optimize.measurement.measure import CandidateMeasurement, MeasureTools, measure_candidate

    collector = choose_collector(bench.host, None, Options(), bench.device)
    tools = MeasureTools(collector, bench.host, _unheard, _unheard, _unheard)
    asked = CandidateMeasurement(
        kernel=_KERNEL,
        base=_command(bench, more),
        new=_command(bench, 0),
        directory=bench.folder / name,
        rule=rule,
        seed=seed,
        root=bench.folder,
        time_limit_s=bench.command_limit_s,
        total_time_s=max(bench.deadline - time.monotonic() - _RESERVE_S, 1.0),
    )
    try:
        with bench.own_temporary():
            first = measure_candidate(asked, tools)
            if first.look is None or first.look.decision == "continue":
                if first.problem is not None and time.monotonic() < bench.deadline - _RESERVE_S:
                    raise NotPossibleError(first.problem)
                return None
            accepted = _is_accepted(bench, asked, tools, first)
    except InterruptedRunError:
        raise
    except RplError as error:
        raise NotPossibleError(error.one_line()) from error
    finally:  # recordings of 1 400 process runs would fill the folder of temporary files
        for directory in (asked.directory, _fresh(asked.directory)):
            rmtree(directory, ignore_errors=True)
    return Judged(accepted, 1 - first.look.ratio, first.base_cv or 0.0)


def _is_accepted(
    bench: Bench, asked: CandidateMeasurement, tools: MeasureTools, first: MeasurementPart
) -> bool:
    """Whether nothing speaks against it, in the pairs that decide and in the fresh ones."""
    import attrs

    from rpl_optimize.contracts import PolicyPart
    from rpl_optimize.measurement.gains import fresh_pairs
    from rpl_optimize.measurement.measure import remeasure
    from rpl_optimize.measurement.verdict import find_against, find_against_fresh

    policy = PolicyPart(allow_synthetic=bench.timing().recording.origin is Origin.SYNTHETIC)
    against = list(find_against(first, policy))
    if not against:
        pairs = fresh_pairs(asked.rule, first.log_ratios)
        again = attrs.evolve(
            asked, directory=_fresh(asked.directory), seed=asked.seed + 1000, total_time_s=None, warm_up=False
        )
        against = list(find_against_fresh(remeasure(again, tools, pairs), first, policy))
    open_ones = [one.reason for one in against if one.verdict == "no_verdict"]
    if open_ones:
        raise NotPossibleError(open_ones[0])
    return not against


def _fresh(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}-fresh")


def _unheard(_text: str) -> None:
    """Progress of single process runs."""


def null_candidates(bench: Bench) -> Finding:
    found = _candidates(bench, "null", _NULL[not bench.full], 0)
    most = most_by_chance(len(found.judged), found.alpha)
    told = f"{found.told}, at most {most} come by chance; times spread by {found.cv:.2%}"
    return judged(
        found.accepted <= most, told, accepted=found.accepted, candidates=len(found.judged), cv=found.cv
    )


def delayed_candidates(bench: Bench) -> Finding:
    found = _candidates(bench, "delayed", _DELAYED[not bench.full], _PERMILLE)
    gain = median([one.gain for one in found.judged])
    least = len(found.judged) - most_by_chance(len(found.judged), 1 - _POWER)
    if least < 1:
        raise NotPossibleError(f"the time held {len(found.judged)} of {found.planned}: too few to tell")
    if found.accepted < least and found.cv > _POWER_CV:
        raise NotPossibleError(f"times spread by {found.cv:.1%}: over {_POWER_CV:.0%} it may be missed")
    told = f"{found.told}, at least {least} must be; a gain of {gain:.2%}; times spread by {found.cv:.2%}"
    holds = found.accepted >= least and abs(gain - _GAIN) <= _GAIN / 5
    return judged(holds, told, accepted=found.accepted, candidates=len(found.judged), gain=gain, cv=found.cv)


def most_by_chance(trials: int, probability: float) -> int:
    """The least k with P(more than k of ``trials``) < 0.001, of a binomial distribution."""
    tail, k = 1.0, -1
    while tail >= _BY_CHANCE:
        k += 1
        tail -= math.comb(trials, k) * probability**k * (1 - probability) ** (trials - k)
    return k


CANDIDATES = (
    Check(
        "candidates-null",
        f"process runs of {_NULL[0]} candidates ({_NULL[1]} with --quick) that change nothing, measured and "
        "judged as by rpl optimize",
        "as few accepted as the error of its rule allows, but once in 1000 self-tests",
        "docs/reference/statistics.md",
        null_candidates,
    ),
    Check(
        "candidates-delayed",
        f"the same of {_DELAYED[0]} ({_DELAYED[1]} with --quick); the base has {_PERMILLE // 10} % more",
        f"as many accepted as a power of {_POWER:.0%} gives, but once in 1000; a gain of {_GAIN:.2%} +- 1/5",
        "docs/optimize.md",
        delayed_candidates,
    ),
)
