"""What can be proven of a source by the user's compiler (``rpl_optimize.interfaces.source_reading``)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import attrs

from rpl_core.errors import InterruptedRunError, RplError
from rpl_optimize.interfaces.source_reading import (
    BlockWork,
    Constant,
    ElementWork,
    Launch,
    SourceReading,
    Store,
    TreeReduction,
)
from rpl_optimize.interfaces.transformation import GuardVerdict
from rpl_optimize.source_meaning.allocations import separate_pointers
from rpl_optimize.source_meaning.constants import constants_of
from rpl_optimize.source_meaning.front_end import FrontEnd, NotJudgedError, Side, shown_line
from rpl_optimize.source_meaning.functions import FUNCTIONS, children, type_name
from rpl_optimize.source_meaning.launches import launches_of
from rpl_optimize.source_meaning.reductions import may_reorder, tree_reductions
from rpl_optimize.source_meaning.streams import streamed_stores
from rpl_optimize.source_meaning.syntax_dump import Node
from rpl_optimize.source_meaning.unit import Original, Unit
from rpl_optimize.source_meaning.value_ranges import Parents, ValueRanges, below, offset_of, plain, type_range
from rpl_optimize.source_meaning.work_items import HeadersNeededError, block_work, element_work

__all__ = ["CompilerReading", "element_uses"]

_EXTENTS = re.compile(r"\[(\d+)\]")
_STORES = frozenset(("CompoundAssignOperator", "UnaryOperator"))
_ELEMENT_POINTER = re.compile(r"const (float|int|double) \*(?: ?(?:const|__restrict))*")
_IN_INDEX = frozenset(("ImplicitCastExpr", "ParenExpr", "BinaryOperator", "IntegerLiteral", "DeclRefExpr"))
_SIGNS = frozenset(("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"))
_DEFINE = re.compile(rb"^\s*#\s*define\s+(\w+)", re.MULTILINE)


T = TypeVar("T")


class _RefusedError(Exception):
    """The message is the reason."""


@attrs.define(eq=False)
class CompilerReading(SourceReading):
    """``text`` by ``front_end``, read when somebody asks first; a text there says why there is none."""

    front_end: FrontEnd | str
    text: bytes
    original: Original | None = None
    _unit: Unit | str | None = attrs.field(default=None, init=False)
    _macros: frozenset[str] | None = attrs.field(default=None, init=False)
    _constants: dict[str, tuple[Constant, ...] | str] = attrs.field(factory=dict, init=False)

    def used_by_element(self, declared_at: int, block: tuple[int, ...] | None = None) -> GuardVerdict:
        def problem(unit: Unit) -> str | None:
            found = [
                (function, node)
                for function in _functions(unit)
                for node, _ in below(function)
                if node.get("kind") == "VarDecl" and node.get("loc", {}).get("offset") == declared_at
            ]
            problems = (
                element_uses(ValueRanges(function, self.text, unit.dump.variable, block), variable)
                for function, variable in found
            )
            missing = None if found else "the compiler sees no such variable in a function that is compiled"
            return missing or next((one for one in problems if one is not None), None)

        return self._guard("used-by-element", problem, "every use is one element within its row")

    def neighbouring_loads(self, places: Sequence[tuple[int, int]]) -> GuardVerdict:
        def problem(unit: Unit) -> str | None:
            functions = [one for one in _functions(unit) if _at(one, places[0]) is not None]
            try:
                for function in functions:
                    _require_neighbours(function, places)
            except _RefusedError as refused:
                return str(refused)
            return None if functions else "the compiler sees no such load in a function that is compiled"

        return self._guard("neighbouring-loads", problem, "one element after the other of one parameter")

    def launches(self, kernel: str) -> tuple[Launch, ...] | str:
        if isinstance(self.front_end, str):
            return self.front_end
        try:
            original = self._original()
            found = launches_of(original.behind(original.preamble(), "host").unit, self.text, kernel)
            if found is None and b"Launch" in self.text:  # by a function, perhaps, which a header declares
                found = launches_of(original.behind(None, "host").unit, self.text, kernel)
        except NotJudgedError as error:
            return str(error)
        if found is None:
            return "its name is used in other ways than a launch"
        return tuple(Launch(shown_line(self.text, one.begin), one.block) for one in found)

    def streamed_stores(self, kernel: str) -> tuple[Store, ...] | str:
        unit = self.parsed()
        return unit if isinstance(unit, str) else streamed_stores(unit, kernel)

    def block_work(self, kernel: str) -> BlockWork | str:
        return self._worked(block_work, kernel)

    def element_work(self, kernel: str) -> ElementWork | str:
        return self._worked(element_work, kernel)

    def _worked(self, work: Callable[..., T | str], kernel: str) -> T | str:
        """By what stands in the file where that is enough, for headers are most of what a compiler reads."""
        unit = self.parsed()
        if isinstance(unit, str):
            return unit
        try:
            return work(unit, self.text, kernel, whole=False)
        except HeadersNeededError:
            whole = self._whole()
            return whole if isinstance(whole, str) else work(whole, self.text, kernel)

    def tree_reductions(self, kernel: str) -> tuple[TreeReduction, ...] | str:
        unit = self._whole()
        if isinstance(unit, str):
            return unit
        try:
            reordered = may_reorder(self._original())
        except NotJudgedError as error:
            return str(error)
        return tree_reductions(unit, self.text, kernel, reordered=reordered)

    def separate_pointers(self, kernel: str) -> tuple[str, ...] | str:
        device, host = self._whole(), self._whole("host")
        if isinstance(device, str) or isinstance(host, str):
            return device if isinstance(device, str) else str(host)
        return separate_pointers(host, device, self.text, kernel)

    def _whole(self, side: Side = "device") -> Unit | str:
        """With the functions of headers; the judge needs it for each edit that rewrites a body."""
        if isinstance(self.front_end, str):
            return self.front_end
        try:
            return self._original().behind(None, side).unit
        except NotJudgedError as error:
            return str(error)

    def compiled(self, text: bytes, architecture: str) -> bytes | str:
        if isinstance(self.front_end, str):
            return self.front_end
        named = any(word.startswith("--offload-arch") for word in self.front_end.words)
        target = () if named else (f"--offload-arch={architecture}",)
        try:
            preamble = self._original().preamble() if named else None
            with self.front_end.reading(text, preamble) as one:
                built = one.scratch / "code"
                one.run("device", *target, "-c", "--no-gpu-bundle-output", "-o", str(built))
                return built.read_bytes()
        except NotJudgedError as error:
            return str(error)
        except InterruptedRunError:
            raise
        except (OSError, RplError) as error:
            return f"it was not compiled: {error}"

    def _guard(self, name: str, problem: Callable[[Unit], str | None], passed: str) -> GuardVerdict:
        unit = self.parsed()
        what = f"not proven: {unit}" if isinstance(unit, str) else problem(unit)
        return GuardVerdict(name, what is None, what or passed)

    def macros(self) -> frozenset[str] | None:
        """Those at the end of the unit, and all that the file itself defines."""
        if self._macros is None and not isinstance(self.front_end, str):
            try:
                with self.front_end.reading(self.text) as one:
                    defined = one.run("device", "-dM", "-E").read_bytes()
            except NotJudgedError:
                return None
            names = {*_DEFINE.findall(defined), *_DEFINE.findall(self.text)}
            self._macros = frozenset(name.decode() for name in names)
        return self._macros

    def constants(self, kernel: str) -> tuple[Constant, ...] | str:
        if isinstance(self.front_end, str):
            return self.front_end
        if kernel not in self._constants:
            try:
                self._constants[kernel] = constants_of(self._original(), self.text, kernel)
            except NotJudgedError as error:
                self._constants[kernel] = str(error)
        return self._constants[kernel]

    def _original(self) -> Original:
        if self.original is None:
            assert not isinstance(self.front_end, str)
            self.original = Original(self.front_end, self.text)
        return self.original

    def parsed(self) -> Unit | str:
        """The unit, read once, or why it can't be read."""
        if isinstance(self.front_end, str):
            return self.front_end
        if self._unit is None:
            try:
                original = self._original()
                self._unit = original.behind(original.preamble(), "device").unit
            except NotJudgedError as error:
                self._unit = str(error)
        return self._unit


def element_uses(ranges: ValueRanges, variable: Node) -> str | None:
    """Why a use of an array variable depends on where its rows lie; ``None`` where none does."""
    name, extents = variable.get("name"), [int(one) for one in _EXTENTS.findall(type_name(variable))]
    if len(extents) < 2:
        return f"{name} has no rows"
    of_type = re.compile(rf"(?:decltype|typeof|typeof_unqual|__typeof\w*)\b.*\b{re.escape(str(name))}\b")
    for node, parents in below(ranges.function):
        types = [node.get("type", {}), node.get("argType", {})]
        if any(of_type.search(str(text)) for one in types for text in one.values()):
            return f"a type is made of {name}"
        if node.get("kind") == "DeclRefExpr" and node["referencedDecl"].get("id") == variable["id"]:
            problem = _element_use(ranges, node, parents, extents)
            if problem is not None:
                return f"{name} is used {problem}"
    return None


def _element_use(ranges: ValueRanges, node: Node, parents: Parents, extents: list[int]) -> str | None:
    around = list(parents)
    for number, extent in enumerate(extents):
        while around and around[-1].get("kind") == "ParenExpr":
            node = around.pop()
        if not around or around[-1].get("castKind") != "ArrayToPointerDecay":
            return "other than under all of its subscripts"
        node = around.pop()
        while around and around[-1].get("kind") == "ParenExpr":
            node = around.pop()
        if not around or around[-1].get("kind") != "ArraySubscriptExpr":
            return "other than under all of its subscripts"
        subscript = around[-1]
        index = next(part for part in children(subscript) if part is not node)
        low, high = ranges.of(index, tuple(around))
        if number and not 0 <= low <= high < extent:
            return f"with a subscript that is not proven to lie below {extent}"
        node = around.pop()
    while around and around[-1].get("kind") == "ParenExpr":
        node = around.pop()
    last = around[-1] if around else {}
    kind, first = last.get("kind"), children(last)[:1]
    loaded = last.get("castKind") == "LValueToRValue"
    stored = kind == "BinaryOperator" and last.get("opcode") == "=" and first == [node]
    changed = (
        kind in _STORES
        and first == [node]
        and (kind != "UnaryOperator" or last.get("opcode") in {"++", "--"})
    )
    return None if loaded or stored or changed else "other than by loads and stores of its elements"


def _functions(unit: Unit) -> Iterator[Node]:
    """Functions of the file with code: of a template its instances."""
    for one in unit.own:
        if one.kind in FUNCTIONS and not one.inside and one.node.get("mangledName"):
            yield one.node


def _at(function: Node, place: tuple[int, int]) -> tuple[Node, Parents] | None:
    """The subscript that stands exactly there, and no macro around or in it."""
    for node, parents in below(function):
        if node.get("kind") == "ArraySubscriptExpr":
            (begin, _, early), (last, length, late) = offset_of(node), offset_of(node, "end")
            if (begin, last + length) == place and not early and not late:
                return node, parents
    return None


def _require_neighbours(function: Node, places: Sequence[tuple[int, int]]) -> None:
    first: tuple[str, list[tuple[str, ...]], Node] | None = None
    statements: list[Node] = []
    block: Node | None = None
    for number, place in enumerate(places):
        found = _at(function, place)
        if found is None:
            raise _RefusedError("a load is no plain subscript of a pointer")
        node, parents = found
        pointer, index = children(node)
        parameter = _parameter_of(function, pointer)
        load, variable, statement, outer = (list(parents)[::-1] + [{}] * 4)[:4]
        element = _ELEMENT_POINTER.fullmatch(type_name(parameter))
        if element is None:
            raise _RefusedError(f"{parameter.get('name')} does not point to constant elements")
        plain_variable = (
            load.get("castKind") == "LValueToRValue"
            and variable.get("kind") == "VarDecl"
            and type_name(variable) in {element[1], f"const {element[1]}"}
            and not {"storageClass", "constexpr", "tls"} & variable.keys()
        )
        if not plain_variable or statement.get("kind") != "DeclStmt" or len(children(statement)) != 1:
            raise _RefusedError("a load is not the whole value of a variable of its own")
        if block is not None and outer is not block:
            raise _RefusedError("the loads do not follow each other")
        block = outer
        statements.append(statement)
        if first is None:
            first = (parameter["id"], _words(function, index), index)
        elif parameter["id"] != first[0] or _words(function, index) != [
            ("BinaryOperator", "+"),
            *first[1],
            ("IntegerLiteral", str(number)),
        ]:
            raise _RefusedError(f"index {number} is not the first one + {number}")
    assert first is not None
    assert block is not None
    at = [next(i for i, part in enumerate(children(block)) if part is one) for one in statements]
    if at != list(range(at[0], at[0] + len(at))):
        raise _RefusedError("the loads do not follow each other")
    low, high = type_range(first[2])
    if (low, high) == (0, (1 << 32) - 1) and _multiple(function, first[2]) % len(places):
        raise _RefusedError("an unsigned index may wrap around between the elements")


def _parameter_of(function: Node, pointer: Node) -> Node:
    name = children(pointer)[0] if pointer.get("castKind") == "LValueToRValue" else {}
    identity = name.get("referencedDecl", {}).get("id") if name.get("kind") == "DeclRefExpr" else None
    for node in children(function):
        if node.get("kind") == "ParmVarDecl" and node["id"] == identity:
            return node
    raise _RefusedError("what is loaded from is no parameter of the function itself")


def _words(function: Node, index: Node) -> list[tuple[str, ...]]:
    """An index in words: equal ones have equal values. Refuses what does anything, or may change."""
    own = {node["id"]: node for node, _ in below(function) if node.get("kind") in {"VarDecl", "ParmVarDecl"}}
    found: list[tuple[str, ...]] = []
    for node, _ in below({"inner": [index]}):
        kind = node.get("kind", "")
        if offset_of(node)[2] or offset_of(node, "end")[2]:
            raise _RefusedError("an index has a macro")
        if kind not in _IN_INDEX or (kind == "BinaryOperator" and node.get("opcode") not in _SIGNS):
            raise _RefusedError("an index is more than local variables and numbers")
        if kind == "DeclRefExpr":
            variable = own.get(node["referencedDecl"]["id"], {})
            words = f"{type_name(variable)} {variable.get('storageClass', '')}"
            if not variable or re.search(r"volatile|[&*\[]|static|extern", words) or _is_shared(variable):
                raise _RefusedError("an index is more than local variables and numbers")
            found.append((kind, variable["id"]))
        elif kind == "IntegerLiteral":
            found.append((kind, str(node["value"])))
        elif kind == "BinaryOperator":
            found.append((kind, str(node["opcode"])))
        elif node.get("castKind") == "IntegralCast" and plain(node).get("kind") != "IntegerLiteral":
            found.append((kind, type_name(node)))
    return found


def _is_shared(variable: Node) -> bool:
    return any(child.get("kind") == "CUDASharedAttr" for child in children(variable))


def _multiple(function: Node, index: Node) -> int:
    """A power of two that divides an unsigned number whatever wraps around; 1 where none is known."""
    node = plain(index)
    kind, parts = node.get("kind"), children(node)
    if kind == "IntegerLiteral":
        value = int(node["value"])
        return value & -value or 1 << 32
    if kind == "BinaryOperator":
        left, right = (_multiple(function, part) for part in parts)
        literal = plain(parts[1])
        if node["opcode"] == "*":
            return min(left * right, 1 << 32)
        if node["opcode"] in {"+", "-", "|", "^"}:
            return math.gcd(left, right)
        if node["opcode"] == "&":
            return max(left, right)
        if node["opcode"] == "<<" and literal.get("kind") == "IntegerLiteral":
            return min(left << int(literal["value"]), 1 << 32)
    return 1
