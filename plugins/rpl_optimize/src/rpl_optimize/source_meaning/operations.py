"""Expressions that only compute: from numbers of their own to a number, functions looked into.

Whoever evaluates such an expression at another place, with the same numbers, gets the same. Nothing is
loaded by a pointer, nothing kept, no other lane is asked, and no function is called whose body is not seen,
but those that pick one of two numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import attrs

from rpl_optimize.source_meaning.functions import FUNCTIONS, body_of, children, type_name
from rpl_optimize.source_meaning.syntax_dump import Node
from rpl_optimize.source_meaning.unit import Unit, last_name
from rpl_optimize.source_meaning.value_ranges import Parents, below, type_range

__all__ = [
    "CALLS",
    "WHOLE_NUMBERS",
    "Operations",
    "RefusedError",
    "bare",
    "callees",
    "is_loaded",
    "is_special",
    "value_of",
]

CALLS = frozenset(("CallExpr", "CXXMemberCallExpr", "CXXOperatorCallExpr"))
#: The largest number of each type of 32 or 64 bits.
WHOLE_NUMBERS = frozenset((1 << bits) - 1 for bits in (31, 32, 63, 64))
_FLOATS = frozenset(("float", "double", "_Float16", "long double", "__bf16"))
_ARITHMETIC = frozenset(("+", "-", "*", "/", "+=", "-=", "*=", "/="))
_CASTS = frozenset(("LValueToRValue", "IntegralCast", "NoOp", "FunctionToPointerDecay", "BuiltinFnToFnPtr"))
#: Known without a body: the larger and the smaller of two.
_PICKS = re.compile(r"__ocml_f(?:max|min)_f(?:32|64)|__builtin_(?:elementwise_(?:max|min)|f(?:max|min)f?)")
_COMPUTES = frozenset(
    (
        *(
            "CompoundStmt",
            "DeclStmt",
            "VarDecl",
            "ReturnStmt",
            "IfStmt",
            "NullStmt",
            "ParenExpr",
            "DeclRefExpr",
        ),
        *("ImplicitCastExpr", "CStyleCastExpr", "CXXStaticCastExpr", "CXXFunctionalCastExpr", "ConstantExpr"),
        *("ExprWithCleanups", "MaterializeTemporaryExpr", "SubstNonTypeTemplateParmExpr", "IntegerLiteral"),
        *("FloatingLiteral", "CharacterLiteral", "CXXBoolLiteralExpr", "UnaryOperator", "BinaryOperator"),
        *("CompoundAssignOperator", "ConditionalOperator", "CXXThisExpr", "MemberExpr", *CALLS),
    )
)


class RefusedError(Exception):
    """The message is the reason."""


@attrs.define(eq=False)
class Operations:
    """Of expressions in one function, whose variables are ``declared`` by id."""

    unit: Unit
    declared: Mapping[str, Node]
    _open: list[str] = attrs.field(factory=list, init=False)

    def on_floats(self, value: Node) -> int:
        """How many operations on floating-point numbers an expression does; elements are its numbers, too.

        Raises ``RefusedError`` where it may do more than to compute.
        """
        total = 0
        for node, parents in below({"inner": [value]}):
            if any(one.get("kind") == "ArraySubscriptExpr" for one in (*parents, node)):
                continue
            if node.get("kind") == "DeclRefExpr":
                self._require_number(node, self.declared)
            total += self._of(node, own=True)
        return total

    def _require_number(self, name: Node, declared: Mapping[str, Node]) -> None:
        """What is named is a function, or a variable that nobody else can change."""
        reference = name["referencedDecl"]
        if reference.get("kind") in FUNCTIONS or reference.get("kind") == "EnumConstantDecl":
            return
        variable = declared.get(str(reference.get("id")))
        if variable is None:
            variable = self.unit.dump.variable(str(reference.get("id"))) or {}
            own = type_name(variable).startswith("const ") and "[" not in type_name(variable)
        else:
            own = not is_special(variable)
        if not own or any(sign in type_name(variable).partition("(lambda")[0] for sign in "*&"):
            raise RefusedError(f"its operation uses {reference.get('name')}, which is not its own")

    def _of(self, node: Node, *, own: bool) -> int:
        kind, sign = node.get("kind", ""), node.get("opcode")
        if kind not in _COMPUTES or "volatile" in type_name(node):
            raise RefusedError(f"its operation has what is not followed ({kind})")
        if sign in {"=", "++", "--"} or kind == "CompoundAssignOperator":
            target = bare(children(node)[0])
            if own or target.get("kind") != "DeclRefExpr" or "&" in _declared_type(target):
                raise RefusedError("its operation changes more than the element")
        if kind == "MemberExpr":
            self._require_own_member(node)
        through = node.get("isArrow") and bare(children(node)[0]).get("kind") != "CXXThisExpr"
        if through or (kind == "UnaryOperator" and sign in {"*", "&"}):
            raise RefusedError("its operation uses a pointer")
        if kind in CALLS:
            return sum(self._called(identity) for identity in callees(node))
        return int(sign in _ARITHMETIC and type_name(node).removeprefix("const ") in _FLOATS)

    def _require_own_member(self, member: Node) -> None:
        """What is named is a method, or a member that an object holds itself: no reference."""
        identity = str(member.get("referencedMemberDecl"))
        if self.unit.dump.function(identity) is not None:
            return
        name = last_name(type_name(children(member)[0]).removesuffix(" *"))
        parts = (part for one in self.unit.dump.classes(name or "") for part in children(one))
        found = next((part for part in parts if part.get("id") == identity), None)
        if found is None or found.get("kind") != "FieldDecl" or "&" in type_name(found):
            raise RefusedError(f"its operation uses {member.get('name')}, which is not its own")

    def _called(self, identity: str) -> int:
        function, name = self.unit.definition(identity)
        if function is None:
            if not _PICKS.fullmatch(name):
                raise RefusedError(f"its operation calls {name}, which is not known to compute only")
            return 0
        if identity in self._open:
            raise RefusedError(f"its operation calls {name}, which calls itself")
        self._open.append(identity)
        total = 0
        variables = (one for one, _ in below(function) if one.get("kind") in {"VarDecl", "ParmVarDecl"})
        own = {one["id"]: {**one, "type": _without_reference(one)} for one in variables}
        for node, _ in below(body_of(function) or {}):
            if node.get("kind") == "VarDecl" and is_special(node):
                raise RefusedError(f"its operation calls {name}, which keeps something")
            if node.get("kind") == "DeclRefExpr":
                self._require_number(node, own)
            total += self._of(node, own=False)
        self._open.pop()
        return total


def _without_reference(variable: Node) -> dict[str, str]:
    """The type of a parameter that refers to a number of the caller and can't change it."""
    name = type_name(variable)
    constant = variable.get("kind") == "ParmVarDecl" and name.startswith("const ") and name.endswith(" &")
    return {"qualType": name.removesuffix(" &") if constant else name}


def _declared_type(name: Node) -> str:
    return str(name.get("referencedDecl", {}).get("type", {}).get("qualType", "&"))


def bare(node: Node) -> Node:
    """Without parentheses and without casts that keep numbers of 32 bits and fewer."""
    while len(inner := children(node)) == 1:
        kept = node.get("castKind") != "IntegralCast" or type_range(node)[1] in WHOLE_NUMBERS
        if node.get("kind") not in {"ParenExpr", "ExprWithCleanups", "ConstantExpr"} and (
            node.get("castKind") not in _CASTS or not kept
        ):
            break
        (node,) = inner
    return node


def callees(call: Node) -> Iterator[str]:
    """The id of the function that is called. Raises ``RefusedError`` where it is not named."""
    callee = bare(children(call)[0]) if children(call) else {}
    identity = callee.get("referencedMemberDecl") or callee.get("referencedDecl", {}).get("id")
    if identity is None or callee.get("referencedDecl", {}).get("kind") in {"VarDecl", "ParmVarDecl"}:
        raise RefusedError("it calls a function that is not named")
    yield str(identity)


def value_of(variable: Node) -> Node | None:
    """What a variable is declared with."""
    value = [one for one in children(variable) if not one.get("kind", "").endswith("Attr")]
    return value[0] if len(value) == 1 else None


def is_special(variable: Node) -> bool:
    """Kept beyond one work-item, or changed by anybody."""
    attributes = {one.get("kind") for one in children(variable)}
    kept = variable.get("storageClass") in {"static", "extern"} and not variable.get("constexpr")
    return kept or "CUDASharedAttr" in attributes or "volatile" in type_name(variable).split()


def is_loaded(parents: Parents, *, constant: bool = False) -> bool:
    """Whether a name or an element stands for its value; with ``constant`` also for a constant reference."""
    for parent in reversed(parents):
        if parent.get("kind") == "ParenExpr" or (constant and parent.get("kind") == "ConditionalOperator"):
            continue
        bound = parent.get("castKind") == "NoOp" and type_name(parent).startswith("const ")
        return bool(parent.get("castKind") == "LValueToRValue" or (constant and bound))
    return False
