"""``#pragma unroll N`` on a line of its own in front of the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.interfaces.transformation import Edit
from rpl_llm_unroll.edits.layout import indentation, line_start, newline

if TYPE_CHECKING:
    from rpl_llm_unroll.loops.view import LoopView


def pragma_edit(view: LoopView, factor: int) -> Edit:
    """One insertion; nothing of the source is replaced."""
    text, begin = view.file.text, view.loop.node.start_byte
    start, indent, end = line_start(text, begin), indentation(text, begin), newline(text, begin)
    pragma = b"#pragma unroll %d" % factor
    if text[start:begin].strip(b" \t"):  # something stands before the loop on its line
        return Edit(begin, begin, end + indent + pragma + end + indent)
    return Edit(begin, begin, pragma + end + indent)
