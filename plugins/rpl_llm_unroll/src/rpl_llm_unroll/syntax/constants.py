"""Evaluate integer constant expressions of a source file; what can't be known for certain is ``None``.

A value counts only if nothing outside the file can change it: a macro under ``#if``, defined twice or
removed again may come from the build's command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rpl_llm_unroll.syntax.tree import parse, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.syntax.declarations import Declared
    from rpl_llm_unroll.syntax.macros import Macros

_LITERAL = re.compile(r"(?P<sign>[-+]?)(?P<digits>0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)[uUlLzZ]*")
_MAX_DEPTH = 24
#: Values that any integer type of a loop counter can hold, so that no arithmetic here can wrap in C++.
_LIMIT = 1 << 31
_UNSIGNED_LITERAL = re.compile(r"[0-9a-fA-F][uU]")
INTEGER_TYPES = frozenset(
    {
        *(
            "int",
            "unsigned",
            "unsigned int",
            "long",
            "unsigned long",
            "long int",
            "long long",
            "unsigned long long",
        ),
        *("size_t", "std::size_t", "ptrdiff_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "uint"),
        *("std::int32_t", "std::uint32_t", "std::int64_t", "std::uint64_t"),
    }
)


def _quotient(left: int, right: int) -> int | None:
    if right == 0:
        return None
    quotient = abs(left) // abs(right)  # C truncates towards zero
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int | None:
    quotient = _quotient(left, right)
    return None if quotient is None else left - right * quotient


def _shift(left: int, right: int, sign: int) -> int | None:
    if left < 0 or not 0 <= right < 62:
        return None
    return left << right if sign > 0 else left >> right


_BINARY: Mapping[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "%": _remainder,
    "<<": lambda a, b: _shift(a, b, 1),
    ">>": lambda a, b: _shift(a, b, -1),
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
}


class Constants:
    """Evaluates expressions with the macros of a file and the constants declared in a scope."""

    def __init__(self, macros: Macros, declared: tuple[Declared, ...]) -> None:
        self._macros = macros
        self._declared: dict[str, list[Declared]] = {}
        for entry in declared:
            self._declared.setdefault(entry.name, []).append(entry)

    def value(self, node: Node, depth: int = _MAX_DEPTH) -> int | None:
        """The integer value of an expression, or ``None``."""
        if depth == 0:
            return None
        found = self._value(node, depth - 1)
        if found is None or abs(found) >= _LIMIT:
            return None
        return None if found < 0 and _UNSIGNED_LITERAL.search(text_of(node)) else found

    def _value(self, node: Node, depth: int) -> int | None:
        if node.type == "number_literal":
            return parse_literal(text_of(node))
        if node.type == "identifier":
            return self._named(text_of(node), depth)
        if node.type in {"parenthesized_expression", "initializer_list"} and len(node.named_children) == 1:
            return self.value(node.named_children[0], depth)
        if node.type == "unary_expression":
            return self._unary(node, depth)
        if node.type == "binary_expression":
            return self._binary(node, depth)
        return None

    def _unary(self, node: Node, depth: int) -> int | None:
        argument, operator = node.child_by_field_name("argument"), node.child_by_field_name("operator")
        inner = self.value(argument, depth) if argument is not None else None
        if inner is None or operator is None:
            return None
        return {"-": -inner, "+": inner}.get(text_of(operator))

    def _binary(self, node: Node, depth: int) -> int | None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if left is None or right is None or operator is None:
            return None
        a, b = self.value(left, depth), self.value(right, depth)
        compute = _BINARY.get(text_of(operator))
        return None if a is None or b is None or compute is None else compute(a, b)

    def _named(self, name: str, depth: int) -> int | None:
        if self._macros.of(name):
            macro = self._macros.only(name)
            return self.value(_expression(macro.replacement), depth) if macro is not None else None
        found = self._declared.get(name, [])
        if len(found) != 1 or found[0].template or found[0].indirect or found[0].value is None:
            return None
        constant = found[0].specifiers & {"const", "constexpr"} and "volatile" not in found[0].specifiers
        constant = constant and found[0].type_text in INTEGER_TYPES
        return self.value(found[0].value, depth) if constant else None


def parse_literal(text: str) -> int | None:
    """An integer literal of C++, sign included as in the grammar; ``None`` for any other literal."""
    match = _LITERAL.fullmatch(text.replace("'", ""))
    if match is None:
        return None
    digits = match["digits"].lower()
    base = 8 if digits.startswith("0") and digits.isdigit() and len(digits) > 1 else 0
    size = int(digits, base)
    return -size if match["sign"] == "-" else size


def _expression(text: str) -> Node:
    root = parse(f"auto value = ({text});".encode())
    found = next((n for n in walk(root) if n.type == "parenthesized_expression"), root)
    return root if root.has_error else found
