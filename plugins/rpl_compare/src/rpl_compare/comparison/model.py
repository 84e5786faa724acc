"""Values of a comparison, before they become a document. Times in ns, shifts are ln(NEW / BASE)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum

from rpl_analysis.text import shorten_apart, shown_names
from rpl_core.text import printable
from rpl_core.values import frozen
from rpl_measure.rank_tests import Precision, Requirement
from rpl_measure.samples import ItemKey, Sample
from rpl_measure.series import Drift


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
