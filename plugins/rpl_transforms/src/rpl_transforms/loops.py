"""The loops of a kernel, of the functions of the same file that it reaches, and which of them are offered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import GuardVerdict
from rpl_transforms.source_file import KernelNode, SourceFile, function_name, words_in
from rpl_transforms.syntax import ancestors, line_of, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node


# Loops in source order.

#: Grammar node -> what people call it.
LOOP_KINDS = {
    "for_statement": "for",
    "for_range_loop": "range-for",
    "while_statement": "while",
    "do_statement": "do-while",
}
_KEYWORDS = (b"for", b"while", b"do")
_COUNTS = re.compile(
    rb"for\s*\([^=;]*=\s*(?P<first>\d+)\s*;\s*\w+\s*<(?P<equal>=?)\s*(?P<bound>\d+)\s*;"
    rb"\s*(?:\+\+\s*\w+|\w+\s*\+\+)\s*\)"
)


@frozen(eq=False)
class SourceLoop:
    """``id`` is unique in its file: function, line, and numbers where several share the name or the line.

    ``kernel`` is the kernel that runs it: its own, or the first one of the file that reaches its function.
    """

    id: str
    kernel: KernelNode
    function: Node
    node: Node

    @property
    def kind(self) -> str:
        return LOOP_KINDS[self.node.type]

    @property
    def line(self) -> int:
        return line_of(self.node)

    @property
    def depth(self) -> int:
        return sum(parent.type in LOOP_KINDS for parent in ancestors(self.node))

    @property
    def inner(self) -> Node | None:
        """The first loop inside this one."""
        return next((n for n in walk(self.node) if n.type in LOOP_KINDS and n.id != self.node.id), None)

    @property
    def runs(self) -> int | None:
        """How often it runs, where its head says so in digits."""
        match = _COUNTS.match(self.node.text or b"")
        if match is None:
            return None
        return max(0, int(match["bound"]) + len(match["equal"]) - int(match["first"]))


def find_loops(file: SourceFile, kernels: Iterable[KernelNode]) -> tuple[SourceLoop, ...]:
    """Loops of ``kernels`` and of what they reach; each function is listed with the first that does."""
    found: dict[int, SourceLoop] = {}
    taken: set[int] = set()
    for kernel in kernels:
        name = f"{kernel.name}.{kernel.ordinal + 1}" if kernel.ordinal else kernel.name
        named = [(name, kernel.function)]
        named += [(function_name(one), one) for one in file.reached_by(kernel.function)]
        for name, function in named:
            if function.id not in taken:
                taken.add(function.id)
                # A class inside a function has functions, too.
                found = {loop.node.id: loop for loop in _loops_of_function(name, kernel, function)} | found
    return tuple(_numbered(sorted(found.values(), key=lambda loop: loop.node.start_byte)))


def _loops_of_function(name: str, kernel: KernelNode, function: Node) -> list[SourceLoop]:
    """Where the text stands for a loop: the parser makes loops of broken text, too."""
    nodes = (node for node in walk(function) if node.type in LOOP_KINDS)
    kept = (node for node in nodes if (node.text or b"").startswith(_KEYWORDS))
    return [SourceLoop(f"{name}-L{line_of(node)}", kernel, function, node) for node in kept]


def _numbered(loops: list[SourceLoop]) -> list[SourceLoop]:
    seen: Counter[str] = Counter()
    numbered = []
    for loop in loops:
        seen[loop.id] += 1
        suffix = f".{seen[loop.id]}" if seen[loop.id] > 1 else ""
        numbered.append(SourceLoop(loop.id + suffix, loop.kernel, loop.function, loop.node))
    return numbered


# Which loops are not offered although unrolling them is right: a policy, by the names that a loop reaches.
#
# What a hint means is the compiler's guarantee, whatever the loop holds. Loops with barriers, atomics and
# dynamic LDS are left alone because their timing is what the author balanced by hand, and because a
# candidate costs trials. So a name that hides what it does costs a trial and no result; names are enough.
# Sources: HIP's "C++ language extensions", clang's BuiltinsAMDGPU and "Language Extensions" (atomic
# builtins).

#: Guard -> functions and types, and methods that count whatever their object is.
_NAMES = {
    "barrier": (
        re.compile(
            r"__syncthreads\w*|__syncwarp|__barrier\w*|(?:__)?(?:work_group_)?barrier|__named_sync|__bar_\w+"
            r"|__builtin_amdgcn_(?:s_|wave_|sched_|sched_group_)?barrier\w*|__builtin_amdgcn_s_wait\w*"
        ),
        re.compile(r"sync|arrive\w*|wait\w*|barrier_(?:arrive|wait)"),
    ),
    "fence": (
        re.compile(
            r"__threadfence\w*|\w*_fence|__memory_barrier|__sync_synchronize"
            r"|__builtin_amdgcn_(?:buffer_wbinvl1\w*|s_dcache_\w+)"
        ),
        None,
    ),
    "atomic": (
        re.compile(
            r"(?:unsafe|safe)?[aA]tomic[A-Z]\w*|atomic(?:_\w+)?|__(?:hip|c11|opencl|scoped)_atomic_\w+"
            r"|__atomic_\w+|__sync_(?!threads|warp)\w+|__builtin_amdgcn_\w*atomic\w*"
        ),
        re.compile(r"fetch_\w+|compare_exchange\w*|test_and_set"),
    ),
    "dynamic-lds": (re.compile(r"HIP_DYNAMIC_SHARED\w*|__amdgcn_get_dynamicgroupbaseptr"), None),
}
_WHY = {
    "barrier": "waits at a barrier",
    "fence": "orders memory with a fence",
    "atomic": "is an atomic operation",
    "dynamic-lds": "is dynamic shared memory",
}
_PRAGMA_BEFORE = re.compile(
    rb"(?:_Pragma\s*\([^\n]*\)|\]\]|^[ \t]*#[ \t]*pragma[^\n]*\n)(?:\s|//[^\n]*\n|/\*.*?\*/)*\Z",
    re.DOTALL | re.MULTILINE,
)
_ACCEPTED_HINT = re.compile(rb'_Pragma\("unroll [0-9]+"\) \Z')
_SMALLEST_FACTOR = 2
#: Pragma and comments in front of a loop are not longer.
_LOOK_BACK = 1000


class Policy:
    """Looks at one file once: which names reach what, through its functions and macros."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._reaching = {guard: _reaching(file, pattern) for guard, (pattern, _) in _NAMES.items()}
        self._reaching["dynamic-lds"] |= _reaching(file, None, file.dynamic_lds)
        self._pointers: dict[int, frozenset[str]] = {}

    def verdicts(self, loop: SourceLoop) -> tuple[GuardVerdict, ...]:
        return (_own_pragma(self._file, loop), _innermost(loop), _trip_count(loop), *self._reached(loop))

    def _reached(self, loop: SourceLoop) -> Iterator[GuardVerdict]:
        words = words_in(loop.node)
        for guard, (pattern, methods) in _NAMES.items():
            found = words & self._reaching[guard] or {w for w in words if pattern.fullmatch(w)}
            if guard == "dynamic-lds" and not found:
                found = words & self._points_into(loop)
            if not found and methods is not None:
                found = {name for name in _methods(loop.node) if methods.fullmatch(name)}
            yield _verdict(guard, min(found, default=None), loop)

    def _points_into(self, loop: SourceLoop) -> frozenset[str]:
        """Pointers of the function that were given an address in dynamic shared memory."""
        if loop.function.id not in self._pointers:
            tainted = set(self._reaching["dynamic-lds"])
            flows = list(_addresses(loop.function))
            while more := {name for name, words in flows if words & tainted} - tainted:
                tainted |= more
            self._pointers[loop.function.id] = frozenset(tainted)
        return self._pointers[loop.function.id]


def _reaching(
    file: SourceFile, pattern: re.Pattern[str] | None, known: frozenset[str] = frozenset()
) -> set[str]:
    """Functions and macros of the file that reach such a name, by going back from it. Linear in the file."""
    names = {name for name in file.mentioned_by if pattern is not None and pattern.fullmatch(name)} | known
    waiting = list(names)
    while waiting:
        for name in file.mentioned_by.get(waiting.pop(), ()):
            if name not in names:
                names.add(name)
                waiting.append(name)
    return names


def _own_pragma(file: SourceFile, loop: SourceLoop) -> GuardVerdict:
    begin = loop.node.start_byte
    before = file.text[max(0, begin - _LOOK_BACK) : begin]
    if accepted_hint(before) is None and _PRAGMA_BEFORE.search(before):
        reason = "a pragma or attribute stands before the loop: its author decided"
        return GuardVerdict("own-pragma", False, reason, loop.line)
    return GuardVerdict("own-pragma", True, "no pragma or attribute of its author stands before the loop")


def accepted_hint(before: bytes) -> bytes | None:
    """The hint at the end of ``before`` as ``unroll`` writes it: on the line of its loop."""
    match = _ACCEPTED_HINT.search(before)
    return match[0] if match else None


def _innermost(loop: SourceLoop) -> GuardVerdict:
    """Copies of an inner loop cost registers and code without running in parallel."""
    if loop.inner is not None:
        reason = "policy: it contains another loop, which is the one to unroll"
        return GuardVerdict("innermost", False, reason, line_of(loop.inner))
    return GuardVerdict("innermost", True, "contains no other loop")


def _trip_count(loop: SourceLoop) -> GuardVerdict:
    if loop.runs is not None and loop.runs < _SMALLEST_FACTOR:
        return GuardVerdict("trip-count", False, f"its head says that it runs {loop.runs} times", loop.line)
    return GuardVerdict("trip-count", True, "its head does not say that it runs less than twice")


def _verdict(guard: str, name: str | None, loop: SourceLoop) -> GuardVerdict:
    if name is None:
        return GuardVerdict(guard, True, f"nothing is reached that {_WHY[guard]}")
    pattern = _NAMES[guard][0]
    what = _WHY[guard] if pattern.fullmatch(name) else f"reaches what {_WHY[guard]}"
    return GuardVerdict(guard, False, f"policy: {name} {what}", _line_of_name(loop.node, name))


def _line_of_name(node: Node, name: str) -> int:
    return next((line_of(n) for n in walk(node) if not n.children and text_of(n) == name), line_of(node))


def _methods(node: Node) -> set[str]:
    called = (n.child_by_field_name("function") for n in walk(node) if n.type == "call_expression")
    fields = (f.child_by_field_name("field") for f in called if f is not None)
    return {text_of(field) for field in fields if field is not None}


def _addresses(function: Node) -> Iterator[tuple[str, frozenset[str]]]:
    """Names of pointers and references with the names that they were given."""
    for node in walk(function):
        if node.type == "init_declarator":
            target, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
            kind = node.parent.child_by_field_name("type") if node.parent is not None else None
            known = target is not None and target.type in {"pointer_declarator", "reference_declarator"}
            if not known and (kind is None or kind.type == "primitive_type"):
                continue
        elif node.type == "assignment_expression":
            target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
            if target is not None and target.type not in {"identifier", "field_expression"}:
                continue
        else:
            continue
        # An element that is copied is a value.
        if target is not None and value is not None and value.type != "subscript_expression":
            yield from ((name, words_in(value)) for name in words_in(target))
