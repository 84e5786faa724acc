"""Which values a whole number of a function can have, as far as its syntax tree proves it.

Bounds come from types, literals, remainders and masks, variables that never change, counters of ``for`` and
conditions around a use. Overflow of a signed number is nobody's intention (C++ [expr.pre]): then the type's
whole range is taken, as for everything that is not understood.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from rpl_optimize.source_meaning.functions import BLOCK_BOUNDS, children, type_name
from rpl_optimize.source_meaning.syntax_dump import Node

Range = tuple[int, int]
Parents = tuple["Node", ...]

_BITS = {"bool": 1, "char": 8, "short": 16, "int": 32, "long": 64}
_EVERYTHING: Range = (-(1 << 127), 1 << 127)
_COPIES = frozenset(("ParenExpr", "ConstantExpr", "CXXFunctionalCastExpr", "ExprWithCleanups"))
_CASTS = frozenset(("ImplicitCastExpr", "CStyleCastExpr", "CXXStaticCastExpr", "CXXFunctionalCastExpr"))
_UP, _DOWN = frozenset(("++", "+=")), frozenset(("--", "-=", ">>=", "/="))
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_WORK_ITEM = re.compile(rb"threadIdx\s*\.\s*([xyz])")
#: What a workgroup, and so each of its axes, has at most (HIP, "Launch bounds" and "hipDeviceProp_t").
MOST_WORK_ITEMS = 1024
#: A chain of variables made of each other is followed so far.
_DEEPEST = 40
#: An object that is constant itself, not what it points to.
_CONSTANT = re.compile(r"const [^*&\[(]+")


def below(node: Node, parents: Parents = ()) -> Iterator[tuple[Node, Parents]]:
    """Everything below a node in the order of the tree, each with the nodes around it, nearest last."""
    waiting = [(child, (*parents, node)) for child in reversed(children(node))]
    while waiting:
        one, around = waiting.pop()
        yield one, around
        waiting.extend((child, (*around, one)) for child in reversed(children(one)))


def plain(node: Node) -> Node:
    """Without parentheses and casts."""
    while node.get("kind") in _COPIES | _CASTS and len(inner := children(node)) == 1:
        node = inner[0]
    return node


def offset_of(node: Node, end: str = "begin") -> tuple[int, int, bool]:
    """Where an end of a node is written: byte, length of its word, and whether a macro made it."""
    place = node.get("range", {}).get(end, {})
    macro = "expansionLoc" in place or "includedFrom" in place
    place = place.get("expansionLoc", place)
    return place.get("offset", -1), place.get("tokLen", 0), macro


def ends_of(node: Node) -> tuple[int, int]:
    """Bytes of a node; empty where a macro made one end of it alone."""
    begin, (last, length, _) = offset_of(node)[0], offset_of(node, "end")
    return begin, last + length


def type_range(node: Node) -> Range:
    words = set(re.findall(r"\w+", type_name(node))) - {"const"}
    unsigned = bool(words & {"unsigned", "bool"})
    words -= {"unsigned", "signed"}
    name = next((one for one in ("bool", "char", "short", "long") if one in words), "int")
    if not words <= _BITS.keys() or any(sign in type_name(node) for sign in "*&[("):
        return _EVERYTHING
    bits = _BITS[name]
    return (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


@attrs.define(eq=False)
class ValueRanges:
    """Of one function, with the text that it stands in. ``block`` bounds ``threadIdx``.

    ``variable`` finds the declaration of a variable of the unit by its id.
    """

    function: Node
    text: bytes
    variable: Callable[[str], Node | None]
    block: tuple[int, ...] | None = None
    _declared: dict[str, tuple[Node, Parents]] = attrs.field(factory=dict, init=False)
    _changes: dict[str, list[Parents]] = attrs.field(factory=dict, init=False)
    _depth: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        for node, parents in below(self.function):
            if node.get("kind") in {"VarDecl", "ParmVarDecl"}:
                self._declared[node["id"]] = (node, parents)
            elif node.get("kind") == "DeclRefExpr" and not _is_read(parents):
                self._changes.setdefault(node["referencedDecl"]["id"], []).append(parents)

    def of(self, node: Node, parents: Parents) -> Range:
        """The values of an expression that stands below ``parents``."""
        self._depth += 1
        try:
            return type_range(node) if self._depth > _DEEPEST else self._of(node, parents)
        finally:
            self._depth -= 1

    def _of(self, node: Node, parents: Parents) -> Range:
        kind, parts, most = node.get("kind"), children(node), type_range(node)
        if kind in {"IntegerLiteral", "CharacterLiteral"}:
            return _number(node)
        if kind == "CXXBoolLiteralExpr":
            return (int(bool(node.get("value"))),) * 2
        if kind == "DeclRefExpr":
            return self._variable(node, parents)
        if kind in _COPIES | _CASTS and len(parts) == 1:
            return _within(self.of(parts[0], (*parents, node)), most)
        if kind == "BinaryOperator" and len(parts) == 2:
            left, right = (self.of(part, (*parents, node)) for part in parts)
            return _within(_combined(str(node.get("opcode")), left, right, most), most)
        if kind == "ConditionalOperator" and len(parts) == 3:
            either = [self.of(part, (*parents, node)) for part in parts[1:]]
            return (min(low for low, _ in either), max(high for _, high in either))
        if kind == "SubstNonTypeTemplateParmExpr" and parts:
            return _within(self.of(parts[-1], (*parents, node)), most)
        return self._work_item(node) or most

    def _work_item(self, node: Node) -> Range | None:
        """``threadIdx.x``, however the headers say it, where nothing of the file has that name."""
        begin, end = ends_of(node)
        word = _WORK_ITEM.fullmatch(self.text[begin:end]) if 0 <= begin < end else None
        if word is None or re.search(rb"#\s*define\s+threadIdx\b", self.text):
            return None
        if any(one.get("referencedDecl", {}).get("id") in self._declared for one, _ in below(node)):
            return None
        axis = b"xyz".index(word[1])
        most = MOST_WORK_ITEMS
        for attribute in children(self.function):
            if attribute.get("kind") in BLOCK_BOUNDS:
                index = 0 if attribute["kind"] == "CUDALaunchBoundsAttr" else 1
                values = _constants(attribute)
                most = min(most, values[index]) if len(values) > index else most
        if self.block is not None:
            most = min(most, self.block[axis] if axis < len(self.block) else 1)
        return (0, most - 1)

    def _variable(self, node: Node, parents: Parents) -> Range:
        identity = node.get("referencedDecl", {}).get("id", "")
        most = type_range(node)
        if identity not in self._declared:
            outside = self.variable(identity)
            if outside is None or not type_name(outside).startswith("const ") or not children(outside):
                return most
            return _within(self.of(children(outside)[0], ()), most)
        found = self._counter(identity, parents)
        constant = _CONSTANT.fullmatch(type_name(self._declared[identity][0])) is not None
        # Whoever is handed a reference to a constant must not change it (C++ [dcl.type.cv]).
        if found is None and (constant or identity not in self._changes):
            declaration, around = self._declared[identity]
            value = [part for part in children(declaration) if not part.get("kind", "").endswith("Attr")]
            kept = declaration.get("storageClass") is None or bool(declaration.get("constexpr"))
            local = declaration.get("kind") == "VarDecl" and kept
            automatic = (
                local and "volatile" not in type_name(declaration) and "&" not in type_name(declaration)
            )
            found = self.of(value[0], (*around, declaration)) if automatic and len(value) == 1 else most
            if automatic or declaration.get("kind") == "ParmVarDecl":
                found = self._told(identity, _within(found, most), parents)
        return _within(found or most, most)

    def _told(self, identity: str, found: Range, parents: Parents) -> Range:
        """By the conditions that hold around a place; of a variable that never changes."""
        low, high = found
        for at, outer in enumerate(parents[:-1]):
            if outer.get("kind") != "IfStmt" or outer.get("hasInit") or outer.get("hasVar"):
                continue
            parts = children(outer)
            if len(parts) < 2 or parents[at + 1] is not parts[1]:
                continue
            for sign, other in _compared(parts[0], identity):
                least, most = self.of(other, parents[: at + 1])
                low = max(low, least + (sign == ">")) if sign in {">", ">=", "=="} else low
                high = min(high, most - (sign == "<")) if sign in {"<", "<=", "=="} else high
        return (low, high) if low <= high else found

    def _counter(self, identity: str, parents: Parents) -> Range | None:
        """The values of the counter of a ``for`` in its body, where nothing but its head changes it."""
        for at, loop in reversed(list(enumerate(parents))):
            if loop.get("kind") != "ForStmt" or parents[at + 1 : at + 2] != (children(loop)[-1],):
                continue
            first, step = children(loop)[0], children(loop)[-2]
            condition = children(loop)[-3]
            inside = [around for around in self._changes.get(identity, ()) if loop in around]
            heads = [around[around.index(loop) + 1] for around in inside]
            if not inside or any(head is not step and head is not first for head in heads):
                continue
            begin = self._first(first, identity, parents[:at])
            change = self._change(step, identity, parents[: at + 1])
            if begin is None or change is None:
                continue
            kept = type_range(self._declared[identity][0])
            way, width = change
            for sign, other in _compared(condition, identity):
                least, most = self.of(other, parents[: at + 1])
                least, most = least + (sign == ">"), most - (sign == "<")
                # The last step may leave the bounds, and must not wrap around to the other end.
                if way in _UP and sign in {"<", "<="} and most + width <= kept[1]:
                    if way == "+=" and begin[0] == begin[1] <= most:  # it stops short of what it steps over
                        most -= (most - begin[0]) % width
                    return (begin[0], most)
                if way in _DOWN and sign in {">", ">="} and begin[0] >= 0 and least - width >= kept[0]:
                    return (least, begin[1])
        return None

    def _change(self, step: Node, identity: str, parents: Parents) -> tuple[str, int] | None:
        """How the head of a loop changes its counter: the sign, and by how much where it adds or subtracts.

        What it adds is a number or a constant, which is as much each time.
        """
        parts, sign = children(step), str(step.get("opcode"))
        if not parts or not _names(parts[0], identity):
            return None
        if step.get("kind") == "UnaryOperator":
            return (sign, 1)
        if step.get("kind") != "CompoundAssignOperator":
            return None
        least, most = self.of(parts[-1], (*parents, step))
        return (sign, most if sign in {"+=", "-="} else 0) if 0 < least == most else None

    def _first(self, first: Node, identity: str, parents: Parents) -> Range | None:
        for node, _ in below({"inner": [first]}):
            value = None
            if node.get("kind") == "VarDecl" and node.get("id") == identity:
                value = children(node)[0] if children(node) else None
            elif node.get("kind") == "BinaryOperator" and node.get("opcode") == "=":
                target, assigned = children(node)
                value = assigned if _names(target, identity) else None
            if value is not None:
                return self.of(value, parents)
        return None


def _number(node: Node) -> Range:
    value = str(node.get("value", "0"))
    return (int(value),) * 2 if re.fullmatch(r"-?\d+", value) else _EVERYTHING


def _constants(attribute: Node) -> list[int]:
    """The values of an attribute's arguments in order."""
    values = []
    for child in children(attribute):
        texts = [one["value"] for one, _ in below({"inner": [child]}) if "value" in one]
        if texts and re.fullmatch(r"\d+", str(texts[0])):
            values.append(int(texts[0]))
    return values


def _within(found: Range, most: Range) -> Range:
    """What does not fit into a type wraps around, or must not happen."""
    return found if most[0] <= found[0] and found[1] <= most[1] else most


def _combined(sign: str, left: Range, right: Range, most: Range) -> Range:
    simple: Mapping[str, Callable[[int, int], int]] = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
    }
    if sign in simple:
        ends = [simple[sign](a, b) for a in left for b in right]
        return (min(ends), max(ends))
    if sign == "&":
        masks = [high for low, high in (left, right) if low >= 0]
        return (0, min(masks)) if masks else most
    if left[0] < 0 or right[0] < 0:
        return most
    if sign == "%" and right[0] > 0:
        return (left[0] if left[1] < right[0] else 0, min(left[1], right[1] - 1))
    if sign == "/" and right[0] > 0:
        return (left[0] // right[1], left[1] // right[0])
    if sign == ">>" and right[1] < 64:
        return (left[0] >> right[1], left[1] >> right[0])
    if sign == "<<" and right[1] < 64:
        return (left[0] << right[0], left[1] << right[1])
    if sign in {"|", "^"}:
        return (0, (1 << max(left[1], right[1]).bit_length()) - 1)
    return most


def _compared(condition: Node, identity: str) -> Iterator[tuple[str, Node]]:
    """What a condition that holds says of a variable: comparisons, joined by ``&&``."""
    condition = plain(condition)
    if condition.get("kind") != "BinaryOperator":
        return
    left, right = children(condition)
    sign = str(condition.get("opcode"))
    if sign == "&&":
        yield from _compared(left, identity)
        yield from _compared(right, identity)
        return
    for name, other, told in ((left, right, sign), (right, left, _MIRRORED.get(sign, ""))):
        # As an unsigned number a negative one is larger than any bound below, and smaller than none.
        if told and sign in _MIRRORED and _names(name, identity) and (told in {"<", "<="} or _kept(name)):
            yield told, other


def _kept(node: Node) -> bool:
    """Whether the casts around a name keep all of its values."""
    most = type_range(node)
    while node.get("kind") != "DeclRefExpr":
        (node,) = children(node)
    low, high = type_range(node)
    return most[0] <= low and high <= most[1]


def _names(node: Node, identity: str) -> bool:
    """Whether an expression is the value of a variable, but for what comparing converts by itself."""
    while node.get("kind") in {"ImplicitCastExpr", "ParenExpr"}:
        (node,) = children(node)
    return node.get("kind") == "DeclRefExpr" and node.get("referencedDecl", {}).get("id") == identity


def _is_read(parents: Sequence[Node]) -> bool:
    """Whether a name stands for its value alone."""
    for parent in reversed(parents):
        if parent.get("kind") != "ParenExpr":
            return parent.get("castKind") == "LValueToRValue"
    return False
