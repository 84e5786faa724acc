"""The formula language of device plugins: arithmetic over names, checked before it is evaluated.

A formula is text from a plugin, so it is parsed into a syntax tree of which only numbers, names, the four
operations, signs and ``max0(x)`` are let through; nothing is ever executed. Division by zero and overflow
give no value and a reason, never an infinity.
"""

from __future__ import annotations

import ast
import math
from functools import lru_cache
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["Evaluation", "Expression", "parse_expression"]

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
        found: dict[str, int] = {}
        if _CLAMP not in self.text:
            return found
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call):
                rows = int(np.count_nonzero(_column_of(node.args[0], columns) < 0))
                if rows:
                    found[ast.unparse(node.args[0])] = rows
        return found


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
