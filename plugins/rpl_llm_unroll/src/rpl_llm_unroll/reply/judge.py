"""Turn a reply into one edit of the kernel, or into the problem that stands against it.

A reply is data. Nothing of it reaches a compiler before every check here has passed: one kernel of the same
head, nothing beside it, nothing that acts while it is compiled. What the kernel means is judged by the
compiler, for this edit as for every other one (``rpl_optimize.source_meaning``).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from rpl_llm_unroll.reply.fences import the_block
from rpl_llm_unroll.reply.model import Problem, SoundReply
from rpl_llm_unroll.reply.text_guards import character_problem, token_verdicts
from rpl_llm_unroll.reply.tokens import split_tokens
from rpl_llm_unroll.reply.whole_kernel import (
    kernel_in,
    syntax_problem,
    use_problem,
    whole_kernel_problem,
)
from rpl_optimize.interfaces.transformation import Edit, GuardVerdict
from rpl_optimize.source_meaning.line_numbers import line_directive

if TYPE_CHECKING:
    from rpl_llm_unroll.reply.model import Target
    from rpl_llm_unroll.reply.tokens import Token
    from rpl_llm_unroll.syntax.kernels import KernelNode

#: No kernel that a person would read is longer (chosen).
MAX_REPLY_BYTES = 512 << 10
MAX_KERNEL_BYTES = 128 << 10


def judge_reply(reply: str, target: Target) -> SoundReply | Problem:
    """Never raises for any reply."""
    if len(reply.encode("utf-8", "surrogatepass")) > MAX_REPLY_BYTES:
        return Problem(f"the reply is longer than {MAX_REPLY_BYTES >> 10} KiB")
    block = the_block(reply)
    if isinstance(block, Problem):
        return block
    limit = max(MAX_KERNEL_BYTES, 2 * len(target.text))
    if len(block.text) > limit:
        return Problem(f"the block is longer than {limit >> 10} KiB")
    return character_problem(block.text, target.text) or _judge_kernel(block.text, target)


def _judge_kernel(block: str, target: Target) -> SoundReply | Problem:
    kernel = kernel_in(block, target)
    if isinstance(kernel, Problem):
        return kernel
    new, old = split_tokens(block), split_tokens(target.text)
    if isinstance(new, Problem):
        return new
    if isinstance(old, Problem):
        return Problem(f"the original kernel can't be split into tokens: {old.reason}")
    verdicts = token_verdicts(new, old)
    problem = whole_kernel_problem(new, target) or _first_refusal(verdicts) or syntax_problem(kernel, target)
    if problem is not None:
        return problem
    if [t.text for t in new] == [t.text for t in old]:
        return Problem("the kernel is the same as before but for layout and comments")
    return use_problem(kernel, target) or SoundReply(_edit(block, kernel, target), verdicts, _digest(new))


def _first_refusal(verdicts: tuple[GuardVerdict, ...]) -> Problem | None:
    refused = next((verdict for verdict in verdicts if not verdict.passed), None)
    return None if refused is None else Problem(f"guard {refused.guard}: {refused.reason}")


def _edit(block: str, kernel: KernelNode, target: Target) -> Edit:
    """The new kernel without the comments around it, in the line endings of the old one.

    Where it has more or fewer lines, a ``#line`` keeps the numbers of those behind it: ``assert`` shows them.
    """
    outer, whole = target.kernel.outer, target.file.text
    text = block.encode()[kernel.outer.start_byte : kernel.outer.end_byte]
    old = whole[outer.start_byte : outer.end_byte]
    if old.count(b"\r\n") * 2 > old.count(b"\n"):
        text = text.replace(b"\n", b"\r\n")
    alone = whole[outer.end_byte :].partition(b"\n")[0].strip() == b""
    if alone and text.count(b"\n") != old.count(b"\n"):
        text += line_directive(whole, outer.end_byte)
    return Edit(outer.start_byte, outer.end_byte, text)


def _digest(tokens: tuple[Token, ...]) -> str:
    return hashlib.sha256("\0".join(token.text for token in tokens).encode()).hexdigest()
