"""Times of baseline and candidate in pairs, whoever measured them, and what the evidence keeps of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import BadDataError
from rpl_core.model.metric import Origin
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_measure.comparable import check_comparable
from rpl_measure.estimates import median, robust_cv
from rpl_measure.samples import ItemKey, Kind, Sample, samples_of
from rpl_measure.sequential import AcceptRule, Look, last_look
from rpl_measure.series import find_drift, find_modes
from rpl_optimize.contracts.optimize import LookPart, MeasurementPart, ModesPart, RulePart

if TYPE_CHECKING:
    from rpl_measure.side import Side

#: Times of the application that an accepted candidate must not lose (docs/reference/statistics.md, rule 3).
GUARDS = (Kind.MAKESPAN, Kind.CRITICAL_PATH)
#: (base, new) per pair, ns.
Pairs = tuple[tuple[float, float], ...]


@frozen
class PairTimes:
    """Complete pairs so far, in order. ``guards`` are times of the application, by name.

    ``problem`` says why they can't be judged; ``candidate_failed``: because the candidate crashed or hung.
    """

    kernel: Pairs = ()
    guards: Mapping[str, Pairs] = attrs.field(factory=dict)
    origin: Origin | None = None
    problem: str | None = None
    candidate_failed: bool = False

    @property
    def log_ratios(self) -> tuple[float, ...]:
        """ln(base / new) of the kernel."""
        return _log_ratios(self.kernel)

    @property
    def guard_log_ratios(self) -> dict[str, tuple[float, ...]]:
        return {name: _log_ratios(pairs) for name, pairs in self.guards.items()}


#: Asked at each look with the pairs so far; true ends the measurement.
DecidedOnTimes = Callable[[PairTimes], bool]


class PairSource(ABC):
    """Where pairs come from."""

    @abstractmethod
    def take(self, looks: tuple[int, ...], decided: DecidedOnTimes, seed: int) -> PairTimes:
        """Measure up to the last look, asking ``decided`` at each one, and return all complete pairs.

        ``seed`` gives the order within the pairs (``rpl_measure.sequential``).

        What the candidate does wrong is a ``problem``; what is wrong with the baseline is raised.
        """


def times_of(base: Side, new: Side, kernel: str) -> PairTimes:
    """The pairs of two measured sides; ``kernel`` is an exact name.

    Sides that may not be compared (other GPU, lost process, modelled times) leave a problem. A guard that one
    side does not know is left out: the verdict notices.
    """
    origin = Origin.weakest([base.origin, new.origin])
    problem = _why_not_comparable(base, new)
    left, right = samples_of(base.runs), samples_of(new.runs)
    key = ItemKey(Kind.KERNEL, kernel)
    if problem is None and not _usable(key, left, right):
        problem = f"the kernel {key.short_name!r} has no usable time in every run of both sides"
    if problem is not None:
        return PairTimes(origin=origin, problem=problem)
    guards = {
        kind.value: _paired(ItemKey(kind, kind.value), left, right)
        for kind in GUARDS
        if _usable(ItemKey(kind, kind.value), left, right)
    }
    return PairTimes(_paired(key, left, right), guards, origin)


def _why_not_comparable(base: Side, new: Side) -> str | None:
    # Whether synthetic times count is the verdict's question; here it is whether the sides belong together.
    try:
        blocking = check_comparable(base, new, allow_synthetic=True, forced=False).blocking
    except BadDataError as error:
        return error.fact
    return "; ".join(blocking) or None


def _usable(key: ItemKey, left: Mapping[ItemKey, Sample], right: Mapping[ItemKey, Sample]) -> bool:
    return all(key in side and side[key].problem is None for side in (left, right))


def _paired(key: ItemKey, left: Mapping[ItemKey, Sample], right: Mapping[ItemKey, Sample]) -> Pairs:
    return tuple(zip(left[key].values_ns, right[key].values_ns, strict=True))


def _log_ratios(pairs: Pairs) -> tuple[float, ...]:
    return tuple(math.log(base / new) for base, new in pairs)


def measurement_part(
    kernel: str,
    times: PairTimes,
    rule: AcceptRule,
    directory: str | None = None,
    *,
    seed: int | None = None,
) -> MeasurementPart:
    """All that the verdict needs, with the look that ended the measurement."""
    base, new = [pair[0] for pair in times.kernel], [pair[1] for pair in times.kernel]
    log_ratios, guards = times.log_ratios, times.guard_log_ratios
    look = None if times.problem is not None else last_look(log_ratios, guards, rule)
    problem = times.problem
    if look is None and problem is None:
        few = counted(len(log_ratios), "pair is", "pairs are")
        problem = f"{few} too few: the first look needs {rule.all_looks[0]}"
    drift, modes = find_drift(base), find_modes(base)
    return MeasurementPart(
        kernel=kernel,
        directory=directory,
        origin=None if times.origin is None else times.origin.value,
        rule=rule_part(rule),
        seed=seed,
        log_ratios=log_ratios,
        base_ns=tuple(base),
        new_ns=tuple(new),
        guards=guards,
        base_cv=robust_cv(base),
        base_median_ns=median(base) if base else None,
        new_median_ns=median(new) if new else None,
        drift=None if drift is None else drift.flagged,
        modes=None if modes is None else ModesPart(**attrs.asdict(modes)),
        look=None if look is None else look_part(look),
        problem=problem,
        candidate_failed=times.candidate_failed,
    )


def rule_part(rule: AcceptRule) -> RulePart:
    return RulePart(**attrs.asdict(rule))


def rule_of(part: RulePart) -> AcceptRule:
    return AcceptRule(**part.model_dump())


def look_part(look: Look) -> LookPart:
    return LookPart(**{**attrs.asdict(look), "decision": look.decision.value})
