"""The loops of a kernel, and of the functions of the same file that it reaches, in source order."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_llm_unroll.syntax.kernels import function_name
from rpl_llm_unroll.syntax.tree import ancestors, line_of, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

    from rpl_llm_unroll.syntax.kernels import KernelNode
    from rpl_llm_unroll.syntax.source_file import SourceFile

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
                found = {loop.node.id: loop for loop in _loops(name, kernel, function)} | found
    return tuple(_numbered(sorted(found.values(), key=lambda loop: loop.node.start_byte)))


def _loops(name: str, kernel: KernelNode, function: Node) -> list[SourceLoop]:
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
