"""What a constraint can still become while only some of its parameters are set.

A walk over combinations asks it, so that branches without any permitted configuration are left at once. An
answer is a set of values, an interval of numbers, or ``None`` for "anything". It may hold more than is
possible and never less: what a walk leaves out is forbidden for sure.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from rpl_core.errors import BadDataError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.interfaces import Value

#: Longer or deeper texts are refused (chosen: far more than anybody writes).
_MOST_CHARACTERS, _MOST_DEPTH = 2000, 60
#: Larger whole numbers than this are no launch parameter (chosen).
_LARGEST_VALUE = 10**30

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
    if isinstance(value, int) and value > _LARGEST_VALUE:
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
    if abs(value) > _LARGEST_VALUE:
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


#: Larger sets become intervals; sets are combined pair by pair up to so many pairs (chosen: some
#: milliseconds).
_MOST_VALUES, _MOST_PAIRS = 2048, 16384
#: Answers that are kept (chosen: some ten MB).
_MOST_ANSWERS = 100_000
#: Beyond, fractions are too coarse for bounds.
_LARGEST_EXACT = 2.0**52
#: Lowest and highest number, both included.
_Interval: TypeAlias = "tuple[float, float]"
_Possible: TypeAlias = "frozenset[Any] | _Interval | None"
_EITHER: frozenset[Any] = frozenset((True, False))


class Possibilities:
    """One constraint in which the parameters ``known`` are set, and others have ``choices``.

    Answers are kept by what the set parameters come to: in a sum of ten, by the sum of those that are set.
    ``work`` counts combinations that were looked at.
    """

    def __init__(self, text: str, choices: Mapping[str, Sequence[Value]], known: Collection[str]) -> None:
        self._text = text
        self._choices = {name: frozenset(values) for name, values in choices.items() if name not in known}
        self._whole = {name for name, values in choices.items() if all(type(v) is int for v in values)}
        self._parts: list[tuple[str, Callable[[Mapping[str, Any]], Any]]] = []
        self._open: dict[ast.expr, _Possible] = {}
        self._answers: dict[tuple[Any, ...], bool] = {}
        self._bound: dict[str, _Possible] = {}
        self.work = 0
        self._tree = self._with_parts(self._regrouped(ast.parse(text.strip(), mode="eval").body))

    def can_hold(self, values: Mapping[str, Value]) -> bool:
        """Whether it can become true with ``values`` of the parameters that are set."""
        try:
            key = tuple(part(values) for _, part in self._parts)
        except (ArithmeticError, ValueError, TypeError):
            return True  # it has no value, which is said where the whole configuration is known
        if key not in self._answers:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            names = (name for name, _ in self._parts)
            self._bound = {name: frozenset((value,)) for name, value in zip(names, key, strict=True)}
            self._answers[key] = True in self._truths(self._tree)
        return self._answers[key]

    def _regrouped(self, node: ast.expr) -> ast.expr:
        """Sums and products of whole numbers as what is set, and what is not."""
        if isinstance(node, ast.Compare):
            sides = [self._regrouped(side) for side in (node.left, *node.comparators)]
            return ast.Compare(sides[0], node.ops, sides[1:])
        if isinstance(node, ast.BoolOp):
            return ast.BoolOp(node.op, [self._regrouped(part) for part in node.values])
        if not isinstance(node, ast.BinOp):
            return node
        if isinstance(node.op, (ast.Add, ast.Mult)) and self._is_whole(node):
            parts = sorted(_chain(node, type(node.op)), key=self._is_open)  # stable: those that are set first
            number_set = sum(not self._is_open(part) for part in parts)
            groups = [group for group in (parts[:number_set], parts[number_set:]) if group]
            joined = [_folded([self._regrouped(part) for part in group], node.op) for group in groups]
            return _folded(joined, node.op)
        return ast.BinOp(self._regrouped(node.left), node.op, self._regrouped(node.right))

    def _is_whole(self, node: ast.expr) -> bool:
        """Whether it is made of whole numbers by operations that keep them whole."""
        if isinstance(node, ast.BinOp):
            keeps = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult))
            return keeps and self._is_whole(node.left) and self._is_whole(node.right)
        if isinstance(node, ast.Name):
            return node.id in self._whole
        return isinstance(node, ast.Constant) and type(node.value) is int

    def _is_open(self, node: ast.expr) -> bool:
        return any(isinstance(item, ast.Name) and item.id in self._choices for item in ast.walk(node))

    def _with_parts(self, node: ast.expr) -> ast.expr:
        """``node`` with a name in place of each part that has a value once the set parameters have."""
        if isinstance(node, (ast.List, ast.Tuple)):
            return type(node)([self._with_parts(item) for item in node.elts], ast.Load())
        if not self._is_open(node):
            name = f"part {len(self._parts)}"
            self._parts.append((name, compiled(node, self._text)))
            return ast.Name(name)
        if isinstance(node, ast.Compare):
            sides = [self._with_parts(side) for side in (node.left, *node.comparators)]
            return ast.Compare(sides[0], node.ops, sides[1:])
        if isinstance(node, ast.BoolOp):
            return ast.BoolOp(node.op, [self._with_parts(part) for part in node.values])
        if isinstance(node, ast.BinOp):
            return ast.BinOp(self._with_parts(node.left), node.op, self._with_parts(node.right))
        if isinstance(node, ast.UnaryOp):
            return ast.UnaryOp(node.op, self._with_parts(node.operand))
        if isinstance(node, ast.IfExp):
            return ast.IfExp(*(self._with_parts(side) for side in (node.test, node.body, node.orelse)))
        if isinstance(node, ast.Call):
            return ast.Call(node.func, [self._with_parts(argument) for argument in node.args], [])
        return node

    def _of(self, node: ast.expr) -> _Possible:
        if isinstance(node, ast.Name):
            return self._bound[node.id] if node.id in self._bound else self._choices[node.id]
        if node not in self._open:
            found = self._partly(node)
            names = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
            if names.isdisjoint(name for name, _ in self._parts):
                self._open[node] = found  # nothing of it is set: the same for all values
            return found
        return self._open[node]

    def _partly(self, node: ast.expr) -> _Possible:
        if isinstance(node, (ast.BoolOp, ast.Compare)) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            return self._truths(node)
        if isinstance(node, ast.IfExp):
            return self._chosen(node)
        if isinstance(node, ast.BinOp):
            parts = [self._of(side) for side in (node.left, node.right)]
            return self._combined(ARITHMETIC[type(node.op)], parts, _BOUNDS.get(type(node.op)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            parts = [self._of(argument) for argument in node.args]
            return self._combined(FUNCTIONS[node.func.id], parts, _BOUNDS_OF_CALLS.get(node.func.id))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._of(node.operand)
            return self._combined(ARITHMETIC[ast.Sub], [frozenset((0,)), inner], _BOUNDS[ast.Sub])
        return None

    def _truths(self, node: ast.expr) -> frozenset[Any]:
        """Which of true and false it can be."""
        if isinstance(node, ast.BoolOp):
            alone = isinstance(node.op, ast.Or)  # what one part alone can decide
            found = [self._truths(part) for part in node.values]
            if frozenset((alone,)) in found:
                return frozenset((alone,))
            return _EITHER if _EITHER in found else frozenset((not alone,))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return frozenset(not truth for truth in self._truths(node.operand))
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            each = [self._compared(op, *both) for op, both in zip(node.ops, pairwise(sides), strict=True)]
            if frozenset((False,)) in each:
                return frozenset((False,))
            return _EITHER if _EITHER in each else frozenset((True,))
        whole = self._of(node)
        return frozenset(bool(one) for one in whole) if isinstance(whole, frozenset) else _EITHER

    def _compared(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> frozenset[Any]:
        first = self._of(left)
        if isinstance(right, (ast.List, ast.Tuple)):
            among = [self._of(item) for item in right.elts]
            items = [next(iter(one)) for one in among if isinstance(one, frozenset) and len(one) == 1]
            if not isinstance(first, frozenset) or len(items) < len(among):
                return _EITHER
            second: _Possible = frozenset((tuple(items),))
        else:
            second = self._of(right)
        found = self._combined(COMPARISONS[type(op)], [first, second], _ORDERS.get(type(op)))
        return found if isinstance(found, frozenset) else _EITHER

    def _chosen(self, node: ast.IfExp) -> _Possible:
        truths = self._truths(node.test)
        sides = [self._of(node.body if truth else node.orelse) for truth in truths]
        sets = [side for side in sides if isinstance(side, frozenset)]
        return frozenset().union(*sets) if len(sets) == len(sides) else None

    def _combined(
        self, work: Callable[..., Any], parts: Sequence[_Possible], bounds: Callable[..., _Possible] | None
    ) -> _Possible:
        """``work`` on every combination of small sets, else on their ends."""
        sets = [part for part in parts if isinstance(part, frozenset)]
        pairs = math.prod(map(len, sets))
        if len(sets) == len(parts) and pairs <= _MOST_PAIRS:
            self.work += pairs
            return _of_sets(work, sets)
        ends = [_ends(part) for part in parts]
        known = [end for end in ends if end is not None]
        if bounds is None or len(known) < len(ends):
            return None
        found = bounds(*known)
        if isinstance(found, tuple) and max(map(abs, found)) > _LARGEST_EXACT:
            return None
        return found


def _chain(node: ast.expr, kind: type[ast.operator]) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, kind):
        return _chain(node.left, kind) + _chain(node.right, kind)
    return [node]


def _folded(parts: Sequence[ast.expr], op: ast.operator) -> ast.expr:
    whole = parts[0]
    for part in parts[1:]:
        whole = ast.BinOp(whole, op, part)
    return whole


def _of_sets(work: Callable[..., Any], sets: Sequence[frozenset[Any]]) -> _Possible:
    numbers = (value for values in sets for value in values)
    if work is ARITHMETIC[ast.Pow] and not all(isinstance(n, (int, float)) and abs(n) <= 64 for n in numbers):
        return None
    calculates = work not in COMPARISONS.values()
    if calculates and not all(isinstance(value, (int, float)) for one in sets for value in one):
        return None
    try:
        found = frozenset(work(*values) for values in product(*sets))
    except (ArithmeticError, ValueError, TypeError):
        return None
    return found if len(found) <= _MOST_VALUES else _ends(found)


def _ends(part: _Possible) -> _Interval | None:
    if not isinstance(part, frozenset):
        return part
    if not part or not all(
        isinstance(value, (int, float)) and abs(value) <= _LARGEST_EXACT for value in part
    ):
        return None
    return float(min(part)), float(max(part))


def _product_ends(a: _Interval, b: _Interval) -> _Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotient_ends(a: _Interval, b: _Interval) -> _Interval | None:
    return _product_ends(a, (1 / b[1], 1 / b[0])) if b[0] > 0 else None


def _floor_ends(a: _Interval, b: _Interval) -> _Interval | None:
    found = _quotient_ends(a, b)
    return None if found is None else (math.floor(found[0]) - 1.0, math.floor(found[1]) + 1.0)


#: Ends of results from ends of operands. Fractions are rounded, so whole numbers keep exact ends and the
#: others a little room, see ``_ORDERS``.
_BOUNDS: Mapping[type[ast.operator], Callable[..., _Possible]] = {
    ast.Add: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ast.Sub: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    ast.Mult: _product_ends,
    ast.Div: _quotient_ends,
    ast.FloorDiv: _floor_ends,
    ast.Mod: lambda _a, b: (0.0, b[1]) if b[0] > 0 else None,
}
_BOUNDS_OF_CALLS: Mapping[str, Callable[..., _Possible]] = {
    "min": lambda *each: (min(one[0] for one in each), min(one[1] for one in each)),
    "max": lambda *each: (max(one[0] for one in each), max(one[1] for one in each)),
}


def _less(a: _Interval, b: _Interval) -> frozenset[Any]:
    """``a < b`` and ``a <= b`` where no rounding can change it, else either."""
    room = 1e-9 * max(map(abs, (*a, *b, 1.0)))
    if a[1] < b[0] - room:
        return frozenset((True,))
    return frozenset((False,)) if a[0] > b[1] + room else _EITHER


def _differ(a: _Interval, b: _Interval) -> bool:
    return True in (_less(a, b) | _less(b, a)) and _EITHER not in (_less(a, b), _less(b, a))


_ORDERS: Mapping[type[ast.cmpop], Callable[..., _Possible]] = {
    ast.Lt: _less,
    ast.LtE: _less,
    ast.Gt: lambda a, b: _less(b, a),
    ast.GtE: lambda a, b: _less(b, a),
    ast.Eq: lambda a, b: frozenset((False,)) if _differ(a, b) else _EITHER,
    ast.NotEq: lambda a, b: frozenset((True,)) if _differ(a, b) else _EITHER,
}
