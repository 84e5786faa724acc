"""Judge all items of two sides together: families of tests, verdicts, and one answer from all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType

import attrs

from rpl_analysis.text import shorten_apart, shown_names
from rpl_core.errors import ExitCode
from rpl_core.text import counted, printable
from rpl_core.values import frozen
from rpl_measure.rank_tests import (
    REFUSE_CV,
    NoiseLevel,
    Precision,
    Requirement,
    fewest_pairs,
    fewest_values,
    holm_adjusted,
    least_p_two_sided,
    mann_whitney_test,
    minimum_detectable_change,
    noise_level,
    paired_precision,
    pairs_needed,
    pseudo_median,
    robust_cv,
    robust_sigma,
    runs_needed,
    shift,
    shift_interval,
    signed_rank_interval,
    signed_rank_test,
    unpaired_precision,
)
from rpl_measure.samples import ItemKey, Kind, RunObservation, Sample, samples_of
from rpl_measure.series import Drift, find_drift

# Values of a comparison, before they become a document. Times in ns, shifts are ln(NEW / BASE).


class Verdict(str, Enum):
    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    INCONCLUSIVE = "inconclusive"


class Outcome(str, Enum):
    """Answer of the gate. ``no_verdict``: the data may not be judged at all (origin, nothing gated)."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    REGRESSION = "regression"
    INCONCLUSIVE = "inconclusive"
    NO_VERDICT = "no_verdict"


@frozen
class CompareRule:
    """What the user asked for. ``fail_above`` is a fraction; mirrored limits apply to improvements."""

    fail_above: float = 0.03
    alpha: float = 0.01  # docs/reference/statistics.md, rule 3: 0.05 shared by five candidates
    min_share: float = 0.01  # chosen: smaller kernels are shown, but do not decide
    forced: bool = False

    @property
    def limit(self) -> float:
        """The allowed shift: ln(1 + fail_above). It is the same in both directions."""
        return math.log1p(self.fail_above)


@frozen
class Evidence:
    """What the samples of one item say. Everything is ``None`` when ``problem`` is set.

    ``least_p`` is the smallest p that so many runs can give at all; ``cv`` is the noise
    that the gate judges: of the noisier side, or of one run of a pair without the drift that both share.
    """

    problem: str | None = None
    shift: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    least_p: float = 1.0
    cv: float | None = None
    base_drift: Drift | None = None
    new_drift: Drift | None = None
    drift_matters: bool = False
    sigma: float | None = None
    precision: Precision | None = None


@frozen
class Judged:
    """An item with its verdict."""

    key: ItemKey
    gated: bool
    base: Sample
    new: Sample
    evidence: Evidence
    verdict: Verdict
    reason: str
    excludes_regression: bool  # proven not to be slower beyond the limit, whatever else it is
    p_adjusted: float | None
    minimum_detectable_change: float | None
    runs_needed: int | None


@frozen
class Method:
    """How evidence is taken: two independent samples, or pairs with looks. ``alpha`` is that of one look."""

    paired: bool
    alpha: float
    looks: tuple[int, ...] = ()

    def requirement(self, rule: CompareRule, family: int) -> Requirement:
        return Requirement(self.alpha / max(family, 1), rule.limit)


# How items are called: the same in tables, sentences and pictures.

_NAME_WIDTH = 56
#: By kind of item.
APPLICATION_TIMES = {
    "runtime": "application: kernel time",
    "makespan": "application: makespan",
    "critical_path": "application: critical path",
    "process_time": "application: process time",
}


def one_line(text: str) -> str:
    """Names from recordings may hold anything; a row of a table stays a row."""
    return printable(text.replace("\n", "\\n").replace("\t", "\\t"))


def kernel_names(recorded: Iterable[str], form: str = "short") -> dict[str, str]:
    """By recorded name, on one line, different ones apart: give all kernels of both sides."""
    shown = shown_names(recorded, form)
    short = shorten_apart(map(one_line, shown.values()), _NAME_WIDTH)
    return {name: short[one_line(text)] for name, text in shown.items()}


def item_name(kind: str, name: str, kernels: Mapping[str, str]) -> str:
    """Application times in words, kernels as they are called on both sides."""
    return APPLICATION_TIMES.get(kind) or kernels.get(name, one_line(name))


# What samples say about one item: estimate, exact interval, p-value, noise, drift.

#: Evidence of one item from its two samples.
TakeEvidence = Callable[[Sample, Sample, CompareRule, Method], Evidence]


def unpaired_evidence(base: Sample, new: Sample, rule: CompareRule, method: Method) -> Evidence:
    """Mann-Whitney on log times and the Hodges-Lehmann shift; each run is one value."""
    problem = _problem(base, new)
    if problem is not None:
        return Evidence(problem=problem)
    left, right = _logs(base), _logs(new)
    spreads = [sigma for sigma in (robust_sigma(left), robust_sigma(right)) if sigma is not None]
    # The spread of the log times: root mean square over the sides.
    sigma = math.sqrt(sum(s * s for s in spreads) / len(spreads)) if spreads else None
    drifts = find_drift(base.values_ns), find_drift(new.values_ns)
    known = [cv for cv in (robust_cv(base.values_ns), robust_cv(new.values_ns)) if cv is not None]
    return Evidence(
        shift=shift(left, right),
        interval=shift_interval(left, right, 1 - method.alpha),
        p=mann_whitney_test(left, right).p_two_sided,
        least_p=least_p_two_sided(len(left), len(right)),
        cv=max(known, default=None),
        base_drift=drifts[0],
        new_drift=drifts[1],
        drift_matters=any(_matters(drift, rule) for drift in drifts),
        sigma=sigma,
        precision=None if sigma is None else unpaired_precision(sigma, len(left), len(right)),
    )


def paired_evidence(base: Sample, new: Sample, _rule: CompareRule, method: Method) -> Evidence:
    """Signed-rank on the log ratios of pairs, in which slow drift cancels; drift is reported only."""
    problem = _problem(base, new)
    if problem is not None:
        return Evidence(problem=problem)
    differences = [n - b for b, n in zip(_logs(base), _logs(new), strict=True)]
    sigma = robust_sigma(differences)
    # The difference of two runs spreads sqrt(2) times as wide as one run does beside the drift.
    cv = None if sigma is None else sigma / math.sqrt(2)
    return Evidence(
        shift=pseudo_median(differences),
        interval=signed_rank_interval(differences, 1 - method.alpha),
        p=signed_rank_test(differences).p_two_sided,
        least_p=2.0 ** (1 - len(differences)),
        cv=cv,
        base_drift=find_drift(base.values_ns),
        new_drift=find_drift(new.values_ns),
        sigma=sigma,
        precision=None if sigma is None else paired_precision(sigma, len(differences)),
    )


def _problem(base: Sample, new: Sample) -> str | None:
    problems = [f"{side}: {s.problem}" for side, s in (("BASE", base), ("NEW", new)) if s.problem]
    return "; ".join(problems) or None


def _logs(sample: Sample) -> Sequence[float]:
    return [math.log(value) for value in sample.values_ns]


def _matters(drift: Drift | None, rule: CompareRule) -> bool:
    """A drift of more than half the limit within one side can pass for a change (chosen)."""
    return drift is not None and drift.flagged and abs(math.log1p(drift.change)) > rule.limit / 2


# The verdict about one item: regressed, improved, unchanged, or honestly none.


def judge(
    evidence: Evidence, p_adjusted: float | None, rule: CompareRule, method: Method, family: int
) -> tuple[Verdict, str]:
    """Verdict and its reason. ``family`` is the number of items that share the error of this one.

    A change needs both: significance after correction, and an estimate beyond the limit. "Unchanged" is a
    finding too: the whole interval must lie within the limits. Everything else is inconclusive.
    """
    if evidence.problem is not None or evidence.shift is None or p_adjusted is None:
        return Verdict.INCONCLUSIVE, evidence.problem or "nothing to compare"
    refusal = _refusal(evidence, rule)
    if refusal is not None:
        return Verdict.INCONCLUSIVE, refusal
    if p_adjusted <= method.alpha and abs(evidence.shift) > rule.limit:
        slower = evidence.shift > 0
        verdict = Verdict.REGRESSED if slower else Verdict.IMPROVED
        return verdict, f"{'slower' if slower else 'faster'} beyond the limit, adjusted p {p_adjusted:.2g}"
    if evidence.interval is None or (
        evidence.least_p * family > method.alpha and not _within(evidence, rule)
    ):
        return Verdict.INCONCLUSIVE, _too_few(evidence, method, family)
    low, high = evidence.interval
    if _within(evidence, rule):
        return Verdict.UNCHANGED, f"within the limits with {1 - method.alpha:.4g} confidence"
    reason = (
        f"the interval {_percent(low)} .. {_percent(high)} reaches beyond the limit of "
        f"{100 * rule.fail_above:g} % and is no proof of a change"
    )
    return Verdict.INCONCLUSIVE, reason


def excludes_regression(evidence: Evidence, rule: CompareRule) -> bool:
    """Whether the whole interval lies below the upper limit: what a gate needs in order to pass.

    It holds for "unchanged" and for an item that is faster, be it surely beyond the lower limit or not.
    """
    if evidence.interval is None or _refusal(evidence, rule) is not None:
        return False
    return evidence.interval[1] <= rule.limit


def _within(evidence: Evidence, rule: CompareRule) -> bool:
    return evidence.interval is not None and max(-evidence.interval[0], evidence.interval[1]) <= rule.limit


def _refusal(evidence: Evidence, rule: CompareRule) -> str | None:
    """Noise or drift that makes a verdict worthless."""
    if rule.forced:
        return None
    if evidence.drift_matters:
        return "the times drift in the order of the runs, which can pass for a change; measure interleaved"
    cv = evidence.cv
    if cv is None or noise_level(cv) is not NoiseLevel.TOO_NOISY or _beyond_noise(evidence, cv):
        return None
    return (
        f"the times vary by {cv:.1%} (CV) from run to run, above {REFUSE_CV:.0%}; --force judges them anyway"
    )


def _beyond_noise(evidence: Evidence, cv: float) -> bool:
    """Whether the whole interval lies beyond the spread of single runs: such a change needs no quiet."""
    if evidence.interval is None:
        return False
    low, high = evidence.interval
    return max(low, -high) > math.log1p(cv)


def _too_few(evidence: Evidence, method: Method, family: int) -> str:
    alpha = method.alpha / family
    among = f" among {family} comparisons" if family > 1 else ""
    if method.paired:
        what, needed = "so few pairs", f"{fewest_pairs(alpha / 2)} pairs"
    else:
        what, needed = "so few runs", f"{fewest_values(alpha)} runs per side"
    return (
        f"{what} can't be significant at {method.alpha:.3g}{among} (least p {evidence.least_p:.2g}): "
        f"at least {needed} are needed"
    )


def _percent(shift: float) -> str:
    return f"{math.expm1(shift):+.1%}"


#: A reason names so many of its items (chosen; the document holds the reason of each).
NAMES_SHOWN = 5

EXIT_CODES = {
    Outcome.PASS: ExitCode.OK,
    Outcome.REGRESSION: ExitCode.NEGATIVE_FINDING,
    Outcome.INCONCLUSIVE: ExitCode.NO_VERDICT,
    Outcome.NO_VERDICT: ExitCode.NO_VERDICT,
}


@frozen
class Question:
    """What is asked of both sides. ``kernels`` are names of which a kernel must contain one; none: all.

    With names given only those kernels decide; otherwise the application and every kernel with at least
    ``rule.min_share`` of the kernel time on one side does.
    """

    rule: CompareRule
    method: Method
    take_evidence: TakeEvidence
    kernels: tuple[str, ...] = ()
    incomparable: Mapping[ItemKey, str] = attrs.field(factory=dict)


@frozen
class _Item:
    key: ItemKey
    gated: bool
    base: Sample
    new: Sample
    evidence: Evidence


def judge_items(
    base: Sequence[RunObservation], new: Sequence[RunObservation], question: Question
) -> tuple[Judged, ...]:
    """Every item that both sides have: application times first, then kernels by descending time.

    Gated and other items are two families: small kernels don't cost the large ones their significance.
    """
    left, right = samples_of(base), samples_of(new)
    keys = [key for key in left if key in right and _is_asked_for(key, question.kernels)]
    items = [_item(key, left[key], right[key], question) for key in keys]
    judged = [*_family((i for i in items if i.gated), question)]
    judged += _family((i for i in items if not i.gated), question)
    order = {key: number for number, key in enumerate(left)}
    return tuple(sorted(judged, key=lambda item: _position(item, order)))


def _is_asked_for(key: ItemKey, kernels: tuple[str, ...]) -> bool:
    return key.kind is not Kind.KERNEL or not kernels or matches(key.name, kernels)


def matches(name: str, wanted: Iterable[str]) -> bool:
    """Whether a kernel is meant by one of the given names or parts of names."""
    return any(part in name for part in wanted)


def _item(key: ItemKey, base: Sample, new: Sample, question: Question) -> _Item:
    reason = question.incomparable.get(key)
    evidence = (
        question.take_evidence(base, new, question.rule, question.method)
        if reason is None
        else Evidence(problem=reason)
    )
    return _Item(key, _is_gated(key, base, new, question), base, new, evidence)


def _is_gated(key: ItemKey, base: Sample, new: Sample, question: Question) -> bool:
    if question.kernels:
        return key.kind is Kind.KERNEL
    if key in question.incomparable:  # of the path nothing was promised; a makespan nobody can judge decides
        return key.kind is Kind.MAKESPAN
    return key.kind is not Kind.KERNEL or _share(base, new) >= question.rule.min_share


def _share(base: Sample, new: Sample) -> float:
    """The larger one; that of an application time, which has none, is zero."""
    return max(sample.share or 0.0 for sample in (base, new))


def _family(items: Iterable[_Item], question: Question) -> Iterable[Judged]:
    members = list(items)
    testable = [item for item in members if item.evidence.p is not None]
    adjusted = holm_adjusted([item.evidence.p or 0.0 for item in testable])
    p_of = {item.key: p for item, p in zip(testable, adjusted, strict=True)}
    return [_judged(item, p_of.get(item.key), len(testable), question) for item in members]


def _judged(item: _Item, p_adjusted: float | None, family: int, question: Question) -> Judged:
    evidence, method = item.evidence, question.method
    verdict, reason = judge(evidence, p_adjusted, question.rule, method, family)
    required = method.requirement(question.rule, family)
    precision = evidence.precision if evidence.least_p * family <= method.alpha else None
    detectable = None if precision is None else minimum_detectable_change(precision, required)
    needed = pairs_needed if method.paired else runs_needed
    return Judged(
        key=item.key,
        gated=item.gated,
        base=item.base,
        new=item.new,
        evidence=evidence,
        verdict=verdict,
        reason=reason,
        excludes_regression=excludes_regression(evidence, question.rule),
        p_adjusted=p_adjusted,
        minimum_detectable_change=detectable,
        runs_needed=None if evidence.sigma is None else needed(evidence.sigma, required),
    )


def _position(item: Judged, order: Mapping[ItemKey, int]) -> tuple[bool, float, int]:
    return (item.key.kind is Kind.KERNEL, -_share(item.base, item.new), order[item.key])


@frozen
class Gate:
    """``worst`` is the gated item with the largest slow-down, ``None`` when no change could be estimated."""

    outcome: Outcome
    reasons: tuple[str, ...]
    gated_items: int
    worst: Judged | None

    @property
    def worst_change(self) -> float | None:
        """As a fraction: 0.03 is 3 % slower."""
        if self.worst is None or self.worst.evidence.shift is None:
            return None
        return math.expm1(self.worst.evidence.shift)


def decide(
    items: Sequence[Judged], blocking: Sequence[str], names: Mapping[str, str] = MappingProxyType({})
) -> Gate:
    """The gate over all gated items. It passes only if each of them is proven not to have regressed.

    ``names`` are those by which the comparison calls its kernels.
    """
    gated = [item for item in items if item.gated]
    outcome, reasons = _outcome(gated, blocking, names)
    known = [item for item in gated if item.evidence.shift is not None]
    worst = max(known, key=lambda item: item.evidence.shift or 0.0, default=None)
    return Gate(outcome, tuple(reasons), len(gated), worst)


def _outcome(
    gated: Sequence[Judged], blocking: Sequence[str], names: Mapping[str, str]
) -> tuple[Outcome, Sequence[str]]:
    if blocking:
        return Outcome.NO_VERDICT, blocking
    if not gated:
        return Outcome.NO_VERDICT, ("nothing that decides ran on both sides",)
    regressed = [item for item in gated if item.verdict is Verdict.REGRESSED]
    if regressed:
        return Outcome.REGRESSION, _by_reason(regressed, names)
    open_items = [item for item in gated if not item.excludes_regression]
    if open_items:
        return Outcome.INCONCLUSIVE, _by_reason(open_items, names)
    return Outcome.PASS, (f"none of {counted(len(gated), 'deciding item')} is slower beyond the limit",)


def _by_reason(items: Sequence[Judged], kernels: Mapping[str, str]) -> Sequence[str]:
    """Items with the same reason share a line."""
    names: dict[str, list[str]] = {}
    for item in items:
        names.setdefault(item.reason, []).append(item_name(item.key.kind.value, item.key.name, kernels))
    return [f"{_listed(named)}: {reason}" for reason, named in names.items()]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"
