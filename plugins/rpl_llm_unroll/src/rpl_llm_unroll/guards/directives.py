"""Guards on the preprocessor: pragmas that decided already, conditional code, positions that matter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rpl_llm_unroll.syntax.tree import line_of, text_of, walk
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.loops.view import LoopView

_POSITION_MACROS = frozenset({"__LINE__", "__COUNTER__"})
_PRAGMA = re.compile(r"\s*#\s*pragma\b")


def own_pragma(view: LoopView) -> GuardVerdict:
    """A pragma or attribute in front of the loop is its author's decision."""
    node = view.loop.node
    if node.parent is not None and node.parent.type == "attributed_statement":
        return _refused("the loop has an attribute", node.parent)
    before = _statement_before(node)
    if before is not None and _is_pragma(before):
        return _refused(f"the loop already has {text_of(before).strip()!r}", before)
    return GuardVerdict("own-pragma", True, "no pragma or attribute stands in front")


def conditional_code(view: LoopView) -> GuardVerdict:
    """With ``#if`` inside, the build decides which statements the loop has."""
    for node in walk(view.loop.node):
        if node.type.startswith("preproc_") and node.type != "preproc_arg" and not _is_pragma(node):
            return GuardVerdict(
                "directives", False, "a preprocessor directive inside the loop", line_of(node)
            )
    return GuardVerdict("directives", True, "no preprocessor directive inside")


def position_macros(view: LoopView) -> GuardVerdict:
    """An edit moves lines, and copies repeat counters."""
    for node in walk(view.kernel.outer):
        if node.type in {"identifier", "type_identifier"}:
            name = text_of(node)
            words = {word for macro in view.file.macros.of(name) for word in macro.words()}
            if name in _POSITION_MACROS or words & _POSITION_MACROS:
                reason = f"{name} depends on its place in the file"
                return GuardVerdict("position", False, reason, line_of(node))
    return GuardVerdict("position", True, "nothing depends on line numbers")


def line_continuation(view: LoopView) -> GuardVerdict:
    """A line may not be inserted behind a backslash that joins two."""
    begin = view.loop.node.start_byte
    start = view.file.text.rfind(b"\n", 0, begin) + 1
    joined = view.file.text[:start].rstrip(b"\r\n").endswith(b"\\") and start > 0
    if joined:
        return GuardVerdict("continuation", False, "the line before ends in a backslash", view.loop.line)
    return GuardVerdict("continuation", True, "the line stands on its own")


def _statement_before(node: Node) -> Node | None:
    """What precedes the loop, comments left out; at the start of an ``#if`` branch, what precedes that."""
    before = node.prev_named_sibling
    while before is not None and before.type == "comment":
        before = before.prev_named_sibling
    parent = node.parent
    if parent is None or not parent.type.startswith("preproc_"):
        return before
    conditions = [parent.child_by_field_name(field) for field in ("condition", "name")]
    return _statement_before(parent) if before is None or before in conditions else before


def _is_pragma(node: Node) -> bool:
    text = text_of(node)
    if node.type == "preproc_call":
        return _PRAGMA.match(text) is not None
    return node.type == "expression_statement" and text.lstrip().startswith("_Pragma")


def _refused(reason: str, node: Node) -> GuardVerdict:
    return GuardVerdict("own-pragma", False, reason, line_of(node))
