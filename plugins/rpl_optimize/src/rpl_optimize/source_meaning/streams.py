"""Stores that only hand results out of a kernel, and what a store past the caches means in the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rpl_optimize.interfaces.source_reading import Store
from rpl_optimize.source_meaning.functions import FUNCTIONS, children, type_name
from rpl_optimize.source_meaning.syntax_dump import Node
from rpl_optimize.source_meaning.unit import Unit
from rpl_optimize.source_meaning.value_ranges import Parents, below, offset_of

BUILTIN = "__builtin_nontemporal_store"
#: Types that the builtin takes and that an assignment stores as they are (clang, "Non-temporal load/store").
_NUMBER = re.compile(r"(?:(?:unsigned|signed) )?(?:char|short|int|long|long long|float|double|_Float16)")
_POINTER = re.compile(r"[\w: ]+ \*(?: ?(?:const|__restrict))*")
_CHANGES = frozenset(("CompoundAssignOperator", "LambdaExpr", "StmtExpr"))
_CALLS = frozenset(("CallExpr", "CXXMemberCallExpr", "CXXOperatorCallExpr", "CXXConstructExpr"))
_AROUND = frozenset(("ParenExpr", "MemberExpr"))
_BODIES = {"CompoundStmt": 0, "IfStmt": 1, "ForStmt": -1, "WhileStmt": -1}


def streamed_stores(unit: Unit, kernel: str) -> tuple[Store, ...] | str:
    """Stores to parameters that the kernel only stores to, in every instance, or why there is none."""
    functions = [one.node for one in unit.own if one.kind in FUNCTIONS and not one.inside]
    instances = [node for node in functions if node.get("name") == kernel and node.get("mangledName")]
    if not instances:
        return "the compiler sees no such kernel that is compiled"
    found = [set(_stores(node)) for node in instances]
    common = sorted(set.intersection(*found), key=lambda store: store.begin)
    return tuple(common) or "no parameter is only stored to, element by element"


def _stores(function: Node) -> Iterator[Store]:
    pointers = {
        node["id"]
        for node in children(function)
        if node.get("kind") == "ParmVarDecl" and _POINTER.fullmatch(type_name(node))
    }
    seen_elsewhere = _seen_elsewhere(function)
    uses: dict[str, list[Store | None]] = {}
    for node, parents in below(function):
        identity = node.get("referencedDecl", {}).get("id")
        if node.get("kind") == "DeclRefExpr" and identity in pointers:
            uses.setdefault(identity, []).append(_store(node, parents, seen_elsewhere))
    for stores in uses.values():
        if None not in stores:
            yield from (store for store in stores if store is not None)


def _seen_elsewhere(function: Node) -> set[str]:
    """Variables that a function which is called might change: by reference, address, capture, of the file."""
    own: set[str] = set()
    seen: set[str] = set()
    for node, parents in below(function):
        if node.get("kind") in {"VarDecl", "ParmVarDecl"}:
            own.add(str(node["id"]))
        declared = node.get("referencedDecl", {})
        if node.get("kind") != "DeclRefExpr" or declared.get("kind") not in {"VarDecl", "ParmVarDecl"}:
            continue
        said = str(declared.get("type", {}).get("qualType"))
        if re.fullmatch(r"const [^*&]+", said):
            continue
        outer = next((one for one in reversed(parents) if one.get("kind") not in _AROUND), {})
        assigns = outer.get("opcode") in {"=", "++", "--"} or outer.get("kind") == "CompoundAssignOperator"
        inside = any(one.get("kind") == "LambdaExpr" for one in parents)
        loaded = outer.get("castKind") == "LValueToRValue"
        if declared["id"] not in own or "&" in said or not (loaded or (assigns and not inside)):
            seen.add(str(declared["id"]))
    return seen


def _store(name: Node, parents: Parents, seen_elsewhere: set[str]) -> Store | None:
    """``NAME[INDEX] = VALUE`` as a statement of its own, no end of it out of a macro."""
    load, target, assignment, around = (*reversed(parents), {}, {}, {}, {})[:4]
    if load.get("castKind") != "LValueToRValue" or target.get("kind") != "ArraySubscriptExpr":
        return None
    if children(target)[0] is not load or children(load) != [name]:
        return None
    if not _NUMBER.fullmatch(type_name(target)):
        return None
    if assignment.get("kind") != "BinaryOperator" or assignment.get("opcode") != "=":
        return None
    first, value = children(assignment)
    place = _BODIES.get(around.get("kind", ""))
    if first is not target or value.get("kind") == "InitListExpr" or place is None:
        return None
    if _changes_anything(target) or _changes_anything(value):
        return None
    index = [one for one, _ in below({"inner": children(target)[1:]})]
    other_memory = any(
        one.get("kind") == "ArraySubscriptExpr"
        or one.get("isArrow")
        or (one.get("kind") == "UnaryOperator" and one.get("opcode") == "*")
        for one in index
    )
    named = {one.get("referencedDecl", {}).get("id") for one in index}
    if any(one.get("kind") in _CALLS for one, _ in below({"inner": [value]})) and (
        other_memory or named & seen_elsewhere
    ):
        return None  # the language leaves open whether the place is found before the call or behind it
    at = next(number for number, part in enumerate(children(around)) if part is assignment)
    if at < place or (place < 0 and at != len(children(around)) - 1):
        return None
    ends = [offset_of(node, end) for node in (target, value, assignment) for end in ("begin", "end")]
    if any(macro or offset < 0 for offset, _, macro in ends):
        return None
    (begin, _, _), (last, length, _) = ends[0], ends[1]
    return Store(begin, last + length, ends[2][0], ends[3][0] + ends[3][1])


def restored(node: Node) -> Node:
    """A tree in which each such store is the assignment that it stands for, whose value nobody uses.

    As for an assignment the value is converted to the type of the element. An assignment computes it before
    the place ([expr.ass] since C++17); for arguments the language leaves that open, so neither may change a
    variable.
    """
    if "inner" not in node:
        return node
    inner = [restored(part) if isinstance(part, dict) else part for part in node["inner"]]
    if node.get("kind") == "CallExpr" and _calls_builtin(node):
        value, address = inner[1:3]
        target = children(address)[0] if address.get("opcode") == "&" else {}
        changes = any(_changes_anything(part) for part in children(node)[1:3])
        if target.get("kind") == "ArraySubscriptExpr" and not changes and not _is_special(target):
            made = {"kind": "BinaryOperator", "type": target["type"], "valueCategory": "lvalue"}
            return {**made, "opcode": "=", "inner": [target, value]}
    return {**node, "inner": inner}


def _changes_anything(node: Node) -> bool:
    """Whether an expression assigns, counts, or holds statements of its own."""
    return any(
        one.get("kind") in _CHANGES or one.get("opcode") in {"=", "++", "--"}
        for one, _ in below({"inner": [node]})
    )


def streamed(node: Node) -> int:
    """How many stores past the caches are below a node."""
    return sum(one.get("kind") == "CallExpr" and _calls_builtin(one) for one, _ in below(node))


def _calls_builtin(call: Node) -> bool:
    callee = children(call)[0]
    named = children(callee)[:1] if callee.get("castKind") == "BuiltinFnToFnPtr" else []
    return len(children(call)) == 3 and any(
        one.get("referencedDecl", {}).get("name") == BUILTIN for one in named
    )


def _is_special(target: Node) -> bool:
    return any(word in type_name(target) for word in ("volatile", "_Atomic"))


_OPEN, _CLOSE = b"([{", b")]}"
_CALL = re.compile(rb"\b" + BUILTIN.encode() + rb"\s*\(")


def with_assignments(text: bytes) -> bytes:
    """A text in which each call ``BUILTIN(VALUE, &(TARGET))`` is written ``TARGET = VALUE``."""
    parts, at = [], 0
    for match in _CALL.finditer(text):
        if match.start() < at:
            continue  # inside of another one
        depth, comma, end = 1, -1, match.end()
        while end < len(text) and depth:
            byte = text[end : end + 1]
            depth += (byte in _OPEN) - (byte in _CLOSE)
            comma = end if byte == b"," and depth == 1 else comma
            end += 1
        if depth or comma < 0:
            return text
        value, target = text[match.end() : comma], text[comma + 1 : end - 1].strip().removeprefix(b"&")
        parts += [text[at : match.start()], target, b" = ", with_assignments(value)]
        at = end
    return b"".join([*parts, text[at:]])
