"""Recognise loops that count: one integer variable, one bound, one step, none changed inside the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_llm_unroll.syntax.constants import INTEGER_TYPES
from rpl_llm_unroll.syntax.declarations import declared_names
from rpl_llm_unroll.syntax.tree import line_of, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.loops.source_loop import SourceLoop
    from rpl_llm_unroll.syntax.constants import Constants

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


@frozen(eq=False)
class Counted:
    """``variable`` goes from ``start`` while ``variable relation bound``, by ``step`` (negative: downwards).

    ``step`` is ``None`` when its value is not known; ``step_node`` is ``None`` for ``++`` and ``--``.
    """

    variable: str
    type_text: str
    start: Node
    relation: str
    bound: Node
    step: int | None
    step_node: Node | None
    upwards: bool


@frozen
class NotCounted:
    """Why a loop does not count, and the line that shows it."""

    reason: str
    line: int


def counted_form(loop: SourceLoop, constants: Constants) -> Counted | NotCounted:
    """The counting form of a ``for`` loop, or why it has none."""
    if loop.node.type != "for_statement":
        return NotCounted(f"a {loop.kind} loop has no counter in its head", loop.line)
    head = _head(loop.node)
    if isinstance(head, NotCounted):
        return head
    variable, type_text, start = head
    condition = _condition(loop.node, variable)
    if condition is None:
        return NotCounted(f"the condition does not compare {variable} with one bound", loop.line)
    relation, bound = condition
    update = _update(loop.node, variable, constants)
    if update is None:
        return NotCounted(f"the update does not add to or subtract from {variable}", loop.line)
    step, step_node, upwards = update
    if step == 0 or (relation in {"<", "<="} and not upwards) or (relation in {">", ">="} and upwards):
        return NotCounted(f"{variable} does not move towards its bound", loop.line)
    form = Counted(variable, type_text, start, relation, bound, step, step_node, upwards)
    return _changed_inside(loop, form) or form


def _head(node: Node) -> tuple[str, str, Node] | NotCounted:
    line = line_of(node)
    initializer = node.child_by_field_name("initializer")
    if initializer is None or initializer.type != "declaration":
        return NotCounted("the loop's head declares no counter", line)
    declared = declared_names(initializer)
    if len(declared) != 1 or declared[0].value is None:
        return NotCounted("the loop's head does not declare exactly one counter with a start value", line)
    counter = declared[0]
    assert counter.value is not None
    if counter.indirect or counter.type_text not in INTEGER_TYPES:
        return NotCounted(
            f"the counter {counter.name} has type {counter.type_text}, not a plain integer", line
        )
    if "volatile" in counter.specifiers:
        return NotCounted(f"the counter {counter.name} is volatile", line)
    return counter.name, counter.type_text, counter.value


def _condition(node: Node, variable: str) -> tuple[str, Node] | None:
    condition = node.child_by_field_name("condition")
    if condition is None or condition.type != "binary_expression":
        return None
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    operator = condition.child_by_field_name("operator")
    if left is None or right is None or operator is None or text_of(operator) not in _MIRRORED:
        return None
    relation = text_of(operator)
    if text_of(left) == variable and not _mentions(right, variable):
        return relation, right
    if text_of(right) == variable and not _mentions(left, variable):
        return _MIRRORED[relation], left
    return None


def _update(node: Node, variable: str, constants: Constants) -> tuple[int | None, Node | None, bool] | None:
    update = node.child_by_field_name("update")
    if update is None:
        return None
    if update.type == "update_expression":
        argument, operator = update.child_by_field_name("argument"), update.child_by_field_name("operator")
        if argument is None or operator is None or text_of(argument) != variable:
            return None
        return (1, None, True) if text_of(operator) == "++" else (-1, None, False)
    if update.type != "assignment_expression":
        return None
    left, right = update.child_by_field_name("left"), update.child_by_field_name("right")
    operator = update.child_by_field_name("operator")
    if left is None or right is None or operator is None or text_of(left) != variable:
        return None
    return _assigned_step(text_of(operator), right, variable, constants)


def _assigned_step(
    operator: str, right: Node, variable: str, constants: Constants
) -> tuple[int | None, Node | None, bool] | None:
    if operator == "=" and right.type == "binary_expression":
        first, inner = right.child_by_field_name("left"), right.child_by_field_name("operator")
        second = right.child_by_field_name("right")
        if first is None or inner is None or second is None or text_of(first) != variable:
            return None
        operator, right = f"{text_of(inner)}=", second
    if operator not in {"+=", "-="} or _mentions(right, variable):
        return None
    size = constants.value(right)
    upwards = operator == "+="
    if size is None:
        return None, right, upwards
    step = size if upwards else -size
    return step, right, step > 0


def _changed_inside(loop: SourceLoop, form: Counted) -> NotCounted | None:
    fixed = control_names(form)
    for node in walk(loop.body):
        name = written_name(node)
        if name in fixed:
            return NotCounted(f"{name}, which controls the loop, may change inside it", line_of(node))
    return None


def written_name(node: Node) -> str | None:
    """The plain variable that a node assigns to, counts, or gives the address or a reference of."""
    target: Node | None = None
    if node.type == "assignment_expression":
        target = node.child_by_field_name("left")
    elif node.type == "update_expression" or _takes_address(node):
        target = node.child_by_field_name("argument")
    elif node.type == "reference_declarator" and node.parent is not None:
        target = node.parent.child_by_field_name("value")
    while target is not None and target.type == "parenthesized_expression" and target.named_children:
        target = target.named_children[0]
    return text_of(target) if target is not None and target.type == "identifier" else None


def control_names(form: Counted) -> set[str]:
    """The variables that counter, bound and step are made of."""
    step = set() if form.step_node is None else _names(form.step_node)
    return {form.variable, *_names(form.bound), *step}


def _takes_address(node: Node) -> bool:
    return node.type == "pointer_expression" and text_of(node).startswith("&")


def _names(node: Node) -> set[str]:
    return {text_of(n) for n in walk(node) if n.type == "identifier"}


def _mentions(node: Node, name: str) -> bool:
    return name in _names(node)
