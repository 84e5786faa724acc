"""Kernel definitions of a file: plain, templated, ``extern "C"``, or declared through a macro."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_llm_unroll.syntax.tree import line_of, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.syntax.macros import Macros

_WRAPPERS = frozenset({"template_declaration", "linkage_specification"})


@frozen(eq=False)
class KernelNode:
    """``outer`` includes ``template <...>`` and ``extern "C"``; ``ordinal`` counts kernels of one name."""

    name: str
    ordinal: int
    function: Node
    outer: Node
    body: Node

    @property
    def line(self) -> int:
        return line_of(self.function)

    @property
    def parameters(self) -> Node | None:
        """The parameter list of the declarator that is followed by the body."""
        return parameters_of(self.function)


def find_kernels(root: Node, macros: Macros) -> tuple[KernelNode, ...]:
    """Kernels with a body, in file order."""
    kernels: list[KernelNode] = []
    for node in walk(root, skip=("compound_statement",)):  # no kernel inside a function
        if node.type != "function_definition":
            continue
        body = node.child_by_field_name("body")
        if body is None or body.type != "compound_statement" or not _is_kernel(node, body, macros):
            continue
        name = function_name(node)
        ordinal = sum(kernel.name == name for kernel in kernels)
        kernels.append(KernelNode(name, ordinal, node, _outer(node), body))
    return tuple(kernels)


def function_name(function: Node) -> str:
    """The unqualified name; of a macro that makes the declarator, its first argument."""
    declarator = _function_declarator(function)
    if declarator is None:
        return ""
    name = declarator.child_by_field_name("declarator")
    if name is not None and name.type == "function_declarator":
        inner = name.child_by_field_name("parameters")
        return text_of(inner).strip("()").partition(",")[0].strip() if inner is not None else ""
    while name is not None and name.type in {"template_function", "qualified_identifier"}:
        name = name.child_by_field_name("name")
    return text_of(name) if name is not None else ""


def parameters_of(function: Node) -> Node | None:
    """The parameter list of a function definition."""
    declarator = _function_declarator(function)
    return None if declarator is None else declarator.child_by_field_name("parameters")


def _function_declarator(function: Node) -> Node | None:
    node = function.child_by_field_name("declarator")
    while node is not None and node.type != "function_declarator":
        node = node.child_by_field_name("declarator")
    return node


def _is_kernel(function: Node, body: Node, macros: Macros) -> bool:
    for node in walk(function):
        if node.start_byte >= body.start_byte:
            return False
        if node.type == "__global__":
            return True
        if node.type in {"identifier", "type_identifier"} and _makes_kernel(text_of(node), macros):
            return True
    return False


def _makes_kernel(word: str, macros: Macros) -> bool:
    waiting, seen = [word], {word}
    while waiting:
        words = macros.words(waiting.pop())
        if "__global__" in words:
            return True
        waiting += words - seen
        seen |= words
    return False


def _outer(function: Node) -> Node:
    node = function
    while node.parent is not None and node.parent.type in _WRAPPERS:
        node = node.parent
    return node
