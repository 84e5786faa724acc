"""The loops of a kernel in source order."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_llm_unroll.syntax.tree import line_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.syntax.kernels import KernelNode

#: Grammar node -> what people call it.
LOOP_KINDS = {
    "for_statement": "for",
    "for_range_loop": "range-for",
    "while_statement": "while",
    "do_statement": "do-while",
}


@frozen(eq=False)
class SourceLoop:
    """``id`` is unique in its file: kernel, line, and numbers where several share the name or the line."""

    id: str
    kernel: KernelNode
    node: Node

    @property
    def kind(self) -> str:
        return LOOP_KINDS[self.node.type]

    @property
    def line(self) -> int:
        return line_of(self.node)

    @property
    def body(self) -> Node:
        """The statement that repeats; of a loop with a syntax error, the loop itself."""
        return self.node.child_by_field_name("body") or self.node

    @property
    def inner(self) -> tuple[Node, ...]:
        """Loops inside this one."""
        return tuple(n for n in walk(self.node) if n.type in LOOP_KINDS and n.id != self.node.id)


def find_loops(kernel: KernelNode) -> tuple[SourceLoop, ...]:
    """All loops of the kernel's body, nested ones included."""
    found = []
    seen: Counter[int] = Counter()
    name = f"{kernel.name}.{kernel.ordinal + 1}" if kernel.ordinal else kernel.name
    for node in walk(kernel.body):
        # Tokens such as the keyword ``for`` have types of their own and never match.
        if node.type in LOOP_KINDS:
            line = line_of(node)
            seen[line] += 1
            suffix = f".{seen[line]}" if seen[line] > 1 else ""
            found.append(SourceLoop(f"{name}-L{line}{suffix}", kernel, node))
    return tuple(found)
