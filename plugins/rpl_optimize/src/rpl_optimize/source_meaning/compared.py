"""One pass over original and edit, compared: the function's declarations, and what it does with others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_optimize.interfaces.declared_change import LoopHints, ResizedArray
from rpl_optimize.source_meaning.accesses import moved_accesses
from rpl_optimize.source_meaning.declaration import Difference, differences, hints
from rpl_optimize.source_meaning.effects import Effects
from rpl_optimize.source_meaning.functions import canonical, digest, events_of
from rpl_optimize.source_meaning.reading import element_uses
from rpl_optimize.source_meaning.span import strangers, versions
from rpl_optimize.source_meaning.value_ranges import ValueRanges, below

if TYPE_CHECKING:
    from rpl_optimize.interfaces.declared_change import DeclaredChange
    from rpl_optimize.source_meaning.effects import Step
    from rpl_optimize.source_meaning.span import Span
    from rpl_optimize.source_meaning.syntax_dump import Node
    from rpl_optimize.source_meaning.unit import Unit


#: Nothing is known of the calls of a template that nobody instantiates.
NO_INSTANCE = "no instance of this template is compiled, so its calls are unknown"


@frozen(eq=False)
class Compared:
    """``before`` and ``after`` are the unit with either text; texts are those of the edited file."""

    span: Span
    before: Unit
    after: Unit
    text: bytes
    edited: bytes
    declared: tuple[DeclaredChange, ...]

    def names(self) -> tuple[str, ...]:
        """The linker's names of the function, one per instance of a template."""
        return tuple(sorted(str(node.get("mangledName", "")) for node in self._concrete(self._old())))

    def template(self) -> str | None:
        """The name of a template without any instance."""
        old = self._old()
        return str(old[0].get("name")) if old and not self._concrete(old) else None

    def differences(self) -> Iterator[Difference]:
        old, new = self._old(), self._new()
        alien = strangers(self.after, self.span.begin, self.span.new_end)
        if not new or alien:
            what = f"it also has a {alien[0].kind}" if alien else "it does not end where the function ended"
            yield Difference("declaration", f"the edit is not one complete function: {what}")
            return
        left, right = _by_key(self._concrete(old)), _by_key(self._concrete(new))
        if not left:
            yield Difference("judged", NO_INSTANCE)
        elif left.keys() != right.keys():
            yield Difference("declaration", "the function's name, type or template arguments changed")
        else:
            for key in left:
                yield from self._one(left[key], right[key])

    def _one(self, before: Node, after: Node) -> Iterator[Difference]:
        yield from differences(before, after, self.declared)
        for change in self.declared:
            if isinstance(change, ResizedArray):
                yield from self._unmoved(before, change)
        expected = sum(change.count for change in self.declared if isinstance(change, LoopHints))
        if self.declared and hints(after) - hints(before) != expected:
            found = hints(after) - hints(before)
            yield Difference("declared", f"the compiler sees {found} new hints, {expected} are declared")
        if not self.declared and not _is_kernel(before):
            yield Difference("declaration", "only a declared change may touch a function that is no kernel")
        old, new = Effects(self.before, self.text), Effects(self.after, self.edited)
        different = list(
            _cooperation(
                old.steps(tuple(events_of(before)), own_text=True),
                new.steps(tuple(events_of(after)), own_text=True),
            )
        )
        yield from different
        if not different and not self.declared:
            moved = moved_accesses((old, before), (new, after))
            yield from (Difference("cooperation", what) for what in moved)

    def _unmoved(self, function: Node, change: ResizedArray) -> Iterator[Difference]:
        """Whether anything depends on where the rows of a resized array lie."""
        ranges = ValueRanges(function, self.text, self.before.dump.variable, change.block)
        for node, _ in below(function):
            if node.get("kind") == "VarDecl" and node.get("name") == change.name:
                problem = element_uses(ranges, node)
                if problem is not None:
                    yield Difference("declared", problem)

    def _old(self) -> list[Node]:
        return [one.node for one in versions(self.before, self.span.begin, self.span.end)]

    def _new(self) -> list[Node]:
        return [one.node for one in versions(self.after, self.span.begin, self.span.new_end) if not one.macro]

    def _concrete(self, nodes: list[Node]) -> list[Node]:
        """Without the pattern of a template, whose names are not resolved yet."""
        return [node for node in nodes if not _is_pattern(node)]


def _cooperation(before: tuple[Step, ...], after: tuple[Step, ...]) -> Iterator[Difference]:
    old, new = [step.compared for step in before], [step.compared for step in after]
    if old == new:
        return
    at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))  # noqa: B905 - lengths may differ
    was = before[at].describe() if at < len(before) else "nothing"
    now = after[at].describe() if at < len(after) else "nothing"
    now = f"{now}, done otherwise" if now == was else now
    where = f"step {at + 1} of what it does with others"
    yield Difference("cooperation", f"{where} was {was}, is {now}")


def _is_pattern(node: Node) -> bool:
    """A template's own text has no linker's name."""
    return not node.get("mangledName")


def _is_kernel(node: Node) -> bool:
    return any(child.get("kind") == "CUDAGlobalAttr" for child in node.get("inner", ()))


def _by_key(nodes: list[Node]) -> dict[str, Node]:
    """By linker's name; type and template arguments are told apart by it."""
    return {str(node.get("mangledName")) or digest(canonical(node)): node for node in nodes}
