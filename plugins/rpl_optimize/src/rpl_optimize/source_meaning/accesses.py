"""Which memory that others see is touched between which barriers, so that a barrier that moved is found.

The steps of a function (``effects``) are the same when a barrier is moved over a load or a store. So loads
and stores are counted to the place between the steps around them, with the loops that contain steps. An
edit may leave accesses out and do others more often; it may not load or store something where it was not
loaded or stored before. Followed are shared variables and pointer parameters that are both loaded and
stored, through pointers, references and lambdas of the function that are made of them. What is reached
through pointers out of memory, or in functions that are called, is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import attrs

from rpl_optimize.source_meaning.functions import Access, children, events_of, type_name

if TYPE_CHECKING:
    from rpl_optimize.source_meaning.effects import Effects
    from rpl_optimize.source_meaning.functions import Path
    from rpl_optimize.source_meaning.syntax_dump import Node

_CALLS = frozenset(
    ("CallExpr", "CXXMemberCallExpr", "CXXOperatorCallExpr", "CXXConstructExpr", "CXXTemporaryObjectExpr")
)
_LOOPS = ("for ", "while ", "do ", "range-for ")
#: Steps before this place, and the loops around it that contain steps.
_Place = tuple[int, "Path"]


def moved_accesses(before: tuple[Effects, Node], after: tuple[Effects, Node]) -> Iterator[str]:
    """What the edited function touches where the original does not; both have the same steps."""
    old, new = (_accessed_between(effects, function) for effects, function in (before, after))
    everything = {one for side in (old, new) for part in side.values() for one in part}
    stored = {one.root for one in everything if one.mode == "store"} & {
        one.root for one in everything if one.mode == "load"
    }
    known = {one.root for part in old.values() for one in part}
    for place, part in new.items():
        were = old.get(place, set())
        modes = {one.mode for one in were if one.shared}
        for one in sorted(part - were, key=lambda one: (one.root, one.mode)):
            if one.shared and one.root not in known and one.mode in modes:
                continue  # another shared variable in the place of one
            if one.shared or one.root in stored:
                yield (
                    f"a {one.mode} of {one.root} stands behind {place[0]} steps of what it does with others, "
                    "where there was none"
                )


def _accessed_between(effects: Effects, function: Node) -> dict[_Place, set[Access]]:
    events = tuple(events_of(function, _Followed.of(function).accesses))
    steps = [effects.steps((event,)) if event.access is None and not event.jump else () for event in events]
    ordering = [any(step.orders for step in found) for found in steps]
    loops = {
        event.path[: at + 1]
        for event, orders in zip(events, ordering, strict=True)
        if orders
        for at, word in enumerate(event.path)
        if word.startswith(_LOOPS)
    }
    found: dict[_Place, set[Access]] = {}
    passed = 0
    for event, orders in zip(events, ordering, strict=True):
        passed += orders
        if event.access is not None:
            around = [event.path[: at + 1] for at in range(len(event.path))]
            inside = max((one for one in around if one in loops), key=len, default=())
            found.setdefault((passed, inside), set()).add(event.access)
    return found


@attrs.define
class _Followed:
    """What each variable of a function leads to, by its id: names of shared variables and of parameters."""

    roots: dict[str, frozenset[tuple[str, bool]]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, function: Node) -> _Followed:
        """Of the whole function at once, until nothing new is found: loops hand pointers back."""
        followed = cls()
        for node in children(function):
            if node.get("kind") == "ParmVarDecl" and _leads_on(node):
                followed.roots[node["id"]] = frozenset({(f"what {node.get('name')} points to", False)})
        nodes = list(_all_below(function))
        while True:
            before = dict(followed.roots)
            for node in nodes:
                followed._learn(node)
            if followed.roots == before:
                return followed

    def _learn(self, node: Node) -> None:
        kind = node.get("kind")
        if kind == "VarDecl":
            if any(child.get("kind") == "CUDASharedAttr" for child in children(node)):
                self.roots[node["id"]] = frozenset({(str(node.get("name")), True)})
            elif _leads_on(node) or any(one.get("kind") == "LambdaExpr" for one in _all_below(node)):
                self._add(node["id"], self.leads_to(children(node)))
        elif kind == "BinaryOperator" and node.get("opcode") == "=" and _leads_on(node):
            target, value = children(node)
            for one in _all_below({"inner": [target]}):
                if one.get("kind") == "DeclRefExpr":
                    self._add(one["referencedDecl"]["id"], self.leads_to([value]))

    def _add(self, variable: str, roots: frozenset[tuple[str, bool]]) -> None:
        if roots:
            self.roots[variable] = self.roots.get(variable, frozenset()) | roots

    def leads_to(self, nodes: Iterable[Node]) -> frozenset[tuple[str, bool]]:
        """Whose memory an expression names or points to; a loaded value leads nowhere, a pointer does."""
        found: frozenset[tuple[str, bool]] = frozenset()
        for node in nodes:
            if node.get("castKind") == "LValueToRValue" and not _leads_on(node):
                continue
            if node.get("kind") == "LambdaExpr":  # what its body touches is touched where it is called
                found = found.union(*(self._named(one) for one in _all_below(node)))
            found |= self._named(node) | self.leads_to(children(node))
        return found

    def _named(self, node: Node) -> frozenset[tuple[str, bool]]:
        if node.get("kind") != "DeclRefExpr":
            return frozenset()
        return self.roots.get(node.get("referencedDecl", {}).get("id", ""), frozenset())

    def accesses(self, node: Node) -> Iterator[Access]:
        """The loads and stores of one node itself."""
        kind, parts = node.get("kind"), children(node)
        if node.get("castKind") == "LValueToRValue":
            yield from self._touched(parts, "load")
        elif kind == "BinaryOperator" and node.get("opcode") == "=":
            yield from self._touched(parts[:1], "store")
        elif kind == "CompoundAssignOperator" or (
            kind == "UnaryOperator" and node.get("opcode") in {"++", "--"}
        ):
            yield from self._touched(parts[:1], "load", "store")
        elif kind in _CALLS:
            for part in parts:
                reads = "const " in type_name(part).partition("*")[0]
                yield from self._touched([part], "load", *(() if reads else ("store",)), given=True)

    def _touched(self, nodes: list[Node], *modes: str, given: bool = False) -> Iterator[Access]:
        for node in nodes:
            if not given and _is_own_variable(node):
                continue
            for root, shared in sorted(self.leads_to([node])):
                for mode in modes:
                    yield Access(root, "load" if mode == "load" else "store", shared)


def _is_own_variable(lvalue: Node) -> bool:
    """A pointer itself, not what it points to."""
    while lvalue.get("kind") == "ParenExpr":
        (lvalue,) = children(lvalue)
    return lvalue.get("kind") == "DeclRefExpr" and _leads_on(lvalue) and "&" not in type_name(lvalue)


def _leads_on(node: Node) -> bool:
    """Whether a type is a pointer or a reference."""
    return any(sign in type_name(node) for sign in "*&")


def _all_below(node: Node) -> Iterator[Node]:
    waiting = list(reversed(children(node)))
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(children(one)))
