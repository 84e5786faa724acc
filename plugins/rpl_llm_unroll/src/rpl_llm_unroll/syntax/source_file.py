"""A parsed source file with what several guards ask of it, computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_llm_unroll.syntax.kernels import KernelNode, find_kernels, function_name
from rpl_llm_unroll.syntax.macros import Macros, find_macros
from rpl_llm_unroll.syntax.tree import parse, walk

if TYPE_CHECKING:
    from tree_sitter import Node


@attrs.frozen(eq=False)
class SourceFile:
    """``functions`` maps a name to all its definitions in the file, overloads and methods included."""

    text: bytes
    root: Node
    macros: Macros
    kernels: tuple[KernelNode, ...]
    functions: dict[str, tuple[Node, ...]]


def read_source_file(text: bytes) -> SourceFile:
    """Parse ``text`` and index it. Never fails: errors stay in the tree."""
    root = parse(text)
    macros = find_macros(root)
    functions: dict[str, list[Node]] = {}
    for node in walk(root):
        if node.type == "function_definition":
            functions.setdefault(function_name(node), []).append(node)
    indexed = {name: tuple(nodes) for name, nodes in functions.items()}
    return SourceFile(text, root, macros, find_kernels(root, macros), indexed)
