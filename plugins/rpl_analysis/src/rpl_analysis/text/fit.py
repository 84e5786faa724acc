"""Text that fits a width: tables give way in their first column, then lose columns; lines are wrapped."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rpl_analysis.text.distinct import shorten_apart
from rpl_core.text.safety import printable
from rpl_core.text.table import format_table

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["fit_table", "wrap_lines"]

_BETWEEN = 2
_LEAST_NAME = 20


def fit_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    right: Sequence[str] = (),
    droppable: Sequence[str] = (),
    longest_name: int | None = None,
) -> tuple[str, tuple[str, ...]]:
    """An aligned table of at most ``width`` characters, and the columns that it lost, in their order.

    The first column holds names, which are cut to ``longest_name`` characters and further down to 20, such
    that different names stay apart. If that does not do, the columns ``droppable`` go, one after the other.
    """
    kept = list(range(len(columns)))
    for dropped in (None, *droppable):
        if dropped is not None:
            kept.remove(next(i for i in reversed(kept) if columns[i] == dropped))
        room = width - sum(_width(columns, rows, i) + _BETWEEN for i in kept[1:])
        if room >= min(_LEAST_NAME, _width(columns, rows, 0)):
            break
    room = min(max(room, _LEAST_NAME), longest_name or room)
    short = shorten_apart((printable(row[0]) for row in rows), room)
    cells = [[short[printable(row[0])], *(row[i] for i in kept[1:])] for row in rows]
    table = format_table([columns[i] for i in kept], cells, right=right)
    return table, tuple(columns[i] for i in range(len(columns)) if i not in kept)


def _width(columns: Sequence[str], rows: Sequence[Sequence[str]], index: int) -> int:
    return max(len(printable(row[index])) for row in (columns, *rows))


def wrap_lines(text: str, width: int) -> str:
    """``text`` with lines longer than ``width`` broken at blanks and continued two characters further in."""
    return "\n".join(part for line in text.split("\n") for part in _wrapped(line, width))


def _wrapped(line: str, width: int) -> Iterable[str]:
    if len(line) <= width:
        return (line,)
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
