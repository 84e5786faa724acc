"""Compare the declarations of one function before and after: signature, attributes, declared changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import (
    DeclaredChange,
    LaunchBounds,
    ResizedArray,
    RestrictedParameter,
    StreamedStores,
)
from rpl_optimize.source_meaning.functions import BLOCK_BOUNDS, canonical, digest
from rpl_optimize.source_meaning.streams import restored, streamed
from rpl_optimize.source_meaning.syntax_dump import Node

#: Attributes that a body may get: shared memory, alignment of a variable, and hints.
_OF_BODIES = frozenset(("CUDASharedAttr", "AlignedAttr", "LoopHintAttr", "CUDADeviceAttr", "CUDAHostAttr"))
#: What the second number of HIP's launch bounds is to clang.
_OF_WAVES = "AMDGPUWavesPerEUAttr"
_NAMES_OF_TYPES = frozenset(("VarDecl", "ParmVarDecl", "FieldDecl", "TypedefDecl", "TypeAliasDecl"))
_WORDS = ("storageClass", "inline", "constexpr", "virtual", "pure", "explicitlyDeleted", "variadic")


@frozen
class Difference:
    """``guard`` refuses; ``reason`` says what differs."""

    guard: str
    reason: str


def differences(before: Node, after: Node, declared: Sequence[DeclaredChange]) -> Iterator[Difference]:
    """What of a function's head and body differs that may not."""
    yield from _signature(before, after, declared)
    yield from _attributes(before, after, declared)
    if declared:
        yield from _rest(before, after, declared)
    else:
        yield from _attributes_inside(before, after)


def _signature(before: Node, after: Node, declared: Sequence[DeclaredChange]) -> Iterator[Difference]:
    if before.get("mangledName") != after.get("mangledName"):
        yield Difference("declaration", f"{_name(before)} became {_name(after)}")
    for word in _WORDS:
        if before.get(word) != after.get(word):
            yield Difference("declaration", f"{word} became {after.get(word)} (was {before.get(word)})")
    restricted = {change.name for change in declared if isinstance(change, RestrictedParameter)}
    old, new = _parameters(before, restricted), _parameters(after, restricted)
    if old != new or _result(before) != _result(after):
        yield Difference("declaration", f"the type {_text(before)} became {_text(after)}")
    if declared:
        kept = _parameters(before, frozenset()), _parameters(after, frozenset())
        changed = {b[0] for a, b in zip(*kept) if a != b}  # noqa: B905 - equally many, or refused above
        if changed != restricted:
            yield Difference("declared", f"changed parameters: {_listed(changed)}")


def _parameters(function: Node, restricted: set[str] | frozenset[str]) -> list[tuple[str, str]]:
    found = []
    for node in function.get("inner", ()):
        if node.get("kind") == "ParmVarDecl":
            name, text = node.get("name", ""), node["type"]["qualType"]
            found.append((name, text.replace("__restrict", "").rstrip() if name in restricted else text))
    return found


def _result(function: Node) -> tuple[str, str]:
    text = _text(function)
    return text.partition("(")[0], text.rpartition(")")[2]


def _attributes(before: Node, after: Node, declared: Sequence[DeclaredChange]) -> Iterator[Difference]:
    bounds = [change for change in declared if isinstance(change, LaunchBounds)]
    skipped = BLOCK_BOUNDS if bounds else frozenset()
    if any(change.blocks is not None for change in bounds):
        skipped |= {_OF_WAVES}
    old, new = (Counter(_heads(node, skipped)) for node in (before, after))
    if old != new:
        changed = sorted(name for name, _ in ((old - new) + (new - old)))
        yield Difference("attributes", f"attributes of the declaration differ: {', '.join(changed)}")
    for change in bounds:
        if not _has_bounds(after, change):
            second = "" if change.blocks is None else f" and {change.blocks} waves"
            yield Difference("declared", f"the compiler sees no launch bounds of {change.threads}{second}")


def _heads(function: Node, skipped: frozenset[str]) -> Iterator[tuple[str, str]]:
    for node in function.get("inner", ()):
        kind = node.get("kind", "")
        if kind.endswith("Attr") and kind not in skipped:
            yield kind, digest(canonical(node))


def _has_bounds(function: Node, change: LaunchBounds) -> bool:
    nodes = [node for node in function.get("inner", ()) if node.get("kind") in BLOCK_BOUNDS | {_OF_WAVES}]
    threads = any(str(change.threads) in _values(node) for node in nodes if node["kind"] in BLOCK_BOUNDS)
    waves = any(str(change.blocks) in _values(node) for node in nodes if node["kind"] == _OF_WAVES)
    return threads and (change.blocks is None or waves)


def _values(node: Node) -> set[str]:
    found = {str(node["value"])} if "value" in node else set()
    return found.union(*(_values(child) for child in node.get("inner", ())))


def _rest(before: Node, after: Node, declared: Sequence[DeclaredChange]) -> Iterator[Difference]:
    """With a declared change the body is the same, node by node."""
    typed = any(isinstance(change, (RestrictedParameter, ResizedArray)) for change in declared)
    stores = sum(change.count for change in declared if isinstance(change, StreamedStores))
    if streamed(after) - streamed(before) != stores:
        found = streamed(after) - streamed(before)
        yield Difference("declared", f"the compiler sees {found} new stores past the caches, not {stores}")
    bodies = ([restored(part) for part in _body(node)] if stores else _body(node) for node in (before, after))
    old, new = (canonical(body, types=not typed) for body in bodies)
    if old != new:
        yield Difference("declared", "the body differs by more than what was declared")
    for name, was, now in _resized(_body(before), _body(after)):
        if len(was) != len(now) or any(a > b for a, b in zip(was, now, strict=True)):
            yield Difference("declared", f"{name} got smaller: {was} became {now}")
    resized = {change.name for change in declared if isinstance(change, ResizedArray)}
    changed = set(_retyped(_body(before), _body(after)))
    if changed != resized:
        yield Difference("declared", f"variables that changed type: {_listed(changed)}")


def _retyped(before: list[Node], after: list[Node]) -> Iterator[str]:
    old, new = _variables(before), _variables(after)
    return (b[0] for a, b in zip(old, new) if a != b and "__restrict" not in b[1])  # noqa: B905 - same bodies


def _resized(before: list[Node], after: list[Node]) -> Iterator[tuple[str, list[int], list[int]]]:
    """Arrays whose type changed: name, extents before and after."""
    for old, new in zip(_variables(before), _variables(after)):  # noqa: B905 - same bodies
        was, now = ([int(one) for one in re.findall(r"\[(\d+)\]", text)] for _, text in (old, new))
        if old != new and "__restrict" not in new[1]:
            yield new[0], was, now


def _variables(nodes: list[Node]) -> list[tuple[str, str]]:
    variables = []
    for node in nodes:
        if node.get("kind") in {"VarDecl", "FieldDecl"}:
            variables.append((str(node.get("name", "")), str(node.get("type", {}).get("qualType", ""))))
        variables += _variables([child for child in node.get("inner", ()) if isinstance(child, dict)])
    return variables


def _attributes_inside(before: Node, after: Node) -> Iterator[Difference]:
    old, new = (Counter(_inside(_body(node))) for node in (before, after))
    for kind in new - old:
        if kind not in _OF_BODIES:
            yield Difference("attributes", f"the body got an attribute: {kind.removesuffix('Attr')}")
    were, are = ([*_restricted(_body(node))] for node in (before, after))
    if len(are) > len(were):
        added = min((Counter(are) - Counter(were)).elements())
        yield Difference("attributes", f"{added} got __restrict__, which promises what nobody checked")


def _inside(nodes: list[Node]) -> Iterator[str]:
    return (kind for node in _all_nodes(nodes) if (kind := node.get("kind", "")).endswith("Attr"))


def _all_nodes(nodes: list[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _all_nodes([child for child in node.get("inner", ()) if isinstance(child, dict)])


def _restricted(nodes: list[Node]) -> Iterator[str]:
    """Pointers that a body declares as the only way to their memory; not the copies that a lambda keeps."""
    for node in nodes:
        kind = node.get("kind", "")
        declares = kind in _NAMES_OF_TYPES and not node.get("isImplicit")
        if declares and "__restrict" in "".join(str(text) for text in node.get("type", {}).values()):
            yield str(node.get("name") or "a pointer")
        yield from _restricted([child for child in node.get("inner", ()) if isinstance(child, dict)])


def hints(function: Node) -> int:
    """How many loop hints the compiler sees in a function; of a lambda, it lists the body twice."""
    return len({node.get("id") for node in _all_nodes(_body(function)) if node.get("kind") == "LoopHintAttr"})


def _body(function: Node) -> list[Node]:
    kinds = ("CompoundStmt", "CXXCtorInitializer")
    return [node for node in function.get("inner", ()) if node.get("kind") in kinds]


def _text(function: Node) -> str:
    return str(function.get("type", {}).get("qualType", ""))


def _name(function: Node) -> str:
    return str(function.get("mangledName", function.get("name", "")))


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
