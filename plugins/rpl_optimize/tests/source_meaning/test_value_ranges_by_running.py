"""Ranges of whole numbers against the values that they have when drawn functions run.

Functions are drawn as the trees that clang writes (its JSON of ``-ast-dump``), and run by a small interpreter
of C++'s rules for whole numbers: unsigned ones wrap around, a run with undefined behaviour (overflow of a
signed number, a division by zero, a shift by too much; [expr.pre], [expr.mul], [expr.shift]) tells nothing.
Whatever an expression was in any run has to lie in its range; where all runs can be made, the range has to be
no wider.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rpl_optimize.source_meaning.value_ranges import ValueRanges, type_range

Node = dict[str, Any]
TYPES = {
    "bool": (0, 1),
    "char": (-128, 127),
    "signed char": (-128, 127),
    "unsigned char": (0, 255),
    "short": (-(2**15), 2**15 - 1),
    "unsigned short": (0, 2**16 - 1),
    "int": (-(2**31), 2**31 - 1),
    "unsigned int": (0, 2**32 - 1),
    "long": (-(2**63), 2**63 - 1),
    "unsigned long": (0, 2**64 - 1),
    "long long": (-(2**63), 2**63 - 1),
    "unsigned long long": (0, 2**64 - 1),
}


class UndefinedError(Exception):
    """This run tells nothing."""


def _kind(kind: str, type_: str = "", *inner: Node, **more: Any) -> Node:
    return {"kind": kind, "type": {"qualType": type_}, "inner": list(inner), **more}


def number(value: int, type_: str = "int") -> Node:
    """A literal is not negative; the minus before it is another node, which ranges need not understand."""
    return _kind("IntegerLiteral", type_, value=str(value))


def name(declaration: Node) -> Node:
    type_ = declaration["type"]["qualType"].removeprefix("const ")
    return _kind("DeclRefExpr", type_, referencedDecl={"id": declaration["id"]})


def read(declaration: Node) -> Node:
    return _kind("ImplicitCastExpr", _type(name(declaration)), name(declaration), castKind="LValueToRValue")


def cast(node: Node, type_: str) -> Node:
    return node if _type(node) == type_ else _kind("ImplicitCastExpr", type_, node, castKind="IntegralCast")


def binary(sign: str, left: Node, right: Node) -> Node:
    """With the type that both are converted to: the larger one of the two, at least int."""
    if sign in {"<<", ">>"}:
        return _kind("BinaryOperator", _type(left), left, right, opcode=sign)
    order = ("int", "unsigned int", "long", "unsigned long")
    common = max((_type(left), _type(right)), key=order.index)
    result = "bool" if sign in {"<", "<=", ">", ">=", "==", "!=", "&&"} else common
    return _kind("BinaryOperator", result, cast(left, common), cast(right, common), opcode=sign)


def declared(identity: str, type_: str, *value: Node, **more: Any) -> Node:
    return _kind("VarDecl", type_, *value, id=identity, **more)


def statement(*nodes: Node) -> Node:
    return _kind("CompoundStmt", "", *nodes)


def function(parameters: list[Node], *body: Node) -> Node:
    return _kind("FunctionDecl", "void ()", *parameters, statement(*body))


def _type(node: Node) -> str:
    return str(node["type"]["qualType"])


def _signed(type_: str) -> bool:
    return TYPES[type_][0] < 0


class Run:
    """One call. ``seen`` keeps what each expression was, by the place of its node."""

    def __init__(self, seen: dict[int, set[int]], parameters: dict[str, int]) -> None:
        self.seen, self.values = seen, dict(parameters)
        self.steps = 0

    def converted(self, value: int, type_: str) -> int:
        low, high = TYPES[type_]
        return value if low <= value <= high else (value - low) % (high - low + 1) + low

    def value(self, node: Node) -> int:
        found = self._value(node)
        self.seen.setdefault(id(node), set()).add(found)
        return found

    def _value(self, node: Node) -> int:
        kind, inner = node["kind"], node["inner"]
        if kind == "IntegerLiteral":
            return int(node["value"])
        if kind == "DeclRefExpr":
            return self.values[node["referencedDecl"]["id"]]
        if kind in {"ImplicitCastExpr", "CStyleCastExpr", "ParenExpr"}:
            return self.converted(self.value(inner[0]), _type(node))
        if kind == "ConditionalOperator":
            return self.value(inner[1 if self.value(inner[0]) else 2])
        if kind == "UnaryOperator" and node["opcode"] == "-":
            return self.arithmetic("-", 0, self.value(inner[0]), _type(node))
        assert kind == "BinaryOperator", kind
        sign = node["opcode"]
        left = self.value(inner[0])
        if sign == "&&" and not left:
            return 0
        right = self.value(inner[1])
        compare: dict[str, Callable[[], bool]] = {
            "<": lambda: left < right,
            "<=": lambda: left <= right,
            ">": lambda: left > right,
            ">=": lambda: left >= right,
            "==": lambda: left == right,
            "!=": lambda: left != right,
            "&&": lambda: bool(right),
        }
        return int(compare[sign]()) if sign in compare else self.arithmetic(sign, left, right, _type(node))

    def arithmetic(self, sign: str, left: int, right: int, type_: str) -> int:
        bits = (TYPES[type_][1] - TYPES[type_][0]).bit_length()
        if (sign in {"/", "%"} and right == 0) or (sign in {"<<", ">>"} and not 0 <= right < bits):
            raise UndefinedError
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1) if right else 0
        exact = {
            "+": left + right,
            "-": left - right,
            "*": left * right,
            "/": quotient,
            "%": left - quotient * right,
            "&": left & right,
            "|": left | right,
            "^": left ^ right,
            "<<": left << right if 0 <= right < bits else 0,
            ">>": left >> right if 0 <= right < bits else 0,
        }[sign]
        if self.converted(exact, type_) != exact and _signed(type_):
            raise UndefinedError
        return self.converted(exact, type_)

    def do(self, node: Node) -> None:
        self.steps += 1
        if self.steps > 500:
            raise UndefinedError
        kind, inner = node["kind"], node["inner"]
        if kind in {"CompoundStmt", "DeclStmt"}:
            for one in inner:
                self.do(one)
        elif kind == "VarDecl":
            if inner:
                self.values[node["id"]] = self.value(inner[0])
        elif kind == "IfStmt":
            if self.value(inner[0]):
                self.do(inner[1])
            elif len(inner) > 2:
                self.do(inner[2])
        elif kind == "ForStmt":
            first, _, condition, step, body = inner
            self.do(first)
            while self.value(condition):
                self.do(body)
                self.do(step)
        elif kind in {"UnaryOperator", "CompoundAssignOperator"} or node.get("opcode") == "=":
            self.change(node)
        else:
            self.value(node)

    def change(self, node: Node) -> None:
        """``=``, ``++``, ``+=`` and the like."""
        inner, sign = node["inner"], node["opcode"]
        target = inner[0]["referencedDecl"]["id"]
        if sign == "=":
            self.values[target] = self.value(inner[1])
            return
        unary = node["kind"] == "UnaryOperator"
        by = 1 if unary else self.value(inner[1])
        one = sign[0] if unary else sign[:-1]
        self.values[target] = self.arithmetic(one, self.values[target], by, _type(inner[0]))


def places(node: Node, parents: tuple[Node, ...] = ()) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    for child in node.get("inner", ()):
        if child:
            yield child, (*parents, node)
            yield from places(child, (*parents, node))


class Drawn:
    """Functions with parameters, constants, variables that change, loops and conditions."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.count = rng, 0
        self.parameters = [
            _kind("ParmVarDecl", rng.choice(("int", "unsigned int", "long")), id=f"p{i}") for i in range(2)
        ]
        self.known = list(self.parameters)

    def whole(self) -> Node:
        return function(self.parameters, *(self.statement(2) for _ in range(3)))

    def expression(self, depth: int) -> Node:
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            return (
                read(rng.choice(self.known))
                if rng.random() < 0.6
                else number(rng.choice((0, 1, 2, 3, 7, 32, 100)))
            )
        if rng.random() < 0.1:
            inner = self.expression(depth - 1)
            return _kind("ParenExpr", _type(inner), inner)
        if rng.random() < 0.1:
            made = cast(self.expression(depth - 1), rng.choice(("int", "unsigned int", "long")))
            return made | (
                {"kind": "CStyleCastExpr"}
                if made["kind"] == "ImplicitCastExpr" and made["castKind"] == "IntegralCast"
                else {}
            )
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        if rng.random() < 0.15:
            common = binary("+", left, right)
            return _kind("ConditionalOperator", _type(common), self.condition(depth - 1), *common["inner"])
        return binary(rng.choice(("+", "-", "*", "/", "%", "&", "|", "^", ">>", "<<")), left, right)

    def condition(self, depth: int) -> Node:
        made = binary(
            self.rng.choice(("<", "<=", ">", ">=", "==")), self.expression(depth), self.expression(0)
        )
        if self.rng.random() < 0.3:
            made = binary_and(made, self.condition(0))
        return made

    def statement(self, depth: int) -> Node:
        rng = self.rng
        kind = rng.choice(("constant", "variable", "change", "if", "for", "for"))
        if kind == "if" and depth:
            parts = [self.condition(1), self.inside(depth)]
            return _kind("IfStmt", "", *parts, *([self.inside(depth)] if rng.random() < 0.4 else []))
        if kind == "for" and depth:
            return self.loop(depth)
        changing = [one for one in self.known if one["id"].startswith("v")]
        if kind == "change" and changing:
            target = rng.choice(changing)
            type_ = target["type"]["qualType"]
            if rng.random() < 0.4:
                return _kind("UnaryOperator", type_, name(target), opcode=rng.choice(("++", "--")))
            value = cast(self.expression(1), type_)
            if rng.random() < 0.5:
                return _kind("BinaryOperator", type_, name(target), value, opcode="=")
            return _kind(
                "CompoundAssignOperator", type_, name(target), value, opcode=rng.choice(("+=", "-="))
            )
        self.count += 1
        value = self.expression(2)
        made = declared(f"{'cv'[kind != 'constant']}{self.count}", _type(value), value)
        self.known.append(made)
        return _kind("DeclStmt", "", made)

    def inside(self, depth: int) -> Node:
        before = len(self.known)
        made = statement(*(self.statement(depth - 1) for _ in range(self.rng.randint(1, 2))))
        made["inner"].append(self.expression(1))
        del self.known[before:]
        return made

    def loop(self, depth: int) -> Node:
        rng = self.rng
        self.count += 1
        type_ = rng.choice(("int", "unsigned int"))
        up = rng.random() < 0.6
        first = cast(number(rng.randint(0, 5)) if up else number(rng.randint(5, 40)), type_)
        counter = declared(f"i{self.count}", type_, first)
        bound = cast(number(rng.randint(1, 30)) if rng.random() < 0.7 else self.expression(0), type_)
        if up:
            condition = binary(rng.choice(("<", "<=")), read(counter), bound)
            signs = {"+=": number(rng.randint(1, 4))}
        else:
            condition = binary(rng.choice((">", ">=")), read(counter), bound)
            signs = {"-=": number(rng.randint(1, 4)), "/=": number(2), ">>=": number(1)}
        if rng.random() < 0.4:
            step = _kind("UnaryOperator", type_, name(counter), opcode="++" if up else "--")
        else:
            sign = rng.choice(list(signs))
            step = _kind(
                "CompoundAssignOperator", type_, name(counter), cast(signs[sign], type_), opcode=sign
            )
        self.known.append(counter)
        body = self.inside(depth)
        if rng.random() < 0.15:  # then it counts otherwise than its head says
            body["inner"].append(_kind("UnaryOperator", type_, name(counter), opcode="++"))
        self.known.remove(counter)
        return _kind("ForStmt", "", _kind("DeclStmt", "", counter), {}, condition, step, body)


def binary_and(left: Node, right: Node) -> Node:
    return _kind("BinaryOperator", "bool", left, right, opcode="&&")


def _ran(
    whole: Node, parameters: list[Node], calls: list[tuple[int, ...]]
) -> tuple[dict[int, set[int]], int]:
    """Values by node, of the calls that are defined; what they saw before they ended otherwise counts not."""
    seen: dict[int, set[int]] = {}
    defined = 0
    for values in calls:
        own: dict[int, set[int]] = {}
        try:
            Run(own, dict(zip((one["id"] for one in parameters), values, strict=True))).do(whole["inner"][-1])
        except UndefinedError:
            continue
        defined += 1
        for node, found in own.items():
            seen.setdefault(node, set()).update(found)
    return seen, defined


@pytest.mark.parametrize("block", range(3))
def test_no_value_of_a_run_is_outside_of_its_range(block: int) -> None:
    told = checked = 0
    for seed in range(60 * block, 60 * block + 60):
        rng = random.Random(seed)
        drawn = Drawn(rng)
        whole = drawn.whole()
        low, high = zip(*(TYPES[one["type"]["qualType"]] for one in drawn.parameters), strict=True)
        calls = [
            tuple(
                max(least, min(most, rng.choice((rng.randint(-3, 40), least, most, rng.randint(0, 2**20)))))
                for least, most in zip(low, high, strict=True)
            )
            for _ in range(8)
        ]
        seen, _ = _ran(whole, drawn.parameters, calls)
        ranges = ValueRanges(whole, b"", lambda _: None)
        for node, parents in places(whole):
            found = seen.get(id(node))
            if found is None or (
                node["kind"] in {"BinaryOperator"} and node["opcode"] in {"<", "<=", ">", ">=", "==", "&&"}
            ):
                continue
            least, most = ranges.of(node, parents)
            assert least <= min(found) <= max(found) <= most, (seed, node, found)
            checked += 1
            told += (least, most) != TYPES[_type(node)]
    # Of many expressions more is known than their type.
    assert told > checked / 3 > 200


def _counted(
    first: int, sign: str, bound: int, step: tuple[str, int], type_: str = "int"
) -> tuple[Node, Node]:
    """``for (i = first; i sign bound; i step)`` around a use of ``i``, and that use."""
    counter = declared("i", type_, cast(number(first), type_))
    by = _kind("CompoundAssignOperator", type_, name(counter), cast(number(step[1]), type_), opcode=step[0])
    use = read(counter)
    condition = binary(sign, read(counter), cast(number(bound), type_))
    loop = _kind("ForStmt", "", _kind("DeclStmt", "", counter), {}, condition, by, statement(use))
    return function([], loop), use


def _range(whole: Node, use: Node, **more: Any) -> tuple[int, int]:
    (parents,) = (parents for node, parents in places(whole) if node is use)
    return ValueRanges(whole, more.pop("text", b""), lambda _: None, **more).of(use, parents)


@pytest.mark.parametrize("type_", ["int", "unsigned int", "long"])
def test_counters_are_known_exactly(type_: str) -> None:
    for first in (0, 1, 5):
        for bound in (6, 7, 13, 20):
            for by in (1, 2, 3, 7):
                for sign in ("<", "<="):
                    whole, use = _counted(first, sign, bound, ("+=", by), type_)
                    seen, _ = _ran(whole, [], [()])
                    found = seen[id(use)]
                    assert _range(whole, use) == (min(found), max(found)), (first, sign, bound, by)
    for first in (9, 20):
        for bound in (1, 2, 4):
            for sign in (">", ">="):
                whole, use = _counted(first, sign, bound, ("-=", 1), type_)
                seen, _ = _ran(whole, [], [()])
                found = seen[id(use)]
                assert _range(whole, use) == (min(found), max(found))


def test_a_step_that_may_wrap_around_leaves_the_type() -> None:
    """``for (unsigned i = 0; i <= 4294967295; ++i)`` never ends, and down to 0 neither."""
    top = TYPES["unsigned int"][1]
    for bound, by, known in ((top, 1, False), (top - 1, 1, True), (top - 1, 2, False)):
        whole, use = _counted(0, "<=", bound, ("+=", by), "unsigned int")
        assert (_range(whole, use) != TYPES["unsigned int"]) == known
    whole, use = _counted(9, ">=", 0, ("-=", 1), "unsigned int")
    assert _range(whole, use) == TYPES["unsigned int"]
    whole, use = _counted(9, ">", 0, ("-=", 1), "unsigned int")
    assert _range(whole, use) == (1, 9)


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", ">>", "<<", "%"])
def test_one_operation_on_a_counter_is_known_exactly(sign: str) -> None:
    for first, bound in ((0, 9), (3, 12), (5, 6)):
        for other in (1, 2, 3, 5, 17):
            whole, use = _counted(first, "<", bound, ("+=", 1))
            body = whole["inner"][-1]["inner"][0]["inner"][-1]
            made = binary(sign, use, number(other))
            body["inner"] = [made]
            seen, _ = _ran(whole, [], [()])
            found = seen[id(made)]
            least, most = _range(whole, made)
            if sign == "%" and other <= bound - 1:  # more than one round: every remainder
                assert (least, most) == (0, min(bound - 1, other - 1))
            else:
                assert (least, most) == (min(found), max(found)), (first, bound, other)


def test_masks_and_unions_of_bits() -> None:
    for first, bound, other in ((0, 9, 12), (3, 40, 7), (1, 2, 64)):
        for sign in ("&", "|", "^"):
            whole, use = _counted(first, "<", bound, ("+=", 1))
            made = binary(sign, use, number(other))
            whole["inner"][-1]["inner"][0]["inner"][-1]["inner"] = [made]
            least, most = _range(whole, made)
            # What two numbers of so many bits can have, whatever their bits are.
            bits = len(bin(max(bound - 1, other))) - 2
            assert (least, most) == ((0, min(bound - 1, other)) if sign == "&" else (0, 2**bits - 1))


@pytest.mark.parametrize(
    ("sign", "least", "most"), [("<", -5, 6), ("<=", -5, 7), (">", 8, 20), (">=", 7, 20), ("==", 7, 7)]
)
@pytest.mark.parametrize("mirrored", [False, True])
def test_conditions_bound_a_variable_that_never_changes(
    sign: str, least: int, most: int, mirrored: bool
) -> None:
    """``const int c = p % 26 - 5; if (c sign 7) use(c);`` with p not negative."""
    parameter = _kind("ParmVarDecl", "unsigned char", id="p")
    wide = cast(read(parameter), "int")
    value = binary("-", binary("%", wide, number(26)), number(5))
    constant = declared("c", "int", value)
    use = read(constant)
    sides = (read(constant), number(7))
    other = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}[sign]
    condition = binary(other, *reversed(sides)) if mirrored else binary(sign, *sides)
    branch = _kind("IfStmt", "", condition, statement(use), statement(late := read(constant)))
    whole = function([parameter], _kind("DeclStmt", "", constant), branch)
    seen, defined = _ran(whole, [parameter], [(n,) for n in range(256)])
    assert defined == 256
    assert _range(whole, use) == (min(seen[id(use)]), max(seen[id(use)])) == (least, most)
    # The condition says nothing where it does not hold.
    assert _range(whole, late) == (-5, 20)


def test_types_by_their_bits() -> None:
    for type_, expected in TYPES.items():
        assert type_range(_kind("DeclRefExpr", type_)) == expected
        assert type_range(_kind("DeclRefExpr", f"const {type_}")) == expected
    for other in ("float", "int *", "int &", "int[4]", "struct A", "unsigned char *"):
        low, high = type_range(_kind("DeclRefExpr", other))
        assert low <= TYPES["long"][0]
        assert high >= TYPES["unsigned long"][1]


def _work_item(axis: str, text: bytes) -> Node:
    begin = text.index(b"threadIdx." + axis.encode())
    place = {"begin": {"offset": begin, "tokLen": 9}, "end": {"offset": begin + 10, "tokLen": 1}}
    return _kind("PseudoObjectExpr", "unsigned int", range=place)


def test_work_items_are_bounded_by_the_block() -> None:
    text = b"int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;"
    for axis, number_of in zip("xyz", range(3), strict=True):
        use = _work_item(axis, text)
        whole = function([], use)
        assert _range(whole, use, text=text) == (0, 1023)
        for block in ((64,), (64, 4), (16, 8, 2)):
            most = block[number_of] if number_of < len(block) else 1
            assert _range(whole, use, text=text, block=block) == (0, most - 1)
        bounds = _kind("CUDALaunchBoundsAttr", "", number(256))
        limited = function([bounds], use)
        assert _range(limited, use, text=text) == (0, 255)
        assert _range(limited, use, text=text, block=(512, 512, 512)) == (0, 255)
        sizes = _kind("AMDGPUFlatWorkGroupSizeAttr", "", number(64), number(128))
        assert _range(function([sizes], use), use, text=text) == (0, 127)
        assert _range(whole, use, text=b"#define threadIdx q\n" + text) == TYPES["unsigned int"]
