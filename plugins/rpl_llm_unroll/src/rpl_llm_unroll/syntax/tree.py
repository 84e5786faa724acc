"""Parse HIP/CUDA source with tree-sitter's CUDA grammar, and walk the tree without recursion."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import tree_sitter_cuda
from tree_sitter import Language, Parser

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tree_sitter import Node


@lru_cache(maxsize=1)
def _language() -> Language:
    return Language(tree_sitter_cuda.language())


def parse(text: bytes) -> Node:
    """The root node. A source with syntax errors gives a tree with error nodes, never an exception."""
    return Parser(_language()).parse(text).root_node


def walk(node: Node, *, skip: Collection[str] = ()) -> Iterator[Node]:
    """``node`` and everything below it in source order; nodes of a type in ``skip`` are left out whole."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current.type in skip and current.id != node.id:
            continue
        yield current
        waiting.extend(reversed(current.children))


def text_of(node: Node) -> str:
    """The source text of a node; bytes that are not UTF-8 are replaced."""
    return (node.text or b"").decode("utf-8", "replace")


def line_of(node: Node) -> int:
    """The line a node begins on, counted from 1."""
    return node.start_point[0] + 1


def ancestors(node: Node) -> Iterator[Node]:
    """Parents from the nearest to the root."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def tokens(node: Node) -> tuple[str, ...]:
    """The leaves as text, comments left out: equal for two sources that differ in layout only."""
    return tuple(text_of(n) for n in walk(node, skip=("comment",)) if not n.children and n.type != "comment")


def first_error(node: Node) -> Node | None:
    """The first syntax error at or below ``node``, or ``None``."""
    if not node.has_error:
        return None
    return next((n for n in walk(node) if n.is_error or n.is_missing), node)
