"""Reductions of a shared array by halves, and their last steps from lane to lane.

What is looked for, in every instance of a template, as a statement of the kernel itself::

    for (s = N; s > 0; s /= 2) { if (t < s) A[t] = F(A[t], A[t + s]); __syncthreads(); }

Once ``s`` is half a wave, only the first wave works, and only on ``A[0]`` to ``A[2 s - 1]``. So it may load
these once, hand them from lane to lane for all steps that are left, and store ``A[0]`` to ``A[s - 1]``.
Each lane does the same operations on the same numbers in the same order, and behind the loop all of ``A``
is as it was. Whether ``s`` comes to half a wave is asked when the kernel runs: a block for which it does
not, or that has several rows, goes on by the loop. So the size of blocks need not be known, nor that of a
wave.

What is proven of the source: ``t`` is ``threadIdx.x``, ``s`` is the same in all work-items, they all come
to the loop, ``A`` is shared and not volatile, and ``F`` only computes. Of floating-point numbers it does
one operation at most: the compiler may contract two to one (clang, ``-ffp-contract``), those of two steps
as well, now that no memory lies between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from rpl_core.values import frozen
from rpl_optimize.interfaces.source_reading import TreeReduction
from rpl_optimize.source_meaning.front_end import shown_line
from rpl_optimize.source_meaning.functions import FUNCTIONS, body_of, children, is_kernel, type_name
from rpl_optimize.source_meaning.operations import (
    CALLS,
    WHOLE_NUMBERS,
    Operations,
    RefusedError,
    bare,
    callees,
    is_loaded,
    is_special,
    value_of,
)
from rpl_optimize.source_meaning.syntax_dump import Node
from rpl_optimize.source_meaning.unit import Original, Unit
from rpl_optimize.source_meaning.value_ranges import below, ends_of, offset_of, type_range

__all__ = ["exchanges_in", "may_reorder", "tree_reductions", "without_loop"]

#: Numbers that ``__shfl_down`` hands over as they are (HIP, "Warp shuffle functions").
_FLOATS = frozenset(("float", "double"))
_NUMBERS = _FLOATS | {"int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long"}
_EXCHANGE, _BARRIER = "__shfl_down", "__syncthreads"
_INDICES = re.compile(r"threadIdx|blockDim|blockIdx|gridDim|hip(?:Thread|Block|Grid)(?:Idx|Dim)_[xyz]")
_TAKEN = re.compile(
    rb"#\s*define\s+(?:(?:thread|block)Idx|(?:block|grid)Dim|hip(?:Thread|Block|Grid)(?:Idx|Dim)_[xyz]|[xyz]"
    rb"|__shfl_down|__syncthreads|rpl_\w+)\b"
)
_ITEM = re.compile(rb"threadIdx\s*\.\s*x|hipThreadIdx_x")
_UNIFORM = re.compile(rb"(?:blockDim|blockIdx|gridDim)\s*\.\s*[xyz]|hip(?:BlockDim|BlockIdx|GridDim)_[xyz]")
_UNIFORM_SIGNS = frozenset(("+", "-", "*", "/", "%", "<<", ">>", "&", "|"))
_KEPT = frozenset(("ParenExpr", "ConstantExpr", "ExprWithCleanups", "SubstNonTypeTemplateParmExpr"))
#: Behind these not every work-item may go on, or not as one.
_LEAVES = frozenset(
    (
        *("ReturnStmt", "GotoStmt", "IndirectGotoStmt", "LabelStmt", "GCCAsmStmt", "MSAsmStmt", "CXXTryStmt"),
        *("CXXThrowExpr", "CoreturnStmt", "RecoveryExpr"),
    )
)
_MAKES = frozenset(("VarDecl", "CXXConstructExpr", "CXXTemporaryObjectExpr", "CXXBindTemporaryExpr"))
#: Where sums may be taken in another order (clang, "Controlling Floating Point Behavior"), or options are not
#: seen.
_REORDERS = re.compile(
    r"-ffast-math|-Ofast|-fassociative-math|-funsafe-math-optimizations|-ffp-model=(?:fast|aggressive)"
    r"|-mreassociate|-menable-unsafe-fp-math|-cl-(?:fast-relaxed|unsafe)-math\S*|@.+|--?config.*"
)
_REORDERING_TEXT = re.compile(rb"\breassociate\b|\bfloat_control\b|\bfast-math\b|\boptimize\s*\(")


def may_reorder(original: Original) -> bool:
    """Whether options, or a pragma anywhere in the unit, let the compiler take sums in another order.

    A pragma of a header holds for what stands behind it, and a macro of one may make one in the kernel. Both
    stand in what the preprocessor makes of the unit.
    """
    if any(_REORDERS.fullmatch(word) for word in original.front_end.words):
        return True
    if _REORDERING_TEXT.search(original.text):
        return True
    return any(_REORDERING_TEXT.search(pragma) for pragma in original.pragmas())


def tree_reductions(
    unit: Unit, text: bytes, kernel: str, *, reordered: bool
) -> tuple[TreeReduction, ...] | str:
    """``unit`` is the whole device pass; ``reordered``: its sums may be (``may_reorder``)."""
    functions = [one.node for one in unit.own if one.kind in FUNCTIONS and not one.inside]
    named = [node for node in functions if node.get("name") == kernel and node.get("mangledName")]
    instances = [node for node in named if body_of(node) is not None and is_kernel(node)]
    if not instances:
        return "the compiler sees no such kernel that is compiled"
    if _TAKEN.search(text):
        return "the file defines a word of the new text itself"
    found = [dict(_Kernel.of(unit, text, one, reordered=reordered).reductions()) for one in instances]
    agreed = [
        told[0]
        for begin in sorted(found[0])
        if not isinstance((told := [one.get(begin) for one in found])[0], (str, type(None)))
        and all(one == told[0] for one in told)
    ]
    refused = [why for one in found for _, why in sorted(one.items()) if isinstance(why, str)]
    why = next(iter(refused), "no loop of it reduces a shared array by halves")
    return tuple(one for one in agreed if isinstance(one, TreeReduction)) or why


def without_loop(function: Node, begin: int) -> tuple[Node, Node | None]:
    """A function without the loop, or the block in its place, that begins there; and what was left out."""
    inner: list[Node] = []
    found: Node | None = None
    for node in children(function):
        if found is None and offset_of(node)[0] == begin and node.get("kind") in {"ForStmt", "CompoundStmt"}:
            found = node
            inner.append({"kind": "NullStmt"})
        elif found is None and node.get("kind") == "CompoundStmt":
            left, found = without_loop(node, begin)
            inner.append(left)
        else:
            inner.append(node)
    return {**function, "inner": inner}, found


def exchanges_in(node: Node) -> Iterator[str]:
    """Ids of the functions by which new text hands numbers from lane to lane."""
    for one, _ in below({"inner": [node]}):
        reference = one.get("referencedDecl", {})
        if one.get("kind") == "DeclRefExpr" and reference.get("name") == _EXCHANGE:
            yield str(reference.get("id"))


@frozen(eq=False)
class _Loop:
    """The parts of a loop that is one: nodes of the tree. ``waits_first``: the barrier stands in front."""

    whole: Node
    condition: Node
    step: Node  # the variable that is halved
    item: Node
    barrier: Node
    work: Node
    waits_first: bool


@attrs.define(eq=False)
class _Kernel:
    """One instance: its variables by id, and those that anything but a plain load is done to."""

    unit: Unit
    text: bytes
    function: Node
    reordered: bool
    declared: dict[str, Node]
    changed: frozenset[str]

    @classmethod
    def of(cls, unit: Unit, text: bytes, function: Node, *, reordered: bool) -> _Kernel:
        declared, changed = {}, set()
        for node, parents in below(function):
            if node.get("kind") in {"VarDecl", "ParmVarDecl"}:
                declared[node["id"]] = node
            elif node.get("kind") == "DeclRefExpr" and not is_loaded(parents):
                changed.add(str(node["referencedDecl"].get("id")))
        return cls(unit, text, function, reordered, declared, frozenset(changed))

    def reductions(self) -> Iterator[tuple[int, TreeReduction | str]]:
        """Each loop that could be one, by where it begins: what it is, or why it is none."""
        body = body_of(self.function)
        assert body is not None
        left: str | None = None
        if any(_INDICES.fullmatch(str(one.get("name"))) for one in self.declared.values()):
            left = "it has a variable that is named as an index"
        for statement in _in_turn(body):
            if statement.get("kind") == "ForStmt" and _halves(statement):
                yield offset_of(statement)[0], left or self._told(statement)
                continue
            for loop, parents in below(statement):
                if loop.get("kind") == "ForStmt" and _halves(loop):
                    hinted = any(one.get("kind") == "AttributedStmt" for one in (statement, *parents))
                    alone = "a hint stands in front of the loop" if hinted else None
                    yield offset_of(loop)[0], alone or "not every work-item is known to come to the loop"
            left = left or self._leaves(statement)

    def _told(self, loop: Node) -> TreeReduction | str:
        try:
            return self._reduction(self._parts(loop))
        except RefusedError as refused:
            return str(refused)

    # Whether all work-items come to the loop.

    def _leaves(self, statement: Node) -> str | None:
        """Why not every work-item may come to what stands behind a statement."""
        waiting = [statement]
        try:
            while waiting:
                node = waiting.pop()
                if node.get("kind") == "LambdaExpr" or node.get("kind") in FUNCTIONS:
                    continue  # it returns from there; what it does counts where it is called
                if node.get("kind") in _LEAVES:
                    return "a work-item may leave the kernel before the loop"
                waiting += children(node)
                self._require_return_of(node, set())
        except RefusedError as refused:
            return str(refused)
        return None

    def _require_return_of(self, node: Node, seen: set[str]) -> None:
        """Nobody ends the work-item whom a node calls, nor constructors and destructors of what it makes."""
        for identity in callees(node) if node.get("kind") in CALLS else ():
            self._require_return(identity, seen)
        if node.get("kind") in _MAKES:
            for member in self.unit.special_members(type_name(node)):
                self._require_return(member.identity, seen)

    def _require_return(self, identity: str, seen: set[str]) -> None:
        """A function does not end its work-item, nor does anybody whom it calls."""
        if identity in seen:
            return
        seen.add(identity)
        function, name = self.unit.definition(identity)
        if name == "__builtin_amdgcn_endpgm":
            raise RefusedError("a work-item may leave the kernel before the loop")
        for node, _ in below(function or {}):
            if node.get("kind") in {"GCCAsmStmt", "MSAsmStmt"}:
                raise RefusedError(f"assembly stands before the loop, in {name}")
            self._require_return_of(node, seen)

    # The loop.

    def _parts(self, loop: Node) -> _Loop:
        """``for (STEP; CONDITION; STEP /= 2) { if (ITEM < STEP) WORK; BARRIER }``, or the barrier first."""
        parts = children(loop)
        if parts[0].get("kind") != "DeclStmt" or len(children(parts[0])) != 1:
            raise RefusedError("its steps are not counted by a variable of the loop itself")
        (step,) = children(parts[0])
        condition, change, body = parts[-3:]
        self._require_counted(loop, step, condition, change)
        statements = children(body) if body.get("kind") == "CompoundStmt" else []
        waits = [self._is_barrier(one) for one in statements]
        if sorted(waits) != [False, True] or statements[waits.index(False)].get("kind") != "IfStmt":
            raise RefusedError("it does more than one operation and one barrier in a step")
        chosen = statements[waits.index(False)]
        if chosen.get("hasElse") or chosen.get("hasInit") or chosen.get("hasVar"):
            raise RefusedError("its condition is more than that a work-item lies below the step")
        told, under = children(chosen)
        work = children(under) if under.get("kind") == "CompoundStmt" else [under]
        if len(work) != 1:
            raise RefusedError("it does more than one operation in a step")
        item, barrier = self._below_step(told, step), statements[waits.index(True)]
        return _Loop(loop, condition, step, item, barrier, work[0], waits_first=waits[0])

    def _require_counted(self, loop: Node, step: Node, condition: Node, change: Node) -> None:
        """``s`` is the same number for all, and only the head of the loop changes it, from half to half."""
        identity, first = str(step.get("id")), value_of(step)
        plain = step.get("kind") == "VarDecl" and not {"storageClass", "constexpr"} & step.keys()
        if not plain or type_range(step)[1] not in WHOLE_NUMBERS or first is None:
            raise RefusedError("its steps are not counted by an integer of 32 or 64 bits")
        if _halved(change) != identity or not _positive(condition, identity):
            raise RefusedError("its steps don't go from half to half down to one")
        for node, parents in below(loop):
            own = node.get("referencedDecl", {}).get("id") == identity
            if own and not is_loaded(parents) and not any(one is change for one in parents):
                raise RefusedError("its steps are changed by more than halving")
        if not self._uniform(first, frozenset()):
            raise RefusedError("its first step may differ between work-items")

    def _uniform(self, node: Node, seen: frozenset[str]) -> bool:
        """Whether an expression is the same number for all work-items of a block."""
        begin, end = ends_of(node)
        if 0 <= begin < end and _UNIFORM.fullmatch(self.text[begin:end]):
            return True
        kind, parts = node.get("kind"), children(node)
        reference = node.get("referencedDecl", {})
        if kind == "IntegerLiteral" or reference.get("kind") == "EnumConstantDecl":
            return True
        if kind == "DeclRefExpr":
            identity = str(reference.get("id"))
            variable = self.declared.get(identity) or self.unit.dump.variable(identity)
            if variable is None or identity in self.changed | seen or is_special(variable):
                return False
            if variable.get("kind") == "ParmVarDecl":
                return not any(sign in type_name(variable) for sign in "*&")
            known = identity in self.declared or type_name(variable).startswith("const ")
            value = value_of(variable)
            return known and value is not None and self._uniform(value, seen | {identity})
        counts = kind == "BinaryOperator" and node.get("opcode") in _UNIFORM_SIGNS
        kept = kind in _KEPT or node.get("castKind") in {"LValueToRValue", "IntegralCast", "NoOp"}
        return (counts or kept) and bool(parts) and all(self._uniform(part, seen) for part in parts)

    def _below_step(self, condition: Node, step: Node) -> Node:
        """The expression of ``t`` in ``t < s``."""
        condition = bare(condition)
        sides = children(condition) if condition.get("kind") == "BinaryOperator" else []
        if condition.get("opcode") == ">":
            sides = sides[::-1]
        elif condition.get("opcode") != "<":
            sides = []
        if len(sides) != 2 or not _names(sides[1], step) or not self._is_item(sides[0]):
            raise RefusedError("its condition is more than that a work-item lies below the step")
        return sides[0]

    def _is_item(self, node: Node) -> bool:
        """Whether an expression is ``threadIdx.x``, or a variable that holds it and never changes."""
        found = bare(node)
        begin, end = ends_of(found)
        if 0 <= begin < end and _ITEM.fullmatch(self.text[begin:end]):
            return True
        identity = str(found.get("referencedDecl", {}).get("id"))
        variable = self.declared.get(identity, {})
        if (
            found.get("kind") != "DeclRefExpr"
            or variable.get("kind") != "VarDecl"
            or identity in self.changed
        ):
            return False
        value, whole = value_of(variable), type_range(variable)[1] in WHOLE_NUMBERS
        return whole and not is_special(variable) and value is not None and self._is_item(value)

    def _is_barrier(self, statement: Node) -> bool:
        if statement.get("kind") != "CallExpr" or len(children(statement)) != 1:
            return False
        named = bare(children(statement)[0]).get("referencedDecl", {})
        own = {one.node.get("id") for one in self.unit.own}
        return bool(named.get("name") == _BARRIER and named.get("id") not in own)

    # The operation, and what takes the loop's place.

    def _reduction(self, loop: _Loop) -> TreeReduction:
        begin, end = self._written(loop.whole)
        if re.search(rb"#|\\\r?\n", self.text[begin:end]):
            raise RefusedError("a directive stands in the loop")
        if re.search(rb"\brpl_\w", self.text[begin:end]):
            raise RefusedError("the loop uses a name of the new text")
        array, target, work = self._operation(loop)
        name, item, own, wait = (
            _on_a_line(self.text[slice(*place)])
            for place in (
                _ends_of_name(loop.step),
                self._written(loop.item),
                target,
                self._written(loop.barrier),
            )
        )
        now = name if "unsigned" in type_name(loop.step) else b"static_cast<unsigned long long>(%s)" % name
        head = (
            b"{ const unsigned rpl_item = %s, rpl_wave = __builtin_amdgcn_wavefrontsize(); "
            b"const unsigned rpl_last = blockDim.x < rpl_wave || blockDim.y * blockDim.z != 1 ? 0 "
            b": rpl_wave / 2; "
            b"bool rpl_rest = false; " % item
        )
        tail = (
            b" if (rpl_rest) { %sif (rpl_item < 2 * rpl_last) { auto rpl_own = %s; "
            b"for (unsigned rpl_by = rpl_wave / 2; rpl_by > 0; rpl_by /= 2) { "
            b"const auto rpl_other = __shfl_down(rpl_own, rpl_by); if (rpl_item < rpl_by) { %s; } } "
            b"if (rpl_item < rpl_last) %s = rpl_own; } %s; } }"
            % (wait + b"; " if loop.waits_first else b"", own, work, own, wait)
        )
        first, last = self._written(loop.condition)
        edits = (
            (begin, begin, head),
            (first, first, b"("),
            (last, last, b") && !(rpl_rest = %s == rpl_last)" % now),
            (end, end, tail),
        )
        return TreeReduction(begin, shown_line(self.text, begin), array, edits)

    def _operation(self, loop: _Loop) -> tuple[str, tuple[int, int], bytes]:
        """The array, where its element is stored to, and the operation on what lanes hold in its place."""
        whole = bare(loop.work)
        assigns = whole.get("kind") == "BinaryOperator" and whole.get("opcode") == "="
        if not assigns and whole.get("kind") != "CompoundAssignOperator":
            raise RefusedError("its operation is no assignment to an element")
        target, value = children(whole)
        while target.get("kind") == "ParenExpr":
            (target,) = children(target)
        array, number = self._array(target), type_name(target)
        if number not in _NUMBERS:
            raise RefusedError("its elements are no numbers of 32 or 64 bits, or volatile")
        if self._element(target, loop.step) != b"rpl_own":
            raise RefusedError("it stores to other elements than that of the work-item")
        places = [(*self._written(target), b"rpl_own"), *self._loads(value, array, loop.step)]
        if not any(new == b"rpl_other" for _, _, new in places):
            raise RefusedError("its operation does not take the partner's element")
        count = Operations(self.unit, self.declared).on_floats(value) + (not assigns)
        if count > 1:
            raise RefusedError("its operation is more than one of floating-point numbers")
        if number in _FLOATS and self.reordered:
            raise RefusedError("the compiler may take sums in another order (-ffast-math and its kin)")
        begin, end = self._written(whole)
        said = self.text[begin:end]
        for a, b, new in sorted(places, reverse=True):
            said = said[: a - begin] + new + said[b - begin :]
        return str(array.get("name")), self._written(target), _on_a_line(said)

    def _loads(self, value: Node, array: Node, step: Node) -> Iterator[tuple[int, int, bytes]]:
        """Each element that an operation loads, and what holds it: the two of the pair, no others."""
        for node, parents in below({"inner": [value]}):
            identity = node.get("referencedDecl", {}).get("id")
            inside = any(one.get("kind") == "ArraySubscriptExpr" for one in parents)
            if node.get("kind") == "ArraySubscriptExpr":
                new = self._element(node, step) if self._array(node)["id"] == array["id"] else None
                if new is None or inside or not is_loaded(parents, constant=True):
                    raise RefusedError("it reaches for more than two elements of one array")
                yield *self._written(node), new
            elif identity == array["id"] and not inside:
                raise RefusedError("it reaches for more than two elements of one array")
            elif identity == step["id"] and not inside:
                raise RefusedError("its operation depends on the step")

    def _array(self, subscript: Node) -> Node:
        """The shared array that is subscripted by its name."""
        place = children(subscript)[0] if subscript.get("kind") == "ArraySubscriptExpr" else {}
        name = children(place)[0] if place.get("castKind") == "ArrayToPointerDecay" else {}
        identity = str(name.get("referencedDecl", {}).get("id"))
        variable: Node | None = None
        if name.get("kind") == "DeclRefExpr":
            variable = self.declared.get(identity) or self.unit.dump.variable(identity)
        if variable is None or all(one.get("kind") != "CUDASharedAttr" for one in children(variable)):
            raise RefusedError("its operation is not on elements of a shared array")
        return variable

    def _element(self, subscript: Node, step: Node) -> bytes | None:
        """What holds an element: that of the work-item, or that of its partner."""
        index = bare(children(subscript)[1])
        if self._is_item(index):
            return b"rpl_own"
        adds = index.get("kind") == "BinaryOperator" and index.get("opcode") == "+"
        for left, right in (children(index), children(index)[::-1]) if adds else ():
            if self._is_item(left) and _names(right, step):
                return b"rpl_other"
        return None

    def _written(self, node: Node) -> tuple[int, int]:
        """Where it stands, if no macro but that of an index makes an end of it."""
        begin, end = ends_of(node)
        word = self.text[begin:end] if 0 <= begin < end else b""
        macro = any(offset_of(node, which)[2] for which in ("begin", "end"))
        if not word or (macro and not _ITEM.fullmatch(word)):
            raise RefusedError("a macro makes a part of the loop")
        return begin, end


def _in_turn(block: Node) -> Iterator[Node]:
    """Statements of a block, and of blocks that stand in it under no condition."""
    for statement in children(block):
        if statement.get("kind") == "CompoundStmt":
            yield from _in_turn(statement)
        else:
            yield statement


def _halves(loop: Node) -> bool:
    """Whether a loop looks as if it reduced by halves, so that a refusal is worth its words."""
    parts = children(loop)
    named = (one.get("referencedDecl", {}).get("name") for one, _ in below({"inner": parts[-1:]}))
    return len(parts) > 3 and _BARRIER in named and _halved(parts[-2]) is not None


def _halved(change: Node) -> str | None:
    """The variable that ``s /= 2``, ``s >>= 1`` or ``s = s / 2`` halves."""
    change = bare(change)
    if change.get("kind") not in {"BinaryOperator", "CompoundAssignOperator"}:
        return None
    name, value = (bare(one) for one in children(change))
    sign, identity = str(change.get("opcode")), name.get("referencedDecl", {}).get("id")
    if sign == "=" and value.get("kind") == "BinaryOperator":
        again, by = (bare(one) for one in children(value))
        if again.get("referencedDecl", {}).get("id") != identity:
            return None
        sign, value = f"{value.get('opcode')}=", by
    halves = value.get("kind") == "IntegerLiteral" and (sign, value.get("value")) in {
        ("/=", "2"),
        (">>=", "1"),
    }
    return str(identity) if halves and identity else None


def _positive(condition: Node, identity: str) -> bool:
    """``s > 0``, ``s != 0``, ``s >= 1``, ``0 < s``, ``s``."""
    condition = bare(condition)
    if condition.get("castKind") == "IntegralToBoolean":
        return bool(bare(children(condition)[0]).get("referencedDecl", {}).get("id") == identity)
    if condition.get("kind") != "BinaryOperator":
        return False
    left, right = (bare(one) for one in children(condition))
    sign = str(condition.get("opcode"))
    if right.get("referencedDecl", {}).get("id") == identity:
        left, right, sign = right, left, sign.translate(str.maketrans("<>", "><"))
    named = left.get("referencedDecl", {}).get("id") == identity and right.get("kind") == "IntegerLiteral"
    return bool(named and (sign, right.get("value")) in {(">", "0"), ("!=", "0"), (">=", "1")})


def _names(node: Node, variable: Node) -> bool:
    return bool(bare(node).get("referencedDecl", {}).get("id") == variable["id"])


def _ends_of_name(variable: Node) -> tuple[int, int]:
    place = variable.get("loc", {})
    if "expansionLoc" in place:
        raise RefusedError("a macro makes a part of the loop")
    return place.get("offset", -1), place.get("offset", -1) + place.get("tokLen", 0)


def _on_a_line(text: bytes) -> bytes:
    """Without comments, on one line."""
    return b" ".join(re.sub(rb"//[^\n]*|/\*.*?\*/", b" ", text, flags=re.DOTALL).split())
