"""Where a source launches a kernel, and with how many work-items: the compiler's tree of its host code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rpl_core.values import frozen
from rpl_optimize.source_meaning.functions import FUNCTIONS, children, type_name
from rpl_optimize.source_meaning.syntax_dump import Node
from rpl_optimize.source_meaning.unit import Unit
from rpl_optimize.source_meaning.value_ranges import (
    MOST_WORK_ITEMS,
    Parents,
    Range,
    ValueRanges,
    below,
    offset_of,
    plain,
)

Block = tuple[int, int, int]

_LAUNCH = "CUDAKernelCallExpr"
_WRAPPED = frozenset(
    (
        *("ImplicitCastExpr", "CStyleCastExpr", "CXXFunctionalCastExpr", "CXXStaticCastExpr", "ParenExpr"),
        *("ExprWithCleanups", "MaterializeTemporaryExpr", "CXXBindTemporaryExpr", "ConstantExpr"),
    )
)
#: Functions of HIP that launch what they are given first, with the grid and the block that follow (HIP API,
#: "Execution Control"). The last two are templates; where they are macros clang sees ``<<<...>>>``.
_LAUNCHING = frozenset(
    (
        *("hipLaunchKernel", "hipLaunchCooperativeKernel", "hipExtLaunchKernel"),
        *("hipLaunchKernelGGL", "hipExtLaunchKernelGGL"),
    )
)
#: Between an argument and the name of a function in it.
_NAMING = frozenset((*_WRAPPED, "CXXReinterpretCastExpr", "UnaryOperator"))
MADE = frozenset(("CXXConstructExpr", "CXXTemporaryObjectExpr"))


@frozen
class Launched:
    """A launch: the byte where it stands, and the most work-items in x, y and z; ``None``: not settled."""

    begin: int
    block: Block | None


def launches_of(unit: Unit, text: bytes, kernel: str) -> tuple[Launched, ...] | None:
    """All launches of a kernel by the host pass of its file; ``None`` where it is also used otherwise.

    Of a template's instances and of host functions that are templates, every instance counts. Launches by
    functions of HIP are known where ``unit`` has its headers.
    """
    nodes = launch_nodes(unit, kernel, by_functions=True)
    if nodes is None:
        return None
    found: list[Launched] = []
    ranges: ValueRanges | None = None
    for function, node, parents in nodes:
        if function.get("mangledName"):  # of a template its instances, not the pattern
            if ranges is None or ranges.function is not function:
                ranges = ValueRanges(function, text, unit.dump.variable)
            found.append(Launched(offset_of(node)[0], _block(ranges, node, parents)))
    return tuple(found)


def launch_nodes(
    unit: Unit, kernel: str, *, by_functions: bool = False
) -> list[tuple[Node, Node, Parents]] | None:
    """Each launch of a kernel with the function around it; ``None`` where the kernel is used otherwise."""
    functions = [one.node for one in unit.own if one.kind in FUNCTIONS and not one.inside]
    kernels = [node for node in functions if node.get("name") == kernel and node.get("mangledName")]
    identities = {same for node in kernels for same in unit.dump.redeclarations(node["id"])}
    found = [
        (function, node, parents)
        for function in functions
        for node, parents in below(function)
        if (node.get("kind") == _LAUNCH and _called(node) in identities)
        or (by_functions and node.get("kind") == "CallExpr" and _handed_over(unit, node) in identities)
    ]
    mentioned = sum(unit.dump.mentions(identity) for identity in identities)
    return found if mentioned == len(found) else None


@frozen(eq=False)
class LaunchCall:
    """``variables`` are those that its function declares, by id."""

    begin: int
    grid: Node
    block: Node
    variables: Mapping[str, Node]


def launch_calls(unit: Unit, kernel: str) -> Iterator[LaunchCall]:
    """Grid and block of each launch of a kernel, as expressions; where they can be seen apart."""
    functions = [one.node for one in unit.own if one.kind in FUNCTIONS and not one.inside]
    for function in functions:
        if not function.get("mangledName"):
            continue
        launches = [node for node, _ in below(function) if node.get("kind") == _LAUNCH]
        variables = {node["id"]: node for node, _ in below(function) if node.get("kind") == "VarDecl"}
        for node in launches:
            parts = children(children(node)[1])
            if called_name(node) == kernel and len(parts) > 2:
                yield LaunchCall(offset_of(node)[0], parts[1], parts[2], variables)


def called_name(launch: Node) -> str:
    """The name of the kernel that is launched."""
    for node, _ in below({"inner": [children(launch)[0]]}):
        if "referencedDecl" in node:
            return str(node["referencedDecl"].get("name", ""))
    return ""


def _called(launch: Node) -> str | None:
    node = children(launch)[0]
    while node.get("kind") in _WRAPPED and children(node):
        (node,) = children(node)
    identity = node.get("referencedDecl", {}).get("id")
    return None if identity is None else str(identity)


def _handed_over(unit: Unit, call: Node) -> str | None:
    """The function that a call gives to one of HIP's that launch it, as their linker's name tells."""
    callee = plain(children(call)[0]).get("referencedDecl", {})
    name = str(callee.get("name"))
    if name not in _LAUNCHING or len(children(call)) < 4:
        return None
    declared = unit.dump.function(str(callee["id"])) or {}
    linked = str(declared.get("mangledName"))
    if linked != name and not linked.startswith(f"_Z{len(name)}{name}I"):  # of no namespace or class
        return None
    if any(one.node["id"] == callee["id"] for one in unit.own):
        return None
    node = children(call)[1]
    while node.get("kind") in _NAMING and len(children(node)) == 1:
        (node,) = children(node)
    return str(node["referencedDecl"]["id"]) if node.get("kind") == "DeclRefExpr" else None


def _block(ranges: ValueRanges, launch: Node, parents: Parents) -> Block | None:
    """The second argument of the call that clang makes of ``<<<grid, block, ...>>>``."""
    if launch.get("kind") == "CallExpr":
        return _dimensions(ranges, children(launch)[3], (*parents, launch))
    configuration = children(launch)[1]
    parts = children(configuration)
    if len(parts) < 3:
        return None
    return _dimensions(ranges, parts[2], (*parents, launch, configuration))


def _dimensions(ranges: ValueRanges, node: Node, parents: Parents) -> Block | None:
    """The most that an expression of type ``dim3`` has in each dimension."""
    inner = children(node)
    if node.get("kind") in _WRAPPED and len(inner) == 1:
        return _dimensions(ranges, inner[0], (*parents, node))
    if node.get("kind") in MADE and _is_dim3(node):
        if len(inner) == 1 and _is_dim3(inner[0]):  # a copy
            return _dimensions(ranges, inner[0], (*parents, node))
        sizes = [_size(ranges.of(_default(part), (*parents, node))) for part in inner]
        known = [size for size in sizes if size is not None]
        return (known[0], known[1], known[2]) if len(known) == len(inner) == 3 else None
    if node.get("kind") == "ConditionalOperator" and len(inner) == 3:
        one, other = (_dimensions(ranges, part, (*parents, node)) for part in inner[1:])
        if one is None or other is None:
            return None
        return (max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2]))
    return _variable(ranges, node)


def _variable(ranges: ValueRanges, node: Node) -> Block | None:
    """A variable that holds what it was declared with, wherever it is used."""
    identity = node.get("referencedDecl", {}).get("id") if node.get("kind") == "DeclRefExpr" else None
    if identity is None or not _is_dim3(node):
        return None
    around: Parents = ()
    declaration: Node | None = None
    for one, parents in below(ranges.function):
        if one.get("kind") == "VarDecl" and one.get("id") == identity:
            declaration, around = one, parents
        elif one.get("referencedDecl", {}).get("id") == identity and not _only_read(one, parents):
            return None
    if declaration is None:
        declaration = ranges.variable(identity)
        if declaration is None or not type_name(declaration).startswith("const "):
            return None
    value = [part for part in children(declaration) if not part.get("kind", "").endswith("Attr")]
    if len(value) != 1 or "&" in type_name(declaration):
        return None
    return _dimensions(ranges, value[0], (*around, declaration))


def _only_read(node: Node, parents: Parents) -> bool:
    """Whether a use of a ``dim3`` copies it, or loads one of its members."""
    if type_name(node).startswith("const "):
        return True
    nearest, next_one = (*reversed(parents), {}, {})[:2]
    if nearest.get("kind") == "MemberExpr":
        return next_one.get("castKind") == "LValueToRValue"
    constant = nearest.get("castKind") == "NoOp" and type_name(nearest).startswith("const ")
    return constant and next_one.get("kind") == "CXXConstructExpr"


def _is_dim3(node: Node) -> bool:
    return re.fullmatch(r"(?:const )?(?:struct )?dim3", type_name(node)) is not None


def _default(node: Node) -> Node:
    """What a parameter is given where the call says nothing."""
    inner = children(node)
    return inner[0] if node.get("kind") == "CXXDefaultArgExpr" and inner else node


def _size(found: Range) -> int | None:
    # A larger bound is that of a type, not of a launch.
    return found[1] if found[0] >= 0 and found[1] <= MOST_WORK_ITEMS else None
