"""Names that a function or file declares, with type and initial value as far as the source shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_llm_unroll.syntax.tree import text_of, walk

if TYPE_CHECKING:
    from collections.abc import Collection

    from tree_sitter import Node

_DECLARING = frozenset(
    {"declaration", "parameter_declaration", "optional_parameter_declaration", "field_declaration"}
)
_INNER_SCOPES = frozenset(
    {
        "function_definition",
        "struct_specifier",
        "class_specifier",
        "lambda_expression",
        "parameter_list",
        "template_parameter_list",
    }
)
_INDIRECT = frozenset(
    {"pointer_declarator", "reference_declarator", "array_declarator", "function_declarator"}
)


@frozen(eq=False)
class Declared:
    """``indirect``: a pointer, reference, array or function, so that its value may change elsewhere."""

    name: str
    node: Node
    type_text: str
    specifiers: frozenset[str]
    value: Node | None
    indirect: bool
    template: bool


def declared_names(scope: Node, *, skip: Collection[str] = ()) -> tuple[Declared, ...]:
    """Every variable, parameter and template parameter declared at or below ``scope``.

    Nodes of a type in ``skip`` are not entered.
    """
    declared = []
    for node in walk(scope, skip=skip):
        if node.type in _DECLARING:
            declared.extend(_of_declaration(node))
    return tuple(declared)


def file_scope_names(root: Node) -> tuple[Declared, ...]:
    """What the file declares outside functions, classes and parameter lists."""
    return declared_names(root, skip=_INNER_SCOPES)


def _of_declaration(node: Node) -> list[Declared]:
    kind = node.child_by_field_name("type")
    specifiers = frozenset(
        text_of(child)
        for child in node.children
        if child.type in {"type_qualifier", "storage_class_specifier"} or child.type.startswith("__")
    )
    template = node.parent is not None and node.parent.type == "template_parameter_list"
    value = node.child_by_field_name("default_value")
    declared = []
    for declarator in node.children_by_field_name("declarator"):
        name, own_value, indirect = _unwrap(declarator)
        if name is not None:
            type_text = text_of(kind) if kind is not None else ""
            declared.append(
                Declared(text_of(name), node, type_text, specifiers, own_value or value, indirect, template)
            )
    return declared


def _unwrap(declarator: Node) -> tuple[Node | None, Node | None, bool]:
    value, indirect = None, False
    node: Node | None = declarator
    while node is not None and node.type not in {"identifier", "field_identifier"}:
        if node.type == "init_declarator":
            value = node.child_by_field_name("value")
        indirect = indirect or node.type in _INDIRECT
        inner = node.child_by_field_name("declarator")
        if inner is None:  # references and attributed declarators keep theirs without a field name
            inner = next(
                (c for c in node.named_children if "declarator" in c.type or c.type == "identifier"), None
            )
        node = inner
    return node, value, indirect
