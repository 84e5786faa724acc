"""Find the fenced code blocks of a reply, by CommonMark's rules with any indentation.

Backticks and tildes open a block; the same character, at least as often and alone on its line, closes it.
"""

from __future__ import annotations

import re

from rpl_core.values import frozen
from rpl_llm_unroll.reply.model import Problem

_OPENING = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>.*)")
#: What some models write before they answer. It is no part of the answer.
_THINKING = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


@frozen
class FencedBlock:
    """``line`` is where the opening fence stands in the reply, from 1."""

    language: str
    text: str
    line: int


def the_block(reply: str) -> FencedBlock | Problem:
    """The one fenced block of ``reply``, with nothing but white space around it.

    A leading ``<think>`` part is no part of the answer and is passed over.
    """
    text = _THINKING.sub("", reply.replace("\r\n", "\n"), count=1)
    if not text.strip():
        return Problem("the reply is empty")
    fenced = find_blocks(text)
    if isinstance(fenced, Problem):
        return fenced
    blocks, prose = fenced
    return _only(blocks, prose)


def _only(blocks: list[FencedBlock], prose: int | None) -> FencedBlock | Problem:
    """The block, if there is exactly one and no text beside it; ``prose`` is the first line of such text."""
    if not blocks:
        return Problem("the reply has no fenced code block")
    if len(blocks) > 1:
        lines = ", ".join(str(block.line) for block in blocks)
        return Problem(
            f"the reply has {len(blocks)} fenced code blocks (at lines {lines}); send exactly one, no drafts"
        )
    if not blocks[0].text.strip():
        return Problem("the fenced code block is empty")
    if prose is not None:
        return Problem(f"the reply has text outside of its code block (line {prose}); send the block alone")
    return blocks[0]


def find_blocks(text: str) -> tuple[list[FencedBlock], int | None] | Problem:
    """All blocks, and the first line with text outside of them."""
    blocks: list[FencedBlock] = []
    prose: int | None = None
    opening: re.Match[str] | None = None
    begin = 0
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        match = _OPENING.fullmatch(line)
        if opening is None:
            if match is not None and _opens(match):
                opening, begin, lines = match, number, []
            elif line.strip() and prose is None:
                prose = number
        elif match is not None and _closes(match, opening["fence"]):
            blocks.append(FencedBlock(opening["info"].strip(), _outdented(lines, opening["indent"]), begin))
            opening = None
        else:
            lines.append(line)
    if opening is not None:
        return Problem(f"the fenced code block that begins at line {begin} is not closed")
    return blocks, prose


def _opens(match: re.Match[str]) -> bool:
    # ```code``` within one line is a code span.
    return match["fence"][0] == "~" or "`" not in match["info"]


def _closes(match: re.Match[str], opening: str) -> bool:
    fence: str = match["fence"]
    return fence[0] == opening[0] and len(fence) >= len(opening) and not match["info"].strip()


def _outdented(lines: list[str], indent: str) -> str:
    """Lines of an indented block, each without as much of the fence's indentation as it has."""
    size = len(indent)
    kept = [line[min(size, len(line) - len(line.lstrip(" \t"))) :] for line in lines]
    return "".join(f"{line}\n" for line in kept)
