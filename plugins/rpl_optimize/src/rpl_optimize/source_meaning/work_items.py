"""Kernels whose work-items or blocks do their work each for itself, so that one can do that of several.

No order is promised among the blocks of a grid, nor among work-items that do not wait for each other (HIP
programming model, "Thread hierarchy"): where no one uses what another one stores, any order gives the same. A
kernel in which one does computes something else from run to run already. What is proven here is the rest:
that all the work of a block or work-item follows from its index and the arguments of the launch, in every
instance of a template, whoever is called, and that nothing is kept from one to the next. A block may share
memory where it waits by ``__syncthreads()``, and every work-item comes to each of these
(``rpl_optimize.source_meaning.uniform``); nothing else is done together. Shared memory has no first value
(clang refuses initializers), so what the block before left there tells no one anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs

from rpl_core.values import frozen
from rpl_optimize.interfaces.source_reading import BlockWork, ElementStore, ElementWork, Span
from rpl_optimize.source_meaning.functions import FUNCTIONS, body_of, children, type_name
from rpl_optimize.source_meaning.syntax_dump import Node
from rpl_optimize.source_meaning.uniform import not_for_all
from rpl_optimize.source_meaning.unit import Unit, last_name
from rpl_optimize.source_meaning.value_ranges import Parents, below, ends_of, offset_of, plain
from rpl_optimize.source_meaning.words import words_in

__all__ = ["block_work", "element_work"]

_COORDINATES = (
    r"(?:block|thread)Idx|(?:block|grid)Dim|hip(?:Block|Thread)Idx_[xyz]|hip(?:Block|Grid)Dim_[xyz]"
)
_COORDINATE = re.compile(rb"(%s)(?:\s*\.\s*([xyz]))?" % _COORDINATES.encode())
_WORD = re.compile(_COORDINATES)
#: A class may have members that change in spite of it (``mutable``).
_CONSTANT = re.compile(
    r"const (?:(?:unsigned |signed )?(?:char|short|int|long|long long|__int128)|bool|float|double|_Float16)"
    r"|.*[*]\s*const"
)
#: Functions without a body that compute their result from their arguments alone: AMD's math library, clang's
#: builtins but those that ask the hardware or reach memory.
_PURE = re.compile(
    r"__ocml_\w+_f(?:16|32|64)|__builtin_(?:f?abs|sqrt|fma|pow|exp|log|sin|cos|tan|floor|ceil|trunc|round|rint"
    r"|nearbyint|fmin|fmax|fmod|copysign|ldexp|elementwise_|popcount|clz|ctz|ffs|bswap|isnan|isinf|isfinite"
    r"|signbit|bit_cast)\w*|__builtin_amdgcn_(?:sqrt|rsq|rcp|exp2|log|sin|cos|fract|ldexp|fmed3|frexp)\w*"
)
#: What keeps something, runs in another order, or is not looked into.
_NOT_FOLLOWED = frozenset(
    (
        *("LambdaExpr", "StmtExpr", "GCCAsmStmt", "MSAsmStmt", "GotoStmt", "IndirectGotoStmt", "LabelStmt"),
        *("CXXTryStmt", "CXXThrowExpr", "CXXNewExpr", "CXXDeleteExpr", "AtomicExpr", "CXXForRangeStmt"),
        *("CXXConstructExpr", "CXXTemporaryObjectExpr", "CXXOperatorCallExpr", "RecoveryExpr"),
        *("CXXBindTemporaryExpr", "CXXDefaultInitExpr", "UserDefinedLiteral"),
    )
)
_LOOPS = frozenset(("ForStmt", "WhileStmt", "DoStmt", "SwitchStmt"))


class _RefusedError(Exception):
    """The message is the reason."""


class HeadersNeededError(Exception):
    """Nothing refuses so far, but something is used whose declaration stands in a header."""


def block_work(unit: Unit, text: bytes, kernel: str, *, whole: bool = True) -> BlockWork | str:
    """``unit`` is the device pass; raises ``HeadersNeededError`` if it is not ``whole`` and has to be."""
    try:
        works = [_block_work(one) for one in _instances(unit, text, kernel, whole=whole, together=True)]
    except _RefusedError as refused:
        return str(refused)
    returns = {place for work in works for place in work.returns}  # an instance may lack one (if constexpr)
    changed = {name: None for work in works for name in work.changed}
    ordered = tuple(sorted(returns, key=lambda place: place.begin))
    # Behind a directive, or in a branch of no instance, there may be one for another GPU.
    body = works[0].body
    words = {body.begin + at for at, word in words_in(body.of(text)) if word == b"return"}
    if not words <= {place.begin for place in returns}:
        return "a return stands in it that none of its instances has"
    waits = any(work.waits for work in works)
    return attrs.evolve(works[0], returns=ordered, changed=tuple(changed), waits=waits)


def element_work(unit: Unit, text: bytes, kernel: str, *, whole: bool = True) -> ElementWork | str:
    """As ``block_work``."""
    try:
        works = [_element_work(one) for one in _instances(unit, text, kernel, whole=whole)]
    except _RefusedError as refused:
        return str(refused)
    if any(one != works[0] for one in works):
        return "its instances differ in more than types of one size"
    return works[0]


def _instances(
    unit: Unit, text: bytes, kernel: str, *, whole: bool, together: bool = False
) -> Iterator[_Kernel]:
    functions = [one.node for one in unit.own if one.kind in FUNCTIONS and not one.inside]
    instances = [node for node in functions if node.get("name") == kernel and node.get("mangledName")]
    instances = [node for node in instances if body_of(node) is not None]
    if not instances:
        raise _RefusedError("the compiler sees no such kernel that is compiled")
    called = _Calls(unit, whole)
    yield from (_Kernel.of(called, text, node, together=together) for node in instances)
    if called.unseen:
        raise HeadersNeededError


@frozen(eq=False)
class _Kernel:
    """One instance, of which the parts that both need are proven.

    ``together``: its work-items may share memory and have barriers.
    """

    called: _Calls
    text: bytes
    function: Node
    body: Node
    nodes: tuple[tuple[Node, Parents], ...]
    parameters: dict[str, Node]
    together: bool

    @classmethod
    def of(cls, called: _Calls, text: bytes, function: Node, *, together: bool) -> _Kernel:
        body = body_of(function)
        assert body is not None
        begin, end = ends_of(body)
        if text[begin : begin + 1] != b"{" or text[end - 1 : end] != b"}":
            raise _RefusedError("its body is made by a macro")
        if re.search(rb"#\s*define\s+(?:%s)\b" % _COORDINATES.encode(), text):
            raise _RefusedError("the file defines words for indices of blocks or work-items itself")
        parameters = {one["id"]: one for one in children(function) if one.get("kind") == "ParmVarDecl"}
        nodes = tuple(below(function))
        one = cls(called, text, function, body, nodes, parameters, together)
        one._require_followed()
        return one

    def _require_followed(self) -> None:
        for node, parents in self.nodes:
            kind, name = node.get("kind", ""), node.get("name")
            if kind in _NOT_FOLLOWED or kind.startswith("OMP"):
                raise _RefusedError(f"line {self._line(node)} has what is not followed ({kind})")
            special = self.called.special(node)
            if special is not None:
                raise _RefusedError(f"line {self._line(node)} has {special}")
            if kind in {"VarDecl", "ParmVarDecl"} and _WORD.fullmatch(str(name)):
                raise _RefusedError(f"it has a variable of its own named {name}")
            if (
                kind == "DeclRefExpr"
                and self.called.is_own(node["referencedDecl"])
                and self._is_coordinate(node)
            ):
                raise _RefusedError(f"{node['referencedDecl'].get('name')} is a variable of the file")
            if kind == "VarDecl" and _is_kept(node) and not (self.together and _is_shared(node)):
                raise _RefusedError(f"{name} is shared, or kept beyond one work-item")
            if kind == "DeclRefExpr" and not self._is_coordinate(node):
                self._require_value(node, parents)
            if self.together and self.called.is_barrier(node):
                continue
            if kind in {"CallExpr", "CXXMemberCallExpr"} and not self._is_coordinate(node):
                problem = self.called.problem(node)
                if problem is not None:
                    raise _RefusedError(f"it calls what is not followed: {problem}")

    def changed(self) -> tuple[str, ...]:
        """Parameters that do not keep the value that the launch gave them, as far as can be seen."""
        names: dict[str, None] = {}
        for node, parents in self.nodes:
            parameter = self.parameters.get(node.get("referencedDecl", {}).get("id", ""), {})
            if (
                parameter
                and not _CONSTANT.fullmatch(type_name(parameter))
                and not _is_read(parents, array=False)
            ):
                if "&" in type_name(parameter) or self.called.is_copied_by_code(parameter):
                    raise _RefusedError(f"the parameter {parameter.get('name')} may change and is no copy")
                names[str(parameter.get("name"))] = None
        return tuple(names)

    def _require_value(self, node: Node, parents: Parents) -> None:
        """No variable of the file is shared or written."""
        declared = node["referencedDecl"]
        if declared.get("kind") != "VarDecl" or any(one.get("id") == declared["id"] for one, _ in self.nodes):
            return
        variable = self.called.variable(declared["id"])
        if variable is None and self.called.unseen:
            return
        if self.together and variable is not None and _is_shared(variable):
            return
        if variable is None or _WORD.fullmatch(str(declared.get("name"))) or _is_kept(variable, of_file=True):
            raise _RefusedError(f"{declared.get('name')} is shared, or not known")
        if not _is_read(parents) and not type_name(variable).startswith("const "):
            raise _RefusedError(f"it does more with {declared.get('name')} than to read it")

    def _is_coordinate(self, node: Node) -> bool:
        """``blockIdx.x`` and the like, as the text says it; or a part of it."""
        (begin, end), (first, last) = ends_of(node), ends_of(self.body)
        return first < begin < end < last and _COORDINATE.fullmatch(self.text[begin:end]) is not None

    def coordinates(self, begin: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Each index between two places: begin and end of its text, and ``block x`` and the like."""
        for at, word in words_in(self.text[begin:end]):
            if not _WORD.fullmatch(word.decode("ascii", "replace")):
                continue
            match = _COORDINATE.match(self.text, begin + at)
            assert match is not None
            name = match[1].decode()
            axis = name[-1] if "_" in name else (match[2] or b"").decode()
            if not axis:
                raise _RefusedError(f"{name} is used other than by its x, y or z")
            kind = re.sub(r"^hip|_[xyz]$", "", name)
            yield *match.span(), f"{kind[:1].lower()}{kind[1:]}.{axis}"

    def _line(self, node: Node) -> int:
        return self.text.count(b"\n", 0, max(0, offset_of(node)[0])) + 1


def _is_kept(variable: Node, *, of_file: bool = False) -> bool:
    kept = variable.get("storageClass") in {"static", "extern"} and not variable.get("constexpr")
    return _is_shared(variable) or (kept and not of_file)


def _is_shared(variable: Node) -> bool:
    return any(one.get("kind") == "CUDASharedAttr" for one in children(variable))


def _is_read(parents: Parents, *, array: bool = True) -> bool:
    """Whether a name stands for its value, or for that of a member of it; of an ``array`` for its place."""
    for parent in reversed(parents):
        if parent.get("kind") not in {"ParenExpr", "MemberExpr", "OpaqueValueExpr", "MSPropertyRefExpr"}:
            decays = parent.get("castKind") in {"FunctionToPointerDecay", "ArrayToPointerDecay"}
            return parent.get("castKind") == "LValueToRValue" or (array and decays)
    return False


def _is_trivial(record: Node, member: str) -> bool:
    """Whether the compiler writes a special member, and it does nothing but copy; of a mere declaration."""
    data = record.get("definitionData")
    return data is None or bool(data.get(member, {}).get("trivial"))


@attrs.define(eq=False)
class _Calls:
    """Functions by what they may do: compute from their arguments and load and store by them, or more.

    ``unseen``: something is declared in a header, whose declarations only a ``whole`` unit has.
    """

    unit: Unit
    whole: bool
    unseen: bool = attrs.field(default=False, init=False)
    _known: dict[str, str | None] = attrs.field(factory=dict, init=False)

    def variable(self, identity: str) -> Node | None:
        found = self.unit.dump.variable(identity)
        self.unseen |= found is None and not self.whole
        return found

    def is_barrier(self, node: Node) -> bool:
        """Whether a node calls HIP's ``__syncthreads()``."""
        parts = children(node)
        named = plain(parts[0]).get("referencedDecl", {}) if len(parts) == 1 else {}
        if node.get("kind") != "CallExpr" or named.get("name") != "__syncthreads":
            return False
        declared = self.unit.dump.function(named["id"])
        self.unseen |= declared is None and not self.whole
        own = any(one.node.get("id") == named["id"] for one in self.unit.own)
        linked = str((declared or {}).get("mangledName"))
        return not own and (self.unseen or re.fullmatch(r"_ZL?13__syncthreadsv", linked) is not None)

    def special(self, node: Node) -> str | None:
        """What makes a node one that is not followed, whatever stands around it."""
        if "volatile" in type_name(node):
            return "what is volatile"
        if "address_space(3)" in type_name(node):
            return "shared memory by its address"
        classes: tuple[Node, ...] = ()
        if node.get("kind") in {"VarDecl", "DecompositionDecl"}:
            classes = self._classes(type_name(node))
        elif node.get("kind") in {"CXXRecordDecl", "ClassTemplateSpecializationDecl"}:
            classes = (node,)
        return None if all(_is_trivial(one, "dtor") for one in classes) else "an object with a destructor"

    def is_copied_by_code(self, variable: Node) -> bool:
        parts = ("copyCtor", "dtor")
        return any(not _is_trivial(one, part) for one in self._classes(type_name(variable)) for part in parts)

    def _classes(self, name: str) -> tuple[Node, ...]:
        """All that a type may be an object of, by its last name."""
        last = last_name(name)
        self.unseen |= last is not None and not self.whole
        return () if last is None else tuple(self.unit.dump.classes(last))

    def is_own(self, declared: Node) -> bool:
        """Whether a variable is declared in the file itself."""
        return declared.get("kind") == "VarDecl" and any(
            one.node.get("id") == declared.get("id") for one in self.unit.own
        )

    def problem(self, call: Node) -> str | None:
        callee = plain(children(call)[0])
        objects = children(callee) if callee.get("kind") == "MemberExpr" else ()
        classes = (one for part in objects for one in self._classes(type_name(part).removesuffix(" *")))
        if any(one.get("definitionData", {}).get("isPolymorphic") for one in classes):
            return f"{callee.get('name')}, of a class with virtual functions"
        identity = callee.get("referencedMemberDecl") or callee.get("referencedDecl", {}).get("id")
        if identity is None:
            return "a function that is not named"
        return self._of(str(identity))

    def _of(self, identity: str) -> str | None:
        if identity not in self._known:
            self._known[identity] = None  # one that calls itself
            self._known[identity] = self._looked(identity)
        return self._known[identity]

    def _looked(self, identity: str) -> str | None:
        nodes = [self.unit.dump.function(one) for one in self.unit.dump.redeclarations(identity)]
        known = [node for node in (*nodes, self.unit.dump.function(identity)) if node is not None]
        defined = next((node for node in known if body_of(node) is not None), None)
        name = str(known[0].get("name")) if known else "a function that is not declared here"
        if defined is None and not self.whole:
            self.unseen = True
            return None
        if defined is None:
            return None if known and _PURE.fullmatch(name) else name
        for node, _ in below(defined):
            kind = node.get("kind", "")
            if kind in _NOT_FOLLOWED or (kind == "VarDecl" and _is_kept(node)):
                return name
            if self.special(node) is not None:
                return name
            if kind == "DeclRefExpr" and node["referencedDecl"].get("kind") == "VarDecl":
                declared = self.variable(node["referencedDecl"]["id"])
                if declared is None and self.unseen:
                    continue
                if declared is None or _is_kept(declared) or _WORD.fullmatch(str(declared.get("name"))):
                    return name
            if kind in {"CallExpr", "CXXMemberCallExpr"} and self.problem(node) is not None:
                return self.problem(node)
        return None


# Blocks.


def _block_work(kernel: _Kernel) -> BlockWork:
    begin, end = ends_of(kernel.body)
    blocks = [(a, b) for a, b, what in kernel.coordinates(begin, end) if what == "blockIdx.x"]
    if not blocks:
        raise _RefusedError("it does not ask for the block in x")
    if _strides(kernel):
        raise _RefusedError("it goes on by the size of the grid: its blocks do the work of several already")
    returns = []
    for node, parents in kernel.nodes:
        if node.get("kind") != "ReturnStmt":
            continue
        at = offset_of(node)[0]
        if any(one.get("kind") in _LOOPS for one in parents) or kernel.text[at : at + 6] != b"return":
            raise _RefusedError("it returns from inside of a loop")
        returns.append((at, at + 6))
    return BlockWork(
        body=Span(begin, end),
        blocks=tuple(Span(*one) for one in blocks),
        returns=tuple(Span(*one) for one in returns),
        changed=kernel.changed(),
        waits=_waits(kernel),
    )


def _waits(kernel: _Kernel) -> bool:
    """Whether work-items wait for each other, proven to come to each barrier all together."""
    own = {node["id"]: node for node, _ in kernel.nodes if node.get("kind") == "VarDecl"}
    named = [node.get("referencedDecl", {}) for node, _ in kernel.nodes if not kernel._is_coordinate(node)]
    others = {one["id"] for one in named if one.get("kind") == "VarDecl"} - own.keys()
    known = (*own.values(), *(kernel.called.variable(one) for one in sorted(others)))
    shares = any(_is_shared(one) for one in known if one is not None)
    waits = any(kernel.called.is_barrier(node) for node, _ in kernel.nodes)
    if shares and not waits:
        raise _RefusedError("its work-items share memory and wait for nobody")
    if not waits or kernel.called.unseen:
        return waits
    alone = not_for_all(kernel.function, kernel.text, kernel.called.variable, kernel.called.is_barrier)
    if alone is not None:
        raise _RefusedError(
            f"not every work-item is known to come to the barrier in line {kernel._line(alone)}"
        )
    return True


def _strides(kernel: _Kernel) -> bool:
    """Whether a variable moves on by ``gridDim.x``, or by what is made of it."""

    def sized(node: Node) -> bool:
        begin, end = ends_of(node)
        return any(what == "gridDim.x" for _, _, what in kernel.coordinates(max(begin, 0), end))

    made = {node["id"] for node, _ in kernel.nodes if node.get("kind") == "VarDecl" and sized(node)}
    changes = [node for node, _ in kernel.nodes if _changes(node) and len(children(node)) == 2]
    moves = [children(one)[1] for one in changes if plain(children(one)[0]).get("kind") == "DeclRefExpr"]
    by_name = any(one.get("referencedDecl", {}).get("id") in made for one, _ in below({"inner": moves}))
    return by_name or any(sized(move) for move in moves)


# Elements: ``P[i] = VALUE`` for the work-item's own ``i``.

_INDEX = re.compile(r"(?:unsigned )?(?:int|long|long long)")
_NUMBERS = {"float": 4, "int": 4, "unsigned int": 4, "double": 8, "long": 8, "unsigned long": 8,
            "long long": 8, "unsigned long long": 8}  # fmt: skip
_POINTER = re.compile(r"[\w: ]+ \*(?: ?(?:const|__restrict))*")
#: Where a comparison with an index holds, it holds for any smaller one.
_BELOW = frozenset(("<", "<="))
_ABOVE = frozenset((">", ">="))
_IN_BOUND = frozenset(
    ("ImplicitCastExpr", "ParenExpr", "BinaryOperator", "IntegerLiteral", "DeclRefExpr", "CStyleCastExpr",
     "CXXStaticCastExpr", "CXXFunctionalCastExpr", "SubstNonTypeTemplateParmExpr", "ConstantExpr")
)  # fmt: skip


def _element_work(kernel: _Kernel) -> ElementWork:
    body = ends_of(kernel.body)
    statements = children(kernel.body)
    if b"#" in kernel.text[body[0] : body[1]]:
        raise _RefusedError("a directive stands in its body")
    if kernel.changed():
        raise _RefusedError(f"the parameter {kernel.changed()[0]} may change")
    index = _index(kernel, statements[0] if statements else {})
    begin, end = ends_of(index)
    if any(a < begin or b > end for a, b, _ in kernel.coordinates(*body)):
        raise _RefusedError("it asks for more than the index of its work-item")
    condition, holds, rest = _guarded(index, statements[1:])
    declared = [one for one in rest if one.get("kind") == "DeclStmt"]
    stores = [_store(kernel, index, one) for one in rest[len(declared) :]]
    if not stores or (declared and len(stores) > 1):
        raise _RefusedError("it does more than to store elements at its own index")
    if any(children(one)[0].get("kind") != "VarDecl" for one in declared):
        raise _RefusedError("it declares more than variables")
    for node, parents in kernel.nodes:
        reference = node.get("referencedDecl", {})
        if reference.get("id") == index["id"] and not _is_read(parents):
            raise _RefusedError("the index may change")
        if reference.get("id") in {one[0] for one in stores} and not _at_index(index, parents):
            raise _RefusedError(f"it reaches for {reference.get('name')} at other places, too")
    for one in (*declared, *(value for _, _, _, value in stores)):
        if any(_changes(node) for node, _ in below({"inner": [one]})):
            raise _RefusedError("a value changes something")
    direct = all(
        _at_index(index, parents[:-1], own=True)
        for node, parents in kernel.nodes
        if node.get("referencedDecl", {}).get("id") == index["id"] and _within(parents, rest)
    )
    made = tuple(
        ElementStore(
            str(kernel.parameters[one].get("name")), Span(*ends_of(target)), Span(*ends_of(value)), size
        )
        for one, size, target, value in stores
    )
    spans = [Span(*body), *(Span(*_written(kernel, one)) for one in declared)]
    return ElementWork(
        body=spans[0],
        index=str(index.get("name")),
        index_type=type_name(index).removeprefix("const "),
        only_subscripts=direct,
        condition=None if condition is None else Span(*ends_of(condition)),
        condition_holds=holds,
        declarations=tuple(spans[1:]),
        stores=made,
    )


def _index(kernel: _Kernel, statement: Node) -> Node:
    """The first statement: a variable that is the work-item's index in x, in the grid."""
    variable = (children(statement) or [{}])[0]
    value = children(variable)[-1] if children(variable) else {}
    plain_one = statement.get("kind") == "DeclStmt" and len(children(statement)) == 1
    if (
        not plain_one
        or variable.get("kind") != "VarDecl"
        or not _INDEX.fullmatch(type_name(variable).removeprefix("const "))
    ):
        raise _RefusedError("it does not begin with the index of its work-item")
    begin, end = ends_of(value)
    found = list(kernel.coordinates(begin, end))
    said = kernel.text[begin:end]
    for a, b, what in reversed(found):
        said = said[: a - begin] + what.encode() + said[b - begin :]
    block, size, item = b"blockIdx.x", b"blockDim.x", b"threadIdx.x"
    product = [b"%s*%s" % pair for pair in ((block, size), (size, block))]
    sums = {one for part in product for one in (b"%s+%s" % (part, item), b"%s+%s" % (item, part))}
    if re.sub(rb"[\s()]", b"", said) not in sums or re.search(
        rb"\([^()]*\+[^()]*\)\s*\*|\*\s*\([^()]*\+", said
    ):
        raise _RefusedError("it does not begin with the index of its work-item in the grid")
    return variable


def _guarded(index: Node, statements: Sequence[Node]) -> tuple[Node | None, bool, list[Node]]:
    """The condition of the work, whether it has to hold or to fail, and the statements under it."""
    first = statements[0] if statements else {}
    if first.get("kind") != "IfStmt":
        return None, True, list(statements)
    if first.get("hasElse") or first.get("hasInit") or first.get("hasVar"):
        raise _RefusedError("its condition is more than one of the index")
    condition, under = children(first)
    work = children(under) if under.get("kind") == "CompoundStmt" else [under]
    leaves = [one.get("kind") for one in work] == ["ReturnStmt"]
    if len(statements) > 1 and not leaves:
        raise _RefusedError("it does more than what its condition guards")
    if not _bounds(index, condition, _ABOVE if leaves else _BELOW):
        raise _RefusedError("its condition is more than a bound of the index")
    begin, end = ends_of(condition)
    if offset_of(condition)[2] or not 0 <= begin < end:
        raise _RefusedError("its condition is made by a macro")
    return condition, not leaves, list(statements[1:]) if leaves else work


def _bounds(index: Node, condition: Node, signs: frozenset[str]) -> bool:
    """Whether a condition compares the index with what is one number for all work-items."""
    condition = plain(condition)
    if condition.get("kind") != "BinaryOperator":
        return False
    left, right = children(condition)
    sign = str(condition.get("opcode"))
    if _names(right, index):
        left, right, sign = right, left, sign.translate(str.maketrans("<>", "><"))
    others = [node for node, _ in below({"inner": [right]})]
    plain_bound = all(
        node.get("kind") in _IN_BOUND and node.get("referencedDecl", {}).get("id") != index["id"]
        for node in others
    )
    whole = not any(word in type_name(node) for node in others for word in ("float", "double", "_Float16"))
    return _names(left, index) and sign in signs and plain_bound and whole


def _names(node: Node, index: Node) -> bool:
    return bool(plain(node).get("referencedDecl", {}).get("id") == index["id"])


def _store(kernel: _Kernel, index: Node, node: Node) -> tuple[str, int, Node, Node]:
    """``P[i] = VALUE``: the parameter, bytes of an element, target and value."""
    if node.get("kind") != "BinaryOperator" or node.get("opcode") != "=":
        raise _RefusedError("it does more than to store elements at its own index")
    target, value = children(node)
    pointer = children(target)[0] if target.get("kind") == "ArraySubscriptExpr" else {}
    name = children(pointer)[0] if pointer.get("castKind") == "LValueToRValue" else {}
    parameter = kernel.parameters.get(str(name.get("referencedDecl", {}).get("id")))
    if parameter is None or not _names(children(target)[1], index):
        raise _RefusedError("it stores other than by a parameter at its own index")
    size = _NUMBERS.get(type_name(target))
    if size is None or not _POINTER.fullmatch(type_name(parameter)):
        raise _RefusedError(f"{parameter.get('name')} does not point to numbers of 4 or 8 bytes")
    for part in (target, value):
        (a, b), macros = ends_of(part), [offset_of(part, end)[2] for end in ("begin", "end")]
        if any(macros) or not 0 <= a < b:
            raise _RefusedError("a store is made by a macro")
    return parameter["id"], size, target, value


def _at_index(index: Node, parents: Parents, *, own: bool = False) -> bool:
    """Whether a pointer that is named below ``parents`` is used as ``P[i]``; ``own``: the index is."""
    around = [one for one in reversed(parents) if one.get("kind") not in {"ImplicitCastExpr", "ParenExpr"}]
    subscript = around[0] if around else {}
    if subscript.get("kind") != "ArraySubscriptExpr":
        return False
    return own or _names(children(subscript)[1], index)


def _within(parents: Parents, statements: Sequence[Node]) -> bool:
    return any(one is statement for one in parents for statement in statements)


def _changes(node: Node) -> bool:
    assigns = node.get("opcode") in {"=", "++", "--"} and node.get("kind") in {
        "BinaryOperator",
        "UnaryOperator",
    }
    return assigns or node.get("kind") == "CompoundAssignOperator"


def _written(kernel: _Kernel, statement: Node) -> tuple[int, int]:
    begin, end = ends_of(statement)
    if not 0 <= begin < end or kernel.text[end - 1 : end] != b";":
        raise _RefusedError("a declaration is made by a macro")
    return begin, end
