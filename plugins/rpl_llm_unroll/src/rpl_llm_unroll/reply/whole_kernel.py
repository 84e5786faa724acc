"""Whether a block holds the one kernel and nothing else, by parse tree and by tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_llm_unroll.reply.model import Problem
from rpl_llm_unroll.reply.tokens import split_tokens
from rpl_llm_unroll.syntax.declarations import declared_names
from rpl_llm_unroll.syntax.kernels import find_kernels, function_name
from rpl_llm_unroll.syntax.tree import first_error, line_of, parse, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.reply.model import Target
    from rpl_llm_unroll.reply.tokens import Token
    from rpl_llm_unroll.syntax.kernels import KernelNode


def kernel_in(block: str, target: Target) -> KernelNode | Problem:
    """The kernel of ``block``; its name is the target's and nothing but comments stands beside it."""
    root = parse(block.encode())
    kernels = find_kernels(root, target.file.macros)
    name = target.kernel.name
    if not kernels:
        return Problem(f"the block does not define the kernel {name}, or it does not parse")
    if len(kernels) > 1:
        shown = ", ".join(kernel.name[:60] for kernel in kernels[:4])
        return Problem(f"the block defines {len(kernels)} kernels ({shown}); send {name} alone")
    if kernels[0].name != name:
        return Problem(f"the block defines the kernel {kernels[0].name[:60]!r}, not {name!r}")
    for node in root.children:
        if node.type != "comment" and node.id != kernels[0].outer.id:
            return Problem(f"line {line_of(node)} of the block has {_what(node)} outside of the kernel")
    return kernels[0]


def syntax_problem(kernel: KernelNode, target: Target) -> Problem | None:
    """The first syntax error, unless the original does not parse either."""
    error = first_error(kernel.outer)
    if error is None or first_error(target.kernel.outer) is not None:
        return None
    return Problem(f"the kernel does not parse at line {line_of(error)} of the block")


def whole_kernel_problem(new: tuple[Token, ...], target: Target) -> Problem | None:
    """What the tokens of a block say against its being one kernel with the target's head."""
    head = split_tokens(target.head)
    if isinstance(head, Problem):
        return Problem(f"the original kernel can't be split into tokens: {head.reason}")
    texts, wanted = [token.text for token in new], [token.text for token in head]
    if texts[: len(wanted)] != wanted:
        at = next((i for i, (a, b) in enumerate(zip(texts, wanted)) if a != b), len(texts))  # noqa: B905 - lengths may differ
        found, lost = " ".join(texts[at : at + 6])[:80], " ".join(wanted[at : at + 6])[:80]
        return Problem(
            f"the head of the kernel must stay as it is: {lost or 'nothing'!r} became {found or 'nothing'!r}"
        )
    return _one_body(new[len(wanted) :])


def use_problem(kernel: KernelNode, target: Target) -> Problem | None:
    """A body that does nothing, or that no longer looks at a parameter."""
    if not any(n.is_named and n.type != "comment" for n in kernel.body.children):
        return Problem("the kernel's body is empty")
    old, new = _names_used(target.kernel), _names_used(kernel)
    parameters = target.kernel.parameters
    declared = declared_names(parameters) if parameters is not None else ()
    for parameter in declared:
        if parameter.name in old and parameter.name not in new:
            return Problem(f"the parameter {parameter.name} is no longer used")
    return None


def _one_body(tokens: tuple[Token, ...]) -> Problem | None:
    depth = 0
    for number, token in enumerate(tokens):
        if token.kind == "sign" and token.text in "{}":
            depth += 1 if token.text == "{" else -1
        if depth <= 0:
            if number + 1 == len(tokens) and token.text == "}":
                return None
            where = tokens[min(number + 1, len(tokens) - 1)].line
            return Problem(f"line {where} of the block goes on behind the end of the kernel")
    return Problem("the braces of the kernel do not balance")


def _names_used(kernel: KernelNode) -> set[str]:
    return {text_of(n) for n in walk(kernel.body) if n.type in {"identifier", "type_identifier"}}


def _what(node: Node) -> str:
    if node.type == "function_definition":
        return f"the function {function_name(node)[:60]!r}"
    if node.type.startswith("preproc_"):
        return f"the directive {' '.join(text_of(node).split())[:60]!r}"
    return "text" if node.is_error else f"something else ({node.type.replace('_', ' ')})"
