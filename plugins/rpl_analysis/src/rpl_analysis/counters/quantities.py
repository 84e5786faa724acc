"""Every quantity of a device's counter map for one kernel, as metrics with formula and exactness.

The first formula whose counters were all recorded for at least one dispatch is used. A quantity without
such a formula may be the sum of others; what remains is unknown and names the counters it lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.counters.formulas import (
    FormulaOutcome,
    counters_of,
    device_constants,
    evaluate_formula,
)
from rpl_analysis.counters.model import KernelQuantities, QuantityValue
from rpl_analysis.counters.sums_of_quantities import add_up
from rpl_core.errors import BadDataError
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.metric import Exactness, Metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_analysis.counters.model import KernelCounters
    from rpl_core.model.device import DeviceModel, Formula, Quantity
    from rpl_core.model.metric import Origin

__all__ = ["derive_quantities"]

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
        if outcome.exactness is not None and outcome.exactness.value == "exact":
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
            found = f": {term} is negative in {launches} of {outcome.launches} launches, "
            same = [each for each in self.diagnostics if found in each.fact]
            others = "".join(f"{each.fact.partition(':')[0]}, " for each in same)
            self.diagnostics[:] = [each for each in self.diagnostics if each not in same]
            self.diagnostics.append(
                Diagnostic(
                    "counters.negative_remainder",
                    f"{others}{quantity.name}{found}which can't be: what rests on it is an estimate",
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
