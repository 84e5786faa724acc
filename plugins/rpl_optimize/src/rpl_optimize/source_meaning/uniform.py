"""Whether all work-items of a block come to a kernel's barriers, each as often as the others.

A variable of the kernel is the same number in all of them while it is only ever given what is: numbers,
arguments of the launch, ``blockIdx``, ``blockDim`` and ``gridDim``, other such variables, and arithmetic of
these, under conditions that are the same themselves. Whatever is loaded or returned by a call, and
``threadIdx``, may differ. All variables are taken for the same first, and those that an assignment shows to
differ are struck off until no more are.

On the hardware a wave that has ended is not waited for, so a barrier that some waves never come to may well
work. Whoever puts another barrier behind such a one breaks it: that a kernel works is not enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import attrs

from rpl_optimize.source_meaning.functions import body_of, children, type_name
from rpl_optimize.source_meaning.operations import is_loaded, is_special, value_of
from rpl_optimize.source_meaning.syntax_dump import Node
from rpl_optimize.source_meaning.value_ranges import below, ends_of

__all__ = ["not_for_all"]

_SAME = re.compile(rb"(?:blockDim|blockIdx|gridDim)\s*\.\s*[xyz]|hip(?:BlockDim|BlockIdx|GridDim)_[xyz]")
_NUMBER = re.compile(
    r"(?:const )?(?:(?:unsigned |signed )?(?:char|short|int|long|long long|__int128)|bool|float|double)"
)
_COMPUTES = frozenset(
    (
        *("ImplicitCastExpr", "CStyleCastExpr", "CXXStaticCastExpr", "CXXFunctionalCastExpr", "ParenExpr"),
        *("ConditionalOperator", "ExprWithCleanups"),
    )
)
_NUMBERS = frozenset(
    (
        *("IntegerLiteral", "FloatingLiteral", "CXXBoolLiteralExpr", "CharacterLiteral", "ConstantExpr"),
        *("SubstNonTypeTemplateParmExpr", "UnaryExprOrTypeTraitExpr"),
    )
)
_CASTS = frozenset(
    (
        *("LValueToRValue", "NoOp", "IntegralCast", "IntegralToBoolean", "IntegralToFloating"),
        *("FloatingToIntegral", "FloatingCast", "FloatingToBoolean"),
    )
)
_ASSIGN = re.compile(r"(?:[-+*/%&|^]|<<|>>)?=|\+\+|--")
#: Behind these, what stands in an expression may not be evaluated by all.
_PERHAPS = frozenset(("ConditionalOperator", "BinaryConditionalOperator", "&&", "||"))
_JUMPS = frozenset(("BreakStmt", "ContinueStmt"))
_LOOPS = frozenset(("ForStmt", "WhileStmt", "DoStmt"))


def not_for_all(
    function: Node, text: bytes, variable: Callable[[str], Node | None], is_barrier: Callable[[Node], bool]
) -> Node | None:
    """The first barrier of a kernel that not all work-items are known to come to, if there is one.

    ``variable`` finds declarations of the unit by id. Other jumps than ``break``, ``continue`` and ``return``
    are the caller's to refuse, and barriers in functions that the kernel calls.
    """
    walk = _Walk(text, variable, is_barrier)
    for node, parents in below(function):
        kind = node.get("kind")
        if kind in {"VarDecl", "ParmVarDecl"}:
            walk.declared[node["id"]] = node
            if not _NUMBER.fullmatch(type_name(node)) or is_special(node):
                walk.differ.add(node["id"])
        elif kind == "DeclRefExpr" and not is_loaded(parents):
            nearest = next((one for one in reversed(parents) if one.get("kind") != "ParenExpr"), {})
            target = _assigns(nearest) and any(one is node for one, _ in below(_left(nearest)))
            if not target:
                walk.differ.add(str(node["referencedDecl"].get("id")))
    body = body_of(function)
    assert body is not None
    while True:
        before = len(walk.differ), len(walk.torn)
        walk.left, walk.found = False, None
        walk.statement(body, (), apart=False)
        if (len(walk.differ), len(walk.torn)) == before:
            return walk.found


def _assigns(node: Node) -> bool:
    kinds = {"BinaryOperator", "CompoundAssignOperator", "UnaryOperator"}
    return node.get("kind") in kinds and _ASSIGN.fullmatch(str(node.get("opcode"))) is not None


def _left(assignment: Node) -> Node:
    """A node with the target of an assignment below it."""
    return {"inner": children(assignment)[:1]}


@attrs.define(eq=False)
class _Walk:
    """``differ`` are ids of variables, ``torn`` those of what some work-items leave before others.

    ``left``: some have left the kernel. Of a statement: not all come to it (``apart``), and the loops and
    each ``switch`` that it stands in (``around``).
    """

    text: bytes
    variable: Callable[[str], Node | None]
    is_barrier: Callable[[Node], bool]
    declared: dict[str, Node] = attrs.field(factory=dict)
    differ: set[str] = attrs.field(factory=set)
    torn: set[str] = attrs.field(factory=set)
    left: bool = False
    found: Node | None = None

    def statement(self, node: Node, around: tuple[Node, ...], *, apart: bool) -> None:
        kind, parts = node.get("kind"), children(node)
        apart = apart or self.left
        if kind in {"IfStmt", "SwitchStmt"}:
            first = len(parts) - (2 if node.get("hasElse") else 1)  # behind the condition
            for part in parts[:first]:
                self.statement(part, around, apart=apart)
            under = apart or node["id"] in self.torn or not self.same(parts[first - 1])
            inner = (*around, node) if kind == "SwitchStmt" else around
            for part in parts[first:]:
                self.statement(part, inner, apart=under)
        elif kind in _LOOPS:
            condition = parts[{"ForStmt": -3, "WhileStmt": -2, "DoStmt": -1}[str(kind)]]
            whole = not condition.get("kind") or self.same(condition)  # of for (;;) it is empty
            inside = apart or node["id"] in self.torn or not whole
            for part in parts:
                self.statement(part, (*around, node), apart=inside)
        elif kind in _JUMPS:
            # It may leave a switch only: that the loop around it is torn, too, is the safe answer.
            nearest = max((at for at, one in enumerate(around) if one.get("kind") in _LOOPS), default=0)
            self.torn.update(one["id"] for one in around[nearest:] if apart)
        elif kind == "ReturnStmt":
            self.left = self.left or apart
            self.torn.update(one["id"] for one in around if apart)
        elif kind in {"CompoundStmt", "DeclStmt", "CaseStmt", "DefaultStmt", "AttributedStmt", "NullStmt"}:
            for part in parts:
                self.statement(part, around, apart=apart)
        elif kind == "CallExpr" and self.is_barrier(node):
            if apart and self.found is None:
                self.found = node
        else:
            self.expression(node, apart=apart)

    def expression(self, node: Node, *, apart: bool) -> None:
        """What a declaration or an expression gives to variables."""
        if node.get("kind") == "VarDecl":
            value = value_of(node)
            if value is not None and (apart or not self.same(value)):
                self.differ.add(node["id"])
        for one, parents in ((node, ()), *below(node)):
            perhaps = any({around.get("kind"), around.get("opcode")} & _PERHAPS for around in parents)
            if one.get("kind") == "VarDecl" and one is not node:
                self.differ.add(one["id"])
            if one.get("kind") == "CallExpr" and self.is_barrier(one) and self.found is None:
                self.found = one  # in an expression, where it is not followed
            if not _assigns(one):
                continue
            value = children(one)[1] if len(children(one)) > 1 else None
            if apart or perhaps or (value is not None and not self.same(value)):
                for target, _ in below(_left(one)):
                    self.differ.add(str(target.get("referencedDecl", {}).get("id")))

    def same(self, node: Node, seen: frozenset[str] = frozenset()) -> bool:
        """Whether an expression is one number for all work-items of a block."""
        begin, end = ends_of(node)
        if 0 <= begin < end and _SAME.fullmatch(self.text[begin:end]):
            return True
        kind, parts = node.get("kind"), children(node)
        reference = node.get("referencedDecl", {})
        if kind in _NUMBERS or reference.get("kind") == "EnumConstantDecl":
            return True
        if kind == "DeclRefExpr":
            identity = str(reference.get("id"))
            if identity in self.declared:
                return identity not in self.differ
            variable = None if identity in seen else self.variable(identity)
            if variable is None or not _NUMBER.fullmatch(type_name(variable)) or is_special(variable):
                return False
            value = value_of(variable)
            constant = type_name(variable).startswith("const ") or variable.get("constexpr")
            return bool(constant) and value is not None and self.same(value, seen | {identity})
        if kind == "UnaryOperator":
            computes = node.get("opcode") in {"+", "-", "~", "!"}
        elif kind == "BinaryOperator":
            computes = not _assigns(node) and node.get("opcode") != ","
        else:
            computes = kind in _COMPUTES and node.get("castKind", "NoOp") in _CASTS
        return computes and bool(parts) and all(self.same(part, seen) for part in parts)
