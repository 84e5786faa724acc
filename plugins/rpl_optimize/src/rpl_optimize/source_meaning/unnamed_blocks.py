"""Block sizes that a source says as a number: ``kernel<<<(n + 255) / 256, 256>>>``, ``dim3 block(32, 8)``.

Every number of the file that is this one, or one less, changes with it: so none is left behind, and the judge
of constants (``constants``) refuses where one of them means anything but a launch. Here it is shown that
grids get smaller as blocks get larger: each grid divides by the block's size, directly, by variables of the
same function or by a ``constexpr`` function that does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum

import attrs

from rpl_optimize.interfaces.source_reading import Constant
from rpl_optimize.source_meaning.front_end import shown_line
from rpl_optimize.source_meaning.functions import children
from rpl_optimize.source_meaning.launches import MADE, LaunchCall, launch_calls, launches_of
from rpl_optimize.source_meaning.syntax_dump import Node
from rpl_optimize.source_meaning.unit import Unit
from rpl_optimize.source_meaning.value_ranges import below, offset_of, plain
from rpl_optimize.source_meaning.words import numbers_in, value_of

__all__ = ["TELLING", "block_obstacle", "unnamed_blocks"]

#: Smaller numbers are too common to say what they mean, or that two of them belong together (chosen).
TELLING = 8
_RAW = re.compile(rb'R"')
_PLAIN = re.compile(rb"([1-9]\d*)[uUlL]*")
#: Directives whose numbers no tree shows.
_DIRECTIVE = re.compile(rb"^[ \t]*(?:#|%:)[ \t]*(?!define\b)", re.MULTILINE)


def unnamed_blocks(unit: Unit, text: bytes, kernel: str) -> dict[str, Constant]:
    """By name, in the order of the axes; several axes with one size are one constant.

    ``unit`` is the host's pass. Refused are those that the source says in a way that is not followed.
    """
    blocks = [one.block for one in launches_of(unit, text, kernel) or () if one.block is not None]
    said = {
        int(literal["value"]): offset_of(literal)[0]
        for call in launch_calls(unit, kernel)
        for literal in _literals(call, call.block)
    }
    found: dict[str, Constant] = {}
    for axis, name in enumerate("xyz"):
        for value in dict.fromkeys(block[axis] for block in blocks):
            known = {one.value for one in found.values()}
            if value in said and value >= TELLING and value not in known and f"block.{name}" not in found:
                found[f"block.{name}"] = _constant(text, f"block.{name}", value, said[value])
    return found


def _literals(call: LaunchCall, node: Node) -> Iterator[Node]:
    """The numbers that an expression is made of, as they stand in the file, and those of its variables."""
    waiting, seen = [node], set[str]()
    while waiting:
        for one, _ in below({"inner": [waiting.pop()]}):
            if one.get("kind") == "IntegerLiteral" and not offset_of(one)[2]:
                yield one
            identity = str(one.get("referencedDecl", {}).get("id"))
            variable = call.variables.get(identity)
            if variable is not None and identity not in seen:
                seen.add(identity)
                waiting.append(variable)


def _constant(text: bytes, name: str, value: int, at: int) -> Constant:
    places: list[tuple[int, int, int]] = []
    refused = "a raw string stands in the file" if _RAW.search(text) else None
    for begin, number in numbers_in(text):
        less = value - value_of(number)
        if less not in {0, 1}:
            continue
        line, digits = shown_line(text, begin), _PLAIN.fullmatch(number)
        if digits is None:
            refused = refused or f"line {line} says it as {number.decode('utf-8', 'replace')}"
        elif _DIRECTIVE.match(text, text.rfind(b"\n", 0, begin) + 1):
            refused = refused or f"the directive in line {line} says {digits[1].decode()}, too"
        else:
            places.append((begin, begin + len(digits[1]), int(less)))
    line = shown_line(text, at)
    main = next((place for place in places if place[0] == at and not place[2]), None)
    if main is None:
        what = refused or "the launch does not say it as a plain number"
        return Constant(name, line, at, at, value, refused=what)
    others = tuple(place for place in places if place is not main)
    return Constant(name, line, main[0], main[1], value, refused=refused, others=others)


# Whether a launch's grid gets smaller as its block gets larger.


class _Kind(Enum):
    """How an expression depends on the size of a block."""

    NOT = "it does not depend on it"
    SIZE = "it is as large"
    SUM = "it is larger by as much"
    COUNT = "it is something divided by it"
    REMAINDER = "it is the rest of a division by it"
    REST = "it is whether something is left of such a division"
    OTHERWISE = "it depends on it otherwise"


def block_obstacle(unit: Unit, text: bytes, kernel: str, values: Mapping[str, int]) -> tuple[str, int] | None:
    """Why a launch's grid does not follow its block, and the line; ``None`` where all do.

    ``values`` are the sizes in the source by name, ``unit`` the whole host's pass.
    """
    for call in launch_calls(unit, kernel):
        reading = _Dependence(unit, frozenset(values.values()), call.variables)
        block, grid = reading.of(call.block), reading.of(call.grid)
        if (block, grid) not in {(_Kind.NOT, _Kind.NOT), (_Kind.SIZE, _Kind.COUNT)}:
            line = shown_line(text, call.begin)
            size = " and ".join(str(value) for value in dict.fromkeys(values.values()))
            return f"the grid of this launch is not proven to follow its block of {size}: {grid.value}", line
    return None


@attrs.define(eq=False)
class _Dependence:
    unit: Unit
    sizes: frozenset[int]
    variables: Mapping[str, Node]
    #: Of parameters of a function that is looked into.
    parameters: Mapping[str, _Kind] = attrs.field(factory=dict)
    depth: int = 0

    def of(self, node: Node) -> _Kind:
        node, kind = plain(node), plain(node).get("kind")
        parts = children(node)
        if kind == "IntegerLiteral":
            value = int(node["value"])
            return _Kind.SIZE if value in self.sizes or value + 1 in self.sizes else _Kind.NOT
        if kind == "DeclRefExpr":
            return self._variable(str(node["referencedDecl"].get("id")))
        if kind == "BinaryOperator":
            left, right = (self.of(part) for part in parts)
            if node.get("opcode") == "-" and plain(parts[1]).get("value") == "1":
                return left  # one less is still as good as the size, as in (n + BLOCK - 1) / BLOCK
            return _combined(str(node.get("opcode")), left, right)
        if kind == "ConditionalOperator":
            asked, *either = (self.of(part) for part in parts)
            known = asked in {_Kind.NOT, _Kind.REMAINDER, _Kind.REST} and len(set(either)) == 1
            if known and either[0] is _Kind.NOT:
                return _Kind.NOT if asked is _Kind.NOT else _Kind.REST
            return _Kind.COUNT if known and either[0] is _Kind.COUNT else _Kind.OTHERWISE
        if kind == "CallExpr":
            return self._called(node)
        kinds = {self.of(part) for part in parts} - {_Kind.NOT}
        if not kinds:
            return _Kind.NOT
        one = kinds.pop()
        only_holds = kind in MADE or kind in {"MemberExpr", "CXXDefaultArgExpr", "MaterializeTemporaryExpr"}
        same = kind in {"CXXBindTemporaryExpr", "InitListExpr", "VarDecl", "ReturnStmt"} or only_holds
        return one if same and not kinds else _Kind.OTHERWISE

    def _variable(self, identity: str) -> _Kind:
        if identity in self.parameters:
            return self.parameters[identity]
        variable = self.variables.get(identity) or self.unit.dump.variable(identity)
        if variable is None or self.depth > _DEEPEST:
            return _Kind.NOT if variable is None else _Kind.OTHERWISE
        return attrs.evolve(self, depth=self.depth + 1).of(variable)

    def _called(self, call: Node) -> _Kind:
        """By the one ``return`` of a function that the compiler shows."""
        callee, *arguments = children(call)
        kinds = [self.of(part) for part in arguments]
        if not set(kinds) - {_Kind.NOT}:
            return _Kind.NOT
        identity = plain(callee).get("referencedDecl", {}).get("id")
        function = None if identity is None else self.unit.dump.function(str(identity))
        if function is None or self.depth > _DEEPEST:
            return _Kind.OTHERWISE
        names = [one["id"] for one in children(function) if one.get("kind") == "ParmVarDecl"]
        bodies = [one for one in children(function) if one.get("kind") == "CompoundStmt"]
        if len(bodies) != 1 or [one.get("kind") for one in children(bodies[0])] != ["ReturnStmt"]:
            return _Kind.OTHERWISE
        if len(names) != len(kinds):
            return _Kind.OTHERWISE
        known = dict(zip(names, kinds, strict=True))
        inside = attrs.evolve(self, parameters=known, variables={}, depth=self.depth + 1)
        return inside.of(children(bodies[0])[0])


_DEEPEST = 20


def _combined(sign: str, left: _Kind, right: _Kind) -> _Kind:
    kinds = {left, right} - {_Kind.NOT}
    if not kinds:
        return _Kind.NOT
    if sign in {"==", "!=", "<", ">", "<=", ">="} and kinds <= {_Kind.REMAINDER, _Kind.SUM}:
        return _Kind.REST
    if sign == "%" and (left, right) == (_Kind.NOT, _Kind.SIZE):
        return _Kind.REMAINDER
    if sign == "/" and right is _Kind.SIZE and left in {_Kind.NOT, _Kind.SUM}:
        return _Kind.COUNT
    if sign in {"+", "-"} and _Kind.COUNT in kinds and kinds <= {_Kind.COUNT, _Kind.REST}:
        return _Kind.COUNT
    if sign == "+" and kinds <= {_Kind.SIZE, _Kind.SUM}:
        return _Kind.SIZE if left is right is _Kind.SIZE else _Kind.SUM
    return _Kind.COUNT if sign == "*" and kinds == {_Kind.COUNT} and left is not right else _Kind.OTHERWISE
