"""The verdict about one item: regressed, improved, unchanged, or honestly none.

Exchanging BASE and NEW mirrors every verdict: all limits are symmetric on the log scale.
"""

from __future__ import annotations

import math

from rpl_compare.comparison.model import CompareRule, Evidence, Method, Verdict
from rpl_compare.statistics.mann_whitney import fewest_values
from rpl_compare.statistics.noise import REFUSE_CV, NoiseLevel, noise_level
from rpl_compare.statistics.signed_rank import fewest_pairs


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
