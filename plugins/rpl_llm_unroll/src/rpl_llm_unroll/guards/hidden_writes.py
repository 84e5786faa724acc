"""Guard on loop controls that a macro, a reference parameter or a lambda may change out of sight."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rpl_llm_unroll.loops.counted import Counted, control_names, written_name
from rpl_llm_unroll.syntax.kernels import parameters_of
from rpl_llm_unroll.syntax.tree import line_of, text_of, walk
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.loops.view import LoopView

#: Assignment, increment or decrement in the text of a macro.
_MODIFIES = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)|<<=|>>=|&")


def hidden_writes(view: LoopView) -> GuardVerdict:
    """Counter, bound and step may be changed only by the loop's head, also behind calls."""
    if not isinstance(view.form, Counted):
        return GuardVerdict("hidden-writes", True, "the loop has no counter")
    controls = control_names(view.form)
    for node in walk(view.loop.body):
        reason = _suspicious(node, controls, view)
        if reason is not None:
            return GuardVerdict("hidden-writes", False, reason, line_of(node))
    lambdas = (n for n in walk(view.kernel.body) if n.type == "lambda_expression")
    for node in (inner for found in lambdas for inner in walk(found)):
        if (name := written_name(node)) in controls and name != view.form.variable:
            return GuardVerdict("hidden-writes", False, f"a lambda may change {name}", line_of(node))
    return GuardVerdict("hidden-writes", True, "no call can change what controls the loop")


def _suspicious(node: Node, controls: set[str], view: LoopView) -> str | None:
    if node.type == "identifier":
        for macro in view.file.macros.of(text_of(node)):
            hit = controls & set(macro.words())
            if hit and _MODIFIES.search(macro.replacement):
                return f"macro {macro.name} may change {min(hit)}"
    if node.type != "call_expression":
        return None
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None:
        return None
    passed = controls & {text_of(n) for n in walk(arguments) if n.type == "identifier"}
    name = text_of(function).partition("<")[0]
    if passed and any(_MODIFIES.search(m.replacement) for m in view.file.macros.of(name)):
        return f"macro {name} may change {min(passed)}"
    if passed and any(_takes_reference(f) for f in view.file.functions.get(name, ())):
        return f"{name} takes {min(passed)} perhaps by reference"
    return None


def _takes_reference(function: Node) -> bool:
    parameters = parameters_of(function)
    return parameters is not None and any(n.type == "reference_declarator" for n in walk(parameters))
