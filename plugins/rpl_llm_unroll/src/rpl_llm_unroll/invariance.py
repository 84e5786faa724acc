"""Whether an edited source still declares the same kernels and changes the body of one of them only.

Works on parse trees of both versions, so layout and comments inside the head don't matter and text in
strings or comments can't deceive it. Used on unrolled loops and on replies of language models alike.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rpl_llm_unroll.syntax.kernels import find_kernels
from rpl_llm_unroll.syntax.tree import first_error, line_of, parse, text_of, tokens, walk
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.syntax.kernels import KernelNode
    from rpl_llm_unroll.syntax.source_file import SourceFile

#: Directives that may be added to a kernel's body.
_UNROLL_WORDS = ("#pragma unroll", "#pragma nounroll", "#pragma clang loop")
#: Constructs that reach beyond the body or hide what it does; new ones are refused.
_CONSTRUCTS = {
    "gnu_asm_expression": "inline assembly",
    "attribute_specifier": "an attribute",
    "attribute_declaration": "an attribute",
    "ms_declspec_modifier": "a declspec",
}


def check_invariance(before: SourceFile, after: bytes, kernel: KernelNode) -> tuple[GuardVerdict, ...]:
    """Verdicts on ``after``, the whole edited file; ``kernel`` is the one of ``before`` that may change."""
    # Macros outside the kernel are those of before, or ``outside`` refuses.
    kernels = find_kernels(parse(after), before.macros)
    target = next((k for k in kernels if (k.name, k.ordinal) == (kernel.name, kernel.ordinal)), None)
    if target is None:
        names = ", ".join(k.name for k in kernels) or "none"
        reason = f"kernel {kernel.name} is gone; kernels now: {names}"
        return (GuardVerdict("kernel-name", False, reason, kernel.line),)
    return (
        GuardVerdict("kernel-name", True, f"kernel {kernel.name} is still there"),
        _parses(kernel, target),
        _template(kernel, target),
        _attributes(kernel, target),
        _parameters(kernel, target),
        _outside(before.text, after, kernel, target),
        _constructs(kernel, target),
    )


def _parses(kernel: KernelNode, target: KernelNode) -> GuardVerdict:
    error = first_error(target.outer)
    if error is not None and first_error(kernel.outer) is None:
        return GuardVerdict("kernel-parses", False, "the edited kernel does not parse", line_of(error))
    return GuardVerdict("kernel-parses", True, "the edit adds no syntax error")


def _template(kernel: KernelNode, target: KernelNode) -> GuardVerdict:
    old, new = (_wrapper_tokens(k) for k in (kernel, target))
    return _same("kernel-template", old, new, target, "template parameters and linkage")


def _attributes(kernel: KernelNode, target: KernelNode) -> GuardVerdict:
    # Everything of the head but the parameters: attributes, launch bounds, return type, name.
    old, new = (_head_tokens(k) for k in (kernel, target))
    return _same("kernel-attributes", old, new, target, "attributes, launch bounds and return type")


def _parameters(kernel: KernelNode, target: KernelNode) -> GuardVerdict:
    old, new = (tokens(k.parameters) if k.parameters is not None else () for k in (kernel, target))
    return _same("kernel-parameters", old, new, target, "parameters")


def _outside(before: bytes, edited: bytes, kernel: KernelNode, target: KernelNode) -> GuardVerdict:
    head = before[: kernel.outer.start_byte], edited[: target.outer.start_byte]
    tail = before[kernel.outer.end_byte :], edited[target.outer.end_byte :]
    if head[0] != head[1]:
        return GuardVerdict("outside", False, "the source before the kernel changed", _first_change(*head))
    if tail[0] != tail[1]:
        line = target.outer.end_point[0] + _first_change(*tail)
        return GuardVerdict("outside", False, "the source behind the kernel changed", line)
    return GuardVerdict("outside", True, "every byte outside the kernel is as before")


def _constructs(kernel: KernelNode, target: KernelNode) -> GuardVerdict:
    known = Counter(text for text, _ in _suspicious(kernel.body))
    for text, node in _suspicious(target.body):
        if known[text]:
            known[text] -= 1
            continue
        what = _CONSTRUCTS.get(node.type, "a preprocessor directive")
        return GuardVerdict("constructs", False, f"{what} was added: {text.strip()[:80]!r}", line_of(node))
    return GuardVerdict("constructs", True, "no assembly, attribute or directive was added")


def _suspicious(body: Node) -> list[tuple[str, Node]]:
    found = []
    for node in walk(body):
        text = text_of(node)
        if node.type in _CONSTRUCTS:
            found.append((text, node))
        elif node.type.startswith("preproc_") and node.type not in {"preproc_arg", "preproc_directive"}:
            if not " ".join(text.split()).startswith(_UNROLL_WORDS):
                found.append((_directive(node), node))
        elif node.type == "identifier" and text == "_Pragma":
            found.append((text, node))
    return found


def _directive(node: Node) -> str:
    """The directive alone: a conditional's node also spans the code that depends on it."""
    for field in ("condition", "name"):
        part = node.child_by_field_name(field)
        if part is not None and "if" in node.type:
            return f"{node.type} {text_of(part)}"
    return node.type if node.type == "preproc_else" else text_of(node)


def _wrapper_tokens(kernel: KernelNode) -> tuple[str, ...]:
    start = kernel.function.start_byte
    nodes = [n for n in walk(kernel.outer, skip=("comment",)) if not n.children and n.end_byte <= start]
    return tuple(text_of(n) for n in nodes)


def _head_tokens(kernel: KernelNode) -> tuple[str, ...]:
    end, parameters = kernel.body.start_byte, kernel.parameters
    skipped = range(parameters.start_byte, parameters.end_byte) if parameters is not None else range(0)
    nodes = walk(kernel.function, skip=("comment", "compound_statement"))
    leaves = (n for n in nodes if not n.children and n.start_byte < end and n.start_byte not in skipped)
    return tuple(text_of(n) for n in leaves)


def _same(
    guard: str, old: tuple[str, ...], new: tuple[str, ...], target: KernelNode, what: str
) -> GuardVerdict:
    if old == new:
        return GuardVerdict(guard, True, f"{what} are as before")
    at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))  # noqa: B905 - lengths may differ
    left, right = " ".join(old[at : at + 6]) or "nothing", " ".join(new[at : at + 6]) or "nothing"
    return GuardVerdict(guard, False, f"{what} changed: {left!r} became {right!r}", target.line)


def _first_change(old: bytes, new: bytes) -> int:
    same = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))  # noqa: B905 - lengths may differ
    return new.count(b"\n", 0, same) + 1
