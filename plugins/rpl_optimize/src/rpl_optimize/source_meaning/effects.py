"""What a function's events come to when calls are followed to their declarations.

The last word of a chain of calls is a builtin of the compiler, or a function without a body here. Both are
known by declaration: a builtin's name can be declared by nobody else. One that is declared to compute only
has no effect; of the others those are named here that touch nothing but the memory they are given. So a
builtin that nobody knows has an effect, and may be neither added nor lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen
from rpl_optimize.source_meaning.functions import (
    Access,
    Event,
    Path,
    children,
    digest,
    events_of,
    type_name,
    without_parentheses,
)
from rpl_optimize.source_meaning.syntax_dump import Node

if TYPE_CHECKING:
    from rpl_optimize.source_meaning.unit import Function, Unit


#: Declared to compute only, and yet they hand values from lane to lane (clang, BuiltinsAMDGPU).
_CROSS_LANE = re.compile(
    r"__builtin_amdgcn_(?:ds_b?permute\w*|ds_swizzle|mov_dpp\w*|update_dpp|read\w*lane|writelane|permlane\w*"
    r"|ballot\w*|inverse_ballot\w*|[fsu]?[if]?cmp\w*|wave_reduce\w*|set_inactive\w*|wqm\w*|strict_w\w+)"
)
#: Loads, stores and moves of memory, and mathematics that the device library defines.
_MEMORY = re.compile(
    r"__builtin_(?:mem(?:cpy|set|move)(?:_inline)?|nontemporal_(?:load|store)|addressof|expect\w*|object_size"
    r"|(?:sin|cos|pow|exp|log|sqrt|fma|f?abs|floor|ceil|trunc|round|fmin|fmax|copysign|ldexp|frexp)\w*)"
    r"|__builtin_amdgcn_(?:global|raw|struct)_(?!\w*atomic)\w*(?:load|store)\w*|__ocml_\w+"
    r"|mem(?:cpy|set|move)"
)


@frozen
class Step:
    """One event with an effect. ``label`` is for people, ``meaning`` is compared."""

    path: tuple[str, ...]
    label: str
    meaning: str
    #: Whether loads and stores may not be moved over it: all but exchange between lanes, and jumps.
    orders: bool = True

    @property
    def compared(self) -> tuple[str, ...]:
        return (*self.path, self.meaning)

    def describe(self) -> str:
        around = [word.partition(" ")[0] for word in self.path if word != "head"]
        return self.label + (f" under {' and '.join(around)}" if around else "")


@attrs.define(eq=False)
class Effects:
    """Steps of functions of one unit. ``text`` is the edited source, for the words of its assembly."""

    unit: Unit
    text: bytes
    _known: dict[int, tuple[Step, ...]] = attrs.field(factory=dict)
    _open: set[int] = attrs.field(factory=set)

    def steps(self, events: tuple[Event, ...], *, own_text: bool = False) -> tuple[Step, ...]:
        """Events with an effect in order, and the jumps before the last of them."""
        found: list[Step] = []
        last = 0
        for event in events:
            if event.jump:
                found.append(Step(event.path, event.label, event.label, orders=False))
                continue
            found += (steps := self._step(event, own_text=own_text))
            last = len(found) if steps else last
        return tuple(found[:last])

    def _step(self, event: Event, *, own_text: bool) -> list[Step]:
        if event.callee is not None:
            called = self.unit.function(event.callee)
            if called is None:  # a member variable
                return []
            return self._through(event, called)
        if event.type_name is not None:
            members = self.unit.special_members(event.type_name)
            return [step for one in members for step in self._through(event, one)]
        meaning = event.label
        if event.begin is not None and own_text:
            meaning += f" {digest(_statement(self.text, event.begin))}"
        return [Step(event.path, event.label, meaning)]

    def _through(self, event: Event, called: Function) -> list[Step]:
        meaning = self.meaning(called)
        if meaning is None:
            return []
        return [Step(event.path, called.name, f"{event.label} {meaning}", self._orders(called))]

    def _orders(self, called: Function) -> bool:
        if called.defined and not called.virtual:
            return any(step.orders for step in self._known.get(id(called), ()))
        return _CROSS_LANE.fullmatch(called.name) is None

    def meaning(self, called: Function) -> str | None:
        """``None`` where calling it has no effect but on the memory that it is given."""
        if called.virtual:
            return f"virtual {called.mangled}"
        if not called.defined:
            return None if _computes_only(called) else called.mangled or called.name
        if id(called) in self._open:
            return f"recursion {called.name}"
        if id(called) not in self._known:
            self._open.add(id(called))
            self._known[id(called)] = self.steps(called.events)
            self._open.discard(id(called))
        steps = self._known[id(called)]
        return digest([step.compared for step in steps]) if steps else None


def _computes_only(called: Function) -> bool:
    name = called.name
    if _CROSS_LANE.fullmatch(name):
        return False
    return called.harmless or _MEMORY.fullmatch(name) is not None


def _statement(text: bytes, begin: int) -> str:
    """The words of an assembly statement up to its semicolon outside of strings."""
    quoted = re.compile(rb'"(?:\\.|[^"\\])*"|[^";]+', re.DOTALL)
    words, at = [], begin
    while (match := quoted.match(text, at)) is not None:
        words.append(match[0])
        at = match.end()
    return b" ".join(b"".join(words).split()).decode("utf-8", "replace")


# Which memory that others see is touched between which barriers, so that a barrier that moved is found.
#
# The steps of a function (``effects``) are the same when a barrier is moved over a load or a store. So
# loads and stores are counted to the place between the steps around them, with the loops that contain
# steps. An edit may leave accesses out and do others more often; it may not load or store something where
# it was not loaded or stored before. Followed are shared variables and pointer parameters that are both
# loaded and stored, through pointers, references and lambdas of the function that are made of them. What is
# reached through pointers out of memory, or in functions that are called, is not seen.

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
    events = tuple(events_of(function, Followed.of(function).accesses))
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
class Followed:
    """What each variable of a function leads to, by its id: names of shared variables and of parameters."""

    roots: dict[str, frozenset[tuple[str, bool]]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, function: Node) -> Followed:
        """Of the whole function at once, until nothing new is found: loops hand pointers back."""
        followed = cls()
        for node in children(function):
            if node.get("kind") == "ParmVarDecl" and _leads_on(node):
                followed.roots[node["id"]] = frozenset({(cls.pointed_to(str(node.get("name"))), False)})
        nodes = list(_all_below(function))
        while True:
            before = dict(followed.roots)
            for node in nodes:
                followed._learn(node)
            if followed.roots == before:
                return followed

    @staticmethod
    def pointed_to(parameter: str) -> str:
        """The name of the memory behind a pointer parameter (``Access.root``)."""
        return f"what {parameter} points to"

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
    lvalue = without_parentheses(lvalue)
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
