"""What samples say about one item: estimate, exact interval, p-value, noise, drift."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rpl_compare.comparison.model import CompareRule, Evidence, Method
from rpl_measure.estimates import pseudo_median, robust_cv, robust_sigma, shift
from rpl_measure.minimum_detectable import paired_precision, unpaired_precision
from rpl_measure.rank_tests import (
    least_p_two_sided,
    mann_whitney_test,
    shift_interval,
    signed_rank_interval,
    signed_rank_test,
)
from rpl_measure.samples import Sample
from rpl_measure.series import Drift, find_drift

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
    return Evidence(
        shift=shift(left, right),
        interval=shift_interval(left, right, 1 - method.alpha),
        p=mann_whitney_test(left, right).p_two_sided,
        least_p=least_p_two_sided(len(left), len(right)),
        cv=_larger_cv(base, new),
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


def _larger_cv(base: Sample, new: Sample) -> float | None:
    known = [cv for cv in (robust_cv(base.values_ns), robust_cv(new.values_ns)) if cv is not None]
    return max(known, default=None)


def _matters(drift: Drift | None, rule: CompareRule) -> bool:
    """A drift of more than half the limit within one side can pass for a change (chosen)."""
    return drift is not None and drift.flagged and abs(math.log1p(drift.change)) > rule.limit / 2
