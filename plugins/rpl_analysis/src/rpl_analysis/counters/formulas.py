"""Evaluate one formula of a counter map for one kernel: value, exactness, and what was missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.counters.expressions import parse_expression
from rpl_core.model.metric import Exactness
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_analysis.counters.expressions import Expression
    from rpl_analysis.counters.model import CounterSums, KernelCounters
    from rpl_core.model.device import DeviceModel, Formula

__all__ = ["FormulaOutcome", "counters_of", "device_constants", "evaluate_formula"]

#: Device facts that a formula may name.
CONSTANT_NAMES = (
    "xcd_count",
    "compute_units",
    "wave_size",
    "simd_per_cu",
    "max_waves_per_simd",
    "fp32_valu_width",
)


@frozen
class FormulaOutcome:
    """The figure over ``launches`` dispatches; ``value`` is ``None`` with a reason where it is undefined.

    ``clamped`` are terms that count what can't be less than nothing and were negative, with the number of
    launches: the counters contradict each other there, so the figure is an estimate.
    """

    value: float | None
    upper: float | None
    exactness: Exactness | None
    launches: int
    counters: tuple[str, ...]
    reason: str | None = None
    clamped: Mapping[str, int] = attrs.field(factory=dict)
    partial: bool = False


def device_constants(device: DeviceModel) -> dict[str, float]:
    """The constants of a device that are known; an unknown one is absent."""
    values = {name: getattr(device, name) for name in CONSTANT_NAMES}
    return {name: float(value) for name, value in values.items() if value is not None}


def counters_of(formula: Formula) -> tuple[str, ...]:
    """The counters that a formula's value needs, sorted, without device constants."""
    return tuple(sorted(_names(formula) - set(CONSTANT_NAMES)))


def evaluate_formula(
    formula: Formula, kernel: KernelCounters, constants: Mapping[str, float]
) -> FormulaOutcome | None:
    """Evaluate ``formula`` over all dispatches of ``kernel`` that have its counters.

    ``None`` means that the formula does not apply: a counter or a device constant is missing, or no
    dispatch has all counters.
    """
    counters = counters_of(formula)
    recorded = tuple(counter for counter in counters if kernel.recorded_name(counter) is not None)
    if (counters and not recorded) or (recorded != counters and not formula.absent_as_zero):
        return None
    sums = kernel.sums(recorded)
    expression = parse_expression(formula.expression)
    if sums is None or not _names(formula) & set(CONSTANT_NAMES) <= constants.keys():
        return None
    values = {**constants, **dict.fromkeys(counters, 0.0), **sums.values}
    evaluated = expression.evaluate(values)
    if evaluated.value is None:
        return FormulaOutcome(None, None, None, sums.launches, recorded, evaluated.reason)
    clamped = _contradictions(formula, {**constants, **dict.fromkeys(counters, 0.0)}, sums)
    clamped = {**clamped, **_inconsistent(formula, kernel)}
    upper = _upper_end(formula, values) if recorded == counters else None
    value, exactness = evaluated.value, formula.exactness
    if upper is not None and upper == value:
        upper, exactness = None, Exactness.EXACT
    exactness = _refined(formula, exactness, kernel, sums, constants)
    if clamped or (upper is not None and upper < value):
        value, upper, exactness = value if upper is None else (value + upper) / 2, None, Exactness.ESTIMATE
    if recorded != counters:
        exactness = _of_a_part(exactness, value)
    return FormulaOutcome(
        value,
        upper,
        exactness,
        sums.launches,
        recorded,
        clamped=clamped,
        partial=recorded != counters and exactness is Exactness.ESTIMATE,
    )


def _contradictions(formula: Formula, scalars: Mapping[str, float], sums: CounterSums) -> Mapping[str, int]:
    """Negative terms in single launches: in the sum over all launches others may hide them."""
    columns = {name: np.asarray(value) for name, value in scalars.items()} | dict(sums.columns)
    found = dict(parse_expression(formula.expression).negative_in(columns))
    if formula.upper_expression is not None:
        found |= parse_expression(formula.upper_expression).negative_in(columns)
    return found


def _inconsistent(formula: Formula, kernel: KernelCounters) -> Mapping[str, int]:
    """Terms of ``Formula.consistent`` that are negative, and in how many launches that have its counters."""
    if formula.consistent is None:
        return {}
    condition = parse_expression(formula.consistent)
    sums = kernel.sums(condition.names) if all(map(kernel.recorded_name, condition.names)) else None
    return {} if sums is None else condition.negative_in(sums.columns)


def _of_a_part(exactness: Exactness, value: float) -> Exactness:
    """With absent counters as zero: an estimate may be too high, so it bounds nothing unless it is zero."""
    return Exactness.ESTIMATE if exactness is Exactness.ESTIMATE and value else Exactness.LOWER_BOUND


def _names(formula: Formula) -> set[str]:
    names = set(parse_expression(formula.expression).names)
    if formula.upper_expression is not None:
        names |= set(parse_expression(formula.upper_expression).names)
    return names


def _upper_end(formula: Formula, values: Mapping[str, float]) -> float | None:
    if formula.exactness is not Exactness.INTERVAL or formula.upper_expression is None:
        return None
    return parse_expression(formula.upper_expression).evaluate(values).value


def _refined(
    formula: Formula,
    exactness: Exactness,
    kernel: KernelCounters,
    sums: CounterSums,
    constants: Mapping[str, float],
) -> Exactness:
    """The exactness of the first refinement that applies to the same dispatches, else ``exactness``."""
    for refinement in formula.refinements:
        condition = parse_expression(refinement.zero_when)
        if _is_zero(condition, kernel, sums, constants):
            return refinement.exactness
    return exactness


def _is_zero(
    condition: Expression, kernel: KernelCounters, sums: CounterSums, constants: Mapping[str, float]
) -> bool:
    counters = tuple(name for name in condition.names if name not in CONSTANT_NAMES)
    more = kernel.sums(tuple(sorted({*sums.values, *counters})))
    if more is None or more.launches != sums.launches:
        return False
    if not set(condition.names) & set(CONSTANT_NAMES) <= constants.keys():
        return False
    return condition.evaluate({**constants, **more.values}).value == 0
