"""Expressions of space files: arithmetic and comparisons on parameters, and nothing else.

Python's grammar is parsed, and only the nodes that are named here are evaluated: no attribute, no index, no
call but those of ``FUNCTIONS``. A space file may come from elsewhere, so it can't run code, and it can't
make a number that fills the memory.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.errors import BadDataError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.interfaces.space import Value

#: Longer or deeper texts are refused (chosen: far more than anybody writes).
_MOST_CHARACTERS, _MOST_DEPTH = 2000, 60
#: Larger whole numbers than this are no launch parameter (chosen).
_LARGEST = 10**30

ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
}
_Evaluate = Callable[[Mapping[str, Any]], Any]


class ExpressionError(BadDataError):
    """An expression can't be understood, or has no value for a configuration."""


@frozen
class Expression:
    """A checked expression. ``names`` are the parameters that it needs."""

    text: str
    names: frozenset[str]
    _evaluate: _Evaluate = attrs.field(eq=False, repr=False)

    def value(self, values: Mapping[str, Value]) -> Value:
        """Its value for one configuration. Raises ``ExpressionError`` where it has none."""
        try:
            result: Value = self._evaluate(values)
        except (ArithmeticError, ValueError, TypeError) as error:
            shown = ", ".join(f"{name}={values[name]!r}" for name in sorted(self.names))
            raise ExpressionError(f"{self.text!r} has no value for {shown}: {error}") from None
        return result


def parse_expression(text: str, parameters: frozenset[str]) -> Expression:
    """Check ``text`` and make it ready. Raises ``ExpressionError`` naming what is not permitted."""
    if len(text) > _MOST_CHARACTERS:
        raise ExpressionError(f"an expression of {len(text)} characters is too long")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(
            f"{text!r} is no expression", next_step="write for example `BLOCK_M * BLOCK_N <= 4096`"
        ) from None
    names = frozenset(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id not in FUNCTIONS
    )
    unknown = sorted(names - parameters)
    if unknown:
        raise ExpressionError(
            f"{text!r} uses {unknown[0]!r}, which is no parameter",
            next_step=f"the parameters are {', '.join(sorted(parameters))}",
        )
    return Expression(text, names, _compiled(tree, text, 0))


def compiled(node: ast.expr, text: str) -> _Evaluate:
    """One expression of a tree that is read elsewhere, by the same rules."""
    return _compiled(node, text, 0)


def _compiled(node: ast.expr, text: str, depth: int) -> _Evaluate:
    if depth > _MOST_DEPTH:
        raise ExpressionError(f"{text!r:.80} is nested too deeply")
    make = _NODES.get(type(node))
    if make is None:
        raise ExpressionError(
            f"{text!r} holds {ast.unparse(node)!r}, which space files may not use",
            next_step="use numbers, parameters, + - * / // % **, comparisons, and, or, not, "
            f"{', '.join(sorted(FUNCTIONS))}",
        )
    return make(node, text, depth + 1)


def _constant(node: ast.Constant, text: str, _depth: int) -> _Evaluate:
    value = node.value
    if not isinstance(value, (bool, int, float, str)):
        raise ExpressionError(
            f"{text!r} holds {ast.unparse(node)!r}, which is no number, text or truth value"
        )
    if isinstance(value, int) and value > _LARGEST:
        raise ExpressionError(f"{text!r:.80} holds a number that is too large")
    return lambda _values: value


def _name(node: ast.Name, text: str, _depth: int) -> _Evaluate:
    if node.id in FUNCTIONS:
        raise ExpressionError(f"{text!r} uses the function {node.id!r} without arguments")
    name = node.id
    return lambda values: values[name]


def _binary(node: ast.BinOp, text: str, depth: int) -> _Evaluate:
    work = ARITHMETIC.get(type(node.op))
    if work is None:
        raise ExpressionError(f"{text!r} holds an operator that space files may not use")
    left, right = _compiled(node.left, text, depth), _compiled(node.right, text, depth)
    is_power = isinstance(node.op, ast.Pow)

    def evaluate(values: Mapping[str, Any]) -> Any:
        a, b = _number(left(values)), _number(right(values))
        if is_power and abs(b) > 64:
            raise ValueError("the exponent is too large")
        return _number(work(a, b))

    return evaluate


def _number(value: Any) -> Any:
    """``value``, unless one can't calculate with it."""
    if not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} is not a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("the result is not finite")
    if abs(value) > _LARGEST:
        raise ValueError("the result is too large")
    return value


def _unary(node: ast.UnaryOp, text: str, depth: int) -> _Evaluate:
    operand = _compiled(node.operand, text, depth)
    if isinstance(node.op, ast.Not):
        return lambda values: not operand(values)
    if isinstance(node.op, ast.USub):
        return lambda values: -_number(operand(values))
    if isinstance(node.op, ast.UAdd):
        return lambda values: _number(operand(values))
    raise ExpressionError(f"{text!r} holds an operator that space files may not use")


def _boolean(node: ast.BoolOp, text: str, depth: int) -> _Evaluate:
    parts = [_compiled(part, text, depth) for part in node.values]
    if isinstance(node.op, ast.And):
        return lambda values: all(part(values) for part in parts)
    return lambda values: any(part(values) for part in parts)


def _comparison(node: ast.Compare, text: str, depth: int) -> _Evaluate:
    works = [COMPARISONS.get(type(op)) for op in node.ops]
    sides = [_compiled(side, text, depth) for side in (node.left, *node.comparators)]
    if None in works:
        raise ExpressionError(f"{text!r} holds a comparison that space files may not use")

    def evaluate(values: Mapping[str, Any]) -> bool:
        found = [side(values) for side in sides]
        return all(work(a, b) for work, a, b in zip(works, found[:-1], found[1:], strict=True) if work)

    return evaluate


def _choice(node: ast.IfExp, text: str, depth: int) -> _Evaluate:
    test, then, other = (_compiled(part, text, depth) for part in (node.test, node.body, node.orelse))
    return lambda values: then(values) if test(values) else other(values)


def _call(node: ast.Call, text: str, depth: int) -> _Evaluate:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in FUNCTIONS or node.keywords or not node.args:
        raise ExpressionError(
            f"{text!r} calls {ast.unparse(node.func)!r}", next_step=f"use {', '.join(sorted(FUNCTIONS))}"
        )
    function, arguments = FUNCTIONS[name], [_compiled(part, text, depth) for part in node.args]
    return lambda values: function(*[_number(argument(values)) for argument in arguments])


def _listed(node: ast.List | ast.Tuple, text: str, depth: int) -> _Evaluate:
    items = [_compiled(item, text, depth) for item in node.elts]
    return lambda values: [item(values) for item in items]


_NODES: Mapping[type[ast.expr], Callable[[Any, str, int], _Evaluate]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _comparison,
    ast.IfExp: _choice,
    ast.Call: _call,
    ast.List: _listed,
    ast.Tuple: _listed,
}
