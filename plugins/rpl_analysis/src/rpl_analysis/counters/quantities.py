"""Every quantity of a device's counter map for one kernel, as metrics with formula and exactness.

The first formula whose counters were all recorded for at least one dispatch is used. A quantity without
such a formula may be the sum of others; what remains is unknown and names the counters it lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.counters.formulas import FormulaOutcome, counters_of, device_constants, evaluate_formula
from rpl_core.errors import BadDataError
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.metric import Exactness, Metric, Origin
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from rpl_core.model.device import DeviceModel, Formula, Quantity

# What was counted, and what follows from it: the values of the facts of the counters analyzer.


@frozen
class CounterSums:
    """Sums of several counters over the ``launches`` dispatches for which every one of them was read.

    ``columns`` are their values in each of these dispatches.
    """

    values: Mapping[str, float]
    launches: int
    columns: Mapping[str, NDArray[np.float64]] = attrs.field(factory=dict, eq=False, repr=False)


@frozen(eq=False)
class KernelCounters:
    """All counter values of one kernel over all counter passes.

    ``columns`` maps a counter name as recorded to one value per dispatch (sum over hardware instances),
    NaN where it was not read. Row i of every column is the same dispatch: same process, GPU and occurrence,
    but for counters ``in_turns``.
    """

    name: str
    launches: int
    columns: Mapping[str, NDArray[np.float64]]
    #: No launch has all counters, because groups of them took turns: row i joins the i-th launch of each
    #: group, and all figures are estimates.
    in_turns: bool = False

    def recorded_name(self, counter: str) -> str | None:
        """The recorded column for a counter: ``X_sum``, else ``X`` (summed instance rows), else ``None``.

        ``X_sum`` comes first because the profiler reads it in one pass with its neighbours, while rows per
        instance of the same counter may stem from a pass of their own.
        """
        for candidate in (f"{counter}_sum", counter):
            column = self.columns.get(candidate)
            if column is not None and not bool(np.isnan(column).all()):
                return candidate
        return None

    def sums(self, counters: tuple[str, ...]) -> CounterSums | None:
        """Sums over the dispatches that have all of ``counters``; ``None`` when no dispatch has."""
        columns: dict[str, NDArray[np.float64]] = {}
        for counter in counters:
            recorded = self.recorded_name(counter)
            if recorded is None:
                return None
            columns[counter] = self.columns[recorded]
        complete = np.ones(self.launches, dtype=np.bool_)
        for column in columns.values():
            complete &= ~np.isnan(column)
        launches = int(complete.sum())
        if launches == 0:
            return None
        columns = {name: column[complete] for name, column in columns.items()}
        return CounterSums({name: float(c.sum()) for name, c in columns.items()}, launches, columns)


@frozen
class JoinedCounters:
    """The counter table of a recording and what was wrong with the passes."""

    kernels: Mapping[str, KernelCounters]
    diagnostics: tuple[Diagnostic, ...] = ()


@frozen
class QuantityValue:
    """A quantity of one kernel.

    ``per_launch`` is the mean over the ``launches`` dispatches that had every counter of the formula,
    ``total`` the sum over them; for a ratio both are the same figure.
    """

    per_launch: Metric
    total: Metric
    launches: int


@frozen
class KernelQuantities:
    """Every quantity of the device's counter map for one kernel, by quantity name.

    ``launches`` counts the kernel's dispatches in the counter passes.
    """

    name: str
    launches: int
    values: Mapping[str, QuantityValue]

    def per_launch(self, quantity: str) -> Metric | None:
        """The mean per launch (or the ratio); ``None`` if the device does not define the quantity."""
        value = self.values.get(quantity)
        return None if value is None else value.per_launch


# Sums of metrics, with the exactness that their parts leave them.


def add_up(quantity: Quantity, parts: Mapping[str, QuantityValue], origin: Origin) -> QuantityValue | None:
    """The sum of the known ``parts`` per launch; ``None`` when no part is known.

    An unknown part makes the sum a lower bound, or a partial estimate beside an estimate. Parts known for
    different numbers of launches are added per launch, and the total is that sum over the smallest number.
    """
    known = {name: part for name, part in parts.items() if part.per_launch.value is not None}
    if not known:
        return None
    metrics = [part.per_launch for part in known.values()]
    launches = min(part.launches for part in known.values())
    exactness = exactness_of_sum(m.exactness for m in metrics)
    if len(known) < len(parts):
        exactness = exactness_of_part(exactness)
    elif exactness is Exactness.EXACT and len({part.launches for part in known.values()}) > 1:
        exactness = Exactness.ESTIMATE
    notes = dict.fromkeys(m.note for m in metrics if m.note and m.value)
    per_launch = Metric(
        value=sum(low_or_middle(m, exactness) for m in metrics),
        unit=quantity.unit,
        exactness=exactness,
        origin=origin,
        formula=" + ".join(known),
        counters=tuple(sorted({name for m in metrics for name in m.counters})),
        missing=tuple(sorted({name for part in parts.values() for name in part.per_launch.missing})),
        upper=_upper(metrics) if exactness is Exactness.INTERVAL else None,
        source="sum of the quantities named in the formula",
        note=" ".join(notes) or None,
        partial=exactness is Exactness.ESTIMATE and (len(known) < len(parts) or is_open_above(*metrics)),
    )
    return QuantityValue(per_launch, _times(per_launch, launches), launches)


def exactness_of_sum(parts: Iterable[Exactness | None]) -> Exactness:
    """What is known about a sum of non-negative parts: no bound survives an estimate, which may be high."""
    kinds = set(parts)
    for kind in (Exactness.ESTIMATE, Exactness.LOWER_BOUND, Exactness.INTERVAL):
        if kind in kinds:
            return kind
    return Exactness.EXACT


def exactness_of_part(known: Exactness | None) -> Exactness:
    """What a sum of which ``known`` is the known part says about the whole."""
    return Exactness.ESTIMATE if known is Exactness.ESTIMATE else Exactness.LOWER_BOUND


def is_open_above(*metrics: Metric) -> bool:
    """Whether the truth may be any amount above one of them: a lower bound, or an estimate of a part."""
    return any(metric.partial or metric.exactness is Exactness.LOWER_BOUND for metric in metrics)


def low_or_middle(metric: Metric, exactness: Exactness) -> float:
    """The lower end, which bounds are made of; in an estimate the middle."""
    low = metric.value or 0.0
    return (low + metric.upper) / 2 if exactness is Exactness.ESTIMATE and metric.upper is not None else low


def _upper(metrics: list[Metric]) -> float:
    return sum(m.value or 0.0 if m.upper is None else m.upper for m in metrics)


def _times(metric: Metric, launches: int) -> Metric:
    assert metric.value is not None
    upper = None if metric.upper is None else metric.upper * launches
    return attrs.evolve(metric, value=metric.value * launches, upper=upper)


# Quotients: what a bound, an interval or an estimate leaves of a rate or an intensity.


def quotient(numerator: Metric, denominator: Metric, unit: str, formula: str) -> Metric:
    """``numerator / denominator``; unknown with a reason when one is unknown or the divisor is zero.

    Exact zero over anything is exact zero. A lower bound below the line gives an upper bound, which has no
    label of its own and is called an estimate. So is a bound beside an estimate.
    """
    missing = tuple(sorted({*numerator.missing, *denominator.missing}))
    if numerator.value is None or denominator.value is None:
        lacking = numerator if numerator.value is None else denominator
        return Metric.unknown(unit, lacking.reason or "not recorded", missing)
    if denominator.value <= 0 and (denominator.upper or 0) <= 0:
        return Metric.unknown(unit, f"the divisor of {formula} is zero", missing)
    low, high, exactness = _bounds(numerator, denominator)
    return Metric(
        value=low,
        unit=unit,
        exactness=exactness,
        origin=_origin(numerator, denominator),
        formula=formula,
        counters=tuple(sorted({*numerator.counters, *denominator.counters})),
        missing=missing,
        upper=high if exactness is Exactness.INTERVAL else None,
        note=numerator.note or denominator.note,
        partial=exactness is Exactness.ESTIMATE and is_open_above(numerator),
    )


def _bounds(numerator: Metric, denominator: Metric) -> tuple[float, float | None, Exactness]:
    assert numerator.value is not None
    assert denominator.value is not None
    top, top_high = numerator.value, numerator.upper
    bottom, bottom_high = denominator.value, denominator.upper
    kinds = {numerator.exactness, denominator.exactness}
    if top == 0 and numerator.exactness is Exactness.EXACT:
        return 0.0, None, Exactness.EXACT
    if denominator.exactness is Exactness.LOWER_BOUND:
        return top / bottom if bottom > 0 else 0.0, None, Exactness.ESTIMATE
    if Exactness.ESTIMATE in kinds:
        return _middle(top, top_high) / _middle(bottom, bottom_high), None, Exactness.ESTIMATE
    if Exactness.LOWER_BOUND in kinds:
        return top / (bottom_high or bottom), None, Exactness.LOWER_BOUND
    if Exactness.INTERVAL not in kinds:
        return top / bottom, None, Exactness.EXACT
    if bottom <= 0:  # the upper end is without bound
        return top / (bottom_high or bottom), None, Exactness.LOWER_BOUND
    return top / (bottom_high or bottom), (top if top_high is None else top_high) / bottom, Exactness.INTERVAL


def _middle(low: float, high: float | None) -> float:
    return low if high is None else (low + high) / 2


def _origin(numerator: Metric, denominator: Metric) -> Origin | None:
    known = [metric.origin for metric in (numerator, denominator) if metric.origin is not None]
    return Origin.weakest(known) if known else None


def scaled(metric: Metric, factor: float, unit: str, formula: str, source: str | None = None) -> Metric:
    """``metric`` times an exact number, e.g. divided by a ceiling."""
    if metric.value is None:
        return Metric.unknown(unit, metric.reason or "not recorded", metric.missing)
    return Metric(
        value=metric.value * factor,
        unit=unit,
        exactness=metric.exactness,
        origin=metric.origin,
        formula=formula,
        counters=metric.counters,
        missing=metric.missing,
        upper=None if metric.upper is None else metric.upper * factor,
        source=source,
        note=metric.note,
        partial=metric.partial,
    )


def largest(metrics: Sequence[Metric], unit: str, formula: str) -> Metric:
    """The largest of ``metrics``; one that is unknown leaves a lower bound, of an estimate a partial one."""
    known = [metric for metric in metrics if metric.value is not None]
    if not known:
        reasons = dict.fromkeys(metric.reason for metric in metrics if metric.reason)
        return Metric.unknown(unit, "; ".join(reasons) or "not recorded")
    top = max(known, key=lambda metric: metric.value or 0.0)
    open_above = len(known) < len(metrics) or is_open_above(*known)
    ends = [metric.value or 0.0 if metric.upper is None else metric.upper for metric in known]
    exactness = exactness_of_part(top.exactness) if open_above else top.exactness
    if not open_above and exactness is not Exactness.ESTIMATE and max(ends) > (top.value or 0.0):
        exactness = Exactness.INTERVAL
    return Metric(
        value=top.value,
        unit=unit,
        exactness=exactness,
        origin=top.origin,
        formula=formula,
        counters=tuple(sorted({name for metric in known for name in metric.counters})),
        missing=tuple(sorted({name for metric in metrics for name in metric.missing})),
        upper=max(ends) if exactness is Exactness.INTERVAL else None,
        note=top.note,
        partial=open_above and exactness is Exactness.ESTIMATE,
    )


# Every quantity of a device, by the first of its formulas that the recorded counters allow.

#: A reason names this many missing counters; ``Metric.missing`` has them all.
NAMED_COUNTERS = 4


def derive_quantities(
    kernel: KernelCounters, device: DeviceModel, origin: Origin
) -> tuple[KernelQuantities, tuple[Diagnostic, ...]]:
    """All quantities of ``device`` for ``kernel``; ``origin`` is that of the counter passes."""
    solver = _Solver(kernel, device_constants(device), origin, device.counter_map.quantities)
    values = {quantity.name: solver.value(quantity.name) for quantity in device.counter_map.quantities}
    return KernelQuantities(kernel.name, kernel.launches, values), tuple(solver.diagnostics)


@attrs.define
class _Solver:
    """Evaluates quantities on demand, each once, so that sums may name quantities in any order."""

    kernel: KernelCounters
    constants: Mapping[str, float]
    origin: Origin
    _quantities: tuple[Quantity, ...]
    diagnostics: list[Diagnostic] = attrs.field(factory=list)
    _done: dict[str, QuantityValue] = attrs.field(factory=dict)
    _open: set[str] = attrs.field(factory=set)

    def value(self, name: str) -> QuantityValue:
        if name not in self._done:
            quantity = next((q for q in self._quantities if q.name == name), None)
            if quantity is None or name in self._open:
                problem = "is not defined" if quantity is None else "is a part of itself"
                return _unknown("", f"the counter map is wrong: quantity {name} {problem}")
            self._open.add(name)
            self._done[name] = self._solve(quantity)
            self._open.discard(name)
        return self._done[name]

    def _solve(self, quantity: Quantity) -> QuantityValue:
        try:
            return self._by_formula(quantity) or self._by_sum(quantity) or self._missing(quantity)
        except BadDataError as error:
            self.diagnostics.append(Diagnostic("counters.bad_formula", f"{quantity.name}: {error.fact}"))
            return _unknown(quantity.unit, error.fact)

    def _by_formula(self, quantity: Quantity) -> QuantityValue | None:
        for formula in quantity.formulas:
            outcome = evaluate_formula(formula, self.kernel, self.constants)
            if outcome is None:
                continue
            if self.kernel.in_turns:
                outcome = _of_some_launches(outcome)
            self._note_clamping(quantity, outcome)
            return _as_value(quantity, formula, outcome, self._absent(quantity, outcome), self.origin)
        return None

    def _by_sum(self, quantity: Quantity) -> QuantityValue | None:
        parts = {name: self.value(name) for name in quantity.sum_of}
        return add_up(quantity, parts, self.origin)

    def _absent(self, quantity: Quantity, outcome: FormulaOutcome) -> tuple[str, ...]:
        """Counters of the preferred formula that were not recorded, unless the figure is exact anyway."""
        if outcome.exactness is Exactness.EXACT:
            return ()
        return self._unrecorded(quantity.formulas[0])

    def _unrecorded(self, formula: Formula) -> tuple[str, ...]:
        return tuple(name for name in counters_of(formula) if self.kernel.recorded_name(name) is None)

    def _missing(self, quantity: Quantity) -> QuantityValue:
        if not quantity.formulas:
            parts = [self.value(name).per_launch for name in quantity.sum_of]
            missing = tuple(sorted({name for part in parts for name in part.missing}))
            return _unknown(quantity.unit, _not_recorded(missing), missing)
        missing = self._unrecorded(quantity.formulas[0])
        if missing:
            return _unknown(quantity.unit, _not_recorded(missing), missing)
        return _unknown(quantity.unit, self._why_inapplicable(quantity.formulas[0]))

    def _why_inapplicable(self, formula: Formula) -> str:
        if self.kernel.sums(counters_of(formula)) is None:
            return "its counters were never read for the same launch"
        return f"a device fact in {formula.expression} is unknown"

    def _note_clamping(self, quantity: Quantity, outcome: FormulaOutcome) -> None:
        for term, launches in outcome.clamped.items():
            clamping = f": {term} is negative in {launches} of {outcome.launches} launches, "
            same = [each for each in self.diagnostics if clamping in each.fact]
            others = "".join(f"{each.fact.partition(':')[0]}, " for each in same)
            self.diagnostics[:] = [each for each in self.diagnostics if each not in same]
            self.diagnostics.append(
                Diagnostic(
                    "counters.negative_remainder",
                    f"{others}{quantity.name}{clamping}which can't be: what rests on it is an estimate",
                    cause="the counters were read in different passes, or carry noise",
                    remedy="read them in one pass",
                )
            )


def _of_some_launches(outcome: FormulaOutcome) -> FormulaOutcome:
    """Each counter is of some launches of the kernel, and others of other ones: that bounds nothing."""
    if outcome.value is None:
        return outcome
    value = outcome.value if outcome.upper is None else (outcome.value + outcome.upper) / 2
    return attrs.evolve(outcome, value=value, upper=None, exactness=Exactness.ESTIMATE)


def _as_value(
    quantity: Quantity,
    formula: Formula,
    outcome: FormulaOutcome,
    missing: tuple[str, ...],
    origin: Origin,
) -> QuantityValue:
    interval = f" .. {formula.upper_expression}" if outcome.upper is not None else ""
    total = Metric(
        value=outcome.value,
        unit=quantity.unit,
        exactness=outcome.exactness,
        origin=origin,
        formula=formula.expression + interval,
        counters=outcome.counters,
        missing=missing,
        upper=outcome.upper,
        source=formula.source,
        reason=outcome.reason,
        note=formula.note,
        partial=outcome.partial,
    )
    return QuantityValue(_per_launch(total, quantity, outcome.launches), total, outcome.launches)


def _per_launch(total: Metric, quantity: Quantity, launches: int) -> Metric:
    if not quantity.additive or total.value is None:
        return total
    upper = None if total.upper is None else total.upper / launches
    return attrs.evolve(total, value=total.value / launches, upper=upper)


def _unknown(unit: str, reason: str, missing: tuple[str, ...] = ()) -> QuantityValue:
    metric = Metric.unknown(unit, reason, missing)
    return QuantityValue(metric, metric, 0)


def _not_recorded(missing: tuple[str, ...]) -> str:
    if not missing:
        return "its counters were not recorded"
    named, more = missing[:NAMED_COUNTERS], len(missing) - NAMED_COUNTERS
    return f"not recorded: {', '.join(named)}" + (f" and {more} more" if more > 0 else "")
