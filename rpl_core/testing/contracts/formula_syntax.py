"""The syntax of counter formulas: arithmetic over names, and ``max0``."""

from __future__ import annotations

import ast

_NODES = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.USub,
    ast.Name,
    ast.Load,
    ast.Call,
    ast.Constant,
)


def formula_problem(expression: str) -> str | None:
    """Why ``expression`` is no formula, or ``None``."""
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        return f"not an expression ({error.msg})"
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            return f"{type(node).__name__} is not allowed"
        if isinstance(node, ast.Constant) and (isinstance(node.value, bool) or not _is_number(node.value)):
            return f"{node.value!r} is not a number"
        if isinstance(node, ast.Call) and not _is_max0(node):
            return "the only function is max0(x)"
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float))


def _is_max0(call: ast.Call) -> bool:
    named = isinstance(call.func, ast.Name) and call.func.id == "max0"
    return named and len(call.args) == 1 and not call.keywords
