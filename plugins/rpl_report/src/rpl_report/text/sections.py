"""Sections of plugins in the text report and in ``rpl explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.fit import fit_table
from rpl_core.interfaces.section import Paragraph
from rpl_core.text.safety import printable, readable
from rpl_core.text.table import wrap_lines

if TYPE_CHECKING:
    from rpl_core.interfaces.section import Block, Table
    from rpl_report.sections import AnsweredSection

__all__ = ["section_text"]


def section_text(section: AnsweredSection, width: int) -> str:
    """One section: as the plugin draws it, or its title above its blocks."""
    if section.problem is not None:
        return wrap_lines(readable(f"{section.title}: not shown: {section.problem}"), width)
    if section.own is not None:
        return wrap_lines(printable(section.own), width)
    return "\n".join((readable(section.title), *(_block(block, width) for block in section.blocks)))


def _block(block: Block, width: int) -> str:
    return wrap_lines(printable(block.text), width) if isinstance(block, Paragraph) else _table(block, width)


def _table(table: Table, width: int) -> str:
    """Columns go from the last one on where the width does not allow all of them."""
    columns = [readable(column) for column in table.columns]
    text, lost = fit_table(
        columns,
        [[readable(cell) for cell in row] for row in table.rows],
        width,
        right=[readable(column) for column in table.right],
        droppable=columns[:0:-1],
    )
    return f"{text}\n(no room for {', '.join(lost)}: use a wider terminal)" if lost else text
