"""Pointers of a kernel that lead to different memory: what launches hand over, and what it follows.

``__restrict__`` promises that what is reached by one pointer, and changed, is reached by no other (C17,
6.7.3.1). Two proofs make that promise true. Where it is launched, each pointer is a variable of its own to
which nothing but an allocation is ever written: live allocations never overlap. In the kernel no pointer
comes from anywhere but its parameters and variables: none is loaded from memory or made of a number.

Work-items that hand values to each other through a pointer hold several copies of it. A barrier or atomic
orders that, and the promise could be read as if it did not. So where there is one, only what the kernel
loads alone is given.
"""

from __future__ import annotations

import re

import attrs

from rpl_optimize.source_meaning.effects import Effects, Followed
from rpl_optimize.source_meaning.functions import (
    FUNCTIONS,
    body_of,
    children,
    events_of,
    type_name,
    without_parentheses,
)
from rpl_optimize.source_meaning.launches import launch_nodes
from rpl_optimize.source_meaning.syntax_dump import Node
from rpl_optimize.source_meaning.unit import Unit
from rpl_optimize.source_meaning.value_ranges import Parents, below, offset_of, plain

__all__ = ["separate_pointers"]

#: Functions of the HIP runtime that write the address of new memory to their first argument (HIP API,
#: "Memory Management").
_ALLOCATIONS = frozenset(
    ("hipMalloc", "hipMallocManaged", "hipMallocAsync", "hipHostMalloc", "hipExtMallocWithFlags")
)
_CALLS = frozenset(("CallExpr", "CXXMemberCallExpr", "CXXOperatorCallExpr"))
#: What may bring a pointer in some other way, or is not looked into.
_NOT_FOLLOWED = frozenset(
    (
        *("LambdaExpr", "StmtExpr", "GCCAsmStmt", "MSAsmStmt", "AtomicExpr", "CXXNewExpr", "VAArgExpr"),
        *("CXXTemporaryObjectExpr", "RecoveryExpr", "BuiltinBitCastExpr", "CXXInheritedCtorInitExpr"),
    )
)
_NUMBERS = re.compile(
    r"(?:const )?(?:struct )?(?:HIP_vector_type<[\w ]+, \d>|dim3|__half2?"
    r"|(?:u?(?:char|short|int|long|longlong)|float|double)[1-4])"
)
#: Functions without a body that know no memory but what they are given: clang's builtins, AMD's library.
_OF_THE_COMPILER = re.compile(r"__(?:builtin|ocml|ockl|sync|atomic|hip_atomic|scoped_atomic|c11_atomic)_\w+")
_ONE_POINTER = re.compile(r"[^*&\[(]+\*(?: ?(?:const|__restrict))*")


class _RefusedError(Exception):
    """The message is the reason."""


def separate_pointers(host: Unit, device: Unit, text: bytes, kernel: str) -> tuple[str, ...] | str:
    """Pointer parameters that may be ``__restrict__``, or why none; both units with their headers."""
    functions = [one.node for one in device.own if one.kind in FUNCTIONS and not one.inside]
    instances = [node for node in functions if node.get("name") == kernel and node.get("mangledName")]
    if not instances:
        return "the compiler sees no such kernel that is compiled"
    try:
        found = [_kept_apart(device, text, one) for one in instances]
        _require_allocations(host, text, kernel)
    except _RefusedError as refused:
        return str(refused)
    names = tuple(name for name in found[0] if all(name in one for one in found))
    return names or "work-items wait for each other, and it stores by each of its pointers"


# The kernel.


def _kept_apart(unit: Unit, text: bytes, function: Node) -> list[str]:
    """Parameters of one instance by name, where it follows no pointer but those that it is given."""
    _require_no_other_pointers(unit, function, set())
    pointers = [one for one in children(function) if one.get("kind") == "ParmVarDecl"]
    pointers = [one for one in pointers if "*" in type_name(one)]
    for one in pointers:
        if not _ONE_POINTER.fullmatch(type_name(one)) or "volatile" in type_name(one):
            raise _RefusedError(f"{one.get('name')} is more than a pointer to values")
    names = [str(one.get("name")) for one in pointers]
    if not Effects(unit, text).steps(tuple(events_of(function)), own_text=True):
        return names
    followed = Followed.of(function)
    stored = {
        access.root
        for node, _ in below(function)
        for access in followed.accesses(node)
        if access.mode == "store"
    }
    return [name for name in names if Followed.pointed_to(name) not in stored]


def _require_no_other_pointers(unit: Unit, function: Node, seen: set[str]) -> None:
    nodes = tuple(below(function))
    own = {node["id"]: node for node, _ in nodes if node.get("kind") in {"VarDecl", "ParmVarDecl"}}
    for node, parents in nodes:
        kind = node.get("kind", "")
        if kind in _NOT_FOLLOWED or (kind == "CXXConstructExpr" and not _NUMBERS.fullmatch(type_name(node))):
            raise _RefusedError(f"it has what is not followed ({kind})")
        if node.get("castKind") == "IntegralToPointer":
            raise _RefusedError("it makes a pointer of a number")
        if node.get("castKind") == "LValueToRValue" and "*" in type_name(node):
            loaded = [own.get(one) for one in _variables(children(node)[0])]
            if any(one is None or _is_kept(one) for one in loaded):
                raise _RefusedError("it loads a pointer from memory")
        name = node.get("referencedDecl", {}) if kind == "DeclRefExpr" and "*" in type_name(node) else {}
        if name.get("id") in own and not _is_own_value(node, parents):
            raise _RefusedError(f"the pointer {name.get('name')} may be changed unseen")
        if kind in _CALLS:
            _require_called(unit, node, seen)


def _variables(place: Node) -> list[str]:
    """The variables that an expression may name; of another place an empty name."""
    place = without_parentheses(place)
    if place.get("kind") == "ConditionalOperator":
        return [one for part in children(place)[1:] for one in _variables(part)]
    return [str(place.get("referencedDecl", {}).get("id", "")) if place.get("kind") == "DeclRefExpr" else ""]


def _is_kept(variable: Node) -> bool:
    shared = any(one.get("kind") == "CUDASharedAttr" for one in children(variable))
    return shared or variable.get("storageClass") is not None or "&" in type_name(variable)


def _is_own_value(node: Node, parents: Parents) -> bool:
    """Whether a pointer variable is loaded, or changed by an expression that is looked at itself."""
    kinds = {"ParenExpr", "ConditionalOperator"}
    outer = next((one for one in reversed(parents) if one.get("kind") not in kinds), {})
    sign = outer.get("opcode")
    changed = sign in {"=", "+=", "-="} and without_parentheses(children(outer)[0]) is node
    return outer.get("castKind") == "LValueToRValue" or changed or sign in {"++", "--"}


def _require_called(unit: Unit, call: Node, seen: set[str]) -> None:
    callee = plain(children(call)[0])
    identity = callee.get("referencedMemberDecl") or callee.get("referencedDecl", {}).get("id")
    if identity is None:
        raise _RefusedError("it calls a function that is not named")
    if identity in seen:
        return
    seen.add(identity)
    defined = _defined(unit, identity)
    if defined is not None:
        _require_no_other_pointers(unit, defined, seen)
        return
    declared = unit.dump.function(identity)
    name = "a variable" if declared is None else str(declared.get("name"))
    if not _OF_THE_COMPILER.fullmatch(name) or "*" in type_name(call):
        raise _RefusedError(f"it calls what is not looked into: {name}")


def _defined(unit: Unit, identity: str) -> Node | None:
    known = (unit.dump.function(one) for one in unit.dump.redeclarations(identity))
    return next((one for one in known if one is not None and body_of(one) is not None), None)


# The launches.


def _require_allocations(unit: Unit, text: bytes, kernel: str) -> None:
    launches = launch_nodes(unit, kernel)
    if not launches:
        raise _RefusedError("its name is used in other ways than a launch, or the file launches it nowhere")
    variables = _Variables(unit, text)
    for function, launch, _ in launches:
        if not function.get("mangledName"):
            continue  # the pattern of a template: its instances are looked at
        given = [one for one in children(launch)[2:] if "*" in type_name(one)]
        roots = [root for one in given if not _is_null(one) for root in (_root(one),)]
        for root in roots:
            variables.require_allocated(root)
        if len(set(roots)) != len(roots):
            raise _RefusedError("a launch gives it the same memory twice")


def _root(pointer: Node) -> str:
    """The variable that a pointer is made of: ``p``, ``p + n`` or ``&p[n]``, which lead to one allocation."""
    node = plain(pointer)
    if node.get("kind") == "BinaryOperator" and node.get("opcode") in {"+", "-"}:
        sides = [one for one in children(node) if "*" in type_name(one)]
        if len(sides) == 1:
            return _root(sides[0])
    if node.get("kind") == "UnaryOperator" and node.get("opcode") == "&":
        target = without_parentheses(children(node)[0])
        if target.get("kind") == "ArraySubscriptExpr":
            return _root(next(one for one in children(target) if "*" in type_name(one)))
    if node.get("kind") != "DeclRefExpr" or node["referencedDecl"].get("kind") != "VarDecl":
        raise _RefusedError("a launch gives it a pointer that is no variable of the function")
    return str(node["referencedDecl"]["id"])


def _is_null(node: Node) -> bool:
    node = plain(node)
    kind = node.get("kind")
    if kind == "InitListExpr":
        return all(_is_null(one) for one in children(node))
    zero = kind == "IntegerLiteral" and str(node.get("value")) == "0"
    return zero or kind in {"CXXNullPtrLiteralExpr", "GNUNullExpr", "ImplicitValueInitExpr"}


@attrs.define(eq=False)
class _Variables:
    """Of the host pass of one file."""

    unit: Unit
    text: bytes
    _declared: dict[str, Node] = attrs.field(factory=dict, init=False)
    _uses: dict[str, list[tuple[Node, Parents]]] = attrs.field(factory=dict, init=False)
    _checked: set[str] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        functions = [one.node for one in self.unit.own if one.kind in FUNCTIONS and not one.inside]
        for function in functions:
            for node, parents in below(function):
                if node.get("kind") == "VarDecl":
                    self._declared[node["id"]] = node
                elif node.get("kind") == "DeclRefExpr":
                    self._uses.setdefault(node["referencedDecl"]["id"], []).append((node, parents))

    def require_allocated(self, identity: str) -> None:
        """Nothing is ever written to the variable but allocations, and those of variables of this kind."""
        if identity in self._checked:
            return
        self._checked.add(identity)
        inside = self._declared.get(identity)
        declared = self.unit.dump.variable(identity) if inside is None else inside
        name = None if declared is None else declared.get("name")
        shared = declared is None or declared.get("storageClass") not in (
            {"static"} if inside is None else {None, "static"}
        )
        if declared is None or shared or not _ONE_POINTER.fullmatch(type_name(declared)):
            raise _RefusedError(f"{name or 'a pointer'} is no variable of this file alone")
        value = [one for one in children(declared) if not one.get("kind", "").endswith("Attr")]
        uses = self._uses.get(identity, [])
        if self.unit.dump.mentions(identity) != len(uses):
            raise _RefusedError(f"{name} is used outside of functions")
        if any(not _is_null(one) for one in value):
            raise _RefusedError(f"{name} begins as something else than an allocation")
        for node, parents in uses:
            if not self._keeps(node, parents):
                raise _RefusedError(f"{name} may hold something else than an allocation of its own")

    def _keeps(self, node: Node, parents: Parents) -> bool:
        around = [one for one in reversed(parents) if one.get("kind") != "ParenExpr"]
        outer = around[0] if around else {}
        if outer.get("castKind") == "LValueToRValue":
            return True
        if outer.get("kind") in {"LambdaExpr", "UnaryExprOrTypeTraitExpr"}:  # its body has uses of its own
            return True
        if outer.get("opcode") == "=":
            target, value = children(outer)
            return without_parentheses(target) is node and _is_null(value)
        if outer.get("kind") == "CallExpr":
            return self._swaps(outer)
        if outer.get("opcode") != "&":
            return False
        call = next((one for one in around[1:] if not str(one.get("kind")).endswith("CastExpr")), {})
        arguments = children(call)[1:2] if call.get("kind") == "CallExpr" else []
        first = plain(arguments[0]) if arguments else {}
        return first is outer and self._allocates(children(call)[0])

    def _swaps(self, call: Node) -> bool:
        """``std::swap(p, q)``: each still holds an allocation that the other one does not."""
        callee, *given = children(call)
        name = plain(callee)
        begin, (last, length, macro) = offset_of(name)[0], offset_of(name, "end")
        if macro or self.text[begin : last + length] != b"std::swap" or len(given) != 2:
            return False
        for one in given:
            if one.get("kind") != "DeclRefExpr":
                return False
            self.require_allocated(str(one["referencedDecl"]["id"]))
        return True

    def _allocates(self, callee: Node) -> bool:
        """A function of the runtime, or one that hands its first parameter on to it and does nothing else."""
        identity = plain(callee).get("referencedDecl", {}).get("id", "")
        defined = _defined(self.unit, identity)
        if defined is None:
            declared = (self.unit.dump.function(one) for one in self.unit.dump.redeclarations(identity))
            names = {one.get("mangledName") for one in declared if one is not None}
            return bool(names) and names <= _ALLOCATIONS
        statements = children(body_of(defined) or {})
        if len(statements) != 1 or statements[0].get("kind") != "ReturnStmt":
            return False
        call = plain(children(statements[0])[0]) if children(statements[0]) else {}
        first = next((one for one in children(defined) if one.get("kind") == "ParmVarDecl"), None)
        if call.get("kind") != "CallExpr" or len(children(call)) < 2 or first is None:
            return False
        handed = plain(children(call)[1]).get("referencedDecl", {}).get("id")
        return bool(handed == first["id"]) and self._allocates(children(call)[0])
