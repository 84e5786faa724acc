"""Formulas of a counter map: evaluated for one kernel, in a language that is checked first."""

from __future__ import annotations

import ast
import math
from functools import lru_cache
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.model.metric import Exactness
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rpl_analysis.counters.quantities import CounterSums, KernelCounters
    from rpl_core.model.device import DeviceModel, Formula

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
    negative = dict(parse_expression(formula.expression).negative_in(columns))
    if formula.upper_expression is not None:
        negative |= parse_expression(formula.upper_expression).negative_in(columns)
    return negative


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


# The formula language of device plugins: arithmetic over names, checked before it is evaluated.
#
# A formula is text from a plugin, so it is parsed into a syntax tree of which only numbers, names, the four
# operations, signs and ``max0(x)`` are let through; nothing is ever executed. Division by zero and overflow
# give no value and a reason, never an infinity.

#: Longest formula accepted; chosen: ten times the longest of the reference device, far below stack limits.
MAX_FORMULA_CHARACTERS = 4000
#: Deepest nesting accepted, so that evaluation cannot exhaust the stack.
MAX_FORMULA_DEPTH = 200
_CLAMP = "max0"


@frozen
class Evaluation:
    """A value, or ``None`` with the reason. ``clamped`` lists the negative terms that ``max0`` cut off."""

    value: float | None
    reason: str | None = None
    clamped: tuple[str, ...] = ()


@frozen
class Expression:
    """A checked formula; ``names`` are the counters and constants that it needs, sorted."""

    text: str
    names: tuple[str, ...]
    _tree: ast.expr = attrs.field(eq=False, repr=False)

    def evaluate(self, values: Mapping[str, float]) -> Evaluation:
        """The value of the formula; ``values`` must hold every one of ``names``."""
        clamped: list[str] = []
        try:
            value = _value_of(self._tree, values, clamped)
        except ZeroDivisionError as error:
            return Evaluation(None, str(error))
        if not math.isfinite(value):
            return Evaluation(None, f"{self.text} overflows")
        return Evaluation(value, clamped=tuple(clamped))

    def negative_in(self, columns: Mapping[str, NDArray[np.float64]]) -> Mapping[str, int]:
        """Each term of ``max0`` that is negative in some rows of ``columns``, and in how many."""
        negative: dict[str, int] = {}
        if _CLAMP not in self.text:
            return negative
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call):
                rows = int(np.count_nonzero(_column_of(node.args[0], columns) < 0))
                if rows:
                    negative[ast.unparse(node.args[0])] = rows
        return negative


@lru_cache(maxsize=4096)
def parse_expression(text: str) -> Expression:
    """Check a formula. Raises ``BadDataError`` that names the first construct which is not allowed."""
    if len(text) > MAX_FORMULA_CHARACTERS:
        raise BadDataError(f"a formula of {len(text)} characters exceeds {MAX_FORMULA_CHARACTERS}")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise BadDataError(f"the formula {text[:80]!r} is not arithmetic: {type(error).__name__}") from error
    names: set[str] = set()
    _check(tree, text, names, 0)
    return Expression(text, tuple(sorted(names)), tree)


def _check(node: ast.expr, text: str, names: set[str], depth: int) -> None:
    if depth > MAX_FORMULA_DEPTH:
        raise BadDataError(f"the formula {text[:80]!r} nests deeper than {MAX_FORMULA_DEPTH}")
    if isinstance(node, ast.Name):
        names.add(node.id)
        return
    if isinstance(node, ast.Constant) and type(node.value) in (int, float) and _is_finite(node.value):
        return
    for child in _operands(node, text):
        _check(child, text, names, depth + 1)


def _is_finite(number: object) -> bool:
    try:
        return math.isfinite(number)  # type: ignore[arg-type]
    except OverflowError:  # an integer literal beyond the range of float
        return False


def _operands(node: ast.expr, text: str) -> tuple[ast.expr, ...]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
        return (node.left, node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        return (node.operand,)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and (node.func.id, len(node.args), len(node.keywords)) == (_CLAMP, 1, 0)
        and not isinstance(node.args[0], ast.Starred)
    ):
        return tuple(node.args)
    raise BadDataError(
        f"the formula {text[:80]!r} uses {type(node).__name__}, which is not allowed",
        next_step=f"use numbers, names, + - * /, brackets and {_CLAMP}(x) only",
    )


def _value_of(node: ast.expr, values: Mapping[str, float], clamped: list[str]) -> float:
    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return float(values[node.id])
    if isinstance(node, ast.UnaryOp):
        operand = _value_of(node.operand, values, clamped)
        return -operand if isinstance(node.op, ast.USub) else operand
    if isinstance(node, ast.Call):
        operand = _value_of(node.args[0], values, clamped)
        if operand < 0:
            clamped.append(ast.unparse(node.args[0]))
        return max(0.0, operand)
    assert isinstance(node, ast.BinOp)
    return _operate(node, _value_of(node.left, values, clamped), _value_of(node.right, values, clamped))


def _column_of(node: ast.expr, columns: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """As ``_value_of`` for every row; what can't be computed is NaN, which is not negative."""
    if isinstance(node, ast.Constant):
        return np.asarray(float(node.value))  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return columns[node.id]
    if isinstance(node, ast.UnaryOp):
        operand = _column_of(node.operand, columns)
        return -operand if isinstance(node.op, ast.USub) else operand
    if isinstance(node, ast.Call):
        return np.maximum(_column_of(node.args[0], columns), 0.0)
    assert isinstance(node, ast.BinOp)
    left, right = _column_of(node.left, columns), _column_of(node.right, columns)
    with np.errstate(all="ignore"):
        if isinstance(node.op, ast.Add):
            return np.add(left, right)
        if isinstance(node.op, ast.Sub):
            return np.subtract(left, right)
        return np.multiply(left, right) if isinstance(node.op, ast.Mult) else np.divide(left, right)


def _operate(node: ast.BinOp, left: float, right: float) -> float:
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    if right == 0:
        raise ZeroDivisionError(f"{ast.unparse(node.right)} is zero")
    return left / right
