"""Guards on memory that others see or that the launch decides: dynamic LDS, volatile, static storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_llm_unroll.guards import names
from rpl_llm_unroll.syntax.tree import line_of, text_of, walk
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.loops.view import LoopView


def dynamic_lds(view: LoopView) -> GuardVerdict:
    """The loop must not touch LDS whose size the launch decides, directly or through a pointer into it."""
    tainted = _points_into_dynamic_lds(view)
    for mention in view.mentions:
        if mention.name in tainted or names.DYNAMIC_LDS.fullmatch(mention.name):
            reason = f"{mention.describe()} is dynamic shared memory"
            if mention.name in tainted and mention.name not in view.file.dynamic_lds:
                reason = f"{mention.describe()} points into dynamic shared memory"
            return GuardVerdict("dynamic-lds", False, reason, mention.line)
    return GuardVerdict("dynamic-lds", True, "no dynamic shared memory is used")


def volatile(view: LoopView) -> GuardVerdict:
    """Accesses to volatile objects must keep their number and order as written."""
    for mention in view.mentions:
        if mention.name == "volatile":  # in the text of a macro
            return GuardVerdict("volatile", False, f"{mention.describe()} access", mention.line)
        if mention.name in view.file.volatile:
            return GuardVerdict("volatile", False, f"{mention.describe()} is volatile", mention.line)
    for node in walk(view.loop.node):
        if node.type == "type_qualifier" and text_of(node) == "volatile":
            return GuardVerdict("volatile", False, "a volatile access", line_of(node))
    return GuardVerdict("volatile", True, "nothing volatile is used")


def static_storage(view: LoopView) -> GuardVerdict:
    """A ``__shared__`` or ``static`` variable declared in the loop is one object for all iterations."""
    for node in walk(view.loop.node):
        if node.type == "declaration" and (word := _storage(node)) is not None:
            reason = f"a {word} variable is declared inside the loop"
            return GuardVerdict("static-storage", False, reason, line_of(node))
    return GuardVerdict("static-storage", True, "no variable with static storage is declared inside")


def _storage(declaration: Node) -> str | None:
    words = {text_of(c) for c in declaration.children if not c.type.endswith("declarator")}
    return next((word for word in ("__shared__", "static", "extern", "thread_local") if word in words), None)


def _points_into_dynamic_lds(view: LoopView) -> set[str]:
    """Dynamic arrays and every local that was ever given a value computed from one; flow is ignored."""
    tainted = set(view.file.dynamic_lds)
    flows = _assignments(view.kernel.body)
    # A function that mentions such an array may return a pointer into it.
    flows += [(name, _identifiers(f)) for name, found in view.file.functions.items() for f in found]
    while True:
        more = {name for name, sources in flows if sources & tainted} - tainted
        if not more:
            return tainted - {view.kernel.name}
        tainted |= more


def _assignments(body: Node) -> list[tuple[str, set[str]]]:
    found = []
    for node in walk(body):
        if node.type == "init_declarator" and _is_address(node):
            target, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        elif node.type == "assignment_expression":
            target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        else:
            continue
        # An element copied into an element or member is a value; anything else may be an address.
        if target is not None and value is not None and not _copies_element(target, value):
            found += [(name, _identifiers(value)) for name in _owner(target)]
    return found


def _copies_element(target: Node, value: Node) -> bool:
    plain = target.type == "identifier" or target.type.endswith("declarator")
    return not plain and value.type in {"subscript_expression", "binary_expression", "call_expression"}


def _owner(target: Node) -> set[str]:
    """The variable that is written: of ``view.data[i]`` it is ``view``."""
    node = target
    while node.type in {"field_expression", "subscript_expression", "pointer_expression"}:
        inner = node.child_by_field_name("argument")
        if inner is None:
            break
        node = inner
    return _identifiers(node)


def _identifiers(node: Node) -> set[str]:
    return {text_of(n) for n in walk(node) if n.type == "identifier"}


def _is_address(node: Node) -> bool:
    """Whether the declared object can hold an address; a copied element of plain type can't."""
    declarator = node.child_by_field_name("declarator")
    if declarator is not None and declarator.type in {"pointer_declarator", "reference_declarator"}:
        return True
    kind = node.parent.child_by_field_name("type") if node.parent is not None else None
    return kind is not None and kind.type not in {"primitive_type", "sized_type_specifier"}
