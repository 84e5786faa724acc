"""Guards on what work-items do together: barriers, fences, atomics and exchange may not become fewer.

A kernel may be restructured so that it needs fewer of them, but a missing barrier is a race that a test
rarely sees. So the optimizer asks for a kernel that keeps them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rpl_llm_unroll.guards import names
from rpl_llm_unroll.loops.reach import mentions_of
from rpl_llm_unroll.loops.source_loop import SourceLoop
from rpl_llm_unroll.syntax.tree import ancestors, text_of, walk
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.loops.reach import Mention
    from rpl_llm_unroll.syntax.kernels import KernelNode
    from rpl_llm_unroll.syntax.source_file import SourceFile

_CONDITIONAL = frozenset({"if_statement", "switch_statement", "conditional_expression", "catch_clause"})
_EXCHANGE = "exchange between lanes"
_MAX_DEPTH = 8


def cooperation_verdicts(file: SourceFile, before: KernelNode, after: KernelNode) -> tuple[GuardVerdict, ...]:
    """``file`` knows the macros and functions that both kernels call."""
    reach = _Reach(file)
    old, new = reach.operations(before), reach.operations(after)
    return (
        _not_fewer("synchronisation", old, new, "a call of {name} is missing ({old} before, {new} now)"),
        _not_fewer(
            "uniform-barriers",
            reach.barriers_for_all(before),
            reach.barriers_for_all(after),
            "{name} now depends on a condition ({old} calls did not before, {new} now)",
        ),
        _volatile(before, after),
    )


def _not_fewer(guard: str, old: Counter[str], new: Counter[str], refusal: str) -> GuardVerdict:
    for name in sorted(old):
        if new[name] < old[name]:
            reason = refusal.format(name=name, old=old[name], new=new[name])
            return GuardVerdict(guard, False, f"{reason}; keep it, since its loss may be a race")
    return GuardVerdict(guard, True, "no synchronising operation was lost")


def _volatile(before: KernelNode, after: KernelNode) -> GuardVerdict:
    old, new = (sum(text_of(n) == "volatile" for n in walk(k.body)) for k in (before, after))
    if new < old:
        return GuardVerdict("volatile-kept", False, "a volatile qualifier is missing")
    return GuardVerdict("volatile-kept", True, "no volatile qualifier was lost")


class _Reach:
    """Counts operations, those behind macros and functions of the file included."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._behind: dict[str, frozenset[str]] = {}

    def operations(self, kernel: KernelNode) -> Counter[str]:
        found: Counter[str] = Counter()
        for mention in _direct(kernel, self._file):
            found.update(self._of(mention))
        return found

    def barriers_for_all(self, kernel: KernelNode) -> Counter[str]:
        """Barriers in calls that stand under no condition; loops count as none."""
        found: Counter[str] = Counter()
        for call in walk(kernel.body, skip=("lambda_expression",)):
            if call.type not in {"call_expression", "expression_statement"} or _is_conditional(call, kernel):
                continue
            word = call.child_by_field_name("function") if call.type == "call_expression" else None
            if call.type == "expression_statement":  # a macro without parentheses
                inner = call.named_children[0] if len(call.named_children) == 1 else None
                word = inner if inner is not None and inner.type == "identifier" else None
            if word is not None:
                name, method = _called(word)
                found.update(n for n in self._named(name, method) if _is_barrier(n))
        return found

    def _of(self, mention: Mention) -> frozenset[str]:
        if not mention.called and not self._file.macros.of(mention.name):
            return frozenset()
        return self._named(mention.name, mention.method)

    def _named(self, name: str, method: bool) -> frozenset[str]:
        own = _group(name, method)
        return frozenset({own}) if own is not None else self._through(name, _MAX_DEPTH)

    def _through(self, name: str, depth: int) -> frozenset[str]:
        """Operations that the macro or function ``name`` may reach."""
        if name in self._behind or depth == 0:
            return self._behind.get(name, frozenset())
        self._behind[name] = frozenset()  # a recursive function adds nothing to itself
        found: set[str] = set()
        for macro in self._file.macros.of(name):
            for text in macro.words():
                found |= self._inner(text, depth, method=False)
        for function in self._file.functions.get(name, ()):
            for call in walk(function):
                if call.type == "call_expression" and (word := call.child_by_field_name("function")):
                    inner, method = _called(word)
                    found |= self._inner(inner, depth, method=method)
                elif call.type == "identifier" and self._file.macros.of(text_of(call)):
                    found |= self._inner(text_of(call), depth, method=False)
        self._behind[name] = frozenset(found)
        return self._behind[name]

    def _inner(self, name: str, depth: int, *, method: bool) -> frozenset[str]:
        own = _group(name, method)
        return frozenset({own}) if own is not None else self._through(name, depth - 1)


def _direct(kernel: KernelNode, file: SourceFile) -> list[Mention]:
    whole = SourceLoop("body", kernel, kernel.body)
    return [mention for mention in mentions_of(whole, file) if not mention.via]


def _group(name: str, method: bool) -> str | None:
    """What is counted together: all forms of one barrier, and all ways to exchange between lanes."""
    if method:
        if names.BARRIER_METHODS.fullmatch(name) or names.ATOMIC_METHODS.fullmatch(name):
            return f".{name}()"
        return _EXCHANGE if names.CROSS_LANE_METHODS.fullmatch(name) else None
    if name.startswith("__syncthreads"):
        return "__syncthreads"
    if any(pattern.fullmatch(name) for pattern in (names.BARRIERS, names.FENCES, names.ATOMICS)):
        return name
    return _EXCHANGE if names.CROSS_LANE.fullmatch(name) else None


def _is_barrier(group: str) -> bool:
    return group.startswith(".") or group == "__syncthreads" or names.BARRIERS.fullmatch(group) is not None


def _called(word: Node) -> tuple[str, bool]:
    """The name that a call's function expression ends in, and whether it is a method."""
    method = False
    node = word
    while node.type in {"field_expression", "qualified_identifier", "template_function", "template_method"}:
        method = method or node.type == "field_expression"
        inner = node.child_by_field_name("field") or node.child_by_field_name("name")
        if inner is None:
            break
        node = inner
    return text_of(node), method


def _is_conditional(node: Node, kernel: KernelNode) -> bool:
    for parent in ancestors(node):
        if parent.id == kernel.body.id:
            return False
        if parent.type in _CONDITIONAL:
            return True
        operator = parent.child_by_field_name("operator") if parent.type == "binary_expression" else None
        if operator is not None and text_of(operator) in {"&&", "||", "and", "or"}:
            return True
    return False
