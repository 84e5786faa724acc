"""Guards on control flow: ways out of the loop, inline assembly, calls that nobody here can see into."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rpl_llm_unroll.guards import names
from rpl_llm_unroll.guards.pure_functions import only_computes
from rpl_llm_unroll.loops.source_loop import LOOP_KINDS
from rpl_llm_unroll.syntax.tree import ancestors, line_of, text_of, walk
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.loops.reach import Mention
    from rpl_llm_unroll.loops.view import LoopView

_JUMPS = {
    "return_statement": "return",
    "goto_statement": "goto",
    "labeled_statement": "a label",
    "co_return_statement": "co_return",
    "throw_statement": "throw",
}
#: Words that a parenthesis may follow in a macro's text without being a call.
_KEYWORDS = frozenset(
    {"if", "for", "while", "switch", "return", "sizeof", "alignof", "decltype", "noexcept", "asm", "__asm__"}
)
#: Number types of HIP and the standard library: no constructor of theirs does anything.
_PLAIN_TYPES = re.compile(
    r"u?(?:char|short|int|long|longlong|ll)[1-4]?|(?:float|double|half|bfloat16)_?[1-4]?"
    r"|(?:__)?(?:hip_|nv_)?(?:half|bfloat16|bfloat|fp8\w*)2?|_Float16|u?int(?:_fast|_least)?\d+_t|s?size_t"
    r"|u?intptr_t|ptrdiff_t|dim3|hip\w*Complex"
)
_MACRO_EXITS = frozenset({"break", "continue", "return", "goto", "throw"})
#: Refused by guards of their own, which give the better reason.
_JUDGED = (names.BARRIERS, names.FENCES, names.ATOMICS, names.CROSS_LANE, names.EXITS, names.DYNAMIC_LDS)
_JUDGED_METHODS = (names.BARRIER_METHODS, names.ATOMIC_METHODS, names.CROSS_LANE_METHODS)


def early_exit(view: LoopView) -> GuardVerdict:
    """A loop that may end before its bound has no trip count to divide."""
    for node in walk(view.loop.body, skip=("lambda_expression",)):
        word = _JUMPS.get(node.type)
        if node.type == "break_statement" and _breaks(node, view.loop.node):
            word = "break"
        if word is not None:
            return GuardVerdict("early-exit", False, f"{word} may leave the loop early", line_of(node))
    for mention in view.mentions:
        in_macro = bool(mention.via) and mention.via[-1] not in view.file.functions
        if names.EXITS.fullmatch(mention.name) or (in_macro and mention.name in _MACRO_EXITS):
            reason = f"{mention.describe()} may leave the loop early"
            return GuardVerdict("early-exit", False, reason, mention.line)
    return GuardVerdict("early-exit", True, "the loop ends at its bound only")


def inline_assembly(view: LoopView) -> GuardVerdict:
    """Nobody here knows what assembly does, and its labels may not be repeated."""
    for node in walk(view.loop.node):
        if node.type == "gnu_asm_expression":
            return GuardVerdict("inline-asm", False, "inline assembly", line_of(node))
    for mention in view.mentions:
        if mention.name in {"asm", "__asm__", "__asm"}:
            return GuardVerdict("inline-asm", False, f"{mention.describe()}: inline assembly", mention.line)
        for function in view.file.functions.get(mention.name, ()) if mention.called else ():
            if any(n.type == "gnu_asm_expression" for n in walk(function)):
                return GuardVerdict(
                    "inline-asm", False, f"{mention.describe()} has inline assembly", mention.line
                )
    return GuardVerdict("inline-asm", True, "no inline assembly is reached")


def unseen_call(view: LoopView) -> GuardVerdict:
    """A function or macro of another file may hide a barrier or an atomic operation."""
    lambdas = {d.name for d in view.declared if d.value is not None and d.value.type == "lambda_expression"}
    types, variables = view.file.types, {d.name for d in view.declared}
    for mention in view.mentions:
        if not (mention.called or mention.is_type) or _inside_macro(mention, view):
            continue
        # `Type name(value);` may parse as a function's declaration, which makes the value a type.
        if mention.is_type and (mention.name in variables or _PLAIN_TYPES.fullmatch(mention.name)):
            continue
        if mention.name in view.file.functions or view.file.macros.of(mention.name):
            continue
        if mention.name in lambdas | types | _KEYWORDS or only_computes(mention.name) or _judged(mention):
            continue
        reason = f"{mention.describe()} is not defined in this file"
        return GuardVerdict("unseen-call", False, reason, mention.line)
    bare = _bare_word(view)
    if bare is not None:
        reason = f"{text_of(bare)} stands alone as a statement: a macro of another file"
        return GuardVerdict("unseen-call", False, reason, line_of(bare))
    return GuardVerdict("unseen-call", True, "every function that the loop calls is known")


def _inside_macro(mention: Mention, view: LoopView) -> bool:
    # Words of a macro are no certain calls; only those followed by "(" in its text could be.
    if not mention.via or not (definitions := view.file.macros.of(mention.via[-1])):
        return False
    return not any(f"{mention.name}(" in macro.replacement.replace(" ", "") for macro in definitions)


def _judged(mention: Mention) -> bool:
    patterns = _JUDGED_METHODS if mention.method else _JUDGED
    return any(pattern.fullmatch(mention.name) for pattern in patterns)


def _bare_word(view: LoopView) -> Node | None:
    macros = view.file.macros
    for node in walk(view.loop.body):
        if node.type == "expression_statement" and len(node.named_children) == 1:
            word = node.named_children[0]
            if word.type == "identifier" and not macros.of(text_of(word)):
                return word
    return None


def _breaks(node: Node, loop: Node) -> bool:
    for parent in ancestors(node):
        if parent.id == loop.id:
            return True
        if parent.type in LOOP_KINDS or parent.type == "switch_statement":
            return False
    return False
